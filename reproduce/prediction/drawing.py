"""Panels of the figures on image data: scores against rounds, and what they are read against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..tables import among, groups
from .judging import NAMES, WORSE

MARKERS = "os^Dvp"
THIN: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (4, 1.5)), "markersize": 4, "markevery": 2,
                        "markerfacecolor": "white"}
"""Hollow markers tell these lines apart where there are no colours."""
HOLLOW, FILLED = "hollow: tuned on this score of test rows", "filled: tuned on validation rows (ours)"
EXACT = "exact posterior predictive (ours)"
MARKS = HOLLOW, FILLED, EXACT
HALVES = "two halves of the exact sample"
LONG = 200.0
TICKS = np.outer(10.0 ** np.arange(-4.0, 2.0), [1.0, 2.0, 3.0, 5.0]).ravel()


def looks(values: list[int]) -> dict[int, dict[str, Any]]:
    """Colour from dark to light in the order of the values, and a marker."""
    return {value: {"color": colour, "marker": marker} for (value, colour), marker in zip(
        plot.shaded(sorted(values)), MARKERS, strict=False)}


def plain_ticks(ax: Axes) -> None:
    """A logarithmic axis with numbers in plain words at 1, 2, 3 and 5; at powers of ten if it is long."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high > LONG * low:
        return
    ticks = [tick for tick in TICKS if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(low, high)


def alike(axes: Sequence[Axes]) -> None:
    """Panels beside each other with one axis: the same limits, and numbers and name at the first only."""
    low, high = zip(*(ax.get_ylim() for ax in axes), strict=True)
    for ax in axes:
        ax.set_ylim(min(low), max(high))
        if ax.get_yscale() == "log":
            plain_ticks(ax)
        if ax is not axes[0]:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)


def scores(ax: Axes, tables: dict[str, pd.DataFrame], part: str, score: str, name: str,
           title: str) -> None:
    """Mean and standard deviation over runs of a score against rounds, for each setting.

    `name` is the letter of the setting. With hollow markers: the tuning chain with the step size that is best
    by this score on the test rows, as the papers tune. Dotted: the exact posterior predictive, where there is
    one. The legend marks what the papers do not have.
    """
    curves = among(tables["curves"], part=part)
    look = looks(sorted(curves["setting"].unique()))
    for value, one in groups(curves, "setting"):
        by_round = one.groupby("round")[score]
        mean, spread, style = by_round.mean(), by_round.std(ddof=1), look[value]
        ax.plot(mean.index, mean, markersize=4, linewidth=1.4, label=f"{name} = {value}", **style)
        low, high = np.maximum(mean - spread, 0.3 * mean), mean + spread
        ax.fill_between(mean.index, low, high, color=style["color"], alpha=0.2, linewidth=0)
    tuning, each = among(tables["tuning"], part=part), among(tables["tuning_curves"], part=part)
    if len(tuning):
        for value, one in groups(tuning, "setting"):
            best = one["step"].iloc[int((WORSE[score] * one[score]).to_numpy().argmin())]
            thin = among(each, setting=value, step=best)
            ax.plot(thin["round"], thin[score], **look[value] | THIN)
        ax.plot([], [], color=plot.GREY, marker="o", label=HOLLOW, **THIN)
        ax.plot([], [], color=plot.GREY, marker="o", markersize=4, linewidth=1.4, label=FILLED)
    exact = among(tables["facts"], part=part).iloc[0].get(f"exact_{score}")
    if pd.notna(exact):
        ax.axhline(exact, color="#000000", linestyle=":", linewidth=1.4, label=EXACT)
    if score != "accuracy":
        plain_ticks(ax)
    ax.set(xlabel="communication rounds", ylabel=NAMES[score], title=title)


def variations(ax: Axes, tables: dict[str, pd.DataFrame], name: str) -> None:
    """Distance of every run's predictive from the exact one, by setting."""
    table = tables["distances"]
    values = sorted(table["setting"].unique())
    look = looks(values)
    for place, value in enumerate(values):
        own = among(table, setting=value)["variation"]
        ax.plot(np.full(len(own), place), own, linestyle="none", markersize=5, **look[value])
    ax.axhline(tables["facts"]["floor"].iloc[0], color=plot.GREY, linestyle="--", label=HALVES)
    ax.set_xticks(range(len(values)), [f"{name} = {value}" for value in values])
    ax.set(ylabel="total variation", xlabel="each run, mean over test rows",
           title="ours: to the exact predictive", xlim=(-0.4, len(values) - 0.6))
    plain_ticks(ax)


def against_gradients(ax: Axes, tables: dict[str, pd.DataFrame], part: str, name: str, title: str) -> None:
    """Mean log loss against gradient evaluations of a client, which differ at equal rounds."""
    curves = among(tables["curves"], part=part)
    look = looks(sorted(curves["setting"].unique()))
    for value, one in groups(curves, "setting"):
        mean = one.groupby("gradients")["nll"].mean()
        ax.plot(mean.index, mean, markersize=4, linewidth=1.4, label=f"{name} = {value}", **look[value])
    ax.set(xscale="log", xlabel="gradient evaluations of a client", ylabel=NAMES["nll"], title=title)
    plain_ticks(ax)
