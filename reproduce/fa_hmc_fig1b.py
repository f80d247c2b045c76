"""FA-HMC figure 1(b): marginal error against step size, noisy gradients, many dimensions."""

from __future__ import annotations

from . import _fa_hmc_step as panel
from .figure import ByScale, Drawing, Tables

TITLE = "FA-HMC and FA-LD: marginal error against step size, noisy gradients"
PAPER = "FA-HMC figure 1(b)"
SHOWS = ("Bayesian logistic regression with noisy gradients, FA-HMC and FA-LD at equal communication: long "
         "chains of its Gaussian surrogate for two laws of the data, and short simulated chains.")
COST = {"tiny": "2 s", "quick": "8 s", "paper": "about 10 min (estimated)"}
PARAMETERS = panel.parameters(
    ByScale(20, 40, 100), ByScale(20, 40, 100), 10.0, 0.3,
    "the paper has 1000, 4e15 operations per curve: out of reach", "ours", ByScale(2000, 10000, 100000),
    ByScale(4, 20, 100))
CLAIMS = [panel.BETTER, panel.FIVE, panel.SMALL, panel.ROBUST, panel.SURROGATE]


def compute(scale: str) -> Tables:
    """Tables: tuned, long, short, setting."""
    return panel.compute(PARAMETERS, scale)


def draw(tables: Tables) -> Drawing:
    """Two laws of the data, and short chains."""
    return panel.draw(tables, "b")
