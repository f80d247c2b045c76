"""Affine maps with Gaussian noise and, at most, a random part: moments after any number of rounds.

A round takes the state x to

    x' = M x + v + sum_c z_c (H_c x + u_c) + N(0, Q),

with z_c uncorrelated, centred and of unit variance (which clients were drawn). Mean and covariance obey

    m' = M m + v,     C' = M C M' + Q + sum_c [H_c C H_c' + r_c r_c'],     r_c = H_c m + u_c,

which is closed whatever the law of z. Maps are stored as the deviation D = M - I, so that powers of a
map close to the identity keep their digits: M^2 - I = 2 D + D^2.

The state is (g, m): g groups of m numbers, which matrices (g, m, m) do not mix. Dense Hessians make one group
of all coordinates, diagonal ones a group of each. Covariances are (g, m, m) within groups, or (g, g, m, m)
between them too: block (i, j) of the new covariance needs block (i, j) of the old one only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from .tables import around, at, flat, kron, symmetrised, times

LIFT_DIM = 12
"""Largest group in which a random map is raised to powers, as a matrix on (mean, covariance)."""
STEP_ROUNDS = 2000
"""Up to this many rounds a random map is stepped rather than raised to powers."""
LARGEST_STEPS = 10_000_000
"""Most rounds that are stepped through one by one, or recorded."""
DIRECT_DIM = 24
"""Largest group in which the stationary covariance of a random map is one linear solve."""
SMALL = 2
"""Up to this size of groups a matrix on the entries of a covariance is cheap."""
WELL = 1e12
"""Condition number up to which it is; sums of positive terms keep more digits beyond."""
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


@dataclass(frozen=True)
class AffineMap:
    """A round.

    Parameters
    ----------
    deviation : (g, m, m), M - I
    shift : (g, m), v
    noise : (g, m, m) or (g, g, m, m), Q
        Decides which covariances are followed.
    spread, spread_shift : (n, g, m, m) and (n, g, m), or None
        H_c and u_c of the random part; groups are small or one.
    """

    deviation: Array
    shift: Array
    noise: Array
    spread: Any = None
    spread_shift: Any = None

    @property
    def width(self) -> int:
        """m."""
        return self.shift.shape[-1]

    @property
    def between(self) -> bool:
        """Are covariances between groups followed?"""
        return self.noise.ndim == 4

    @cached_property
    def matrix(self) -> Array:
        """M, (g, m, m)."""
        return np.eye(self.width) + self.deviation

    @cached_property
    def squares(self) -> Array:
        """What the random part does to the covariance's blocks, as a matrix on their entries."""
        return kron(self.spread, self.spread, self.between)

    @cached_property
    def lift(self) -> Array:
        """What the round does to the covariance's blocks, as a matrix on their entries minus the identity."""
        own = self.deviation[None]
        if self.width == 1:  # without products of tables, which are dear
            one, other = (own.swapaxes(0, 1), own) if self.between else (own[0], own[0])
            lift = one + other + one * other
            return lift if self.spread is None else lift + self.squares
        half = np.eye(self.width) + 0.5 * own
        lift = kron(own, half, self.between) + kron(half, own, self.between)
        return lift if self.spread is None else lift + self.squares

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments one application later; `cov` None follows the mean alone."""
        if self.width == 1 and self.spread is None:  # numbers: laws of every round take it often
            after = mean + (self.deviation[..., 0] * mean + self.shift)
            return after, None if cov is None else cov + (self.lift * cov + self.noise)
        after = mean + (at(self.deviation, mean) + self.shift)
        if cov is None:
            return after, None
        if self.width == 1 or (self.width <= SMALL and self.spread is not None):
            return after, cov + (times(self.lift, flat(cov)).reshape(cov.shape) + self.source(mean))
        grown = around(self.matrix, cov) + self.source(mean)
        if self.spread is not None:
            grown += around(self.spread, cov).sum(axis=0)
        return after, grown if self.between else symmetrised(grown)

    def source(self, mean: Array) -> Array:
        """What is added to any covariance: the noise, and the random part of this mean."""
        if self.spread is None:
            return self.noise
        residual = (at(self.spread, mean) + self.spread_shift)[..., None]
        return self.noise + kron(residual, residual, self.between).reshape(self.noise.shape)

    def then(self, after: AffineMap) -> AffineMap:
        """This map followed by another; neither with a random part."""
        first, second = self.deviation, after.deviation
        return AffineMap(first + second + times(second, first),
                         self.shift + after.shift + at(second, self.shift),
                         around(after.matrix, self.noise) + after.noise)

    def squared(self) -> AffineMap:
        """This map twice."""
        return self.then(self)

    def move(self, points: Array) -> Array:
        """M x + v for points (R, g, m)."""
        return points + (times(self.deviation, points.transpose(1, 2, 0)).transpose(2, 0, 1) + self.shift)

    def fixed_mean(self) -> Array | None:
        """Solution of m = M m + v, or None where there is none."""
        try:
            return np.asarray(np.linalg.solve(-self.deviation, self.shift[..., None])[..., 0])
        except np.linalg.LinAlgError:
            return None

    def lifted(self) -> LiftedMap | None:
        """The moment map as a matrix, or None beyond `LIFT_DIM` or without a fixed mean."""
        centre = self.fixed_mean()
        if self.width > LIFT_DIM or centre is None:
            return None
        residual = (at(self.spread, centre) + self.spread_shift)[..., None]
        return LiftedMap(centre, self.deviation, self.lift, self.squares,
                         kron(self.spread, residual, self.between), flat(self.source(centre)))

    def power(self, rounds: np.ndarray) -> Any:
        """What `evolve` should be given: this map, its lift, or a function to step with."""
        if self.spread is None:
            return self
        if rounds[-1] > STEP_ROUNDS and len(rounds) < rounds[-1] + 1:
            lifted = self.lifted()
            if lifted is not None:
                return lifted
            work = 4.0 * rounds[-1] * self.spread.size * self.width
            if work > 1e13 or rounds[-1] > LARGEST_STEPS:
                raise NoExactLaw(
                    f"n_rounds={rounds[-1]} with participation at dimension {self.width} would be stepped "
                    f"through one by one ({work:.1g} operations); powers of the moment map are for dense "
                    f"Hessians up to dimension {LIFT_DIM}. Ask for fewer rounds, or use stationary_law")
        return lambda number: self

    def stationary(self) -> tuple[Array, Array]:
        """Fixed mean and covariance; the caller has checked that the map contracts."""
        mean = self.fixed_mean()
        if mean is None:
            raise NoExactLaw("the round map has an eigenvalue 1: there is no stationary law")
        source = self.source(mean)
        if self.width == 1:
            return mean, source / -self.lift
        direct = self.width <= (SMALL if self.spread is None else DIRECT_DIM)
        if direct and (self.spread is not None or self.between or np.linalg.cond(self.lift).max() < WELL):
            solved: Any = np.linalg.solve(-self.lift, flat(source)).reshape(source.shape)
            return mean, solved if self.between else symmetrised(solved)
        solve, cov = doubling(self.deviation), np.zeros_like(source)
        if self.spread is None:
            return mean, solve(source)
        # both parts keep the cone of covariances, so this splitting converges wherever the map contracts
        for _ in range(10_000):
            before, cov = cov, solve(source + around(self.spread, cov).sum(axis=0))
            if np.abs(cov - before).max() <= 1e-15 * np.abs(cov).max():
                return mean, cov
        raise NoExactLaw("the stationary covariance did not converge in 10,000 iterations: the step size "
                         "is too close to the stability limit")


def doubling(deviation: Array) -> Callable[[Array], Array]:
    """Solver of C = M C M' + source (g, m, m), from M, M^2, M^4, ... until M^n is negligible.

    A partial sum of M^j source M'^j gives one twice as long: sums of positive semidefinite terms, in which
    nothing cancels.
    """
    powers: list[Array] = []
    unit = np.eye(deviation.shape[-1])
    for _ in range(100):
        powers.append(unit + deviation)
        deviation = 2.0 * deviation + deviation @ deviation
        if not np.isfinite(deviation).all():
            break
        if np.linalg.norm(unit + deviation, axis=(-2, -1)).max() <= 1e-10:  # enters squared
            return lambda source: symmetrised(reduce(lambda total, power: total + around(power, total),
                                                     powers, source))
    raise NoExactLaw("the powers of the round map do not vanish: there is no stationary law")


def lost(changes: Array) -> Array:
    """1 - mu_i mu_j of mu = 1 + changes (..., m), between all pairs: digits stay near mu = 1."""
    one, other = changes[..., :, None], changes[..., None, :]
    return -(one + other + one * other)


def in_eigenvectors(deviation: Array) -> Callable[[Array], Array]:
    """The same where M is symmetric: entry (i, j) of the source is divided by 1 - mu_i mu_j."""
    values, vectors = np.linalg.eigh(symmetrised(deviation))
    gaps, back = lost(values), np.swapaxes(vectors, 1, 2)
    return lambda source: symmetrised(vectors @ ((back @ source @ vectors) / gaps) @ back)


@dataclass(frozen=True)
class LiftedMap:
    """A power of a random `AffineMap`: a linear map of (C, e e', e, 1) with e = mean - centre.

    Blocks C_ij are columns of their entries; what `cross` makes of e_i for C_ij is transposed for C_ji.
    """

    centre: Array
    deviation: Array
    lift: Array
    squares: Array
    cross: Array
    constant: Array

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments after this power of the round."""
        gap = mean - self.centre
        after = mean + at(self.deviation, gap)
        if cov is None:
            return after, None
        between, column = cov.ndim == 4, gap[None, ..., None]
        mixed = times(self.cross, column.transpose(1, 0, 2, 3) if between else column[0]).reshape(cov.shape)
        mixed = mixed + mixed.transpose((1, 0, 3, 2) if between else (0, 2, 1))
        grown = (times(self.lift, flat(cov)) + times(self.squares, kron(column, column, between))
                 + self.constant)
        return after, cov + (grown.reshape(cov.shape) + mixed)

    def squared(self) -> LiftedMap:
        """Twice as many rounds."""
        matrix, lift, between = np.eye(self.centre.shape[1]) + self.deviation, self.lift, self.lift.ndim == 4
        return LiftedMap(
            self.centre, 2.0 * self.deviation + times(self.deviation, self.deviation),
            2.0 * lift + times(lift, lift),
            self.squares + times(lift, self.squares) + times(self.squares,
                                                             kron(matrix[None], matrix[None], between)),
            self.cross + times(lift, self.cross) + times(self.cross, matrix[:, None] if between else matrix),
            2.0 * self.constant + times(lift, self.constant))
