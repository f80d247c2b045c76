"""Where the linear speedup of stale SGLD breaks: exact variance up to the stability limit."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from .. import plot
from ..figure import (
    EXACT,
    FAIL,
    NOT_TESTABLE,
    PASS,
    REPLICAS,
    ByScale,
    Claim,
    Drawing,
    Finding,
    Parameter,
    Tables,
    Unjudged,
    settings,
)
from . import limit as work, shared as sim

TITLE = "Where the linear speedup in workers breaks"
PAPER = "ours, for Stale gradients theorem 4"
SHOWS = ("Exact variance of long averages against h a tau up to the stability limit, where theorem 4's bound "
         "is free of tau; the speedup of W workers that follows; and how many workers are worth having.")
COST = {"tiny": "1 s", "quick": "7 s", "paper": "about 1 min (estimated)"}
PARAMETERS = [
    Parameter("steps", ByScale([0.1, 0.02], [0.1, 0.02, 0.005], [0.1, 0.02, 0.005]), "ours",
              "h a; target N(mean, 1), so that a = 1"),
    Parameter("means", [0.0, 2.5], "ours", "mean of the target in its standard deviations; at 2.5 theta^2 "
              "is nearly linear"),
    Parameter("n_ages", ByScale(6, 25, 60), "ours", "ages from 0 to 97% of the stability limit"),
    Parameter("speedup_steps", [0.02, 0.05, 0.1], "ours", "h a of the speedups"),
    Parameter("useful_steps", ByScale([0.1, 0.05, 0.02], [0.1, 0.05, 0.03, 0.02, 0.01],
                                      [0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002]), "ours",
              "h a for numbers of workers"),
    Parameter("share", 0.8, "ours", "of the linear speedup, to call a number of workers useful"),
    Parameter("simulated_step", 0.1, "ours", "h a of the replicas"),
    Parameter("n_simulated", ByScale(3, 7, 15), "ours", "ages with replicas"),
    Parameter("length", ByScale(800, 4000, 10000), "ours", "L of the replicas and their exact law"),
    Parameter("n_replicas", ByScale(4096, 4096, 16384), "ours", "of each age"),
    sim.START, sim.SEED,
]


def compute(scale: str) -> Tables:
    """Tables: variances, theta (the average of theta itself), replicas, speedups, useful, slopes."""
    p = settings(PARAMETERS, scale)
    useful = work.useful(p)
    return {"variances": work.variances(p), "theta": work.of_theta(p), "replicas": work.replicas(p),
            "speedups": work.speedups(p), "useful": useful, "slopes": work.slopes(useful)}


STEP_COLOURS = {0.1: plot.COLOURS[0], 0.05: plot.COLOURS[1], 0.02: plot.COLOURS[2], 0.005: plot.COLOURS[3]}
"""One colour for each h a, in all panels."""


def draw(tables: Tables) -> Drawing:
    """Variance against h a tau; speedup against W; useful workers against h a."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.4, 6.2)
    _variances(left, tables)
    _speedups(middle, tables)
    _useful(right, tables)
    return drawing


def _variances(ax: Axes, tables: Tables) -> None:
    table = tables["variances"]
    means = list(dict.fromkeys(table["mean"]))
    plain = table[table["mean"] == means[0]]
    for ha, one in sim.groups(plain, "ha"):
        plot.exact(ax, one["delay"], one["ratio"], STEP_COLOURS[ha], f"exact law, $ha$ = {ha:g}")
    least = plain["ha"].min()
    other = table[(table["mean"] == means[1]) & (table["ha"] == least)]
    plot.exact(ax, other["delay"], other["ratio"], STEP_COLOURS[least],
               f"exact law, $ha$ = {least:g}, mean {means[1]:g} sd", linestyle="--")
    seen = tables["replicas"]
    ax.errorbar(seen["delay"], seen["replicas_ratio"],
                [seen["replicas_ratio"] - seen["replicas_ratio_low"],
                 seen["replicas_ratio_high"] - seen["replicas_ratio"]], fmt="x", color="#000000",
                markersize=6, capsize=3, zorder=5, label=f"{plot.BAND}, $ha$ = {seen['ha'].iloc[0]:g}")
    sim.shape(ax, [0.0, 0.5 * np.pi], [1.0, 1.0], r"Theorem 4's shape, constant fitted at $\tau$ = 0")
    ax.axvline(0.5 * np.pi, color=plot.GREY, linewidth=1.1, linestyle=":",
               label=r"stability limit $\pi/2$ for small $h$")
    ax.set(yscale="log", xlabel=r"$h a \tau$: step size times curvature times age",
           ylabel=r"Var of long averages of $\theta^2$ / the same at $\tau$ = 0",
           title="exact variance, target N(mean, 1)")
    sim.legend_below(ax, 1)


