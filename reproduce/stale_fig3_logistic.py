"""Stale gradients figure 3, a9a: test loss against iterations and time, one server with 1 to 9 workers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import _adult, plot
from . import _stale as sim
from . import _stale_logistic as blr
from ._adult import DATA
from ._stale_logistic import verdict
from .figure import ByScale, Drawing, Parameter, Tables, settings

__all__ = ["DATA"]

TITLE = "Stale SGHMC: test loss against iterations and time, 1 to 9 workers (a9a or a stand-in)"
PAPER = "Stale gradients figure 3 (a9a; MNIST and CIFAR-10 not reproduced)"
SHOWS = ("Bayesian logistic regression with one server: the test loss averaged along the chain falls faster "
         "with more workers, because they make more updates; what single chains differ by is far smaller.")
COST = {"tiny": "1 s", "quick": "8 s", "paper": "about 6 min (estimated)"}
PARAMETERS = [
    *_adult.PARAMETERS, sim.WORKERS, *blr.DYNAMICS,
    Parameter("iterations", ByScale(20, 400, 400), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(8, 64, 16), "ours", "the paper shows single runs"),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves, steps (differences between numbers of workers)."""
    p = settings(PARAMETERS, scale)
    data = _adult.adult(p, files or {})
    problem, loss = data.problem(p), _adult.TestLoss.of(data.test)
    servers = {n: blr.server(p, problem, loss, n) for n in p.workers}
    per_worker, times = blr.grid(p.iterations), blr.common_times([[one] for one in servers.values()])
    curves = [rows for n, one in servers.items() for rows in (
        blr.loss_rows(blr.by_iteration([one], per_worker), per_worker, "iterations", workers=n),
        blr.loss_rows(blr.by_time([one], times), times, "time", workers=n))]
    steps = [blr.difference_row(blr.by_iteration([servers[more]], at)[:, 0],
                                blr.by_iteration([servers[fewer]], at)[:, 0],
                                workers=more, fewer=fewer, iterations=int(at[0]))
             for fewer, more in pairwise(p.workers)
             for at in np.unique([max(1, p.iterations // 10), p.iterations])[:, None]]
    return {"data": _adult.data_table(data), "setting": blr.setting(p, problem, p.workers),
            "posterior": blr.posterior_loss(p, problem, loss), "curves": pd.concat(curves),
            "steps": pd.DataFrame(steps)}


def draw(tables: Tables) -> Drawing:
    """Against iterations per worker; against simulated time; what single chains differ by."""
    drawing, ((first, second, third),) = plot.panels(3, 5.1, 4.5)
    curves = tables["curves"]
    for ax, axis, label, title in (
            (first, "iterations", sim.ITERATIONS_PER_WORKER, "more workers: lower loss at equal iterations"),
            (second, "time", sim.SIMULATED_TIME, "and at equal simulated time")):
        blr.draw_losses(ax, curves[curves["axis"] == axis], "workers", "replicas (95% band), W", tables)
        ax.set(xlabel=label, ylabel=blr.LOSS, title=title)
        blr.legend_below(ax, tables)
    _draw_spread(third, tables)
    blr.headline(drawing, f"{_adult.data_text(tables['data'])}. Stale SGHMC from the origin; h, B, J and the "
                          f"service times are ours. {blr.NO_LAW}\n{blr.NO_NETWORKS}")
    return drawing


def _draw_spread(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"].query("axis == 'iterations'")
    level = float(tables["posterior"]["loss"].iloc[0])
    for (_, one), colour in zip(curves.groupby("workers"), blr.colours(), strict=False):
        ax.plot(one["x"], (one["loss"] - level).abs(), color=colour)
        ax.plot(one["x"], one["spread"], color=colour, linestyle="--", linewidth=1.2)
    ax.plot([], [], color="#000000", label="distance of the mean loss from the posterior's")
    ax.plot([], [], color="#000000", linestyle="--", linewidth=1.2,
            label="standard deviation of single chains")
    ax.set(xscale="log", yscale="log", xlabel=sim.ITERATIONS_PER_WORKER, ylabel="part of the loss",
           title="bias, not variance, is what is seen")
    ax.set_ylim(*plot.room(float(curves["spread"].min()), float((curves["loss"] - level).abs().max()), 0.2))
    ax.legend(loc="upper right", fontsize=8, title="colours as on the left", title_fontsize=8)


def _ends(tables: Tables, axis: str) -> pd.DataFrame:
    curves = tables["curves"]
    return curves[curves["axis"] == axis].groupby("workers").last()


def judge_faster(tables: Tables) -> tuple[str, str]:
    """Does each increase of W lower the loss at equal iterations per worker?"""
    steps = tables["steps"]
    worst = steps.sort_values("high").iloc[-1]
    ends = _ends(tables, "iterations")
    return verdict(bool((steps["high"] < 0.0).all())), (
        "Mean loss after "
        f"{ends['x'].iloc[0]:.0f} iterations per worker: "
        f"{', '.join(f'{row.loss:.4f} (W = {n})' for n, row in ends.iterrows())}; the least clear step is "
        f"W = {worst['fewer']:.0f} to {worst['workers']:.0f} after {worst['iterations']:.0f}, "
        f"{worst['difference']:.4f} (95% interval {worst['low']:.4f} to {worst['high']:.4f}).")


def judge_time(tables: Tables) -> tuple[str, str]:
    """The same against simulated time."""
    ends = _ends(tables, "time")
    falls = all(more.high < fewer.low for (_, fewer), (_, more) in pairwise(ends.iterrows()))
    return verdict(falls), (
        f"Mean loss at simulated time {ends['x'].iloc[0]:.0f}: "
        f"{', '.join(f'{row.loss:.4f} (W = {n})' for n, row in ends.iterrows())}; the 95% intervals of "
        f"neighbours are {'apart' if falls else 'not all apart'}. The clock is simulated, with an update "
        "cost of our choice.")


def judge_reason(tables: Tables) -> tuple[str, str]:
    """Is the slow curve of one worker due to variance?"""
    ends = _ends(tables, "iterations")
    one, most = ends.iloc[0], ends.iloc[-1]
    gap = float(one["loss"] - most["loss"])
    return verdict(bool(one["spread"] >= gap)), (
        f"After {one['x']:.0f} iterations per worker W = 1 is {gap:.4f} above W = {ends.index[-1]} in the "
        f"mean over chains, while its single chains differ by {one['spread']:.4f} (standard deviation): a "
        "gap in the mean is bias, here the transient of a chain with fewer updates, and more runs do not "
        "remove it.")


def judge_spread(tables: Tables) -> tuple[str, str]:
    """Does a single chain come closer to its expectation with more workers?"""
    ends = _ends(tables, "iterations")
    one, most = float(ends["spread"].iloc[0]), float(ends["spread"].iloc[-1])
    return verdict(most < one), (
        f"Standard deviation between single chains after {ends['x'].iloc[0]:.0f} iterations per worker: "
        f"{', '.join(f'{row.spread:.4f} (W = {n})' for n, row in ends.iterrows())}. From a common start "
        "chains first have to move apart, and those with more updates have moved further.")


CLAIMS = [
    *blr.on_a9a("The loss decreases faster with more workers, against iterations per worker.",
                "section 5.2.1", judge_faster),
    *blr.on_a9a("The loss decreases faster with more workers, against time.",
                "section 5.2.1", judge_time),
    *blr.on_a9a("With one worker the loss decreases much more slowly because of high estimation "
                "variance.",
                "section 5.2.1", judge_reason),
    *blr.on_a9a("A single run converges faster to its expectation with more workers.",
                "section 5.2", judge_spread),
    blr.networks_claim("MNIST and CIFAR-10: the loss decreases faster with more workers; on CIFAR-10 the "
                       "final losses of 6 and 9 workers are worse than that of 4.", "section 5.2.1"),
]
