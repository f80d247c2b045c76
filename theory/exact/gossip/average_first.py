"""Steps in coordinates that begin with the average, which the network leaves alone.

Where steps are small or a curvature is flat, all clients move slowly together: that motion contracts by
eta times a mean curvature a round. In client coordinates it is the small difference of W - I and eta A,
which rounding leaves to an absolute 1e-16. A reflection of the clients that takes the first axis to
(1, ..., 1)/sqrt(N) gives it entries of its own, (W - I) 1 = 0 being known, and a graded matrix, whose small
entries keep their digits in sums and products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from ..affine import AffineMap, Moments, doubling, in_eigenvectors

FLAT = 1e-4
"""Gap 1 - mu below which eigenvalues, good to an absolute 1e-16, have too few digits."""


def reflection(size: int) -> Array:
    """Symmetric and orthogonal, (N, N), with first row (1, ..., 1)/sqrt(N)."""
    if size == 1:
        return np.ones((1, 1))
    mirror = np.full(size, -1.0 / np.sqrt(size))
    mirror[0] += 1.0
    return np.eye(size) - np.outer(mirror, mirror) / mirror[0]  # mirror' mirror = 2 mirror[0]


@dataclass(frozen=True)
class AverageFirst:
    """What a `GossipMap` asks of its `components`, in coordinates that begin with the average."""

    components: Any

    @property
    def clients(self) -> int:
        """N."""
        return int(self.components.clients)

    @property
    def width(self) -> int:
        """Coordinates e of a group."""
        return int(self.components.width)

    @property
    def groups(self) -> int:
        """G."""
        return int(self.components.groups)

    @cached_property
    def mirror(self) -> Array:
        """(N, N)."""
        return reflection(self.clients)

    @cached_property
    def mixing(self) -> Array:
        """W - I, whose first row and column are zero."""
        turned = self.mirror @ (self.components.mixing @ self.mirror)
        turned[0], turned[:, 0] = 0.0, 0.0
        return turned

    @cached_property
    def pulls(self) -> Array:
        """A b, (G, N, e)."""
        return self.mirror @ self.components.pulls

    def turned(self, x: Array) -> Array:
        """To these coordinates and back, (G, N, e, k)."""
        return (self.mirror @ x.reshape(len(x), self.clients, -1)).reshape(x.shape)

    def pulled(self, x: Array) -> Array:
        """A x."""
        return self.turned(self.components.pulled(self.turned(x)))

    def mixed(self, x: Array) -> Array:
        """((W - I) x I) x."""
        return (self.mixing @ x.reshape(len(x), self.clients, -1)).reshape(x.shape)

    def state(self, columns: Array) -> Array:
        """States (G, n, k), to these coordinates and back."""
        return self.turned(columns.reshape(len(columns), -1, self.clients, self.width, columns.shape[-1]
                                           ).reshape(-1, self.clients, self.width, columns.shape[-1])
                           ).reshape(columns.shape)

    def covariance(self, cov: Array) -> Array:
        """Covariances of states (G, n, n), to these coordinates and back."""
        return self.state(np.ascontiguousarray(self.state(cov).swapaxes(1, 2)))


@dataclass(frozen=True)
class TurnedMap:
    """A power of a step, held in coordinates that begin with the average; moments are those of clients."""

    coordinates: AverageFirst
    inner: AffineMap

    def step(self, mean: Array, cov: Array | None) -> Moments:
        """Moments after this power of the step."""
        turn = self.coordinates
        after, grown = self.inner.step(turn.state(mean[..., None])[..., 0],
                                       None if cov is None else turn.covariance(cov))
        return turn.state(after[..., None])[..., 0], None if grown is None else turn.covariance(grown)

    def squared(self) -> TurnedMap:
        """Twice as many steps."""
        return TurnedMap(self.coordinates, self.inner.squared())

    def lyapunov(self, symmetric: bool) -> Callable[[Array], Array]:
        """Solver of S = M S M' + Q; by eigenvectors where M is `symmetric` and they have the digits."""
        turn, deviation = self.coordinates, self.inner.deviation
        fast = symmetric and np.linalg.eigvalsh(deviation).max() < -FLAT
        solve = (in_eigenvectors if fast else doubling)(deviation)
        return lambda source: turn.covariance(solve(turn.covariance(source)))
