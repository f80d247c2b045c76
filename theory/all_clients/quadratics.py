"""The quadratic clients for which a sampler contracts least: a rate that no certificate can go below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from .inequality import Reduced, Sides

GRID = 401
"""Curvatures that are tried between m and L, before the largest is looked for more finely."""
REFINED = 40


class Slowest(NamedTuple):
    """Spectral radius of a round, and at which share of the way from m to L all curvatures are."""

    radius: float
    share: float


def slowest(modes: Sequence[tuple[Reduced, Sides]]) -> Slowest:
    """The largest radius found over curvatures m + s (L - m) with one s in [0, 1], in any mode."""
    grid, best = np.linspace(0.0, 1.0, GRID), Slowest(0.0, 0.0)
    for one, sides in modes:
        if not one.step[0]:
            continue
        radii = _radii(one, sides, grid)
        at = int(np.argmax(radii))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, GRID - 1)]
        for _ in range(REFINED):
            finer = np.linspace(low, high, 5)
            place = int(np.argmax(_radii(one, sides, finer)))
            low, high = finer[max(place - 1, 0)], finer[min(place + 1, 4)]
        tried = np.array([grid[at], 0.5 * (low + high)])
        best = max(best, *(Slowest(float(radius), float(share)) for radius, share in
                           zip(_radii(one, sides, tried), tried, strict=True)))
    return best


def _radii(one: Reduced, sides: Sides, shares: Array) -> Array:
    """Radius of a round with gradients h y, for each of the shares."""
    step = np.array([[float(x) for x in row] for row in one.step[0]])
    r, q = len(step), step.shape[1] - len(step)
    points = np.array([[float(x) for x in row] for row in one.points[0]]).reshape(q, r + q)
    m, L = np.array([[float(x) for x in pair] for pair in sides]).reshape(q, 2).T
    h = (m + shares[:, None] * (L - m))[:, :, None]
    gradients = np.linalg.solve(np.eye(q) - h * points[:, r:], h * points[:, :r])
    return np.asarray(np.abs(np.linalg.eigvals(step[:, :r] + step[:, r:] @ gradients)).max(axis=1))
