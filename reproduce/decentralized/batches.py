"""Shared by DE-SGLD figures 4(a) to (c): curves and limits of one agent and of the average, with minibatches.

Minibatch noise depends on where the agents are. Their laws are then not Gaussian, but first and second
moments are exact, and W2 of the Gaussian with these moments is what a Gaussian fit to runs estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius
from theory.de_sgld import clients_w2, minibatch_constants, w2_bound, w2_clients_bound
from theory.exact.batches import MinibatchNoise
from theory.exact.gossip.de_sgld import DESGLDFamily
from theory.exact.gossip.general import Components, Stacked
from theory.exact.gossip.minibatch import MinibatchMap

from .. import plot
from ..figure import Parameter, note
from . import linear, shared as de

AGENT, AVERAGE = "agent", "average"
BOUNDS = ((AVERAGE, w2_bound), (linear.AGENTS, w2_clients_bound))

SETTLED_BY = 0.35
"""Iterations times step size after which curves of the fully connected network have settled."""

AGENT_SHOWN = Parameter("agent_shown", 1, "ours", "the paper picks an agent at random: the first")
COMMON = [linear.CLIENTS, linear.DATA, linear.DIM, linear.PRIOR, linear.NOISE, linear.REPLICAS,
          Parameter("replacement", "minibatches with replacement", "paper", "section 5.1"),
          Parameter("likelihood_factor", 0.5, "ours", "f_i with the 1/(2 xi^2) of its density, as "
                                                      "in figure 2"),
          linear.ROUNDS, linear.START, linear.DATA_SEED, linear.SEED, AGENT_SHOWN, linear.CHECKED,
          linear.DATA_SETS]


def simulated(p: Any, problem: Any, algorithm: Any, seed: int, **labels: Any) -> tuple[pd.DataFrame,
                                                                                       dict[str, Any]]:
    """Exact and simulated W2 of the agent and of the average along iterations; and a row of their check.

    Rows (labels, who, round, exact, w2, low, high); the check has (labels, deviation, compared, n_checked).
    """
    note("simulating " + ", ".join(f"{name}={value}" for name, value in labels.items()))
    law = theory.exact_law(problem, algorithm, p.n_rounds, start=p.start)
    run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=seed, start=p.start)
    agent, rows = p.agent_shown - 1, []
    for who, exact, seen in ((AGENT, law.clients[agent], run.clients[agent]), (AVERAGE, law, run)):
        assert isinstance(seen, fs.Run)
        band = seen.w2_interval(linear.LEVEL)
        rows.append(pd.DataFrame({**labels, "who": who, "round": exact.rounds, "exact": exact.w2(),
                                  "w2": seen.w2(), "low": band[:, 0], "high": band[:, 1]}))
    checked = linear.checked(p, problem, algorithm, law, seed, [agent])
    return pd.concat(rows), {**labels, **checked}


def settles(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> bool:
    """Do mean and second moment contract with these minibatches?"""
    mean = stability_radius(problem.as_quadratic(), algorithm)
    return mean < 1.0 and _map(problem, algorithm)[1].contracts()


def _map(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> tuple[Stacked, MinibatchMap]:
    components = Components(problem.curvature_problem(), algorithm.mixing, True)
    step = DESGLDFamily().move(algorithm, algorithm.schedule.largest)
    return Stacked(components, step.parts), MinibatchMap(components, step, MinibatchNoise(problem))


def stationary(problem: fs.LinearRegression, algorithm: fs.DESGLD) -> list[fs.Gaussian]:
    """Stationary moments of the average and of every agent, where they settle, from one solution for all."""
    views, moves = _map(problem, algorithm)
    means, covs = views.views(*moves.stationary())
    assert covs is not None
    return [fs.Gaussian(mean, cov) for mean, cov in zip(means, covs, strict=True)]


def distances(laws: Sequence[fs.Gaussian], goal: fs.Gaussian) -> np.ndarray:
    """W2 to the posterior of each law of `stationary`."""
    return fs.distance.w2_gaussian(np.stack([law.mean for law in laws]),
                                   np.stack([np.asarray(law.cov) for law in laws]), goal.mean, goal.cov)


def limits(p: Any, problem: fs.LinearRegression, algorithm: fs.DESGLD) -> dict[str, float]:
    """Limits of W2 of the average, of the agent shown and of the agents' mean; infinite if there is none."""
    if problem.batch_size is None:
        law = theory.exact_law(problem, algorithm, linear.LATE, record=[])
        return {AVERAGE: float(law.w2()[-1]), AGENT: float(law.clients[p.agent_shown - 1].w2()[-1]),
                "agents": float(clients_w2(law)[-1])}
    if not settles(problem, algorithm):
        return dict.fromkeys((AVERAGE, AGENT, "agents"), np.inf)
    w2 = distances(stationary(problem, algorithm), problem.target())
    return {AVERAGE: float(w2[0]), AGENT: float(w2[p.agent_shown]), "agents": float(w2[1:].mean())}


