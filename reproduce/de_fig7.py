"""DE-SGLD figure 7: accuracy along iterations on three networks, breast cancer data."""

from __future__ import annotations

import fedsim as fs

from . import _de_logistic as logistic
from . import _de_logistic_figure as shared
from .figure import Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGLD: accuracy of one agent, breast cancer data"
PAPER = "DE-SGLD figure 7"
SHOWS = ("Bayesian logistic regression on the breast cancer data with 6 agents and minibatches: accuracy of "
         "one agent on three networks, and the distance to the posterior beside it.")
COST = {"tiny": "3 s", "quick": "9 s", "paper": "3 min"}
PARAMETERS = [
    Parameter("step_size", 0.0008, "paper", "figure 7: eta = 0.0008"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    Parameter("features", "standardised, with an intercept", "ours",
              "dimension 31 is printed; with raw features L is about 5e7 and this step size useless"),
    *shared.without(shared.SHARED, "data_seed"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, agents, contrasts, distances, hypotheses, setting, bounds."""
    p = settings(PARAMETERS, scale)
    return logistic.compute(p, logistic.breast_cancer(), lambda mixing: fs.DESGLD(p.step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, and W2."""
    return shared.draw(tables, "DE-SGLD")


CLAIMS = [
    Claim("The disconnected network performs worse than the connected ones.", "section 5.3, figure 7",
          shared.judge_disconnected),
    shared.hypotheses_claim("7"),
    *shared.sampling_claims("7"),
]
