"""Shared by the stale-gradient figures on logistic regression: how curves are drawn, and claims on a9a."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import figure as fig, plot
from ..claims import Judge
from ..tables import among
from ..verdicts import Judgement, above, intervals
from . import shared as sim

NEAR = 0.2
"""A speedup this near, as a share, is what a sentence says that is about curves read by eye."""
SEEN = 2.0
"""What one run can show by chance, in standard deviations of single runs."""

LOSS = "test loss averaged along the chain"
NO_LAW = "No exact law: the posterior is not Gaussian."
NO_NETWORKS = "The rows of MNIST and CIFAR-10 (convolutional networks) are not reproduced."
BAND = "Medians; bands from least to largest over data sets for the first and last curve"
ON_SETS = ("Every split of the rows has chains and service times of its own and is one draw; intervals are "
           "right together with probability 99 percent. Splits share rows, and intervals are about splits.")
NOT_PRINTED = ("The paper prints no step size for a9a, and lengths of its runs cannot be read: ours can echo "
               "the sentence, not contradict it.")


def looks(table: pd.DataFrame, column: str) -> list[tuple[Any, pd.DataFrame, dict[str, Any]]]:
    """The ordered values of a column, their rows, and their looks: from dark to light, dashes in turn."""
    values = sorted(table[column].unique().tolist())
    dashes = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1.2, 1.2)), (0, (9, 2)))
    return [(value, among(table, **{column: value}),
             {"color": shade, "linestyle": dashes[i % len(dashes)]})
            for i, (value, shade) in enumerate(plot.shaded(values))]


def draw_medians(ax: Axes, table: pd.DataFrame, by: str, label: str, x: str = "x", y: str = "loss") -> None:
    """A curve for each value of the column `by`, with bands for the first and the last."""
    curves = looks(table, by)
    for value, one, look in curves:
        if value in (curves[0][0], curves[-1][0]):
            ax.fill_between(one[x], one["low"], one["high"], color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(one[x], one[y], label=f"{label} = {value}", linewidth=1.6, **look)
    ax.set(xscale="log")


def draw_losses(ax: Axes, table: pd.DataFrame, by: str, label: str, tables: fig.Tables) -> None:
    """Curves of the loss above the posterior's level."""
    draw_medians(ax, table, by, label)
    ax.axhline(float(tables["posterior"]["loss"].median()), color="#000000", linestyle=":", linewidth=1.1,
               label="posterior (MH-HMC)")
    ax.set(ylabel=LOSS)


def draw_gains(ax: Axes, table: pd.DataFrame) -> None:
    """Differences to one server between the thin lines of their intervals."""
    for n, one, look in looks(table, "servers"):
        ax.plot(one["x"], one[["low", "high"]], linewidth=0.8, **look)
        ax.plot(one["x"], one["difference"], label=f"S = {n} minus S = 1", linewidth=1.6, **look)
    ax.axhline(0.0, color="#000000", linestyle=":", linewidth=1.1)
    ax.set(xscale="log", ylabel="difference of the mean losses")


def headline(drawing: fig.Drawing, *lines: str) -> None:
    """Lines above all panels: the data, and what is ours."""
    drawing.suptitle("\n".join(lines), fontsize=10, x=0.01, ha="left")


def networks(text: str, source: str) -> fig.Unjudged:
    """What the paper says about the convolutional networks, which are not reproduced."""
    return fig.Unjudged(text, source, "These rows are not reproduced: Bayesian convolutional networks on "
                        "MNIST and CIFAR-10 in Caffe, at its defaults of 2016, are more than a simulator of "
                        "two cores can do.", "networks")


AVERAGED = ("Losses averaged over equal servers, as section 3.3 aggregates, have the same mean for every "
            "number of them, whatever they train: ")


def no_speedup(text: str, source: str) -> fig.Unjudged:
    """What the paper says about several equal servers, which means over runs bear out whatever they are."""
    return fig.Unjudged(text, source, AVERAGED + "in the mean over runs the sentence is true by "
                        "construction. In one run more servers reduce the spread, which figure "
                        "stale_fig4_logistic judges on its own.", "no_speedup")


def more_servers(text: str, source: str) -> fig.Unjudged:
    """What the paper says about several servers of networks."""
    return fig.Unjudged(text, source, AVERAGED + "a lower one can be that of single runs, or of averaged "
                        "outputs or parameters, as figure 5 may mean.", "more_servers")


def on_a9a(text: str, source: str, judge: Judge, name: str, context: str = "",
           counted_in: str = "", ours: str = "") -> list[fig.Claim | fig.Finding]:
    """The paper's claim, which step sizes of ours can echo alone, and as a finding it or `ours`."""
    def at_hand(tables: fig.Tables) -> Judgement:
        judgement, row = Judgement(*judge(tables)), tables["data"].iloc[0]
        return judgement._replace(why=f"{row['sets']} splits with {row['n_train']:,} training rows, "
                                      f"{row['source']}. {judgement.why}")

    context = f"{context} {ON_SETS}".strip()
    return [fig.Claim(text, source, at_hand, f"{name}_a9a", fig.REPLICAS, context, counted_in,
                      echo=NOT_PRINTED),
            fig.Finding(ours or f"On the data at hand: {text[0].lower()}{text[1:]}", source, at_hand, name,
                        fig.REPLICAS, context)]


def by_set(table: pd.DataFrame, value: str, columns: str | list[str]) -> np.ndarray:
    """A column as an array (data sets, values of `columns` in ascending order)."""
    return sim.by_set(table, value, columns).to_numpy()


def all_positive(values: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
    """Whether the means of the columns of (data sets, n) are all above 0, with their intervals."""
    low, high = intervals(values)
    return above(low, high), low, high


def undecided(verdict: str, low: np.ndarray, high: np.ndarray, least: Any = 0.0, most: Any = np.inf) -> str:
    """How many more draws would decide whether the means are from `least` to `most`, where that is open."""
    if verdict != fig.NOT_TESTABLE:
        return ""
    middle = 0.5 * (low + high)
    gap = np.minimum(np.abs(middle - least), np.abs(most - middle))
    factor = float(np.max((0.5 * (high - low) / gap) ** 2))
    return (f" About {np.ceil(factor):.0f} times as many splits with their chains would decide it, if the "
            "means stay." if factor > 1.0 else " Some are and some are not.")


def means(values: np.ndarray, digits: int = 4) -> list[str]:
    """The means of the columns of (data sets, n) with their intervals, in words."""
    return [f"{mean:.{digits}f} ({low:.4f} to {high:.4f})"
            for mean, low, high in zip(values.mean(axis=0), *intervals(values), strict=True)]
