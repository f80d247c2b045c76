"""Stale gradients figure 2(c): iteration and time speedup against workers, on the Gaussian model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import (
    DATA_SETS,
    MISPRINT,
    NOT_TESTABLE,
    PASS,
    REPLICAS,
    ByScale,
    Claim,
    Drawing,
    Finding,
    Parameter,
    Tables,
    Unjudged,
    settings,
)
from ..verdicts import shares, unanimous
from . import shared as sim, speedup as work

TITLE = "Speedup at equal variance against workers, on the Gaussian model"
PAPER = "Stale gradients figure 2(c)"
REPRODUCES = ("Stale 2(c)",)
SHOWS = ("Iteration speedup at three step sizes, and time speedup in simulated time with three costs of an "
         "update at the server: exact law of all data sets, replicas of a typical one. The paper's model is "
         "in stale_fig2_logistic.")
COST = {"tiny": "2 s", "quick": "5 s", "paper": "about 3 min (estimated)"}
PARAMETERS = [
    *work.COMMON,
    Parameter("steps", [0.02, 0.05, 0.1], "ours", "h a, step size times curvature: not printed"),
    Parameter("update_costs", [0.0, 0.1, 0.2], "ours",
              "time of an update at the server, in mean service times, for the first step size; the "
              "iteration speedup is shown without it"),
    Parameter("times", ByScale(8.0, 12.0, 30.0), "ours",
              "the precision is what one worker reaches after this many relaxation times 1/(h a)"),
]
STEP_COLOURS, COST_COLOURS = plot.COLOURS[:3], ("#000000", "#6A6A6A", "#A0A0A0")


def compute(scale: str) -> Tables:
    """Tables: sets, speedups (exact, by step size), replicas, times (exact, by cost of an update)."""
    p = settings(PARAMETERS, scale)
    problems = sim.data_sets(p)
    exact, seen, times = [], [], []
    for stream, ha in enumerate(p.steps):
        rows, more = work.speedups(p, problems, ha, p.update_costs[0], round(p.times / ha), stream)
        exact += rows
        seen += more
    for cost in p.update_costs[1:]:
        times += work.speedups(p, problems, p.steps[0], cost, round(p.times / p.steps[0]))[0]
    speedups = pd.DataFrame(exact)
    first = speedups[speedups["ha"] == p.steps[0]]
    return {"sets": sim.sets_table(problems), "speedups": speedups, "replicas": pd.DataFrame(seen),
            "times": pd.concat([first, pd.DataFrame(times)], ignore_index=True)}


def draw(tables: Tables) -> Drawing:
    """Iteration speedup, time speedup."""
    drawing, ((left, right),) = plot.panels(2, 5.8, 6.2)
    _iterations(left, tables)
    _times(right, tables["times"])
    return drawing


def _lines(ax: Axes, table: pd.DataFrame, name: str, colour: str, label: str) -> None:
    """Thin lines for the data sets, and their median."""
    wide = table.pivot(index="workers", columns="data_set", values=name)
    ax.plot(wide.index, wide, color=colour, linewidth=0.6, alpha=0.6)
    plot.exact(ax, wide.index, wide.median(axis=1), colour, label, marker="o", markersize=4)


def _axes(ax: Axes, table: pd.DataFrame, **options: str) -> None:
    counts = list(table["workers"].unique())
    ax.plot(counts, counts, color=plot.GREY, linewidth=1.0, linestyle="--", label="linear speedup, W")
    sim.linear_band(ax, counts)
    ax.set(xlabel="workers W", **options)
    ax.set_xticks(counts)
    ax.set_ylim(0.0, (1.0 + 1.5 * sim.LINEAR) * max(counts))
    sim.legend_below(ax, 1)


def _iterations(ax: Axes, tables: Tables) -> None:
    for number, (ha, one) in enumerate(sim.groups(tables["speedups"], "ha")):
        colour = STEP_COLOURS[number]
        _lines(ax, one, "iteration_speedup", colour, f"exact law, $ha$ = {ha:g}: each data set, median thick")
        mine = tables["replicas"][tables["replicas"]["ha"] == ha]
        shown = mine[np.isfinite(mine["replicas_low"] + mine["replicas_high"])]
        ax.errorbar(shown["workers"] + 0.12 * (number - 1), shown["replicas"],
                    [shown["replicas"] - shown["replicas_low"], shown["replicas_high"] - shown["replicas"]],
                    fmt="x", color=colour, ecolor=colour, markersize=6, capsize=3,
                    label=f"typical data set, {plot.BAND}, $ha$ = {ha:g}")
    _axes(ax, tables["speedups"], ylabel="iteration speedup at equal variance",
          title="iteration speedup, updates cost nothing")


def _times(ax: Axes, table: pd.DataFrame) -> None:
    for number, (cost, one) in enumerate(sim.groups(table, "update_cost")):
        colour = COST_COLOURS[number]
        _lines(ax, one, "time_speedup", colour, f"exact law, u = {cost:g}: each data set, median thick")
        if cost > 0.0:
            ax.axhline(1.0 + 1.0 / cost, color=colour, linestyle=":", linewidth=1.1,
                       label=f"limit 1 + 1/u = {1.0 + 1.0 / cost:g}")
    _axes(ax, table, ylabel="time speedup at equal variance",
          title=f"simulated time, $ha$ = {table['ha'].iloc[0]:g}")


def _judge_linear(tables: Tables, place: int) -> tuple[str, str]:
    table = tables["speedups"]
    ha = list(dict.fromkeys(table["ha"]))[place]
    one = table[table["ha"] == ha]
    off = (one["iteration_speedup"] / one["workers"] - 1.0).abs().groupby(one["data_set"]).max()
    good = (off <= sim.LINEAR).to_numpy()
    medians = one.groupby("workers")["iteration_speedup"].median()
    most = one[one["workers"] == medians.index[-1]]["iteration_speedup"]
    return unanimous(good), (
        f"Exact iteration speedups at h a = {ha:g}, medians of the data sets: "
        + ", ".join(f"{value:.2f} (W = {n})" for n, value in medians.items())
        + f"; with W = {medians.index[-1]} from {most.min():.2f} to {most.max():.2f}. Within 20 percent of W "
        f"at all W {shares(good)}.")


def judge_linear(tables: Tables) -> tuple[str, str]:
    """Is the exact iteration speedup within 20% of W at the smallest step size?"""
    return _judge_linear(tables, 0)


def judge_linear_large(tables: Tables) -> tuple[str, str]:
    """The same at the largest step size."""
    return _judge_linear(tables, -1)


def judge_latency(tables: Tables) -> tuple[str, str]:
    """Time speedup over iteration speedup of the most workers, without and with the largest cost."""
    table = tables["times"]
    most = table[table["workers"] == table["workers"].max()]
    share = (most["time_speedup"] / most["iteration_speedup"]).groupby(
        [most["data_set"], most["update_cost"]]).first().unstack()
    free, costly = share.iloc[:, 0], share.iloc[:, -1]
    good = ((free >= 1.0 - sim.LINEAR) & (costly < 1.0 - sim.LINEAR)).to_numpy()
    return unanimous(good), (
        f"With W = {most['workers'].iloc[0]} the time speedup is {free.min():.2f} to {free.max():.2f} of the "
        f"iteration speedup without a cost of updates, {costly.min():.2f} to {costly.max():.2f} with u = "
        f"{share.columns[-1]:g}; at least 0.8 without and less with it {shares(good)}.")


def judge_corollary(tables: Tables) -> tuple[str, str]:
    """L1/L2 = W1/W2 as printed, or its inverse."""
    table = tables["speedups"]
    one = table[table["ha"] == table["ha"].iloc[0]]
    per_worker = one.assign(each=one["iteration"] / one["workers"]).pivot(
        index="data_set", columns="workers", values="each").sort_index(axis=1)
    ratio, n = per_worker.rdiv(per_worker.iloc[:, 0], axis=0), per_worker.columns.to_numpy(dtype=float)
    printed, inverse = (((ratio / rule - 1.0).abs() <= sim.LINEAR).all(axis=1).to_numpy()
                        for rule in (n[0] / n, n / n[0]))
    verdict = PASS if unanimous(printed) == PASS else (
        MISPRINT if unanimous(inverse) == PASS else NOT_TESTABLE)
    return verdict, (
        "Iterations per worker at equal variance, medians of the data sets, are "
        + ", ".join(f"{value:.0f} (W = {w})" for w, value in per_worker.median().items())
        + f": to 20 percent they follow L1/L2 = W1/W2 {shares(printed)}, L1/L2 = W2/W1 {shares(inverse)}.")


CLAIMS = [
    Finding("On the Gaussian model the iteration speedup is within 20 percent of linear at a small step "
            "size, h a = 0.02.", "section 5.1, figure 2(c), and Corollary 5", judge_linear, name="linear",
            rests_on=DATA_SETS,
            context="The paper says it of logistic regression on a9a: see stale_fig2_logistic."),
    Finding("It is so at a large step size, h a = 0.1, too.", "sections 3.2 and 4", judge_linear_large,
            name="linear_large", rests_on=DATA_SETS,
            context="The step sizes are ours. That a linear speedup is always achievable, with small enough "
                    "steps, is judged in stale_speedup_limit."),
    Unjudged("The time speedup deteriorates when the number of workers is large, due to latency.",
             "section 5.1, figure 2(c)", "It is about the latency of one cluster, which is not printed.",
             name="latency"),
    Finding("In a declared model of the server's latency, u = 0.2 mean service times an update, the time "
            "speedup of nine workers falls more than 20 percent short of their iteration speedup; without "
            "it, it does not.", "figure 2(c)", judge_latency, name="declared_latency", rests_on=DATA_SETS,
            context="The server's latency caps the time speedup at about 1 + 1/u."),
    Claim("Corollary 5 indicates L1/L2 = W1/W2 for numbers of workers and iterations at the same variance.",
          "section 5.1", judge_corollary, name="workers_ratio", rests_on=DATA_SETS,
          context="Corollary 5 is in the server's iterations L = W times those of a worker, so that equal "
                  "variance means L1/L2 = W2/W1 for iterations per worker, the linear speedup that the same "
                  "sentence names. The inversion follows from this alone; the numbers, at the smallest of "
                  "our step sizes, show it."),
    Finding("Replicas follow the exact law where it reaches the variance compared.", "", sim.judge_replicas,
            name="replicas", rests_on=REPLICAS),
]
