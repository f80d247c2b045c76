"""Graph families of the figure on spectral gaps, and the tables computed on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory
from theory.decentralized.sgld.bounds import clients_terms

from ..figure import note
from . import linear, shared as de

LATE = 10**12
"""Iterations after which every law and bound here is stationary."""
DOUBLED = 2**40
"""About as many: one power of the map, where a round number would be the product of many."""
CIRCULANT, LAZY, RANDOM, SINGLE = "circle with k neighbours a side", "lazy complete", "random", "other"
FAMILIES = (CIRCULANT, LAZY, RANDOM, SINGLE)


def circulant(n: int, k: int) -> np.ndarray:
    """A circle on which every node talks to its k neighbours on either side; complete for k = n/2."""
    shift = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return fs.network.metropolis((np.minimum(shift, n - shift) <= k).astype(float))


def random_graph(n: int, chance: float, seed: int) -> np.ndarray:
    """A path with further links, each with this chance: connected whatever the draw."""
    links = np.triu(np.random.default_rng(seed).random((n, n)) < chance, 1) | np.eye(n, k=1, dtype=bool)
    return fs.network.metropolis((links | links.T).astype(float))


def bipartite(n: int) -> np.ndarray:
    """Two halves, everybody linked to the whole other half: a negative eigenvalue near -1."""
    half = np.arange(n) < n // 2
    return fs.network.metropolis(np.not_equal.outer(half, half).astype(float))


def cliques(n: int) -> np.ndarray:
    """Two complete halves joined by one link."""
    half = np.arange(n) < n // 2
    links = np.equal.outer(half, half).astype(float)
    links[0, n - 1] = links[n - 1, 0] = 1.0
    return fs.network.metropolis(links)


def networks(p: Any) -> Iterator[tuple[str, str, np.ndarray]]:
    """Family, name and mixing matrix of every network."""
    n = p.n_clients
    side = round(np.sqrt(n))
    for k in p.neighbours:
        yield CIRCULANT, f"k = {k}", circulant(n, k)
    for share in p.lazy_shares:
        yield LAZY, f"{share:g} of the time", share * fs.network.complete(n) + (1.0 - share) * np.eye(n)
    for number, chance in enumerate(p.chances):
        yield RANDOM, f"links with chance {chance:g}", random_graph(n, chance, p.network_seed + number)
    yield SINGLE, "path", fs.network.path(n)
    yield SINGLE, "star", fs.network.star(n)
    yield SINGLE, "grid", fs.network.grid(side, n // side)
    yield SINGLE, "complete bipartite", bipartite(n)
    yield SINGLE, "two cliques", cliques(n)


def equal_curvature(problem: fs.Quadratic) -> fs.Quadratic:
    """Every component with the mean Hessian and its own gradient at the origin: the target stays."""
    mean = problem.dense_hessians.mean(axis=0)
    pulls = np.einsum("cij,cj->ci", problem.dense_hessians, problem.minimizers)
    return fs.Quadratic(np.broadcast_to(mean, problem.dense_hessians.shape).copy(),
                        np.linalg.solve(mean, pulls.T).T)


def limits(problem: Any, algorithm: fs.DESGLD) -> tuple[float, float]:
    """Stationary W2 of the average, and mean over agents."""
    law = theory.exact_law(problem, algorithm, DOUBLED, record=[])
    return float(law.w2()[-1]), float(theory.de_sgld.clients_w2(law)[-1])


def row(problem: Any, algorithm: fs.DESGLD, facts: Any, **labels: Any) -> dict[str, Any]:
    """Gap, exact limits and Theorem 1's limits, as one row."""
    theorems = [de.applied(quantity, facts, algorithm) for quantity in (de.AVERAGE, de.AGENTS)]
    bounds, (average, agents) = [theorem.bound for theorem in theorems], limits(problem, algorithm)
    if bounds[0] is None or bounds[1] is None:
        raise ValueError(f"Theorem 1 has no value for {labels}: {theorems[0].why}; networks must be "
                         "connected and step sizes within its range")
    return {**labels, "step_size": float(algorithm.schedule.largest), "gap": fs.network.spectral_gap(
        algorithm.mixing), "smallest": float(de.snapped(fs.network.smallest_eigenvalue(algorithm.mixing))),
        "average": average, "agents": agents, "average_bound": bounds[0].floor,
        "agents_bound": bounds[1].floor, "start": bounds[0].start_distance, "status": theorems[0].status,
        "posterior_sd": linear.spread(problem.target())}


