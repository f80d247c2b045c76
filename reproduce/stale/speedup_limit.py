"""Where the linear speedup of stale SGLD breaks: exact variance up to the stability limit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory.exact import delay

from .. import figure as fig, plot
from ..tables import among, groups
from . import shared as sim
from .law import PLAIN

TITLE = "Where the linear speedup in workers breaks"
PAPER = "ours, for Stale gradients theorem 4"
SHOWS = ("Exact variance of long averages against h a tau up to the stability limit, where theorem 4's bound "
         "is free of tau; the speedup of W workers that follows; and how many workers are worth having.")
COST = {"tiny": "1 s", "quick": "7 s", "paper": "about 1 min (estimated)"}
AT_ZERO, FAR = 0.0, 2.5
"""Means of the target; at the second theta^2 is nearly linear."""
PARAMETERS = [
    fig.Parameter("steps", fig.ByScale([0.1, 0.02], [0.1, 0.02, 0.005], [0.1, 0.02, 0.005]), "ours",
                  "h a; target N(mean, 1), so that a = 1"),
    fig.Parameter("means", [AT_ZERO, FAR], "ours",
                  "mean of the target in its standard deviations; at 2.5 theta^2 is nearly linear"),
    fig.Parameter("n_ages", fig.ByScale(6, 25, 60), "ours", "ages from 0 to 97% of the stability limit"),
    fig.Parameter("speedup_steps", [0.02, 0.05, 0.1], "ours", "h a of the speedups"),
    fig.Parameter("useful_steps", fig.ByScale([0.1, 0.05, 0.02], [0.1, 0.05, 0.03, 0.02, 0.01],
                                              [0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002]),
                  "ours", "h a for numbers of workers"),
    fig.Parameter("share", 0.8, "ours", "of the linear speedup, to call a number of workers useful"),
    fig.Parameter("simulated_step", 0.1, "ours", "h a of the replicas"),
    fig.Parameter("n_simulated", fig.ByScale(3, 7, 15), "ours", "ages with replicas"),
    fig.Parameter("length", fig.ByScale(800, 4000, 10000), "ours", "L of the replicas and their exact law"),
    fig.Parameter("n_replicas", fig.ByScale(4096, 4096, 16384), "ours", "of each age"),
    sim.START, sim.SEED]
STEP_COLOURS = dict(plot.shaded((0.005, 0.02, 0.05, 0.1)))
"""One colour for each h a, in all panels."""


def compute(scale: str) -> fig.Tables:
    """Tables: variances, theta (the average of theta itself), replicas, speedups, useful, slopes."""
    p = fig.settings(PARAMETERS, scale)
    useful = pd.DataFrame(_useful(p))
    slopes = [sim.slope_row(one["ha"], one[name], -1.0, mean=mean, of=name, against="ha")
              for mean, one in groups(useful, "mean") for name in ("useful", "best", "stable")]
    return {"variances": pd.concat(_variances(p)), "theta": pd.DataFrame(_of_theta(p)),
            "replicas": _replicas(p), "speedups": pd.concat(_speedups(p)), "useful": useful,
            "slopes": pd.DataFrame(slopes)}


def _ages(ha: float, n_ages: int | None = None) -> np.ndarray:
    """Ages from 0 to the largest at which h a is at most 97% of the stability limit: so many, or all."""
    most = next(tau for tau in count() if ha > 0.97 * delay.stability_limit(tau + 1))
    return np.unique(np.rint(np.linspace(0, most, n_ages or most + 1)).astype(int))


def _long_run(p: Any, steps: list[float],
              n_ages: int | None = None) -> Iterator[tuple[float, float, np.ndarray, np.ndarray]]:
    """Means, h a, ages, and their L Var of the average of theta^2 as L grows, for a = 1."""
    for mean, ha in product(p.means, steps):
        ages = _ages(ha, n_ages)
        yield mean, ha, ages, np.array([delay.long_run_variance(1.0, ha, tau, mean) for tau in ages.tolist()])


def _variances(p: Any) -> Iterator[pd.DataFrame]:
    """L h Var of the average of theta^2 as L grows, over that without staleness, for a = 1."""
    for mean, ha, ages, values in _long_run(p, p.steps, p.n_ages):
        spread = np.array([delay.stationary_variance(1.0, ha, tau) for tau in ages.tolist()])
        yield pd.DataFrame({"mean": mean, "ha": ha, "age": ages, "delay": ha * ages, "value": ha * values,
                            "ratio": values / values[0], "spread": spread / spread[0]})


def _speedups(p: Any) -> Iterator[pd.DataFrame]:
    """Iteration speedup W V(0) / V(W - 1) in the long run, with age W - 1."""
    for mean, ha, ages, values in _long_run(p, p.speedup_steps, p.n_ages):
        yield pd.DataFrame({"mean": mean, "ha": ha, "workers": ages + 1,
                            "speedup": (ages + 1) * values[0] / values})


def _useful(p: Any) -> Iterator[dict[str, Any]]:
    """The most workers with a given share of the linear speedup, the best number, and the stable one."""
    for mean, ha, ages, values in _long_run(p, p.useful_steps):
        workers, share = ages + 1, values[0] / values
        speedup = workers * share
        yield {"mean": mean, "ha": ha, "useful": int(workers[share >= p.share].max()),
               "best": int(workers[speedup.argmax()]), "best_speedup": float(speedup.max()),
               "stable": len(workers)}


def _of_theta(p: Any) -> Iterator[dict[str, Any]]:
    """The same as `_variances` for the average of theta itself: autocovariances, and long runs."""
    ha = p.steps[0]
    for tau in _ages(ha, 6).tolist():
        lags = delay.stationary_autocovariance(1.0, ha, tau, 20_000)
        law = delay.average_law(PLAIN, fs.StaleSGLD(ha, tau), p.length, function="identity")
        yield {"ha": ha, "age": tau, "value": ha * float(lags[0] + 2.0 * lags[1:].sum()),
               "finite": ha * p.length * float(law.variance[-1]), "iteration": p.length}


def _replicas(p: Any) -> pd.DataFrame:
    """Replicas at one step size against the exact law at the same L."""
    ha = p.simulated_step
    table = pd.DataFrame([sim.plain_row(p, tau, ha, ha=ha, age=tau, delay=ha * tau)
                          for tau in _ages(ha, p.n_simulated).tolist()])
    scale = p.length / delay.long_run_variance(1.0, ha, 0)
    return table.assign(**{name.replace("variance", "ratio"): table[name] * scale for name in (
        "variance", "replicas_variance", "replicas_variance_low", "replicas_variance_high")})


def draw(tables: fig.Tables) -> fig.Drawing:
    """Variance against h a tau; speedup against W; useful workers against h a."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.4, 6.2)
    _draw_variances(left, tables)
    _draw_speedups(middle, tables["speedups"])
    _draw_useful(right, tables)
    for ax in (left, middle, right):
        plot.legend_below(ax)
    return drawing


