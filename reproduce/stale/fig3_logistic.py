"""Stale gradients figure 3, a9a: test loss against iterations and time, one server with 1 to 9 workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import FAIL, NOT_TESTABLE, PASS, ByScale, Drawing, Parameter, Tables, settings
from . import adult, logistic as blr, logistic_figure as shown, shared as sim

TITLE = "Test loss of stale SGHMC against iterations and time, 1 to 9 workers (a9a or a stand-in)"
PAPER = "Stale gradients figure 3 (a9a alone)"
REPRODUCES = ("Stale 3",)
SHOWS = ("Bayesian logistic regression with one server: the test loss averaged along the chain for 1 to 9 "
         "workers, at equal iterations per worker and at equal simulated time, and what single chains "
         "differ by.")
DATA = adult.DATA
COST = {"tiny": "2 s", "quick": "20 s (on a busy machine)", "paper": "about 10 min (estimated)"}
PARAMETERS = [
    *adult.PARAMETERS, sim.WORKERS, *blr.DYNAMICS,
    Parameter("iterations", ByScale(20, 400, 400), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(4, 8, 4), "ours", blr.REPLICA_REASON),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves, ends (losses of every data set)."""
    p = settings(PARAMETERS, scale)
    found = blr.cases(p, files)
    groups = {n: [blr.servers(case, n) for case in found] for n in p.workers}
    clock = blr.common_times([group for every in groups.values() for group in every])
    curves = [rows for n, every in groups.items() for rows in (
        blr.curve(every, blr.grid(p.iterations), "iterations", workers=n),
        blr.curve(every, clock, "time", workers=n))]
    ends = [row for n, every in groups.items() for x, axis in (
        (max(1, p.iterations // 10), "iterations"), (p.iterations, "iterations"), (clock[-1], "time"))
        for row in blr.loss_rows(every, x, axis, workers=n)]
    return blr.common_tables(found, p.workers) | {"curves": pd.concat(curves), "ends": pd.DataFrame(ends)}


def draw(tables: Tables) -> Drawing:
    """Against iterations per worker; against simulated time; what single chains differ by."""
    drawing, ((first, second, third),) = plot.panels(3, 5.1, 5.2)
    curves = tables["curves"]
    for ax, axis, label, title in (
            (first, "iterations", sim.ITERATIONS_PER_WORKER, "loss against iterations"),
            (second, "time", sim.SIMULATED_TIME, "loss against simulated time")):
        shown.draw_losses(ax, curves[curves["axis"] == axis], "workers", "W", tables)
        ax.set(xlabel=label, ylabel=shown.LOSS, title=title)
        shown.legend(ax)
    _draw_spread(third, tables)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}. {shown.NO_LAW}", f"{shown.BAND}.",
                   f"Stale SGHMC from the origin; h, B, J and service times are ours. {shown.NO_NETWORKS}")
    return drawing


def _draw_spread(ax: Axes, tables: Tables) -> None:
    """Distance to the posterior's loss and spread of single chains, for the fewest and most workers."""
    curves = tables["curves"].query("axis == 'iterations'")
    level = float(tables["posterior"]["loss"].median())
    counts = sorted(curves["workers"].unique())
    every = shown.looks(len(counts))
    for n, look in ((counts[0], every[0]), (counts[-1], every[-1])):
        one = curves[curves["workers"] == n]
        ax.plot(one["x"], (one["loss"] - level).abs(), color=look["color"],
                label=f"W = {n}: median loss, distance from the posterior's")
        ax.plot(one["x"], one["spread"], color=look["color"], linestyle=(0, (1.2, 1.2)),
                label=f"W = {n}: standard deviation of single chains")
    ax.set(xscale="log", yscale="log", xlabel=sim.ITERATIONS_PER_WORKER, ylabel="part of the loss",
           title="distance and spread")
    shown.legend(ax, 1)


def losses(tables: Tables, axis: str, last: bool = True, value: str = "loss") -> np.ndarray:
    """A column of `ends` (data sets, numbers of workers) at the last place of an axis, or else the first."""
    table = tables["ends"]
    table = table[table["axis"] == axis]
    return blr.by_set(table[table["x"] == (table["x"].max() if last else table["x"].min())], value, "workers")


def judge_slope(tables: Tables, axis: str, places: tuple[bool, ...], unit: str) -> tuple[str, str]:
    """Does the mean loss fall with the logarithm of W?"""
    counts = np.array(sorted(tables["ends"]["workers"].unique()))
    at = [losses(tables, axis, last) for last in places]
    fall = np.stack([-np.polyfit(np.log(counts), one.T, 1)[0] for one in at], axis=1)
    verdict, low, high = shown.all_positive(fall)
    x = tables["ends"].query(f"axis == '{axis}'")["x"].max()
    words = ", ".join(f"{value:.4f} (W = {n})" for n, value in zip(counts, at[-1].mean(axis=0), strict=True))
    each = " and ".join(f"{mean:.4f} ({span})" for mean, span in
                        zip(fall.mean(axis=0) * np.log(2.0), shown.span(low, high, np.log(2.0)), strict=True))
    return verdict, (f"Mean loss at {x:.0f} {unit}: {words}; by the line in log W, twice the workers lower "
                     f"it by {each}.")


def judge_faster(tables: Tables) -> tuple[str, str]:
    """At equal iterations per worker, after a tenth of them and at the end."""
    return judge_slope(tables, "iterations", (False, True), "iterations per worker")


def judge_time(tables: Tables) -> tuple[str, str]:
    """At equal simulated time."""
    return judge_slope(tables, "time", (True,), "units of simulated time")


def judge_reason(tables: Tables) -> tuple[str, str]:
    """Is the slow curve of one worker what single runs show by chance?"""
    ends, spread = losses(tables, "iterations"), losses(tables, "iterations", value="spread")[:, 0]
    gap = ends[:, 0] - ends[:, -1]
    verdict, low, high = shown.all_positive((shown.SEEN * spread - gap)[:, None])
    said = {PASS: "chance explains it", NOT_TESTABLE: "that is undecided",
            FAIL: "it is a gap in the mean, the transient of a chain with fewer updates"}[verdict]
    return verdict, (f"With the fewest workers the loss ends above that with the most by {gap.mean():.4f}, "
                     f"and single runs differ by {spread.mean():.4f} (standard deviation); {shown.SEEN:g} of "
                     f"those less the gap are {low[0]:.4f} to {high[0]:.4f}: {said}.")


def judge_spread(tables: Tables) -> tuple[str, str]:
    """Does a single chain come closer to its expectation with more workers?"""
    spread = losses(tables, "iterations", value="spread")
    verdict, low, high = shown.all_positive(np.log(spread[:, :1] / spread[:, -1:]))
    return verdict, (f"Standard deviation of single chains at the end: {spread[:, 0].mean():.4f} with the "
                     f"fewest workers, {spread[:, -1].mean():.4f} with the most; their ratio is "
                     f"{np.exp(low[0]):.2f} to {np.exp(high[0]):.2f}.")


CLAIMS = [
    *shown.on_a9a("Generally the loss decreases faster with more workers, against iterations per worker.",
                  "section 5.2.1", judge_faster, "faster"),
    *shown.on_a9a("Generally the loss decreases faster with more workers, against time.", "section 5.2.1",
                  judge_time, "in_time", "The clock is simulated, with an update cost of our choice."),
    *shown.on_a9a("With one worker the loss decreases much more slowly because of high estimation variance.",
                  "section 5.2.1", judge_reason, "reason",
                  f"Read: the gap is within {shown.SEEN:g} standard deviations of single runs. The start, "
                  "the step size and the length of the runs are ours. The paper adds that in theory one "
                  "worker has the same level of bias."),
    *shown.on_a9a("A single run converges faster to its expectation with more workers.", "section 5.2",
                  judge_spread, "spread",
                  "From a common start chains first have to move apart, and those with more updates have "
                  "moved further; figure 2 has the variance from draws near the posterior."),
    shown.networks("MNIST and CIFAR-10: the loss decreases faster with more workers; on CIFAR-10 the final "
                   "losses of 6 and 9 workers are worse than that of 4.", "section 5.2.1"),
]
