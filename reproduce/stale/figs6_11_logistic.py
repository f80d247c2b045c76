"""Stale gradients figures 6 to 11, a9a: test loss for all numbers of workers and of servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from theory.stale import chain_terms

from .. import plot
from ..figure import (
    EXACT,
    FAIL,
    PASS,
    REPLICAS,
    ByScale,
    Claim,
    Drawing,
    Finding,
    Parameter,
    Tables,
    settings,
)
from ..verdicts import above
from . import adult, logistic as blr, logistic_figure as shown, shared as sim
from .fig3_logistic import judge_slope

TITLE = "Test loss of stale SGHMC, 1 to 7 servers (a9a or a stand-in)"
PAPER = "Stale gradients figures 6 to 11 (a9a alone)"
REPRODUCES = tuple(f"Stale {number}" for number in range(6, 12))
SHOWS = ("Bayesian logistic regression: test loss for every number of workers; what 3, 5 and 7 servers of "
         "1, 2, 4 and 6 workers change in it; and six workers in all, divided among servers.")
DATA = adult.DATA
COST = {"tiny": "5 s", "quick": "23 s (on a busy machine)", "paper": "about 20 min (estimated)"}
PARAMETERS = [
    *adult.PARAMETERS, blr.SERVERS, *blr.DYNAMICS,
    Parameter("workers", ByScale([1, 2, 4, 6, 9], list(range(1, 10)), list(range(1, 10))), "paper",
              "section 5.2: from 1 to 9 workers"),
    Parameter("per_server", [1, 2, 4, 6], "paper", "figures 8 to 11: workers of each server"),
    Parameter("in_time", 2, "ours", "workers of each server in figure 7, whose caption does not say"),
    Parameter("divided", [(1, 6), (3, 2), (6, 1)], "ours", "servers, workers of each: six workers in all"),
    Parameter("iterations", ByScale(20, 100, 200), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(4, 4, 4), "ours", blr.REPLICA_REASON),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves and gains (by panel), ends, speedups, divided, bounds."""
    p = settings(PARAMETERS, scale)
    found, x = blr.cases(p, files), blr.grid(p.iterations)
    groups = {n: [blr.servers(case, n, max(p.servers)) for case in found] for n in p.per_server}
    singles = {n: [group[:1] for group in groups[n]] if n in groups else
               [blr.servers(case, n) for case in found] for n in p.workers}
    clock = blr.common_times([group for every in singles.values() for group in every])
    clocks = blr.common_times(groups[p.in_time])
    curves = [rows for n, every in singles.items() for rows in (
        blr.curve(every, x, "iterations", panel="6", workers=n, servers=1),
        blr.curve(every, clock, "time", panel="6, time", workers=n, servers=1))]
    curves += [blr.curve([group[:n] for group in groups[workers]], x, "iterations", panel="divided",
                         workers=workers, servers=n) for n, workers in p.divided]
    more = [n for n in p.servers if n > 1]
    gains = [blr.gain(groups[p.in_time], n, clocks, "time", panel="7", workers=p.in_time) for n in more]
    gains += [blr.gain(every, n, x, "iterations", panel=str(8 + i), workers=workers)
              for i, (workers, every) in enumerate(groups.items()) for n in more]
    ends = [row for n, every in singles.items() for place, axis in (
        (max(1, p.iterations // 10), "iterations"), (p.iterations, "iterations"), (clock[-1], "time"))
        for row in blr.loss_rows(every, place, axis, workers=n)]
    in_time = [row for n in p.servers for row in blr.loss_rows(
        [group[:n] for group in groups[p.in_time]], clocks[-1], "time", servers=n)]
    return blr.common_tables(found, p.workers) | {
        "curves": pd.concat(curves), "gains": pd.concat(gains), "ends": pd.DataFrame(ends),
        "in_time": pd.DataFrame(in_time), "divided": _divided(p, groups), "bounds": _bounds(p, found[0]),
        "speedups": pd.DataFrame([row for workers, every in groups.items()
                                  for row in blr.speedup_rows(p, every, workers=workers)])}


def _divided(p: Any, groups: Mapping[int, list[list[blr.Server]]]) -> pd.DataFrame:
    """Loss and variance at the end for every division of the workers, on every data set."""
    return pd.DataFrame([
        row | {"variance": row["spread"]**2} for n, workers in p.divided for row in blr.loss_rows(
            [group[:n] for group in groups[workers]], p.iterations, "iterations", servers=n)])


def _bounds(p: Any, case: blr.Case) -> pd.DataFrame:
    """Terms of the rates of one server with S workers and of S servers with one, constants one."""
    rows, h = [], float(blr.algorithm(p, 1).step_size)
    for n in [n for n in p.servers if n > 1]:
        for quantity in ("variance", "bias"):
            one = chain_terms(quantity, [n * p.iterations], [h], float(n))
            several = chain_terms(quantity, [p.iterations] * n, [h] * n, 0.0)
            rows += [{"quantity": quantity, "servers": n, "term": name, "one_server": one[name],
                      "several": several[name]} for name in one]
    return pd.DataFrame(rows)


def draw(tables: Tables) -> Drawing:
    """Figure 6, the division of six workers and figure 7; below them figures 8 to 11."""
    drawing, axes = plot.panels(2, 5.6, 4.3, n_rows=4)
    curves, gains = tables["curves"], tables["gains"]
    (first, second), (third, fourth), *below = axes
    for ax, panel, title in ((first, "6", "figure 6: 1 server of W workers"),
                             (second, "6, time", "figure 6 against simulated time")):
        shown.draw_losses(ax, curves[curves["panel"] == panel], "workers", "W", tables)
        ax.set(ylabel=shown.LOSS, title=title)
        shown.legend(ax, 4)
    divided = curves[curves["panel"] == "divided"]
    divided = divided.assign(servers=divided["servers"].map(str) + " of " + divided["workers"].map(str))
    shown.draw_losses(third, divided, "servers", "S", tables)
    third.set(ylabel=shown.LOSS, title="ours: six workers, divided")
    shown.legend(third, 2)
    for ax, panel in zip((fourth, *np.ravel(below)), gains["panel"].unique(), strict=True):
        one = gains[gains["panel"] == panel]
        shown.draw_gains(ax, one)
        ax.set(ylabel="difference of the mean losses", title=f"figure {panel}: S servers of "
                                                             f"{one['workers'].iloc[0]} (99% intervals)")
        shown.legend(ax)
    for ax in axes.flat:
        ax.set(xlabel=sim.SIMULATED_TIME if ax in (second, fourth) else sim.ITERATIONS_PER_WORKER)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}.", f"{shown.BAND}.",
                   f"Stale SGHMC from the origin; h, B, J and service times are ours. {shown.NO_LAW}",
                   shown.NO_NETWORKS)
    return drawing


def judge_workers(tables: Tables) -> tuple[str, str]:
    """Figure 6 against iterations."""
    return judge_slope(tables, "iterations", (False, True), "iterations per worker")


def judge_time(tables: Tables) -> tuple[str, str]:
    """Figure 6 against simulated time."""
    return judge_slope(tables, "time", (True,), "units of simulated time")


def judge_servers(tables: Tables) -> tuple[str, str]:
    """Figures 8 to 11: no speedup by servers."""
    return shown.no_speedup(tables["speedups"], ["workers", "servers"])


def _each(table: pd.DataFrame, means: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    """Numbers with their intervals for 2 servers or more, in words."""
    counts = sorted(table["servers"].unique())[1:]
    return ", ".join(f"{mean:.4f} ({span}) for S = {n}" for n, mean, span in
                     zip(counts, means, shown.span(low, high), strict=True))


def judge_servers_time(tables: Tables) -> tuple[str, str]:
    """Figure 7: no lower loss, as a share of its fall, at equal time."""
    loss = blr.by_set(tables["in_time"], "loss", "servers")
    less = (loss[:, :1] - loss[:, 1:]) / (np.log(2.0) - loss[:, :1].mean())
    low, high = shown.intervals(less)
    words = _each(tables["in_time"], less.mean(axis=0), low, high)
    return shown.within(low, high, -np.inf, shown.NEAR), (
        f"Lower than one server at simulated time {tables['in_time']['x'].iloc[0]:.0f}, as a share of the "
        f"fall of its loss: {words}.")


def judge_bounds(tables: Tables) -> tuple[str, str, str]:
    """The leading terms of Theorems 2, 4, 6 and 7."""
    table = tables["bounds"]
    lead = table[table["term"] == "time"]
    ratio = (lead["several"] / lead["one_server"]).to_numpy()
    wanted = np.where(lead["quantity"] == "variance", 1.0, lead["servers"])
    total = table.groupby(["quantity", "servers"])[["one_server", "several"]].sum()
    every = (total["several"] / total["one_server"]).unstack()
    words = ", ".join(f"{value:.4g} (S = {n}, {quantity})" for value, n, quantity in
                      zip(ratio, lead["servers"], lead["quantity"], strict=True))
    return (PASS if np.allclose(ratio, wanted, rtol=1e-9) else FAIL,
            f"The terms in time of S servers over those of one server with S workers: {words}.",
            "All terms together, constants one, at the figure's L and h: "
            + "; ".join(f"{name} {', '.join(f'{value:.3g} (S = {n})' for n, value in row.items())}"
                        for name, row in every.iterrows()) + ".")


def judge_bias(tables: Tables) -> tuple[str, str]:
    """One server with all workers against several with some each."""
    table = tables["divided"]
    loss = blr.by_set(table, "loss", "servers")
    above = loss[:, 1:] - loss[:, :1]
    verdict, low, high = shown.all_positive(above)
    return verdict, ("The mean loss at the end is above that of one server of six workers by "
                     f"{_each(table, above.mean(axis=0), low, high)}.")


def judge_variance(tables: Tables) -> tuple[str, str]:
    """Is the variance of divided workers smaller?"""
    table = tables["divided"]
    variance = blr.by_set(table, "variance", "servers")
    share = variance[:, 1:] / variance[:, :1].mean()
    low, high = shown.intervals(share)
    return above(1.0 - high, 1.0 - low, shown.NEAR), (
        "Variance of the averages over that of one server of six workers: "
        f"{_each(table, share.mean(axis=0), low, high)}.")


CLAIMS = [
    *shown.on_a9a("Figure 6: generally the loss decreases faster with more workers, against iterations per "
                  "worker.", "section 5.2.1 and appendix I", judge_workers, "faster",
                  counted_in="stale_fig3_logistic"),
    *shown.on_a9a("Figure 6: generally the loss decreases faster with more workers, against time.",
                  "section 5.2.1 and appendix I", judge_time, "in_time",
                  "The clock is simulated, with an update cost of our choice.",
                  counted_in="stale_fig3_logistic"),
    *shown.on_a9a("Figures 8 to 11: several servers show no significant speedup on the logistic regression, "
                  "however many workers each has.", "section 5.2.2 and appendix I", judge_servers,
                  "no_speedup", shown.SPEEDUP_READ, counted_in="stale_fig4_logistic"),
    *shown.on_a9a("Figure 7: nor do they against time.", "section 5.2.2 and appendix I", judge_servers_time,
                  "no_speedup_in_time",
                  f"Read: the loss of none is lower by more than {shown.NEAR:g} of its fall. Servers have "
                  "service times of their own.", counted_in="stale_fig4_logistic"),
    Claim("Against S servers with a worker each, one server with S workers has the same variance bound, "
          "and a bias bound smaller by a factor of S.", "section 4", judge_bounds, name="bounds",
          rests_on=EXACT,
          context="Judged on the leading terms, those in 1/(L h), of Theorems 2 and 4 for one server and of "
                  "6 and 7, as their proofs end, for several, at one step size. The errata of the theory "
                  "have the rest of the sentence: the MSE, and the best step size of each."),
    Finding("Six workers of one server come closer to the posterior's loss than six divided among servers.",
            "section 4", judge_bias, name="bias", rests_on=REPLICAS,
            context=f"The start is the origin, from which the loss falls. {shown.ON_SETS}"),
    Finding("The variance itself is smaller for six workers divided among servers than for six of one "
            "server.", "section 4", judge_variance, name="variance", rests_on=REPLICAS,
            context=f"Read: by more than {shown.NEAR:g}. The paper speaks of the bounds, which are the same; "
                    "the variance of S independent equal servers is 1/S from the first update on. "
                    f"{shown.ON_SETS}"),
    shown.networks("MNIST and CIFAR-10, figures 6 to 11: the loss decreases faster with more workers and "
                   "with more servers.", "appendix I"),
]
