"""Sums over the local steps of a round, as functions of curvatures.

With q_k(a) = 1 - eta_k a for curvature a, a round of K steps multiplies by prod_k q_k(a) and collects

    overlap(a, b, power) = sum_{k<K} eta_k^power prod_{k<j<K} q_j(a) q_j(b),

which is all that noise needs. Both keep their relative accuracy when eta a is tiny.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedsim.validation import Array


def power_deviation(x: Array, n: int) -> Array:
    """(1 - x)^n - 1, accurate for tiny x.

    >>> float(power_deviation(np.float64(1e-20), 10))
    -1e-19
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x < 1.0, np.expm1(n * np.log1p(-np.minimum(x, 1.0))), (1.0 - x) ** n - 1.0)


def geometric(x: Array, n: int) -> Array:
    """sum_{j<n} (1 - x)^j = (1 - (1-x)^n) / x, and n at x = 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x == 0.0, float(n), -power_deviation(x, n) / np.where(x == 0.0, 1.0, x))


@dataclass(frozen=True)
class EqualSteps:
    """`n_steps` local steps of the same size: closed forms, at no cost per step."""

    size: float
    n_steps: int

    def deviation(self, a: Array) -> Array:
        """prod_k q_k(a) - 1."""
        return power_deviation(self.size * a, self.n_steps)

    def overlap(self, a: Array, b: Array, power: int) -> Array:
        """See the module."""
        first, second = self.size * a, self.size * b
        return self.size**power * geometric(first + second - first * second, self.n_steps)


@dataclass(frozen=True, eq=False)
class ListedSteps:
    """Local steps of the sizes (K,), one after the other."""

    sizes: Array

    def deviation(self, a: Array) -> Array:
        """prod_k q_k(a) - 1."""
        total = np.zeros(np.shape(a))
        for size in self.sizes:
            total -= size * a * (1.0 + total)
        return total

    def overlap(self, a: Array, b: Array, power: int) -> Array:
        """See the module."""
        total = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for size in self.sizes:
            total *= (1.0 - size * a) * (1.0 - size * b)
            total += size**power
        return total


Steps = EqualSteps | ListedSteps
