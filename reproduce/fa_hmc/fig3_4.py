"""FA-HMC figures 3 and 4: scores of averaged predictions by leapfrog steps and by local steps."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..images import ImageData, usual_names
from ..prediction import data as rows, drawing as shown, judging, runs
from ..verdicts import ROWS, Judgement
from . import images
from .shared import READINGS

TITLE = "Four scores by leapfrog steps and by local steps"
PAPER = "FA-HMC figures 3 and 4, with the bands of S1 and S2"
REPRODUCES = ("FA-HMC 3", "FA-HMC 4", "FA-HMC S1", "FA-HMC S2")
SHOWS = ("Accuracy, Brier score, calibration error and log likelihood of averaged predictions of a softmax "
         "regression against communication rounds, mean and standard deviation of runs.")
COST = {"tiny": "10 s", "quick": "40 s; 15 min (estimate) with --data", "paper": "1 h of one core, reduced"}
TOGETHER = "images"
FASHION = "fashion"
DATA = usual_names(FASHION)
SCORES = ("accuracy", "brier", "ece", "nll")
PARTS = {"leapfrog steps": ("K", "3"), "local steps": ("T", "4")}
PARAMETERS = [
    *images.SETTING,
    *images.BATCHES,
    Parameter("n_runs", ByScale(2, 16, 16), "ours", "in each setting, as many as fill a row of lanes: "
              "of fewer intervals would be too wide to tell", 5),
    Parameter("leapfrogs", ByScale([1, 5], [1, 5, 10, 20], [1, 10, 50]), "ours", "K of figure 3",
              [1, 10, 50, 100]),
    Parameter("local_steps_3", ByScale(4, 10, 10), "ours", "T of figure 3", 50),
    Parameter("rounds_3", ByScale(4, 10, 20), "ours", "of figure 3", "not printed"),
    Parameter("local_steps", ByScale([1, 5], [1, 5, 10, 20], [1, 10, 50]), "ours", "T of figure 4",
              [1, 10, 20, 50, 100]),
    Parameter("leapfrogs_4", ByScale(2, 5, 10), "ours", "K of figure 4", 10),
    Parameter("rounds_4", ByScale(4, 20, 30), "ours", "of figure 4", "not printed"),
    Parameter("steps", ByScale([1.4, 2.7], [0.17, 0.35, 0.7, 1.4, 2.7, 4.5, 7.0],
                               [0.17, 0.35, 0.7, 1.4, 2.7, 4.5, 7.0]),
              "ours", "step sizes tried, times the inverse root of the curvature at theta = 0; no grid is "
              "printed"),
    *images.REFERENCE,
]


def compute(scale: str, files: Mapping[str, Path]) -> Tables:
    """Tables: tuning, tuning_curves, curves, compared, facts; the part is what is varied."""
    p = settings(PARAMETERS, scale)
    return runs.stacked([{table: one.assign(set=name) for table, one in _tables(p, chosen).items()}
                         for name, chosen in rows.chosen(scale, files, [FASHION]).items()])


def _tables(p: Any, chosen: ImageData) -> Tables:
    """All tables of one data set."""
    data = rows.dealt(chosen, p, rows.batch_size(p, chosen))
    _, exact = runs.exact(data, 1.0, p)
    made, facts = [], []
    for part, reading in product(PARTS, READINGS):
        own = images.part_of(part, reading)
        cases = (images.by_leapfrogs(p, data, p.leapfrogs, p.local_steps_3, p.rounds_3, reading)
                 if part == "leapfrog steps" else
                 images.by_local_steps(p, data, p.local_steps, p.leapfrogs_4, p.rounds_4, reading))
        made.append(runs.swept(p, data, cases, 1, own))
        facts.append(runs.facts_of(data, own) | exact)
    return runs.stacked(made) | {"facts": pd.DataFrame(facts)}


def draw(tables: Tables) -> Drawing:
    """A row a score, and one of what rounds cost; figure 3 on the left, 4 on the right, in both readings."""
    sets, height = judging.by_set(tables), len(SCORES) + 1
    drawing, axes = plot.panels(4, 3.2, 2.4, n_rows=height * len(sets))
    for number, (data, one) in enumerate(sets.items()):
        begins = f"{data.split(' ')[0].rstrip(',')}: " if len(sets) > 1 else ""
        for place, (part, reading) in enumerate(product(PARTS, READINGS)):
            name, figure = PARTS[part]
            own, title = images.part_of(part, reading), f"{begins}figure {figure}, {reading}"
            column = axes[height * number:height * (number + 1), place]
            for ax, score in zip(column, SCORES, strict=False):
                shown.scores(ax, one, own, score, name, title)
            shown.against_gradients(column[-1], one, own, name, f"ours: {title}")
    images.finish(axes)
    drawing.suptitle(f"{'; '.join(sets)}, 10 clients, parts drawn at random, shared momentum; "
                     f"{images.READ_AS}")
    return drawing


def judge_worst(tables: Tables, part: str, score: str) -> Judgement:
    """Is the setting 1 the worst, with the best step sizes inside the grid?"""
    return images.claimed(tables, part, [score], PARTS[part][0])


def judge_here(tables: Tables, part: str, score: str, reading: str) -> Judgement:
    """The same after a quarter of the rounds, on the data at hand."""
    return images.here(tables, part, [score], reading)


def _each(part: str, place: str, scores: tuple[str, ...], context: str = "") -> list[Claim | Finding]:
    """The paper's sentence and ours, for every score."""
    (name, number), made = PARTS[part], list[Any]()
    for score in scores:
        what = f"{name} = 1 is the worst of the numbers of {part} in {judging.NAMES[score]}"
        made += [Claim(f"With the same number of rounds {what}.", place,
                       partial(judge_worst, part=part, score=score), f"worst_{score}_{number}", ROWS,
                       images.READ + context, echo=judging.ECHO),
                 *(Finding(f"On the data at hand, {words}, after a quarter of the rounds {what}.", place,
                           partial(judge_here, part=part, score=score, reading=reading),
                           f"early_{score}_{number}_{reading[-1]}", ROWS)
                   for reading, words in READINGS.items())]
    return made


_BUDGET = (" Section 5's rounds cost T leapfrog steps whatever K, so that at equal rounds budgets are equal, "
           "as the paper says; Algorithm 3's cost K times as many: the panels on the right have gradients on "
           "their axis.")
_NEED = "Needs Fashion-MNIST, and what is not printed: prior, step sizes, number of rounds."
CLAIMS = [
    *_each("leapfrog steps", "section 5.3, figure 3", ("brier", "ece", "nll"), _BUDGET),
    Unjudged("K = 1 is the second worst in accuracy; K = 50 is best in accuracy, Brier score and log "
             "likelihood.", "section 5.3, figure 3", _NEED, "optima_3"),
    Unjudged("The improvement over K = 1 can be as large as 26% in calibration error and 2% in log "
             "likelihood.", "section 5.3, figure 3", _NEED, "percentages"),
    *_each("local steps", "section 5.3, figure 4", SCORES),
    Unjudged("The best T is 50 in Brier score and 20 in log likelihood.", "section 5.3, figure 4", _NEED,
             "optima_4"),
]
