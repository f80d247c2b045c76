"""Stability of an algorithm on a problem: radius of its round map and the step-size limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, eigs, eigsh

from ..interfaces import Algorithm, Problem
from ..settings.validation import UnstableStepSize


@dataclass(frozen=True)
class Stability:
    """Does the law contract?

    Attributes
    ----------
    radius : float
        Spectral radius of the round map. Where rounds are random (participation, or minibatches whose
        noise depends on the point) it is the square root of the radius of the second-moment map, which
        is the stricter of the two.
    stable : bool
        radius < 1.
    max_step_size : float
        Smallest step size at which the radius reaches one (NaN where it is not known).
    step_size : float
        The (largest) step size that was judged.
    source : str
        The condition in words.
    """

    radius: float
    stable: bool
    max_step_size: float
    step_size: float
    source: str = ""

    def require(self) -> None:
        """Raise `UnstableStepSize` unless stable."""
        if not self.stable:
            reason = f" ({self.source})" if self.source else ""
            raise UnstableStepSize(
                f"step_size={self.step_size:g} must be less than the stability limit "
                f"{self.max_step_size:.6g}{reason}: the round map has radius {self.radius:.6g}; "
                "pass allow_unstable=True to run it all the same",
                self.step_size, self.max_step_size)


def stability_radius(problem: Problem, algorithm: Algorithm) -> float:
    """`Stability.radius` alone, without the search for the limit, which is dearer."""
    return float(algorithm._radius(problem))


def largest_stable(radius: Callable[[float], float], below: float, growth: float = 1.02,
                   scan: int = 400) -> float:
    """First step size at which `radius` reaches one, from a value `below` where it does not.

    The scan upwards is geometric, so that a window of stability beyond the limit is not mistaken
    for the limit unless it is narrower than `growth`.
    """
    low = below
    for _ in range(scan):
        high = low * growth
        if not radius(high) < 1.0:
            # an infinite radius would spoil the secant steps
            return float(brentq(lambda step: min(radius(step), 2.0) - 1.0, low, high,
                                xtol=1e-14 * high, rtol=1e-13))
        low = high
    return float("nan")


def cone_radius(apply: Callable[[np.ndarray], np.ndarray], dim: int) -> float:
    """Spectral radius of a linear map of (d, d) matrices that keeps positive semidefinite ones.

    Such a map (the second moment of a random linear recursion) has its radius as an eigenvalue.
    """
    size = dim * dim
    if dim <= 8:
        basis = np.eye(size).reshape(size, dim, dim)
        table = np.stack([apply(matrix).ravel() for matrix in basis], axis=1)
        return float(np.abs(np.linalg.eigvals(table)).max()) if np.isfinite(table).all() else float("inf")
    operator = LinearOperator((size, size), lambda v: apply(v.reshape(dim, dim)).ravel(), dtype=np.float64)
    return float(np.abs(eigs(operator, k=1, which="LM", v0=np.eye(dim).ravel(),
                             return_eigenvectors=False)).max())


def round_radius(maps: np.ndarray, weights: np.ndarray, factor: float) -> float:
    """Radius of a round that averages client maps (N, s, s), see `Stability.radius`.

    `factor` is `Participation.variance_factor`, 0 when all clients take part. Coordinates that do not mix but
    hold several numbers each have maps (N, d, s, s).
    """
    if not np.isfinite(maps).all() or np.abs(maps).max() > 1e100:
        return float("inf")
    mean = np.tensordot(weights, maps, axes=1)
    if factor == 0.0:
        return float(np.abs(np.linalg.eigvals(mean)).max())
    if maps.ndim == 4:
        second = np.einsum("iab,icd->iacbd", mean, mean)
        for weight, gap in zip(factor * weights, maps - mean, strict=True):
            second += weight * np.einsum("iab,icd->iacbd", gap, gap)
        size = mean.shape[-1] ** 2
        return float(np.sqrt(np.abs(np.linalg.eigvals(second.reshape(-1, size, size))).max()))
    gaps = np.sqrt(factor * weights)[:, None, None] * (maps - mean)

    def second_moment(cov: np.ndarray) -> np.ndarray:
        return mean @ cov @ mean.T + (gaps @ cov @ np.swapaxes(gaps, 1, 2)).sum(axis=0)

    return float(np.sqrt(cone_radius(second_moment, len(mean))))


def scalar_round_radius(maps: np.ndarray, weights: np.ndarray, factor: float) -> float:
    """`round_radius` for coordinates that do not mix: `maps` (N, d) holds one number per coordinate."""
    if not np.isfinite(maps).all() or np.abs(maps).max() > 1e100:
        return float("inf")
    mean = weights @ maps
    return float(np.sqrt(mean**2 + factor * (weights @ (maps - mean) ** 2)).max())


DENSE_SIZE = 1200
"""Up to this size spectra are computed from dense matrices, beyond by Krylov iterations."""


def symmetric_extremes(apply: Callable[[np.ndarray], np.ndarray], size: int) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric operator given by its product with (size, k)."""
    if size <= DENSE_SIZE:
        values = np.linalg.eigvalsh(apply(np.eye(size)))
        return float(values[0]), float(values[-1])
    operator = LinearOperator((size, size), lambda v: apply(v.reshape(size, 1)).ravel(), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)  # only where Lanczos begins
    values = eigsh(operator, k=2, which="BE", v0=start, ncv=100, tol=1e-9, return_eigenvectors=False)
    return float(values.min()), float(values.max())


def general_radius(apply: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """Spectral radius of any real operator given by its product with (size, k) columns."""
    if size <= DENSE_SIZE:
        return float(np.abs(np.linalg.eigvals(apply(np.eye(size)))).max())
    operator = LinearOperator((size, size), lambda v: apply(v.reshape(size, 1)).ravel(), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    return float(np.abs(eigs(operator, k=1, which="LM", v0=start, ncv=60,
                             return_eigenvectors=False)).max())