def _draw_variances(ax: Axes, tables: fig.Tables) -> None:
    table = tables["variances"]
    for ha, one in groups(among(table, mean=AT_ZERO), "ha"):
        plot.exact(ax, one["delay"], one["ratio"], STEP_COLOURS[ha], f"exact law, $ha$ = {ha:g}")
    least = table["ha"].min()
    one = among(table, mean=FAR, ha=least)
    plot.exact(ax, one["delay"], one["ratio"], STEP_COLOURS[least],
               f"exact law, $ha$ = {least:g}, mean {FAR:g} sd", linestyle="--")
    replicas = tables["replicas"]
    sim.draw_replicas(ax, replicas["delay"], replicas, "replicas_ratio", "#000000",
                      f"{plot.BAND}, $ha$ = {replicas['ha'].iloc[0]:g}")
    sim.shape(ax, [0.0, 0.5 * np.pi], [1.0, 1.0], r"Theorem 4's shape, constant fitted at $\tau$ = 0")
    ax.axvline(0.5 * np.pi, color=plot.GREY, linewidth=1.1, linestyle=":",
               label=r"stability limit $\pi/2$ for small $h$")
    ax.set(yscale="log", xlabel=r"$h a \tau$: step size times curvature times age",
           ylabel=r"Var of long averages of $\theta^2$ / the same at $\tau$ = 0",
           title="exact variance, target N(mean, 1)")


