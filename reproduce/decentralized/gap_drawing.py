"""The picture of the figure on spectral gaps, from its tables."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import Drawing, Tables
from ..tables import among
from . import graphs, shared as de
from .batches import LOOKS as VIEWS

LOOKS = {graphs.CIRCULANT: (plot.COLOURS[1], "s"), graphs.LAZY: (plot.COLOURS[0], "o"),
         graphs.RANDOM: (plot.COLOURS[3], "D"), graphs.SINGLE: (plot.COLOURS[2], "^")}


def draw(tables: Tables) -> Drawing:
    """Average and agents at the small step size; both at the large one; against the number of agents."""
    drawing, axes = plot.panels(2, 6.6, 6.0, 2)
    every = tables["networks"]
    table = among(every, data_set=every["data_set"].min())
    step, large = (table["step_size"].agg(end) for end in ("min", "max"))
    for ax, column in zip(axes[0], ("average", "agents"), strict=True):
        _by_gap(ax, among(table, step_size=step), among(every, step_size=step), column)
        ax.set(title=rf"the {column}, $\eta$ = {_power(step)}")
    same = among(tables["equal"], step_size=step).sort_values("gap")
    axes[0, 0].plot(same["gap"], same["average"], color="#000000", linewidth=1.2,
                    label="the same with equal curvature")
    _replicas(axes[1, 0], among(table, step_size=large), tables["replicas"])
    _by_size(axes[1, 1], tables["sizes"], step)
    for ax in axes.ravel():
        plot.legend_below(ax, 2)
    return drawing


def _power(step: float) -> str:
    mantissa, exponent = f"{step:.0e}".split("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$".replace("$1 \\cdot ", "$")


def _by_gap(ax: Axes, table: pd.DataFrame, every: pd.DataFrame, column: str) -> None:
    words, *_ = VIEWS[column]
    ends = every.groupby("network")[["gap", column]].agg(["min", "max"]).to_numpy()
    ax.vlines(ends[:, 0], ends[:, 2], ends[:, 3], color=plot.GREY, linewidth=2.0, alpha=0.4,
              label=f"all {every['data_set'].nunique()} data sets")
    for family, (colour, marker) in LOOKS.items():
        one = among(table, family=family).sort_values("gap")
        alone = family == graphs.SINGLE
        ax.plot(one["gap"], one[column], marker, color=colour, markersize=6, label=f"exact law, {family}",
                linestyle="none" if alone or family == graphs.RANDOM else "-", linewidth=1.0)
        if alone:
            for x, y, name in zip(one["gap"], one[column], one["network"], strict=True):
                ax.annotate(name, (x, y), fontsize=8.5, xytext=(0, 7 if name == "star" else -12),
                            textcoords="offset points", ha="center")
    _bound(ax, table.sort_values("gap"), "gap", f"{column}_bound", words)
    ax.axhline(float(table["start"].iloc[0]), color=plot.COLOURS[4], linestyle="-.", linewidth=1.1,
               label="distance of the start")
    ax.set(xscale="log", yscale="log", xlabel=r"spectral gap $1 - \bar\gamma$",
           ylabel=rf"stationary $W_2$, {words}", ylim=plot.room(
               0.3 * float(table[column].min()), float(table[f"{column}_bound"].max()), 0.02))


def _bound(ax: Axes, table: pd.DataFrame, x: str, column: str, words: str, colour: str = "#000000") -> None:
    """Theorem 1's limit network by network: hollow points, grey where vacuous or outside the hypotheses."""
    outside = table["status"] != de.HOLD
    empty = (table[column] >= table["start"]) | outside
    for some, shade, remark in ((empty, plot.GREY, " (vacuous)"), (~empty, colour, "")):
        if some.any():
            ax.plot(table[x][some], table[column][some], linestyle="none", marker="_", markersize=11,
                    markeredgewidth=2.0, color=shade, label=f"Theorem 1, {words}{remark}")


def _replicas(ax: Axes, table: pd.DataFrame, runs: pd.DataFrame) -> None:
    ordered = table.sort_values("gap")
    for column, (words, colour, _) in VIEWS.items():
        ax.plot(ordered["gap"], ordered[column], "o", color=colour, markersize=4.5,
                label=f"exact law, {words}")
        down = runs[column] - runs[f"{column}_low"].clip(lower=1e-9)
        ax.errorbar(runs["gap"], runs[column], [down.clip(lower=0.0), runs[f"{column}_high"] - runs[column]],
                    fmt="x", color="#000000" if column == "agents" else "#404040", markersize=7, capsize=3,
                    linewidth=1.0, zorder=5,
                    label=f"replicas after {runs['round'].iloc[0]} iterations (95% interval)")
    plot.floor(ax, float(runs["floor"].mean()), f"{plot.FLOOR}, average")
    _bound(ax, ordered, "gap", "average_bound", "average")
    de.point_mass(ax, float(table["posterior_sd"].iloc[0]))
    ax.set(xscale="log", yscale="log", xlabel=r"spectral gap $1 - \bar\gamma$", ylabel=r"stationary $W_2$",
           title=rf"both, $\eta$ = {_power(float(table['step_size'].iloc[0]))}, with replicas",
           ylim=plot.room(0.7 * float(table["average"].min()), float(table["average_bound"].max()), 0.02))


def _by_size(ax: Axes, sizes: pd.DataFrame, step: float) -> None:
    scaled = sizes.assign(**{column: sizes[column] / sizes["posterior_sd"]
                             for column in ("agents", "average", "average_bound", "start")})
    for name in de.CONNECTED:
        one, network = among(scaled, network=name), de.NETWORKS[name]
        for (column, (words, *_)), style in zip(VIEWS.items(), ("--", "-"), strict=True):
            plot.exact(ax, one["n_clients"], one[column], network.colour,
                       f"exact law, {network.title}, {words}", linestyle=style, marker=network.marker,
                       markersize=4, linewidth=1.3)
        _bound(ax, one, "n_clients", "average_bound", f"average, {network.title}", network.colour)
    de.point_mass(ax, 1.0)
    ax.set(xscale="log", yscale="log", xlabel="number of agents N",
           ylabel=r"stationary $W_2$ / posterior's standard deviation",
           title=rf"more agents, 50 data each, $\eta$ = {_power(step)}",
           ylim=plot.room(float(scaled["average"].min()), float(scaled["average_bound"].max()), 0.02))