def _speedups(ax: Axes, tables: Tables) -> None:
    table = tables["speedups"]
    means = list(dict.fromkeys(table["mean"]))
    for (mean, ha), one in sim.groups(table, ["mean", "ha"]):
        first = mean == means[0]
        plot.exact(ax, one["workers"], one["speedup"], STEP_COLOURS[ha],
                   f"exact law, $ha$ = {ha:g}" if first else f"the same, mean {means[1]:g} sd",
                   linestyle="-" if first else "--", linewidth=1.8 if first else 1.2)
    x = np.array([1.0, float(table["workers"].max())])
    ax.plot(x, x, color=plot.GREY, linewidth=1.0, linestyle=":", label="linear speedup, W")
    ax.set(xscale="log", yscale="log", xlabel=r"workers W, with age $\tau$ = W - 1",
           ylabel="iteration speedup in the long run", title="more workers at a fixed step size")
    ax.set_ylim(bottom=0.05)
    sim.legend_below(ax, 1)


def _useful(ax: Axes, tables: Tables) -> None:
    table, slopes = tables["useful"], tables["slopes"]
    means = list(dict.fromkeys(table["mean"]))
    names = {"useful": ("80% of linear", "#000000"), "best": ("largest speedup", "#6A6A6A"),
             "stable": ("stable", "#A0A0A0")}
    for name, (text, grey) in names.items():
        for mean, one in sim.groups(table, "mean"):
            if name == "stable" and mean != means[0]:
                continue
            fit = slopes[(slopes["mean"] == mean) & (slopes["of"] == name)].iloc[0]
            about = "" if name == "stable" else f", mean {mean:g} sd"
            plot.exact(ax, one["ha"], one[name], grey,
                       f"exact law, {text}{about}: slope {fit['slope']:.2f}", marker="o", markersize=4,
                       linestyle="-" if mean == means[0] else "--")
    ax.set(xscale="log", yscale="log", xlabel="$h a$: step size times curvature", ylabel="workers W",
           title="how many workers are worth having")
    sim.legend_below(ax, 1)


def _plain(tables: Tables) -> tuple[float, float]:
    """The means: zero, and one at which theta^2 is nearly linear."""
    first, second = dict.fromkeys(tables["variances"]["mean"])
    return float(first), float(second)


def judge_always(tables: Tables) -> tuple[str, str, str]:
    """Is there a step size at which nine workers, the paper's most, have a linear speedup?"""
    useful = tables["useful"]
    least = useful.groupby("ha", sort=False)["useful"].min()
    enough = least >= sim.WORKER_COUNTS[-1]
    plain = useful[useful["mean"] == _plain(tables)[0]].iloc[0]
    return (PASS if enough.any() else NOT_TESTABLE), (
        "In the long run, with age W - 1, at least 80 percent of the linear speedup is exact up to "
        + ", ".join(f"W = {value} (h a = {ha:g})" for ha, value in least.items())
        + f"; W = {sim.WORKER_COUNTS[-1]} is reached at {int(enough.sum())} of {len(least)} step sizes."), (
        f"At a given step size it ends: at h a = {plain['ha']:g} the speedup is largest, "
        f"{plain['best_speedup']:.1f}, with W = {plain['best']:.0f}, and W = {plain['stable'] + 1:.0f} is "
        "unstable. The speedup is over one worker at the same step size, not at its own best.")


def judge_small(tables: Tables) -> tuple[str, str]:
    """Within 20% for h a tau up to 0.1."""
    table = tables["variances"]
    largest = sim.at_largest(table[table["delay"] <= 0.1 + 1e-12], "ratio")
    return (PASS if float(largest["ratio"]) <= 1.0 + sim.LINEAR else FAIL), (
        f"For h a tau up to 0.1 the exact variance exceeds that of fresh gradients by a factor of at most "
        f"{largest['ratio']:.3f} (h a tau = {largest['delay']:.2f}); {1.0 + sim.LINEAR:g} is accepted.")