def _draw_speedups(ax: Axes, table: pd.DataFrame) -> None:
    for (mean, ha), one in groups(table, ["mean", "ha"]):
        label, line, width = (f"the same, mean {mean:g} sd", "--", 1.2) if mean else (
            f"exact law, $ha$ = {ha:g}", "-", 1.8)
        plot.exact(ax, one["workers"], one["speedup"], STEP_COLOURS[ha], label, linestyle=line,
                   linewidth=width)
    x = np.array([1.0, float(table["workers"].max())])
    ax.plot(x, x, color=plot.GREY, linewidth=1.0, linestyle=":", label="linear speedup, W")
    ax.set(xscale="log", yscale="log", xlabel=r"workers W, with age $\tau$ = W - 1",
           ylabel="iteration speedup in the long run", title="more workers at a fixed step size",
           ylim=(0.05, None))


def _draw_useful(ax: Axes, tables: fig.Tables) -> None:
    names = {"useful": "80% of linear", "best": "largest speedup", "stable": "stable"}
    for (name, label), grey in zip(names.items(), sim.GREYS, strict=True):
        for mean, one in groups(tables["useful"], "mean")[:1 if name == "stable" else None]:
            slope = among(tables["slopes"], mean=mean, of=name)["slope"].iloc[0]
            about = "" if name == "stable" else f", mean {mean:g} sd"
            plot.exact(ax, one["ha"], one[name], grey, f"exact law, {label}{about}: slope {slope:.2f}",
                       marker="o", markersize=4, linestyle="--" if mean else "-")
    ax.set(xscale="log", yscale="log", xlabel="$h a$: step size times curvature", ylabel="workers W",
           title="how many workers are worth having")


def judge_always(tables: fig.Tables) -> tuple[str, str, str]:
    """Is there a step size at which nine workers, the paper's most, have a linear speedup?"""
    useful = tables["useful"]
    least = useful.groupby("ha", sort=False)["useful"].min()
    enough = least >= sim.WORKER_COUNTS[-1]
    plain = among(useful, mean=AT_ZERO).iloc[0]
    return (fig.PASS if enough.any() else fig.FAIL), (
        "In the long run, with age W - 1, at least 80 percent of the linear speedup is exact up to "
        + ", ".join(f"W = {value} (h a = {ha:g})" for ha, value in least.items())
        + f"; W = {sim.WORKER_COUNTS[-1]} is reached at {int(enough.sum())} of {len(least)} step sizes."), (
        f"At a given step size it ends: at h a = {plain['ha']:g} the speedup is largest, "
        f"{plain['best_speedup']:.1f}, with W = {plain['best']:.0f}, and W = {plain['stable'] + 1:.0f} is "
        "unstable. The speedup is over one worker at the same step size, not at its own best.")


def judge_small(tables: fig.Tables) -> tuple[str, str]:
    """Within 20% for h a tau up to 0.1."""
    table = tables["variances"]
    largest = table[table["delay"] <= 0.1 + 1e-12].sort_values("ratio").iloc[-1]
    return (fig.PASS if largest["ratio"] <= 1.0 + sim.LINEAR else fig.FAIL), (
        f"For h a tau up to 0.1 the exact variance exceeds that of fresh gradients by a factor of at most "
        f"{largest['ratio']:.3f} (h a tau = {largest['delay']:.2f}); {1.0 + sim.LINEAR:g} is accepted.")