def over_networks(p: Any) -> pd.DataFrame:
    """Every network at every step size on every data set."""
    rows, every = [], list(networks(p))
    for seed, regression in linear.data_sets(p):
        problem = regression.as_quadratic()
        for step in p.step_sizes:
            facts = theory.constants(problem, fs.DESGLD(step, every[0][2]))
            rows += [row(problem, fs.DESGLD(step, mixing), facts, data_set=seed, family=family, network=name)
                     for family, name, mixing in every]
    return pd.DataFrame(rows)


def with_equal_curvature(p: Any) -> pd.DataFrame:
    """Stationary W2 of the average where all Hessians are their mean, on the first data set."""
    same = equal_curvature(linear.problem_of(p, p.data_seed).as_quadratic())
    return pd.DataFrame([{"family": family, "network": name, "step_size": step,
                          "gap": fs.network.spectral_gap(mixing),
                          "average": limits(same, fs.DESGLD(step, mixing))[0]}
                         for family, name, mixing in networks(p) for step in p.step_sizes])


def bound_by_gamma(p: Any) -> pd.DataFrame:
    """Theorem 1's printed bounds with gamma-bar alone varied: rows (gamma, round, average, agents)."""
    problem = linear.problem_of(p, p.data_seed).as_quadratic()
    algorithm, tables = fs.DESGLD(min(p.step_sizes), fs.network.complete(p.n_clients)), []
    setting = theory.de_sgld.setting(theory.constants(problem, algorithm, np.ones(p.dim)), algorithm)
    rounds = np.array([1, 10, 1000, LATE])
    for gamma in np.linspace(0.0, 0.99, 34):
        terms = clients_terms(dataclasses.replace(setting, second=float(gamma)), rounds, "printed")
        agents = sum(terms.values())
        average = agents - terms["clients_transient"] - terms["clients_spread"]
        tables.append(pd.DataFrame({"gamma": gamma, "round": rounds, "average": average, "agents": agents}))
    return pd.concat(tables)


def over_sizes(p: Any) -> pd.DataFrame:
    """Complete and circular networks of growing size, 50 data an agent."""
    rows = []
    for n in p.sizes:
        p_n = type(p)(**{**vars(p), "n_clients": n, "n_data": n * (p.n_data // p.n_clients)})
        problem = linear.problem_of(p_n, p.data_seed).as_quadratic()
        for name in de.CONNECTED:
            note(f"stationary laws, {name}, N = {n}")
            algorithm = fs.DESGLD(min(p.step_sizes), de.NETWORKS[name].mixing(n))
            rows.append(row(problem, algorithm, theory.constants(problem, algorithm), network=name,
                            n_clients=n))
    return pd.DataFrame(rows)


def replicas(p: Any) -> pd.DataFrame:
    """Simulated W2 of average and agents at the large step size, and the deviation from the exact law."""
    problem = linear.problem_of(p, p.data_seed)
    chosen = [(family, name, mixing) for family, name, mixing in networks(p) if name in p.simulated]
    rows = []
    for number, (family, name, mixing) in enumerate(chosen):
        note(f"simulating {family}, {name}")
        algorithm = fs.DESGLD(max(p.step_sizes), mixing)
        law = theory.exact_law(problem, algorithm, p.n_rounds, record=[])
        run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=p.seed + number, record=[])
        views = [one for one in run.clients if isinstance(one, fs.Run)]
        measured = {"average": (run.w2()[-1], *run.w2_interval(linear.LEVEL)[-1]), "agents": np.mean(
            [(one.w2()[-1], *one.w2_interval(linear.LEVEL)[-1]) for one in views], axis=0)}
        rows.append({"family": family, "network": name, "gap": fs.network.spectral_gap(mixing),
                     **{f"{view}{end}": value for view, values in measured.items()
                        for end, value in zip(("", "_low", "_high"), values, strict=True)},
                     "round": p.n_rounds, "exact_average": law.w2()[-1],
                     "exact_agents": float(theory.de_sgld.clients_w2(law)[-1]), "floor": run.w2_floor()[-1],
                     **linear.largest_deviation([(run, law), *zip(views, law.clients, strict=True)])})
    return pd.DataFrame(rows)
