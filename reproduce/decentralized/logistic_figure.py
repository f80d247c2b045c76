"""Pictures of decentralized logistic regression: what figures 5 to 8 share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .. import plot
from ..figure import ByScale, Drawing, Parameter, Tables
from ..verdicts import MIN_SETS, intervals
from .shared import CONNECTED, HOLD, NETWORKS, VIOLATED, among, remark

SHARED = [
    Parameter("n_clients", 6, "paper", "section 5.2: N = 6"),
    Parameter("batch_size", 32, "paper", "section 5.2: b = 32; drawn with replacement, scaled by n_i / b"),
    Parameter("n_runs", ByScale(12, 100, 100), "paper", "section 5.2: 100 independent runs; of the curves"),
    Parameter("n_data_sets", MIN_SETS, "ours", "data sets, or dealings of the data to the agents; the "
              "paper has one. Curves and distances are of the first"),
    Parameter("n_set_runs", ByScale(6, 10, 20), "ours", "runs on each of them, in pairs between networks"),
    Parameter("n_rounds", ByScale(20, 200, 1000), "ours", "iterations of the accuracies; not printed"),
    Parameter("distance_rounds", ByScale(40, 2000, 20000), "ours", "iterations of W2: longer, to see an end"),
    Parameter("start", 0.0, "ours", "all agents start at the origin; not printed"),
    Parameter("agent", 0, "ours", "of parts dealt at random; the paper's is randomly picked"),
    Parameter("label_sign", "corrected", "ours", "the loss of (55) is that of y = 1 for every label"),
    Parameter("data_seed", 0, "ours", "of simulated data; the next data set has the next seed"),
    Parameter("split_seed", 0, "ours", "of the order in which data are dealt to the agents, likewise"),
    Parameter("seed", 1, "ours", "of the runs, likewise, and of the reference sample"),
    Parameter("reference_chains", ByScale(20, 100, 400), "ours", "Metropolis-adjusted chains"),
    Parameter("reference_draws", ByScale(20, 100, 400), "ours", "of each of them"),
    Parameter("reference_leapfrogs", 6, "ours", "of each draw"),
    Parameter("reference_warmup", 20, "ours", "draws left out, from starts of the Laplace law"),
    Parameter("reference_step", 0.3, "ours", "leapfrog step in units of the Laplace law's spreads"),
]


def without(parameters: list[Parameter], *names: str) -> list[Parameter]:
    """All but those of these names."""
    return [item for item in parameters if item.name not in names]


def draw(tables: Tables, method: str, other: str = "",
         last: Callable[[Axes, Tables], None] | None = None) -> Drawing:
    """Accuracy on three networks; below, differences on all data sets, W2, and what `last` draws."""
    drawing = Drawing(figsize=(15.6, 10.2), layout="constrained")
    lower = "ddeeff" if last else "dddeee"
    axes = drawing.subplot_mosaic([list("aabbcc"), list(lower)])
    shown = tables["curves"]
    bottom = float((shown["mean"] - shown["sd"].where(shown["method"] == "this", 0.0)).min()) - 0.005
    for letter, name in zip("abc", NETWORKS, strict=True):
        _accuracy(axes[letter], tables, name, method, other)
        axes[letter].set(xscale="log", ylim=(bottom, None), xlabel="iteration k",
                         title=f"({letter}) {NETWORKS[name].title}: one agent")
        axes[letter].sharey(axes["a"])
    axes["a"].set_ylabel("accuracy over the data set")
    _differences(axes["d"], tables)
    _distance(axes["e"], tables)
    if last:
        last(axes["f"], tables)
    for letter in "abcde":
        legend_below(axes[letter], gap=0.21 if letter == "e" else 0.17)
    return drawing


def legend_below(ax: Axes, n_columns: int = 1, gap: float = 0.17) -> None:
    """A legend under the panel, `gap` panel heights below it."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -gap), ncols=n_columns, fontsize=9.5, frameon=False)


def _accuracy(ax: Axes, tables: Tables, name: str, method: str, other: str) -> None:
    fact = tables["setting"].iloc[0]
    draw_posterior(ax, fact["posterior_accuracy"], fact["posterior_sd"])
    if other:
        one = among(tables["curves"], network=name, method="other")
        draw_curve(ax, one, plot.GREY, other, "--", band=False)
    draw_curve(ax, among(tables["curves"], network=name, method="this"), NETWORKS[name].colour, method)
    said = among(tables["hypotheses"], network=name, data_set=0).iloc[0]
    remark(ax, {HOLD: f"{said['theorem']}: hypotheses hold",
                VIOLATED: f"outside the range of {said['theorem']}:\n{said['symbols']}"}.get(
        str(said["status"]), f"{said['theorem']} does not apply:\n{said['symbols']}"), 0.98, 0.03)


