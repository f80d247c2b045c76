"""Simulation-based calibration: what is known of the data sees how the data are handled.

A parameter is drawn from the prior and data from the model, anew for every data set; the sampler then draws
from the posterior. Whatever the model, the parameter's rank among the draws is uniform if the gradients, the
prior, the weights and the noise together are those of the posterior; and so are the ranks of its likelihood
and of its size (Talts and others, arXiv:1804.06788; Modrak and others, arXiv:2211.02383).

Chains are long and steps small: what they make of the posterior's variance is off by about 1%, a tenth of a
standard error of the statistics here. They begin at a normal approximation of the posterior that is found
here by Newton's method, so that a wrong program has to leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from mutants import with_arrays
from scipy import stats
from scipy.special import expit

import fedsim as fs

SETS, DRAWS = 250, 63
PRIOR = 0.06


class Model(NamedTuple):
    """Data of clients of these `sizes`; steps of size `step` over the largest curvature."""

    kind: str
    sizes: tuple[int, ...]
    step: float
    n_rounds: int
    batch: int | None = None
    sigma: float = 1.0
    prior: float = PRIOR

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return 1 if self.kind == "mean" else 2


MODELS = {"linear": Model("linear", (1, 3, 12), 0.02, 500, sigma=0.6),
          "linear, minibatches": Model("linear", (2, 2, 2, 2, 20), 0.005, 1600, 2, sigma=0.6, prior=0.3),
          "logistic": Model("logistic", (1, 1, 1, 1, 28), 0.02, 500, prior=1.0),
          "mean": Model("mean", (16,), 0.004, 1000, 2)}


class Drawn(NamedTuple):
    """A parameter and the data that it made: features (n, d), targets (n,) and clients (n,)."""

    parameter: np.ndarray
    features: np.ndarray
    targets: np.ndarray
    clients: np.ndarray


def drawn(model: Model, rng: Any) -> Drawn:
    """From the prior, and from the model."""
    clients = rng.permutation(np.repeat(np.arange(len(model.sizes)), model.sizes))
    parameter = np.sqrt(model.prior) * rng.standard_normal(model.dim)
    features = np.ones((len(clients), 1))
    if model.kind != "mean":
        features = rng.standard_normal((len(clients), model.dim)) * (1.0, 1.5)
    scores = features @ parameter
    if model.kind == "logistic":
        targets = (rng.random(len(clients)) < expit(scores)).astype(float)
    else:
        targets = scores + model.sigma * rng.standard_normal(len(clients))
    return Drawn(parameter, features, targets, clients)


def problem_of(model: Model, data: Drawn, **options: Any) -> Any:
    """As a user would write it."""
    given = {"prior_variance": model.prior, "batch_size": model.batch} | options
    if model.kind == "mean":
        return fs.GaussianMean(data.targets, **given)
    if model.kind == "linear":
        given = {"noise_std": model.sigma} | given
        return fs.LinearRegression(data.features, data.targets, data.clients, **given)
    return fs.LogisticRegression(data.features, data.targets.astype(int), data.clients, **given)


def log_likelihood(model: Model, data: Drawn, points: np.ndarray) -> np.ndarray:
    """Of points (m, d), without constants."""
    scores = points @ data.features.T
    if model.kind == "logistic":
        return -np.logaddexp(0.0, (1.0 - 2.0 * data.targets) * scores).sum(axis=1)
    return -0.5 * ((scores - data.targets) ** 2).sum(axis=1) / model.sigma**2


def approximation(model: Model, data: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Mode and Hessian of minus the logarithm of the posterior there, by Newton's method."""
    x, features = np.zeros(model.dim), data.features
    for _ in range(20 if model.kind == "logistic" else 1):
        scores = features @ x
        if model.kind == "logistic":
            slopes, curvatures = expit(scores) - data.targets, expit(scores) * expit(-scores)
        else:
            slopes = (scores - data.targets) / model.sigma**2
            curvatures = np.full(len(scores), model.sigma**-2)
        hessian = features.T @ (curvatures[:, None] * features) + np.eye(model.dim) / model.prior
        x = x - np.linalg.solve(hessian, features.T @ slopes + x / model.prior)
    return x, hessian


def chain(model: Model, data: Drawn, problem: Any, seed: int) -> np.ndarray:
    """Independent draws (m, d) after many rounds."""
    mode, hessian = approximation(model, data)
    largest = np.linalg.eigvalsh(data.features.T @ data.features)[-1] / model.sigma**2 + 1.0 / model.prior
    start = fs.Gaussian(mode, np.linalg.inv(hessian))
    return fs.simulate(problem, fs.FALD(float(model.step / largest)), model.n_rounds, DRAWS, seed=seed,
                       start=start, record=(), covariance="none", keep_final=True, allow_unstable=True,
                       threads=1).final


