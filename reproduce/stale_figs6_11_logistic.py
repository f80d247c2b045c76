"""Stale gradients figures 6 to 11, a9a: test loss for all numbers of workers and of servers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from . import _adult, plot
from . import _stale as sim
from . import _stale_logistic as blr
from ._adult import DATA
from ._stale_logistic import verdict
from .figure import ByScale, Claim, Drawing, Parameter, Tables, settings

__all__ = ["DATA"]

TITLE = "Stale SGHMC: test loss, 1 to 9 workers and 1 to 7 servers (a9a or a stand-in)"
PAPER = "Stale gradients figures 6 to 11 (a9a; MNIST and CIFAR-10 not reproduced)"
SHOWS = ("Bayesian logistic regression: test loss for every number of workers, for 1 to 7 servers of 1, 2, 4 "
         "and 6 workers, and for six workers in all, divided among servers in different ways.")
COST = {"tiny": "1 s", "quick": "12 s", "paper": "about 8 min (estimated)"}
PARAMETERS = [
    *_adult.PARAMETERS, blr.SERVERS, *blr.DYNAMICS,
    Parameter("workers", ByScale([1, 2, 4, 6, 9], list(range(1, 10)), list(range(1, 10))), "paper",
              "section 5.2: from 1 to 9 workers"),
    Parameter("per_server", [1, 2, 4, 6], "paper", "figures 8 to 11: workers of each server"),
    Parameter("in_time", 2, "ours", "workers of each server in figure 7, whose caption does not say"),
    Parameter("divided", [(1, 6), (3, 2), (6, 1)], "ours", "servers, workers of each: six workers in all"),
    Parameter("iterations", ByScale(20, 200, 200), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(8, 32, 16), "ours", "the paper shows single runs"),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves (by panel), speedups, divided (six workers in all)."""
    p = settings(PARAMETERS, scale)
    data = _adult.adult(p, files or {})
    problem, loss = data.problem(p), _adult.TestLoss.of(data.test)
    groups = {n: blr.all_servers(p, problem, loss, n, max(p.servers)) for n in p.per_server}
    singles = {n: groups[n][0] if n in groups else blr.server(p, problem, loss, n) for n in p.workers}
    per_worker = blr.grid(p.iterations)
    clock = blr.common_times([[one] for one in singles.values()])
    clocks = blr.common_times([groups[p.in_time]])
    curves = [rows for n, one in singles.items() for rows in (
        blr.loss_rows(blr.by_iteration([one], per_worker), per_worker, "iterations", panel="6", workers=n,
                      servers=1),
        blr.loss_rows(blr.by_time([one], clock), clock, "time", panel="6, time", workers=n, servers=1))]
    curves += [blr.loss_rows(blr.by_time(groups[p.in_time][:n], clocks), clocks, "time", panel="7",
                             workers=p.in_time, servers=n) for n in p.servers]
    curves += [blr.loss_rows(blr.by_iteration(group[:n], per_worker), per_worker, "iterations",
                             panel=str(8 + i), workers=workers, servers=n)
               for i, (workers, group) in enumerate(groups.items()) for n in p.servers]
    curves += [blr.loss_rows(blr.by_iteration(groups[workers][:n], per_worker), per_worker, "iterations",
                             panel="divided", workers=workers, servers=n) for n, workers in p.divided]
    return {"data": _adult.data_table(data), "setting": blr.setting(p, problem, p.workers),
            "posterior": blr.posterior_loss(p, problem, loss), "curves": pd.concat(curves),
            "speedups": pd.DataFrame([blr.speedup_row(p, group[:1], group[:n], workers=workers)
                                      for workers, group in groups.items() for n in p.servers if n > 1]),
            "divided": pd.DataFrame(_divided(p, groups))}


