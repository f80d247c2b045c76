"""DE-SGLD figure 4(b): W2 along iterations for several step sizes, minibatches of 25."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory.de_sgld import w2_clients_bound
from theory.rates import loglog_slope

from .. import plot
from ..figure import (
    DATA_SETS,
    FAIL,
    NOT_TESTABLE,
    OUTSIDE,
    PASS,
    ByScale,
    Claim,
    Drawing,
    Finding,
    Parameter,
    Tables,
    note,
    settings,
)
from ..verdicts import Judgement, shares, unanimous
from . import batches, claims, linear, shared as de
from .claims import SAME

TITLE = "W2 by step size"
PAPER = "DE-SGLD figure 4(b)"
REPRODUCES = ("DE 4(b)",)
SHOWS = ("Replicas and exact moments of one agent for several step sizes with minibatches of 25; the limits "
         "against the step size beside Theorem 1's; and the iterations until a curve settles.")
COST = {"tiny": "9 s", "quick": "20 s", "paper": "about 5 min (estimated)"}
LOOSE = {"small": ("step_size", 1e-6, 1e-11)}
"""At step size 1e-6 a limit is solved for with condition number 1e6: processors differ by 2e-12."""

PARAMETERS = [
    *batches.COMMON,
    Parameter("batch_size", 25, "paper", "section 5.1: b = 25 in figure 4(b)"),
    Parameter("network", "complete", "paper", "section 5.1: 4(a) and (b) on the fully connected network"),
    Parameter("step_sizes", ByScale([0.001, 0.004, 0.009], *2 * [[0.001, 0.002, 0.004, 0.006, 0.008, 0.009]]),
              "ours", "not printed; up to the step size of figure 4(a)"),
    Parameter("small_steps", ByScale([1e-7, 1e-5, 1e-4], [1e-8, 1e-6, 1e-5, 1e-4, 3e-4],
                                     [1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4]), "ours",
              "further step sizes of the middle panel, where Theorem 1 says something"),
    Parameter("set_steps", ByScale([0.004, 0.009], [0.002, 0.004, 0.009], [0.002, 0.004, 0.006, 0.009]),
              "ours", "step sizes at which the claims are judged on every data set"),
    Parameter("set_small_steps", [1e-6, 1e-5, 1e-4], "ours", "the same for the order of the error"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, speeds, limits, sets, small, starts, theorem, floor."""
    p = settings(PARAMETERS, scale)
    problem = linear.problem_of(p, p.data_seed, p.batch_size)
    goal, mixing = problem.target(), fs.network.complete(p.n_clients)
    curves, checked, speeds = [], [], []
    for number, step in enumerate(p.step_sizes):
        algorithm = fs.DESGLD(step, mixing)
        rows, check = batches.simulated(p, problem, algorithm, p.seed + number, step_size=step)
        curves.append(rows)
        checked.append(check)
        speeds.append({"step_size": step, **batches.speeds(p, problem, algorithm)})
    limits, bounds = [], []
    for step in [*p.small_steps, *p.step_sizes]:
        note(f"limits, step size {step:g}")
        algorithm = fs.DESGLD(step, mixing)
        limits.append({"step_size": step, **batches.limits(p, problem, algorithm)})
        bounds += batches.theorem_rows(p, problem, algorithm, step_size=step)
    floor = float(fs.distance.w2_floor(goal.cov, p.n_replicas))
    return {"curves": pd.concat(curves), "replicas": pd.DataFrame(checked), "speeds": pd.DataFrame(speeds),
            "limits": pd.DataFrame(limits), "theorem": pd.DataFrame(bounds), **_sets(p, mixing),
            "floor": pd.DataFrame([{"floor": floor, "target_sd": float(np.sqrt(goal.variances.sum()))}])}


def _sets(p: Any, mixing: Any) -> Tables:
    """Limits and speeds on every data set; Theorem 1 without gradient noise; limits at small step sizes."""
    sets, starts, small = [], [], []
    for seed in range(p.data_seed, p.data_seed + p.n_data_sets):
        note(f"limits of data set {seed}")
        problem, exact = linear.problem_of(p, seed, p.batch_size), linear.problem_of(p, seed)
        for step in p.set_steps:
            algorithm = fs.DESGLD(step, mixing)
            sets.append({"data_set": seed, "step_size": step, **batches.speeds(p, problem, algorithm)})
            says = de.judgement(w2_clients_bound, batches.constants_of(p, exact, algorithm), algorithm, 1)
            if says.bound is not None:
                starts.append({"data_set": seed, "step_size": step, "covered": says.status == de.HOLD,
                               "floor": says.bound.floor, "start": says.bound.start_distance})
        small += [{"data_set": seed, "step_size": step, **batches.limits(p, problem, fs.DESGLD(step, mixing))}
                  for step in p.set_small_steps]
    return {"sets": pd.DataFrame(sets), "starts": pd.DataFrame(starts), "small": pd.DataFrame(small)}


