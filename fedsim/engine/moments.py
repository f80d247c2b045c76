"""Moments of leaves of 64 replicas, merged in a fixed binary tree.

Floating-point sums depend on their order. Leaves are runs of 64 consecutive replica numbers and the
tree over leaf numbers is fixed, so the merged moments do not depend on how the work was cut into
blocks, nor on the order in which blocks finish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..settings.validation import Array
from .rounds import LEAF


@dataclass(frozen=True)
class Moments:
    """Moments of `count` replicas, arrays (views, n, d) and (views, n, d*d | d | 0).

    Attributes
    ----------
    mean, square : mean, and sum of centred products
    leaves : number of full leaves below
    spread_mean, spread_square : mean over those leaves of the leaf's sample covariance, and sum of
        squared deviations from it: they give standard errors without assuming a Gaussian law
    """

    count: int
    mean: Array
    square: Array
    leaves: int
    spread_mean: Array
    spread_square: Array


def leaf_moments(mean: Array, square: Array, count: int) -> Moments:
    """The node of one leaf."""
    if count < LEAF:  # a short leaf has another variance and does not enter the spread
        empty = np.zeros_like(square)
        return Moments(count, mean, square, 0, empty, empty)
    return Moments(count, mean, square, 1, square / (count - 1), np.zeros_like(square))


def merge(left: Moments, right: Moments, diagonal: bool) -> Moments:
    """Moments of both together (Chan, Golub and LeVeque)."""
    count = left.count + right.count
    delta = right.mean - left.mean
    mean = left.mean + delta * (right.count / count)
    square = left.square
    if square.shape[-1]:
        product = delta * delta if diagonal else (
            delta[..., :, None] * delta[..., None, :]).reshape(*delta.shape[:-1], -1)
        square = left.square + right.square + product * (left.count * right.count / count)
    leaves = left.leaves + right.leaves
    if leaves == 0:
        return Moments(count, mean, square, 0, left.spread_mean, left.spread_square)
    gap = right.spread_mean - left.spread_mean
    spread_mean = left.spread_mean + gap * (right.leaves / leaves)
    spread_square = (left.spread_square + right.spread_square
                     + gap * gap * (left.leaves * right.leaves / leaves))
    return Moments(count, mean, square, leaves, spread_mean, spread_square)


class Tree:
    """Merges leaves first..last-1 as they come, keeping only nodes whose sibling is missing."""

    def __init__(self, first: int, last: int, diagonal: bool) -> None:
        self.first, self.last, self.diagonal = first, last, diagonal
        self._nodes: dict[tuple[int, int], Moments] = {}

    def _empty(self, level: int, index: int) -> bool:
        """True when the node covers no leaf of this tree."""
        return (index + 1) << level <= self.first or index << level >= self.last

    def add(self, leaf: int, moments: Moments) -> None:
        """Insert a leaf; merge upwards wherever both children are there."""
        level, index, node = 0, leaf, moments
        while (1 << level) < self.last:
            sibling = index ^ 1
            if not self._empty(level, sibling):
                if (level, sibling) not in self._nodes:
                    self._nodes[level, index] = node
                    return
                other = self._nodes.pop((level, sibling))
                node = merge(node, other, self.diagonal) if index < sibling else merge(
                    other, node, self.diagonal)
            level, index = level + 1, index >> 1
        self._nodes[level, index] = node

    def root(self) -> Moments:
        """The moments of all leaves, once every one has been added."""
        if len(self._nodes) != 1:
            raise RuntimeError(f"{len(self._nodes)} parts of the tree are still apart")
        return next(iter(self._nodes.values()))
