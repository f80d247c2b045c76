"""Stability of an algorithm on a problem: radius of its round map and the step-size limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..interfaces import Algorithm, Problem
from ..settings.lazy_import import lazy
from ..settings.validation import UnstableStepSize

brentq = lazy("scipy.optimize", "brentq")
arpack = lazy("scipy.sparse.linalg")


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
        Smallest step size at which the radius reaches one. NaN where none is stable, or none was found at
        which the radius reaches one.
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

    @property
    def has_limit(self) -> bool:
        """Whether `max_step_size` is a number."""
        return not np.isnan(self.max_step_size)

    @property
    def limit(self) -> str:
        """The limit of the step size in words, or that there is none."""
        if self.has_limit:
            return f"limit {self.max_step_size:.6g}"
        return "limit not found" if self.stable else "no step size is stable"

    def require(self) -> None:
        """Raise `UnstableStepSize` unless stable."""
        if not self.stable:
            reason = f" ({self.source})" if self.source else ""
            condition = " must be less than the stability " if self.has_limit else ": "
            raise UnstableStepSize(
                f"step_size={self.step_size:g}{condition}{self.limit}{reason}: the round map has radius "
                f"{self.radius:.6g}; pass allow_unstable=True to run it all the same",
                self.step_size, self.max_step_size)


def stability_radius(problem: Problem, algorithm: Algorithm) -> float:
    """`Stability.radius` alone, without the search for the limit, which is dearer."""
    return float(algorithm._radius(problem))


Radius = Callable[[float], float]
FLAT = 1e-9
"""How far from one a radius may be rounded that hardly contracts."""


def largest_stable(radius: Callable[[float], float], below: float, growth: float = 1.02,
                   scan: int = 400) -> float:
    """First step size at which `radius` reaches one, from a value `below` where it does not.

    The scan upwards is geometric, so that a window of stability beyond the limit is not mistaken
    for the limit unless it is narrower than `growth`. Where the radius at `below` rounds to one, that is seen
    as one up to `FLAT`.
    """
    low, edge = below, 1.0 if radius(below) < 1.0 else 1.0 + FLAT
    for _ in range(scan):
        high = low * growth
        if not radius(high) < edge:
            if not radius(low) < edge:  # `below` was none
                break
            # an infinite radius would spoil the secant steps
            return float(brentq(lambda step: min(radius(step), 2.0) - edge, low, high,
                                xtol=max(1e-14 * high, 5e-324), rtol=1e-13))
        low = high
    return float("nan")


def stable_below(radius: Radius, high: float) -> float:
    """A step size of radius below one, by halving; 0.0 if there is none."""
    low = 0.5 * high
    for _ in range(60):
        if radius(low) < 1.0:
            return low
        low *= 0.5
    return 0.0


def first_limit(radius: Radius, high: float) -> float:
    """The first such step size above one that is stable; NaN where none is found."""
    low = stable_below(radius, high)
    if low == 0.0:
        return float("nan")
    limit = largest_stable(radius, low, growth=1.05, scan=16)
    return high if np.isnan(limit) else min(limit, high)


WIDER, RESTARTS = (160, 400), 300
"""Widths of Krylov spaces where a narrower one has not converged after so many restarts."""
SMALL_CONE = 8
"""Up to this dimension the radius of a map of matrices is that of a dense table."""
BELOW_ONE = float(np.nextafter(1.0, 0.0))


def cone_radius(apply: Callable[[np.ndarray], np.ndarray], dim: int) -> float:
    """Spectral radius of a linear map of (d, d) matrices that keeps positive semidefinite ones.

    Such a map (the second moment of a random linear recursion) has its radius as an eigenvalue.
    """
    size = dim * dim
    if dim <= SMALL_CONE:
        basis = np.eye(size).reshape(size, dim, dim)
        table = np.stack([apply(matrix).ravel() for matrix in basis], axis=1)
        return float(np.abs(np.linalg.eigvals(table)).max()) if np.isfinite(table).all() else float("inf")
    return leading(lambda v: apply(v.reshape(dim, dim)).ravel(), np.eye(dim).ravel())[0]


def leading(apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, tol: float = 0.0,
            width: int = 20) -> tuple[float, np.ndarray]:
    """Size of the largest eigenvalue of a map of vectors, and the real part of its eigenvector.

    Krylov spaces of this width are followed by wider ones where others are nearly as large.

    Raises
    ------
    ValueError
        Where none of them tells it apart.
    """
    size = len(start)
    operator = arpack.LinearOperator((size, size), apply, dtype=np.float64)
    for wide in (width, *WIDER):
        try:
            values, vectors = arpack.eigs(operator, k=1, which="LM", v0=start, ncv=min(wide, size - 1),
                                          tol=tol, maxiter=RESTARTS)
        except arpack.ArpackNoConvergence:
            continue
        return float(np.abs(values[0])), vectors[:, 0].real
    raise ValueError(f"stability is not known: Krylov iterations for the radius of a map of {size} numbers "
                     "do not converge; use fewer clients or dimensions, or pass allow_unstable=True")


def radius_of(gap: float) -> float:
    """The radius 1 - gap, which is below one exactly where the gap is positive, however small that is."""
    return min(1.0 - gap, BELOW_ONE) if gap > 0.0 else 1.0 - gap


def gaps_to_one(shifts: np.ndarray) -> np.ndarray:
    """1 - |1 + shift|, without cancellation near one."""
    lost = -(2.0 * shifts.real + shifts.real**2 + shifts.imag**2)
    return lost / (1.0 + np.abs(1.0 + shifts))


def round_radius(shifts: np.ndarray, weights: np.ndarray, factor: float) -> float:
    """Radius of a round that averages client maps I + shift (N, s, s), see `Stability.radius`.

    `factor` is `Participation.variance_factor`, 0 when all clients take part. Coordinates that do not mix but
    hold several numbers each have shifts (N, d, s, s).
    """
    if not np.isfinite(shifts).all() or np.abs(shifts).max() > 1e100:
        return float("inf")
    mean = np.tensordot(weights, shifts, axes=1)
    if factor == 0.0:
        return radius_of(float(gaps_to_one(np.linalg.eigvals(mean)).min()))
    return random_radius(mean, np.sqrt(factor * weights).reshape(-1, *[1] * mean.ndim) * (shifts - mean))


def random_radius(mean: np.ndarray, gaps: np.ndarray) -> float:
    """Root of the radius of S -> M S M' + sum_k H_k S H_k' for M = I + `mean` and the H_k in `gaps`."""
    unit = np.eye(mean.shape[-1])
    if mean.ndim == 3 or len(mean) <= SMALL_CONE:
        half = unit + 0.5 * mean
        second = _products(mean, half) + _products(half, mean)
        for gap in gaps:
            second += _products(gap, gap)
        return _root_radius(float(gaps_to_one(np.linalg.eigvals(second)).min()))
    total = unit + mean

    def second_moment(cov: np.ndarray) -> np.ndarray:
        return total @ cov @ total.T + (gaps @ cov @ np.swapaxes(gaps, 1, 2)).sum(axis=0)

    return float(np.sqrt(cone_radius(second_moment, len(mean))))


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Kronecker products of (..., s, s)."""
    table, size = np.einsum("...ab,...cd->...acbd", left, right), left.shape[-1] ** 2
    return table.reshape(*left.shape[:-2], size, size)


