"""Decentralized Bayesian logistic regression: data, runs and accuracies, and the tables of figures 5 to 8.

The paper reports the share of labels that one agent's iterate classifies rightly. Beside it stands here
the distance that it calls impractical: W2 between the fitted law of the iterates and the posterior's, the
latter from Metropolis-adjusted Hamiltonian Monte Carlo.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

import fedsim as fs
import theory

from ..figure import BadInput, Tables, note
from ..reference import posterior_reference
from ..verdicts import LEVEL, intervals
from . import shared as de

LATE = 0.25
"""Share of the iterations, the last ones, over which an accuracy is averaged."""
Rows = dict[str, list[Any]]


class Data(NamedTuple):
    """Features (n, d) with their column of ones where wanted, labels (n,) of 0 and 1, and what it is."""

    features: np.ndarray
    labels: np.ndarray
    name: str


def simulated(p: Any, number: int) -> Data:
    """The paper's model: normal features, logistic labels, the coefficient drawn from the prior."""
    rng = np.random.default_rng(p.data_seed + number)
    coefficient = np.sqrt(p.prior_variance) * rng.standard_normal(p.dim)
    features = np.sqrt(p.feature_variance) * rng.standard_normal((p.n_data, p.dim))
    labels = (rng.random(p.n_data) <= expit(features @ coefficient)).astype(np.float64)
    return Data(features, labels, "simulated")


def standardised(features: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Columns with mean 0 and variance 1, in the units of `like` if given; a constant one becomes 0 there."""
    base = features if like is None else like
    spread = base.std(axis=0)
    return (features - base.mean(axis=0)) / np.where(np.ptp(base, axis=0) > 0.0, spread, 1.0)


def stretched(features: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Columns from 0 to 1, in the units of `like`; a constant one becomes 0 there."""
    ranges = np.ptp(like, axis=0)
    return (features - like.min(axis=0)) / np.where(ranges > 0.0, ranges, 1.0)


STANDARDISED = "standardised"
FEATURES: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    STANDARDISED: standardised, "as they stand": lambda features, like: features, "in [0, 1]": stretched,
    "in [-1, 1]": lambda features, like: 2.0 * stretched(features, like) - 1.0}
"""How features of real data, which the paper does not say, may be scaled, in the units of training rows.

Runs take the first; whether a theorem covers a figure is asked of all.
"""


def breast_cancer(features: str = STANDARDISED) -> Data:
    """The 569 samples with 30 features, scaled as one of `FEATURES`, and an intercept; label 1 is benign."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise BadInput("the breast cancer data come with scikit-learn, which is not installed: "
                       "install the extra 'figures' of pyproject.toml") from None
    raw, labels = load_breast_cancer(return_X_y=True)
    return Data(with_intercept(FEATURES[features](raw, raw)), labels.astype(np.float64), "breast cancer")


def with_intercept(features: np.ndarray) -> np.ndarray:
    """A last column of ones."""
    return np.column_stack([features, np.ones(len(features))])


def on_agents(data: Data, p: Any, number: int = 0, **options: Any) -> fs.LogisticRegression:
    """The data, in the `number`-th order of chance, spread as evenly as possible over the agents."""
    order = np.random.default_rng(p.split_seed + number).permutation(len(data.labels))
    return fs.LogisticRegression(data.features, data.labels, order % p.n_clients,
                                 prior_variance=p.prior_variance,
                                 batch_size=min(p.batch_size, len(data.labels) // p.n_clients), **options)


def paths(p: Any, problem: fs.LogisticRegression, algorithm: Any, number: int, every: int = 1) -> np.ndarray:
    """The agent's iterates (runs, n, d) on the data set of a number; the first one has more runs."""
    return fs.sample_path(problem, algorithm, p.n_rounds, seed=p.seed + number, every=every,
                          n_chains=p.n_set_runs if number else p.n_runs, client=p.agent, allow_unstable=True)


