"""FA-LD figure 3(c): partial participation, S = 30, both schemes."""

from __future__ import annotations

from ..figure import Drawing, Tables
from . import participation as panel, participation_claims as claims

TITLE = "W2 against rounds, S = 30 of 50 clients"
PAPER = "FA-LD figure 3(c)"
REPRODUCES = ("FA-LD 3(c)",)
SHOWS = ("Partial participation with S = 30 (K = 100), schemes I and II, at four step sizes: replicas and "
         "exact law; beside them the bias that stays.")
COST = {"tiny": "4 s", "quick": "9 s", "paper": "about 2 min (estimated)"}
PARAMETERS = panel.parameters(["I", "II"], 30)
CLAIMS = claims.partial_claims(counted_in="fa_ld_fig3b")


def compute(scale: str) -> Tables:
    """Tables: curves (exact, replicas), bias, bounds, panel."""
    return panel.compute(PARAMETERS, scale)


def draw(tables: Tables) -> Drawing:
    """One panel a scheme, and the stationary bias against the step size."""
    return panel.draw(tables, "c")
