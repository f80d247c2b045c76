"""Shared by DE-SGLD figures 4(a) to (c): curves and limits of one agent and of the average, with minibatches.

Minibatch noise depends on where the agents are. Their laws are then not Gaussian, but first and second
moments are exact, and W2 of the Gaussian with these moments is what a Gaussian fit to runs estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius
from theory.exact.batches import MinibatchNoise
from theory.exact.gossip.algorithms import DESGLDFamily
from theory.exact.gossip.general import Components
from theory.exact.gossip.minibatch import MinibatchMap

from .. import plot
from ..figure import Drawing, Parameter, Tables
from ..tables import among, groups
from . import linear, shared as de

SETTLED_BY = 0.35
"""Iterations times step size after which curves of the fully connected network have settled."""
COMMON = [*linear.MODEL, Parameter("replacement", "minibatches with replacement", "paper", "section 5.1"),
          Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) of its density, as "
                                                      "in figure 2"), *linear.RUNS,
          Parameter("agent_shown", 1, "ours", "the paper picks an agent at random: the first"),
          *linear.JUDGED]
VIEWS = {"agents": (de.AGENTS, plot.COLOURS[1], "s"), "average": (de.AVERAGE, plot.COLOURS[0], "o")}
"""Name, colour and marker of what the theorem is about, by column."""


def simulated(p: Any, runs: Iterable[tuple[Any, Any, dict[str, Any]]]) -> Tables:
    """Tables curves and replicas of the agent and of the average: from problems, algorithms, and labels."""
    views = {"agent": p.agent_shown - 1, "average": None}
    parts = [linear.simulated(p, problem, algorithm, p.seed + number, views, **labels)
             for number, (problem, algorithm, labels) in enumerate(runs)]
    return {"curves": pd.concat([curves for _, curves, _ in parts]),
            "replicas": pd.DataFrame([check for *_, check in parts])}


def settles(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> bool:
    """Do mean and second moment contract with these minibatches?"""
    return _contracts(problem, algorithm, _map(problem, algorithm)[1])


def _contracts(problem: fs.LinearRegression, algorithm: fs.DESGLD, moves: MinibatchMap) -> bool:
    return stability_radius(problem.as_quadratic(), algorithm) < 1.0 and moves.contracts()


def _map(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> tuple[Components, MinibatchMap]:
    components = Components(problem.curvature_problem(), algorithm.mixing, True)
    step = DESGLDFamily().move(algorithm, algorithm.schedule.largest)
    return components, MinibatchMap(components, step, MinibatchNoise(problem))


def stationary(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> list[fs.Gaussian]:
    """Stationary moments of the average and of every agent; none where they do not settle."""
    if problem.batch_size is None:
        law = theory.exact_law(problem, algorithm, linear.LATE, record=[])
        return [view.at(linear.LATE) for view in (law, *law.clients)]
    views, moves = _map(problem, algorithm)
    if not _contracts(problem, algorithm, moves):
        return []
    means, covs = views.views(*moves.stationary())
    assert covs is not None
    return [fs.Gaussian(mean, cov) for mean, cov in zip(means, covs, strict=True)]


def distances(laws: list[fs.Gaussian], problem: fs.LinearRegression) -> np.ndarray:
    """W2 to the posterior of the average and of every agent; infinite where they do not settle."""
    return linear.distances(laws, problem.target()) if laws else np.full(problem.n_clients + 1, np.inf)


def limits(p: Any, problem: fs.LinearRegression, algorithm: fs.DESGLD) -> dict[str, float]:
    """Limits of W2 of the average, of the agent shown and of the agents' mean."""
    return named(p, distances(stationary(problem, algorithm), problem))


def named(p: Any, w2: np.ndarray) -> dict[str, float]:
    """The quantities of `limits` among the distances of the average and of every agent."""
    return {"average": w2[0], "agent": w2[p.agent_shown], "agents": w2[1:].mean()}


def along(p: Any, law: fs.Law) -> dict[str, np.ndarray]:
    """W2 along iterations of the quantities of `limits`."""
    return {"average": law.w2(), "agent": law.clients[p.agent_shown - 1].w2(),
            "agents": theory.de_sgld.clients_w2(law)}


def speeds(p: Any, problem: fs.LinearRegression, algorithm: fs.DESGLD) -> dict[str, float]:
    """The limits, and iterations until the curves stay within 5% of them."""
    rounds, row = int(np.ceil(SETTLED_BY / algorithm.schedule.largest)), limits(p, problem, algorithm)
    curves = along(p, theory.exact_law(problem, algorithm, rounds, start=p.start))
    return row | {f"{name}_settles": float(linear.settled(w2, row[name])) for name, w2 in curves.items()}


