"""Laws on a grid: where gradient steps lead is put on the grid, and normal noise carries mass between nodes.

A mass between two nodes is shared by them so that its mean stays, which adds at most h^2/4 to a variance.
Beside a step's own variance s^2 that is h^2/(4 s^2) of it, so that no deviation grows by more than half of
that share: `slack`, doubled for the cells that quantiles are interpolated in.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr

from .lines import Client, Line

LOST = 1e-7
"""Mass that may leave the grid in all rounds."""


class Grid:
    """Equidistant nodes about the minimizer, as wide as the hottest law."""

    def __init__(self, line: Line, step_noise: float, reach: float, most: int) -> None:
        wide = reach + 7.0 * np.sqrt(1.0 / line.m + step_noise)
        count = min(most, int(2.0 * wide / (0.25 * np.sqrt(step_noise) + 1e-3)) + 100)
        self.x = line.minimizer + np.linspace(-wide, wide, count)
        self.h = float(self.x[1] - self.x[0])

    def shares(self, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The node below each point, and the share of the one above."""
        place = (centres - self.x[0]) / self.h
        below = np.clip(np.floor(place), 0, len(self.x) - 2).astype(int)
        return below, np.clip(place - below, 0.0, 1.0)

    def moves(self, centres: np.ndarray, chances: np.ndarray) -> np.ndarray:
        """(n, n): where each node is led, of centres (n, k) with chances (k,)."""
        n = len(self.x)
        below, above = self.shares(centres)
        rows = np.arange(n)[:, None]
        flat = np.bincount((rows * n + below).ravel(), ((1 - above) * chances).ravel(), n * n)
        flat += np.bincount((rows * n + below + 1).ravel(), (above * chances).ravel(), n * n)
        return flat.reshape(n, n)

    def spread(self, size: float) -> np.ndarray:
        """(n, n): normal noise, from node to node, without what leaves the grid."""
        ends = np.append(self.x - 0.5 * self.h, self.x[-1] + 0.5 * self.h)
        return np.diff(ndtr((ends[None] - self.x[:, None]) / size), axis=1)

    def point(self, at: float) -> np.ndarray:
        """All mass at a point, between two nodes."""
        law = np.zeros(len(self.x))
        below, above = self.shares(np.array(at))
        law[below], law[below + 1] = 1 - above, above
        return law


    def slack(self, size: float, law: np.ndarray) -> float:
        """What a distance may be wrong by, of a law that steps of this size made."""
        mean = law @ self.x
        return 0.25 * (self.h / size) ** 2 * float(np.sqrt(law @ (self.x - mean) ** 2)) + 1e-9

    def w2(self, law: np.ndarray, target: tuple[np.ndarray, np.ndarray]) -> float:
        """To a target of many nodes; mass is even within a cell."""
        return cells_w2(self.x, law, target)


def cells_w2(x: np.ndarray, law: np.ndarray, target: tuple[np.ndarray, np.ndarray]) -> float:
    """W2 by quantiles, between masses in cells about equidistant nodes."""
    assert abs(law.sum() - 1.0) < LOST and law.min() > -1e-12  # before anything is normalised
    kept = law.sum()
    sides = [(np.append(at - 0.5 * step, at[-1] + 0.5 * step), np.append(0.0, np.cumsum(mass / mass.sum())))
             for at, mass, step in ((x, np.maximum(law, 0.0) / kept, x[1] - x[0]),
                                    (*target, target[0][1] - target[0][0]))]
    levels = np.unique(np.concatenate([sides[0][1], sides[1][1]]))
    middles = 0.5 * (levels[:-1] + levels[1:])
    ends = [np.interp(middles, *rising(level, edge)) for edge, level in sides]
    return float(np.sqrt(np.diff(levels) @ (ends[0] - ends[1]) ** 2))


def rising(level: np.ndarray, edge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the levels that come again, up to rounding."""
    keep = np.append(True, np.diff(level) > 1e-15)
    return level[keep], edge[keep]


def together(clients: list[Client]) -> Iterator[tuple[Any, ...]]:
    """Gradients that clients may draw together, equally likely."""
    return itertools.product(*(client.gradients for client in clients))


def pairs_of(line: Line) -> int:
    """How many of these there are."""
    return int(np.prod([len(client.gradients) for client in line.clients]))


def equal(count: int) -> np.ndarray:
    """Equal chances."""
    return np.full(count, 1.0 / count)


def stationary(kernel: np.ndarray) -> np.ndarray:
    """The law that a kernel keeps, by squaring."""
    rows = kernel / kernel.sum(axis=1, keepdims=True)
    for _ in range(40):
        further = rows @ rows
        if np.abs(further - rows).max() < 1e-13:
            break
        rows = further
    return rows[len(rows) // 2]
