"""DE-SGLD in vectorised NumPy: the fastest of the forms tried, and a plain loop for wrong programs.

Full gradients: distances to the fixed point in units of the noise, so that neither an offset nor a factor
of the noise is left, and one stacked product of (d, 3 d) with a client and its two neighbours, seen
without copying as (3 d, R). Tried and not faster: a dense (N d, N d) product (2x slower), mixing by
shifted sums with a product or unrolled arithmetic for the gradient (1.05x and 1.2x slower).

Minibatches: how often every row was drawn, by bincount, times a table of the products of features and
targets; five row numbers are the digits of one random number. Tried and not faster: gathering features and
targets (1.5x slower), or the table's rows, or those of all pairs of rows, numpy's multinomial (14x),
comparing bytes with every row number, a random number for every row number.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .gossip import GossipTables

CHUNK = 5000
"""Rows of counts (one per client and replica) made at once."""


def in_parts(run: Any, seed: int, n_replicas: int, threads: int) -> np.ndarray:
    """Samples of run(generator, replicas), the replicas shared out among threads."""
    sizes = [n_replicas // threads + (i < n_replicas % threads) for i in range(threads)]
    seeds = np.random.SeedSequence(seed).spawn(threads)
    generators = [np.random.Generator(np.random.SFC64(one)) for one in seeds]
    if threads == 1:
        return run(generators[0], sizes[0])
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(run, generators, sizes)))


def draw_rows(rng: np.random.Generator, n_data: int, apart: int, offsets: np.ndarray,
              out: np.ndarray) -> None:
    """Fill `out` (b, m) with numbers below `n_data`, digits of larger ones, times `apart` plus offsets."""
    groups = -(-len(out) // int(31 / np.log2(n_data)))
    digits = -(-len(out) // groups)
    rest = rng.integers(0, n_data**digits, size=(groups, len(offsets)), dtype=np.uint32)
    for first in range(0, len(out), groups):
        quotient = rest // np.uint32(n_data)
        rest -= quotient * np.uint32(n_data)
        place = out[first:first + groups]
        rest *= np.uint32(apart)
        np.add(rest[:len(place)], offsets, out=place)
        rest = quotient


class Shared:
    """A contestant whose replicas may be shared out among threads, where that is faster."""

    def __init__(self, tables: Any, threads: int) -> None:
        self.tables, self.threads = tables, threads

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Fix the sizes; NumPy's threads wait for one another, so that one alone may be faster."""
        self.n_replicas, self.used = n_replicas, 1
        if self.threads > 1:
            self.n_rounds, seconds = max(1, n_rounds // 20), {}
            for number in (1, self.threads):
                self.used, begin = number, time.perf_counter()
                self.run(0)
                seconds[number] = time.perf_counter() - begin
            self.used = min(seconds, key=seconds.__getitem__)
        self.n_rounds = n_rounds + self.tables.late_rounds

    def run(self, seed: int) -> np.ndarray:
        """Samples (R, d)."""
        raise NotImplementedError


class Gossip(Shared):
    """One contestant; see `worker`."""

    tables: GossipTables

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d)."""
        if not self.tables.is_right:
            run = self._plain
        else:
            run = self._full if self.tables.batch_size is None else self._minibatch
        return in_parts(run, seed, self.n_replicas, self.used)

    def _full(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        t = self.tables
        n_clients, _, dim = t.shape
        hessians, pulls = t.quadratic()
        step = t.step_size * hessians
        own = (1 - 2 * t.share) * np.eye(dim) - step
        side = np.broadcast_to(t.share * np.eye(dim), own.shape)
        matrix = np.concatenate([side, own, side], axis=2)
        whole = np.kron(np.eye(n_clients) - t.mixing(), np.eye(dim))
        for c in range(n_clients):
            part = slice(c * dim, (c + 1) * dim)
            whole[part, part] += step[c]
        fixed = np.linalg.solve(whole, t.step_size * pulls.ravel()).reshape(n_clients, dim)
        # clients 1, ..., N, with a copy of the last before the first and of the first behind the last
        states = [np.empty((n_clients + 2, dim, n_replicas)) for _ in range(2)]
        states[0][1:-1] = -fixed[:, :, None] / t.noise_size
        around = [as_strided(x, (n_clients, 3 * dim, n_replicas), x.strides) for x in states]
        noise = np.empty((n_clients, dim, n_replicas))
        for k in range(self.n_rounds):
            old, new = states[k % 2], states[1 - k % 2][1:-1]
            old[0], old[-1] = old[-2], old[1]
            np.matmul(matrix, around[k % 2], out=new)
            rng.standard_normal(out=noise)
            new += noise
        last = states[self.n_rounds % 2][1:-1].mean(axis=0)
        return (t.noise_size * last + fixed.mean(axis=0)[:, None]).T

    def _minibatch(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        t = self.tables
        assert t.batch_size is not None
        (n_clients, n_data, dim), eta = t.shape, t.step_size
        if dim != 2:
            raise ValueError(f"dim={dim} must be 2: the arithmetic is unrolled")
        a, b, y = t.features[:, :, 0], t.features[:, :, 1], t.targets
        scale = -eta * n_data / t.batch_size
        table = np.ascontiguousarray(scale * np.stack([a * a, a * b, b * b, -a * y, -b * y], axis=1))
        chunk = min(n_clients, max(1, CHUNK // n_replicas))
        index = np.empty((t.batch_size, chunk * n_replicas), np.int64)
        counts = np.empty(n_data * chunk * n_replicas)
        offsets = (np.arange(chunk)[:, None] * n_data * n_replicas + np.arange(n_replicas)).ravel()
        sums = np.empty((n_clients, 5, n_replicas))
        states = np.zeros((2, dim, n_clients + 2, n_replicas))
        noise, term = np.empty((dim, n_clients, n_replicas)), np.empty((n_clients, n_replicas))
        for k in range(self.n_rounds):
            for first in range(0, n_clients, chunk):
                these = slice(first, min(first + chunk, n_clients))
                many = (these.stop - first) * n_replicas
                draw_rows(rng, n_data, n_replicas, offsets[:many], index[:, :many])
                seen = counts[:n_data * many]
                np.copyto(seen, np.bincount(index[:, :many].ravel(), minlength=n_data * many))
                np.matmul(table[these], seen.reshape(-1, n_data, n_replicas), out=sums[these])
            old, new = states[k % 2], states[1 - k % 2]
            old[:, 0], old[:, -1] = old[:, -2], old[:, 1]
            rng.standard_normal(out=noise)
            x0, x1 = old[:, 1:-1]
            for i in range(2):
                y = new[i, 1:-1]
                np.add(old[i, :-2], old[i, 2:], out=y)
                y *= t.share
                np.multiply(old[i, 1:-1], 1 - 2 * t.share - eta * t.prior, out=term)
                y += term
                np.multiply(sums[:, i], x0, out=term)
                y += term
                np.multiply(sums[:, i + 1], x1, out=term)
                y += term
                y += sums[:, 3 + i]
                noise[i] *= t.noise_size
                y += noise[i]
        return states[self.n_rounds % 2][:, 1:-1].mean(axis=1).T

    def _plain(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        """The equation written down, client by client, with the tables' mistakes."""
        t = self.tables
        n_clients, n_data, dim = t.shape
        mixing, (hessians, pulls) = t.mixing(), t.quadratic()
        x = np.zeros((n_clients, dim, n_replicas))
        for _ in range(self.n_rounds):
            old = x if t.one_by_one else x.copy()
            drawn = None
            for c in range(n_clients):
                mixed = sum(mixing[c, j] * old[j] for j in np.flatnonzero(mixing[c]))
                at = mixed if t.gradient_when_mixed else old[c]
                if t.batch_size is None:
                    gradient = hessians[c] @ at - pulls[c][:, None]
                else:
                    if drawn is None or not t.same_batch:
                        drawn = rng.integers(0, n_data, size=(t.batch_size, n_replicas))
                        if t.without_replacement:
                            order = rng.random((n_data, n_replicas), dtype=np.float32)
                            drawn = order.argpartition(t.batch_size, axis=0)[:t.batch_size]
                    rows = t.features[c][drawn]
                    slope = np.einsum("brd,dr->br", rows, at) - t.targets[c][drawn]
                    factor = n_data / t.batch_size if t.batch_scaled else 1.0
                    gradient = factor * np.einsum("brd,br->dr", rows, slope) + t.prior * at
                noise = rng.standard_normal((dim, n_replicas))
                x[c] = mixed - t.step_size * gradient + t.noise_size * noise
        return x.mean(axis=0).T
