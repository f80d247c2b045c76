"""Shared by the figures of decentralized Bayesian logistic regression: data, runs, accuracies.

The paper reports the share of labels that one agent's iterate classifies rightly. Beside it stands here
the distance that it calls impractical: W2 between the fitted law of the iterates and the posterior's, the
latter from Metropolis-adjusted Hamiltonian Monte Carlo.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import t as student

import fedsim as fs
import theory
from theory import de_sghmc, de_sgld

from ._decentralized import NETWORKS, bound_rows, judgement, judgement_row
from ._reference import posterior_reference
from .figure import BadInput, note

LATE = 0.25
"""Share of the iterations, the last ones, over which an accuracy is averaged."""


class Data(NamedTuple):
    """Features (n, d) with their column of ones where wanted, labels (n,) of 0 and 1, and what it is."""

    features: np.ndarray
    labels: np.ndarray
    name: str


def simulated(n_data: int, dim: int, feature_variance: float, prior_variance: float, seed: int) -> Data:
    """The paper's model: normal features, logistic labels, the coefficient drawn from the prior."""
    rng = np.random.default_rng(seed)
    coefficient = np.sqrt(prior_variance) * rng.standard_normal(dim)
    features = np.sqrt(feature_variance) * rng.standard_normal((n_data, dim))
    labels = (rng.random(n_data) <= expit(features @ coefficient)).astype(np.float64)
    return Data(features, labels, "simulated")


def breast_cancer() -> Data:
    """The 569 samples with 30 standardised features and an intercept; label 1 is benign."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise BadInput("the breast cancer data come with scikit-learn, which is not installed: "
                       "install the extra 'figures' of pyproject.toml") from None
    features, labels = load_breast_cancer(return_X_y=True)
    return Data(with_intercept(standardised(features)), labels.astype(np.float64), "breast cancer")


def standardised(features: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Columns with mean 0 and variance 1, in the units of `like` if given."""
    base = features if like is None else like
    return (features - base.mean(axis=0)) / base.std(axis=0)


def with_intercept(features: np.ndarray) -> np.ndarray:
    """A last column of ones."""
    return np.column_stack([features, np.ones(len(features))])