def draw(tables: Tables) -> Drawing:
    """Curves; limits; iterations to settle."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.4, 5.4)
    _draw_curves(left, tables)
    _draw_limits(middle, tables)
    _draw_speeds(right, tables)
    return drawing


def _draw_curves(ax: Axes, tables: Tables) -> None:
    curves = tables["curves"]
    for (step, one), colour in zip(curves.groupby("step_size", sort=False), plot.COLOURS, strict=False):
        batches.draw_curves(ax, one, batches.AGENT, colour, rf"exact moments, $\eta$ = {step:g}")
    shown = de.among(curves, who=batches.AGENT)["exact"]
    ax.set(yscale="log", xlabel="iteration k", ylabel=r"$W_2$(law of agent 1, posterior)",
           title="(b) agent 1, fully connected, b = 25; bands: replicas")
    ax.set_ylim(*plot.room(0.85 * float(shown.min()), float(shown.max()), 0.02))
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.5, 1.0) if tick > 0.6 * shown.min()]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    de.legend_below(ax)


def _draw_limits(ax: Axes, tables: Tables) -> None:
    limits, theorem = tables["limits"], tables["theorem"]
    batches.draw_limits(ax, limits, "step_size")
    for table in (tables["small"], tables["sets"]):
        batches.draw_spread(ax, table, "step_size")
    batches.draw_bounds(ax, theorem, "step_size")
    plot.floor(ax, float(tables["floor"]["floor"].iloc[0]), f"{plot.FLOOR}, average")
    ax.axvline(float(tables["floor"]["target_sd"].iloc[0]) ** 2, color=plot.GREY, linewidth=1.0,
               linestyle=":", label="posterior's variance (its trace)")
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$", ylabel=r"limit of $W_2$",
           title="ours: the limits, and where Theorem 1 speaks")
    ax.set_ylim(*plot.room(float(limits["average"].min()), float(theorem["floor"].max()), 0.02))
    de.legend_below(ax)


def _draw_speeds(ax: Axes, tables: Tables) -> None:
    speeds = tables["speeds"]
    for name, label, colour, marker in (("agents", "mean of the agents", plot.COLOURS[1], "s"),
                                        ("average", "average", plot.COLOURS[0], "o")):
        plot.exact(ax, speeds[f"{name}_settles"], speeds[name], colour, f"exact moments, {label}",
                   marker=marker, markersize=5)
    for i, row in enumerate(speeds.to_dict("records")):
        ax.annotate(f"{row['step_size']:g}", (row["average_settles"], row["average"]), fontsize=8,
                    textcoords="offset points", xytext=(5, 4) if i % 2 else (-5, -11),
                    ha="left" if i % 2 else "right")
    for name, colour, marker in (("agents", plot.COLOURS[1], "s"), ("average", plot.COLOURS[0], "o")):
        ax.plot(tables["sets"][f"{name}_settles"], tables["sets"][name], marker, color=colour, markersize=3,
                alpha=0.35, label=f"all {tables['sets']['data_set'].nunique()} data sets")
    low, high = float(speeds["average"].min()), float(speeds["agents"].max())
    ax.set(xscale="log", yscale="log", xlabel=r"iterations until $W_2$ stays within 5% of its limit",
           ylabel=r"limit of $W_2$", title=r"ours: the trade-off ($\eta$ at the points)")
    ax.set_ylim(*plot.room(low, high, 0.02))
    de.legend_below(ax)


def judge_trade(tables: Tables) -> Judgement:
    """Faster and less accurate with the step size, for agent, agents' mean and average, on every data set."""
    sets, names = tables["sets"], ("agent", "agents", "average")
    worse, faster = [], []
    for _, one in sets.sort_values("step_size").groupby("data_set"):
        worse.append(all((np.diff(one[name]) > 0.0).all() for name in names))
        faster.append(all((np.diff(one[f"{name}_settles"]) <= 0.0).all()
                          and one[f"{name}_settles"].iloc[-1] < one[f"{name}_settles"].iloc[0]
                          for name in names))
    ends = [de.among(sets, step_size=step).median() for step in (sets["step_size"].min(),
                                                                 sets["step_size"].max())]
    said = [f"{name} {ends[0][f'{name}_settles']:.0f} and {ends[1][f'{name}_settles']:.0f} iterations at "
            f"{ends[0][name]:.5f} and {ends[1][name]:.5f}" for name in names]
    return Judgement(unanimous(np.logical_and(worse, faster)), (
        f"From eta = {ends[0]['step_size']:g} to {ends[1]['step_size']:g} limits rise {shares(worse)} and "
        f"the iterations to within 5% of them fall {shares(faster)}; medians: {'; '.join(said)}."))


