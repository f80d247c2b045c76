"""All algorithms on one heterogeneous problem, each tuned by its exact law, with what its recursion promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim as fs
import theory

from .. import plot
from ..figure import ByScale, Drawing, Finding, Parameter, Tables, note, settings
from ..tables import among
from ..verdicts import EXACT, FAIL, PASS, Judgement

TITLE = "All algorithms on one problem"
PAPER = "ours, for all four papers"
SHOWS = ("W2 against rounds, gradients and floats sent on one problem of unlike clients, every algorithm tuned for "
         "every accuracy by its exact law; beside it what its recursion promises, and FA-LD's epsilon.")
COST = {"tiny": "20 s", "quick": "70 s", "paper": "5 min (estimated)"}
_CHOICE = "no paper has such an experiment"
PARAMETERS = [
    Parameter("n_clients", 10, "ours", _CHOICE),
    Parameter("dim", 2, "ours", _CHOICE),
    Parameter("client_size", 100_000, "ours", "records a client: a useful epsilon takes many"),
    Parameter("curvatures", [1.0, 4.0], "ours", "of a record's loss (theta-x)' A_c (theta-x)/2, rotated by client"),
    Parameter("spread", 10.0, "ours", "distance of the clients' minimizers, in posterior standard deviations"),
    Parameter("radius", 0.5, "ours", "records fill a disc of this radius about their client's centre"),
    Parameter("batch_fraction", 0.1, "ours", "minibatch noise is part of all laws"),
    Parameter("start", [0.5, 0.0], "ours", "a public value, some hundred posterior standard deviations away"),
    Parameter("accuracies", ByScale([30.0, 3.0], [100, 50, 20, 10, 5, 2, 1, 0.5, 0.2],
                                    np.geomspace(100.0, 0.1, 19).tolist()), "ours",
              "W2, in posterior standard deviations"),
    Parameter("local_steps", ByScale([1, 5], [1, 2, 5, 10, 20, 50], [1, 2, 3, 5, 10, 20, 50, 100]), "ours",
              "tried for FA-LD and FA-HMC"),
    Parameter("leapfrog_steps", 3, "ours", "of FA-HMC"),
    Parameter("momentum", 0.5, "ours", "1 - friction step_size of DE-SGHMC, kept while it is tuned"),
    Parameter("active", 5, "ours", "clients drawn a round, where not all take part"),
    Parameter("delta0", 1e-9, "ours", "of a local step: small enough for delta < 1/records"),
    Parameter("data_seed", 0, "ours", "of the clients"),
]
COSTS = {"communications": "communication rounds", "gradient_evaluations": "gradients of one client's data",
         "floats_sent": "floats sent"}


class Kind(NamedTuple):
    """An algorithm of the figure and how its lines look."""

    make: Callable[[Any], Any]
    colour: str
    marker: str


def _ring(p: Any) -> np.ndarray:
    return fs.network.ring(p.n_clients)


KINDS = {
    "FA-LD": Kind(lambda p: fs.FALD(1e-9), plot.COLOURS[0], "o"),
    "FA-LD, 5 of 10 drawn": Kind(lambda p: fs.FALD(1e-9, participation=fs.Participation(p.active, True)),
                                 plot.COLOURS[5], "D"),
    "FA-HMC": Kind(lambda p: fs.FAHMC(1e-5, p.leapfrog_steps), plot.COLOURS[1], "s"),
    "DE-SGLD, ring": Kind(lambda p: fs.DESGLD(1e-9, _ring(p)), plot.COLOURS[2], "^"),
    "DE-SGHMC, ring": Kind(lambda p: fs.DESGHMC(1e-5, (1.0 - p.momentum) / 1e-5, _ring(p)), plot.COLOURS[3],
                           "v"),
    "stale SGLD, 10 workers": Kind(lambda p: fs.StaleSGLD(1e-9, p.n_clients - 1), plot.COLOURS[4], "P"),
}
