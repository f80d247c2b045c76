"""Linear regression of DE-SGLD section 5.1: its data, and the tables of figures 2 and 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import fedsim as fs
import theory
from fedsim.stability.search import stability_radius

from ..figure import ByScale, Parameter, Tables, note
from ..statistics import deviation
from . import shared as de

LEVEL = 0.95
SETTLED = 0.05
"""A curve has settled once it stays within this share of its limit."""
DIM = Parameter("dim", 2, "paper", "section 5.1: x in R^2")
PRIOR = Parameter("prior_variance", 10.0, "paper", "section 5.1: lambda = 10")
NOISE = Parameter("noise_std", 1.0, "paper", "section 5.1: xi = 1")
DATA_SEED = Parameter("data_seed", 0, "ours", "not printed: the first data set; x is drawn from the prior")
MODEL = [Parameter("n_clients", 100, "paper", "section 5.1: N = 100 agents"),
         Parameter("n_data", 5000, "paper", "section 5.1: 5,000 data points, 50 an agent"), DIM, PRIOR, NOISE,
         Parameter("n_replicas", 100, "paper", "section 5.1: 100 independent runs")]
RUNS = [Parameter("n_rounds", ByScale(40, 60, 60), "ours", "not printed; all curves have settled"),
        Parameter("start", [0.0, 0.0], "ours", "not printed: every agent starts at the origin"), DATA_SEED,
        Parameter("seed", 1, "ours", "of the replicas")]
JUDGED = [Parameter("n_checked", ByScale(1280, 1280, 16384), "ours",
                    "replicas compared with the exact moments; 100 are too few for normal scores"),
          Parameter("n_data_sets", ByScale(12, 12, 200), "ours",
                    "claims are judged on the exact laws of this many data sets, each by itself")]
LATE = 200
"""An iteration at which every law of these figures has long settled (spectral radii are below 0.92)."""


def problem_of(p: Any, seed: int, batch_size: int | None = None) -> fs.LinearRegression:
    """Model (53) with x from the prior; data are drawn agent by agent, so the first 50 are agent 1's."""
    rng = np.random.default_rng(seed)
    truth = np.sqrt(p.prior_variance) * rng.standard_normal(p.dim)
    features = rng.standard_normal((p.n_data, p.dim))
    targets = features @ truth + p.noise_std * rng.standard_normal(p.n_data)
    agents = np.repeat(np.arange(p.n_clients), p.n_data // p.n_clients)
    return fs.LinearRegression(features, targets, agents, noise_std=p.noise_std,
                               prior_variance=p.prior_variance, batch_size=batch_size)


def data_sets(p: Any, batch_size: int | None = None) -> Iterator[tuple[int, fs.LinearRegression]]:
    """Seed and regression of every data set on which claims are judged."""
    for seed in range(p.data_seed, p.data_seed + p.n_data_sets):
        note(f"exact laws of data set {seed}")
        yield seed, problem_of(p, seed, batch_size)


def spread(law: fs.Gaussian) -> float:
    """W2 of a point mass at its mean: the root of its trace."""
    return float(np.sqrt(law.variances.sum()))


def floor_of(p: Any, problem: fs.LinearRegression) -> float:
    """W2 to the posterior that a fit to as many perfect draws as there are replicas would show."""
    return float(fs.distance.w2_floor(problem.target().cov, p.n_replicas))


def distances(laws: Sequence[fs.Gaussian], goal: fs.Gaussian) -> np.ndarray:
    """W2 of each law to the posterior."""
    return fs.distance.w2_gaussian(np.stack([law.mean for law in laws]), np.stack([law.cov for law in laws]),
                                   goal.mean, goal.cov)


def rounds_until_last(outside: Any) -> int:
    """Iterations after which what was true of some (n_rounds + 1,) is so no more."""
    return int(np.flatnonzero(np.append(True, outside))[-1])


def settled(w2: Any, limit: float) -> int:
    """Iterations after which the curve stays within 5% of its limit."""
    return rounds_until_last(np.abs(w2 - limit) > SETTLED * limit)


def speeds_of(rows: list[dict[str, Any]], curves: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one data set's networks with iterations until the curves have settled, by two readings.

    "settles" is to within 5% of the own limit; "reaches" is to below the largest of the networks' limits
    and the same 5%.
    """
    for row in rows:
        for quantity, w2 in curves[row["network"]].items():
            largest = max(other[quantity] for other in rows)
            row |= {f"{quantity}_settles": settled(w2, row[quantity]),
                    f"{quantity}_reaches": rounds_until_last(w2 > (1.0 + SETTLED) * largest)}
    return rows


def simulated(p: Any, problem: Any, algorithm: Any, seed: int, views: Mapping[str, int | None],
              **labels: Any) -> tuple[fs.Law, pd.DataFrame, dict[str, Any]]:
    """The exact law; exact and simulated W2 of agents, or of the average (None); a row of their check.

    Rows (labels, who, round, exact, w2, low, high); the check has (labels, deviation, compared, n_checked).
    """
    note("simulating " + ", ".join(f"{name}={value}" for name, value in labels.items()))
    law = theory.exact_law(problem, algorithm, p.n_rounds, start=p.start)
    run = fs.simulate(problem, algorithm, p.n_rounds, p.n_replicas, seed=seed, start=p.start)
    many = fs.simulate(problem, algorithm, p.n_rounds, p.n_checked, seed=seed + 1000, start=p.start,
                       record=[p.n_rounds // 10, p.n_rounds // 2, p.n_rounds])
    wholes: tuple[Any, ...] = law, run, many
    rows, pairs = [], []
    for who, agent in views.items():
        exact, shown, checked = wholes if agent is None else (one.clients[agent] for one in wholes)
        band = shown.w2_interval(LEVEL)
        rows.append(pd.DataFrame({**labels, "who": who, "round": exact.rounds, "exact": exact.w2(),
                                  "w2": shown.w2(), "low": band[:, 0], "high": band[:, 1]}))
        pairs.append((checked, exact))
    return law, pd.concat(rows), {**labels, **largest_deviation(pairs), "n_checked": p.n_checked}


def largest_deviation(pairs: Sequence[tuple[Any, fs.Law]]) -> dict[str, Any]:
    """Of several runs from their exact laws, in standard errors; and how many moments were compared."""
    deviations, counts = zip(*[deviation(run, law) for run, law in pairs], strict=True)
    return {"deviation": max(deviations), "compared": sum(counts)}


def _means(network: str, law: fs.Law) -> pd.DataFrame:
    """W2 along iterations of the average, and mean over agents."""
    return pd.DataFrame({"network": network, "round": law.rounds, "average": law.w2(),
                         "agents": theory.de_sgld.clients_w2(law)})


def tables(p: Any) -> Tables:
    """Tables curves, means, hypotheses, replicas, those of `_sets`, floors; bounds if they have a value."""
    problem, bounds = problem_of(p, p.data_seed), []
    rows = de.empty("curves", "means", "hypotheses", "replicas")
    views = {de.AVERAGE: None} | {f"agent {i + 1}": i for i in range(p.n_agents_shown)}
    for number, name in enumerate(de.NETWORKS):
        algorithm = de.algorithm_on(name, p)
        law, curves, check = simulated(p, problem, algorithm, p.seed + number, views, network=name)
        rows["curves"].append(curves)
        rows["means"].append(_means(name, law))
        facts = theory.constants(problem, algorithm, p.start)
        for quantity in (de.AVERAGE, de.AGENTS):
            theorem = de.applied(quantity, facts, algorithm, p.n_rounds)
            rows["hypotheses"].append(theorem.row(network=name, quantity=quantity, mu=facts.strong_convexity,
                                                  L=facts.smoothness))
            bounds.append(theorem.curve(network=name, quantity=quantity))
        rows["replicas"].append(check)
    floors = [{"floor": floor_of(p, problem), "n_replicas": p.n_replicas,
               "posterior_sd": spread(problem.target())}]
    return de.tables_of(rows) | _sets(p) | de.tables_of({"floors": floors, "bounds": bounds})


def _sets(p: Any) -> Tables:
    """Exact laws of every data set: table sets (limits, speeds, hypotheses), and spread."""
    rows, along = de.empty("sets", "spread"), []
    for seed, problem in data_sets(p):
        limits, curves = [], {}
        for name in de.NETWORKS:
            algorithm = de.algorithm_on(name, p)
            radius = stability_radius(problem.as_quadratic(), algorithm)  # known, not asked again
            law = theory.exact_law(problem, algorithm, LATE, start=p.start, record=np.arange(p.n_rounds + 1),
                                   allow_unstable=radius < 1.0)
            late = distances([agent.at(LATE) for agent in law.clients], problem.target())
            means, facts = _means(name, law), theory.constants(problem, algorithm, p.start)
            theorem, end = de.applied(de.AVERAGE, facts, algorithm), means.iloc[-1]
            along.append(means[:-1])
            curves[name] = means[:-1][["average", "agents"]]
            limits.append({"data_set": seed, "network": name, "posterior_sd": spread(problem.target()),
                           "start": means["average"][0], "average": end["average"], "agents": end["agents"],
                           "best_agent": late.min(), "worst_agent": late.max(),
                           "radius": radius, "status": theorem.status, "why": theorem.why})
        rows["sets"] += speeds_of(limits, curves)
    ends = {f"{name}_{end}": (name, how) for name in ("average", "agents")
            for end, how in (("low", "min"), ("high", "max"))}
    grouped = pd.concat(along).groupby(["network", "round"], sort=False)
    rows["spread"].append(grouped.agg(**ends).reset_index())
    return de.tables_of(rows)


def printed_components(p: Any) -> pd.DataFrame:
    """The f_i as printed, without 1/(2 xi^2), beside those of the density: radii, and spread of exp(-f).

    Rows (data_set, network, form, radius, spread); spread is the root of the trace of exp(-f)'s covariance
    over that of the printed V = (X'X/xi^2 + I/lambda)^-1.
    """
    rows = []
    for seed, density in data_sets(p):
        x = density.features
        printed = fs.LinearRegression(x, density.targets, density.clients, noise_std=np.sqrt(0.5),
                                      prior_variance=p.prior_variance)
        posterior = np.linalg.inv(x.T @ x / p.noise_std**2 + np.eye(p.dim) / p.prior_variance)
        for form, problem in (("printed", printed), ("density", density)):
            times = float(np.sqrt(problem.target().variances.sum() / np.trace(posterior)))
            rows += [{"data_set": seed, "network": name, "form": form, "spread": times,
                      "radius": stability_radius(problem.as_quadratic(), de.algorithm_on(name, p))}
                     for name in de.CONNECTED]
    return pd.DataFrame(rows)
