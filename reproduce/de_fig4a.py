"""DE-SGLD figure 4(a): W2 along iterations for several batch sizes, fully connected network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs

from . import _decentralized as de
from . import _decentralized_batches as batches
from . import _decentralized_claims as claims
from . import _decentralized_linear as linear
from . import plot
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, note, settings

TITLE = "DE-SGLD: W2 by batch size"
PAPER = "DE-SGLD figure 4(a)"
SHOWS = ("Replicas and exact moments of one agent for several batch sizes on the fully connected network; "
         "the limits against the batch size beside Theorem 1's; and where the second moment is stable.")
COST = {"tiny": "3 s", "quick": "11 s", "paper": "2 min"}
FULL = 0
PARAMETERS = [
    *batches.COMMON,
    Parameter("step_size", 0.009, "paper", "section 5.1: eta = 0.009 in figure 4(a)"),
    Parameter("network", "complete", "paper", "section 5.1: 4(a) and (b) on the fully connected network"),
    Parameter("batch_sizes", [5, 10, 25, 50, FULL], "ours", "not printed; 0 stands for the full gradient"),
    Parameter("limit_sizes", ByScale([3, 10, 50], [3, 4, 6, 9, 14, 25, 50],
                                     list(range(3, 51))), "ours", "of the middle panel"),
    Parameter("stability_sizes", ByScale([1, 2], [1, 2, 3, 4, 5, 7, 10], [*range(1, 11), 15, 25, 50]), "ours",
              "of the right panel"),
    Parameter("n_late", 120, "ours", "an iteration at which all laws have settled"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, limits, full, theorem, stability, floor."""
    p = settings(PARAMETERS, scale)
    algorithm = fs.DESGLD(p.step_size, fs.network.complete(p.n_clients))

    def problem(size: int) -> fs.LinearRegression:
        return linear.problem_of(p, p.data_seed, None if size == FULL else size)

    curves, checked = [], []
    for number, size in enumerate(p.batch_sizes):
        rows, check = batches.simulated(p, problem(size), algorithm, p.seed + number, batch_size=size)
        curves.append(rows)
        checked.append(check)
    limits, bounds = [], []
    for size in [*p.limit_sizes, FULL]:
        note(f"limits, batch size {size}")
        limits.append({"batch_size": size, **batches.speeds(p, problem(size), algorithm)})
        bounds += batches.theorem_rows(p, problem(size), algorithm, batch_size=size)
    floor = float(fs.distance.w2_floor(problem(FULL).target().cov, p.n_replicas))
    return {"curves": pd.concat(curves), "replicas": pd.DataFrame(checked), "limits": pd.DataFrame(limits),
            "theorem": pd.DataFrame(bounds), "stability": _stability(p, problem, algorithm),
            "floor": pd.DataFrame([{"floor": floor, "step_size": p.step_size}])}


def _stability(p: Any, problem: Any, algorithm: fs.DESGLD) -> pd.DataFrame:
    """Largest step sizes at which the mean, and the second moment, settle."""
    mean = algorithm.stability(problem(FULL).as_quadratic()).max_step_size
    rows = []
    for size in p.stability_sizes:
        note(f"stability, batch size {size}")
        beyond = fs.DESGLD(0.999 * mean, algorithm.mixing)
        try:
            batches.theory.stationary_law(problem(size), beyond)
            limit = 0.999 * mean  # stable as far as the mean is
        except fs.UnstableStepSize as error:
            limit = error.limit
        rows.append({"batch_size": size, "second_moment": limit, "mean": mean})
    return pd.DataFrame(rows)