def on_agents(data: Data, p: Any, **options: Any) -> fs.LogisticRegression:
    """The data, in an order of chance, spread as evenly as possible over the agents."""
    agents = np.random.default_rng(p.split_seed).permutation(len(data.labels)) % p.n_clients
    return fs.LogisticRegression(data.features, data.labels, agents, prior_variance=p.prior_variance,
                                 batch_size=min(p.batch_size, len(data.labels) // p.n_clients), **options)


def accuracies(points: np.ndarray, data: Data, room: int = 2**23) -> np.ndarray:
    """Share of the data on whose right side each point (.., d) lies; the label is 1 iff x'X > 0."""
    flat = points.reshape(-1, points.shape[-1])
    signed, one = data.features * (2.0 * data.labels - 1.0)[:, None], data.labels == 1.0
    right, step = np.empty(len(flat)), max(1, room // len(signed))
    for first in range(0, len(flat), step):
        scores = flat[first:first + step] @ signed.T
        right[first:first + step] = np.where(one, scores > 0.0, scores >= 0.0).mean(axis=1)
    return right.reshape(points.shape[:-1])


def interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Mean of independent values and Student's interval for it."""
    mean, n = float(values.mean()), len(values)
    half = float(student.isf(0.5 * (1.0 - level), n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def curve(found: np.ndarray, every: int = 1) -> pd.DataFrame:
    """Accuracies (replicas, n) as rows round, mean, sd, and the interval low..high of the mean."""
    n = len(found)
    sd = found.std(axis=0, ddof=1)
    half = student.isf(0.025, n - 1) * sd / np.sqrt(n)
    mean = found.mean(axis=0)
    return pd.DataFrame({"round": every * np.arange(1, found.shape[1] + 1), "mean": mean, "sd": sd,
                         "low": mean - half, "high": mean + half})


def late(found: np.ndarray) -> np.ndarray:
    """Mean accuracy over the last quarter of the iterations, replica by replica."""
    return found[:, -max(1, int(LATE * found.shape[1])):].mean(axis=1)


def contrasts(kept: dict[Any, np.ndarray], **labels: Any) -> list[dict[str, Any]]:
    """Late accuracies of connected networks minus those of the disconnected one, run by run.

    `kept` maps (network, agent) to late accuracies. Runs of two networks share their random numbers, so
    that their differences are compared in pairs. Agent -1 is the mean of all agents.
    """
    rows = []
    for agent in sorted({key[1] for key in kept}):
        for network in ("complete", "ring"):
            mean, low, high = interval(kept[network, agent] - kept["disconnected", agent])
            rows.append({**labels, "network": network, "agent": agent, "difference": mean, "low": low,
                         "high": high})
    return rows


class Posterior(NamedTuple):
    """The posterior's moments as a normal law, and the accuracies of its draws.

    `halves` is W2 between the laws fitted to two halves of the chains: the size of its sampling error.
    """

    law: fs.Gaussian
    accuracies: np.ndarray
    acceptance: float
    halves: float


def posterior(data: Data, problem: fs.LogisticRegression, p: Any) -> Posterior:
    """From Metropolis-adjusted Hamiltonian Monte Carlo."""
    note("reference sample of the posterior")
    found = posterior_reference(problem, n_chains=p.reference_chains, n_draws=p.reference_draws, seed=p.seed,
                                leapfrog_steps=p.reference_leapfrogs, warmup=p.reference_warmup,
                                step_size=p.reference_step)
    draws, half = found.pooled(), p.reference_chains // 2
    one, other = (_fitted(found.draws[:, part]) for part in (slice(half), slice(half, None)))
    return Posterior(_fitted(found.draws), accuracies(draws[:: max(1, len(draws) // 2000)], data),
                     found.acceptance, one.w2(other))


def _fitted(draws: np.ndarray) -> fs.Gaussian:
    pooled = draws.reshape(-1, draws.shape[-1])
    return fs.Gaussian(pooled.mean(axis=0), np.cov(pooled.T))


def distances(run: fs.Run, target: fs.Gaussian, network: str) -> pd.DataFrame:
    """W2 of the average, and the mean over clients of W2, with intervals and finite-replica floors."""
    rows = []
    clients = [law for law in run.clients if isinstance(law, fs.Run)]
    for who, laws in (("average", [run]), ("clients", clients)):
        seen = [dataclasses.replace(law, target=target) for law in laws]
        band = np.mean([law.w2_interval() for law in seen], axis=0)
        rows.append(pd.DataFrame({"network": network, "who": who, "round": run.rounds,
                                  "w2": np.mean([law.w2() for law in seen], axis=0), "low": band[:, 0],
                                  "high": band[:, 1],
                                  "floor": np.mean([law.w2_floor() for law in seen], axis=0)}))
    return pd.concat(rows)


def theorems(algorithm: Any) -> tuple[str, Callable[..., Any], Callable[..., Any]]:
    """Name, bound for the average, bound for the clients."""
    if isinstance(algorithm, fs.DESGHMC):
        return "Theorem 11", de_sghmc.w2_bound, de_sghmc.w2_clients_bound
    return "Theorem 1", de_sgld.w2_bound, de_sgld.w2_clients_bound


def compute(p: Any, data: Data, algorithm_on: Callable[[Any], Any],
            other_on: Callable[[Any], Any] | None = None) -> dict[str, pd.DataFrame]:
    """Tables: curves, agents, contrasts, distances, hypotheses, setting; bounds where there are any.

    `algorithm_on` makes the algorithm on a mixing matrix; the curves of `other_on`, if given, are added.
    """
    problem = on_agents(data, p)
    reference = posterior(data, problem, p)
    rounds = np.unique([p.n_rounds, *np.rint(np.geomspace(1, p.distance_rounds, 32)).astype(int)]).tolist()
    curves, agents, measured, bounds, hypotheses = [], [], [], [], []
    kept: dict[Any, np.ndarray] = {}
    for name, network in NETWORKS.items():
        note(f"{network.title} network")
        algorithm = algorithm_on(network.mixing(p.n_clients))
        for agent in range(p.n_clients):
            path = fs.sample_path(problem, algorithm, p.n_rounds, seed=p.seed, n_chains=p.n_runs,
                                  client=agent, allow_unstable=True)
            found = accuracies(path, data)
            if agent == p.agent:
                curves.append(curve(found).assign(network=name, method="this"))
            kept[name, agent] = late(found)
            mean, low, high = interval(kept[name, agent])
            agents.append({"network": name, "agent": agent, "accuracy": mean, "low": low, "high": high,
                           "sd": float(kept[name, agent].std(ddof=1))})
        kept[name, -1] = np.mean([kept[name, agent] for agent in range(p.n_clients)], axis=0)
        if other_on is not None:
            path = fs.sample_path(problem, other_on(network.mixing(p.n_clients)), p.n_rounds, seed=p.seed,
                                  n_chains=p.n_runs, client=p.agent, allow_unstable=True)
            curves.append(curve(accuracies(path, data)).assign(network=name, method="other"))
        run = fs.simulate(problem, algorithm, p.distance_rounds, p.n_runs, seed=p.seed, record=rounds,
                          threads=1, allow_unstable=True)
        kept_rounds = np.flatnonzero(np.isin(run.rounds, [0, *rounds]))
        table = distances(run, reference.law, name)
        measured.append(table[table["round"].isin(run.rounds[kept_rounds])])
        constants = theory.constants(problem, algorithm)
        for who, theorem in zip(("average", "clients"), theorems(algorithm)[1:], strict=True):
            said = judgement(theorem, constants, algorithm, p.distance_rounds, record=rounds)
            bounds.append(bound_rows(said, network=name, who=who))
        hypotheses.append(judgement_row(said, network=name, theorem=theorems(algorithm)[0]))
    low, high = problem.curvature_bounds("components")
    facts = {"data": data.name, "n_data": len(data.labels), "dim": problem.dim, "strong_convexity": low,
             "smoothness": high, "posterior_accuracy": reference.accuracies.mean(),
             "posterior_sd": reference.accuracies.std(ddof=1), "acceptance": reference.acceptance,
             "halves_w2": reference.halves,
             "spread": float(np.sqrt(reference.law.variances.sum())),
             "laplace_w2": problem.laplace().w2(reference.law), "larger_class": max(
                 float(data.labels.mean()), 1.0 - float(data.labels.mean()))}
    tables = {"curves": pd.concat(curves), "agents": pd.DataFrame(agents),
             "contrasts": pd.DataFrame(contrasts(kept)), "distances": pd.concat(measured),
             "hypotheses": pd.DataFrame(hypotheses), "setting": pd.DataFrame([facts])}
    if any(len(part) for part in bounds):
        tables["bounds"] = pd.concat([part for part in bounds if len(part)])
    return tables
