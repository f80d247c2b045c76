"""Stale SGLD on the Gaussian model in vectorised NumPy: update by update, and blocks of updates.

A gradient that is tau updates old lets tau + 1 updates follow from what is known, so that a block of
them is one product: of a fixed matrix with the block before and the noise. The blocks here are twice as
long, and still give every iterate. In units of the noise and around the minimizer nothing else is left.
Tried and not faster: partial sums by add.accumulate or row by row, shorter and longer blocks.
"""

from __future__ import annotations

import numpy as np

from .numpy_gossip import Shared, in_parts
from .stale import StaleTables


class StaleBlocks(Shared):
    """One contestant; see `worker`."""

    tables: StaleTables

    def __init__(self, tables: StaleTables, threads: int) -> None:
        super().__init__(tables, threads)
        self.curvature, pull = tables.quadratic
        self.centre = pull / self.curvature

    def run(self, seed: int) -> np.ndarray:
        """The last iterates, or averages of squares, (R, 1)."""
        return in_parts(self._run, seed, self.n_replicas, self.used)[:, None]

    def _matrix(self, length: int, oldest: int) -> np.ndarray:
        """(n, n + n): iterates l+1, ..., l+n from l-n+1, ..., l and the n normals."""
        rows = list(np.eye(2 * length)[:length])
        for number in range(length):
            rows.append(rows[-1] - self.tables.step_size * self.curvature * rows[-1 - oldest])
            rows[-1][length + number] += 1.0
        return np.array(rows[length:])

    def _run(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        t = self.tables
        length = 2 * (t.staleness + 1)
        matrix, size = self._matrix(length, t.staleness), t.noise_size
        blocks = [np.empty((2 * length, n_replicas)) for _ in range(2)]
        blocks[0][:length] = -self.centre / size  # before the start: at the start
        sums, squares, term = (np.zeros((length, n_replicas)) for _ in range(3))
        whole, rest = divmod(self.n_rounds, length)
        for number in range(whole + (rest > 0)):
            now, after = blocks[number % 2], blocks[1 - number % 2][:length]
            rng.standard_normal(out=now[length:])
            np.matmul(matrix, now, out=after)
            if t.averages:
                wanted = slice(0, length if number < whole else rest)
                sums[wanted] += after[wanted]
                np.multiply(after[wanted], after[wanted], out=term[wanted])
                squares[wanted] += term[wanted]
        if not t.averages:
            return self.centre + size * after[(rest or length) - 1]
        total = (size**2 * squares.sum(axis=0) + 2.0 * size * self.centre * sums.sum(axis=0)
                 + self.n_rounds * self.centre**2)
        return total / (self.n_rounds + t.start_counts)  # the start is 0


class StaleSteps(StaleBlocks):
    """The same update by update, as one would first write it."""

    def _run(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        t = self.tables
        room, size = t.staleness + 2, t.noise_size
        ring = np.full((room, n_replicas), -self.centre / size)
        noise, term = np.empty(n_replicas), np.empty(n_replicas)
        total = np.zeros(n_replicas)
        for update in range(self.n_rounds):
            new = ring[(update + 1) % room]
            rng.standard_normal(out=noise)
            np.multiply(ring[max(update - t.staleness, 0) % room], -t.step_size * self.curvature, out=term)
            np.add(ring[update % room], noise, out=new)
            new += term
            if t.averages:
                np.multiply(new, size, out=term)
                term += self.centre
                term *= term
                total += term
        if t.averages:
            return total / (self.n_rounds + t.start_counts)
        return self.centre + size * ring[self.n_rounds % room]