def judge_grows(tables: fig.Tables) -> tuple[str, str]:
    """Does the variance grow from age to age?"""
    table = among(tables["variances"], mean=AT_ZERO).sort_values("delay")
    least = among(table, ha=table["ha"].min())
    rows = [least.iloc[int((least["delay"] - x).abs().argmin())] for x in (0.25, 0.5, 1.0, 1.5)]
    grows = all((np.diff(one["ratio"]) > 0.0).all() for _, one in groups(table, "ha"))
    return (fig.PASS if grows else fig.FAIL), (
        f"At h a = {least['ha'].iloc[0]:g} the exact variance of long averages over that of fresh gradients "
        f"is {', '.join(f'{row.ratio:.3g} (h a tau = {row.delay:.2f})' for row in rows)}; it "
        f"{'grows' if grows else 'does not grow'} from age to age at every h a.")


def judge_rule(tables: fig.Tables) -> tuple[str, str]:
    """Workers that are useful against h a."""
    slope = among(tables["slopes"], of="useful", mean=AT_ZERO).iloc[0]
    product_at = {mean: one["useful"] * one["ha"] for mean, one in groups(tables["useful"], "mean")}
    return (fig.PASS if sim.is_near(slope) else fig.FAIL), (
        f"The most workers with 80% of the linear speedup follow (h a)^slope, slope {sim.slope_text(slope)}, "
        f"where 1/12 off -1 is accepted. W h a is {sim.span(product_at[AT_ZERO])} for a target of mean zero, "
        f"and {sim.span(product_at[FAR])} when the mean is {FAR:g} standard deviations.")


def judge_theta(tables: fig.Tables) -> tuple[str, str]:
    """The average of theta."""
    table = tables["theta"]
    spread, finite = (table[name].max() / table[name].min() - 1.0 for name in ("value", "finite"))
    free = spread < 1e-6
    return (fig.PASS if free else fig.FAIL), (
        f"Summed autocovariances of theta times h are {table['value'].iloc[0]:.6f} at age 0"
        + (" and at every age" if free else f" and differ by up to {100 * spread:.3g}%")
        + f" up to {table['age'].max()} (h a = {table['ha'].iloc[0]:g}); at L = "
        f"{table['iteration'].iloc[0]} variances differ by {100 * finite:.1f}%.")


CLAIMS = [
    fig.Unjudged("The variance is independent of tau: Var <= D (1/(L h) + h^2).", "theorem 4",
                 "D is not named and may depend on the moments that the proof takes as bounded. A bound of "
                 "theirs keeps h a tau away from pi/2, and then one D covers all ages; see theory.errata.",
                 "free_of_tau"),
    fig.Claim("A linear speedup in the decrease of variance is always achievable with parallel stale "
              "gradients.", "sections 3.2 and 4", judge_always, "always_achievable", fig.EXACT,
              "Read as the text allows: for W workers there is a step size. Within 20 percent of W counts as "
              "linear, for the paper's W up to 9 and both means.",
              echo="Step sizes below the smallest of ours could still have it: nothing here can contradict "
                   "the sentence."),
    fig.Finding("At a fixed step size the variance of long averages of theta^2 grows with the age.",
                "theorem 4", judge_grows, "grows", fig.EXACT),
    fig.Finding("Up to h a tau = 0.1 the variance is that of fresh gradients to 20 percent.", "theorem 4",
                judge_small, "small_delay", fig.EXACT),
    fig.Finding("The number of workers with 80% of the linear speedup is proportional to 1/(h a).",
                "section 4", judge_rule, "useful_workers", fig.EXACT),
    fig.Finding("For linear test functions the variance of long averages is free of tau.", "theorem 4",
                judge_theta, "linear_functions", fig.EXACT,
                "So theorem 4 is sharp for them, and nearly so for nearly linear ones."),
    sim.replicas_follow("Replicas follow the exact law up to near the stability limit.")]
