"""DE-SGLD figure 7: accuracy along iterations on three networks, breast cancer data."""

from __future__ import annotations

import fedsim as fs

from ..figure import DATA_SETS, Drawing, Parameter, Tables, settings
from . import logistic, logistic_claims as claims, logistic_figure as shared
from .assumptions import THEORY, assumptions_claim, range_claim

TITLE = "Accuracy of one agent, breast cancer data"
PAPER = "DE-SGLD figure 7"
SHOWS = ("Bayesian logistic regression on the breast cancer data with 6 agents and minibatches: accuracy of "
         "one agent on three networks, the same on 12 dealings, and the distance to the posterior.")
COST = {"tiny": "3 s", "quick": "7 s", "paper": "3 min"}
REPRODUCES = ("DE 7",)
PARAMETERS = [
    Parameter("step_size", 0.0008, "paper", "figure 7: eta = 0.0008"),
    Parameter("prior_variance", 10.0, "paper", "section 5.2: lambda = 10"),
    Parameter("features", "standardised, with an intercept", "ours",
              "dimension 31 is printed; with raw features L is about 5e7 and this step size useless"),
    *shared.without(shared.SHARED, "data_seed"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, sets, contrasts, hypotheses, assumptions, distances, setting, bounds."""
    p = settings(PARAMETERS, scale)
    data = logistic.breast_cancer()
    return logistic.compute(p, lambda number: data, lambda mixing: fs.DESGLD(p.step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, differences on all data sets, and W2."""
    return shared.draw(tables, "DE-SGLD")


CLAIMS = [
    claims.disconnected_claim("The disconnected network performs worse than the connected ones.",
                              "section 5.3, figure 7"),
    assumptions_claim("7", DATA_SETS, claims.ASSUMED, least=1),
    range_claim("Theorem 1", "7", DATA_SETS, THEORY, context="Features are standardised, which is ours."),
    *claims.sampling_findings("7"),
]
