"""Does the Gaussian surrogate predict short simulated chains of FA-HMC's logistic regression?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from .. import plot
from ..figure import FAIL, NOT_TESTABLE, PASS, REPLICAS, Finding, Tables
from ..verdicts import intervals, within
from . import errors, logistic, shared as sim

CLOSE = np.sqrt(2.0)
"""With both errors of a comparison within this factor, their ratio is right within a factor of two."""


def runs(p: Any, posterior: logistic.Posterior, cases: Mapping[str, tuple[fs.FAHMC, int]],
         seed: int) -> list[dict[str, Any]]:
    """Marginal errors of the last half of simulated chains, and of as many chains of the surrogate."""
    rng, rows = np.random.default_rng(seed), []
    reference = posterior.reference(p, seed)
    for number, (name, (algorithm, n_rounds)) in enumerate(cases.items()):
        chain = logistic.Chain(posterior.rounds.map(algorithm))
        drawn = chain.sample(n_rounds, p.n_chains, rng, n_rounds - n_rounds // 2)
        sample = drawn.reshape(-1, posterior.problem.dim)
        rows.append({"case": name,
                     "error": posterior.simulated(algorithm, n_rounds, p.n_chains, seed + number, reference),
                     "surrogate": errors.error_of_sample(sample, posterior.target) / posterior.unit})
    return rows


def ratios(short: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of simulated over predicted errors: rows by data set, columns by case."""
    logs = np.log(short["error"] / short["surrogate"])
    table = short.assign(logs=logs).pivot(index="data", columns="case", values="logs")
    return table[list(dict.fromkeys(short["case"]))]


def draw(ax: Axes, short: pd.DataFrame) -> None:
    """Ratio of every data set, and the interval of their mean, in each case."""
    table = ratios(short)
    low, high = (np.exp(limit) for limit in intervals(table))
    ax.axhspan(1.0 / CLOSE, CLOSE, color=plot.GREY, alpha=0.18, linewidth=0,
               label=r"within a factor $\sqrt{2}$")
    for place, name in enumerate(table):
        ax.plot(np.full(len(table), place - 0.12), np.exp(table[name]), "o", color=plot.COLOURS[4],
                markersize=4, alpha=0.7, label="a data set")
        ax.plot([place + 0.12] * 2, [low[place], high[place]], color="#000000", linewidth=2.5,
                solid_capstyle="butt", label="geometric mean, intervals of 99% together")
    ax.axhline(1.0, color="#000000", linewidth=0.8)
    ax.set_xticks(range(table.shape[1]), [str(name).replace(": ", "\n") for name in table], fontsize=8.5)
    ax.set_xlim(-0.6, table.shape[1] - 0.4)
    ax.set(yscale="log", xlabel="short chains", ylabel="simulated error / surrogate's",
           title="simulated logistic regression")
    ticks = [tick for tick in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
             if np.exp(table.to_numpy().min()) / 2 < tick < 2 * np.exp(table.to_numpy().max())]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    sim.legend_below(ax, 0.22)


def judge(tables: Tables) -> tuple[str, str]:
    """Geometric means of the ratios within a factor sqrt 2 of one."""
    table = ratios(tables["short"])
    low, high = intervals(table)
    verdict = within(low, high, -np.log(CLOSE), np.log(CLOSE))
    worst = int(np.argmax(np.maximum(np.abs(low), np.abs(high))))
    return verdict, (
        "Simulated over predicted error, geometric means with intervals of 99% together: "
        + ", ".join(f"{str(name).replace(': ', ', ')}: {np.exp(a):.2f} to {np.exp(b):.2f}"
                    for name, a, b in zip(table, low, high, strict=True))
        + ". " + {PASS: "All lie", FAIL: "Not all lie", NOT_TESTABLE: "Not all are sure to lie"}[verdict]
        + f" between {1.0 / CLOSE:.2f} and {CLOSE:.2f}; the farthest is that of {table.columns[worst]}.")


FINDING = Finding(
    "The Gaussian surrogate predicts the marginal errors of short simulated chains of the logistic "
    "regression within a factor of the root of two.", "section 5.1, figure 1", judge, name="surrogate",
    rests_on=REPLICAS, context="Then a ratio of two errors is right within a factor of two: smaller "
    "differences, as between the least errors of two methods, are the surrogate's alone. The second half of "
    "the rounds of all chains is pooled; every data set gives one ratio. A quadratic surrogate has no third "
    "derivatives, and the simulated errors are read against a finite sample of the posterior.")
