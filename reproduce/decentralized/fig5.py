"""DE-SGLD figure 5: accuracy along iterations on three networks, simulated logistic regression."""

from __future__ import annotations

import fedsim as fs

from ..figure import DATA_SETS, REPLICAS, Claim, Drawing, Parameter, Tables, settings
from . import logistic, logistic_claims as claims, logistic_figure as shared
from .assumptions import SUPPORTS, assumptions_claim, range_claim

TITLE = "Accuracy of one agent, simulated logistic regression"
PAPER = "DE-SGLD figure 5"
SHOWS = ("Bayesian logistic regression on simulated data with 6 agents and minibatches: accuracy of one "
         "agent on three networks, the same on 12 data sets, and the distance to the posterior.")
COST = {"tiny": "3 s", "quick": "5 s", "paper": "1 min"}
REPRODUCES = ("DE 5",)
PARAMETERS = [
    Parameter("step_size", 0.0003, "paper", "figure 5: eta = 0.0003"),
    Parameter("n_data", 1000, "paper", "section 5.2: n = 1000"),
    Parameter("dim", 3, "paper", "section 5.2: x in R^3"),
    Parameter("feature_variance", 20.0, "paper", "section 5.2: X ~ N(0, 20 I)"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    *shared.SHARED,
]


def compute(scale: str) -> Tables:
    """Tables: curves, sets, contrasts, hypotheses, assumptions, distances, setting, bounds."""
    p = settings(PARAMETERS, scale)
    return logistic.compute(
        p, lambda number: logistic.simulated(p.n_data, p.dim, p.feature_variance, p.prior_variance,
                                             p.data_seed + number),
        lambda mixing: fs.DESGLD(p.step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, differences on all data sets, and W2."""
    return shared.draw(tables, "DE-SGLD")


CLAIMS = [
    Claim("DE-SGLD works well for the fully connected and the circular network.", "section 5.2, figure 5",
          claims.judge_works, name="works_well", rests_on=REPLICAS, context=(
              "The paper gives no number. Ours: draws of the posterior (Laplace) classify better than the "
              "larger class alone; 95% of that gain are asked for, and only an agent without any gain "
              f"would contradict it. {claims.LATE_TEXT} {claims.INTERVALS}")),
    claims.disconnected_claim("The disconnected network performs worse than the fully connected and the "
                              "circular one.", "section 5.2, figure 5"),
    assumptions_claim("5", DATA_SETS, claims.ASSUMED, least=1),
    range_claim("Theorem 1", "5", DATA_SETS, SUPPORTS),
    *claims.sampling_findings("5"),
]
