"""What an algorithm follows: mean gradient and noise of every client, by enumeration of all minibatches.

Written from the definitions of the classes, not from their code. Conventions as in `theory.constants`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import fedsim as fs

Outcomes = np.ndarray
"""(k, d): gradients that are equally likely."""


def of_data(problem: Any, x: np.ndarray) -> np.ndarray:
    """Gradient of the loss of every datum, (n, d)."""
    if isinstance(problem, fs.GaussianMean):
        return (x - problem.data)[:, None]
    X = problem.features
    if isinstance(problem, fs.LinearRegression):
        return ((X @ x - problem.targets) / problem.noise_std**2)[:, None] * X
    if isinstance(problem, fs.LogisticRegression):
        return (expit(X @ x) - problem.labels)[:, None] * X
    X = X * problem.feature_scale
    wrong = softmax(X @ x.reshape(-1, X.shape[1]).T, axis=1) - np.eye(problem.n_classes)[problem.labels]
    return (wrong[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def drawn(problem: Any, own: np.ndarray) -> Outcomes:
    """What comes of these data (n, d): the sum of all, or of every minibatch that may be drawn of them."""
    if problem.batch_size is None:
        return own.sum(axis=0, keepdims=True)
    draw = itertools.product if problem.replace else lambda data, repeat: itertools.combinations(data, repeat)
    chosen = np.array(list(draw(range(len(own)), repeat=problem.batch_size)))
    factor = len(own) / problem.batch_size if problem.grad_scale == "unbiased" else 1.0
    return factor * own[chosen].sum(axis=1)


def outcomes(problem: Any, convention: str, x: np.ndarray) -> list[Outcomes]:
    """Gradients that may be evaluated at x but for normal noise, one (k, d) for every client."""
    if isinstance(problem, fs.Quadratic):
        exact = [hessian @ (x - centre) for hessian, centre in zip(
            problem.dense_hessians, problem.minimizers, strict=True)]
        if convention == "global":
            return [problem.weights @ np.array(exact)[None]]
        return [g[None] * (1.0 if convention == "federated" else w) for g, w in zip(
            exact, problem.weights, strict=True)]
    values, prior = of_data(problem, x), x / problem.prior_variance
    if isinstance(problem, fs.GaussianMean):
        return [drawn(problem, values) + prior]
    if convention == "global":
        return [drawn(problem, values) + prior]
    found = [drawn(problem, values[problem.clients == c]) + prior / problem.n_clients
             for c in range(problem.n_clients)]
    return [g / w if convention == "federated" else g for g, w in zip(found, problem.weights, strict=True)]


def added(problem: Any, convention: str) -> np.ndarray:
    """Trace of the normal noise that is added to every client's gradient, (N,)."""
    noise = getattr(problem, "gradient_noise", None)
    if noise is None:
        each = np.zeros(problem.n_clients)
    elif np.ndim(noise) == 0:
        each = np.full(problem.n_clients, noise**2 * problem.dim)
    else:
        each = np.einsum("cii->c", noise)
    squares = problem.weights**2
    return {"federated": each, "components": squares * each, "global": np.array([squares @ each])}[convention]


def mean_gradients(problem: Any, convention: str, x: np.ndarray) -> np.ndarray:
    """(N, d), or (1, d) for "global"."""
    return np.array([each.mean(axis=0) for each in outcomes(problem, convention, x)])


def mean_of_f(problem: Any, convention: str, x: np.ndarray) -> np.ndarray:
    """The mean gradient of f that comes out, (d,)."""
    shares = problem.weights if convention == "federated" else 1.0
    return np.sum(np.reshape(shares, (-1, 1)) * mean_gradients(problem, convention, x), axis=0)


def traces(problem: Any, convention: str, x: np.ndarray) -> np.ndarray:
    """E||noise||^2 of every client's gradient at x."""
    drawn_ones = [np.square(each - each.mean(axis=0)).sum(axis=1).mean()
                  for each in outcomes(problem, convention, x)]
    return np.array(drawn_ones) + added(problem, convention)
