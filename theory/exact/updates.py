"""Local updates of FA-HMC, and rounds of them, as functions of curvatures (see `fa_hmc`).

Everything is accurate relative to its size also where an update hardly moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedsim.validation import Array

from .sums import geometric, power_deviation


@dataclass(frozen=True)
class Leapfrog:
    """A local update: `steps` leapfrog steps of one `size`, as functions of curvatures."""

    size: float
    steps: int

    def maps(self, a: Array) -> tuple[Array, Array]:
        """C - 1 and D."""
        deviation, pull = np.zeros_like(a), self.size**2 * a
        change: Array = -0.5 * pull
        for _ in range(self.steps):  # T_{k+1} - T_k = (T_k - T_{k-1}) - eta^2 a T_k
            deviation = deviation + change
            change = change - pull * (1.0 + deviation)
        *_, reach = self._reaches(a)
        return deviation, reach

    def _reaches(self, a: Array) -> Iterator[Array]:
        """D_1, ..., D_K; in differences, so that they are accurate for tiny eta^2 a."""
        reach, pull = np.zeros_like(a), self.size**2 * a
        change: Array = np.full_like(a, self.size)
        for _ in range(self.steps):
            reach = reach + change
            change = change - pull * reach
            yield reach

    def gradient(self, a: Array, b: Array) -> Array:
        """V for gradient noise of covariance one."""
        total = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        product = total
        for one, other in zip(self._reaches(a), self._reaches(b), strict=True):
            product = one * other
            total = total + 2.0 * product
        return 0.25 * self.size**2 * (total - product)


@dataclass(frozen=True)
class Flow:
    """A local update along the continuous trajectory of this length."""

    length: float

    def maps(self, a: Array) -> tuple[Array, Array]:
        """C - 1 and D."""
        root = np.sqrt(a)
        return -2.0 * np.sin(0.5 * root * self.length) ** 2, np.sin(root * self.length) / root

    def gradient(self, a: Array, b: Array) -> Array:
        """Noise of ever more gradients along the trajectory averages out."""
        return np.zeros(np.broadcast_shapes(a.shape, b.shape))


Update = Leapfrog | Flow


@dataclass(frozen=True)
class EqualUpdates:
    """A round of `count` equal updates: closed forms, at no cost per update."""

    update: Update
    count: int

    def deviation(self, a: Array) -> Array:
        """C^T - 1."""
        return power_deviation(-self.update.maps(a)[0], self.count)

    def _repeated(self, a: Array, b: Array) -> Array:
        first, second = self.update.maps(a)[0], self.update.maps(b)[0]
        return geometric(-(first + second + first * second), self.count)

    def injected(self, a: Array, b: Array) -> Array:
        """sum_j (C_a C_b)^j D_a D_b."""
        return self._repeated(a, b) * self.update.maps(a)[1] * self.update.maps(b)[1]

    def gradient(self, a: Array, b: Array) -> Array:
        """sum_j (C_a C_b)^j V_ab."""
        return self._repeated(a, b) * self.update.gradient(a, b)


@dataclass(frozen=True)
class ListedUpdates:
    """A round of updates of their own sizes, one after the other."""

    updates: tuple[Update, ...]

    def deviation(self, a: Array) -> Array:
        """prod_t C_t - 1."""
        total = np.zeros_like(a)
        for update in self.updates:
            total = total + update.maps(a)[0] * (1.0 + total)
        return total

    def injected(self, a: Array, b: Array) -> Array:
        """sum_t [prod_{t'>t} C_t'(a) C_t'(b)] D_t(a) D_t(b)."""
        total = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        for update in self.updates:
            (first, reach), (second, other) = update.maps(a), update.maps(b)
            total = total * ((1.0 + first) * (1.0 + second)) + reach * other
        return total

    def gradient(self, a: Array, b: Array) -> Array:
        """The same of V."""
        total = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        for update in self.updates:
            keep = (1.0 + update.maps(a)[0]) * (1.0 + update.maps(b)[0])
            total = total * keep + update.gradient(a, b)
        return total
