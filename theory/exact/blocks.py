"""The maps of `affine` where the state is a few numbers for each coordinate and coordinates do not mix.

The state is (d, m). Covariances are (d, m, m) within coordinates, or (d, d, m, m) between them; block
(i, j) of the new covariance needs block (i, j) of the old one only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from .affine import Moments, NoExactLaw


@dataclass(frozen=True)
class BlockMap:
    """A round of independent coordinates with m numbers each.

    Parameters
    ----------
    deviation : (d, m, m), M - I of each coordinate
    shift : (d, m)
    noise : (d, m, m) or (d, d, m, m)
        Decides which covariances are followed.
    spread, spread_shift : (n, d, m, m) and (n, d, m), or None
        H_c and u_c of the random part.
    """

    deviation: Array
    shift: Array
    noise: Array
    spread: Any = None
    spread_shift: Any = None

    @property
    def full(self) -> bool:
        """Covariances between coordinates too."""
        return self.noise.ndim == 4

    @cached_property
    def matrix(self) -> Array:
        """M, (d, m, m)."""
        return np.eye(self.shift.shape[1]) + self.deviation

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments one application later; `cov` None follows the mean alone."""
        after = mean + (_times(self.deviation, mean) + self.shift)
        if cov is None:
            return after, None
        grown = self._around(self.matrix, cov) + self.noise
        if self.spread is not None:
            for spread, shift in zip(self.spread, self.spread_shift, strict=True):
                residual = _times(spread, mean) + shift
                grown += self._around(spread, cov) + self._gram(residual)
        return after, grown

    def _around(self, maps: Array, cov: Array) -> Array:
        back = np.swapaxes(maps, 1, 2)
        return maps[:, None] @ cov @ back if self.full else maps @ cov @ back

    def _gram(self, x: Array) -> Array:
        """Blocks x_i x_j' of an array (d, m)."""
        return x[:, None, :, None] * x[None, :, None, :] if self.full else x[:, :, None] * x[:, None, :]

    def then(self, after: BlockMap) -> BlockMap:
        """This map followed by another; neither with a random part."""
        first, second = self.deviation, after.deviation
        return BlockMap(first + second + second @ first,
                        self.shift + after.shift + _times(second, self.shift),
                        after._around(after.matrix, self.noise) + after.noise)

    def squared(self) -> BlockMap:
        """This map twice."""
        return self.then(self)

    def move(self, points: Array) -> Array:
        """M x + v for points (R, d, m)."""
        return points + (np.einsum("iab,rib->ria", self.deviation, points) + self.shift)

    def fixed_mean(self) -> Array | None:
        """Solution of m = M m + v, or None where there is none."""
        try:
            solved: Any = np.linalg.solve(-self.deviation, self.shift[..., None])[..., 0]
        except np.linalg.LinAlgError:
            return None
        return solved

    def lifted(self) -> None:
        """No powers of the moment map here: it is stepped through."""

    def stationary(self) -> tuple[Array, Array]:
        """Fixed mean and covariance; the caller has checked that the map contracts."""
        mean = self.fixed_mean()
        if mean is None:
            raise NoExactLaw("the round map has an eigenvalue 1: there is no stationary law")
        unit, source = np.eye(mean.shape[1]), self.noise
        lift = (self._kron(self.deviation, unit) + self._kron(unit, self.deviation)
                + self._kron(self.deviation, self.deviation))
        if self.spread is not None:
            for spread, shift in zip(self.spread, self.spread_shift, strict=True):
                lift = lift + self._kron(spread, spread)
                source = source + self._gram(_times(spread, mean) + shift)
        solved: Any = np.linalg.solve(-lift, source.reshape(*source.shape[:-2], -1, 1))
        return mean, solved.reshape(source.shape)

    def _kron(self, left: Array, right: Array) -> Array:
        """Kronecker products of blocks i and j, (d, m^2, m^2) or (d, d, m^2, m^2)."""
        dim, width = self.shift.shape
        left = np.broadcast_to(left, (dim, width, width))
        right = np.broadcast_to(right, (dim, width, width))
        if self.full:
            left, right = left[:, None], right[None]
        product = np.einsum("...ac,...bd->...abcd", left, right)
        return product.reshape(*product.shape[:-4], width**2, width**2)


def _times(maps: Array, points: Array) -> Array:
    """Maps (d, m, m) at points (d, m)."""
    return np.einsum("iab,ib->ia", maps, points)