def scalar_round_radius(shifts: np.ndarray, weights: np.ndarray, factor: float) -> float:
    """`round_radius` for coordinates that do not mix: `shifts` (N, d) holds one number per coordinate."""
    if not np.isfinite(shifts).all() or np.abs(shifts).max() > 1e100:
        return float("inf")
    mean = weights @ shifts
    if factor == 0.0:
        return radius_of(float(gaps_to_one(mean).min()))
    return scalar_random_radius(mean, factor * (weights @ (shifts - mean) ** 2))


def scalar_random_radius(mean: np.ndarray, spread: np.ndarray) -> float:
    """`random_radius` for coordinates that do not mix, with the sums of squares of the H_k."""
    return _root_radius(float((-mean * (2.0 + mean) - spread).min()))


def _root_radius(lost: float) -> float:
    """The radius from `lost`, 1 - radius^2."""
    return radius_of(lost / (1.0 + float(np.sqrt(max(1.0 - lost, 0.0)))))


DENSE_SIZE = 1200
"""Up to this size spectra are computed from dense matrices, beyond by Krylov iterations."""
LARGEST_DENSE = 5000
"""Up to this size they are where Krylov iterations do not converge."""


def symmetric_extremes(apply: Callable[[np.ndarray], np.ndarray], size: int) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric operator given by its product with (size, k)."""
    if size <= DENSE_SIZE:
        values = np.linalg.eigvalsh(apply(np.eye(size)))
        return float(values[0]), float(values[-1])
    operator = arpack.LinearOperator((size, size), lambda v: apply(v.reshape(size, 1)).ravel(),
                                     dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)  # only where Lanczos begins
    values = arpack.eigsh(operator, k=2, which="BE", v0=start, ncv=100, tol=1e-9, return_eigenvectors=False)
    return float(values.min()), float(values.max())


def general_radius(apply: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    """Spectral radius of any real operator given by its product with (size, k) columns.

    Raises
    ------
    ValueError
        Where Krylov iterations do not converge and the operator is too large for a dense matrix.
    """
    if size <= DENSE_SIZE:
        return _dense_radius(apply, size)
    operator = arpack.LinearOperator((size, size), lambda v: apply(v.reshape(size, 1)).ravel(),
                                     dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    for width in (60, 240):
        try:
            return float(np.abs(arpack.eigs(operator, k=1, which="LM", v0=start, ncv=width,
                                     return_eigenvectors=False)).max())
        except arpack.ArpackNoConvergence:
            continue
    if size <= LARGEST_DENSE:
        return _dense_radius(apply, size)
    raise ValueError(f"stability of a state of {size} numbers is not known: Krylov iterations for its "
                     f"radius do not converge, and it is larger than {LARGEST_DENSE}; use fewer clients or "
                     "dimensions, or pass allow_unstable=True")


def _dense_radius(apply: Callable[[np.ndarray], np.ndarray], size: int) -> float:
    table = apply(np.eye(size))
    return float(np.abs(np.linalg.eigvals(table)).max()) if np.isfinite(table).all() else float("inf")
