"""FA-LD figures 2 and 4: scores of averaged predictions against communication rounds, by local steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..prediction import data as rows, drawing as shown, judging, runs
from ..tables import among, groups
from ..verdicts import ROWS, Judgement

TITLE = "Accuracy, Brier score and calibration by local steps"
PAPER = "FA-LD figures 2 and 4"
REPRODUCES = ("FA-LD 2", "FA-LD 4")
SHOWS = ("Accuracy, Brier score and expected calibration error of averaged predictions of a softmax "
         "regression against communication rounds, with and without a warm-up.")
COST = {"tiny": "10 s", "quick": "30 s", "paper": "1 h (estimate)"}
PARTS = ("all samples", "after warm-up")
BASELINE = 1
PARAMETERS = [
    Parameter("n_clients", 10, "paper", "section 6.2: N = 10 equal parts, drawn at random"),
    Parameter("temperature", 0.05, "paper", "appendix J: tau = 0.05"),
    Parameter("local_steps", ByScale([1, 20], [1, 10, 20, 50], [1, 10, 20, 50, 100]), "paper",
              "section 6.2: K = 1, 10, 20, 50, 100; 100 at paper scale only"),
    Parameter("every", 10, "paper", "section 6.2: a sample after every 10 rounds"),
    Parameter("batch_size", 50, "ours", "the paper has 200, of 6,000 data a client; here a client has 114"),
    Parameter("n_rounds", ByScale(40, 100, 1000), "ours", "not printed"),
    Parameter("warmup_samples", ByScale(1, 3, 25), "ours", "left out in figure 4, where the paper leaves out "
              "500 rounds of a number that is not printed"),
    Parameter("steps", ByScale([2.4, 10.0], [0.8, 2.4, 5.0, 10.0, 20.0, 40.0],
                               [0.2, 0.8, 2.4, 5.0, 10.0, 20.0, 40.0]), "ours", "step sizes tried, times the "
              "inverse of the curvature at theta = 0; no grid is printed"),
    Parameter("tuned_on", "validation rows", "ours", "by log loss, on rows that no client holds; the paper "
              "tunes on the plotted statistic of the test rows (thin)"),
    Parameter("n_runs", ByScale(2, 5, 5), "ours", "of each K; the paper seems to have one"),
    Parameter("prior_variance", 1.0, "ours", "of every weight; no prior is printed"),
    Parameter("energy", "sum over data", "ours", "not printed; of a mean only the prior would be left"),
    Parameter("label_steps", ByScale([2.4], [0.8, 2.4, 5.0, 10.0], [0.2, 0.8, 2.4, 5.0, 10.0]), "ours",
              "the same with clients that hold few labels"),
    Parameter("label_local_steps", [1, 50], "ours", "K with those clients"),
    Parameter("label_rounds", ByScale(40, 60, 200), "ours", "rounds with those clients"),
    Parameter("reference_chains", ByScale(8, 20, 40), "ours", "Metropolis-adjusted chains of the posterior"),
    Parameter("reference_draws", ByScale(10, 30, 100), "ours", "of each of them"),
    Parameter("reference_warmup", 10, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("split_seed", 0, "ours", "of the division into clients, validation and test rows"),
    Parameter("tuning_seed", 1, "ours", "of the chains that are tuned"),
    Parameter("seed", 2, "ours", "of the runs, and of the exact predictive"),
    Parameter("bootstrap_seed", 3, "ours", "of rows and runs drawn again"),
]


def compute(scale: str) -> Tables:
    """Tables: tuning, tuning_curves, curves, compared, distances, labels, facts."""
    p = settings(PARAMETERS, scale)
    pixels, labels, title = rows.pixels_of_digits()
    data = rows.divided(pixels, labels, title, p)
    cases = _cases(p, data, p.local_steps, p.n_rounds, p.steps)
    tuning, each = (table.assign(part=PARTS[0]) for table in runs.tuned(data, cases, p.tuning_seed))
    paths = runs.run(data, cases, tuning, p.seed, p.n_runs)
    target, floor = runs.exact(data, p.temperature, p)
    curves, compared = [], []
    for part, left_out in zip(PARTS, (0, p.warmup_samples), strict=True):
        table, last = runs.curves(data, cases, paths, left_out)
        curves.append(table.assign(part=part))
        compared.append(runs.against(last, data, BASELINE, p.bootstrap_seed).assign(part=part))
        if not left_out:
            ends = last[p.n_rounds]
            distances = runs.distances(ends, target)
            beside = runs.against({p.n_rounds: {0: target[None]} | ends}, data, 0, p.bootstrap_seed)
            compared.append(beside.assign(part="exact predictive"))
    by_label, own = _by_label(p, pixels, labels, title)
    facts = runs.exact_scores(data, target) | {"floor": floor}
    return {"curves": pd.concat(curves), "compared": pd.concat([*compared, own]), "tuning": tuning,
            "tuning_curves": each, "distances": distances, "labels": by_label,
            "facts": pd.DataFrame([runs.facts_of(data, part) | facts for part in PARTS])}


def _cases(p: Any, data: runs.Data, local_steps: list[int], n_rounds: int,
           steps: list[float]) -> list[runs.Setting]:
    return [runs.Setting(k, partial(fs.FALD, local_steps=k, temperature=p.temperature), n_rounds, p.every,
                         steps, 1.0 / data.curvature) for k in local_steps]


def _by_label(p: Any, pixels: np.ndarray, labels: np.ndarray,
              title: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same with clients that hold few labels: tuning, and K = 1 against the largest K."""
    data = rows.divided(pixels, labels, title, p, by_label=True)
    cases = _cases(p, data, p.label_local_steps, p.label_rounds, p.label_steps)
    tuning, _ = runs.tuned(data, cases, p.tuning_seed)
    paths = runs.run(data, cases, tuning, p.seed, p.n_runs)
    _, last = runs.curves(data, cases, paths)
    own = runs.against(last, data, BASELINE, p.bootstrap_seed)
    return tuning, own.assign(part="few labels")


