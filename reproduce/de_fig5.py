"""DE-SGLD figure 5: accuracy along iterations on three networks, simulated logistic regression."""

from __future__ import annotations

import fedsim as fs

from . import _de_logistic as logistic
from . import _de_logistic_figure as shared
from .figure import Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGLD: accuracy of one agent, simulated logistic regression"
PAPER = "DE-SGLD figure 5"
SHOWS = ("Bayesian logistic regression on simulated data with 6 agents and minibatches: accuracy of one "
         "agent on three networks, and the distance to the posterior beside it.")
COST = {"tiny": "3 s", "quick": "6 s", "paper": "1 min"}
PARAMETERS = [
    Parameter("step_size", 0.0003, "paper", "figure 5: eta = 0.0003"),
    Parameter("n_data", 1000, "paper", "section 5.2: n = 1000"),
    Parameter("dim", 3, "paper", "section 5.2: x in R^3"),
    Parameter("feature_variance", 20.0, "paper", "section 5.2: X ~ N(0, 20 I)"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    *shared.SHARED,
]


def compute(scale: str) -> Tables:
    """Tables: curves, agents, contrasts, distances, hypotheses, setting, bounds."""
    p = settings(PARAMETERS, scale)
    data = logistic.simulated(p.n_data, p.dim, p.feature_variance, p.prior_variance, p.data_seed)
    return logistic.compute(p, data, lambda mixing: fs.DESGLD(p.step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, and W2."""
    return shared.draw(tables, "DE-SGLD")


CLAIMS = [
    Claim("DE-SGLD works well for the fully connected and the circular network.", "section 5.2, figure 5",
          shared.judge_works),
    Claim("The disconnected network performs worse than the fully connected and the circular one.",
          "section 5.2, figure 5", shared.judge_disconnected),
    shared.hypotheses_claim("5"),
    *shared.sampling_claims("5"),
]
