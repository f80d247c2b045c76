"""DE-SGLD figure 6: accuracy along iterations on three networks, simulated logistic regression."""

from __future__ import annotations

import fedsim as fs

from . import _de_logistic as logistic
from . import _de_logistic_figure as shared
from .figure import Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGHMC: accuracy of one agent, simulated logistic regression"
PAPER = "DE-SGHMC figure 6"
SHOWS = ("Bayesian logistic regression on simulated data with 6 agents and minibatches: accuracy of one "
         "agent on three networks, and the distance to the posterior beside it.")
COST = {"tiny": "3 s", "quick": "6 s", "paper": "about 1 min (estimated)"}
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
    """Tables: curves, agents, contrasts, distances, hypotheses, setting."""
    p = settings(PARAMETERS, scale)
    data = logistic.simulated(p.n_data, p.dim, p.feature_variance, p.prior_variance, p.data_seed)
    return logistic.compute(p, data, lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, and W2."""
    return shared.draw(tables, "DE-SGHMC")


CLAIMS = [
    Claim("The fully connected and the circular network perform better than the disconnected one.",
          "section 5.2, figure 6", shared.judge_disconnected),
    shared.hypotheses_claim("6"),
    *shared.sampling_claims("6"),
]