def _divided(p: Any, groups: Mapping[int, list[blr.Server]]) -> list[dict[str, Any]]:
    """Each division of the workers against one server with all of them, at the end."""
    at, (_, most) = np.array([p.iterations]), p.divided[0]
    alone = blr.by_iteration(groups[most][:1], at)
    rows = []
    for n, workers in p.divided[1:]:
        several = blr.by_iteration(groups[workers][:n], at)
        gap = several[:, 0] - alone[:, 0]
        reach = float(blr.half_width(gap))
        ratio = blr.variance_ratio(p, several[:, 0], alone)
        rows.append({"servers": n, "workers": workers, "loss": float(several.mean()),
                     "alone": float(alone.mean()), "difference": float(gap.mean()),
                     "difference_low": float(gap.mean() - reach),
                     "difference_high": float(gap.mean() + reach)}
                    | {f"variance_{name}": value for name, value in ratio.items()})
    return rows


def draw(tables: Tables) -> Drawing:
    """Figures 6 and 7 and the division of six workers above; figures 8 to 11 below."""
    drawing, (above, below) = plot.panels(4, 4.1, 3.9, n_rows=2)
    curves = tables["curves"]
    several = curves[(curves["panel"] == "7")]
    for ax, panel, name, label, widest, title in (
            (above[0], "6", "workers", "W", 1.5, "figure 6: 1 server, W workers"),
            (above[1], "6, time", "workers", "W", 1.5, "figure 6 against simulated time"),
            (above[2], "7", "servers", "S", 7.0, f"figure 7: S servers of {several['workers'].iloc[0]}"),
            *((ax, str(8 + i), "servers", "S", 7.0, f"figure {8 + i}: S servers of {workers}")
              for i, (ax, workers) in enumerate(zip(below, (1, 2, 4, 6), strict=True)))):
        table = curves[curves["panel"] == panel]
        blr.draw_losses(ax, table, name, label, tables, widest)
        in_time = table["axis"].iloc[0] == "time"
        ax.set(xlabel="simulated time" if in_time else sim.ITERATIONS_PER_WORKER, title=title)
        blr.legend_below(ax, tables, fontsize=7.5, ncols=2, title="replicas (95% band)", title_fontsize=7.5)
    divided = curves[curves["panel"] == "divided"]
    divided = divided.assign(servers=divided["servers"].map(str) + " of " + divided["workers"].map(str))
    blr.draw_losses(above[3], divided, "servers", "S", tables)
    above[3].set(xlabel=sim.ITERATIONS_PER_WORKER, title="ours: six workers, divided")
    blr.legend_below(above[3], tables, fontsize=7.5, title="replicas (95% band)", title_fontsize=7.5)
    for ax in (above[0], below[0]):
        ax.set_ylabel(blr.LOSS)
    blr.headline(drawing, f"{_adult.data_text(tables['data'])}. Stale SGHMC from the origin; h, B, J and the "
                          f"service times are ours. {blr.NO_LAW}\nLines of different width coincide. "
                          f"{blr.NO_NETWORKS}")
    return drawing


def _ends(tables: Tables, panel: str) -> pd.DataFrame:
    """The last row of each curve of a panel."""
    table = tables["curves"]
    return table[table["panel"] == panel].groupby(["workers", "servers"], as_index=False).last()


def _judge_workers(tables: Tables, panel: str, unit: str) -> tuple[str, str]:
    ends = _ends(tables, panel)
    rows = [row for _, row in ends.iterrows()]
    falls = all(more["loss"] < fewer["loss"] for fewer, more in pairwise(rows))
    apart = rows[-1]["high"] < rows[0]["low"]
    words = ", ".join(f"{row['loss']:.4f} (W = {row['workers']})" for row in rows)
    band = max(row["high"] - row["loss"] for row in rows)
    return verdict(falls and apart), (
        f"Mean loss at {rows[0]['x']:.0f} {unit}: {words}; 95% intervals are at most {band:.4f} to either "
        "side.")


def judge_workers(tables: Tables) -> tuple[str, str]:
    """Figure 6 against iterations."""
    return _judge_workers(tables, "6", "iterations per worker")


def judge_time(tables: Tables) -> tuple[str, str]:
    """Figure 6 against simulated time."""
    return _judge_workers(tables, "6, time", "units of simulated time")


