"""FA-LD figure 3(a): full participation, by step size."""

from __future__ import annotations

from ..figure import Drawing, Tables
from . import participation as panel, participation_claims as claims

TITLE = "W2 against rounds, all clients"
PAPER = "FA-LD figure 3(a)"
REPRODUCES = ("FA-LD 3(a)",)
SHOWS = ("Full participation (K = 100) at four step sizes: replicas and exact law; beside it the "
         "bias that stays, against the step size.")
COST = {"tiny": "2 s", "quick": "6 s", "paper": "40 s (estimated)"}
PARAMETERS = panel.parameters(["full"], None)
CLAIMS = claims.FULL_CLAIMS


def compute(scale: str) -> Tables:
    """Tables: curves (exact, replicas), bias, bounds, panel, speed, fits."""
    return panel.compute(PARAMETERS, scale)


def draw(tables: Tables) -> Drawing:
    """The curves, and the stationary bias against the step size."""
    return panel.draw(tables, "a")
