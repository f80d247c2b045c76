"""DE-SGLD figure 4(b): W2 along iterations for several step sizes, minibatches of 25."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
from theory.rates import loglog_slope

from . import _decentralized as de
from . import _decentralized_batches as batches
from . import _decentralized_claims as claims
from . import _decentralized_linear as linear
from . import plot
from .figure import FAIL, PASS, ByScale, Claim, Drawing, Parameter, Tables, note, settings

TITLE = "DE-SGLD: W2 by step size"
PAPER = "DE-SGLD figure 4(b)"
SHOWS = ("Replicas and exact moments of one agent for several step sizes with minibatches of 25; the limits "
         "against the step size beside Theorem 1's; and the iterations until a curve settles.")
COST = {"tiny": "3 s", "quick": "12 s", "paper": "about 2 min (estimated)"}
PARAMETERS = [
    *batches.COMMON,
    Parameter("batch_size", 25, "paper", "section 5.1: b = 25 in figure 4(b)"),
    Parameter("network", "complete", "paper", "section 5.1: 4(a) and (b) on the fully connected network"),
    Parameter("step_sizes", ByScale([0.001, 0.004, 0.009], *2 * [[0.001, 0.002, 0.004, 0.006, 0.008, 0.009]]),
              "ours", "not printed; up to the step size of figure 4(a)"),
    Parameter("small_steps", ByScale([1e-7, 1e-5, 1e-4], [1e-8, 1e-6, 1e-5, 1e-4, 3e-4],
                                     [1e-8, 3e-8, 1e-7, 3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4]), "ours",
              "further step sizes of the middle panel, where Theorem 1 says something"),
    Parameter("n_late", 400, "ours", "an iteration at which the laws of all step_sizes have settled"),
]


def compute(scale: str) -> Tables:
    """Tables: curves, replicas, speeds, limits, theorem, floor."""
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
        laws = batches.stationary(problem, algorithm)
        limits.append({"step_size": step, "average": laws[0].w2(goal), "agent": laws[p.agent_shown].w2(goal),
                       "agents": float(np.mean([law.w2(goal) for law in laws[1:]]))})
        bounds += batches.theorem_rows(p, problem, algorithm, step_size=step)
    floor = float(fs.distance.w2_floor(goal.cov, p.n_replicas))
    return {"curves": pd.concat(curves), "replicas": pd.DataFrame(checked), "speeds": pd.DataFrame(speeds),
            "limits": pd.DataFrame(limits), "theorem": pd.DataFrame(bounds),
            "floor": pd.DataFrame([{"floor": floor, "target_sd": float(np.sqrt(goal.variances.sum()))}])}


def draw(tables: Tables) -> Drawing:
    """Curves; limits; iterations to settle."""
    drawing, ((left, middle, right),) = plot.panels(3, 5.1, 4.6)
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
           title="(b) agent 1, fully connected, b = 25")
    ax.set_ylim(*plot.room(0.85 * float(shown.min()), float(shown.max()), 0.45))
    ticks = [tick for tick in (0.05, 0.1, 0.2, 0.5, 1.0) if tick > 0.6 * shown.min()]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)
    plot.once(ax, loc="upper right", fontsize=7.8)


def _draw_limits(ax: Axes, tables: Tables) -> None:
    limits, theorem = tables["limits"], tables["theorem"]
    batches.draw_limits(ax, limits, "step_size")
    batches.draw_bounds(ax, theorem, "step_size")
    plot.floor(ax, float(tables["floor"]["floor"].iloc[0]), f"{plot.FLOOR}, average")
    ax.axvline(float(tables["floor"]["target_sd"].iloc[0]) ** 2, color=plot.GREY, linewidth=1.0,
               linestyle=":", label="posterior's variance (its trace)")
    ax.set(xscale="log", yscale="log", xlabel=r"step size $\eta$", ylabel=r"limit of $W_2$",
           title="ours: the limits, and where Theorem 1 speaks")
    ax.set_ylim(*plot.room(float(limits["average"].min()), float(theorem["floor"].max()), 0.36))
    plot.once(ax, loc="upper left", fontsize=7.8)


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
    low, high = float(speeds["average"].min()), float(speeds["agents"].max())
    ax.set(xscale="log", yscale="log", xlabel=r"iterations until $W_2$ stays within 5% of its limit",
           ylabel=r"limit of $W_2$", title=r"ours: the trade-off ($\eta$ at the points)")
    ax.set_ylim(*plot.room(low, high, 0.2))
    ax.legend(loc="upper right")


def judge_trade(tables: Tables) -> tuple[str, str]:
    """Faster and less accurate with the step size, for agent, agents' mean and average."""
    speeds = tables["speeds"].sort_values("step_size")
    names = ("agent", "agents", "average")
    worse = all((np.diff(speeds[name]) > 0.0).all() for name in names)
    faster = all((np.diff(speeds[f"{name}_settles"]) <= 0.0).all()
                 and speeds[f"{name}_settles"].iloc[-1] < speeds[f"{name}_settles"].iloc[0] for name in names)
    first, last = speeds.iloc[0], speeds.iloc[-1]
    return (PASS if worse and faster else FAIL), (
        f"From eta = {first['step_size']:g} to {last['step_size']:g} agent 1 settles in "
        f"{first['agent_settles']:.0f} and {last['agent_settles']:.0f} iterations at {first['agent']:.3f} "
        f"and {last['agent']:.3f}, the average in {first['average_settles']:.0f} and "
        f"{last['average_settles']:.0f} at {first['average']:.5f} and {last['average']:.5f}; limits "
        f"{'rise' if worse else 'do not always rise'} and iterations "
        f"{'fall' if faster else 'do not always fall'} along the step sizes.")


