"""DE-SGLD figure 6: accuracy along iterations on three networks, simulated logistic regression."""

from __future__ import annotations

import fedsim as fs

from ..figure import DATA_SETS, Drawing, Parameter, Tables, settings
from . import logistic, logistic_claims as claims, logistic_figure as shared
from .assumptions import THEORY, assumptions_claim, range_claim

TITLE = "Accuracy of one agent, simulated logistic regression"
PAPER = "DE-SGHMC figure 6"
SHOWS = ("Bayesian logistic regression on simulated data with 6 agents and minibatches: accuracy of one "
         "agent on three networks, the same on 12 data sets, and the distance to the posterior.")
COST = {"tiny": "3 s", "quick": "5 s", "paper": "about 1 min (estimated)"}
REPRODUCES = ("DE 6",)
PARAMETERS = [
    Parameter("step_size", 0.02, "paper", "figure 6: eta = 0.02"),
    Parameter("friction", 30.0, "paper", "figure 6: gamma = 30"),
    Parameter("n_data", 1000, "paper", "section 5.2: n = 1000"),
    Parameter("dim", 3, "paper", "section 5.2: x in R^3"),
    Parameter("feature_variance", 20.0, "paper", "section 5.2: X ~ N(0, 20 I)"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    *shared.SHARED,
]


def compute(scale: str) -> Tables:
    """Tables: curves, sets, contrasts, hypotheses, assumptions, distances, setting."""
    p = settings(PARAMETERS, scale)
    return logistic.compute(
        p, lambda number: logistic.simulated(p.n_data, p.dim, p.feature_variance, p.prior_variance,
                                             p.data_seed + number),
        lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, differences on all data sets, and W2."""
    return shared.draw(tables, "DE-SGHMC")


CLAIMS = [
    claims.disconnected_claim("The fully connected and the circular network perform better than the "
                              "disconnected one.", "section 5.2, figure 6"),
    assumptions_claim("6", DATA_SETS, claims.ASSUMED, counted_in="de_fig5", least=1),
    range_claim("Theorem 11", "6", DATA_SETS, THEORY),
    *claims.sampling_findings("6"),
]