def judge_grows(tables: Tables) -> tuple[str, str]:
    """Does the variance grow from age to age?"""
    table = tables["variances"][tables["variances"]["mean"] == _plain(tables)[0]].sort_values("delay")
    one = table[table["ha"] == table["ha"].min()]
    shown = [one.iloc[int(np.argmin(np.abs(one["delay"].to_numpy() - x)))] for x in (0.25, 0.5, 1.0, 1.5)]
    grows = all((np.diff(part["ratio"]) > 0.0).all() for _, part in sim.groups(table, "ha"))
    return (PASS if grows else FAIL), (
        f"At h a = {one['ha'].iloc[0]:g} the exact variance of long averages over that of fresh gradients is "
        + ", ".join(f"{row['ratio']:.3g} (h a tau = {row['delay']:.2f})" for row in shown)
        + {True: "; it grows from age to age at every h a.",
           False: "; it does not grow from age to age at every h a."}[grows])


def judge_rule(tables: Tables) -> tuple[str, str]:
    """Workers that are useful against h a."""
    mean, other = _plain(tables)
    fits = tables["slopes"][tables["slopes"]["of"] == "useful"]
    fit = fits[fits["mean"] == mean].iloc[0]
    values = [tables["useful"].query(f"mean == {one}") for one in (mean, other)]
    product = [(one["useful"] * one["ha"]).to_numpy() for one in values]
    return (PASS if abs(fit["slope"] + 1.0) <= sim.NEAR else FAIL), (
        f"The most workers with 80% of the linear speedup follow (h a)^slope, slope {sim.slope_text(fit)}, "
        f"where 1/12 off -1 is accepted. W h a is {product[0].min():.2f} to {product[0].max():.2f} for a "
        f"target of mean zero, and {product[1].min():.2f} to {product[1].max():.2f} when the mean is "
        f"{other:g} standard deviations.")


def judge_theta(tables: Tables) -> tuple[str, str]:
    """The average of theta."""
    table = tables["theta"]
    spread = float(table["value"].max() / table["value"].min() - 1.0)
    finite = float(table["finite"].max() / table["finite"].min() - 1.0)
    free = spread < 1e-6
    return (PASS if free else FAIL), (
        f"Summed autocovariances of theta times h are {table['value'].iloc[0]:.6f} at age 0"
        + {True: " and at every age", False: f" and differ by up to {100 * spread:.3g}%"}[free]
        + f" up to {table['age'].max()} (h a = {table['ha'].iloc[0]:g}); at L = "
        f"{table['iteration'].iloc[0]} variances differ by {100 * finite:.1f}%.")


CLAIMS = [
    Unjudged("The variance is independent of tau: Var <= D (1/(L h) + h^2).", "theorem 4",
             "D is not named and may depend on the moments that the proof takes as bounded. A bound of "
             "theirs keeps h a tau away from pi/2, and then one D covers all ages; see theory.errata.",
             name="free_of_tau"),
    Claim("A linear speedup in the decrease of variance is always achievable with parallel stale gradients.",
          "sections 3.2 and 4", judge_always, name="always_achievable", rests_on=EXACT,
          context="Read as the text allows: for W workers there is a step size. Within 20 percent of W "
                  "counts as linear, for the paper's W up to 9 and both means."),
    Finding("At a fixed step size the variance of long averages of theta^2 grows with the age.", "theorem 4",
            judge_grows, name="grows", rests_on=EXACT),
    Finding("Up to h a tau = 0.1 the variance is that of fresh gradients to 20 percent.", "theorem 4",
            judge_small, name="small_delay", rests_on=EXACT),
    Finding("The number of workers with 80% of the linear speedup is proportional to 1/(h a).", "section 4",
            judge_rule, name="useful_workers", rests_on=EXACT),
    Finding("For linear test functions the variance of long averages is free of tau.", "theorem 4",
            judge_theta, name="linear_functions", rests_on=EXACT,
            context="So theorem 4 is sharp for them, and nearly so for nearly linear ones."),
    Finding("Replicas follow the exact law up to near the stability limit.", "", sim.judge_replicas,
            name="replicas", rests_on=REPLICAS),
]
