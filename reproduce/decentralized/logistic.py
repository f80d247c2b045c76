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

from ..figure import BadInput, Tables, note
from ..reference import posterior_reference
from ..verdicts import LEVEL
from .assumptions import assumptions_row, logistic_noise_sd
from .shared import CONNECTED, NETWORKS, bound_rows, judgement, judgement_row

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


def on_agents(data: Data, p: Any, number: int = 0, **options: Any) -> fs.LogisticRegression:
    """The data, in the `number`-th order of chance, spread as evenly as possible over the agents."""
    order = np.random.default_rng(p.split_seed + number).permutation(len(data.labels))
    return fs.LogisticRegression(data.features, data.labels, order % p.n_clients,
                                 prior_variance=p.prior_variance,
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


def contrasts(kept: dict[str, np.ndarray], **labels: Any) -> list[dict[str, Any]]:
    """Late accuracies of connected networks minus those of the disconnected one, by network.

    Runs of two networks share their random numbers, so that they are compared in pairs.
    """
    return [{**labels, "network": network, **dict(zip(
        ("difference", "low", "high"), interval(kept[network] - kept["disconnected"]), strict=True))}
        for network in CONNECTED]


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


def distances(run: fs.Run, target: fs.Gaussian, network: str, rounds: np.ndarray) -> pd.DataFrame:
    """Mean over agents of W2, with its interval and finite-replica floor, at these rounds.

    The intervals of all agents, networks and two rounds are right together with probability 1 - LEVEL.
    """
    laws = [dataclasses.replace(law, target=target) for law in run.clients if isinstance(law, fs.Run)]
    level = 1.0 - LEVEL / (2 * len(NETWORKS) * len(laws))
    band = np.mean([law.w2_interval(level) for law in laws], axis=0)
    found = pd.DataFrame({"network": network, "round": run.rounds,
                          "w2": np.mean([law.w2() for law in laws], axis=0), "low": band[:, 0],
                          "high": band[:, 1], "floor": np.mean([law.w2_floor() for law in laws], axis=0)})
    return found[found["round"].isin(rounds)]


def theorem_of(algorithm: Any) -> tuple[str, Callable[..., Any]]:
    """Name, and bound for the clients."""
    if isinstance(algorithm, fs.DESGHMC):
        return "Theorem 11", de_sghmc.w2_clients_bound
    return "Theorem 1", de_sgld.w2_clients_bound


def range_row(problem: fs.LogisticRegression, algorithm: Any, **labels: Any) -> dict[str, Any]:
    """What the algorithm's theorem asks of the step size, as a row of the table "hypotheses"."""
    theorem, bound = theorem_of(algorithm)
    said = judgement(bound, theory.constants(problem, algorithm), algorithm, 1)
    return judgement_row(said, theorem=theorem, **labels)


def assumed_row(problem: fs.LogisticRegression, **labels: Any) -> dict[str, Any]:
    """What the paper assumes of it, as a row of the table "assumptions"."""
    assert problem.batch_size is not None
    noise = logistic_noise_sd(problem.features, problem.clients, problem.batch_size)
    return assumptions_row(problem.curvature_bounds("components"), noise, **labels)


def compute(p: Any, data_of: Callable[[int], Data], algorithm_on: Callable[[Any], Any],
            other_on: Callable[[Any], Any] | None = None) -> Tables:
    """Tables: curves, sets, contrasts, distances, hypotheses, assumptions, setting; also bounds and pace.

    `data_of` gives the data set of a number, `algorithm_on` makes the algorithm on a mixing matrix.
    Curves, with those of `other_on` if given, and distances are of the first data set; "pace" compares
    the two algorithms.
    """
    sets = range(p.n_data_sets)
    first = data_of(0)
    shared = data_of(1) is first
    problem = on_agents(first, p)
    reference = posterior(first, problem, p)
    parts = [_on_one_set(p, number, data_of(number), reference if shared else None, algorithm_on, other_on)
             for number in sets]
    found = {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]}
    low, high = problem.curvature_bounds("components")
    facts = {"data": first.name, "units": "dealings" if shared else "data sets",
             "n_data": len(first.labels), "dim": problem.dim, "strong_convexity": low, "smoothness": high,
             "posterior_accuracy": reference.accuracies.mean(),
             "posterior_sd": reference.accuracies.std(ddof=1), "acceptance": reference.acceptance,
             "halves_w2": reference.halves, "spread": float(np.sqrt(reference.law.variances.sum())),
             "laplace_w2": problem.laplace().w2(reference.law)}
    return {**found, **_measured(p, problem, reference.law, algorithm_on), "setting": pd.DataFrame([facts])}


