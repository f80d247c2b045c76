"""Shared by the stale-gradient figures on logistic regression: how curves are drawn, and claims on a9a."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from ..claims import Claim, Finding, Judge, Tables, Unjudged
from ..verdicts import FAIL, NOT_TESTABLE, REPLICAS, Judgement, above, intervals, within
from . import adult
from .logistic import by_set

NEAR = 0.2
"""A speedup this near, as a share, is what a sentence says that is about curves read by eye."""
SEEN = 2.0
"""What one run can show by chance, in standard deviations of single runs."""

LOSS = "test loss averaged along the chain"
NO_LAW = "No exact law: the posterior is not Gaussian."
NO_NETWORKS = "The rows of MNIST and CIFAR-10 (convolutional networks) are not reproduced."
BAND = "Medians; bands from least to largest over data sets for the first and last curve"
ON_SETS = ("Every data set has chains and service times of its own and is one draw; intervals are right "
           "together with probability 99 percent. Splits of given files share rows, and their intervals "
           "are about splits.")

Looks = dict[str, Any]


def looks(count: int) -> list[Looks]:
    """Colours from dark to light and dashes in turn, for `count` ordered values."""
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.82, count))
    dashes = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1.2, 1.2)), (0, (9, 2)))
    return [{"color": matplotlib.colors.to_hex(shade), "linestyle": dashes[i % len(dashes)]}
            for i, shade in enumerate(shades)]


def draw_losses(ax: Axes, table: pd.DataFrame, name: str, label: str, tables: Tables) -> None:
    """A curve for each value of the column `name`, above the posterior's level."""
    values = sorted(table[name].unique().tolist())
    for value, look in zip(values, looks(len(values)), strict=True):
        one = table[table[name] == value]
        if value in (values[0], values[-1]):
            ax.fill_between(one["x"], one["low"], one["high"], color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(one["x"], one["loss"], label=f"{label} = {value}", linewidth=1.6, **look)
    ax.axhline(float(tables["posterior"]["loss"].median()), color="#000000", linestyle=":", linewidth=1.1,
               label="posterior (MH-HMC)")
    ax.set(xscale="log")


def draw_gains(ax: Axes, table: pd.DataFrame) -> None:
    """Differences to one server between the thin lines of their intervals."""
    counts = sorted(table["servers"].unique().tolist())
    for n, look in zip(counts, looks(len(counts)), strict=True):
        one = table[table["servers"] == n]
        for edge in ("low", "high"):
            ax.plot(one["x"], one[edge], linewidth=0.8, **look)
        ax.plot(one["x"], one["difference"], label=f"S = {n} minus S = 1", linewidth=1.6, **look)
    ax.axhline(0.0, color="#000000", linestyle=":", linewidth=1.1)
    ax.set(xscale="log")


def legend(ax: Axes, ncols: int = 3) -> None:
    """The legend below the panel."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=ncols, fontsize=9)


def headline(drawing: Drawing, *lines: str) -> None:
    """Lines above all panels: the data, and what is ours."""
    drawing.suptitle("\n".join(lines), fontsize=10, x=0.01, ha="left")


def networks(text: str, source: str) -> Unjudged:
    """What the paper says about the convolutional networks, which are not reproduced."""
    return Unjudged(text, source, "These rows are not reproduced: Bayesian convolutional networks on MNIST "
                    "and CIFAR-10 in Caffe, at its defaults of 2016, are more than a simulator of two cores "
                    "can do.", name="networks")


def on_a9a(text: str, source: str, judge: Judge, name: str, context: str = "",
           counted_in: str = "") -> list[Claim | Finding]:
    """The paper's claim, judged on its data only, and the same of the data at hand.

    The paper prints no step size for a9a, so that numbers at ours cannot contradict it.
    """
    def on_its_data(tables: Tables) -> Judgement:
        if not adult.is_real(tables["data"]):
            return Judgement(NOT_TESTABLE, f"The data are a {adult.STAND_IN}: give a9a's files with --data.")
        found = at_hand(tables)
        if found.verdict == FAIL:
            return Judgement(NOT_TESTABLE, f"Not at our step sizes, where the paper prints none: {found.why}")
        return found

    def at_hand(tables: Tables) -> Judgement:
        found, row = Judgement(*judge(tables)), tables["data"].iloc[0]
        return found._replace(why=f"{row['sets']} data sets of {row['n_train']:,} training rows, "
                                  f"{row['source']}. {found.why}")

    context = f"{context} {ON_SETS}".strip()
    return [Claim(text, source, on_its_data, name=f"{name}_a9a", rests_on=REPLICAS, context=context,
                  counted_in=counted_in),
            Finding(f"On the data at hand: {text[0].lower()}{text[1:]}", source, at_hand, name=name,
                    rests_on=REPLICAS, context=context)]


def all_positive(values: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
    """Whether the means of the columns of (data sets, n) are all above 0, with their intervals."""
    low, high = intervals(values)
    return above(low, high), low, high


SPEEDUP_READ = f"Read: the speedup of none is beyond {1.0 + NEAR:g}."


def no_speedup(table: pd.DataFrame, columns: list[str]) -> tuple[str, str]:
    """Whether no number of servers has a speedup; `columns` tell the rows of a data set apart."""
    values = by_set(table, "speedup", columns)
    low, high = intervals(values)
    most = int(np.argmax(high))
    return within(low, high, -np.inf, 1.0 + NEAR), (
        f"Iterations per worker of one server over those of S servers at equal mean loss: "
        f"{values.mean(axis=0).min():.3f} to {values.mean(axis=0).max():.3f}; of {len(low)} intervals the "
        f"one that reaches highest is {low[most]:.3f} to {high[most]:.3f}.")


def span(low: np.ndarray, high: np.ndarray, factor: float = 1.0) -> list[str]:
    """Intervals in words."""
    return [f"{a * factor:.4f} to {b * factor:.4f}" for a, b in zip(low, high, strict=True)]