def draw_posterior(ax: Axes, mean: float, sd: float, name: str = "posterior (reference): mean, sd") -> None:
    """Accuracy of draws of the posterior."""
    ax.axhspan(mean - sd, mean + sd, color="#000000", alpha=0.10, linewidth=0)
    ax.axhline(mean, color="#000000", linestyle="-.", linewidth=1.1, label=name)


def draw_curve(ax: Axes, one: pd.DataFrame, colour: str, name: str, line: str = "-",
               band: bool = True) -> None:
    """Mean accuracy of the runs with its interval, and their standard deviation."""
    x = one["round"]
    if band:
        ax.fill_between(x, one["mean"] - one["sd"], one["mean"] + one["sd"], color=colour, alpha=0.16,
                        linewidth=0)
    ax.fill_between(x, one["low"], one["high"], color=colour, alpha=0.45, linewidth=0)
    ax.plot(x, one["mean"], color=colour, linestyle=line, linewidth=1.6,
            label=f"{name}: mean of the runs (95% band)" + (", pale: sd" if band else ""))


def draw_differences(ax: Axes, table: pd.DataFrame) -> None:
    """Accuracy minus that of the disconnected network, on every data set, with intervals of its runs."""
    ends = intervals(table.pivot(index="data_set", columns="network", values="difference")[list(CONNECTED)])
    for place, name, low, high in zip((-0.12, 0.12), CONNECTED, *ends, strict=True):
        one, network = among(table, network=name), NETWORKS[name]
        errors = np.abs(one[["low", "high"]].to_numpy().T - one["difference"].to_numpy())
        ax.errorbar(one["data_set"] + 1 + place, one["difference"], yerr=errors, color=network.colour,
                    marker=network.marker, markersize=4.5, linestyle="none", linewidth=1.1,
                    label=f"{network.title} (bars: 95%, the set's runs)")
        ax.axhspan(low, high, color=network.colour, alpha=0.13, linewidth=0,
                   label=f"{network.title}: interval of the mean (99% for both)")
    ax.axhline(0.0, color="#000000", linewidth=0.8)
    ax.set_xticks(sorted(table["data_set"].unique() + 1))


def unit_of(tables: Tables) -> str:
    """What one of the independent draws is called."""
    return str(tables["setting"]["units"].iloc[0]).removesuffix("s")


def _differences(ax: Axes, tables: Tables) -> None:
    draw_differences(ax, tables["contrasts"])
    units = tables["setting"]["units"].iloc[0]
    ax.set(xlabel=f"number of the {unit_of(tables)}", ylabel="accuracy minus the disconnected one's",
           title=f"(d) late accuracies on {len(tables['contrasts']) // 2} {units}")


def _distance(ax: Axes, tables: Tables) -> None:
    seen, spread = tables["distances"], float(tables["setting"]["spread"].iloc[0])
    seen = seen[seen["round"] > 0]
    looks = {"complete": ("-", 4.5, 0.45), "ring": ("--", 1.6, 1.0), "disconnected": ("-", 1.6, 1.0)}
    for name, network in NETWORKS.items():
        one, (line, width, alpha) = among(seen, network=name), looks[name]
        ax.fill_between(one["round"], one["low"], one["high"], color=network.colour, alpha=0.13, linewidth=0)
        ax.plot(one["round"], one["w2"], color=network.colour, linestyle=line, linewidth=width, alpha=alpha,
                label=f"{network.title}: mean of the agents (99% bands)")
    ax.axhline(spread, color=plot.COLOURS[3], linestyle="-.", linewidth=1.3,
               label="a point mass at the posterior's mean")
    dots = among(tables["sets"], network="complete")
    least = spread * dots["least_w2"] / dots["spread"]
    ax.plot([tables["curves"]["round"].max()] * len(least), least, color=NETWORKS["complete"].colour,
            marker="_", markersize=9, linestyle="none",
            label=f"fully connected, at least, on all {len(least)} (in units of the point mass)")
    low = 0.6 * min(float(seen["w2"].min()), spread, float(least.min()))
    high = 1.1 * max(float(seen["high"].max()), float(least.max()))
    floor = among(seen, network="complete")
    if (floor["floor"] > low).any():
        ax.plot(floor["round"], floor["floor"], color="#000000", linestyle=":", linewidth=1.1,
                label=f"{plot.FLOOR}, fully connected")
    ax.set(xscale="log", yscale="log" if high > 10.0 * low else "linear", ylim=(low, high),
           xlabel="iteration k" + _bounds(tables), ylabel=r"$W_2$(fitted law, posterior)",
           title=f"(e) ours: distance to the posterior, first {unit_of(tables)}")


def _bounds(tables: Tables) -> str:
    """The theorem's values at the end, in words."""
    theorem = tables["hypotheses"]["theorem"].iloc[0]
    if "bounds" not in tables:
        return f"\n({theorem} has no value here)"
    texts = [f"{NETWORKS[row['network']].title} {row['bound']:.1e}" for _, row in tables["bounds"].iterrows()]
    return f"\n({theorem} at the end: {', '.join(texts)}; vacuous, off the scale)"