def _on_one_set(p: Any, number: int, data: Data, reference: Posterior | None,
                algorithm_on: Callable[[Any], Any],
                other_on: Callable[[Any], Any] | None) -> dict[str, pd.DataFrame]:
    """Runs of one agent on the data set of this number, and what the theorems ask of it.

    The posterior is that of `reference`, or the Laplace law.
    """
    problem, is_first = on_agents(data, p, number), number == 0
    law = problem.laplace() if reference is None else reference.law
    hits = (accuracies(law.sample(500, p.seed + number), data) if reference is None
            else reference.accuracies)
    larger = max(float(data.labels.mean()), 1.0 - float(data.labels.mean()))
    curves, rows, pace, hypotheses = [], [], [], []
    kept: dict[str, np.ndarray] = {}
    for name, network in NETWORKS.items():
        note(f"{network.title} network, {number + 1} of {p.n_data_sets}")
        mixing = network.mixing(p.n_clients)
        found = {}
        for method, made in (("this", algorithm_on), ("other", other_on)):
            if made is None:
                continue
            path = fs.sample_path(problem, made(mixing), p.n_rounds, seed=p.seed + number,
                                  n_chains=p.n_runs if is_first else p.n_set_runs, client=p.agent,
                                  allow_unstable=True)
            found[method] = accuracies(path, data)
            if is_first:
                curves.append(curve(found[method]).assign(network=name, method=method))
            found[method] = found[method][:p.n_set_runs]
            if method == "this":
                end = path[:p.n_set_runs, -1]
        kept[name] = late(found["this"])
        rows.append({"data_set": number, "network": name, "accuracy": float(kept[name].mean()),
                     "posterior_accuracy": float(hits.mean()), "larger_class": larger,
                     "least_w2": _least_w2(end, law), "spread": float(np.sqrt(law.variances.sum()))})
        if other_on is not None:
            pace.append({"data_set": number, "network": name, **_pace(found)})
        hypotheses.append(range_row(problem, algorithm_on(mixing), data_set=number, network=name))
    tables = {"sets": rows, "contrasts": contrasts(kept, data_set=number), "hypotheses": hypotheses,
              "assumptions": [assumed_row(problem, data_set=number)]}
    return {"curves": pd.concat(curves) if curves else pd.DataFrame(),
            **{name: pd.DataFrame(part) for name, part in tables.items()},
            **({"pace": pd.DataFrame(pace)} if pace else {})}


def _least_w2(points: np.ndarray, law: fs.Gaussian) -> float:
    """What W2 between the law of the points (n, d) and `law` is at least, by means and traces alone.

    W2^2 is at least the squared distance of the means plus that of the roots of the covariances' traces.
    """
    trace = points.var(axis=0, ddof=1).sum()
    apart = ((points.mean(axis=0) - law.mean)**2).sum() - trace / len(points)  # less what n points add
    return float(np.sqrt(max(apart, 0.0) + (np.sqrt(trace) - np.sqrt(law.variances.sum()))**2))


def _pace(found: dict[str, np.ndarray]) -> dict[str, float]:
    """When both methods' mean accuracies first are within 0.01 of the lower end, and their spreads.

    An end is the mean over the last quarter; a spread the mean over iterations of the runs' deviation.
    """
    level = min(late(one).mean() for one in found.values()) - 0.01
    first = {f"first_{method}": 1 + int(np.argmax(one.mean(axis=0) >= level))
             for method, one in found.items()}
    return {"level": float(level), **first,
            **{f"sd_{method}": float(one.std(axis=0, ddof=1).mean()) for method, one in found.items()}}


def _measured(p: Any, problem: fs.LogisticRegression, target: fs.Gaussian,
              algorithm_on: Callable[[Any], Any]) -> dict[str, pd.DataFrame]:
    """Tables distances and, where the theorem has a value, bounds: of all agents on the first data set."""
    rounds = np.unique([p.n_rounds, *np.rint(np.geomspace(1, p.distance_rounds, 32)).astype(int)])
    measured, bounds = [], []
    for name, network in NETWORKS.items():
        note(f"{network.title} network, distances")
        algorithm = algorithm_on(network.mixing(p.n_clients))
        run = fs.simulate(problem, algorithm, p.distance_rounds, p.n_runs, seed=p.seed,
                          record=rounds.tolist(), threads=1, allow_unstable=True)
        measured.append(distances(run, target, name, rounds))
        said = judgement(theorem_of(algorithm)[1], theory.constants(problem, algorithm), algorithm,
                         p.distance_rounds, record=[p.distance_rounds])
        bounds.append(bound_rows(said, network=name).tail(1))
    known = [part for part in bounds if len(part)]
    return {"distances": pd.concat(measured), **({"bounds": pd.concat(known)} if known else {})}
