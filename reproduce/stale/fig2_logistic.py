"""Stale gradients figure 2 on logistic regression: variance against iterations, time and workers."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory.stale import first_reaching, fit_constants

from .. import figure as fig, plot
from ..data_files import Files
from ..figure import ByScale, Parameter
from ..tables import among, spaced
from ..verdicts import intervals, within
from . import adult, logistic as blr, logistic_figure as shown, shared as sim

TITLE = "Variance of the averaged test loss of stale SGLD, 1 to 9 workers (a9a)"
PAPER = "Stale gradients figure 2 (a9a)"
REPRODUCES = ("Stale 2(a)", "Stale 2(b)", "Stale 2(c)")
SHOWS = ("Bayesian logistic regression: variance of the averaged test loss against iterations per worker and "
         "simulated time, speedups of 1 to 9 workers at equal variance; and the same from the origin.")
DATA = adult.DATA
COST = {"tiny": "5 s", "quick": "27 s (on a busy machine)", "paper": "about 12 min (estimated)"}
PARAMETERS = [
    *adult.PARAMETERS, sim.WORKERS, sim.SERVICE, blr.UPDATE_COST, blr.SCHEDULE_SEED, sim.SEED,
    Parameter("share", 0.2, "ours", "h L, with L the largest curvature that f can have; h is not printed"),
    Parameter("updates", ByScale(200, 3000, 3000), "ours", "at the server, the same for every W"),
    Parameter("every", ByScale(5, 10, 10), "ours", "one iterate in so many enters the average, for speed"),
    Parameter("n_replicas", ByScale(16, 16, 64), "ours", "of each split; with the latter intervals decide on "
              "all rows", 10),
    Parameter("precision_at", 0.5, "ours",
              "speedups are at the variance that one worker has reached after this share of the updates")]
UNTOLD = 100.0
"""Ends of an interval of a speedup this far apart say nothing."""
AXES = {"iterations": "iterations per worker", "time": "units of simulated time"}


class Run(NamedTuple):
    """Variance (n,) of the averaged test loss for a data set and number of workers, and the clock."""

    algorithm: fs.StaleSGLD
    updates: np.ndarray
    variance: np.ndarray
    x: dict[str, np.ndarray]


Runs = dict[int, list[Run]]  # by W, of every data set


def _run(case: blr.Case, n_workers: int, from_origin: bool) -> Run:
    fig.note(f"simulating W = {n_workers}")
    p, problem = case.p, case.problem
    workers = fs.Workers(n_workers, p.service, p.update_cost, seed=p.schedule_seed)
    algorithm = fs.StaleSGLD(p.share / problem.curvature_bounds("global")[1], workers)
    path = fs.sample_path(problem, algorithm, p.updates, seed=p.seed, n_chains=p.n_replicas, every=p.every,
                          start=None if from_origin else problem.laplace(),
                          allow_unstable=True)  # table `setting` has the limit; to check each costs time
    counts = np.arange(1, path.shape[1] + 1)
    updates = counts * p.every
    times = workers.history(p.updates).times[updates - 1]
    return Run(algorithm, updates, (np.cumsum(case.data.loss(path), axis=1) / counts).var(axis=0, ddof=1),
               {"iterations": updates / n_workers, "time": times})


def compute(scale: str, files: Files | None = None) -> fig.Tables:
    """Tables: data, setting, variances (over data sets), fit, and of each data set ends, speedups, decay."""
    p = fig.settings(PARAMETERS, scale)
    cases, few_and_most = blr.cases(p, files), (p.workers[0], p.workers[-1])
    runs = {n: [_run(case, n, False) for case in cases] for n in p.workers}
    origin = {n: [_run(case, n, True) for case in cases] for n in few_and_most}
    starts, places = {"posterior": runs, "origin": origin}, spaced(p.updates // p.every, 40) - 1
    variances = [_variances(n, every, start, places)
                 for start, group in starts.items() for n, every in group.items()]
    return {"data": adult.data_table([case.data for case in cases]),
            "setting": pd.DataFrame([_setting(cases[0], n, every[0]) for n, every in runs.items()]),
            "variances": pd.concat(variances), "fit": _fit(runs[p.workers[0]][0], variances[0]),
            "ends": pd.DataFrame([row for start, group in starts.items() for row in _ends(group, start)]),
            "speedups": pd.concat(_speedups(p, runs, axis) for axis in AXES),
            "decay": pd.DataFrame([{"data_set": number, "workers": n, "slope": _slope(one)}
                                   for n in few_and_most for number, one in enumerate(runs[n])])}


def _variances(n_workers: int, every: list[Run], start: str, at: np.ndarray) -> pd.DataFrame:
    """Over data sets, median variance and its range at these places; time is the median, too."""
    variance, time = np.stack([one.variance[at] for one in every]), [one.x["time"][at] for one in every]
    return pd.DataFrame({
        "start": start, "workers": n_workers, "updates": every[0].updates[at],
        "iterations": every[0].x["iterations"][at], "time": np.median(time, axis=0),
        "variance": np.median(variance, axis=0), "low": variance.min(axis=0), "high": variance.max(axis=0)})


def _ends(runs: Runs, start: str) -> list[dict[str, Any]]:
    """Variances of every data set at the last place of each axis that all its runs have.

    Between kept updates by a line of the logarithms.
    """
    rows = []
    for axis in AXES:
        for number, group in enumerate(zip(*runs.values(), strict=True)):
            last = min(float(one.x[axis][-1]) for one in group)
            rows += [{"start": start, "axis": axis, "data_set": number, "x": last, "workers": n,
                      "variance": float(np.exp(np.interp(np.log(last), np.log(one.x[axis]),
                                                         np.log(one.variance))))}
                     for n, one in zip(runs, group, strict=True)]
    return rows


def _slope(one: Run) -> float:
    """Of the log variance in log L, over the last two thirds of the updates."""
    ends = [len(one.updates) // 3, -1]
    return float(np.diff(np.log(one.variance[ends]))[0] / np.diff(np.log(one.updates[ends]))[0])


def _setting(case: blr.Case, n_workers: int, one: Run) -> dict[str, float]:
    """Ages, step size and its limit."""
    h, length = float(one.algorithm.schedule.largest), int(one.updates[-1])
    ages = one.algorithm.ages(length)
    return {"workers": n_workers, "step_size": h, "time_simulated": h * length,
            "step_limit": float(one.algorithm.stability(case.problem).max_step_size or np.inf),
            "slowest": 1.0 / case.problem.curvature_bounds("global")[0],
            "mean_age": float(ages.mean()), "largest_age": int(ages.max())}


def _fit(one: Run, medians: pd.DataFrame) -> pd.DataFrame:
    """The rate of Theorem 4 with constants fitted to the last half of one worker's updates."""
    h, last = float(one.algorithm.schedule.largest), one.updates[-1]
    half = medians[medians["updates"] >= last / 2]
    lengths = half["updates"].to_numpy(dtype=float)
    constants = fit_constants({"time": 1.0 / (lengths * h), "integrator": np.full(len(lengths), h * h)},
                              half["variance"]).constants
    updates = medians["updates"].to_numpy(dtype=float)
    updates = updates[updates >= 0.1 * last]
    return pd.DataFrame({"updates": updates,
                         "curve": constants["time"] / (updates * h) + constants["integrator"] * h * h})


