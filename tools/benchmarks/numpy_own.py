"""EXTRA- and DIGing-SGLD in vectorised NumPy, with the plain loop for wrong programs.

A stacked product of (d, d) with every client for the gradient, and shifted sums for the ring, all in place;
the state has a copy of the last client before the first and of the first behind the last.
"""

from __future__ import annotations

import numpy as np

from .numpy_gossip import Shared, in_parts
from .own import OwnTables, ring_and_step


class Own(Shared):
    """One contestant; see `worker`."""

    tables: OwnTables

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d)."""
        run = {"extra": self._extra, "diging": self._diging}[self.tables.method]
        return in_parts(run if self.tables.is_right else self._plain, seed, self.n_replicas, self.used)

    def _mixed(self, padded: np.ndarray, out: np.ndarray, room: np.ndarray) -> None:
        """out = W x for x = padded[1:-1]."""
        t = self.tables
        padded[0], padded[-1] = padded[-2], padded[1]
        np.add(padded[:-2], padded[2:], out=out)
        out *= t.share
        np.multiply(padded[1:-1], 1 - 2 * t.share, out=room)
        out += room

    def _extra(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        t = self.tables
        n_clients, _, dim = t.shape
        _, steps, pulls = ring_and_step(t)
        padded = np.zeros((n_clients + 2, dim, n_replicas))
        x, s = padded[1:-1], np.zeros((n_clients, dim, n_replicas))
        mixed, pull, noise = (np.empty_like(s) for _ in range(3))
        for _ in range(self.n_rounds):
            self._mixed(padded, mixed, noise)
            np.matmul(steps, x, out=pull)
            pull -= pulls[:, :, None]
            pull += s
            np.subtract(x, mixed, out=noise)
            noise *= 0.5
            s += noise
            rng.standard_normal(out=noise)
            noise *= t.noise_size
            noise -= pull
            np.add(mixed, noise, out=x)
        return x.mean(axis=0).T

    def _diging(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        """y times eta, and gradients times eta."""
        t = self.tables
        n_clients, _, dim = t.shape
        _, steps, pulls = ring_and_step(t)
        padded, tracked = np.zeros((2, n_clients + 2, dim, n_replicas))
        x, y = padded[1:-1], tracked[1:-1]
        old, new, mixed, noise = (np.zeros((n_clients, dim, n_replicas)) for _ in range(4))
        for _ in range(self.n_rounds):
            np.matmul(steps, x, out=new)
            new -= pulls[:, :, None]
            self._mixed(tracked, mixed, noise)
            mixed += new
            np.subtract(mixed, old, out=y)
            old, new = new, old
            self._mixed(padded, mixed, noise)
            rng.standard_normal(out=noise)
            noise *= t.noise_size
            noise -= y
            np.add(mixed, noise, out=x)
        return x.mean(axis=0).T

    def _plain(self, rng: np.random.Generator, n_replicas: int) -> np.ndarray:
        """The equations written down, with the tables' mistakes."""
        t = self.tables
        W, steps, pulls = ring_and_step(t)
        shape = len(W), steps.shape[1], n_replicas
        x, second, last = (np.zeros(shape) for _ in range(3))
        for _ in range(self.n_rounds):
            pull, mixed = steps @ x - pulls[:, :, None], np.tensordot(W, x, axes=1)
            noise = t.noise_size * rng.standard_normal(shape)
            if t.method == "extra":
                x, second = mixed - second - pull + noise, second + (x - mixed) / 2
            else:
                second = np.tensordot(W, second, axes=1) + pull - (0.0 if t.new_gradient_twice else last)
                x, last = mixed - second + noise, pull
            if t.forgets:
                second = np.zeros(shape)
        return x.mean(axis=0).T
