"""DE-SGLD: stationary W2 of average and agents against the spectral gap, with Theorem 1 beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from theory.rates import loglog_slope

from .. import plot
from ..figure import ByScale, Claim, Drawing, Finding, Parameter, Tables, Unjudged, settings
from ..tables import among, groups, listed
from ..verdicts import DATA_SETS, EXACT, FAIL, PASS, Judgement, shares, unanimous
from . import graphs, linear, shared as de
from .batches import VIEWS
from .claims import SAME, by_set, replicas_finding

TITLE = "Stationary W2 against the spectral gap"
PAPER = "ours, for DE-SGLD theorem 1 and remark 3"
SHOWS = ("Exact stationary W2 of average and agents over families of networks, at a small and a large step "
         "size, with replicas and Theorem 1; and against the number of agents.")
COST = {"tiny": "8 s", "quick": "19 s", "paper": "4 min (estimated)"}
PARAMETERS = [
    Parameter("n_clients", 36, "ours", "agents: a square, so that there is a grid"),
    Parameter("n_data", 1800, "ours", "50 an agent as in section 5.1"),
    linear.DIM, linear.PRIOR, linear.NOISE, linear.DATA_SEED,
    Parameter("n_data_sets", ByScale(12, 12, 50), "ours", "the findings are judged on each by itself"),
    Parameter("network_seed", 0, "ours", "of the random graphs"),
    Parameter("step_sizes", [1e-5, 6e-4], "ours",
              "within Theorem 1's range on every network; at the small one it says something on some"),
    Parameter("neighbours", ByScale([1, 6, 18], list(range(1, 19)), list(range(1, 19))), "ours",
              "k of the circles with k neighbours on either side; 18 is the complete graph"),
    Parameter("lazy_shares", ByScale([0.01, 0.1, 0.3], [0.003, 0.01, 0.03, 0.1, 0.3, 0.6],
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
NEAR = 0.1
"""Gaps within 10% of each other count as equal."""
FACTOR = 2.0
LOOKS = {graphs.CIRCULANT: (plot.COLOURS[1], "s"), graphs.LAZY: (plot.COLOURS[0], "o"),
         graphs.RANDOM: (plot.COLOURS[3], "D"), graphs.SINGLE: (plot.COLOURS[2], "^")}


def compute(scale: str) -> Tables:
    """Tables: networks, equal, sizes, bound, replicas."""
    p = settings(PARAMETERS, scale)
    return {"networks": graphs.over_networks(p), "equal": graphs.with_equal_curvature(p),
            "sizes": graphs.over_sizes(p), "bound": graphs.bound_by_gamma(p),
            "replicas": graphs.replicas(p)}


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
                ax.annotate(name, (x, y), fontsize=9, xytext=(0, 7 if name == "star" else -12),
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


def _pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Pairs of networks at the same step size on the same data set, the smaller gap first (suffix _x)."""
    both = table.merge(table, on=["data_set", "step_size"])
    return both[both["gap_x"] < both["gap_y"]]


def judge_bound(tables: Tables) -> Judgement:
    """Theorem 1's bound with gamma-bar alone varied."""
    table = tables["bound"].sort_values("gamma")
    steps = table.groupby("round")[["average", "agents"]].diff().dropna()
    rising, total = int((steps > 0.0).to_numpy().sum()), steps.size
    last = among(table, round=table["round"].max())
    return Judgement(PASS if rising == total else FAIL, (
        f"From gamma-bar = {table['gamma'].min():g} to {table['gamma'].max():g}, all else fixed, the bounds "
        f"of average and agents after {listed([f'{k:.0e}' for k in sorted(table['round'].unique())])} "
        f"iterations rise in {rising} of {total} steps; in the limit from {last['average'].iloc[0]:.3g} to "
        f"{last['average'].iloc[-1]:.3g} for the average."))


def judge_family(tables: Tables) -> Judgement:
    """Exact laws along the two families that are ordered by their gap."""
    table = tables["networks"][tables["networks"]["family"].isin([graphs.CIRCULANT, graphs.LAZY])]
    along = table.sort_values("gap").groupby(["data_set", "family", "step_size"])[["average", "agents"]]
    ratios = (1.0 + along.pct_change()).dropna()
    further = ratios > 1.0 + SAME
    good = by_set(table.loc[ratios.index], ~further.any(axis=1))
    back, steps, worst = further.to_numpy().sum(), ratios.size, max(1.0, ratios.to_numpy().max())
    return Judgement(unanimous(good), (
        f"Along circles with more and more neighbours and along lazy complete graphs, a larger gap never has "
        f"a W2 larger by more than 1%, of average or agents, {shares(good)}; it has in {back} of {steps} "
        f"steps, at most {worst:.3f} times."))


def judge_all(tables: Tables) -> Judgement:
    """Pairs of networks where the larger gap has the larger distance."""
    pairs, good, texts = _pairs(tables["networks"]), [], []
    apart = pairs[pairs["gap_y"] > (1.0 + NEAR) * pairs["gap_x"]]
    for name in ("average", "agents"):
        wrong = apart[f"{name}_y"] > (1.0 + SAME) * apart[f"{name}_x"]
        good.append(by_set(apart, ~wrong))
        worst = apart.iloc[int(np.argmax(apart[f"{name}_y"] / apart[f"{name}_x"]))]
        texts.append(f"{name} {100 * wrong.mean():.1f}% of {len(wrong)} (most: {worst['network_y']}, gap "
                     f"{worst['gap_y']:.3g}, {worst[f'{name}_y'] / worst[f'{name}_x']:.2f} times "
                     f"{worst['network_x']}, gap {worst['gap_x']:.3g})")
    both = good[0] & good[1]
    return Judgement(unanimous(both), (
        f"Pairs in which the network with the larger gap is further away by more than 1%: "
        f"{'; '.join(texts)}. There is no such pair {shares(both)}."))


