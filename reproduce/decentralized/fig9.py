"""DE-SGLD figure 9: accuracy along iterations, training and test data of the MAGIC telescope."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import fedsim as fs

from ..figure import Drawing, Parameter, Tables, settings
from . import telescope, telescope_figure as shared

TITLE = "Accuracy of one agent, MAGIC telescope data or a stand-in"
PAPER = "DE-SGLD figure 9"
SHOWS = ("Bayesian logistic regression on the MAGIC telescope's data (--data magic04.data; a SYNTHETIC "
         "STAND-IN otherwise): accuracy of one agent on training and test data, minibatches scaled in two "
         "ways.")
COST = {"tiny": "3 s", "quick": "6 s", "paper": "40 s (estimated)"}
REPRODUCES = ("DE 9",)
DATA = (telescope.FILE,)
LOOSE = telescope.LOOSE
UNSTABLE = True
PARAMETERS = [
    Parameter("step_size", 0.008, "paper", "figure 9: eta = 0.008"),
    *telescope.SHARED,
]


def compute(scale: str, files: Mapping[str, Path]) -> Tables:
    """Tables: curves, contrasts, stability, hypotheses, assumptions, setting."""
    p = settings(PARAMETERS, scale)
    return telescope.compute(p, files, lambda mixing: fs.DESGLD(p.step_size, mixing))


def draw(tables: Tables) -> Drawing:
    """Three networks, training and test data; differences on all data sets."""
    return shared.draw(tables, "DE-SGLD")


CLAIMS = shared.claims("DE-SGLD", "Theorem 1", "9")
