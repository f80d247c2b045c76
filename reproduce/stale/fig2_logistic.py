"""Stale gradients figure 2 on logistic regression: variance against iterations, time and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory.stale import first_reaching, fit_constants

from .. import plot
from ..claims import Judge
from ..figure import (
    FAIL,
    NOT_TESTABLE,
    PASS,
    REPLICAS,
    ByScale,
    Drawing,
    Finding,
    Parameter,
    Tables,
    Unjudged,
    note,
    settings,
)
from . import adult, logistic as blr, logistic_figure as shown, shared as sim

TITLE = "Variance of the averaged test loss of stale SGLD, 1 to 9 workers (a9a or a stand-in)"
PAPER = "Stale gradients figure 2 (a9a)"
REPRODUCES = ("Stale 2(a)", "Stale 2(b)", "Stale 2(c)")
SHOWS = ("Bayesian logistic regression: variance of the averaged test loss against iterations per worker and "
         "simulated time, speedups of 1 to 9 workers at equal variance; and the same from the origin.")
DATA = adult.DATA
COST = {"tiny": "5 s", "quick": "27 s (on a busy machine)", "paper": "about 13 min (estimated)"}
PARAMETERS = [
    *adult.PARAMETERS, sim.WORKERS, sim.SERVICE, blr.UPDATE_COST, blr.SCHEDULE_SEED, sim.SEED,
    Parameter("share", 0.2, "ours", "h L, with L the largest curvature that f can have; h is not printed"),
    Parameter("updates", ByScale(200, 3000, 3000), "ours", "at the server, the same for every W"),
    Parameter("every", ByScale(5, 10, 10), "ours", "one iterate in so many enters the average, for speed"),
    Parameter("n_replicas", 16, "ours", "of each data set; the paper has 10 runs"),
    Parameter("precision_at", 0.5, "ours", "speedups are at the variance that one worker has reached after "
                                           "this share of the updates"),
]


class Runs:
    """Variance (n,) of the averaged test loss for a data set and number of workers, and the clock."""

    def __init__(self, case: blr.Case, n_workers: int, from_origin: bool) -> None:
        note(f"simulating W = {n_workers}")
        p, problem = case.p, case.problem
        workers = fs.Workers(n_workers, p.service, p.update_cost, seed=p.schedule_seed)
        self.algorithm = fs.StaleSGLD(p.share / problem.curvature_bounds("global")[1], workers)
        path = fs.sample_path(problem, self.algorithm, p.updates, seed=p.seed, n_chains=p.n_replicas,
                              every=p.every, start=None if from_origin else problem.laplace(),
                              allow_unstable=True)  # table `setting` has the limit; to check each costs time
        kept = np.arange(1, path.shape[1] + 1)
        self.updates = kept * p.every
        self.variance = (np.cumsum(case.loss(path), axis=1) / kept).var(axis=0, ddof=1)
        self.x = {"iterations": self.updates / n_workers,
                  "time": workers.history(p.updates).times[self.updates - 1]}

    def at(self, x: float, axis: str) -> float:
        """Variance at a place of an axis, between kept updates by a line of the logarithms."""
        return float(np.exp(np.interp(np.log(x), np.log(self.x[axis]), np.log(self.variance))))

    def slope(self) -> float:
        """Of the log variance in log L, over the last two thirds of the updates."""
        ends = [len(self.updates) // 3, -1]
        return float(np.diff(np.log(self.variance[ends]))[0] / np.diff(np.log(self.updates[ends]))[0])


Every = dict[int, list[Runs]]
AXES = ("iterations", "time")
PER_WORKER = "iterations per worker"


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, variances (over data sets), fit, and of each data set ends, speedups, decay."""
    p = settings(PARAMETERS, scale)
    found, ends = blr.cases(p, files), (p.workers[0], p.workers[-1])
    runs = {n: [Runs(case, n, False) for case in found] for n in p.workers}
    origin = {n: [Runs(case, n, True) for case in found] for n in ends}
    places = blr.grid(p.updates // p.every) - 1
    variances = [_rows(n, every, start, places) for start, group in (("posterior", runs), ("origin", origin))
                 for n, every in group.items()]
    decay = [{"data_set": number, "workers": n, "slope": one.slope()}
             for n in ends for number, one in enumerate(runs[n])]
    return {"data": adult.data_table([case.data for case in found]), "setting": _setting(found[0], runs),
            "variances": pd.concat(variances), "fit": _fit(runs[p.workers[0]][0], variances[0]),
            "ends": pd.DataFrame([*_ends(runs, "posterior"), *_ends(origin, "origin")]),
            "speedups": pd.DataFrame(_speedups(p, runs)), "decay": pd.DataFrame(decay)}


def _rows(n_workers: int, every: list[Runs], start: str, at: np.ndarray) -> pd.DataFrame:
    """Over data sets, median variance and its range at these places; time is the median, too."""
    variance = np.stack([one.variance[at] for one in every])
    return pd.DataFrame({
        "start": start, "workers": n_workers, "updates": every[0].updates[at],
        "iterations": every[0].x["iterations"][at],
        "time": np.median([one.x["time"][at] for one in every], axis=0),
        "variance": np.median(variance, axis=0), "low": variance.min(axis=0), "high": variance.max(axis=0)})


def _ends(runs: Every, start: str) -> list[dict[str, Any]]:
    """Variances of every data set at the last place of each axis that all its runs have."""
    rows = []
    for axis in AXES:
        for number, group in enumerate(zip(*runs.values(), strict=True)):
            last = min(float(one.x[axis][-1]) for one in group)
            rows += [{"start": start, "axis": axis, "data_set": number, "x": last, "workers": n,
                      "variance": one.at(last, axis)} for n, one in zip(runs, group, strict=True)]
    return rows


def _setting(case: blr.Case, runs: Every) -> pd.DataFrame:
    """Ages, step size and its limit on the first data set."""
    rows = []
    for n, (one, *_) in runs.items():
        ages = one.algorithm.ages(int(one.updates[-1]))
        h = float(one.algorithm.step_size)
        rows.append({"workers": n, "step_size": h, "time_simulated": h * int(one.updates[-1]),
                     "step_limit": float(one.algorithm.stability(case.problem).max_step_size or np.inf),
                     "slowest": 1.0 / case.problem.curvature_bounds("global")[0],
                     "mean_age": float(ages.mean()), "largest_age": int(ages.max())})
    return pd.DataFrame(rows)


def _fit(one: Runs, rows: pd.DataFrame) -> pd.DataFrame:
    """The rate of Theorem 4 with constants fitted to the last half of one worker's updates."""
    h, half = float(one.algorithm.step_size), rows[rows["updates"] >= one.updates[-1] / 2]
    lengths = half["updates"].to_numpy(dtype=float)
    fitted = fit_constants({"time": 1.0 / (lengths * h), "integrator": np.full(len(lengths), h * h)},
                           half["variance"])
    at = rows["updates"].to_numpy(dtype=float)
    at = at[at >= 0.1 * one.updates[-1]]
    curve = fitted.constants["time"] / (at * h) + fitted.constants["integrator"] * h * h
    return pd.DataFrame({"updates": at, "curve": curve})


def _speedups(p: Any, runs: Every) -> list[dict[str, Any]]:
    """Speedups at equal geometric mean variance: for every data set its pseudo-value of the jackknife."""
    rows, count = [], len(runs[p.workers[0]])
    for axis in AXES:
        together = _log_speedups(p, runs, axis, range(count))
        for number in range(count):
            others = _log_speedups(p, runs, axis, [i for i in range(count) if i != number])
            rows += [{"kind": axis, "data_set": number, "workers": n, "speedup": float(np.exp(value))}
                     for n, value in zip(runs, count * together - (count - 1) * others, strict=True)]
    return rows


def _log_speedups(p: Any, runs: Every, axis: str, chosen: Sequence[int]) -> np.ndarray:
    """Of some data sets, at the variance that one worker has after a share of its updates."""
    updates = runs[p.workers[0]][0].updates
    mean = {n: np.mean([np.log(every[i].variance) for i in chosen], axis=0) for n, every in runs.items()}
    goal = mean[p.workers[0]][round(p.precision_at * len(updates)) - 1] + 1e-9  # against rounding
    needed = []
    for n, every in runs.items():
        length = first_reaching(updates, np.exp(mean[n]), float(np.exp(goal))) or int(updates[-1])
        x = np.mean([np.log(every[i].x[axis]) for i in chosen], axis=0)
        needed.append(float(x[np.searchsorted(updates, length)]))
    return needed[0] - np.array(needed)


def draw(tables: Tables) -> Drawing:
    """Variance against iterations and time, speedups, and variance from the origin."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.9, 4.8, n_rows=2)
    table = tables["variances"]
    for ax, start, axis, label, title in (
            (first, "posterior", "iterations", sim.ITERATIONS_PER_WORKER, "(a) against iterations"),
            (second, "posterior", "time", sim.SIMULATED_TIME, "(b) against simulated time"),
            (fourth, "origin", "iterations", sim.ITERATIONS_PER_WORKER, "ours: (a) from the origin")):
        _draw_variances(ax, table[table["start"] == start], axis)
        ax.set(xlabel=label, title=title)
    sim.shape(first, tables["fit"]["updates"], tables["fit"]["curve"], "Theorem 4's shape, W = 1, fitted")
    _draw_speedups(third, tables)
    for ax in (first, second, third, fourth):
        shown.legend(ax, 2 if ax is third else 3)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}.", f"{shown.BAND}.",
                   "Stale SGLD, (a)-(c) from draws of the Laplace law; h, J and service times are ours.",
                   shown.NO_LAW)
    return drawing


def _draw_variances(ax: Axes, table: pd.DataFrame, x: str) -> None:
    counts = sorted(table["workers"].unique().tolist())
    for n, look in zip(counts, shown.looks(len(counts)), strict=True):
        one = table[table["workers"] == n]
        if n in (counts[0], counts[-1]):
            ax.fill_between(one[x], one["low"], one["high"], color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(one[x], one["variance"], linewidth=1.6, label=f"W = {n}", **look)
    ax.set(xscale="log", yscale="log", ylabel="variance of the averaged test loss")


def _draw_speedups(ax: Axes, tables: Tables) -> None:
    """Estimates with their intervals, and every data set as a dot."""
    table = tables["speedups"]
    counts = np.array(sorted(table["workers"].unique()))
    for kind, colour, marker, words, shift in (
            ("iterations", plot.COLOURS[0], "o", "iteration speedup", -0.1),
            ("time", plot.COLOURS[1], "s", "time speedup, simulated clock", 0.1)):
        values, mean, low, high = _speedup_intervals(table[table["kind"] == kind])
        ax.errorbar(counts + shift, mean, [mean - low, high - mean], color=colour, marker=marker, capsize=3,
                    linewidth=1.4, label=f"{words} (99%)")
        ax.plot(np.tile(counts + shift, len(values)), values.ravel(), ".", color=colour, alpha=0.35,
                markersize=4, label="data sets" if kind == "iterations" else None)
    ax.plot(counts, counts, color="#000000", linestyle=":", linewidth=1.1, label="linear")
    ax.set(xlabel="workers W", ylabel="speedup at equal variance", title="(c) speedup against workers")


def _speedup_intervals(table: pd.DataFrame) -> tuple[np.ndarray, ...]:
    """Speedups (data sets, W), their geometric means, and intervals of these."""
    values = blr.by_set(table, "speedup", "workers")
    low, high = shown.intervals(np.log(values))
    return values, np.exp(np.log(values).mean(axis=0)), np.exp(low), np.exp(high)


def lower(start: str, axis: str, unit: str) -> Judge:
    """Does the log variance fall with log W where the curves of all W exist last?"""
    def judge(tables: Tables) -> tuple[str, str]:
        table = tables["ends"]
        table = table[(table["start"] == start) & (table["axis"] == axis)]
        counts, values = np.array(sorted(table["workers"].unique())), blr.by_set(table, "variance", "workers")
        verdict, low, high = shown.all_positive(-np.polyfit(np.log(counts), np.log(values).T, 1)[0][:, None])
        words = ", ".join(f"{value:.3g} (W = {n})" for n, value in
                          zip(counts, np.exp(np.log(values).mean(axis=0)), strict=True))
        return verdict, (f"At {table['x'].mean():.0f} {unit} the variance is {words}; by the line in log W, "
                         f"twice the workers have {2.0 ** -high[0]:.3f} to {2.0 ** -low[0]:.3f} of it.")

    return judge


def judge_linear(tables: Tables) -> tuple[str, str]:
    """Is the iteration speedup linear?"""
    table = tables["speedups"].query("kind == 'iterations' and workers > 1")
    counts = np.array(sorted(table["workers"].unique()))
    _, mean, low, high = _speedup_intervals(table)
    words = ", ".join(f"{value:.2f} ({a:.2f} to {b:.2f}) for W = {n}" for n, value, a, b in
                      zip(counts, mean, low, high, strict=True))
    return (shown.within(low / counts, high / counts, 1.0 - shown.NEAR, 1.0 + shown.NEAR),
            f"Iteration speedups are {words}.")


def judge_decay(tables: Tables) -> tuple[str, str]:
    """Is the leading term of Theorem 4 reached?"""
    slopes, row = blr.by_set(tables["decay"], "slope", "workers"), tables["setting"].iloc[0]
    low, high = shown.intervals(slopes)
    verdict = shown.within(low, high, -1.0 - shown.NEAR, -1.0 + shown.NEAR)
    said = {PASS: "is long enough", FAIL: "is too short", NOT_TESTABLE: "may be long enough"}[verdict]
    words = " and ".join(f"{mean:.3f} ({span})" for mean, span in
                         zip(slopes.mean(axis=0), shown.span(low, high), strict=True))
    return verdict, (f"Slopes of log variance in log L with the fewest and most workers: {words}; L h = "
                     f"{row['time_simulated']:.2g} {said}, beside {row['slowest']:.2g} for the slowest "
                     "direction.")


START = "From draws of the Laplace law, near the posterior."
JACKKNIFE = ("At the geometric mean of the data sets' variances, with intervals from Tukey's jackknife over "
             "data sets.")
CLAIMS = [
    *shown.on_a9a("The variance drops faster with more workers, against iterations per worker.",
                  "section 5.1", lower("posterior", "iterations", PER_WORKER), "iterations",
                  START),
    *shown.on_a9a("The variance drops faster with more workers, against time.", "section 5.1",
                  lower("posterior", "time", "units of simulated time"), "in_time",
                  f"{START} The clock is simulated, with an update cost of our choice."),
    *shown.on_a9a("The iteration speedup is approximately linear in the number of workers (Corollary 5).",
                  "section 5.1", judge_linear, "linear",
                  f"{START} {JACKKNIFE} Read: every speedup is within {shown.NEAR:g} W of W."),
    Unjudged("The time speedup deteriorates for many workers because of system latency.", "section 5.1",
             "It is about the latency of one cluster; our clock is simulated, with an update cost of our "
             "choice.", name="latency"),
    Finding("From the origin, too, the variance is lower with more workers at equal iterations per worker.",
            "section 5.1", lower("origin", "iterations", PER_WORKER), name="origin", rests_on=REPLICAS,
            context=f"The paper does not say where its chains start. {shown.ON_SETS}"),
    Finding("The run is long enough for the variance to fall like 1/(L h), the leading term of Theorem 4.",
            "Theorem 4", judge_decay, name="decay", rests_on=REPLICAS,
            context=f"Read: over the last two thirds of the updates, slopes within {shown.NEAR:g} of -1. "
                    f"Theorem 4 is an upper bound, h is ours. {START} {shown.ON_SETS}"),
]
