"""Stale gradients figure 5: servers and their workers, drawn from a simulated history of Algorithm 2.

Updates and versions are counted on each server by itself: update l = 0, 1, ... makes version l + 1 of the
server's sample out of a gradient at version `read`, and the staleness is l - read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from fedsim.settings.server import History

from .. import figure as fig, plot
from ..tables import among, groups
from . import shared as sim

TITLE = "Servers, workers and stale gradients: a drawing of ours"
PAPER = "Stale gradients figure 5"
REPRODUCES = ("Stale 5",)
SHOWS = ("The architecture of Algorithm 2 as what a few servers and their workers do in simulated time: who "
         "reads which version when, the staleness of every update, and the averaging for tests; and how "
         "stale gradients are in the long run: at most W - 1 or a cap by construction, or with no bound.")
COST = {"tiny": "1 s", "quick": "1 s", "paper": "1 s"}
EQUAL, RANDOM, CAPPED = "equal service times", "exponential", "exponential, capped"
PARAMETERS = [
    fig.Parameter("n_servers", 3, "ours", "the paper's figure shows any number; more are crowded"),
    fig.Parameter("n_workers", 2, "paper", "of each server; section 5.2.2: W = 2"),
    sim.SERVICE,
    fig.Parameter("update_cost", 0.15, "ours", "of an update at the server, in mean service times, so that "
                  "receiving a gradient and sending a sample are told apart"),
    fig.Parameter("test_time", 4.0, "ours", "the drawn history ends with a test then, a few updates after "
                  "the start"),
    fig.Parameter("schedule_seed", 0, "ours", "of the first server's service times, the next numbers of the "
                  "others'; also of the first schedule of the long run"),
    fig.Parameter("cap", 3, "ours", "older gradients are discarded where a clock is capped"),
    fig.Parameter("n_schedules", 12, "ours", "of the long run, taken together"),
    fig.Parameter("n_updates", fig.ByScale(300, 2000, 20_000), "ours", "of each schedule of the long run")]


def compute(scale: str) -> fig.Tables:
    """Tables: updates, under_way (gradients at the test), averaged (servers), shares, bounds."""
    p = fig.settings(PARAMETERS, scale)
    updates: list[dict[str, Any]] = []
    under_way: list[dict[str, Any]] = []
    averaged = []
    for server in range(1, p.n_servers + 1):
        workers = fs.Workers(p.n_workers, p.service, p.update_cost, seed=p.schedule_seed + server - 1)
        history, made = until(workers, p.test_time)
        updates += _updates(server, history, made, p.update_cost)
        under_way += _under_way(server, history, made, p.n_workers)
        averaged.append({"server": server, "samples": made, "test_time": p.test_time})
    table = pd.DataFrame(averaged)
    return {"updates": pd.DataFrame(updates), "under_way": pd.DataFrame(under_way),
            "averaged": table.assign(weight=table["samples"] / table["samples"].sum())} | _long_run(p)


def until(workers: fs.Workers, time: float) -> tuple[History, int]:
    """A history that goes beyond a time, and how many updates are made by then."""
    length = 8
    while (history := workers.history(length)).times[-1] <= time:
        length *= 2
    return history, int(np.searchsorted(history.times, time, side="right"))


def _updates(server: int, history: History, made: int, cost: float) -> Iterator[dict[str, Any]]:
    """The first updates: who read which version when, when the server took it and wrote the next one."""
    sent = np.concatenate([[0.0], history.times])  # when each version is sent
    for number in range(made):
        age, end = int(history.ages[number]), float(history.times[number])
        yield {"server": server, "worker": int(history.workers[number]) + 1,
               "begin": float(sent[number - age]), "taken": end - cost, "end": end, "read": number - age,
               "written": number + 1, "staleness": age}


def _under_way(server: int, history: History, made: int, n_workers: int) -> Iterator[dict[str, Any]]:
    """The gradient each worker computes after so many updates, and how stale it is by now."""
    sent = np.concatenate([[0.0], history.times])
    for worker in range(n_workers):
        own = np.flatnonzero(history.workers[:made] == worker)
        read = int(own[-1]) + 1 if len(own) else 0
        yield {"server": server, "worker": worker + 1, "begin": float(sent[read]), "read": read,
               "staleness": made - read}


def _long_run(p: Any) -> fig.Tables:
    """Tables: shares of updates by staleness, and its bound: the age that settles, the cap, or none."""
    clocks = {EQUAL: ("deterministic", None), CAPPED: (p.service, p.cap), RANDOM: (p.service, None)}
    counts, bounds = [], []
    for clock, (service, cap) in clocks.items():
        every = [fs.Workers(p.n_workers, service, p.update_cost, cap, p.schedule_seed + k)
                 for k in range(p.n_schedules)]
        limit = every[0].limit if cap is None else cap
        bounds += [] if limit is None else [{"clock": clock, "bound": limit}]
        share = np.bincount(np.concatenate([one.ages(p.n_updates) for one in every]))
        share = share / (p.n_schedules * p.n_updates)
        counts.append(pd.DataFrame({"clock": clock, "staleness": np.arange(len(share)), "share": share}))
    return {"shares": pd.concat(counts, ignore_index=True), "bounds": pd.DataFrame(bounds)}


BLOCK = 1.35
"""Empty lanes from a server with its workers to the next one."""
NARROW = 0.02
"""Of the drawn time: a bar that is shorter has its number beside it."""
BAR, FILL, BUSY, UP, DOWN = 0.3, "#CFE3F2", "#404040", plot.COLOURS[1], plot.COLOURS[0]
LOOKS = {EQUAL: (plot.COLOURS[6], "s", "-"), CAPPED: (plot.COLOURS[1], "o", "--"),
         RANDOM: (plot.COLOURS[0], "^", ":")}


def draw(tables: fig.Tables) -> fig.Drawing:
    """The drawn history; the staleness in the long run."""
    drawing, ((left, right),) = plot.panels(2, 7.6, 8.2, width_ratios=[3.0, 1.0])
    _draw_history(left, tables)
    _draw_shares(right, tables)
    right.set_xlabel(f"staleness of an update, W = {tables['under_way']['worker'].max()}")
    return drawing


def _lane(worker: int) -> int:
    """Where a worker's lane is above its server's: workers take turns above and below."""
    return (worker + 1) // 2 * (1 if worker % 2 else -1)


def _rows(table: pd.DataFrame, **values: Any) -> list[Any]:
    """The rows with these values, as named tuples."""
    return list(among(table, **values).itertuples())


def _draw_history(ax: Axes, tables: fig.Tables) -> None:
    """A lane for each server and each of its workers; to the right of them the averaging."""
    averaged, workers = tables["averaged"], tables["under_way"]["worker"].unique()
    test, apart = float(averaged["test_time"].iloc[0]), len(workers) + BLOCK
    node = 1.26 * test, -0.5 * apart * (len(averaged) - 1)
    names: dict[float, str] = {}
    for place, row in enumerate(_rows(averaged)):
        y = -apart * place
        names |= {y: f"server {row.server}"} | {y + _lane(k): f"worker {k}" for k in workers}
        _draw_server(ax, _rows(tables["updates"], server=row.server), y, test)
        _draw_under_way(ax, _rows(tables["under_way"], server=row.server), y, test)
        ax.plot([test, node[0]], [y, node[1]], color="#000000", linestyle=(0, (5, 3)), linewidth=1.3)
        side = 1.0 if y >= node[1] else -1.0  # away from the dashed line
        ax.text(1.01 * test, y + 0.25 * side, f"{row.samples} samples,\nweight {row.weight:.2f}", fontsize=9,
                va="bottom" if side > 0.0 else "top")
    ax.text(*node, "average,\nfor tests\nonly", ha="center", va="center", fontsize=9.5,
            bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "#000000"})
    ax.set_yticks(list(names), list(names.values()))
    ax.set(xlabel=sim.SIMULATED_TIME, title="Algorithm 2 in simulated time, up to a test",
           xlim=(-0.05 * test, 1.36 * test), xticks=np.arange(np.floor(test) + 1.0))
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    _explain(ax)


def _draw_server(ax: Axes, updates: list[Any], y: float, test: float) -> None:
    """A server's lane with its updates, and the gradients that they took."""
    ax.plot([0.0, test], [y, y], color=BUSY, linewidth=1.3, zorder=1)
    _draw_version(ax, 0.0, y, 0)
    for row in updates:
        lane = y + _lane(row.worker)
        ax.barh(lane, row.taken - row.begin, 2.0 * BAR, row.begin, color=FILL, edgecolor=BUSY, linewidth=0.8)
        outside = 1.7 * BAR * np.sign(lane - y) if row.taken - row.begin < NARROW * test else 0.0
        ax.text(0.5 * (row.begin + row.taken), lane + outside, str(row.staleness), ha="center", va="center",
                fontsize=10.5, fontweight="bold")
        ax.barh(y, row.end - row.taken, 0.5 * BAR, row.taken, color=BUSY, zorder=2)
        _draw_arrow(ax, row.begin, y, lane, DOWN)
        _draw_arrow(ax, row.taken, lane, y, UP)
        _draw_version(ax, row.end, y, row.written)


