"""FA-HMC figures 6 and 7: scores on two data sets, by leapfrog steps and by local steps."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pandas as pd

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..prediction import data as rows, drawing as shown, judging, runs
from ..tables import among
from ..verdicts import ROWS, Judgement
from . import images

TITLE = "Three scores on two data sets, by leapfrog steps and by local steps"
PAPER = "FA-HMC figures 6 and 7"
REPRODUCES = ("FA-HMC 6", "FA-HMC 7")
SHOWS = ("Accuracy, Brier score and calibration error of averaged predictions of softmax regression on ten "
         "digits and of logistic regression on two of them, against communication rounds.")
COST = {"tiny": "10 s", "quick": "30 s", "paper": "1 h (estimate), reduced"}
SCORES = ("accuracy", "brier", "ece")
SETS = {"ten digits": "KM", "3 against 8": "CF2"}
PARTS = {f"{data}, by {kind}": (data, kind) for kind in ("K", "T") for data in SETS}
PARAMETERS = [
    *images.SETTING,
    Parameter("batch_sizes", {"ten digits": 50, "3 against 8": None}, "ours", "section 5.5 has 1000: a "
              "sixth of a client's data on KMNIST, and all of them on CIFAR-10's two classes"),
    Parameter("digits", [3, 8], "ours", "two classes in place of CIFAR-10's airplane and automobile"),
    Parameter("leapfrogs", ByScale([1, 5], [1, 5, 20], [1, 10, 50]), "ours", "K of figure 6; the paper has "
              "1, 10, 50, 100"),
    Parameter("local_steps_6", ByScale(3, 10, 10), "ours", "T of figure 6; the paper has 50"),
    Parameter("local_steps", ByScale([1, 5], [1, 5, 20], [1, 10, 50]), "ours", "T of figure 7; the paper has "
              "1, 10, 50"),
    Parameter("leapfrogs_7", ByScale(2, 5, 10), "ours", "K of figure 7; the paper has 10"),
    Parameter("n_rounds", ByScale(4, 8, 60), "ours", "not printed"),
    Parameter("steps", ByScale([1.4, 2.7], [0.7, 1.4, 2.7, 4.5, 7.0], [0.35, 0.7, 1.4, 2.7, 4.5, 7.0]),
              "ours", "step sizes tried, times the inverse root of the curvature at theta = 0; no grid is "
              "printed"),
    Parameter("n_runs", ByScale(2, 5, 5), "ours", "in each setting; the number is not printed"),
]


def compute(scale: str) -> Tables:
    """Tables: tuning, tuning_curves, curves, compared, facts; a part is data, and what is varied."""
    p = settings(PARAMETERS, scale)
    pixels, labels, title = rows.pixels_of_digits()
    made, facts = [], []
    for part, (name, kind) in PARTS.items():
        batches = SimpleNamespace(**vars(p) | {"batch_size": p.batch_sizes[name]})
        two = tuple(p.digits) if name != "ten digits" else None
        data = rows.divided(pixels, labels, title, batches, digits=two)
        cases = (images.by_leapfrogs(p, data, p.leapfrogs, p.local_steps_6, p.n_rounds) if kind == "K" else
                 images.by_local_steps(p, data, p.local_steps, p.leapfrogs_7, p.n_rounds))
        made.append(runs.swept(p, data, cases, 1, part))
        facts.append(runs.facts_of(data, part))
    return runs.stacked(made) | {"facts": pd.DataFrame(facts)}


def draw(tables: Tables) -> Drawing:
    """Figure 6 above, figure 7 below; a row for each data set."""
    drawing, axes = plot.panels(3, 5.0, 4.2, n_rows=4)
    for row, (part, (name, kind)) in zip(axes, PARTS.items(), strict=True):
        for ax, score in zip(row, SCORES, strict=True):
            shown.scores(ax, tables, part, score, kind, f"figure {6 if kind == 'K' else 7}: {name}",
                         exact=False)
            plot.legend_below(ax, 2)
    drawing.suptitle(f"{tables['facts']['data'].iloc[0]} in place of KMNIST,\n"
                     "and its 3 against 8 in place of two classes of CIFAR-10; means and standard deviations")
    return drawing


def judge(tables: Tables, part: str, scores: tuple[str, ...], every: bool) -> Judgement:
    """Is the setting 1 worse than all others (`every`) or some, with best step sizes inside the grid?"""
    tuning = among(tables["tuning"], part=part)
    return judging.claimed(among(tables["compared"], part=part), scores, tuning, PARTS[part][1], every)


def judge_here(tables: Tables, part: str, scores: tuple[str, ...], every: bool) -> tuple[str, str]:
    """The same after a quarter of the rounds, on the data at hand."""
    table = judging.early(among(tables["compared"], part=part))
    return judging.worst(table, scores, finding=True, every=every)


def _each() -> list[Claim | Finding]:
    """The paper's sentences and ours, for both figures and data sets."""
    made: list[Any] = []
    for part, (name, kind) in PARTS.items():
        scores = ("brier", "ece") if (SETS[name], kind) == ("CF2", "T") else SCORES
        names = ", ".join(judging.NAMES[score] for score in scores)
        number, what = ("6", f"K = 1 is the best K in none of {names}") if kind == "K" else (
            "7", f"T > 1 is better than T = 1 in {names}")
        options: dict[str, Any] = {"part": part, "scores": scores, "every": kind == "T"}
        made += [Claim(f"{SETS[name]}: {what}.", f"section 5.5, figure {number}", partial(judge, **options),
                       f"{SETS[name]}_{number}".lower(), ROWS, images.OURS),
                 Finding(f"With {name}, after a quarter of the rounds, {what}.",
                         f"section 5.5, figure {number}", partial(judge_here, **options),
                         f"digits_{SETS[name]}_{number}".lower(), ROWS)]
    return made


CLAIMS = [
    *_each(),
    Unjudged("On CIFAR-10's two classes the best K is 10 in accuracy and Brier score, and larger in "
             "calibration error.", "section 5.5, figure 6", "Needs those data, and what is not printed.",
             "optima"),
    Unjudged("On CIFAR-10's two classes T > 1 is not better than T = 1 in accuracy.", "section 5.5, figure 7",
             "Needs those data, and what is not printed: two digits are easily told apart.", "exception"),
]
