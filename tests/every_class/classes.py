"""Classes of problems, their options, and a small problem of every choice of them.

Values of options are words, so that they can be named; `build` says what they stand for. What a class takes
is either an option or data: `tests/test_every_class.py` fails for an argument that is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fedsim as fs

SIZES = (3, 4)
"""Data of the two clients of a regression: few enough for all minibatches of two out of all."""
SHARES = {"default": None, "equal": (0.5, 0.5), "unequal": (0.3, 0.7)}
"""By default those of a regression are shares of the data, others equal."""
BATCHES: dict[str, Sequence[Any]] = {"batch_size": (None, 1, 2), "replace": (True, False),
                                     "grad_scale": ("unbiased", "batch_sum")}


@dataclass(frozen=True)
class Row:
    """A class, what is given as data, its options, and what makes a problem of a choice."""

    kind: type
    data: tuple[str, ...]
    options: Mapping[str, Sequence[Any]]
    build: Callable[..., Any]


def rows(dim: int, sizes: tuple[int, ...] = SIZES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, targets, and who holds them, in mixed order."""
    rng = np.random.default_rng(0)
    clients = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = rng.standard_normal((len(clients), dim))
    return features, features @ np.ones(dim) + rng.standard_normal(len(clients)), clients


def _quadratic(structure: str, weights: str, gradient_noise: str) -> fs.Quadratic:
    hessians = {"isotropic": np.array([1.0, 3.0]), "diagonal": np.array([[1.0, 2.0], [3.0, 1.5]]),
                "dense": np.array([[[2.0, 0.8], [0.8, 1.5]], [[1.0, -0.4], [-0.4, 3.0]]])}[structure]
    noise: Any = {"none": None, "scalar": 0.7, "covariance": np.array(
        [[[1.0, 0.5], [0.5, 0.4]], [[0.2, 0.0], [0.0, 2.0]]])}[gradient_noise]
    return fs.Quadratic(hessians, [[1.0, -0.5], [-0.5, 2.0]], SHARES[weights], noise)


def _linear(dim: int, weights: str, **batches: Any) -> fs.LinearRegression:
    features, targets, clients = rows(dim)
    return fs.LinearRegression(features, targets, clients, noise_std=1.5, prior_variance=0.5,
                               weights=SHARES[weights], **batches)


def _logistic(dim: int, weights: str, gradient_noise: float | None, **batches: Any) -> fs.LogisticRegression:
    features, targets, clients = rows(dim)
    return fs.LogisticRegression(features, (targets > 0).astype(int), clients, prior_variance=0.5,
                                 weights=SHARES[weights], gradient_noise=gradient_noise, **batches)


def _softmax(weights: str, gradient_noise: float | None, feature_scale: float, n_classes: int | None,
             **batches: Any) -> fs.SoftmaxRegression:
    features, _, clients = rows(1)
    return fs.SoftmaxRegression(features, [0, 1, 2, 0, 1, 2, 1], clients, prior_variance=0.5,
                                n_classes=n_classes, weights=SHARES[weights], gradient_noise=gradient_noise,
                                feature_scale=feature_scale, **batches)


def _mean(prior_variance: float, **batches: Any) -> fs.GaussianMean:
    return fs.GaussianMean([0.5, -1.0, 2.0, 3.0, 0.1], prior_variance=prior_variance, **batches)


def slope(client: int, x: Any, rates: Any) -> Any:
    """Of the clients of `fs.Custom`: curvatures 1 and 3."""
    return rates[client] * (x - client)


def height(client: int, x: Any, rates: Any) -> Any:
    """Their potentials."""
    return 0.5 * rates[client] * (x - client) ** 2


def _custom(weights: str, potential: bool, curvature: bool, **options: Any) -> fs.Custom:
    rates = np.array([1.0, 3.0])
    return fs.Custom(slope, 2, data=(rates,), weights=SHARES[weights],
                     potential=height if potential else None, curvature=rates if curvature else None,
                     **options)


_REGRESSION = {"weights": tuple(SHARES), **BATCHES}
CLASSES = {row.kind.__name__: row for row in (
    Row(fs.Quadratic, ("minimizers", "hessians"), {
        "structure": ("isotropic", "diagonal", "dense"), "weights": tuple(SHARES),
        "gradient_noise": ("none", "scalar", "covariance")}, _quadratic),
    Row(fs.LinearRegression, ("features", "targets", "clients", "noise_std", "prior_variance"),
        {"dim": (1, 2), **_REGRESSION}, _linear),
    Row(fs.LogisticRegression, ("features", "labels", "clients", "prior_variance"),
        {"dim": (1, 2), **_REGRESSION, "gradient_noise": (None, 0.8)}, _logistic),
    Row(fs.SoftmaxRegression, ("features", "labels", "clients", "prior_variance"),
        {**_REGRESSION, "gradient_noise": (None, 0.8), "feature_scale": (1.0, 0.5), "n_classes": (None, 3)},
        _softmax),
    Row(fs.GaussianMean, ("data",), {"prior_variance": (1.0, 0.2), **BATCHES}, _mean),
    Row(fs.Custom, ("gradient", "n_clients", "dim", "data"), {
        "weights": tuple(SHARES), "gradient_noise": (None, 0.8), "potential": (True, False),
        "curvature": (True, False), "support": (None, (-50.0, 50.0)), "check_indices": (True, False)},
        _custom))}
"""By name; `fs.Quadratic` has its structure as an option in place of an argument."""


def possible(choice: Mapping[str, Any]) -> bool:
    """Is it a problem of its own? Without a batch size nothing is drawn, by whatever rule."""
    plain = choice.get("grad_scale") == "unbiased" and choice["replace"]
    return plain or choice.get("batch_size", 0) is not None