def constants_of(p: Any, problem: Any, algorithm: Any) -> Any:
    """Constants of Theorem 1, with the gradient noise found along the exact law."""
    if problem.batch_size is None:
        return theory.constants(problem, algorithm, p.start)
    return theory.de_sgld.minibatch_constants(problem, algorithm, p.start, known="a_posteriori",
                                              n_rounds=p.n_rounds)


def theorem_rows(p: Any, problem: Any, algorithm: Any, **labels: Any) -> list[dict[str, Any]]:
    """Theorem 1's limits for average and agents, with the gradient noise found along the exact law.

    Rows (labels, quantity, floor, sigma, start, within_hypotheses, vacuous); none where it has no value.
    """
    facts, rows = constants_of(p, problem, algorithm), []
    for quantity in (de.AVERAGE, de.AGENTS):
        theorem = de.applied(quantity, facts, algorithm, p.n_rounds)
        if theorem.bound is not None:
            floor, start = theorem.bound.floor, theorem.bound.start_distance
            assert floor is not None and start is not None
            rows.append({**labels, "quantity": quantity, "floor": floor,
                         "sigma": float(np.sqrt(facts.gradient_noise_traces.max())), "start": start,
                         "within_hypotheses": theorem.status == de.HOLD, "vacuous": floor >= start})
    return rows


def three(*panels: Callable[[Axes, Tables], None]) -> Callable[[Tables], Drawing]:
    """What draws a figure of three panels, from what draws each."""
    def draw(tables: Tables) -> Drawing:
        drawing, axes = plot.panels(3, 5.4, 5.4)
        for ax, panel in zip(axes[0], panels, strict=True):
            panel(ax, tables)
            plot.legend_below(ax, 2)
        return drawing

    return draw


def draw_curves(ax: Axes, curves: pd.DataFrame, column: str, looks: Iterable[tuple[str, str]],
                title: str) -> None:
    """Replicas with band and exact moments of agent 1: a name and a colour for each value in a column."""
    shown = among(curves, who="agent")
    for (_, one), (name, colour) in zip(groups(shown, column), looks, strict=False):
        plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=1e-4), one["high"], colour)
        plot.exact(ax, one["round"], one["exact"], colour, f"exact moments, {name}")
    ax.set(xlabel="iteration k", ylabel=r"$W_2$(law of agent 1, posterior)", title=title,
           ylim=(0.0, 1.05 * float(shown["high"].max())))


def draw_curves_by(ax: Axes, curves: pd.DataFrame, column: str, name: Callable[[Any], str],
                   title: str) -> None:
    """The same on a logarithmic axis, for the values of a parameter."""
    looks = plot.shaded(map(name, curves[column].unique()))
    draw_curves(ax, curves, column, looks, title)
    shown = among(curves, who="agent")["exact"]
    low, high = plot.room(0.85 * float(shown.min()), float(shown.max()), 0.02)
    ticks = [tick for tick in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0) if low <= tick <= high]
    ax.set(yscale="log", ylim=(low, high))
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks([], minor=True)


def draw_limits(ax: Axes, x: str, limits: pd.DataFrame, theorem: pd.DataFrame, floor: float,
                *sets: pd.DataFrame) -> None:
    """Limits against a column: exact ones, Theorem 1's, and from least to largest over all data sets."""
    looks = {"agents": VIEWS["agents"], "agent": ("agent 1", plot.COLOURS[3], "D")} | VIEWS
    for column, (name, colour, marker) in looks.items():
        plot.exact(ax, limits[x], limits[column], colour, f"exact moments, {name}", marker=marker,
                   markersize=4, linewidth=1.3)
    for table in sets:
        for column, (_, colour, _) in VIEWS.items():
            ends = table.replace(np.inf, np.nan).groupby(x)[column].agg(["min", "max"]).sort_index()
            ax.fill_between(ends.index, ends["min"], ends["max"], color=colour, alpha=0.15, linewidth=0)
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.25, linewidth=0,
                    label=f"all {sets[0]['data_set'].nunique()} data sets")
    draw_bounds(ax, theorem, x)
    plot.floor(ax, floor, f"{plot.FLOOR}, average")
    ax.set(xscale="log", yscale="log", ylabel=r"limit of $W_2$")


def draw_bounds(ax: Axes, table: pd.DataFrame, x: str) -> None:
    """Theorem 1's limits: coloured where they say something, grey where vacuous or outside the hypotheses."""
    for quantity, colour, _ in reversed(VIEWS.values()):
        one, of_average = among(table, quantity=quantity), quantity == de.AVERAGE
        empty = one["vacuous"] | ~one["within_hypotheses"]
        joined = empty | empty.shift(-1, fill_value=False)  # grey begins where colour ends
        for some, vacuous in ((joined, True), (~empty, False)):
            if vacuous or some.any():
                de.bound(ax, one[x].where(some), one["floor"].where(some), vacuous, False,
                         f"Theorem 1, {quantity}", colour, of_average)
