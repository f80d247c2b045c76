"""How the server averages, as stability sees it: the radius of a round from what it does in each client.

With shares s_c of mean p and covariance Sigma = L L' a round multiplies deviations by M = I + sum_c p_c D_c
in the mean, and second moments by M . M' + sum_k H_k . H_k' with H_k = sum_c L_ck D_c. One client more, which
keeps the server's value, takes what is missing from a sum of one: so what the server remembers is remembered
whoever takes part. Known sets multiply the maps of their rounds.

Source: derived.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..settings.participation import Shares
from ..settings.validation import Array
from .search import gaps_to_one, radius_of, random_radius, scalar_random_radius

_ROOM = 1_000_000
"""Numbers held at a time."""


class Averaging:
    """What one kind of participation does."""

    def radius(self, shifts: Array) -> float:
        """Of a round in which client maps I + shift (N + 1, s, s) are averaged, the last that of who is idle.

        Coordinates that do not mix have shifts (N + 1, d), or (N + 1, d, s, s).
        """
        raise NotImplementedError

    def second_radius(self, maps: Array, own: Array) -> float:
        """Root of the radius of second moments, from the maps (N, d, d) and from what `own` (N, d^2, d^2)
        makes of the second moment of each client."""
        raise NotImplementedError


def root_of(table: Array) -> float:
    """Root of the spectral radius."""
    if not np.isfinite(table).all():
        return float("inf")
    return float(np.sqrt(np.abs(np.linalg.eigvals(table)).max()))


def squares(maps: Array) -> Array:
    """What maps (N, d, d) make of second moments, (N, d^2, d^2)."""
    size = maps.shape[1] ** 2
    return np.einsum("cij,ckl->cikjl", maps, maps).reshape(len(maps), size, size)


class ByScheme(Averaging):
    """All clients, or those that a scheme of this variance factor draws."""

    def __init__(self, weights: Array, factor: float) -> None:
        self.weights, self.factor = weights, factor

    def second_radius(self, maps: Array, own: Array) -> float:
        mean = np.tensordot(self.weights, maps, axes=1)
        together = np.kron(mean, mean) + np.tensordot(self.weights**2, own - squares(maps), axes=1)
        return root_of((1.0 - self.factor) * together + self.factor * np.tensordot(self.weights, own, axes=1))


class ByChance(Averaging):
    """Shares of these moments, independent from round to round."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        values, vectors = np.linalg.eigh(shares.cov)
        roots = (vectors * np.sqrt(np.clip(values, 0.0, None))).T[values > 1e-18 * values.max(initial=0.0)]
        self.mean = np.append(shares.mean, 1.0 - shares.mean.sum())
        self.roots = np.column_stack([roots, -roots.sum(axis=1)])

    def radius(self, shifts: Array) -> float:
        if not np.isfinite(shifts).all() or np.abs(shifts).max() > 1e100:
            return float("inf")
        mean, gaps = np.tensordot(self.mean, shifts, axes=1), np.tensordot(self.roots, shifts, axes=1)
        if mean.ndim == 1:
            return scalar_random_radius(mean, (gaps**2).sum(axis=0))
        return random_radius(mean, gaps)

    def second_radius(self, maps: Array, own: Array) -> float:
        unit = np.eye(maps.shape[1])
        moves = maps - unit
        mean = unit + np.tensordot(self.shares.mean, moves, axes=1)
        chances = self.shares.mean**2 + np.diag(self.shares.cov)
        spread = squares(np.tensordot(self.roots[:, :-1], moves, axes=1)).sum(axis=0)
        return root_of(np.kron(mean, mean) + spread + np.tensordot(chances, own - squares(maps), axes=1))


class BySets(Averaging):
    """Known sets, one after the other: per round, of the map of all of them."""

    def __init__(self, sets: Any, weights: Array) -> None:
        self.sets, self.weights, self.working = sets, weights, np.unique(sets.members)

    def _parts(self, size: int) -> Any:
        """Shares (n, N) of so many rounds at a time that tables of `size` numbers for each fit."""
        count = max(1, _ROOM // (size + len(self.weights)))
        for begin in range(0, self.sets.n_sets, count):
            yield self.sets.shares_at(self.weights, np.arange(begin, min(begin + count, self.sets.n_sets)))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def radius(self, shifts: Array) -> float:
        others = np.ones(len(shifts), dtype=bool)
        others[self.working] = False
        shifts = np.where(others.reshape(-1, *[1] * (shifts.ndim - 1)), 0.0, shifts)[:-1]
        if not np.isfinite(shifts).all() or np.abs(shifts).max() > 1e100:
            return float("inf")
        rounds = self.sets.n_sets
        parts = (np.tensordot(shares, shifts, axes=1) for shares in self._parts(shifts[0].size))
        if shifts.ndim == 2:
            logs = sum(_logs(part).sum(axis=0) for part in parts)
            return radius_of(float(-np.expm1(np.max(logs) / rounds)))
        total: Any = np.zeros(shifts.shape[1:])
        scale = 0.0
        for part in parts:
            moved, lost = _product(part)
            total = total + moved + moved @ total
            total, more = _rescaled(total)
            scale += lost + more
        if scale == 0.0:
            if not np.isfinite(total).all():
                return float("inf")
            gap = float(gaps_to_one(np.linalg.eigvals(total)).min())
            return radius_of(float(-np.expm1(np.log1p(-min(gap, 1.0)) / rounds)))
        size = np.abs(np.linalg.eigvals(np.eye(total.shape[-1]) + total)).max()
        return float(np.exp((np.log(size) + scale) / rounds))

    def second_radius(self, maps: Array, own: Array) -> float:
        extra, unit = own - squares(maps), np.eye(own.shape[1])
        total, scale = np.zeros_like(unit), 0.0
        for part in self._parts(own[0].size):
            tables = squares(np.tensordot(part, maps, axes=1)) + np.tensordot(part**2, extra, axes=1)
            moved, lost = _product(tables - unit)
            total, more = _rescaled(total + moved + moved @ total)
            scale += lost + more
        if not np.isfinite(total).all():
            return float("inf")
        size = np.abs(np.linalg.eigvals(unit + total)).max()
        return float(np.exp(0.5 * (np.log(size) + scale) / self.sets.n_sets))


def _logs(shifts: Array) -> Array:
    """log |1 + shift|."""
    return np.where(shifts > -0.5, np.log1p(np.maximum(shifts, -0.5)), np.log(np.abs(1.0 + shifts)))


def _product(shifts: Array) -> tuple[Array, float]:
    """The product of matrices I + shift (n, ..., s, s), the first applied first, minus I; and the logarithm
    of a factor that was taken out of it."""
    scale = 0.0
    while len(shifts) > 1:
        even = len(shifts) // 2 * 2
        first, later = shifts[:even:2], shifts[1:even:2]
        pairs, lost = _rescaled(first + later + later @ first)
        shifts, scale = np.concatenate([pairs, shifts[even:]]), scale + lost * (even // 2)
    return shifts[0], scale


def _rescaled(shifts: Array) -> tuple[Array, float]:
    """Where I + shift is large, or small and so without digits: less a factor, and its logarithm."""
    unit = np.eye(shifts.shape[-1])
    size = float(np.abs(unit + shifts).max())
    if 0.05 < size < 1e100 or not np.isfinite(size) or size == 0.0:
        return shifts, 0.0
    return (unit + shifts) / size - unit, float(np.log(size))
