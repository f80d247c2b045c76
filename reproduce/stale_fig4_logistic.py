"""Stale gradients figure 4, a9a: test loss against iterations, 1 to 7 servers with 2 workers each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import _adult, plot
from . import _stale as sim
from . import _stale_logistic as blr
from ._adult import DATA
from ._stale_logistic import verdict
from .figure import FAIL, NOT_TESTABLE, ByScale, Claim, Drawing, Parameter, Tables, settings

__all__ = ["DATA"]

TITLE = "Stale SGHMC: test loss against iterations, 1 to 7 servers (a9a or a stand-in)"
PAPER = "Stale gradients figure 4 (a9a; MNIST and CIFAR-10 not reproduced)"
SHOWS = ("Bayesian logistic regression with several servers of 2 workers: the mean of the averaged test loss "
         "does not depend on their number; the spread of single runs falls like its root.")
COST = {"tiny": "1 s", "quick": "6 s", "paper": "8 min (on a busy machine)"}
PARAMETERS = [
    *_adult.PARAMETERS, blr.SERVERS, *blr.DYNAMICS,
    Parameter("workers_per_server", 2, "paper", "section 5.2.2: 2 workers a server"),
    Parameter("iterations", ByScale(20, 400, 400), "ours", "per worker; the paper's axis is not readable"),
    Parameter("n_replicas", ByScale(8, 64, 16), "ours", "the paper shows single runs"),
]


def compute(scale: str, files: Mapping[str, Path] | None = None) -> Tables:
    """Tables: data, setting, posterior, curves, speedups, variances (at the end, against one server's)."""
    p = settings(PARAMETERS, scale)
    data = _adult.adult(p, files or {})
    problem, loss = data.problem(p), _adult.TestLoss.of(data.test)
    made = blr.all_servers(p, problem, loss, p.workers_per_server, max(p.servers))
    per_worker = blr.grid(p.iterations)
    curves = [blr.loss_rows(blr.by_iteration(made[:n], per_worker), per_worker, "iterations", servers=n)
              for n in p.servers]
    return {"data": _adult.data_table(data), "setting": blr.setting(p, problem, [p.workers_per_server]),
            "posterior": blr.posterior_loss(p, problem, loss), "curves": pd.concat(curves),
            "speedups": pd.DataFrame([blr.speedup_row(p, made[:1], made[:n]) for n in p.servers if n > 1]),
            "variances": pd.DataFrame(_variances(p, made))}


def _variances(p: Any, made: list[blr.Server]) -> list[dict[str, Any]]:
    """Variances of the averages of S servers over those of single ones, all of them pooled."""
    ends = np.stack([one.averages[:, -1] for one in made], axis=1)
    return [{"servers": n, "share": 1.0 / n}
            | blr.variance_ratio(p, blr.by_iteration(made[:n], np.array([p.iterations]))[:, 0], ends)
            for n in p.servers if n > 1]


def draw(tables: Tables) -> Drawing:
    """Mean loss; spread of single runs; both against the number of servers."""
    drawing, ((first, second),) = plot.panels(2, 6.2, 4.5)
    blr.draw_losses(first, tables["curves"], "servers", "replicas (95% band), S", tables, 7.0)
    first.set(xlabel=sim.ITERATIONS_PER_WORKER, ylabel=blr.LOSS,
              title="mean loss: the number of servers does not show")
    blr.legend_below(first, tables)
    _draw_spread(second, tables)
    blr.headline(drawing, f"{_adult.data_text(tables['data'])}. Stale SGHMC from the origin, 2 workers a "
                          "server; h, B, J and the\n"
                          f"service times are ours. {blr.NO_LAW} Lines of different width coincide.\n"
                          f"{blr.NO_NETWORKS}")
    return drawing


def _draw_spread(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"]
    for (n, one), colour in zip(curves.groupby("servers"), blr.colours(), strict=False):
        ax.plot(one["x"], one["spread"], color=colour, linewidth=1.5, label=f"replicas, S = {n}")
    single = curves[curves["servers"] == 1]
    for n, colour in zip(sorted(curves["servers"].unique())[1:], blr.colours()[1:], strict=False):
        ax.plot(single["x"], single["spread"] / np.sqrt(n), color=colour, linestyle=":", linewidth=1.2,
                label=r"that of S = 1 over $\sqrt{S}$")
    ax.set(xscale="log", yscale="log", xlabel=sim.ITERATIONS_PER_WORKER,
           ylabel="standard deviation of single runs", title=r"spread: falls like $1/\sqrt{S}$")
    ax.set_ylim(0.35 * float(curves["spread"].min()), None)
    plot.once(ax, loc="lower right", fontsize=8, ncols=2)


def judge_speedup(tables: Tables) -> tuple[str, str]:
    """Is there a speedup in the mean loss?"""
    table = tables["speedups"]
    words = ", ".join(f"{row.speedup:.3f} ({row.low:.3f} to {row.high:.3f}) for S = {row.servers}"
                      for row in table.itertuples())
    return verdict(blr.no_speedup(table)), (
        f"Iterations per worker of one server over those of S servers at equal mean loss: {words} (95% "
        f"intervals). {blr.NO_SPEEDUP} Equal servers have the same mean, whatever their number.")


def judge_small(tables: Tables) -> tuple[str, str]:
    """Could the variance of one server be the reason?"""
    one = tables["curves"].query("servers == 1").iloc[-1]
    gap = abs(float(one["loss"]) - float(tables["posterior"]["loss"].iloc[0]))
    same = blr.no_speedup(tables["speedups"])
    return (FAIL if same else NOT_TESTABLE), (
        f"After {one['x']:.0f} iterations per worker the mean loss of one server is {gap:.4f} from the "
        f"posterior's, and single runs differ by {one['spread']:.4f} (standard deviation), which is "
        f"{'less' if one['spread'] < gap else 'more'}. But equal servers have the same mean whatever their "
        "variance, so that a larger one would not show a speedup in the mean either.")


def judge_variance(tables: Tables) -> tuple[str, str]:
    """Is the variance that of one server over S?"""
    table = tables["variances"]
    holds = (table["low"] <= table["share"]) & (table["share"] <= table["high"])
    words = ", ".join(f"{row.ratio:.3f} ({row.low:.3f} to {row.high:.3f}) for S = {row.servers}, "
                      f"where 1/S is {row.share:.3f}" for row in table.itertuples())
    return verdict(bool(holds.all())), (
        f"Variance of the averages of S servers over that of single ones, all seven pooled: {words} (95% "
        "intervals from resampled chains).")


CLAIMS = [
    *blr.on_a9a("On the logistic regression several servers show no significant speedup.",
                "section 5.2.2", judge_speedup),
    *blr.on_a9a("The reason is probably that the sample variance is too small for several servers to "
                "take effect.",
                "section 5.2.2", judge_small),
    Claim("The variance falls with the number of servers, by the leading term 1/T of Theorem 7 as its proof "
          "has it: like 1/S.", "Theorem 7", judge_variance),
    blr.networks_claim("MNIST and CIFAR-10: with more servers the loss decreases faster.", "section 5.2.2"),
]
