"""FA-HMC figures 6 and 7: scores on two data sets, by leapfrog steps and by local steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..images import CIFAR10, ImageData, cifar_two, usual_names
from ..prediction import data as rows, drawing as shown, judging, runs
from ..verdicts import ROWS, Judgement
from . import images
from .shared import READINGS

TITLE = "Three scores on two data sets, by leapfrog steps and by local steps"
PAPER = "FA-HMC figures 6 and 7"
REPRODUCES = ("FA-HMC 6", "FA-HMC 7")
SHOWS = ("Accuracy, Brier score and calibration error of averaged predictions of softmax regression on ten "
         "classes of images and on two, against communication rounds.")
COST = {"tiny": "10 s", "quick": "30 s; 10 min (estimate) for each data set of --data",
        "paper": "1 h (estimate), reduced"}
TOGETHER = "images"
KMNIST = "kmnist"
DATA = (*usual_names(KMNIST), *CIFAR10)
SCORES = ("accuracy", "brier", "ece")
KM, CF2 = "KM", "CF2"
PARTS = {f"{data}, by {kind}": (data, kind) for kind in ("K", "T") for data in (KM, CF2)}
PARAMETERS = [
    *images.SETTING,
    *images.BATCHES,
    Parameter("batch_size_two", None, "ours", "of two classes all data; section 5.5 has 1000, all that a "
              "client has"),
    Parameter("digits", [3, 8], "ours", "two classes in place of CIFAR-10's airplane and automobile"),
    Parameter("leapfrogs", ByScale([1, 5], [1, 5, 20], [1, 10, 50]), "ours", "K of figure 6",
              [1, 10, 50, 100]),
    Parameter("local_steps_6", ByScale(3, 10, 10), "ours", "T of figure 6", 50),
    Parameter("local_steps", ByScale([1, 5], [1, 5, 20], [1, 10, 50]), "ours", "T of figure 7", [1, 10, 50]),
    Parameter("leapfrogs_7", ByScale(2, 5, 10), "ours", "K of figure 7", 10),
    Parameter("n_rounds", ByScale(4, 8, 60), "ours", "of both figures", "not printed"),
    Parameter("steps", ByScale([1.4, 2.7], [0.35, 0.7, 1.4, 2.7, 4.5, 7.0, 11.0],
                               [0.35, 0.7, 1.4, 2.7, 4.5, 7.0, 11.0]),
              "ours", "step sizes tried, times the inverse root of the curvature at theta = 0; no grid is "
              "printed"),
    Parameter("n_runs", ByScale(2, 16, 16), "ours", "in each setting, as many as fill a row of lanes; the "
              "number is not printed"),
]


class Used(NamedTuple):
    """A data set, what its panels are called, and the minibatch."""

    images: ImageData
    called: str
    batch_size: int | None


def _used(scale: str, files: Mapping[str, Path], p: Any) -> dict[str, Used]:
    """What stands for the paper's two data sets."""
    *_, (name, ten) = rows.chosen(scale, files, [KMNIST]).items()  # of several the largest
    two, called = cifar_two(files), "airplane against automobile"
    if two is None:
        whole, (first, second) = rows.stand_in(scale, ""), p.digits
        two = whole.of_classes(first, second, f"{first} and {second} of {whole.name} in place of two classes "
                               "of CIFAR-10")
        called = f"{first} against {second}"
    return {KM: Used(ten, "KMNIST" if name == KMNIST else "ten digits", rows.batch_size(p, ten)),
            CF2: Used(two, called, p.batch_size_two)}


def compute(scale: str, files: Mapping[str, Path]) -> Tables:
    """Tables: tuning, tuning_curves, curves, compared, facts; a part is data, and what is varied."""
    p = settings(PARAMETERS, scale)
    made, facts = [], []
    for name, used in _used(scale, files, p).items():
        data = rows.dealt(used.images, p, used.batch_size)
        for part, reading in product((part for part, (own, _) in PARTS.items() if own == name), READINGS):
            cases = (images.by_leapfrogs(p, data, p.leapfrogs, p.local_steps_6, p.n_rounds, reading)
                     if PARTS[part][1] == "K" else
                     images.by_local_steps(p, data, p.local_steps, p.leapfrogs_7, p.n_rounds, reading))
            own = images.part_of(part, reading)
            swept = runs.swept(p, data, cases, 1, own)
            made.append({table: one.assign(set=name) for table, one in swept.items()})
            facts.append(runs.facts_of(data, own) | {"set": name, "called": used.called})
    return runs.stacked(made) | {"facts": pd.DataFrame(facts)}


def draw(tables: Tables) -> Drawing:
    """Figure 6 above, figure 7 below; a row a score, a column a data set and reading."""
    drawing, axes = plot.panels(4, 3.2, 2.4, n_rows=2 * len(SCORES))
    called = dict(zip(tables["facts"]["part"], tables["facts"]["called"], strict=True))
    for place, (part, reading) in enumerate(product(PARTS, READINGS)):
        own, kind, (below, column) = images.part_of(part, reading), PARTS[part][1], divmod(place, 4)
        for ax, score in zip(axes[len(SCORES) * below:, column], SCORES, strict=False):
            shown.scores(ax, tables, own, score, kind, f"{6 + below}: {called[own]}, {reading}")
    images.finish(axes)
    drawing.suptitle(";\n".join([*judging.by_set(tables), images.READ_AS]))
    return drawing


def judge(tables: Tables, part: str, scores: tuple[str, ...], every: bool) -> Judgement:
    """Is the setting 1 worse than all others (`every`) or some, with best step sizes inside the grid?"""
    return images.claimed(tables, part, scores, PARTS[part][1], every)


def judge_here(tables: Tables, part: str, scores: tuple[str, ...], every: bool, reading: str) -> Judgement:
    """The same after a quarter of the rounds, on the data at hand."""
    return images.here(tables, part, scores, reading, every)


def _each() -> list[Claim | Finding]:
    """The paper's sentences and ours, for both figures and data sets."""
    made: list[Any] = []
    for part, (name, kind) in PARTS.items():
        scores = ("brier", "ece") if (name, kind) == (CF2, "T") else SCORES
        names = ", ".join(judging.NAMES[score] for score in scores)
        number, what = ("6", f"K = 1 is the best K in none of {names}") if kind == "K" else (
            "7", f"T > 1 is better than T = 1 in {names}")
        options: dict[str, Any] = {"part": part, "scores": scores, "every": kind == "T"}
        made += [Claim(f"{name}: {what}.", f"section 5.5, figure {number}", partial(judge, **options),
                       f"{name}_{number}".lower(), ROWS, images.READ,
                       echo=judging.ECHO),
                 *(Finding(f"On the data at hand for {name}, {words}, after a quarter of the rounds {what}.",
                           f"section 5.5, figure {number}", partial(judge_here, **options, reading=reading),
                           f"early_{name}_{number}_{reading[-1]}".lower(), ROWS)
                   for reading, words in READINGS.items())]
    return made


CLAIMS = [
    *_each(),
    Unjudged("On CIFAR-10's two classes the best K is 10 in accuracy and Brier score, and larger in "
             "calibration error.", "section 5.5, figure 6", "Needs those data, and what is not printed.",
             "optima"),
    Unjudged("On CIFAR-10's two classes T > 1 is not better than T = 1 in accuracy.", "section 5.5, figure 7",
             "Needs those data, and what is not printed: two digits are easily told apart.", "exception"),
]