def _speedups(p: Any, runs: Runs, axis: str) -> pd.DataFrame:
    """Speedups at equal geometric mean variance: for every data set its pseudo-value of the jackknife."""
    numbers = np.arange(p.n_sets)
    together = _log_speedups(p, runs, axis, numbers)
    logs = [p.n_sets * together - (p.n_sets - 1) * _log_speedups(p, runs, axis, np.delete(numbers, number))
            for number in numbers]
    return pd.DataFrame({"kind": axis, "data_set": np.repeat(numbers, len(runs)),
                         "workers": np.tile(list(runs), p.n_sets), "speedup": np.exp(np.ravel(logs))})


def _log_speedups(p: Any, runs: Runs, axis: str, chosen: np.ndarray) -> np.ndarray:
    """Of some data sets, at the variance that one worker has after a share of its updates."""
    updates, goal, needed = runs[p.workers[0]][0].updates, None, []
    for every in runs.values():
        variance, x = (np.mean(np.log(values)[chosen], axis=0) for values in (
            [one.variance for one in every], [one.x[axis] for one in every]))
        if goal is None:
            goal = float(np.exp(variance[round(p.precision_at * len(updates)) - 1] + 1e-9))  # of rounding
        length = first_reaching(updates, np.exp(variance), goal) or int(updates[-1])
        needed.append(float(x[np.searchsorted(updates, length)]))
    return needed[0] - np.array(needed)