def curves(p: Any, problem: fs.LinearRegression, algorithm: fs.DESGLD,
           n_rounds: int) -> tuple[dict[str, np.ndarray], fs.Law]:
    """Exact W2 along iterations of the quantities of `limits`; and the law."""
    law = theory.exact_law(problem, algorithm, n_rounds, start=p.start)
    return {AVERAGE: law.w2(), AGENT: law.clients[p.agent_shown - 1].w2(), "agents": clients_w2(law)}, law


def speeds(p: Any, problem: fs.LinearRegression, algorithm: fs.DESGLD) -> dict[str, float]:
    """The limits, and iterations until the curves stay within 5% of them."""
    rounds = int(np.ceil(SETTLED_BY / algorithm.schedule.largest))
    along, row = curves(p, problem, algorithm, rounds)[0], limits(p, problem, algorithm)
    return row | {f"{name}_settles": float(linear.settled(w2, row[name])) for name, w2 in along.items()}


def constants_of(p: Any, problem: Any, algorithm: Any) -> Any:
    """Constants of Theorem 1, with the gradient noise found along the exact law."""
    if problem.batch_size is None:
        return theory.constants(problem, algorithm, p.start)
    return minibatch_constants(problem, algorithm, p.start, known="a_posteriori", n_rounds=p.n_rounds)


def theorem_rows(p: Any, problem: Any, algorithm: Any, **labels: Any) -> list[dict[str, Any]]:
    """Theorem 1's limits for average and agents, with the gradient noise found along the exact law.

    Rows (labels, quantity, sigma, floor, start, vacuous, status, why); none where it has no value.
    """
    facts = constants_of(p, problem, algorithm)
    rows = []
    for quantity, theorem in BOUNDS:
        says = de.judgement(theorem, facts, algorithm, p.n_rounds)
        if says.bound is not None:
            assert says.bound.floor is not None and says.bound.start_distance is not None
            rows.append({**labels, "quantity": quantity, "floor": says.bound.floor,
                         "sigma": float(np.sqrt(facts.gradient_noise_traces.max())),
                         "start": says.bound.start_distance, "within_hypotheses": says.status == de.HOLD,
                         "vacuous": says.bound.floor >= says.bound.start_distance})
    return rows


def draw_curves(ax: Axes, table: pd.DataFrame, who: str, colour: str, label: str) -> None:
    """Replicas with band and exact moments of one curve."""
    one = de.among(table, who=who)
    plot.replicas(ax, one["round"], one["w2"], one["low"].clip(lower=1e-4), one["high"], colour)
    plot.exact(ax, one["round"], one["exact"], colour, label)


def draw_limits(ax: Axes, table: pd.DataFrame, x: str) -> None:
    """Exact limits of agent, agents' mean and average against a column."""
    for column, label, colour, marker in (("agents", "mean of the agents", plot.COLOURS[1], "s"),
                                          ("agent", "agent 1", plot.COLOURS[3], "D"),
                                          ("average", "average", plot.COLOURS[0], "o")):
        plot.exact(ax, table[x], table[column], colour, f"exact moments, {label}", marker=marker,
                   markersize=4, linewidth=1.3)


def draw_bounds(ax: Axes, table: pd.DataFrame, x: str) -> None:
    """Theorem 1's limits: coloured where they say something, grey where vacuous or outside the hypotheses."""
    for (quantity, colour) in ((AVERAGE, plot.COLOURS[0]), (linear.AGENTS, plot.COLOURS[1])):
        one, of_average = de.among(table, quantity=quantity), quantity == AVERAGE
        empty = one["vacuous"] | ~one["within_hypotheses"]
        joined = empty | empty.shift(-1, fill_value=False)  # grey begins where colour ends
        de.bound(ax, one[x].where(joined), one["floor"].where(joined), True, False,
                 f"Theorem 1, {quantity}", colour, of_average)
        if not empty.all():
            de.bound(ax, one[x].where(~empty), one["floor"].where(~empty), False, False,
                     f"Theorem 1, {quantity}", colour, of_average)


def draw_spread(ax: Axes, sets: pd.DataFrame, x: str) -> None:
    """Least to largest limits of average and agents over all data sets, behind those drawn."""
    for column, colour in (("agents", plot.COLOURS[1]), ("average", plot.COLOURS[0])):
        ends = sets.replace(np.inf, np.nan).groupby(x)[column].agg(["min", "max"]).sort_index()
        ax.fill_between(ends.index, ends["min"], ends["max"], color=colour, alpha=0.15, linewidth=0)
    ax.fill_between([], [], [], color=plot.GREY, alpha=0.25, linewidth=0,
                    label=f"all {sets['data_set'].nunique()} data sets")