def judge_decides(tables: Tables) -> Judgement:
    """Networks of equal gaps."""
    pairs, good, texts = _pairs(tables["networks"]), [], []
    near = pairs[pairs["gap_y"] <= (1.0 + NEAR) * pairs["gap_x"]]
    for name in ("average", "agents"):
        ends = near[[f"{name}_x", f"{name}_y"]]
        ratio = ends.max(axis=1) / ends.min(axis=1)
        worst = near.iloc[int(np.argmax(ratio))]
        good.append(by_set(near, ratio < FACTOR))
        texts.append(f"{name} {ratio.max():.1f} times ({worst['network_x']} and {worst['network_y']})")
    both = good[0] & good[1]
    return Judgement(unanimous(both), (
        f"Networks whose gaps agree within 10% differ at most by {' and '.join(texts)}; by less than "
        f"{FACTOR:g} times {shares(both)}."))


def judge_theorem(tables: Tables) -> Judgement:
    """Exact limits against Theorem 1's."""
    covered = among(tables["networks"], status=de.HOLD)
    ratios = covered[["average", "agents"]].to_numpy() / covered[["average_bound", "agents_bound"]].to_numpy()
    good = by_set(covered, (ratios <= 1.0).all(axis=1))
    return Judgement(unanimous(good), (
        f"In {len(covered)} of {len(tables['networks'])} settings its hypotheses hold; exact limits of "
        f"average and agents are there {ratios.min():.1e} to {ratios.max():.2g} of the "
        f"bound's, at most 1 {shares(good)}."))


def judge_informative(tables: Tables) -> Judgement:
    """Where the bound is below the distance of the start."""
    table = tables["networks"]
    near = table["average_bound"] < table["start"]
    good = by_set(table, near)
    counts = [f"{100 * one.mean():.0f}% at eta = {step:g}"
              for step, one in near.groupby(table["step_size"], sort=False)]
    return Judgement(unanimous(good), (
        f"Its limit for the average is below the distance of the start on {listed(counts)} of the "
        f"networks; on all {shares(good)}."))


def judge_curvature(tables: Tables) -> Judgement:
    """The average with equal Hessians."""
    equal, unequal = (tables[name].groupby(keys)["average"].agg(lambda w2: w2.max() / w2.min())
                      for name, keys in (("equal", "step_size"), ("networks", ["data_set", "step_size"])))
    worst = equal.max() - 1.0
    size = f"{worst:.2g}" if worst > 1e-6 else "nothing beyond rounding"
    return Judgement(PASS if worst <= 1e-6 else FAIL, (
        f"With equal Hessians the average's W2 varies by {size} over {tables['equal']['network'].nunique()} "
        f"networks; with the data's it varies {unequal.min():.0f} to {unequal.max():.0f} times."))


def judge_slope(tables: Tables) -> Judgement:
    """How fast exact limits and bound grow as the gap closes, on the lazy complete graphs."""
    table = among(tables["networks"], family=graphs.LAZY, step_size=tables["networks"]["step_size"].max())
    slopes = np.array([[loglog_slope(one["gap"], one[name]).value for name in ("average", "average_bound")]
                       for _, one in groups(table, "data_set")])
    good = np.abs(slopes[:, 0] - slopes[:, 1]) < 0.25
    return Judgement(unanimous(good), (
        f"On the lazy complete graphs at eta = {table['step_size'].iloc[0]:g} the exact W2 of the average "
        f"goes like the gap to the power {slopes[:, 0].min():.2f} to {slopes[:, 0].max():.2f}, the bound's "
        f"limit {slopes[:, 1].min():.2f} to {slopes[:, 1].max():.2f}; alike within 0.25 {shares(good)}."))


CLAIMS = [
    Claim("Theorem 1's bound is monotonically increasing in gamma-bar.", "remark 3", judge_bound,
          name="bound_in_gamma", rests_on=EXACT,
          context="gamma-bar enters every term with the same sign, whatever the data; lambda_N is held "
                  "fixed, as in the remark."),
    Claim("Theorem 1 holds in the stationary limit on every network.", "Theorem 1", judge_theorem,
          name="theorem_holds", rests_on=DATA_SETS),
    Unjudged("Roughly speaking, gamma-bar determines the additional cost of the distributed algorithm.",
             "remark 3", "No measure of how roughly is given; three findings show what exact laws of "
             "different networks do.", name="roughly"),
    Finding("Along a family of networks ordered by their gap, exact laws come nearer the target with it.",
            "remark 3", judge_family, name="family", rests_on=DATA_SETS),
    Finding("Of any two networks the one with the larger gap is nearer the target.", "remark 3", judge_all,
            name="every_pair", rests_on=DATA_SETS,
            context="Remark 3 is about the bound, and adds 'roughly speaking'."),
    Finding("Networks of equal gaps are equally far away, within a factor of two.", "remark 3", judge_decides,
            name="equal_gaps", rests_on=DATA_SETS,
            context="All eigenvalues of W count, and negative ones, which can make gamma-bar large, hardly "
                    "hurt."),
    Finding("Theorem 1's limit is nearer than the start on every network.", "Theorem 1", judge_informative,
            name="informative", rests_on=DATA_SETS),
    Finding("Theorem 1's limit grows with a closing gap as the exact W2 does.", "Theorem 1", judge_slope,
            name="slope", rests_on=DATA_SETS),
    Finding("With equal curvature the average does not feel the network.", "Theorem 1", judge_curvature,
            name="equal_curvature", rests_on=EXACT,
            context="The sum of agents of equal Hessians follows plain Langevin, whatever the data."),
    replicas_finding(),
]