def draw(tables: fig.Tables) -> fig.Drawing:
    """Variance against iterations and time, speedups, and variance from the origin."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.9, 4.8, n_rows=2)
    for ax, start, axis, label, title in (
            (first, "posterior", "iterations", sim.ITERATIONS_PER_WORKER, "(a) against iterations"),
            (second, "posterior", "time", sim.SIMULATED_TIME, "(b) against simulated time"),
            (fourth, "origin", "iterations", sim.ITERATIONS_PER_WORKER, "ours: (a) from the origin")):
        shown.draw_medians(ax, among(tables["variances"], start=start), "workers", "W", axis, "variance")
        ax.set(yscale="log", xlabel=label, ylabel="variance of the averaged test loss", title=title)
    sim.shape(first, tables["fit"]["updates"], tables["fit"]["curve"], "Theorem 4's shape, W = 1, fitted")
    _draw_speedups(third, tables["speedups"])
    for ax, n_columns in ((first, 3), (second, 3), (third, 2), (fourth, 3)):
        plot.legend_below(ax, n_columns)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}.", f"{shown.BAND}.",
                   "Stale SGLD, (a)-(c) from draws of the Laplace law; h, J and service times are ours.",
                   shown.NO_LAW)
    return drawing


def _draw_speedups(ax: Axes, table: pd.DataFrame) -> None:
    """Estimates with their intervals, and every data set as a dot."""
    counts = np.array(sorted(table["workers"].unique()))
    for axis, colour, marker, words, shift in (
            ("iterations", plot.COLOURS[0], "o", "iteration speedup", -0.1),
            ("time", plot.COLOURS[1], "s", "time speedup, simulated clock", 0.1)):
        values, mean, low, high = _speedup_intervals(among(table, kind=axis))
        ax.errorbar(counts + shift, mean, [mean - low, high - mean], color=colour, marker=marker, capsize=3,
                    linewidth=1.4, label=f"{words} (99%)")
        ax.plot(np.tile(counts + shift, len(values)), values.ravel(), ".", color=colour, alpha=0.35,
                markersize=4, label="data sets" if axis == "iterations" else None)
    ax.plot(counts, counts, color="#000000", linestyle=":", linewidth=1.1, label="linear")
    ax.set(xlabel="workers W", ylabel="speedup at equal variance", title="(c) speedup against workers")


def _speedup_intervals(table: pd.DataFrame) -> tuple[np.ndarray, ...]:
    """Speedups (data sets, W), their geometric means, and intervals of these."""
    values = shown.by_set(table, "speedup", "workers")
    low, high = intervals(np.log(values))
    return values, np.exp(np.log(values).mean(axis=0)), np.exp(low), np.exp(high)


def judge_lower(tables: fig.Tables, start: str, axis: str) -> tuple[str, str]:
    """Does the log variance fall with log W where the curves of all W exist last?"""
    table = among(tables["ends"], start=start, axis=axis)
    counts = np.array(sorted(table["workers"].unique()))
    logs = np.log(shown.by_set(table, "variance", "workers"))
    verdict, low, high = shown.all_positive(-np.polyfit(np.log(counts), logs.T, 1)[0][:, None])
    words = ", ".join(f"{value:.3g} (W = {n})" for n, value in
                      zip(counts, np.exp(logs.mean(axis=0)), strict=True))
    return verdict, (f"At {table['x'].mean():.0f} {AXES[axis]} the variance is {words}; by the line in log "
                     f"W, twice the workers have {2.0 ** -high[0]:.3f} to {2.0 ** -low[0]:.3f} of it."
                     + shown.undecided(verdict, low, high))


def judge_linear(tables: fig.Tables) -> tuple[str, str]:
    """Is the iteration speedup linear?"""
    table = among(tables["speedups"], kind="iterations").query("workers > 1")
    counts = np.array(sorted(table["workers"].unique()))
    _, mean, low, high = _speedup_intervals(table)
    words = ", ".join(f"{value:.2f} ({a:.2f} to {b:.2f}) for W = {n}" for n, value, a, b in
                      zip(counts, mean, low, high, strict=True))
    if (high > UNTOLD * low).any():
        row = tables["setting"].iloc[0]
        return fig.NOT_TESTABLE, (
            "At equal variance no speedup can be told here: the variance hardly falls in runs of L h = "
            f"{row['time_simulated']:.2g}, beside {row['slowest']:.2g} for the slowest direction; about "
            f"{row['slowest'] / row['time_simulated']:.0f} times as many updates would reach that.")
    ends, limits = (low / counts, high / counts), (1.0 - shown.NEAR, 1.0 + shown.NEAR)
    verdict = within(*ends, *limits)
    return verdict, f"Iteration speedups are {words}.{shown.undecided(verdict, *ends, *limits)}"


def judge_decay(tables: fig.Tables) -> tuple[str, str]:
    """Is the leading term of Theorem 4 reached?"""
    slopes, row = shown.by_set(tables["decay"], "slope", "workers"), tables["setting"].iloc[0]
    low, high = intervals(slopes)
    verdict = within(low, high, -1.0 - shown.NEAR, -1.0 + shown.NEAR)
    length = {fig.PASS: "is long enough", fig.FAIL: "is too short",
              fig.NOT_TESTABLE: "may be long enough"}[verdict]
    return verdict, (f"Slopes of log variance in log L with the fewest and most workers: "
                     f"{' and '.join(shown.means(slopes, 3))}; L h = {row['time_simulated']:.2g} {length}, "
                     f"beside {row['slowest']:.2g} for the slowest direction.")


START = "From draws of the Laplace law, near the posterior."
JACKKNIFE = ("At the geometric mean of the data sets' variances, with intervals from Tukey's jackknife over "
             "data sets.")
CLAIMS = [
    *shown.on_a9a("The variance drops faster with more workers, against iterations per worker.",
                  "section 5.1", partial(judge_lower, start="posterior", axis="iterations"), "iterations",
                  START),
    *shown.on_a9a("The variance drops faster with more workers, against time.", "section 5.1",
                  partial(judge_lower, start="posterior", axis="time"), "in_time",
                  f"{START} The clock is simulated, with an update cost of our choice."),
    *shown.on_a9a("The iteration speedup is approximately linear in the number of workers (Corollary 5).",
                  "section 5.1", judge_linear, "linear",
                  f"{START} {JACKKNIFE} Read: every speedup is within {shown.NEAR:g} W of W."),
    fig.Unjudged("The time speedup deteriorates for many workers because of system latency.", "section 5.1",
                 "It is about the latency of one cluster; our clock is simulated, with an update cost of our "
                 "choice.", "latency"),
    fig.Finding("From the origin, too, the variance is lower with more workers at equal iterations per "
                "worker.", "section 5.1", partial(judge_lower, start="origin", axis="iterations"), "origin",
                fig.REPLICAS, f"The paper does not say where its chains start. {shown.ON_SETS}"),
    fig.Finding("The run is long enough for the variance to fall like 1/(L h), the leading term of Theorem "
                "4.", "Theorem 4", judge_decay, "decay", fig.REPLICAS, "Read: over the last two thirds of "
                f"the updates, slopes within {shown.NEAR:g} of -1. Theorem 4 is an upper bound, h is ours. "
                f"{START} {shown.ON_SETS}")]
