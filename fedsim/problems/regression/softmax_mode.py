"""The mode of a softmax regression's posterior, and the normal law there.

What is common to all classes, one vector added to each of them, changes no probability: only the prior acts
on it. It is kept apart, so that a vague prior costs no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...settings.lazy_import import lazy
from ...settings.validation import Array

minimize = lazy("scipy.optimize", "minimize")
LinearOperator, cg = lazy("scipy.sparse.linalg", "LinearOperator", "cg")
helmert = lazy("scipy.linalg", "helmert")

RESOLVED = 1e-10
"""Least share of the largest curvature that rounding leaves six digits."""


def mode_of(problem: Any) -> Array:
    """The minimizer of f (d,), by L-BFGS and Newton's steps, which need no matrix."""
    dim, n_classes = problem.dim, problem.n_classes

    def across(vector: Array) -> Array:  # without what all classes share, none of which is in the mode
        by_class = vector.reshape(n_classes, -1)
        return (by_class - by_class.mean(axis=0)).ravel()

    found = minimize(lambda x: float(problem.potential(None, x)), np.zeros(dim), method="L-BFGS-B",
                     jac=lambda x: problem.gradient(None, x), options={"maxiter": 5000, "maxfun": 10_000})
    point, gain = across(np.asarray(found.x)), np.inf
    for _ in range(20):  # each step doubles the digits that L-BFGS found
        slope = across(problem.gradient(None, point))
        operator = LinearOperator((dim, dim), matvec=lambda v, at=point: problem.hessian_times(at, v))
        step, failed = cg(operator, slope, rtol=1e-8, maxiter=10 * dim)
        step = across(step)
        before, gain = gain, float(slope @ step)
        if failed or not gain < 0.25 * before:
            break
        point = across(point - step)
    problem._refuse_far(step)
    point.setflags(write=False)
    return point


def laplace_cov(problem: Any, mode: Array) -> Array:
    """Inverse Hessian of f at the mode, (d, d): the prior's variance on what is common to all classes.

    Raises
    ------
    ValueError
        Naming prior_variance, where the likelihood is so flat that its curvature is lost to rounding.
    """
    n_classes, variance = problem.n_classes, problem.prior_variance
    eye = np.eye(problem.dim // n_classes)
    across = np.kron(helmert(n_classes).T, eye)  # directions in which classes differ
    values, vectors = np.linalg.eigh(across.T @ problem._likelihood_curvature(mode) @ across)
    values = np.maximum(values, 0.0) + 1.0 / variance
    if not values[0] > RESOLVED * values[-1]:
        raise ValueError(
            f"prior_variance={variance:g} is too vague for these data: the least curvature at the mode of "
            f"the posterior, {values[0]:.2g}, is lost beside the largest, {values[-1]:.2g}; it must be more "
            f"than {RESOLVED:g} of it")
    turned = across @ vectors
    cov = (turned / values) @ turned.T + np.kron(np.full((n_classes, n_classes), variance / n_classes), eye)
    return np.asarray(0.5 * (cov + cov.T))
