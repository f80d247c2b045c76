"""DE-SGLD: stationary W2 of average and agents against the spectral gap, with Theorem 1 beside it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from theory.rates import loglog_slope

from . import _decentralized as de
from . import _decentralized_graphs as graphs
from . import _decentralized_linear as linear
from . import plot
from ._fa_hmc import largest_allowed
from ._fa_ld import tiny
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "DE-SGLD: stationary W2 against the spectral gap"
PAPER = "ours, for DE-SGLD theorem 1 and remark 3"
SHOWS = ("Exact stationary W2 of average and agents over families of networks, at a small and a large step "
         "size, with replicas and Theorem 1; and against the number of agents.")
COST = {"tiny": "3 s", "quick": "8 s", "paper": "2 min"}
PARAMETERS = [
    Parameter("n_clients", 36, "ours", "agents: a square, so that there is a grid"),
    Parameter("n_data", 1800, "ours", "50 an agent as in section 5.1"),
    linear.DIM, linear.PRIOR, linear.NOISE, linear.DATA_SEED,
    Parameter("step_sizes", [1e-5, 6e-4], "ours",
              "within Theorem 1's range on every network; at the small one it says something on some"),
    Parameter("neighbours", ByScale([1, 6, 18], list(range(1, 19)), list(range(1, 19))), "ours",
              "k of the circles with k neighbours on either side; 18 is the complete graph"),
    Parameter("lazy_shares", ByScale([0.01, 0.3], [0.003, 0.01, 0.03, 0.1, 0.3, 0.6],
                                     [0.001, 0.003, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.3, 0.6, 0.9]), "ours",
              "W = s (complete) + (1 - s) I: its gap is s"),
    Parameter("chances", ByScale([0.1], [0.02, 0.05, 0.1, 0.2, 0.4],
                                 [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6]), "ours",
              "of a link of the random graphs"),
    Parameter("sizes", ByScale([4, 16], [4, 6, 10, 16, 25, 40, 64, 100],
                               [4, 6, 10, 16, 25, 40, 64, 100, 160]), "ours", "agents of the last panel"),
    Parameter("simulated", ["path", "k = 1", "star", "grid", "k = 6", "k = 18"], "ours",
              "networks with replicas"),
    Parameter("n_rounds", ByScale(200, 600, 2000), "ours", "iterations of the replicas, large step size"),
    Parameter("n_replicas", ByScale(256, 2048, 16384), "ours", "of every simulated network"),
    Parameter("seed", 1, "ours", "of the replicas"),
]
LOOKS = {graphs.CIRCULANT: (plot.COLOURS[1], "s"), graphs.LAZY: (plot.COLOURS[0], "o"),
         graphs.RANDOM: (plot.COLOURS[3], "D"), graphs.SINGLE: (plot.COLOURS[2], "^")}
NEAR = 0.1
"""Gaps within 10% of each other count as equal."""


def compute(scale: str) -> Tables:
    """Tables: networks, sizes, replicas."""
    p = settings(PARAMETERS, scale)
    return {"networks": graphs.over_networks(p), "sizes": graphs.over_sizes(p),
            "replicas": graphs.replicas(p)}


def draw(tables: Tables) -> Drawing:
    """Average and agents at the small step size; both at the large one; against the number of agents."""
    drawing, axes = plot.panels(2, 6.0, 4.7, 2)
    table = tables["networks"]
    small, large = (de.among(table, step_size=step) for step in (table["step_size"].min(),
                                                                 table["step_size"].max()))
    step = float(small["step_size"].iloc[0])
    _by_gap(axes[0, 0], small, "average", "average")
    _by_gap(axes[0, 1], small, "agents", "mean of the agents")
    axes[0, 0].set(title=rf"the average, $\eta$ = {_power(step)}: equal gaps, unequal errors")
    axes[0, 1].set(title=rf"the agents, $\eta$ = {_power(step)}: equal gaps, unequal errors")
    _replicas(axes[1, 0], large, tables["replicas"])
    _by_size(axes[1, 1], tables["sizes"], step)
    return drawing


def _power(step: float) -> str:
    mantissa, exponent = f"{step:.0e}".split("e")
    return rf"${mantissa} \cdot 10^{{{int(exponent)}}}$".replace("$1 \\cdot ", "$")


def _by_gap(ax: Axes, table: pd.DataFrame, column: str, words: str) -> None:
    for family, (colour, marker) in LOOKS.items():
        one = de.among(table, family=family).sort_values("gap")
        alone = family == graphs.SINGLE
        ax.plot(one["gap"], one[column], marker, color=colour, markersize=6, label=f"exact law, {family}",
                linestyle="none" if alone or family == graphs.RANDOM else "-", linewidth=1.0)
        if alone:
            for x, y, name in zip(one["gap"], one[column], one["network"], strict=True):
                ax.annotate(name, (x, y), fontsize=7.5, xytext=(0, 7 if name == "star" else -12),
                            textcoords="offset points", ha="center")
    if column == "average":
        ordered = table.sort_values("gap")
        ax.plot(ordered["gap"], ordered["average_equal"], color="#000000", linewidth=1.2,
                label="exact law, the same with equal curvature")
    _bound(ax, table.sort_values("gap"), "gap", f"{column}_bound", words)
    ax.axhline(float(table["start"].iloc[0]), color=plot.COLOURS[4], linestyle="-.", linewidth=1.1,
               label="distance of the start")
    ax.set(xscale="log", yscale="log", xlabel=r"spectral gap $1 - \bar\gamma$",
           ylabel=rf"stationary $W_2$, {words}")
    ax.set_ylim(*plot.room(0.3 * float(table[column].min()), float(table[f"{column}_bound"].max()), 0.3))
    plot.once(ax, loc="upper right", fontsize=7.6)


def _bound(ax: Axes, table: pd.DataFrame, x: str, column: str, words: str, colour: str = "#000000") -> None:
    """Theorem 1's limit network by network: hollow points, grey where vacuous or outside the hypotheses."""
    outside = table["status"] != de.HOLD
    empty = (table[column] >= table["start"]) | outside
    for some, shade, remark in ((empty, plot.GREY, " (vacuous)"), (~empty, colour, "")):
        if some.any():
            ax.plot(table[x][some], table[column][some], linestyle="none", marker="_", markersize=11,
                    markeredgewidth=2.0, color=shade, label=f"bound, Theorem 1, {words}{remark}")