def _draw_under_way(ax: Axes, rows: list[Any], y: float, test: float) -> None:
    """The gradients that the test does not wait for."""
    for row in rows:
        lane = y + _lane(row.worker)
        ax.barh(lane, test - row.begin, 2.0 * BAR, row.begin, color="white", edgecolor=BUSY, linewidth=0.8,
                hatch="////", alpha=0.5)
        _draw_arrow(ax, row.begin, y, lane, DOWN)


def _draw_version(ax: Axes, x: float, y: float, number: int) -> None:
    ax.plot(x, y, "o", markersize=15, color="white", markeredgecolor=BUSY, zorder=4)
    ax.text(x, y, str(number), ha="center", va="center", fontsize=9, zorder=5)


def _draw_arrow(ax: Axes, x: float, start: float, end: float, colour: str) -> None:
    """Between the lanes of a server and a worker, off the bar of the one and the circle of the other."""
    towards = np.sign(end - start)
    ax.annotate("", (x, end - towards * BAR), (x, start + towards * BAR),
                arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.3, "shrinkA": 0,
                            "shrinkB": 0, "linestyle": "-" if colour == DOWN else (0, (2, 1))})


def _explain(ax: Axes) -> None:
    """Names of all marks, below."""
    ax.plot([], [], "o", markersize=11, color="white", markeredgecolor=BUSY,
            label="version of a server's sample")
    ax.plot([], [], color=BUSY, linewidth=5, label="the server updates")
    ax.plot([], [], color=DOWN, label="a worker reads a version (arrow from the server)")
    ax.plot([], [], color=UP, linestyle=(0, (2, 1)),
            label="the server takes a gradient (arrow to the server)")
    ax.fill([], [], facecolor=FILL, edgecolor=BUSY,
            label="a gradient, from read to taken; number: staleness of its update")
    ax.fill([], [], facecolor="white", edgecolor=BUSY, hatch="////", alpha=0.5,
            label="a gradient that the test does not wait for")
    ax.plot([], [], color="#000000", linestyle=(0, (5, 3)), linewidth=1.3, label="averaging, for tests only")
    plot.legend_below(ax, 2)


def _draw_shares(ax: Axes, tables: fig.Tables) -> None:
    """How many updates are how stale, by clock, with the bounds that `Workers` states."""
    for clock, one in groups(tables["shares"][tables["shares"]["share"] > 0.0], "clock"):
        colour, marker, line = LOOKS[clock]
        ax.plot(one["staleness"], one["share"], color=colour, marker=marker, linestyle=line, label=clock)
    for clock, one in groups(tables["bounds"], "clock"):
        colour, _, line = LOOKS[clock]
        ax.axvline(one["bound"].iloc[0] + 0.5, color=colour, linewidth=1.5, linestyle=line,
                   label=f"bound: {clock}")
    ax.set(yscale="log", ylabel="share of updates",
           title="ours: staleness in the long run")
    plot.legend_below(ax)


CLAIMS = [
    fig.Unjudged("The training time with several servers is basically that with one, because sampling on "
                 "different servers is independent.", "appendix A",
                 "It is about the time of a cluster; the servers of the drawing share nothing by "
                 "construction.", "training_time")]
