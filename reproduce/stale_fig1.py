"""Stale gradients figure 1: MSE against iterations for ages 1 to 20, with L = 500 tau."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from . import _stale as sim
from . import _stale_readings as readings
from . import plot
from ._stale_readings import PRINTED, STABLE, SUMS
from .figure import FAIL, NOT_TESTABLE, PASS, ByScale, Claim, Drawing, Parameter, Tables, settings

TITLE = "Stale SGLD: MSE against iterations, L = 500 tau"
PAPER = "Stale gradients figure 1"
SHOWS = ("The printed setting diverges at every constant age; with minibatch sums that are not rescaled, and "
         "with the posterior at a stable C, replicas, exact curves and end points are shown.")
COST = {"tiny": "1 s", "quick": "11 s", "paper": "about 3 min (estimated)"}
PARAMETERS = [
    sim.DATA, sim.BATCH,
    Parameter("ages", ByScale([1, 5, 20], [1, 2, 5, 10, 15, 20], [1, 2, 5, 10, 15, 20]), "paper",
              "section 5.1: tau; three of them at the tiny scale"),
    Parameter("L0", ByScale(50, 500, 500), "paper", "section 5.1: L = L0 tau with L0 = 500"),
    Parameter("constant", 1.0 / 30.0, "paper", "section 5.1: C of h = C tau^(-2/3) L^(-1/3)"),
    Parameter("n_replicas", 200, "paper", "section 5.1: 200 runs"),
    Parameter("start", 0.0, "ours", "theta_0 is not printed; 0 is near the posterior's mean"),
    Parameter("far_start", 3.0, "ours", "three prior standard deviations off, for the lower-bound claim"),
    Parameter("stable_constant", 1.0 / 5000.0, "ours",
              "of the posterior: C must stay below 1/126 for stability, and well below it for minibatch "
              "noise not to dominate"),
    Parameter("large_constant", 1.0 / 500.0, "ours", "stable too, but minibatch noise dominates"),
    Parameter("n_end_replicas", ByScale(256, 1024, 65536), "ours", "for end points alone"),
    Parameter("L0_grid", ByScale([25, 50, 100], [125, 250, 500, 1000, 2000], [125, 250, 500, 1000, 2000]),
              "ours", "for the slope in L0, at age 2"),
    Parameter("best_ages", ByScale([1], [1, 5], [1, 2, 5, 10]), "ours",
              "ages whose best step size is searched"),
    sim.DATA_SEED, sim.SEED,
]


def compute(scale: str) -> Tables:
    """Tables: stability, printed, curves, ends, far, growth (with L0), slopes, best."""
    return readings.compute(settings(PARAMETERS, scale))


def draw(tables: Tables) -> Drawing:
    """The printed setting; the reading that reproduces the figure; the posterior; the end points."""
    drawing, ((first, second), (third, fourth)) = plot.panels(2, 5.9, 4.3, n_rows=2)
    _draw_printed(first, tables)
    for ax, name, title in ((second, SUMS, r"our reading: minibatch sums not rescaled, C = 1/30"),
                            (third, STABLE, "ours: the posterior itself, C = 1/5000")):
        _draw_reading(ax, tables["curves"], name)
        ax.set(title=title)
    _draw_ends(fourth, tables)
    return drawing


def _draw_printed(ax: Axes, tables: Tables) -> None:
    shares = tables["stability"].query("reading == @PRINTED").set_index("age")["share"]
    ages = list(shares.index)
    for tau, one in tables["printed"].groupby("age"):
        plot.exact(ax, one["iteration"], one["mse"], sim.colour(ages, tau),
                   rf"$\tau$ = {tau}: $ha$ = {shares[tau]:.1f} times the limit")
    ax.set(xscale="log", yscale="log", xlabel="iteration L", ylabel=r"MSE of the average of $\theta^2$",
           title="as printed: C = 1/30, gradients scaled by N/J: diverges")
    ax.set(xlim=(0.8, 9e4), ylim=(1e-6, 1e21))
    ax.legend(loc="center right", fontsize=8, title="exact law", title_fontsize=8)


def _draw_reading(ax: Axes, table: pd.DataFrame, name: str) -> None:
    mine = table[table["reading"] == name]
    ages = list(dict.fromkeys(mine["age"]))
    for tau in ages:
        colour = sim.colour(ages, tau)
        seen = mine[(mine["age"] == tau) & (mine["kind"] == "replicas")]
        sim.replicas_band(ax, seen["iteration"], seen, "mse", colour)
        one = mine[(mine["age"] == tau) & (mine["kind"] == "exact")]
        plot.exact(ax, one["iteration"], one["mse"], colour, rf"exact law, $\tau$ = {tau}", linewidth=1.4)
    ends = mine[mine["kind"] == "exact"].groupby("age").last()
    for number, tau in enumerate((ages[0], ages[-1])):
        length = float(ends.loc[tau, "iteration"])
        x = np.geomspace(length / 100.0, length, 20)
        ax.plot(x, ends.loc[tau, "mse"] * (x / length) ** (-2 / 3), color="#000000", linestyle=":",
                linewidth=1.1, label=r"$\tau^{2/3} L^{-2/3}$ through the end point" if number == 0 else None)
    ax.plot(ends["iteration"], ends["mse"], "o", color="#000000", markersize=3.5, zorder=5)
    ax.set(xscale="log", yscale="log", xlabel="iteration L", ylabel=r"MSE of the average of $\theta^2$")
    ax.set_ylim(bottom=float(mine["mse"].min()) / 30.0)
    plot.once(ax, loc="lower left", fontsize=7.8, ncols=2)


def _draw_ends(ax: Axes, tables: Tables) -> None:
    for number, (name, one) in enumerate(tables["ends"].groupby("reading", sort=False)):
        colour = plot.COLOURS[number]
        first = float(one["mse"].iloc[0])
        title = "batch sums, C = 1/30" if name == SUMS else str(name)
        plot.exact(ax, one["age"], one["mse"] / first, colour, f"exact law, {title}", marker="o")
        ax.errorbar(one["age"], one["replicas_mse"] / first,
                    [(one["replicas_mse"] - one["replicas_mse_low"]) / first,
                     (one["replicas_mse_high"] - one["replicas_mse"]) / first], fmt="x", color="#000000",
                    markersize=6, capsize=3, zorder=5, label=plot.BAND)
    ax.axhline(1.0, color="#000000", linestyle=":", linewidth=1.1, label="equal for all ages, as claimed")
    ax.set(xscale="log", yscale="log", xlabel=r"age $\tau$ of the gradients, with $L = L_0 \tau$",
           ylabel=r"MSE at the end / MSE at $\tau$ = 1", title="how equal the end points are")
    ax.set_xticks(sorted(set(tables["ends"]["age"])), [str(v) for v in sorted(set(tables["ends"]["age"]))])
    ax.minorticks_off()
    plot.once(ax, loc="lower left", fontsize=8)


def _spread(tables: Tables, name: str) -> tuple[float, pd.DataFrame]:
    ends = tables["ends"][tables["ends"]["reading"] == name]
    return float(ends["mse"].max() / ends["mse"].min()), ends


def judge_printed(tables: Tables) -> tuple[str, str]:
    """Stability of the printed setting."""
    one = tables["stability"][tables["stability"]["reading"] == PRINTED]
    runs = bool(one["accepted"].any())
    curvature = float(one["curvature"].iloc[0])
    return (PASS if runs else FAIL), (
        f"With N/J-scaled gradients (equation (2)) the curvature is a = {curvature:.0f}, and h a is "
        + ", ".join(f"{row.share:.1f}" for row in one.itertuples()) + " times the stability limit for tau = "
        + ", ".join(str(row.age) for row in one.itertuples())
        + f": at constant ages errors grow by factors {one['radius'].min():.2f} to {one['radius'].max():.2f} "
        + "per iteration"
        + (", and fedsim refuses these step sizes." if not runs else "."))


def judge_equal(tables: Tables, name: str) -> tuple[str, str]:
    """Are the end points within a factor of 1.5?"""
    spread, ends = _spread(tables, name)
    note = ("Minibatch noise adds h S/(2a) to the variance, which falls like 1/tau here."
            if name != SUMS else "The target is then the posterior of 10 data, not of 1000.")
    values = ", ".join(f"{value:.3g}" for value in ends["mse"])
    return (PASS if spread < 1.5 else FAIL), (
        f"Exact MSE at L = L0 tau: {values}; largest over smallest {spread:.2f} (1.5 would "
        f"be accepted as roughly the same). {note}")


def judge_curves(tables: Tables) -> tuple[str, str]:
    """Does the test distinguish anything?"""
    rows = tables["stability"][tables["stability"]["reading"] == SUMS]
    delay = rows["step_size"] * rows["age"]
    return NOT_TESTABLE, (
        "With h = C tau^(-2/3) L^(-1/3) and L = L0 tau both tau h "
        f"({delay.min():.4g} to {delay.max():.4g}) and L h are the same for all tau, so that all chains "
        "approximate one equation with one delay: equal errors follow whatever the error's exponents are. "
        "Figure stale_optimal_step tests them at fixed L.")


def judge_optimal(tables: Tables) -> tuple[str, str]:
    """Is C = 1/30 near the best constant?"""
    best = tables["best"]
    loss = best["mse"] / best["best_mse"]
    return (PASS if float(loss.max()) < 1.1 else FAIL), (
        "In the reading with batch sums: " + "; ".join(
            f"tau = {row.age}: MSE {row.mse:.3g} at C = 1/30, least {row.best_mse:.3g} at C = "
            f"{row.best_constant:.3g}" for row in best.itertuples())
        + f"; the printed C costs a factor {loss.max():.2f} (1.1 would be accepted).")


def judge_exponent(tables: Tables) -> tuple[str, str]:
    """MSE at the end against L0."""
    row = tables["slopes"].iloc[0]
    good = abs(row["slope"] - row["paper"]) < 0.05
    return (PASS if good else FAIL), (
        f"Exact log-log slope in L0 at age 2, batch sums: {sim.slope_text(row)} against -2/3 "
        "(0.05 off would be accepted).")


def judge_lower(tables: Tables) -> tuple[str, str]:
    """Curves over the line through their end."""
    table = tables["far"]
    near, far = (one["least"] for _, one in table.groupby("start"))
    holds = [float(one.min()) >= 0.999 for one in (near, far)]
    return (PASS if all(holds) else NOT_TESTABLE if any(holds) else FAIL), (
        f"From theta_0 = {table['start'].min():g} exact curves fall to {near.min():.2f} of the line through "
        f"their end, as short averages near the mode are good; from theta_0 = {table['start'].max():g} the "
        f"least ratio is {far.min():.3f}. The paper's start is not printed.")


def judge_replicas(tables: Tables) -> tuple[str, str]:
    """End points of replicas."""
    ends = tables["ends"]
    score, limit = sim.largest_score(ends)
    return (PASS if score <= limit else FAIL), (
        f"Mean and variance of the averages at {len(ends)} end points are at most {score:.1f} standard "
        f"errors off the exact law; {limit:.1f} would be too many (false-alarm level 0.001).")


CLAIMS = [
    Claim("With C = 1/30, L0 = 500, 1000 data and minibatches of 10 approximately the same MSEs are obtained "
          "after L0 tau iterations: as printed, gradients scaled by N/J.", "section 5.1, figure 1",
          judge_printed),
    Claim("The same, in our reading: the sum over the minibatch is not rescaled.", "section 5.1, figure 1",
          partial(judge_equal, name=SUMS)),
    Claim("The same, in our reading: the posterior, with a stable C = 1/5000.", "section 5.1, figure 1",
          partial(judge_equal, name=STABLE)),
    Claim("Equal end points verify that the optimal MSE is proportional to tau^(2/3) L^(-2/3).",
          "section 5.1, figure 1", judge_curves),
    Claim("The resulting MSE is proportional to L0^(-2/3).", "section 5.1", judge_exponent),
    Claim("The step sizes make the end points of the curves reach the optimal MSE.", "section 5.1",
          judge_optimal),
    Claim("The curves are lower bounded by tau^(2/3) L^(-2/3).", "section 5.1", judge_lower),
    Claim("ours: replicas agree with the exact law at the end points.", "ours", judge_replicas),
]
