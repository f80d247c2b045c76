"""Stale gradients figure 2(b): variance against (simulated) running time, on the Gaussian model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import _stale as sim
from . import _stale_speedup as work
from . import plot
from .figure import FAIL, NOT_TESTABLE, PASS, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "Stale SGLD: variance against simulated time"
PAPER = "Stale gradients figure 2(b)"
SHOWS = ("Variance of the average of theta^2 against simulated time with 1 to 9 asynchronous workers, "
         "without and with a cost of updates at the server, by exact law and replicas; and updates per "
         "unit of time.")
COST = {"tiny": "4 s", "quick": "7 s", "paper": "about 1 min (estimated)"}
PARAMETERS = [
    *work.COMMON,
    Parameter("step", 0.02, "ours", "h a, step size times curvature: figure 2's is not printed"),
    Parameter("update_costs", [0.0, 0.2], "ours", "time of an update at the server, in mean service times: a "
              "declared model in place of the paper's cluster; 0.2 lets the server saturate at 5 per unit"),
    Parameter("per_worker", ByScale(300, 600, 2000), "ours", "iterations per worker"),
]


def compute(scale: str) -> Tables:
    """Tables: curves (exact, replicas), workers, judged."""
    p = settings(PARAMETERS, scale)
    parts = [work.curves(p, p.step, cost, p.per_worker) for cost in p.update_costs]
    curves, workers = (pd.concat(list(tables), ignore_index=True) for tables in zip(*parts, strict=True))
    return {"curves": curves, "workers": workers, "judged": _judged(curves[curves["kind"] == "exact"])}


def _judged(exact: pd.DataFrame) -> pd.DataFrame:
    """Exact variances of all W at the same times, from the maximum of one worker's variance on."""
    rows = []
    for cost, table in sim.groups(exact, "update_cost"):
        single = table[table["workers"] == table["workers"].min()]
        first = float(sim.at_largest(single, "variance")["time"])
        grid = np.geomspace(first, float(table.groupby("workers")["time"].max().min()), 12)
        for n, one in sim.groups(table, "workers"):
            log = np.interp(np.log(grid), np.log(one["time"]), np.log(one["variance"]))
            rows.append(pd.DataFrame({"update_cost": cost, "workers": n, "time": grid,
                                      "variance": np.exp(log)}))
    return pd.concat(rows, ignore_index=True)


def draw(tables: Tables) -> Drawing:
    """One panel a cost of updates, and what the server gets done."""
    costs = list(dict.fromkeys(tables["curves"]["update_cost"]))
    drawing, (axes,) = plot.panels(len(costs) + 1, 5.1, 4.6)
    for ax, cost in zip(axes, costs, strict=False):
        _panel(ax, tables["curves"][tables["curves"]["update_cost"] == cost], cost)
    _throughput(axes[-1], tables["workers"])
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
    most = curves[(curves["workers"] == counts[-1]) & (curves["kind"] == "exact")]
    ax.set(xscale="log", yscale="log", xlabel=sim.SIMULATED_TIME,
           ylabel=r"variance of the average of $\theta^2$",
           title="Gaussian model: updates cost nothing" if cost == 0.0
           else f"Gaussian model: an update costs u = {cost:g}")
    peak = float(sim.at_largest(most, "variance")["time"])
    ax.set_xlim(0.5 * peak, 100.0 * peak)
    ax.set_ylim(float(most["variance"].iloc[-1]) / 30.0, 1.8 * float(curves["variance"].max()))
    plot.once(ax, loc="lower left", fontsize=8)


def _throughput(ax: Axes, workers: pd.DataFrame) -> None:
    for number, (cost, one) in enumerate(sim.groups(workers, "update_cost")):
        colour = plot.COLOURS[number]
        ax.plot(one["workers"], one["throughput"], "o-", color=colour, label=f"simulated, u = {cost:g}")
        if cost > 0.0:
            ax.axhline(1.0 / cost, color=colour, linestyle=":", linewidth=1.1,
                       label=f"limit 1/u = {1.0 / cost:g} of the server")
    counts = sorted(set(workers["workers"]))
    ax.plot(counts, counts, color=plot.GREY, linewidth=0.9, linestyle="--", label="W")
    ax.set(xlabel="workers W", ylabel="updates per mean service time",
           title="what the server gets done")
    ax.set_xticks(counts)
    ax.set_ylim(0.0)
    ax.legend(loc="upper left", fontsize=8)


def judge_faster(tables: Tables) -> tuple[str, str]:
    """In simulated time, for both costs."""
    texts, order = [], True
    for cost, judged in tables["judged"].groupby("update_cost", sort=False):
        table = judged.pivot(index="time", columns="workers", values="variance").sort_index()
        falls = bool((np.diff(table.to_numpy(), axis=1) < 0.0).all())
        order &= falls
        texts.append(f"u = {cost:g}, at time {table.index[-1]:.0f}: "
                     + ", ".join(f"{value:.3g} (W = {n})" for n, value in table.iloc[-1].items())
                     + ("" if falls else ", but not in this order at all times"))
    return (PASS if order else FAIL), (
        f"In simulated time ({len(table)} times from the maximum for one worker on) the exact variance falls "
        f"with W: {'; '.join(texts)}.")


def judge_cluster(tables: Tables) -> tuple[str, str]:
    """Seconds on the paper's machines."""
    workers = tables["workers"]
    last = workers[workers["update_cost"] == workers["update_cost"].max()]
    gain = last["throughput"].to_numpy() / float(last["throughput"].iloc[0])
    cost, n = last["update_cost"].iloc[0], last["workers"].iloc[-1]
    return NOT_TESTABLE, (
        "The running times are those of five machines with MPI, and neither service nor communication times "
        f"are printed. In our declared model (u = {cost:g}) {n} workers "
        f"make {gain[-1]:.1f} times the updates of one per unit of time.")


def judge_saturation(tables: Tables) -> tuple[str, str]:
    """Throughput against 1/u."""
    workers = tables["workers"]
    costly = workers[workers["update_cost"] > 0.0]
    free = workers[workers["update_cost"] == 0.0]
    limit = 1.0 / float(costly["update_cost"].iloc[0])
    top, free_top = float(costly["throughput"].iloc[-1]), float(free["throughput"].iloc[-1])
    n = int(costly["workers"].iloc[-1])
    good = 0.8 * limit < top <= limit and free_top > 0.95 * n
    return (PASS if good else FAIL), (
        f"With W = {n} the server makes {top:.2f} updates per unit of time, of at most 1/u = {limit:g}; "
        f"without the cost {free_top:.2f}. Mean ages are {costly['mean_age'].iloc[-1]:.2f} and "
        f"{free['mean_age'].iloc[-1]:.2f} (W - 1 = {n - 1}), so latency changes the time of updates and not "
        "how old gradients are.")


CLAIMS = [
    Claim("The variance drops faster in running time with increasing number of workers (on the Gaussian "
          "model, in simulated time).", "section 5.1, figure 2(b)", judge_faster),
    Claim("The running times shown, in seconds.", "section 5.1, figure 2(b)", judge_cluster),
    Claim("ours: with a cost u of updates the server saturates at 1/u updates per unit of time.", "ours",
          judge_saturation),
]