def judge_servers(tables: Tables) -> tuple[str, str]:
    """Figures 8 to 11: no speedup by servers."""
    table = tables["speedups"]
    row = table.sort_values("low").iloc[-1]
    return verdict(blr.no_speedup(table)), (
        "Iterations per worker of one server over those of S servers at equal mean loss: "
        f"{table['speedup'].min():.3f} to {table['speedup'].max():.3f} over 3, 5 and 7 servers of 1, 2, 4 "
        f"and 6 workers; of the 95% intervals that of {row['servers']:.0f} servers of "
        f"{row['workers']:.0f} begins highest, {row['low']:.3f} to {row['high']:.3f}. {blr.NO_SPEEDUP}")


def judge_servers_time(tables: Tables) -> tuple[str, str]:
    """Figure 7: no gain in time either."""
    ends = _ends(tables, "7")
    overlap = bool(ends["high"].min() >= ends["low"].max())
    words = ", ".join(f"{row['loss']:.4f} ({row['low']:.4f} to {row['high']:.4f}) for S = {row['servers']}"
                      for _, row in ends.iterrows())
    return verdict(overlap), (
        f"Mean loss at simulated time {ends['x'].iloc[0]:.0f}: {words}; the 95% intervals "
        f"{'overlap' if overlap else 'do not all overlap'}.")


def judge_bias(tables: Tables) -> tuple[str, str]:
    """One server with all workers against several with some each."""
    table, level = tables["divided"], float(tables["posterior"]["loss"].iloc[0])
    words = "; ".join(
        f"{row['servers']:.0f} servers of {row['workers']:.0f}: {row['loss'] - level:.4f}, "
        f"{(row['loss'] - level) / (row['alone'] - level):.1f} times as far, the difference being "
        f"{row['difference']:.4f} ({row['difference_low']:.4f} to {row['difference_high']:.4f})"
        for _, row in table.iterrows())
    return verdict(bool((table["difference_low"] > 0.0).all())), (
        f"The mean loss of one server of 6 is {table['alone'].iloc[0] - level:.4f} above the posterior's at "
        f"the end; {words}. The bounds' factor is S.")


def judge_variance(tables: Tables) -> tuple[str, str]:
    """The same comparison for the variance."""
    table = tables["divided"]
    holds = (table["variance_low"] <= 1.0) & (table["variance_high"] >= 1.0)
    words = "; ".join(f"{row['servers']:.0f} servers of {row['workers']:.0f}: {row['variance_ratio']:.2f} "
                      f"({row['variance_low']:.2f} to {row['variance_high']:.2f})"
                      for _, row in table.iterrows())
    return verdict(bool(holds.all())), (
        f"Variance of the averages over that of one server of 6 at equal iterations per worker: {words}. "
        "That of S independent chains is 1/S from the first update on; that of one chain falls with more "
        "updates only after it has mixed.")


CLAIMS = [
    *blr.on_a9a("Figure 6: the loss decreases faster with more workers, against iterations per worker.",
                "section 5.2.1 and appendix I", judge_workers),
    *blr.on_a9a("Figure 6: the loss decreases faster with more workers, against time.",
                "section 5.2.1 and appendix I", judge_time),
    *blr.on_a9a("Figures 8 to 11: several servers show no significant speedup on the logistic "
                "regression, however many workers each has.",
                "section 5.2.2 and appendix I", judge_servers),
    *blr.on_a9a("Figure 7: nor do they against time.",
                "section 5.2.2 and appendix I", judge_servers_time),
    Claim("One server with S workers has a smaller bias than S servers that share them: read for six "
          "workers in all.", "section 4", judge_bias),
    Claim("The variances of the two are the same: the bounds' statement, read for the variances at six "
          "workers in all.", "section 4", judge_variance),
    blr.networks_claim("MNIST and CIFAR-10, figures 6 to 11: the loss decreases faster with more workers and "
                       "with more servers.", "appendix I"),
]