def _replicas(ax: Axes, table: pd.DataFrame, seen: pd.DataFrame) -> None:
    ordered = table.sort_values("gap")
    for column, words, colour in (("agents", "mean of the agents", plot.COLOURS[1]),
                                  ("average", "average", plot.COLOURS[0])):
        ax.plot(ordered["gap"], ordered[column], "o", color=colour, markersize=4.5,
                label=f"exact law, {words}")
        low = seen[column] - seen[f"{column}_low"].clip(lower=1e-9)
        ax.errorbar(seen["gap"], seen[column], [low.clip(lower=0.0), seen[f"{column}_high"] - seen[column]],
                    fmt="x", color="#000000" if column == "agents" else "#404040", markersize=7, capsize=3,
                    linewidth=1.0, zorder=5,
                    label=f"replicas after {seen['round'].iloc[0]} iterations (95% interval)")
    plot.floor(ax, float(seen["floor"].mean()), f"{plot.FLOOR}, average")
    _bound(ax, ordered, "gap", "average_bound", "average")
    ax.axhline(float(table["posterior_sd"].iloc[0]), color=plot.COLOURS[3], linestyle="-.", linewidth=1.1,
               label="a point mass at the posterior's mean")
    ax.set(xscale="log", yscale="log", xlabel=r"spectral gap $1 - \bar\gamma$", ylabel=r"stationary $W_2$",
           title=rf"both, $\eta$ = {_power(float(table['step_size'].iloc[0]))}, with replicas")
    ax.set_ylim(*plot.room(0.7 * float(table["average"].min()), float(table["average_bound"].max()), 0.3))
    plot.once(ax, loc="upper right", fontsize=7.6)