def accuracies(points: np.ndarray, data: Data, room: int = 2**23) -> np.ndarray:
    """Share of the data on whose right side each point (.., d) lies; the label is 1 iff x'X > 0."""
    flat = points.reshape(-1, points.shape[-1])
    signed, one = data.features * (2.0 * data.labels - 1.0)[:, None], data.labels == 1.0
    right, step = np.empty(len(flat)), max(1, room // len(signed))
    for first in range(0, len(flat), step):
        scores = flat[first:first + step] @ signed.T
        right[first:first + step] = np.where(one, scores > 0.0, scores >= 0.0).mean(axis=1)
    return right.reshape(points.shape[:-1])


def curve(runs: np.ndarray, every: int = 1, **labels: Any) -> pd.DataFrame:
    """Accuracies (runs, n) as rows round, mean, sd, the interval low..high of the mean, labels."""
    low, high = intervals(runs, 1, 0.05)
    return pd.DataFrame({"round": every * np.arange(1, runs.shape[1] + 1), "mean": runs.mean(axis=0),
                         "sd": runs.std(axis=0, ddof=1), "low": low, "high": high, **labels})


def late(path: np.ndarray) -> np.ndarray:
    """The last quarter of (runs, n, ..)."""
    return path[:, -max(1, int(LATE * path.shape[1])):]


def contrasts(accuracy: Mapping[str, np.ndarray], **labels: Any) -> list[dict[str, Any]]:
    """Accuracies of connected networks minus those of the disconnected one, by network.

    Runs of two networks share their random numbers, so that they are compared in pairs.
    """
    apart = {network: accuracy[network] - accuracy["disconnected"] for network in de.CONNECTED}
    return [{**labels, "network": network, "difference": runs.mean(), **dict(zip(
        ("low", "high"), intervals(runs, 1, 0.05), strict=True))} for network, runs in apart.items()]


def posterior(data: Data, problem: fs.LogisticRegression, p: Any) -> tuple[fs.Gaussian, np.ndarray,
                                                                           dict[str, float]]:
    """Its moments as a normal law, and accuracies of its draws: Metropolis-adjusted Hamiltonian Monte Carlo.

    The facts are columns of the table "setting"; "halves_w2" is W2 between the laws fitted to two halves of
    the chains, the size of its sampling error.
    """
    note("reference sample of the posterior")
    sample = posterior_reference(problem, n_chains=p.reference_chains, n_draws=p.reference_draws, seed=p.seed,
                                 leapfrog_steps=p.reference_leapfrogs, warmup=p.reference_warmup,
                                 step_size=p.reference_step)
    pooled, half = sample.pooled(), p.reference_chains // 2
    law, one, other = (fs.Gaussian(draws.mean(axis=0), np.cov(draws.T)) for draws in (
        part.reshape(-1, problem.dim) for part in (pooled, sample.draws[:, :half], sample.draws[:, half:])))
    hits = accuracies(pooled[:: max(1, len(pooled) // 2000)], data)
    return law, hits, {
        "posterior_accuracy": hits.mean(), "posterior_sd": hits.std(ddof=1), "acceptance": sample.acceptance,
        "halves_w2": one.w2(other), "spread": np.sqrt(law.variances.sum()),
        "laplace_w2": problem.laplace().w2(law)}


def compute(p: Any) -> Tables:
    """Tables: curves, sets, contrasts, hypotheses, distances, setting; bounds and pace if any.

    Curves, with those of the other method if any, and distances are of the first data set; "pace" compares
    the two methods.
    """
    rows = de.empty("curves", "sets", "contrasts", "hypotheses", "pace", "distances", "bounds")
    scaled = {} if hasattr(p, "feature_variance") else {name: breast_cancer(name) for name in FEATURES}
    fixed = scaled.get(STANDARDISED)
    first = fixed or simulated(p, 0)
    problem = on_agents(first, p)
    law, hits, facts = posterior(first, problem, p)
    for number in range(p.n_data_sets):
        _add_set(rows, p, number, fixed or simulated(p, number), (law, hits) if fixed else None)
        for name, data in scaled.items():
            add_hypotheses(rows, p, number, on_agents(data, p, number), features=name)
    for name in de.NETWORKS:
        _add_distances(rows, p, name, problem, law)
    low, high = problem.curvature_bounds("components")
    rows["setting"] = [{
        "data": first.name, "units": "dealings" if fixed else "data sets", "n_data": len(first.labels),
        "dim": problem.dim, "strong_convexity": low, "smoothness": high, **facts}]
    return de.tables_of(rows)


def add_hypotheses(rows: Rows, p: Any, number: int, problem: fs.LogisticRegression, **labels: Any) -> None:
    """What the theorem asks of the step size on the data set of this number."""
    for name in de.NETWORKS:
        algorithm = de.algorithm_on(name, p)
        theorem = de.applied(de.AGENTS, theory.constants(problem, algorithm), algorithm)
        rows["hypotheses"].append(theorem.row(theorem=de.method_of(vars(p))[1], data_set=number,
                                              network=name, **labels))


def _add_set(rows: Rows, p: Any, number: int, data: Data,
             reference: tuple[fs.Gaussian, np.ndarray] | None) -> None:
    """Runs of one agent on the data set of this number, with the posterior of `reference` or Laplace's."""
    problem, end, accuracy = on_agents(data, p, number), {}, {}
    law, hits = reference or (problem.laplace(), None)
    hits = accuracies(law.sample(500, p.seed + number), data) if hits is None else hits
    for name, network in de.NETWORKS.items():
        note(f"{network.title} network, {number + 1} of {p.n_data_sets}")
        methods = {"this": de.algorithm_on(name, p)}
        if hasattr(p, "langevin_step_size"):
            methods["other"] = fs.DESGLD(p.langevin_step_size, methods["this"].mixing)
        runs = {}
        for method, algorithm in methods.items():
            path = paths(p, problem, algorithm, number)
            every = accuracies(path, data)
            if number == 0:
                rows["curves"].append(curve(every, network=name, method=method))
            runs[method], end[method] = every[:p.n_set_runs], path[:p.n_set_runs, -1]
        accuracy[name] = late(runs["this"]).mean(axis=1)
        rows["sets"].append({
            "data_set": number, "network": name, "accuracy": accuracy[name].mean(),
            "posterior_accuracy": hits.mean(), "larger_class": 0.5 + abs(data.labels.mean() - 0.5),
            "least_w2": _least_w2(end["this"], law), "spread": np.sqrt(law.variances.sum())})
        if len(methods) > 1:
            rows["pace"].append({"data_set": number, "network": name, **_pace(runs)})
    rows["contrasts"] += contrasts(accuracy, data_set=number)
    if reference is None:  # the features are printed
        add_hypotheses(rows, p, number, problem)


def _least_w2(points: np.ndarray, law: fs.Gaussian) -> float:
    """What W2 between the law of the points (n, d) and `law` is at least, by means and traces alone.

    W2^2 is at least the squared distance of the means plus that of the roots of the covariances' traces.
    """
    trace = points.var(axis=0, ddof=1).sum()
    apart = ((points.mean(axis=0) - law.mean)**2).sum() - trace / len(points)  # less what n points add
    return float(np.sqrt(max(apart, 0.0) + (np.sqrt(trace) - np.sqrt(law.variances.sum()))**2))


def _pace(runs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """When both methods' mean accuracies first are within 0.01 of the lower end, and their spreads.

    An end is the mean over the last quarter; a spread the mean over iterations of the runs' deviation.
    """
    level = min(late(one).mean() for one in runs.values()) - 0.01
    first = {f"first_{method}": 1 + int(np.argmax(one.mean(axis=0) >= level)) for method, one in runs.items()}
    return {"level": level, **first,
            **{f"sd_{method}": one.std(axis=0, ddof=1).mean() for method, one in runs.items()}}


def _add_distances(rows: Rows, p: Any, name: str, problem: fs.LogisticRegression,
                   target: fs.Gaussian) -> None:
    """Mean over agents of W2 on the first data set, with interval and finite-replica floor; and the bound.

    The intervals of all agents, networks and two rounds are right together with probability 1 - LEVEL.
    """
    note(f"{de.NETWORKS[name].title} network, distances")
    rounds = np.unique([p.n_rounds, *np.rint(np.geomspace(1, p.distance_rounds, 32)).astype(int)])
    algorithm = de.algorithm_on(name, p)
    run = fs.simulate(problem, algorithm, p.distance_rounds, p.n_runs, seed=p.seed, record=rounds.tolist(),
                      threads=1, allow_unstable=True)
    laws = [dataclasses.replace(law, target=target) for law in run.clients if isinstance(law, fs.Run)]
    level = 1.0 - LEVEL / (2 * len(de.NETWORKS) * len(laws))
    band, w2, floor = (np.mean([measure(law) for law in laws], axis=0) for measure in (
        lambda law: law.w2_interval(level), fs.Run.w2, fs.Run.w2_floor))
    table = pd.DataFrame({"network": name, "round": run.rounds, "w2": w2, "low": band[:, 0],
                          "high": band[:, 1], "floor": floor})
    rows["distances"].append(table[table["round"].isin(rounds)])
    theorem = de.applied(de.AGENTS, theory.constants(problem, algorithm), algorithm, p.distance_rounds,
                         record=[p.distance_rounds])
    rows["bounds"].append(theorem.curve(network=name).tail(1))
