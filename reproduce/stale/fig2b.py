"""Stale gradients figure 2(b): variance against (simulated) running time, on the Gaussian model."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import DATA_SETS, REPLICAS, ByScale, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..verdicts import shares, unanimous
from . import shared as sim, speedup as work

TITLE = "Variance against simulated time, on the Gaussian model"
PAPER = "Stale gradients figure 2(b)"
REPRODUCES = ("Stale 2(b)",)
SHOWS = ("Variance of the average of theta^2 against simulated time with 1 to 9 asynchronous workers, "
         "without and with a cost of updates at the server: exact law and replicas of a typical data set; "
         "what the workers gain on all data sets, and updates per unit of time. The paper's model is in "
         "stale_fig2_logistic.")
COST = {"tiny": "4 s", "quick": "6 s", "paper": "about 1 min (estimated)"}
PARAMETERS = [
    *work.COMMON,
    Parameter("step", 0.02, "ours", "h a, step size times curvature: figure 2's is not printed"),
    Parameter("update_costs", [0.0, 0.2], "ours", "time of an update at the server, in mean service times: a "
              "declared model in place of the paper's cluster; 0.2 lets the server saturate at 5 per unit"),
    Parameter("per_worker", ByScale(300, 600, 2000), "ours", "iterations per worker"),
]


def compute(scale: str) -> Tables:
    """Tables: sets, curves (exact, replicas), replicas (at the end), workers, judged."""
    p = settings(PARAMETERS, scale)
    problems, parts = sim.data_sets(p), []
    for stream, cost in enumerate(p.update_costs):
        found = work.runs(p, problems, p.step, cost, p.per_worker)
        parts.append((*work.curves(p, problems, p.step, cost, found, stream),
                      work.workers_table(p.step, cost, found),
                      work.compared(p, p.step, cost, found, "time")))
    names = ("curves", "replicas", "workers", "judged")
    tables = {name: pd.concat(list(same), ignore_index=True)
              for name, same in zip(names, zip(*parts, strict=True), strict=True)}
    return {"sets": sim.sets_table(problems), **tables}


def draw(tables: Tables) -> Drawing:
    """One panel a cost of updates; the gain on all data sets; what the server gets done."""
    costs = list(dict.fromkeys(tables["curves"]["update_cost"]))
    drawing, axes = plot.panels(2, 5.8, 5.0, n_rows=2)
    for ax, cost in zip(axes[0], costs, strict=True):
        _panel(ax, tables["curves"][tables["curves"]["update_cost"] == cost], cost)
    sim.draw_gains(axes[1, 0], {f"u = {cost:g}": work.gains(one, "time")
                                for cost, one in sim.groups(tables["judged"], "update_cost")},
                   "Var with one worker / Var with W", "all data sets, at the last time of all W")
    _throughput(axes[1, 1], tables["workers"])
    return drawing


def _panel(ax: Axes, curves: pd.DataFrame, cost: float) -> None:
    counts = list(dict.fromkeys(curves["workers"]))
    for n in counts:
        colour = sim.colour(counts, n)
        seen = curves[(curves["workers"] == n) & (curves["kind"] == "replicas")]
        sim.replicas_band(ax, seen["time"], seen, "variance", colour)
        one = curves[(curves["workers"] == n) & (curves["kind"] == "exact")]
        plot.exact(ax, one["time"], one["variance"], colour, f"exact law, {sim.workers_label(n)}",
                   linewidth=1.4)
    ax.set(xscale="log", yscale="log", xlabel=sim.SIMULATED_TIME,
           ylabel=r"variance of the average of $\theta^2$",
           title="a typical data set: updates cost nothing" if cost == 0.0
           else f"a typical data set: an update costs u = {cost:g}")
    sim.legend_below(ax, 3)


def _throughput(ax: Axes, workers: pd.DataFrame) -> None:
    lines = (("-", "#000000"), ("--", "#6A6A6A"))
    for (cost, one), (line, grey) in zip(sim.groups(workers, "update_cost"), lines, strict=False):
        each = one.groupby("workers")["throughput"].agg(["min", "median", "max"])
        ax.errorbar(each.index, each["median"], [each["median"] - each["min"], each["max"] - each["median"]],
                    color=grey, linestyle=line, marker="o", markersize=4, capsize=3,
                    label=f"u = {cost:g}: median and range of all schedules")
        if cost > 0.0:
            ax.axhline(1.0 / cost, color=grey, linestyle=":", linewidth=1.1,
                       label=f"limit 1/u = {1.0 / cost:g} of the server")
    counts = sorted(set(workers["workers"]))
    ax.set(xlabel="workers W", ylabel="updates per mean service time", title="what the server gets done")
    ax.set_xticks(counts)
    ax.set_ylim(0.0)
    sim.legend_below(ax, 1)


def judge_faster(tables: Tables) -> tuple[str, str]:
    """In simulated time, for both costs."""
    parts = sim.groups(tables["judged"], "update_cost")
    good = work.falls(parts[0][1], "time")
    texts = []
    for cost, one in parts:
        good = good & work.falls(one, "time")
        gains = work.gains(one, "time")
        most = gains.columns[-1]
        texts.append(f"{gains[most].min():.2f} to {gains[most].max():.2f} times smaller with W = {most} at "
                     f"u = {cost:g}")
    return unanimous(good), (
        f"The exact variance falls with W at each of 12 simulated times, at both costs, {shares(good)}. At "
        f"the last time of all it is {' and '.join(texts)}.")


def judge_saturation(tables: Tables) -> tuple[str, str]:
    """Throughput of the most workers against 1/u and W."""
    most = tables["workers"][tables["workers"]["workers"] == tables["workers"]["workers"].max()]
    wide = most.pivot(index="data_set", columns="update_cost", values="throughput").sort_index(axis=1)
    n, cost = int(most["workers"].iloc[0]), float(wide.columns[-1])
    free, costly = wide.iloc[:, 0], wide.iloc[:, -1]
    good = ((costly * cost >= 1.0 - sim.LINEAR) & (free >= (1.0 - sim.LINEAR) * n)).to_numpy()
    return unanimous(good), (
        f"With W = {n} the server makes {costly.min():.2f} to {costly.max():.2f} updates per unit of time at "
        f"u = {cost:g}, where 1/u = {1.0 / cost:g}, and {free.min():.2f} to {free.max():.2f} without the "
        f"cost; both within 20 percent of 1/u and of W {shares(good, 'schedules')}.")


CLAIMS = [
    Finding("On the Gaussian model the variance drops faster in simulated time with more workers.",
            "section 5.1, figure 2(b)", judge_faster, name="faster", rests_on=DATA_SETS,
            context="The paper says it of logistic regression on a9a: see stale_fig2_logistic."),
    Unjudged("The running times shown, in seconds.", "section 5.1, figure 2(b)",
             "They are those of five machines with MPI; neither service nor communication times are printed.",
             name="seconds"),
    Finding("With a cost u of updates the server saturates at 1/u updates per unit of time; without it nine "
            "workers make nine times the updates of one.", "figure 2(b)", judge_saturation,
            name="saturation", rests_on=DATA_SETS,
            context="Ages are about W - 1 either way: latency changes the time of updates and not how old "
                    "gradients are. Service times are drawn anew for each of the schedules."),
    Finding("Replicas follow the exact law.", "", sim.judge_replicas, name="replicas", rests_on=REPLICAS),
]
