"""Noise of minibatches of linear regression, as a function of the first two moments of the state.

Given x, the gradient of f_i from b of its n_i data has covariance

    G_i(x) = (b/n) k [ sum_r g_r g_r' - (sum_r g_r)(sum_r g_r)' / n ],   g_r = s (X_r'x - y_r) X_r / xi^2,

with s = n/b (or 1 for "batch_sum"), and k = 1 with replacement, (n - b)/(n - 1) without. For moments m and
S of x its mean has rho_r = (X_r'm - y_r)^2 + X_r'S X_r for the squared residuals, and
A S A + (A m - X'y)(A m - X'y)' with A = X'X for the outer product.

Source: DE-SGLD section 5.1 and appendix D; FA-LD appendix G; the moments are derived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.problems.gaussian_mean import GaussianMean
from fedsim.problems.quadratic import Quadratic
from fedsim.problems.regression import LinearRegression
from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array, UnstableStepSize

from .affine import NoExactLaw

brentq = lazy("scipy.optimize", "brentq")
arpack = lazy("scipy.sparse.linalg")


def has_minibatches(problem: Any) -> bool:
    """Is this a problem whose gradient noise is treated here?"""
    return isinstance(problem, LinearRegression) and problem.has_minibatches


def require_second_moment(step: float, of_size: Callable[[float], Any]) -> None:
    """Raise `UnstableStepSize`, naming the limit, unless the second moment contracts at this step size.

    What `of_size` makes of a step size `contracts` where the `radius` of its second moment is below one.
    """
    if of_size(step).contracts():
        return
    low = 0.5 * step
    while not of_size(low).contracts():
        low *= 0.5
    limit = float(brentq(lambda size: np.log(of_size(size).radius()), low, 2.0 * low, rtol=1e-5))
    raise UnstableStepSize(
        f"step_size={step:g} must be less than the stability limit {limit:.6g} of the second moment: with "
        "minibatches noise grows with the distance from the minimizers; pass allow_unstable=True to follow "
        "it all the same, or use larger batches", step, limit)


def fixed_covariance(linear: Callable[[Array], Array], source: Array, rtol: float = 1e-14) -> Array:
    """Solution of C = linear(C) + source, for C of any shape, to a residual of `rtol`."""
    def remains(flat: Array) -> Array:
        return flat - linear(flat.reshape(source.shape)).ravel()

    operator = arpack.LinearOperator((source.size, source.size), remains, dtype=np.float64)
    solved, _ = arpack.gmres(operator, source.ravel(), rtol=rtol, atol=0.0, restart=60, maxiter=20)
    return solved.reshape(source.shape)


def require_fixed(cov: Array, again: Array) -> Array:
    """The covariance one step later, or `NoExactLaw` where it is another."""
    if np.abs(again - cov).max() > 1e-9 * np.abs(again).max():
        raise NoExactLaw("the stationary covariance did not converge: the step size is too close to the "
                         "stability limit of the second moment")
    return again


class MinibatchNoise:
    """Covariances of the gradient noise of a `fedsim.LinearRegression`'s components."""

    def __init__(self, problem: Any) -> None:
        sizes, batch, dim = problem.sizes, problem.batch_size, problem.dim
        longest = int(sizes.max())
        self.features = np.zeros((problem.n_clients, longest, dim))  # rows of zeros weigh nothing
        self.targets = np.zeros((problem.n_clients, longest))
        for client, size in enumerate(sizes):
            rows = problem.clients == client
            self.features[client, :size] = problem.features[rows]
            self.targets[client, :size] = problem.targets[rows]
        scale = sizes / batch if problem.grad_scale == "unbiased" else np.ones(len(sizes))
        finite = 1.0 if problem.replace else (sizes - batch) / np.maximum(sizes - 1, 1)
        self.factor = (finite * batch / sizes * (scale / problem.noise_std**2) ** 2)[:, None, None]
        self.sizes = sizes[:, None, None]
        self.grams = self.features.swapaxes(1, 2) @ self.features
        self.pulls = np.einsum("crd,cr->cd", self.features, self.targets)

    def mean(self, mean: Array, cov: Array) -> Array:
        """E G_i for means (N, d) and covariances (N, d, d) of the clients, (N, d, d)."""
        residual = np.einsum("crd,cd->cr", self.features, mean) - self.targets
        total = (self.grams @ mean[..., None])[..., 0] - self.pulls
        fixed = self._weighted(residual**2) - total[:, :, None] * total[:, None, :] / self.sizes
        return self.factor * fixed + self.linear(cov)

    def linear(self, cov: Array) -> Array:
        """The part of E G_i that is linear in the covariances."""
        squares = np.einsum("crd,crd->cr", self.features @ cov, self.features)
        return self.factor * (self._weighted(squares) - self.grams @ cov @ self.grams / self.sizes)

    def _weighted(self, weights: Array) -> Array:
        """sum_r weights_r X_r X_r' of each client."""
        return (self.features * weights[:, :, None]).swapaxes(1, 2) @ self.features


class MomentMatched(Quadratic):
    """A quadratic problem whose noise has the variance of minibatches, which are not normal."""

    has_minibatches = True


def moment_matched(problem: Any) -> MomentMatched | None:
    """What has the moments of a `GaussianMean` with minibatches; None for other problems."""
    if not (isinstance(problem, GaussianMean) and problem.has_minibatches):
        return None
    same = problem.as_quadratic()
    return MomentMatched(same.hessians, same.minimizers, same.weights, same.gradient_noise)
