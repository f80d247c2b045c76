"""Stale gradients figures 6 to 11, a9a: test loss for all numbers of workers and of servers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from theory.stale import chain_terms

from .. import figure as fig, plot
from ..data_files import Files
from ..figure import ByScale, Parameter
from ..tables import among, groups, spaced
from ..verdicts import above, intervals
from . import adult, logistic as blr, logistic_figure as shown, shared as sim
from .fig3_4_logistic import judge_slope

TITLE = "Test loss of stale SGHMC, 1 to 7 servers (a9a)"
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
    *blr.lengths_of(ByScale(20, 100, 200), ByScale(4, 4, 4))]


def compute(scale: str, files: Files | None = None) -> fig.Tables:
    """Tables: data, setting, posterior, curves and gains (by panel), ends, divided, bounds."""
    p = fig.settings(PARAMETERS, scale)
    cases, x = blr.cases(p, files), spaced(p.iterations, 40)
    by_workers = {n: [blr.servers(case, n, max(p.servers)) for case in cases] for n in p.per_server}
    singles = {n: [group[:1] for group in by_workers[n]] if n in by_workers else
               [blr.servers(case, n) for case in cases] for n in p.workers}
    in_time, more = by_workers[p.in_time], p.servers[1:]
    clock = blr.common_times(in_time)
    panels = {"iterations": "6", "time": "6, time"}
    curves, ends = blr.against_both(
        p, singles, lambda n, axis: {"panel": panels[axis], "workers": n, "servers": 1})
    curves += [blr.curve(by_workers[workers], x, "iterations", n, panel="divided", workers=workers, servers=n)
               for n, workers in p.divided]
    gains = [blr.gain(in_time, n, clock, "time", panel="7", workers=p.in_time) for n in more]
    gains += [blr.gain(every, n, x, "iterations", panel=str(8 + i), workers=workers)
              for i, (workers, every) in enumerate(by_workers.items()) for n in more]
    divided = pd.concat(blr.losses_at(by_workers[workers], p.iterations, "iterations", n, servers=n)
                        for n, workers in p.divided)
    return blr.common_tables(cases, p.workers) | {
        "curves": pd.concat(curves), "gains": pd.concat(gains), "ends": ends,
        "divided": divided.assign(variance=divided["spread"] ** 2), "bounds": _bounds(p)}


def _bounds(p: Any) -> pd.DataFrame:
    """Terms of the rates of one server with S workers and of S servers with one, constants one."""
    rows, h = [], float(blr.algorithm(p, 1).schedule.largest)
    for n in p.servers[1:]:
        for quantity in ("variance", "bias"):
            one = chain_terms(quantity, [n * p.iterations], [h], float(n))
            several = chain_terms(quantity, [p.iterations] * n, [h] * n, 0.0)
            rows += [{"quantity": quantity, "servers": n, "term": name, "one_server": one[name],
                      "several": several[name]} for name in one]
    return pd.DataFrame(rows)


def draw(tables: fig.Tables) -> fig.Drawing:
    """Figure 6, the division of six workers and figure 7; below them figures 8 to 11."""
    drawing, axes = plot.panels(2, 5.6, 4.3, n_rows=4)
    curves, (first, second, third, *below) = tables["curves"], axes.flat
    divided = among(curves, panel="divided")
    names = divided["servers"].map(str) + " of " + divided["workers"].map(str)
    for ax, table, by, label, n_columns, title in (
            (first, among(curves, panel="6"), "workers", "W", 4, "figure 6: 1 server of W workers"),
            (second, among(curves, panel="6, time"), "workers", "W", 4, "figure 6 against simulated time"),
            (third, divided.assign(servers=names), "servers", "S", 2, "ours: six workers, divided")):
        shown.draw_losses(ax, table, by, label, tables)
        ax.set(title=title)
        plot.legend_below(ax, n_columns)
    for ax, (panel, gains) in zip(below, groups(tables["gains"], "panel"), strict=True):
        shown.draw_gains(ax, gains)
        ax.set(title=f"figure {panel}: S servers of {gains['workers'].iloc[0]} (99% intervals)")
    plot.legend_for(below, 3)
    for ax in axes.flat:
        ax.set(xlabel=sim.SIMULATED_TIME if ax in (second, below[0]) else sim.ITERATIONS_PER_WORKER)
    shown.headline(drawing, f"{adult.data_text(tables['data'])}.", f"{shown.BAND}.",
                   f"Stale SGHMC from the origin; h, B, J and service times are ours. {shown.NO_LAW}",
                   shown.NO_NETWORKS)
    return drawing


def _each(table: pd.DataFrame, values: np.ndarray) -> str:
    """Means with their intervals for 2 servers or more, in words."""
    counts = sorted(table["servers"].unique())[1:]
    return ", ".join(f"{mean} for S = {n}" for n, mean in zip(counts, shown.means(values), strict=True))


def judge_bounds(tables: fig.Tables) -> tuple[str, str, str]:
    """The leading terms of Theorems 2, 4, 6 and 7."""
    lead = among(tables["bounds"], term="time")
    lead = lead.assign(ratio=lead["several"] / lead["one_server"])
    expected = np.where(lead["quantity"] == "variance", 1.0, lead["servers"])
    total = tables["bounds"].groupby(["quantity", "servers"])[["one_server", "several"]].sum()
    every = (total["several"] / total["one_server"]).unstack()
    return (fig.PASS if np.allclose(lead["ratio"], expected, rtol=1e-9) else fig.FAIL,
            "The terms in time of S servers over those of one server with S workers: "
            + ", ".join(f"{row.ratio:.4g} (S = {row.servers}, {row.quantity})" for row in lead.itertuples())
            + ".",
            "All terms together, constants one, at the figure's L and h: "
            + "; ".join(f"{name} {', '.join(f'{value:.3g} (S = {n})' for n, value in row.items())}"
                        for name, row in every.iterrows()) + ".")


def judge_bias(tables: fig.Tables) -> tuple[str, str]:
    """One server with all workers against several with some each."""
    table = tables["divided"]
    loss = shown.by_set(table, "loss", "servers")
    more = loss[:, 1:] - loss[:, :1]
    return shown.all_positive(more)[0], (
        f"The mean loss at the end is above that of one server of six workers by {_each(table, more)}.")


def judge_variance(tables: fig.Tables) -> tuple[str, str]:
    """Is the variance of divided workers smaller?"""
    table = tables["divided"]
    variance = shown.by_set(table, "variance", "servers")
    share = variance[:, 1:] / variance[:, :1].mean()
    low, high = intervals(share)
    return above(1.0 - high, 1.0 - low, shown.NEAR), (
        f"Variance of the averages over that of one server of six workers: {_each(table, share)}.")


CLAIMS = [
    *shown.on_a9a("Figure 6: generally the loss decreases faster with more workers, against iterations per "
                  "worker.", "section 5.2.1 and appendix I", partial(judge_slope, axis="iterations"),
                  "faster", counted_in="stale_fig3_logistic"),
    *shown.on_a9a("Figure 6: generally the loss decreases faster with more workers, against time.",
                  "section 5.2.1 and appendix I", partial(judge_slope, axis="time"), "in_time",
                  "The clock is simulated, with an update cost of our choice.", "stale_fig3_logistic"),
    shown.no_speedup("Several servers show no significant speedup on the logistic regression, against time "
                     "(figure 7) and however many workers each has (figures 8 to 11).",
                     "section 5.2.2 and appendix I"),
    fig.Claim("Against S servers with a worker each, one server with S workers has the same variance bound, "
              "and a bias bound smaller by a factor of S.", "section 4", judge_bounds, "bounds", fig.EXACT,
              "Judged on the leading terms, those in 1/(L h), of Theorems 2 and 4 for one server and of 6 "
              "and 7, as their proofs end, for several, at one step size. The errata of the theory have the "
              "rest of the sentence: the MSE, and the best step size of each."),
    fig.Finding("Six workers of one server come closer to the posterior's loss than six divided among "
                "servers.", "section 4", judge_bias, "bias", fig.REPLICAS,
                f"The start is the origin, from which the loss falls. {shown.ON_SETS}"),
    fig.Finding("The variance itself is smaller for six workers divided among servers than for six of one "
                "server.", "section 4", judge_variance, "variance", fig.REPLICAS, "Read: by more than "
                f"{shown.NEAR:g}. The paper speaks of the bounds, which are the same; the variance of S "
                f"independent equal servers is 1/S from the first update on. {shown.ON_SETS}"),
    shown.networks("MNIST and CIFAR-10, figures 6 to 11: the loss decreases faster with more workers.",
                   "appendix I"),
    shown.more_servers("MNIST and CIFAR-10, figures 6 to 11: the loss decreases faster with more servers.",
                       "appendix I")]
