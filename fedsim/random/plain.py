"""The random streams in NumPy: the numbers that compiled code draws, to rounding, for many replicas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array
from .normals import steps_per_draw
from .philox import rounds
from .streams import PARTICIPATION

_LOW = 0xFFFFFFFF


class PlainStreams(NamedTuple):
    """The streams of a seed, for replicas (R,)."""

    seed: int
    replicas: np.ndarray

    def _words(self, tag: int, position: int, client: int, place: int) -> tuple[Any, Any]:
        """Two words of 64 bits for each replica."""
        replicas = self.replicas.astype(np.uint64)
        fixed = [np.full_like(replicas, word & _LOW) for word in (client << 16 | place, position, tag)]
        a, b, c, d = rounds(fixed[0], fixed[1], replicas, fixed[2], self.seed & _LOW, self.seed >> 32)
        return a << np.uint64(32) | b, c << np.uint64(32) | d

    def normals(self, tag: int, position: int, client: int, count: int) -> Array:
        """Standard normals (count, R)."""
        found: list[Array] = []
        for place in range(-(-count // 2)):
            high, low = self._words(tag, position, client, place)
            radius = np.sqrt(-2.0 * np.log(1.0 - (high >> np.uint64(12)) * 2.0**-52))
            angle = ((low >> np.uint64(10) & np.uint64(2**52 - 1)) * 2.0**-52 - 0.5) * np.pi / 2
            turned, cosine, sine = low >> np.uint64(62), np.cos(angle), np.sin(angle)
            pair = np.array([cosine, -sine, -cosine, sine]), np.array([sine, cosine, -sine, -cosine])
            found += [radius * np.choose(turned.astype(np.int64), each) for each in pair]
        return np.array(found[:count])

    def of_step(self, tag: int, step: int, client: int, dim: int) -> Array:
        """Noise of one step (R, dim), of a draw that some steps share."""
        together = steps_per_draw(dim, np.float64)
        drawn = self.normals(tag, step // together, client, together * dim)
        first = step % together * dim
        return drawn[first:first + dim].T

    def uniform(self, position: int, number: int) -> Array:
        """Uniform numbers in [0, 1), (R,), that decide who is drawn."""
        return self.uniform_of(PARTICIPATION, position, number, 0)

    def uniform_of(self, tag: int, position: int, client: int, place: int) -> Array:
        """Uniform numbers in [0, 1), (R,)."""
        numbers: Array = (self._words(tag, position, client, place)[0] >> np.uint64(11)) * 2.0**-53
        return numbers

    def clients(self, position: int, n_active: int, cumulative: Array, replace: bool) -> np.ndarray:
        """Clients (n_active, R) that take part, as `draw_clients` draws them."""
        N = len(cumulative)
        uniforms = [self.uniform(position, slot) for slot in range(n_active)]
        if replace:
            return np.array([np.minimum(np.searchsorted(cumulative, u, side="right"), N - 1)
                             for u in uniforms])
        pool, lanes = np.tile(np.arange(N)[:, None], len(self.replicas)), np.arange(len(self.replicas))
        for slot, u in enumerate(uniforms):
            other = slot + (u * (N - slot)).astype(np.int64)
            pool[slot, lanes], pool[other, lanes] = pool[other, lanes], pool[slot, lanes].copy()
        return pool[:n_active]
