"""FA-HMC figure 1(a): marginal error against step size, exact gradients, many dimensions."""

from __future__ import annotations

from ..figure import ByScale, Drawing, Parameter, Tables, settings
from . import short as checks, step as panel, step_claims as said

TITLE = "Marginal error against step size, exact gradients (Gaussian surrogate)"
PAPER = "FA-HMC figure 1(a)"
REPRODUCES = ("FA-HMC 1(a)",)
SHOWS = ("Bayesian logistic regression with exact gradients, FA-HMC and FA-LD at equal communication: chains "
         "of the paper's length of its Gaussian surrogate on 12 data sets of either of two laws, and short "
         "simulated chains.")
COST = {"tiny": "3 s", "quick": "7 s", "paper": "about 5 min (estimated)"}
PARAMETERS = [
    *panel.parameters(
        ByScale(20, 40, 100), ByScale(20, 40, 100), 0.0, 0.3,
        "the paper has 1000; figure 1(a)'s finding on dimensions says what that changes", "ours",
        ByScale(4, 20, 40)),
    Parameter("dims", ByScale([20, 40], [20, 40, 80], [60, 100, 200]), "ours", "compared"),
    Parameter("dims_case", [0.05, 8], "ours", "their step size and K"),
]
CLAIMS = [*(said.PAPERS[name] for name in ("better", "five", "small", "robust")), *said.BETTER,
          *said.SMALL, *said.WIDE, said.DIMENSION, checks.FINDING]


def compute(scale: str) -> Tables:
    """Tables: long, short, setting, dims."""
    return {**panel.compute(PARAMETERS, scale), "dims": panel.dimensions(settings(PARAMETERS, scale))}


def draw(tables: Tables) -> Drawing:
    """Two laws of the data, and short chains."""
    return panel.draw(tables, "a")
