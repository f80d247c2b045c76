"""DE-SGHMC figure 10: accuracy along iterations, training and test data of the MAGIC telescope."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import fedsim as fs

from ..figure import Drawing, Parameter, Tables, settings
from . import telescope, telescope_figure as shared

TITLE = "Accuracy of one agent, MAGIC telescope data or a stand-in"
PAPER = "DE-SGHMC figure 10"
SHOWS = ("Bayesian logistic regression on the MAGIC telescope's data (--data magic04.data; a SYNTHETIC "
         "STAND-IN otherwise): accuracy of one agent on training and test data, minibatches scaled in two "
         "ways.")
COST = {"tiny": "3 s", "quick": "6 s", "paper": "40 s (estimated)"}
REPRODUCES = ("DE 10",)
DATA = (telescope.FILE,)
LOOSE = telescope.LOOSE
UNSTABLE = True
PARAMETERS = [
    Parameter("step_size", 0.07, "paper", "figure 10: eta = 0.07"),
    Parameter("friction", 5.0, "paper", "figure 10: gamma = 5"),
    *telescope.SHARED,
]


def compute(scale: str, files: Mapping[str, Path]) -> Tables:
    """Tables: curves, contrasts, stability, hypotheses, assumptions, setting."""
    p = settings(PARAMETERS, scale)
    return telescope.compute(p, files, lambda mixing: fs.DESGHMC(p.step_size, p.friction, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, training and test data; differences on all data sets."""
    return shared.draw(tables, "DE-SGHMC")


CLAIMS = shared.claims("DE-SGHMC", "Theorem 11", "10")
