"""Affine maps with Gaussian noise and, at most, a random part: moments after any number of rounds.

A round takes the state x to

    x' = M x + v + sum_c z_c (H_c x + u_c) + N(0, Q),

with z_c uncorrelated, centred and of unit variance (which clients were drawn). Mean and covariance obey

    m' = M m + v,     C' = M C M' + Q + sum_c [H_c C H_c' + r_c r_c'],     r_c = H_c m + u_c,

which is closed whatever the law of z. Maps are stored as the deviation D = M - I, so that powers of a
map close to the identity keep their digits: M^2 - I = 2 D + D^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from fedsim.settings.validation import Array

LIFT_DIM = 12
"""Largest dimension in which a dense random map is raised to powers, as a matrix on (mean, covariance)."""
STEP_ROUNDS = 2000
"""Up to this many rounds a random map is stepped rather than raised to powers."""
DIRECT_DIM = 24
"""Largest dimension in which the stationary covariance of a random map is one linear solve."""
Moments = tuple[Array, Array | None]


class NoExactLaw(ValueError):
    """No exact law is available in closed form (or within reason); the message says why.

    Examples
    --------
    >>> problem = fs.LogisticRegression([[1.0], [2.0], [1.0]], [1, 1, 0], [0, 0, 1], prior_variance=4.0)
    >>> try:
    ...     theory.exact_law(problem, fs.FALD(0.01), 10)
    ... except theory.NoExactLaw as error:
    ...     print(str(error)[:30])
    problem=LogisticRegression(n_c
    """


class Power(Protocol):
    """A map of moments that can be applied and squared."""

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments after the map; `cov` None follows the mean alone."""

    def squared(self) -> Any:
        """The map twice."""


def symmetrised(cov: Array) -> Array:
    """Exactly symmetric, (..., d, d)."""
    return 0.5 * (cov + np.swapaxes(cov, -1, -2))


@dataclass(frozen=True)
class DenseMap:
    """A round with matrices.

    Parameters
    ----------
    deviation : (d, d), M - I
    shift : (d,), v
    noise : (d, d), Q
    spread, spread_shift : (n, d, d) and (n, d), or None
        H_c and u_c of the random part.
    """

    deviation: Array
    shift: Array
    noise: Array
    spread: Any = None
    spread_shift: Any = None

    @cached_property
    def matrix(self) -> Array:
        """M, (d, d)."""
        return np.eye(len(self.shift)) + self.deviation

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments one application later; `cov` None follows the mean alone."""
        after: Array = mean + (self.deviation @ mean + self.shift)
        if cov is None:
            return after, None
        matrix = self.matrix
        grown = matrix @ cov @ matrix.T + self.noise
        if self.spread is not None:
            residual = self.spread @ mean + self.spread_shift
            grown += (self.spread @ cov @ np.swapaxes(self.spread, 1, 2)).sum(axis=0)
            grown += residual.T @ residual
        return after, symmetrised(grown)

    def then(self, after: DenseMap) -> DenseMap:
        """This map followed by another; neither with a random part."""
        first, second = self.deviation, after.deviation
        matrix = after.matrix
        return DenseMap(first + second + second @ first,
                        self.shift + after.shift + second @ self.shift,
                        symmetrised(matrix @ self.noise @ matrix.T + after.noise))

    def squared(self) -> DenseMap:
        """This map twice."""
        return self.then(self)

    def move(self, points: Array) -> Array:
        """M x + v for points (R, d)."""
        return points + (points @ self.deviation.T + self.shift)

    def fixed_mean(self) -> Array | None:
        """Solution of m = M m + v, or None where there is none."""
        try:
            return np.linalg.solve(-self.deviation, self.shift).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            return None

    def lifted(self) -> LiftedDense | None:
        """The moment map as a matrix, or None beyond `LIFT_DIM` or without a fixed mean."""
        dim, centre = len(self.shift), self.fixed_mean()
        if dim > LIFT_DIM or centre is None or self.spread is None:
            return None
        residual = self.spread @ centre + self.spread_shift
        squares, cross = self._lift(residual)
        return LiftedDense(centre, self.deviation, self._lifted_deviation(squares), squares, cross,
                           (self.noise + residual.T @ residual).ravel())

    def _lift(self, residual: Array) -> tuple[Array, Array]:
        dim, spread = len(self.shift), self.spread
        squares = np.einsum("cik,cjl->ijkl", spread, spread).reshape(dim**2, dim**2)
        cross = np.einsum("cik,cj->ijk", spread, residual)
        return squares, (cross + cross.transpose(1, 0, 2)).reshape(dim**2, dim)

    def _lifted_deviation(self, squares: Array) -> Array:
        unit = np.eye(len(self.shift))
        return (np.kron(self.deviation, unit) + np.kron(unit, self.deviation)
                + np.kron(self.deviation, self.deviation) + squares)

    def stationary(self) -> tuple[Array, Array]:
        """Fixed mean and covariance; the caller has checked that the map contracts."""
        mean = self.fixed_mean()
        if mean is None:
            raise NoExactLaw("the round map has an eigenvalue 1: there is no stationary law")
        if self.spread is None:
            return mean, _lyapunov(_powers(self.deviation), self.noise)
        residual = self.spread @ mean + self.spread_shift
        source = self.noise + residual.T @ residual
        dim = len(mean)
        if dim <= DIRECT_DIM:
            squares, _ = self._lift(residual)
            solved = np.linalg.solve(-self._lifted_deviation(squares), source.ravel())
            return mean, symmetrised(solved.reshape(dim, dim))
        # both parts keep the cone of covariances, so this splitting converges wherever the map contracts
        powers, cov = _powers(self.deviation), np.zeros((dim, dim))
        for _ in range(10_000):
            random = (self.spread @ cov @ np.swapaxes(self.spread, 1, 2)).sum(axis=0)
            new = _lyapunov(powers, source + random)
            if np.abs(new - cov).max() <= 1e-15 * np.abs(new).max():
                return mean, new
            cov = new
        raise NoExactLaw("the stationary covariance did not converge in 10,000 iterations: the step size "
                         "is too close to the stability limit")


def _powers(deviation: Array) -> list[Array]:
    """M, M^2, M^4, ... until M^n is negligible."""
    matrices, unit = [], np.eye(len(deviation))
    for _ in range(100):
        matrices.append(unit + deviation)
        deviation = 2.0 * deviation + deviation @ deviation
        if not np.isfinite(deviation).all():
            break
        if np.linalg.norm(unit + deviation) <= 1e-10:  # enters squared
            return matrices
    raise NoExactLaw("the powers of the round map do not vanish: there is no stationary law")


def _lyapunov(powers: list[Array], source: Array) -> Array:
    """C = M C M' + source by doubling: sums of positive semidefinite terms, nothing cancels."""
    total = source
    for matrix in powers:
        total = total + matrix @ total @ matrix.T
    return symmetrised(total)


@dataclass(frozen=True)
class LiftedDense:
    """A power of a random `DenseMap`: a linear map of (C, e e', e, 1) with e = mean - centre."""

    centre: Array
    deviation: Array
    cov_deviation: Array
    squares: Array
    cross: Array
    constant: Array

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments after this power of the round."""
        gap = mean - self.centre
        after = mean + self.deviation @ gap
        if cov is None:
            return after, None
        flat = cov.ravel()
        grown = flat + (self.cov_deviation @ flat + self.squares @ np.outer(gap, gap).ravel()
                        + self.cross @ gap + self.constant)
        return after, symmetrised(grown.reshape(cov.shape))

    def squared(self) -> LiftedDense:
        """Twice as many rounds."""
        matrix = np.eye(len(self.centre)) + self.deviation
        lift = self.cov_deviation
        return LiftedDense(
            self.centre, 2.0 * self.deviation + self.deviation @ self.deviation, 2.0 * lift + lift @ lift,
            self.squares + lift @ self.squares + self.squares @ np.kron(matrix, matrix),
            self.cross + lift @ self.cross + self.cross @ matrix,
            2.0 * self.constant + lift @ self.constant)


def chain(maps: Iterable[Any]) -> Any:
    """Maps without a random part, one after the other, as one."""
    return reduce(lambda total, step: total.then(step), maps)


def leap(powers: list[Any], count: int) -> Any:
    """The `count`-th power of powers[0]; powers[i] is its 2^i-th, made as needed and kept."""
    while len(powers) < count.bit_length():
        powers.append(powers[-1].then(powers[-1]))
    return chain(powers[bit] for bit in range(count.bit_length()) if count >> bit & 1)


def evolve(rounds: np.ndarray, mean: Array, cov: Array | None,
           maps: Power | Callable[[int], Power], head: Sequence[Power] = ()) -> Iterator[Moments]:
    """Moments at increasing `rounds`, beginning at round 0.

    Parameters
    ----------
    rounds : (n,) int, increasing, first entry 0
    mean, cov : moments at round 0
    maps : one map for all rounds, whose powers are made by doubling as they are needed; or a function
        of the round r = 0, 1, ..., each of which is stepped through.
    head : maps of the first rounds, where they are others
    """
    yield mean, cov
    stepped = not hasattr(maps, "step")
    powers: list[Any] = [maps]
    for before, now in pairwise(rounds.tolist()):
        for number in range(before, now if stepped else min(now, len(head))):
            step = head[number] if number < len(head) else maps(number)  # type: ignore[operator]
            mean, cov = step.step(mean, cov)
        gap = 0 if stepped else now - max(before, min(now, len(head)))
        for bit in range(gap.bit_length()):
            if len(powers) == bit:
                powers.append(powers[-1].squared())
            if gap >> bit & 1:
                mean, cov = powers[bit].step(mean, cov)
        yield mean, cov


def power_of(maps: Any, rounds: np.ndarray, cov: Array | None) -> Any:
    """What `evolve` should be given for a constant map: itself, its lift, or a function to step with."""
    if maps.spread is None:
        return maps
    if rounds[-1] <= STEP_ROUNDS or len(rounds) == rounds[-1] + 1:
        return lambda number: maps
    lifted = maps.lifted()
    if lifted is not None:
        return lifted
    work = 4.0 * rounds[-1] * maps.spread.size * len(maps.shift)
    if work > 1e13 or rounds[-1] > 10_000_000:
        raise NoExactLaw(
            f"n_rounds={rounds[-1]} with participation at dimension {len(maps.shift)} would be stepped "
            f"through one by one ({work:.1g} operations); powers of the moment map are for dense Hessians "
            f"up to dimension {LIFT_DIM}. Ask for fewer rounds, or use stationary_law")
    return lambda number: maps


def correlated(generator: np.random.Generator, size: int, cov: Array) -> Array:
    """Centred Gaussian draws (size, d) of covariance (d, d), or (d,) variances.

    Blocks of m coordinates give (size, d, m), of covariances (d, m, m) or (d, d, m, m).
    """
    if cov.ndim == 4:
        blocks, _, width, _ = cov.shape
        flat = cov.transpose(0, 2, 1, 3).reshape(blocks * width, -1)
        return correlated(generator, size, flat).reshape(size, blocks, width)
    draws = generator.standard_normal((size, *cov.shape[:max(1, cov.ndim - 1)]))
    if cov.ndim == 1:
        return draws * np.sqrt(cov)
    values, vectors = np.linalg.eigh(cov)
    roots = np.sqrt(np.clip(values, 0.0, None))
    return np.einsum("...ij,r...j->r...i", vectors, draws * roots, optimize=True)