def _by_size(ax: Axes, sizes: pd.DataFrame, step: float) -> None:
    for name in de.CONNECTED:
        one, network = de.among(sizes, network=name), de.NETWORKS[name]
        for column, style in (("agents", "--"), ("average", "-")):
            words = "mean of the agents" if column == "agents" else "average"
            plot.exact(ax, one["n_clients"], one[column] / one["posterior_sd"], network.colour,
                       f"exact law, {network.title}, {words}", linestyle=style, marker=network.marker,
                       markersize=4, linewidth=1.3)
        scaled = one.assign(**{column: one[column] / one["posterior_sd"]
                               for column in ("average_bound", "start")})
        _bound(ax, scaled, "n_clients", "average_bound", f"average, {network.title}", network.colour)
    ax.axhline(1.0, color=plot.COLOURS[3], linestyle="-.", linewidth=1.1,
               label="a point mass at the posterior's mean")
    ax.set(xscale="log", yscale="log", xlabel="number of agents N",
           ylabel=r"stationary $W_2$ / posterior's standard deviation",
           title=rf"more agents, 50 data each, $\eta$ = {_power(step)}")
    top = float((sizes["average_bound"] / sizes["posterior_sd"]).max())
    ax.set_ylim(*plot.room(float((sizes["average"] / sizes["posterior_sd"]).min()), top, 0.34))
    plot.once(ax, loc="upper left", fontsize=7.6)


def _pairs(table: pd.DataFrame) -> list[tuple[pd.Series, pd.Series]]:
    """Pairs of networks at the same step size, the one with the smaller gap first."""
    found = []
    for _, one in table.groupby("step_size", sort=False):
        rows = [row for _, row in one.sort_values("gap").iterrows()]
        found += [(a, b) for i, a in enumerate(rows) for b in rows[i + 1:]]
    return found


def judge_all(tables: Tables) -> tuple[str, str]:
    """Pairs of networks where the larger gap has the larger distance."""
    apart = [(a, b) for a, b in _pairs(tables["networks"]) if b["gap"] > (1.0 + NEAR) * a["gap"]]
    wrong = {name: [(b[name] / a[name], a, b) for a, b in apart if b[name] > 1.01 * a[name]]
             for name in ("average", "agents")}
    texts = []
    for name, found in wrong.items():
        text = f"{name}: {len(found)} of {len(apart)}"
        if found:
            ratio, a, b = max(found, key=lambda item: item[0])
            text += (f" (by {ratio:.1f} times for {b['family']}, {b['network']}, gap {b['gap']:.3g}, against "
                     f"{a['family']}, {a['network']}, gap {a['gap']:.3g})")
        texts.append(text)
    return (FAIL if any(wrong.values()) else PASS), (
        "Pairs of networks at the same step size in which the one with the larger gap is further away: "
        + "; ".join(texts) + ".")


def judge_family(tables: Tables) -> tuple[str, str]:
    """The same within the two families that are ordered by their gap."""
    bad, total = [], 0
    for _, one in tables["networks"].groupby(["family", "step_size"], sort=False):
        if one["family"].iloc[0] not in (graphs.CIRCULANT, graphs.LAZY):
            continue
        rows = [row for _, row in one.sort_values("gap").iterrows()]
        for name in ("average", "agents"):
            total += len(rows) - 1
            bad += [f"{name} at eta = {a['step_size']:g}, {a['network']} to {b['network']}, gaps "
                    f"{a['gap']:.4g} to {b['gap']:.4g}: by a factor {b[name] / a[name]:.4f}"
                    for a, b in pairwise(rows) if b[name] >= a[name]]
    return (FAIL if bad else PASS), (
        "Along the circles with more and more neighbours and along the lazy complete graphs, average and "
        f"agents come nearer in {total - len(bad)} of {total} steps to a larger gap"
        + (f"; not in these: {'; '.join(bad)}." if bad else "."))


def judge_decides(tables: Tables) -> tuple[str, str]:
    """Networks of equal gaps."""
    near = [(a, b) for a, b in _pairs(tables["networks"]) if b["gap"] <= (1.0 + NEAR) * a["gap"]]
    texts, worst = [], 1.0
    for name in ("average", "agents"):
        ratio, a, b = max(((max(a[name], b[name]) / min(a[name], b[name]), a, b) for a, b in near),
                          key=lambda item: item[0], default=(1.0, None, None))
        worst = max(worst, ratio)
        if a is not None and b is not None:
            texts.append(f"{name} {ratio:.1f} times ({a['family']}, {a['network']}, against {b['family']}, "
                         f"{b['network']}, gaps {a['gap']:.3g} and {b['gap']:.3g})")
    return (PASS if worst < 2.0 else FAIL), (
        "Networks whose gaps agree within 10% differ by up to "
        + (" and ".join(texts) if texts else "nothing, as there are none")
        + ". All eigenvalues of W count, and negative ones, which can make gamma-bar large, hardly hurt.")