def judge_theorem(tables: Tables) -> Judgement:
    """Does Theorem 1's limit rise, where it covers the figure?"""
    theorem = de.among(tables["theorem"], quantity=linear.AGENTS).sort_values("step_size")
    used = theorem[theorem["step_size"].isin(tables["speeds"]["step_size"]) & theorem["within_hypotheses"]]
    if len(used) < 2:
        return Judgement(OUTSIDE, f"Theorem 1 covers {len(used)} of the figure's step sizes.")
    steps = np.diff(used["floor"])
    verdict = PASS if (steps > 0.0).all() else FAIL if (steps <= 0.0).all() else NOT_TESTABLE
    return Judgement(verdict, (
        f"At {len(used)} of {len(tables['speeds'])} step sizes of the figure its hypotheses hold; its limit "
        f"for the agents goes from {used['floor'].iloc[0]:.3g} to {used['floor'].iloc[-1]:.3g}, upwards in "
        f"{int((steps > 0.0).sum())} of {len(steps)} steps."))


def judge_vacuous(tables: Tables) -> Judgement:
    """Is Theorem 1's limit nearer than the start, even without gradient noise?"""
    used = tables["starts"][tables["starts"]["covered"]]
    if used.empty:
        return Judgement(NOT_TESTABLE, f"Theorem 1 covers none of {len(tables['starts'])} cases.")
    near = (used["floor"] < used["start"]).groupby(used["data_set"])
    all_near, none = near.all(), ~near.any()
    verdict = PASS if unanimous(all_near) == PASS else FAIL if unanimous(none) == PASS else NOT_TESTABLE
    ratio = used["floor"] / used["start"]
    return Judgement(verdict, (
        f"Where its hypotheses hold its limit for the agents, without any gradient noise, is "
        f"{ratio.min():.3g} to {ratio.max():.3g} times the distance of the start, below it at every step "
        f"size {shares(all_near)} and at none {shares(none)}."))


def judge_order(tables: Tables) -> Judgement:
    """Is W2 / sqrt(eta) of the average bounded as eta falls?"""
    small = tables["small"].sort_values("step_size")
    bounded, powers = [], {name: list[float]() for name in ("average", "agents")}
    for _, one in small.groupby("data_set"):
        ratio = one["average"].to_numpy() / np.sqrt(one["step_size"].to_numpy())
        bounded.append(bool((np.diff(ratio) >= -SAME * ratio[1:]).all()))
        for name, found in powers.items():
            found.append(loglog_slope(one["step_size"], one[name]).value)
    verdict = unanimous(bounded)
    said = [f"{min(found):.3f} to {max(found):.3f} ({name})" for name, found in powers.items()]
    return Judgement(verdict, (
        f"From eta = {small['step_size'].max():g} down to {small['step_size'].min():g} the average's limit "
        f"over sqrt(eta) does not rise {shares(bounded)}."), (
        f"True, not sharp: limits go like eta to the power {de.listed(said)}." if verdict == PASS else ""))


CLAIMS = [
    Claim("A larger step size converges faster to a region of less accuracy.", "section 5.1, figure 4(b)",
          judge_trade, name="trade_off", rests_on=DATA_SETS),
    Claim("as predicted by Theorem 1, read as the direction.", "section 5.1, figure 4(b)", judge_theorem,
          name="predicted", rests_on=DATA_SETS,
          context="Every term of the limit rises with eta and the factor 1 - mu eta of the first falls, "
                  "whatever the data; these decide only which step sizes are in its range."),
    Finding("At the figure's step sizes Theorem 1's limit is nearer than the start.", "Theorem 1",
            judge_vacuous, name="informative", rests_on=DATA_SETS,
            context="Gradient noise makes the limit larger, so that leaving it out is the kindest case."),
    Claim("The asymptotic error is of order sqrt(eta).", "Remark 2", judge_order, name="order",
          rests_on=DATA_SETS, context="O is an upper bound: W2 over sqrt(eta) stays bounded as eta falls."),
    claims.replicas_finding("exact moments"),
]
