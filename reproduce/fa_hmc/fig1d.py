"""FA-HMC figure 1(d): marginal error against step size, noisy gradients, ten dimensions."""

from __future__ import annotations

from ..figure import ByScale, Drawing, Tables
from . import short as checks, step as panel, step_claims as said

TITLE = "Marginal error against step size, ten dimensions (Gaussian surrogate)"
PAPER = "FA-HMC figure 1(d)"
REPRODUCES = ("FA-HMC 1(d)",)
SHOWS = ("Bayesian logistic regression in ten dimensions with noisy gradients, FA-HMC and FA-LD at equal "
         "communication: chains of the paper's length of its Gaussian surrogate on 12 data sets of either of "
         "two laws, and short simulated chains.")
COST = {"tiny": "3 s", "quick": "10 s", "paper": "about 15 min (estimated)"}
PARAMETERS = panel.parameters(10, 1000, 10.0, 0.1, "section 5.1: d = 10", "paper", ByScale(4, 10, 40))
CLAIMS = [*(said.PAPERS[name] for name in ("better", "small", "robust", "gap", "dims")), *said.BETTER,
          *said.SMALL, *said.WIDE, *said.GAP, checks.FINDING]


def compute(scale: str) -> Tables:
    """Tables: long, short, setting."""
    return panel.compute(PARAMETERS, scale)


def draw(tables: Tables) -> Drawing:
    """Two laws of the data, and short chains."""
    return panel.draw(tables, "d")