def judge_bound(tables: Tables) -> tuple[str, str]:
    """Exact limits against Theorem 1's."""
    table = pd.concat([tables["networks"], tables["sizes"]])
    ratios = np.concatenate([(table[name] / table[f"{name}_bound"]).to_numpy()
                             for name in ("average", "agents")])
    hold = bool((table["status"] == de.HOLD).all())
    return (PASS if ratios.max() <= 1.0 and hold else FAIL), (
        f"In all {len(table)} settings the hypotheses {'hold' if hold else 'do not all hold'}; exact limits "
        f"are {ratios.min():.1e} to {ratios.max():.2g} of the bound's.")


def judge_informative(tables: Tables) -> tuple[str, str]:
    """Where the bound is below the distance of the start."""
    table = tables["networks"]
    said = table[table["average_bound"] < table["start"]]
    counts = [f"{len(de.among(said, step_size=step))} of {len(one)} networks at eta = {step:g}"
              for step, one in table.groupby("step_size", sort=False)]
    least = f", from gaps of {said['gap'].min():.3g} on" if len(said) else ""
    return (PASS if len(said) == len(table) else FAIL), (
        f"Its limit for the average is below the distance of the start on {de.listed(counts)}{least}.")


def judge_curvature(tables: Tables) -> tuple[str, str]:
    """The average with equal Hessians."""
    spreads = [float(one["average_equal"].max() / one["average_equal"].min() - 1.0)
               for _, one in tables["networks"].groupby("step_size", sort=False)]
    unequal = [float(one["average"].max() / one["average"].min())
               for _, one in tables["networks"].groupby("step_size", sort=False)]
    return (PASS if max(spreads) < 1e-6 else FAIL), (
        f"With equal Hessians the average's W2 varies by {tiny(max(spreads))} over all networks, because "
        f"their sum follows plain Langevin; with the data's it varies {min(unequal):.0f} to "
        f"{max(unequal):.0f} times.")


def judge_slope(tables: Tables) -> tuple[str, str]:
    """How fast exact limits and bound grow as the gap closes, on the lazy complete graphs."""
    table = de.among(tables["networks"], family=graphs.LAZY)
    table = table[table["step_size"] == table["step_size"].max()]
    if table["gap"].nunique() < 3:
        return FAIL, "Fewer than three gaps at this scale, so that no slope can be told."
    exact, bound = (loglog_slope(table["gap"], table[name]) for name in ("average", "average_bound"))
    return (PASS if abs(exact.value - bound.value) < 0.25 else FAIL), (
        f"On the lazy complete graphs at eta = {table['step_size'].iloc[0]:g} the exact W2 of the average "
        f"goes like the gap to the power {exact}, the bound's limit {bound}.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """Replicas of average and all agents."""
    table = tables["replicas"]
    limit = largest_allowed(int(table["compared"].sum()))
    return (PASS if float(table["deviation"].max()) <= limit else FAIL), (
        f"Means and covariances of the replicas, of the average and all agents on {len(table)} networks, are "
        f"at most {table['deviation'].max():.1f} standard errors off; {limit:.1f} would be too many "
        "(false-alarm level 0.001).")


CLAIMS = [
    Claim("The closer gamma-bar is to zero, the nearer the target: read for the exact laws of different "
          "networks.", "remark 3", judge_all),
    Claim("The same along a family of networks ordered by its gap.", "remark 3", judge_family),
    Claim("Roughly speaking, gamma-bar determines the additional cost of the distributed algorithm: read as "
          "equal gaps, errors within a factor of two.", "remark 3", judge_decides),
    Claim("Theorem 1 holds in the stationary limit on every network.", "theorem 1", judge_bound),
    Claim("ours: its limit is nearer than the start on every network.", "ours", judge_informative),
    Claim("ours: it grows with a closing gap as the exact W2 does.", "ours", judge_slope),
    Claim("ours: with equal curvature the average does not feel the network.", "ours", judge_curvature),
    Claim("ours: replicas follow the exact laws.", "ours", judge_replicas),
]
