"""The maps of `affine` where coordinates do not mix: everything is elementwise.

A covariance is held as (d,) variances alone or as (d, d); either is closed under the round, because
entry (i, j) of the new covariance needs entry (i, j) of the old one only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedsim.settings.validation import Array

from .affine import Moments, NoExactLaw


def _pairs(first: Array, second: Array, full: bool) -> Array:
    """first_i second_j as (d, d), or first_i second_i as (d,)."""
    return first[:, None] * second if full else first * second


def _grams(first: Array, second: Array, full: bool) -> Array:
    """sum_c first_ci second_cj as (d, d), or its diagonal (d,)."""
    return first.T @ second if full else (first * second).sum(axis=0)


@dataclass(frozen=True)
class DiagonalMap:
    """A round of independent coordinates.

    Parameters
    ----------
    deviation : (d,), diagonal of M - I
    shift : (d,)
    noise : (d,) or (d, d)
        Decides whether variances or full covariances are followed.
    spread, spread_shift : (n, d) each, or None
        Diagonals of H_c, and u_c.
    """

    deviation: Array
    shift: Array
    noise: Array
    spread: Any = None
    spread_shift: Any = None

    @property
    def full(self) -> bool:
        """Covariances (d, d) rather than variances (d,)."""
        return self.noise.ndim == 2

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments one application later; `cov` None follows the mean alone."""
        after = mean + (self.deviation * mean + self.shift)
        if cov is None:
            return after, None
        grown = cov + (self._cov_deviation * cov + self.noise)
        if self.spread is not None:
            residual = self.spread * mean + self.spread_shift
            grown += _grams(residual, residual, self.full)
        return after, grown

    @cached_property
    def _cov_deviation(self) -> Array:
        """Factor of each covariance entry, minus one."""
        own = _pairs(self.deviation, self.deviation, self.full)
        own += self.deviation[:, None] + self.deviation if self.full else 2.0 * self.deviation
        return own if self.spread is None else own + _grams(self.spread, self.spread, self.full)

    def then(self, after: DiagonalMap) -> DiagonalMap:
        """This map followed by another; neither with a random part."""
        first, second = self.deviation, after.deviation
        factor = 1.0 + second
        return DiagonalMap(first + second + second * first, self.shift + after.shift + second * self.shift,
                           _pairs(factor, factor, self.full) * self.noise + after.noise)

    def squared(self) -> DiagonalMap:
        """This map twice."""
        return self.then(self)

    def move(self, points: Array) -> Array:
        """M x + v for points (R, d)."""
        return points + (points * self.deviation + self.shift)

    def fixed_mean(self) -> Array | None:
        """Solution of m = M m + v, or None where there is none."""
        if (self.deviation == 0.0).any():
            return None
        return -self.shift / self.deviation

    def lifted(self) -> LiftedDiagonal | None:
        """The moment map, elementwise in the entries of the covariance."""
        centre = self.fixed_mean()
        if centre is None or self.spread is None:
            return None
        residual = self.spread * centre + self.spread_shift
        return LiftedDiagonal(centre, self.deviation, self._cov_deviation,
                              _grams(self.spread, self.spread, self.full),
                              _grams(self.spread, residual, self.full),
                              self.noise + _grams(residual, residual, self.full))

    def stationary(self) -> tuple[Array, Array]:
        """Fixed mean and covariance; the caller has checked that the map contracts."""
        mean = self.fixed_mean()
        if mean is None:
            raise NoExactLaw("the round map has an eigenvalue 1: there is no stationary law")
        source = self.noise
        if self.spread is not None:
            residual = self.spread * mean + self.spread_shift
            source = source + _grams(residual, residual, self.full)
        return mean, source / -self._cov_deviation


@dataclass(frozen=True)
class LiftedDiagonal:
    """A power of a random `DiagonalMap` in coordinates around its fixed mean."""

    centre: Array
    deviation: Array
    cov_deviation: Array
    squares: Array
    cross: Array
    constant: Array

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments after this power of the round."""
        gap = mean - self.centre
        after = mean + self.deviation * gap
        if cov is None:
            return after, None
        full = cov.ndim == 2
        mixed = self.cross * (gap[:, None] if full else gap)
        mixed = mixed + (mixed.T if full else mixed)
        return after, cov + (self.cov_deviation * cov + self.squares * _pairs(gap, gap, full) + mixed
                             + self.constant)

    def squared(self) -> LiftedDiagonal:
        """Twice as many rounds."""
        full, factor, lift = self.constant.ndim == 2, 1.0 + self.deviation, self.cov_deviation
        left = factor[:, None] if full else factor
        return LiftedDiagonal(
            self.centre, 2.0 * self.deviation + self.deviation**2, 2.0 * lift + lift**2,
            self.squares * (1.0 + lift + _pairs(factor, factor, full)),
            self.cross * (1.0 + lift + left), self.constant * (2.0 + lift))
