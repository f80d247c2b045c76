"""Stale gradients figure 4, a9a: test loss against iterations, 1 to 7 servers with 2 workers each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import REPLICAS, ByScale, Drawing, Finding, Parameter, Tables, settings
from . import adult, logistic as blr, logistic_figure as shown, shared as sim

TITLE = "Test loss of stale SGHMC against iterations, 1 to 7 servers (a9a or a stand-in)"
PAPER = "Stale gradients figure 4 (a9a alone)"
REPRODUCES = ("Stale 4",)
SHOWS = ("Bayesian logistic regression with 1 to 7 servers of 2 workers: the averaged test loss, its "
         "difference to that of one server, and the spread of single runs.")
DATA = adult.DATA
COST = {"tiny": "2 s", "quick": "14 s (on a busy machine)", "paper": "about 7 min (estimated)"}
PARAMETERS = [
    *adult.PARAMETERS, blr.SERVERS, *blr.DYNAMICS,
    Parameter("workers_per_server", 2, "paper", "section 5.2.2: 2 workers a server"),
    Parameter("iterations", ByScale(20, 400, 400), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(4, 8, 4), "ours", blr.REPLICA_REASON),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves, gains (over one server), speedups, variances (at the end)."""
    p = settings(PARAMETERS, scale)
    found, x = blr.cases(p, files), blr.grid(p.iterations)
    groups = [blr.servers(case, p.workers_per_server, max(p.servers)) for case in found]
    curves = [blr.curve([group[:n] for group in groups], x, "iterations", servers=n) for n in p.servers]
    gains = [blr.gain(groups, n, x, "iterations") for n in p.servers if n > 1]
    variances = [{"data_set": number, "servers": n} | blr.variances(group, n, p.iterations)
                 for number, group in enumerate(groups) for n in p.servers]
    ends = blr.loss_rows([group[:1] for group in groups], p.iterations, "iterations")
    return blr.common_tables(found, [p.workers_per_server]) | {
        "curves": pd.concat(curves), "gains": pd.concat(gains), "ends": pd.DataFrame(ends),
        "speedups": pd.DataFrame(blr.speedup_rows(p, groups)), "variances": pd.DataFrame(variances)}


def draw(tables: Tables) -> Drawing:
    """Mean loss; what more servers change in it; spread of single runs."""
    drawing, ((first, second, third),) = plot.panels(3, 5.1, 5.2)
    curves = tables["curves"]
    shown.draw_losses(first, curves[curves["servers"] == 1], "servers", "S", tables)
    first.set(ylabel=shown.LOSS, title="loss of one server")
    shown.draw_gains(second, tables["gains"])
    second.set(ylabel="difference of the mean losses", title="S servers against one (99% intervals)")
    _draw_spread(third, tables)
    for ax in (first, second, third):
        ax.set(xlabel=sim.ITERATIONS_PER_WORKER)
        shown.legend(ax, 2)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}. {shown.NO_LAW}", f"{shown.BAND}.",
                   "Stale SGHMC from the origin, 2 workers a server; h, B, J, service times: ours. "
                   f"{shown.NO_NETWORKS}")
    return drawing


def _draw_spread(ax: Axes, tables: Tables) -> None:
    """Spread for each number of servers, and what independent servers would have."""
    curves = tables["curves"]
    single, counts = curves[curves["servers"] == 1], sorted(curves["servers"].unique().tolist())
    for n, look in zip(counts, shown.looks(len(counts)), strict=True):
        one = curves[curves["servers"] == n]
        ax.plot(one["x"], one["spread"], linewidth=1.6, label=f"S = {n}", **look)
        if n > 1:
            ax.plot(single["x"], single["spread"] / np.sqrt(n), color=plot.GREY, linewidth=0.9,
                    label=r"that of S = 1 over $\sqrt{S}$" if n == counts[-1] else None)
    ax.set(xscale="log", yscale="log", ylabel="standard deviation of single runs",
           title="spread (median of the data sets)")


def judge_speedup(tables: Tables) -> tuple[str, str]:
    """Is there a speedup in the mean loss?"""
    return shown.no_speedup(tables["speedups"], ["servers"])


def judge_small(tables: Tables) -> tuple[str, str]:
    """Is the spread of single runs small against the fall of the loss?"""
    ends = tables["ends"]
    fall, spread = np.log(2.0) - ends["loss"].to_numpy(), ends["spread"].to_numpy()
    verdict, low, high = shown.all_positive((shown.NEAR * fall - shown.SEEN * spread)[:, None])
    return verdict, (
        f"In {ends['x'].iloc[0]:.0f} iterations per worker one server's mean loss falls by "
        f"{fall.mean():.4f}, and single runs differ by {spread.mean():.4f} (standard deviation); "
        f"{shown.NEAR:g} of the fall less {shown.SEEN:g} of those is {low[0]:.4f} to {high[0]:.4f}.")


def judge_variance(tables: Tables) -> tuple[str, str]:
    """Is the variance of several servers lower?"""
    table = tables["variances"].query("servers > 1")
    counts = sorted(table["servers"].unique())
    several, single = (blr.by_set(table, name, "servers") for name in ("variance", "single"))
    verdict, low, high = shown.all_positive(1.0 - several / single.mean())
    words = ", ".join(f"{share:.3f} ({1.0 - b:.3f} to {1.0 - a:.3f}; 1/S is {1.0 / n:.3f}) for S = {n}"
                      for n, share, a, b in zip(counts, several.mean(axis=0) / single.mean(axis=0), low, high,
                                                strict=True))
    return verdict, f"Variance over that of a single server, pooled over the servers: {words}."


EQUAL_MEANS = ("Equal servers have the same mean, so that in the mean over runs no number of them can show a "
               "speedup, whatever their variance; in one run they reduce its spread.")
CLAIMS = [
    *shown.on_a9a("On the logistic regression several servers show no significant speedup.", "section 5.2.2",
                  judge_speedup, "no_speedup", f"{shown.SPEEDUP_READ} {EQUAL_MEANS}"),
    *shown.on_a9a("The reason is probably that the sample variance is too small for several servers to take "
                  "effect.", "section 5.2.2", judge_small, "small_variance",
                  f"Read: {shown.SEEN:g} standard deviations of single runs of one server are less than "
                  f"{shown.NEAR:g} of the fall of its loss. {EQUAL_MEANS}"),
    Finding("The average of several servers has a smaller variance than that of one.", "Theorem 7",
            judge_variance, name="variance", rests_on=REPLICAS,
            context="Theorem 7 is an upper bound; its leading term 1/T, as its proof has it, falls like 1/S, "
                    f"as the variance of independent equal servers does. {shown.ON_SETS}"),
    shown.networks("MNIST and CIFAR-10: with more servers the loss decreases faster.", "section 5.2.2"),
]
