"""Stale gradients figure 2(a): variance against iterations per worker, on the Gaussian model."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import DATA_SETS, REPLICAS, ByScale, Drawing, Finding, Parameter, Tables, settings
from ..verdicts import shares, unanimous
from . import shared as sim, speedup as work

TITLE = "Variance against iterations per worker, on the Gaussian model"
PAPER = "Stale gradients figure 2(a)"
REPRODUCES = ("Stale 2(a)",)
SHOWS = ("Variance of the average of theta^2 with 1 to 9 asynchronous workers, at a small and at a large "
         "step size: exact law and replicas of a typical data set, with Theorem 4's shape fitted to one "
         "worker; what the workers gain on all data sets. The paper's model is in stale_fig2_logistic.")
COST = {"tiny": "2 s", "quick": "4 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    *work.COMMON,
    Parameter("steps", [0.02, 0.1], "ours", "h a, step size times curvature: figure 2's is not printed"),
    Parameter("update_cost", 0.2, "ours", "time of an update at the server, in mean service times"),
    Parameter("per_worker", ByScale(300, 600, 2000), "ours", "iterations per worker, 12 or 60 times 1/(h a)"),
]


def compute(scale: str) -> Tables:
    """Tables: sets, curves (exact, replicas), replicas (at the end), workers, shapes, ratios, judged."""
    p = settings(PARAMETERS, scale)
    problems, parts = sim.data_sets(p), []
    for stream, ha in enumerate(p.steps):
        found = work.runs(p, problems, ha, p.update_cost, p.per_worker)
        parts.append((*work.curves(p, problems, ha, p.update_cost, found, stream),
                      work.workers_table(ha, p.update_cost, found), *work.shapes(p, problems, ha, found),
                      work.compared(p, ha, p.update_cost, found, "per_worker")))
    names = ("curves", "replicas", "workers", "shapes", "ratios", "judged")
    tables = {name: pd.concat(list(same), ignore_index=True)
              for name, same in zip(names, zip(*parts, strict=True), strict=True)}
    return {"sets": sim.sets_table(problems), **tables}


def draw(tables: Tables) -> Drawing:
    """One panel a step size, and the gain of W workers on all data sets."""
    steps = list(dict.fromkeys(tables["curves"]["ha"]))
    drawing, (axes,) = plot.panels(len(steps) + 1, 5.2, 5.6)
    for ax, ha in zip(axes, steps, strict=False):
        _panel(ax, tables, ha)
    sim.draw_gains(axes[-1], {rf"$ha$ = {ha:g}": work.gains(one, "per_worker")
                              for ha, one in sim.groups(tables["judged"], "ha")},
                   "Var with one worker / Var with W", "all data sets, at the end")
    return drawing


def _panel(ax: Axes, tables: Tables, ha: float) -> None:
    curves = tables["curves"][tables["curves"]["ha"] == ha]
    counts = list(dict.fromkeys(curves["workers"]))
    for n in counts:
        colour = sim.colour(counts, n)
        seen = curves[(curves["workers"] == n) & (curves["kind"] == "replicas")]
        sim.replicas_band(ax, seen["per_worker"], seen, "variance", colour)
        one = curves[(curves["workers"] == n) & (curves["kind"] == "exact")]
        plot.exact(ax, one["per_worker"], one["variance"], colour, f"exact law, {sim.workers_label(n)}",
                   linewidth=1.4)
    for n in (counts[0], counts[-1]):
        shape = tables["shapes"].query(f"ha == {ha} and workers == {n}")
        sim.shape(ax, shape["per_worker"], shape["shape"],
                  f"Theorem 4's shape, fitted to W = {counts[0]}", sim.colour(counts, n))
    ax.set(xscale="log", yscale="log", xlabel=sim.ITERATIONS_PER_WORKER,
           ylabel=r"variance of the average of $\theta^2$", title=f"a typical data set, $ha$ = {ha:g}")
    exact = curves[curves["kind"] == "exact"]
    ax.set_ylim(0.5 * float(exact["variance"].min()), 2.0 * float(exact["variance"].max()))
    sim.legend_below(ax, 2)


def _judge_faster(tables: Tables, place: int) -> tuple[str, str]:
    judged = tables["judged"]
    ha = list(dict.fromkeys(judged["ha"]))[place]
    one = judged[judged["ha"] == ha]
    good, gains = work.falls(one, "per_worker"), work.gains(one, "per_worker")
    most = gains.columns[-1]
    return unanimous(good), (
        f"At h a = {ha:g} the exact variance falls with W at each of 12 numbers of iterations per worker, "
        f"{one['per_worker'].min():.0f} to {one['per_worker'].max():.0f}, {shares(good)}. At the last one "
        f"W = {most} gains a factor of {gains[most].min():.2f} to {gains[most].max():.2f} over one worker.")


def judge_faster(tables: Tables) -> tuple[str, str]:
    """Is the exact variance smaller with more workers, at all iterations per worker that are compared?"""
    return _judge_faster(tables, 0)


def judge_faster_large(tables: Tables) -> tuple[str, str]:
    """The same at the large step size."""
    return _judge_faster(tables, -1)


def judge_constant(tables: Tables) -> tuple[str, str]:
    """Does the least constant that covers one worker cover all, to the tolerance of linear speedups?"""
    worst = tables["ratios"].groupby(["ha", "data_set"], sort=False)["ratio"].max().unstack("ha")
    good = (worst <= 1.0 + sim.LINEAR).all(axis=1).to_numpy()
    return unanimous(good), (
        "By more workers the least D that covers one worker's exact curve up to the same L is exceeded "
        + " and ".join(f"{one.min():.2f} to {one.max():.2f} times at h a = {ha:g}"
                       for ha, one in worst.items())
        + f"; at most {1.0 + sim.LINEAR:g} times {shares(good)}.")


CLAIMS = [
    Finding("On the Gaussian model the variance drops faster, per iteration of a worker, with more workers, "
            "at a small step size.", "section 5.1, figure 2(a)", judge_faster, name="faster",
            rests_on=DATA_SETS,
            context="The paper says it of logistic regression on a9a: see stale_fig2_logistic."),
    Finding("It does so at a large step size, too.", "section 5.1, figure 2(a)", judge_faster_large,
            name="faster_large", rests_on=DATA_SETS,
            context="Both step sizes are ours. Staleness matters the less the further the posterior's mean "
                    "is from zero, where theta^2 is nearly linear."),
    Finding("The least constant D of Theorem 4, which is free of tau, that covers one worker covers nine as "
            "well, to 20 percent.", "theorem 4", judge_constant, name="one_constant", rests_on=DATA_SETS,
            context="A larger D would serve all of these; see stale_speedup_limit."),
    Finding("Replicas follow the exact law.", "", sim.judge_replicas, name="replicas", rests_on=REPLICAS),
]