def calibration(name: str, make: Callable[..., Any] = problem_of, n_sets: int = SETS) -> np.ndarray:
    """Standard normal numbers, `statistics` of the ranks of coordinates, likelihood and size.

    A rank is uniform on 0, ..., m, and evenly spread within its step it is uniform on [0, 1] exactly.
    """
    model, rng = MODELS[name], np.random.default_rng([7, len(name)])
    places = []
    for number in range(n_sets):
        data = drawn(model, rng)
        draws = chain(model, data, make(model, data), number)
        points = np.vstack([data.parameter, draws])
        own, *values = np.column_stack(
            [points, log_likelihood(model, data, points), (points**2).sum(axis=1)])
        places.append(((values < own).sum(axis=0) + rng.random(len(own))) / (DRAWS + 1))
    return statistics(np.array(places))


def statistics(places: np.ndarray) -> np.ndarray:
    """Of independent uniform rows (n, k): normal numbers (3 k,) for shift, spread and shape."""
    z, n = stats.norm.ppf(places), len(places)
    spread = stats.chi2(n)
    size = (z**2).sum(axis=0)
    tail = np.maximum(np.minimum(spread.cdf(size), spread.sf(size)), 1e-280)
    shape = [stats.norm.isf(max(stats.kstest(column, "uniform").pvalue, 1e-280) / 2.0) for column in places.T]
    return np.concatenate([z.sum(axis=0) / np.sqrt(n), stats.norm.isf(tail), shape])


@pytest.mark.parametrize("name", MODELS)
def test_ranks_are_uniform(name, alarm):
    alarm.assert_normal(calibration(name), name)


@pytest.mark.parametrize("name", ["linear", "mean"])
def test_closed_posteriors_are_calibrated(name, alarm):
    """Without a chain, and with as many data sets as show half a percent of a variance."""
    model, rng, places = MODELS[name], np.random.default_rng(8), []
    for _ in range(3000):
        data = drawn(model, rng)
        target = problem_of(model, data).target()
        places.append(stats.norm.cdf((data.parameter - target.mean) / np.sqrt(target.variances)))
    alarm.assert_normal(statistics(np.array(places)), name)


def other(**options: Any) -> Callable[..., Any]:
    """A problem with other options than those that the data were made by."""
    return lambda model, data: problem_of(model, data, **options)


def changed(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A problem whose compiled form is changed, in arrays of the same types."""
    def make(model: Model, data: Drawn) -> Any:
        problem = problem_of(model, data)
        return with_arrays(problem, lambda arrays: change(arrays, problem))

    return make


def flipped(model: Model, data: Drawn) -> Any:
    """Labels 0 for 1."""
    return problem_of(model, data._replace(targets=1.0 - data.targets))


def uniform_weights(arrays: Any, problem: Any) -> Any:
    """Gradients over equal weights, as if the server did not weigh clients by n_i / n."""
    return arrays._replace(scales=arrays.scales * problem.weights * problem.n_clients)


MUTANTS = {
    "prior counted by every client": ("linear", other(prior_variance=PRIOR / 3)),
    "the mean's prior counted by every datum": ("mean", other(prior_variance=PRIOR / 16)),
    "prior left out": ("mean", other(prior_variance=1e6)),
    "noise_std taken for the variance": ("linear", other(noise_std=MODELS["linear"].sigma ** 2)),
    "sums of a minibatch not scaled": ("linear, minibatches", other(grad_scale="batch_sum")),
    "the mean's sums of a minibatch not scaled": ("mean", other(grad_scale="batch_sum")),
    "minibatches scaled as if of all data": ("linear, minibatches", changed(
        lambda arrays, problem: arrays._replace(scales=2.0 * arrays.scales))),
    "equal weights in minibatches": ("linear, minibatches", changed(uniform_weights)),
    "equal weights": ("logistic", changed(uniform_weights)),
    "labels flipped": ("logistic", flipped)}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_handling_of_data_is_caught(mutant, alarm):
    name, make = MUTANTS[mutant]
    alarm.must_fail(calibration(name, make), mutant)


def test_without_a_change_the_mutant_is_the_program():
    model, data = MODELS["logistic"], drawn(MODELS["logistic"], np.random.default_rng(3))
    same = changed(lambda arrays, problem: arrays)(model, data)
    draws = [chain(model, data, problem, 5) for problem in (problem_of(model, data), same)]
    assert draws[0].tobytes() == draws[1].tobytes() and draws[0].shape == (DRAWS, model.dim)


def test_the_statistics_are_normal_numbers(alarm):
    """Under the law that they are for."""
    rng = np.random.default_rng(1)
    found = np.array([statistics(rng.random((SETS, 2))) for _ in range(200)])
    alarm.assert_normal(found, "statistics")
    alarm.assert_pvalue(stats.kstest(found[:, :2].ravel(), "norm").pvalue, "shifts")