def _bound(tables: Tables) -> pd.DataFrame:
    """Theorem 1's limits for the agents at the figure's step sizes."""
    theorem = de.among(tables["theorem"], quantity=linear.AGENTS)
    return theorem[theorem["step_size"].isin(tables["speeds"]["step_size"])].sort_values("step_size")


def judge_theorem(tables: Tables) -> tuple[str, str]:
    """Does Theorem 1's limit rise, within its hypotheses?"""
    used = _bound(tables)
    good = (len(used) == len(tables["speeds"]) and bool(used["within_hypotheses"].all())
            and bool((np.diff(used["floor"]) > 0.0).all()))
    return (PASS if good else FAIL), (
        f"Its hypotheses hold at {int(used['within_hypotheses'].sum())} of {len(tables['speeds'])} step "
        f"sizes of the figure; its limit for the agents goes from {used['floor'].iloc[0]:.3g} to "
        f"{used['floor'].iloc[-1]:.3g} while the factor (1 - mu eta) of its first term falls.")


def judge_vacuous(tables: Tables) -> tuple[str, str]:
    """Does Theorem 1 say anything at these step sizes?"""
    used, theorem = _bound(tables), de.among(tables["theorem"], quantity=linear.AGENTS)
    informative = theorem[~theorem["vacuous"]]["step_size"]
    limits = tables["limits"].set_index("step_size")["agents"]
    ratio = used["floor"].to_numpy() / limits[used["step_size"]].to_numpy()
    return (FAIL if used["vacuous"].any() else PASS), (
        f"Its limit is {ratio.min():.0f} to {ratio.max():.0f} times the agents' exact one, and above the "
        f"distance of the start at {int(used['vacuous'].sum())} of {len(used)} of them; of the step sizes "
        f"computed, it says something up to {informative.max() if len(informative) else 0.0:g}.")


def judge_order(tables: Tables) -> tuple[str, str]:
    """Slopes of the exact limits in eta."""
    limits, variance = tables["limits"], float(tables["floor"]["target_sd"].iloc[0]) ** 2
    small = limits[limits["step_size"] <= 0.1 * variance]
    slopes = {name: loglog_slope(small["step_size"], small[name]) for name in ("average", "agents")} if (
        small["step_size"].nunique() > 2) else {name: loglog_slope(limits["step_size"], limits[name])
                                                for name in ("average", "agents")}
    large = limits[limits["step_size"] >= variance]
    coarse = loglog_slope(large["step_size"], large["agents"])
    return (PASS if 0.5 in slopes["average"] else FAIL), (
        f"Far below the posterior's variance {variance:.1e} the exact limits grow like eta to the power "
        f"{slopes['average']} for the average and {slopes['agents']} for the agents; above it the agents' "
        f"power is {coarse}. The bound's rate is true but not sharp.")


CLAIMS = [
    Claim("A larger step size converges faster to a region of less accuracy.", "section 5.1, figure 4(b)",
          judge_trade),
    Claim("as predicted by Theorem 1, read as the direction.", "section 5.1, figure 4(b)", judge_theorem),
    Claim("ours: at the figure's step sizes Theorem 1's limit is nearer than the start.", "ours",
          judge_vacuous),
    Claim("The asymptotic error is of order sqrt(eta), read as the rate that is seen.", "Remark 2",
          judge_order),
    Claim("ours: replicas follow the exact moments.", "ours", claims.judge_replicas),
]