def draw(tables: Tables) -> Drawing:
    """Curves; limits; stability."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 4.6)
    _draw_curves(left, tables)
    _draw_limits(middle, tables)
    _draw_stability(right, tables)
    return drawing


def _draw_curves(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"]
    for (size, one), colour in zip(curves.groupby("batch_size", sort=False), plot.COLOURS, strict=False):
        name = "full gradient" if size == FULL else f"b = {size}"
        batches.draw_curves(ax, one, batches.AGENT, colour, f"exact moments, {name}")
    shown = de.among(curves, who=batches.AGENT)["exact"]
    ax.set(yscale="log", xlabel="iteration k", ylabel=r"$W_2$(law of agent 1, posterior)",
           title=r"(a) agent 1, fully connected, $\eta$ = 0.009")
    ax.set_ylim(*plot.room(0.9 * float(shown.min()), float(shown.max()), 0.4))
    ticks = [0.2, 0.3, 0.5, 1.0]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    plot.once(ax, loc="upper right", fontsize=7.8)


def _draw_limits(ax: Axes, tables: Tables) -> None:
    limits, theorem = (table[table["batch_size"] != FULL] for table in (tables["limits"], tables["theorem"]))
    batches.draw_limits(ax, limits, "batch_size")
    full = de.among(tables["limits"], batch_size=FULL).iloc[0]
    for column, colour in (("agents", plot.COLOURS[1]), ("average", plot.COLOURS[0])):
        ax.axhline(full[column], color=colour, linewidth=1.0, linestyle="-.",
                   label="the same with full gradients")
    batches.draw_bounds(ax, theorem, "batch_size")
    plot.floor(ax, float(tables["floor"]["floor"].iloc[0]), f"{plot.FLOOR}, average")
    ax.set(xscale="log", yscale="log", xlabel="batch size b", ylabel=r"limit of $W_2$",
           title="ours: the limits; Theorem 1's hardly see b")
    ticks = [3, 5, 10, 25, 50]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_ylim(0.4 * float(tables["floor"]["floor"].iloc[0]), 4.0 * float(theorem["floor"].max()))
    plot.once(ax, loc="upper right", bbox_to_anchor=(1.0, 0.86), fontsize=7.8)


def _draw_stability(ax: Axes, tables: Tables) -> None:
    table, step = tables["stability"], float(tables["floor"]["step_size"].iloc[0])
    sizes = table["batch_size"]
    plot.exact(ax, sizes, table["second_moment"], plot.COLOURS[1], "second moment settles below it",
               marker="s", markersize=4)
    plot.exact(ax, sizes, table["mean"], plot.COLOURS[0], "mean settles below it", linestyle="--")
    ax.axhline(step, color="#000000", linestyle=":", linewidth=1.1, label=rf"the paper's $\eta$ = {step:g}")
    ax.set(xlabel="batch size b", ylabel=r"largest stable step size $\eta$",
           title="ours: small batches lose the second moment")
    ax.set_ylim(0.0, 1.35 * float(table["mean"].max()))
    ax.set_xticks(sizes)
    ax.legend(loc="upper left")


def judge_error(tables: Tables) -> tuple[str, str]:
    """Limits by batch size."""
    limits = tables["limits"]
    ordered = limits[limits["batch_size"] != FULL].sort_values("batch_size")
    full = de.among(limits, batch_size=FULL).iloc[0]
    good = all((np.diff(ordered[name]) < 0.0).all() and full[name] < ordered[name].iloc[-1]
               for name in ("agent", "agents", "average"))
    first, last = ordered.iloc[0], ordered.iloc[-1]
    return (PASS if good else FAIL), (
        f"From b = {first['batch_size']:.0f} over b = {last['batch_size']:.0f} to the full gradient the "
        f"limits of agent 1 are {first['agent']:.3f}, {last['agent']:.3f} and {full['agent']:.3f}, those of "
        f"the average {first['average']:.4f}, {last['average']:.4f} and {full['average']:.4f}"
        f"{', falling at every batch size computed' if good else ''}.")


def judge_predicted(tables: Tables) -> tuple[str, str]:
    """What of it Theorem 1 predicts."""
    theorem, limits = de.among(tables["theorem"], quantity=batches.AVERAGE), tables["limits"]
    if theorem.empty or not theorem["within_hypotheses"].all():
        return FAIL, "The hypotheses of Theorem 1 are violated here, so that it predicts nothing."
    wide = theorem.set_index("batch_size")["floor"]
    exact = limits.set_index("batch_size")["average"]
    sizes = sorted(size for size in wide.index if size != FULL)
    falls = bool((np.diff([wide[size] for size in [*sizes, FULL]]) < 0.0).all())
    return (PASS if falls else FAIL), (
        f"Its limit for the average {'falls' if falls else 'does not fall'} with b, from "
        f"{wide[sizes[0]]:.1f} to {wide[FULL]:.1f}, by {100 * (1 - wide[FULL] / wide[sizes[0]]):.2f}%; the "
        f"exact one falls {exact[sizes[0]] / exact[FULL]:.1f} times: other terms, "
        f"{wide[FULL] / exact[FULL]:.1e} times the "
        "exact limit, drown the gradient noise. sigma is that found along the exact law.")


def judge_small(tables: Tables) -> tuple[str, str]:
    """Does every batch size work at this step size?"""
    table, step = tables["stability"], float(tables["floor"]["step_size"].iloc[0])
    bad = table[table["second_moment"] <= step]
    return (FAIL if len(bad) else PASS), (
        f"At eta = {step:g} the second moment grows without limit for b = "
        + de.listed([f"{size} (limit {limit:.5f})" for size, limit
                     in zip(bad["batch_size"], bad["second_moment"], strict=True)])
        + f", although the mean settles up to {table['mean'].iloc[0]:.4f}: noise that grows with the "
          "distance is outside Assumption 1, and appendix D needs a smaller step." if len(bad) else
        f"At eta = {step:g} the second moment settles for every batch size tried.")


CLAIMS = [
    Claim("Larger batches lead to a smaller asymptotic error.", "section 5.1, figure 4(a)", judge_error),
    Claim("as predicted by Theorem 1 through its bound sigma^2 of the gradient noise: read as the direction, "
          "with sigma along the exact law.", "section 5.1, figure 4(a)", judge_predicted),
    Claim("ours: DE-SGLD settles with every batch size at this step size.", "ours", judge_small),
    Claim("ours: replicas follow the exact moments.", "ours", claims.judge_replicas),
]
