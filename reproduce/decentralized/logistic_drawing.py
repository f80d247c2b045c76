"""Pictures of decentralized logistic regression: what figures 5 to 10 share, and that of figures 5 to 8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import Drawing, Tables
from ..tables import among
from ..verdicts import intervals
from . import shared as de


def units_of(tables: Tables) -> str:
    """What the independent draws are called."""
    return str(tables["setting"]["units"].iloc[0])


def wide(table: pd.DataFrame, column: str, columns: str | list[str] = "network") -> pd.DataFrame:
    """A row for each data set."""
    return table.pivot(index="data_set", columns=columns, values=column)


def draw(tables: Tables, method: str, other: str = "",
         last: Callable[[Axes, Tables], None] | None = None) -> Drawing:
    """Accuracy on three networks; below, differences on all data sets, W2, and what `last` draws."""
    drawing = Drawing(figsize=(plot.WIDEST, 10.2), layout="constrained")
    axes = drawing.subplot_mosaic([list("aabbcc"), list("ddeeff" if last else "dddeee")])
    curves = tables["curves"]
    bottom = float((curves["mean"] - curves["sd"].where(curves["method"] == "this", 0.0)).min()) - 0.005
    for letter, name in zip("abc", de.NETWORKS, strict=True):
        _accuracy(axes[letter], tables, name, method, other)
        axes[letter].set(xscale="log", ylim=(bottom, None), xlabel="iteration k",
                         title=f"({letter}) {de.NETWORKS[name].title}: one agent")
        axes[letter].sharey(axes["a"])
    axes["a"].set_ylabel("accuracy over the data set")
    _differences(axes["d"], tables)
    _distance(axes["e"], tables)
    if last:
        last(axes["f"], tables)
    for letter in "abcde":
        legend_below(axes[letter])
    return drawing


def legend_below(ax: Axes, columns: int = 1) -> None:
    """A legend under the panel, without a frame."""
    plot.legend_below(ax, columns, fontsize=9.5, frameon=False)


def _accuracy(ax: Axes, tables: Tables, name: str, method: str, other: str) -> None:
    facts, curves = tables["setting"].iloc[0], among(tables["curves"], network=name)
    draw_posterior(ax, facts["posterior_accuracy"], facts["posterior_sd"], "reference")
    if other:
        draw_curve(ax, among(curves, method="other"), plot.GREY, other, "--", band=False)
    draw_curve(ax, among(curves, method="this"), de.NETWORKS[name].colour, method)
    theorem = among(tables["hypotheses"], network=name, data_set=0).iloc[0]
    text = {de.HOLD: "{theorem}: hypotheses hold", de.VIOLATED: "outside the range of {theorem}:\n{symbols}",
            de.NOT_APPLICABLE: "{theorem} does not apply:\n{symbols}"}[theorem["status"]]
    ours = f"ours, features {theorem['features']}:\n" if "features" in theorem else ""
    de.remark(ax, ours + text.format(**theorem), 0.98, 0.03)


def draw_posterior(ax: Axes, mean: float, sd: float, source: str) -> None:
    """Accuracy of draws of the posterior."""
    ax.axhspan(mean - sd, mean + sd, color="#000000", alpha=0.10, linewidth=0)
    ax.axhline(mean, color="#000000", linestyle="-.", linewidth=1.1,
               label=f"ours: posterior ({source}), mean, sd")


def draw_curve(ax: Axes, one: pd.DataFrame, colour: str, name: str, line: str = "-",
               band: bool = True) -> None:
    """Mean accuracy of the runs with its interval, and their standard deviation."""
    x = one["round"]
    if band:
        ax.fill_between(x, one["mean"] - one["sd"], one["mean"] + one["sd"], color=colour, alpha=0.16,
                        linewidth=0)
        for side in (-1.0, 1.0):  # without colours the pale band is lost
            ax.plot(x, one["mean"] + side * one["sd"], color=colour, linestyle=":", linewidth=1.0)
    ax.fill_between(x, one["low"], one["high"], color=colour, alpha=0.45, linewidth=0)
    ax.plot(x, one["mean"], color=colour, linestyle=line, linewidth=1.6,
            label=f"{name}: mean of the runs (95% band)" + (", dotted: sd" if band else ""))


def draw_differences(ax: Axes, one: pd.DataFrame, network: de.Network, place: float, label: str,
                     **options: Any) -> None:
    """Accuracy minus that of the disconnected network, on every data set, with intervals of its runs."""
    errors = np.abs(one[["low", "high"]].to_numpy().T - one["difference"].to_numpy())
    ax.errorbar(one["data_set"] + 1 + place, one["difference"], yerr=errors, color=network.colour,
                marker=network.marker, markersize=4.5, linestyle="none", label=label, **options)
    ax.set(xticks=sorted(one["data_set"] + 1), ylabel="accuracy minus the disconnected one's")


def unit_of(tables: Tables) -> str:
    """What one of the independent draws is called."""
    return units_of(tables).removesuffix("s")


def _differences(ax: Axes, tables: Tables) -> None:
    table = tables["contrasts"]
    ends = intervals(wide(table, "difference")[list(de.CONNECTED)])
    looks = zip((-0.12, 0.12), (":", "--"), de.CONNECTED, *ends, strict=True)
    for place, line, name, low, high in looks:
        network = de.NETWORKS[name]
        draw_differences(ax, among(table, network=name), network, place,
                         f"{network.title} (bars: 95%, the set's runs)", linewidth=1.1)
        ax.axhspan(low, high, color=network.colour, alpha=0.13, linewidth=0)
        for end, text in ((low, f"{network.title}: interval of the mean (99% for both)"), (high, None)):
            ax.axhline(end, color=network.colour, linestyle=line, linewidth=1.3, label=text)
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    ax.set(xlabel=f"number of the {unit_of(tables)}",
           title=f"(d) ours: late accuracies on {len(table) // 2} {units_of(tables)}")


def _distance(ax: Axes, tables: Tables) -> None:
    spread = float(tables["setting"]["spread"].iloc[0])
    w2 = tables["distances"][tables["distances"]["round"] > 0]
    looks = {"complete": ("-", 4.5, 0.45), "ring": ("--", 1.6, 1.0), "disconnected": ("-", 1.6, 1.0)}
    for name, (line, width, alpha) in looks.items():
        one, network = among(w2, network=name), de.NETWORKS[name]
        ax.fill_between(one["round"], one["low"], one["high"], color=network.colour, alpha=0.13, linewidth=0)
        ax.plot(one["round"], one["w2"], color=network.colour, linestyle=line, linewidth=width, alpha=alpha,
                label=f"{network.title}: mean of the agents (99% bands)")
    de.point_mass(ax, spread, 1.3)
    dots = among(tables["sets"], network="complete")
    least = spread * dots["least_w2"] / dots["spread"]
    ax.plot([tables["curves"]["round"].max()] * len(least), least, color=de.NETWORKS["complete"].colour,
            marker="_", markersize=9, linestyle="none",
            label=f"fully connected, at least, on all {len(least)} (in units of the point mass)")
    low = 0.6 * min(float(w2["w2"].min()), spread, float(least.min()))
    high = 1.1 * max(float(w2["high"].max()), float(least.max()))
    floor = among(w2, network="complete")
    if (floor["floor"] > low).any():
        ax.plot(floor["round"], floor["floor"], color="#000000", linestyle=":", linewidth=1.1,
                label=f"{plot.FLOOR}, fully connected")
    ax.set(xscale="log", yscale="log" if high > 10.0 * low else "linear", ylim=(low, high),
           xlabel=f"iteration k\n({_bounds(tables)})", ylabel=r"$W_2$(fitted law, posterior)",
           title=f"(e) ours: distance to the posterior, first {unit_of(tables)}")


def _bounds(tables: Tables) -> str:
    """The theorem's values at the end, in words."""
    theorem = tables["hypotheses"]["theorem"].iloc[0]
    if "bounds" not in tables:
        return f"{theorem} has no value here"
    values = zip(tables["bounds"]["network"], tables["bounds"]["bound"], strict=True)
    texts = [f"{de.NETWORKS[name].title} {value:.1e}" for name, value in values]
    return f"{theorem} at the end: {', '.join(texts)}; vacuous, off the scale"