def draw(tables: Tables) -> Drawing:
    """Figure 2 above, figure 4 below; what the score rewards, and clients with few labels, on the right."""
    drawing, axes = plot.panels(4, 4.6, 4.6, n_rows=2)
    for row, (part, number) in enumerate(zip(PARTS, ("2", "4"), strict=True)):
        for ax, score in zip(axes[row], ("accuracy", "brier", "ece"), strict=False):
            shown.scores(ax, tables, part, score, "K", f"figure {number}: {part}")
            plot.legend_below(ax, 2)
    shown.variations(axes[0, 3], tables, "K")
    plot.legend_below(axes[0, 3])
    _draw_labels(axes[1, 3], tables)
    facts = tables["facts"].iloc[0]
    drawing.suptitle(f"{facts['data']} in place of MNIST and Fashion-MNIST, 10 clients, parts drawn at "
                     "random; means and standard deviations of runs")
    return drawing


def _draw_labels(ax: Any, tables: Tables) -> None:
    """Brier score against the step size, clients with few labels beside those with parts drawn at random."""
    look = shown.looks(sorted(tables["tuning"]["setting"].unique()))
    for table, line, who in ((tables["labels"], "-", "few labels a client"),
                             (tables["tuning"], (0, (1.2, 1.2)), "parts at random")):
        for k, one in groups(table, "setting"):
            if k in set(tables["labels"]["setting"]):
                ax.plot(one["step"], one["brier"], linestyle=line, markersize=4, **look[k],
                        label=f"K = {k}, {who}")
    ax.set(xscale="log", xlabel="step size times the curvature at 0", ylabel=judging.NAMES["brier"],
           title="one chain at each step size")
    shown.plain_ticks(ax)
    plot.legend_below(ax, 1)


def judge_worst(tables: Tables, part: str, score: str) -> Judgement:
    """Is K = 1 the worst, with its best step size inside the grid?"""
    return judging.claimed(among(tables["compared"], part=part), [score], tables["tuning"], "K")


def judge_here(tables: Tables, part: str, score: str) -> tuple[str, str]:
    """The same after a quarter of the rounds, on the data at hand."""
    return judging.worst(judging.early(among(tables["compared"], part=part)), [score], finding=True)


def judge_labels(tables: Tables) -> tuple[str, str]:
    """Is K = 1 better than many local steps where clients hold few labels?"""
    return judging.better(among(tables["compared"], part="few labels"), "brier", "K = 1", "K")


def judge_reward(tables: Tables) -> tuple[str, str]:
    """Is a tuned chain better calibrated than the exact posterior predictive?"""
    return judging.beaten(among(tables["compared"], part="exact predictive"), "ece", "K")


_OURS = ("Intervals are of test rows and runs drawn again. Data, prior, step sizes and number of rounds are "
         "ours, so that nothing here can contradict the sentence.")
_NEED = "Needs MNIST and Fashion-MNIST, and what is not printed: prior, step sizes, number of rounds."
_PLACES = {PARTS[0]: ("2", "section 6.2, figure 2"), PARTS[1]: ("4", "appendix J, figure 4")}


def _each() -> list[Claim | Finding]:
    """The paper's sentence and ours, for every score, with and without warm-up."""
    made: list[Claim | Finding] = []
    for part, (number, place) in _PLACES.items():
        for score in ("accuracy", "brier", "ece"):
            what = f"K = 1 is the worst of the numbers of local steps in {judging.NAMES[score]}"
            after = " after the warm-up" if number == "4" else ""
            made += [Claim(f"With the same number of rounds {what}{after}.", place,
                           partial(judge_worst, part=part, score=score), f"worst_{score}_{number}", ROWS,
                           _OURS),
                     Finding(f"On digits, after a quarter of the rounds, {what}{after}.", place,
                             partial(judge_here, part=part, score=score), f"digits_{score}_{number}", ROWS)]
    return made


CLAIMS = [
    *_each(),
    Unjudged("On MNIST the best K is between 50 and 100 in accuracy and about 20 in Brier score.",
             "section 6.2, figure 2", _NEED, "optima"),
    Unjudged("After the warm-up the best K is 20 in all three (MNIST); 20, 10 and 50 (Fashion-MNIST).",
             "appendix J, figure 4", _NEED, "optima_warm"),
    Unjudged("The warm-up moves the best K: in Brier score on Fashion-MNIST from 100 to 10.",
             "appendix J, figure 4", _NEED, "moved"),
    Finding("Where clients hold few labels each, K = 1 has a smaller Brier score than K = 50, each at its "
            "best step size.", "section 6.2, figure 2", judge_labels, "few_labels", ROWS,
            "The paper's parts are drawn at random: its sentence is about those. Digits sorted by label and "
            "dealt in ten runs of equal length."),
    Finding("Some tuned chain has a smaller calibration error than the exact posterior predictive: the score "
            "rewards more than closeness to the posterior.", "section 6.2, figure 2", judge_reward, "reward",
            ROWS, "The exact predictive is by Metropolis-adjusted Hamiltonian Monte Carlo at the same "
            "temperature."),
]
