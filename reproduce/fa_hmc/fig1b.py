"""FA-HMC figure 1(b): marginal error against step size, noisy gradients, many dimensions."""

from __future__ import annotations

from ..figure import ByScale, Drawing, Tables
from . import short as checks, step as panel, step_claims as said

TITLE = "Marginal error against step size, noisy gradients (Gaussian surrogate)"
PAPER = "FA-HMC figure 1(b)"
REPRODUCES = ("FA-HMC 1(b)",)
SHOWS = ("Bayesian logistic regression with noisy gradients, FA-HMC and FA-LD at equal communication: chains "
         "of the paper's length of its Gaussian surrogate on 12 data sets of either of two laws, and short "
         "simulated chains.")
COST = {"tiny": "3 s", "quick": "8 s", "paper": "about 6 min (estimated)"}
PARAMETERS = panel.parameters(
    ByScale(20, 40, 100), ByScale(20, 40, 100), 10.0, 0.3,
    "the paper has 1000; figure 1(a)'s finding on dimensions says what that changes", "ours",
    ByScale(4, 20, 40))
CLAIMS = [*(said.PAPERS[name] for name in ("better", "five", "small", "robust")), *said.BETTER,
          *said.SMALL, *said.WIDE, checks.FINDING]


def compute(scale: str) -> Tables:
    """Tables: long, short, setting."""
    return panel.compute(PARAMETERS, scale)


def draw(tables: Tables) -> Drawing:
    """Two laws of the data, and short chains."""
    return panel.draw(tables, "b")
