"""Minibatches of linear regression: the first two moments still close, with noise that they decide.

`batches` has the noise of a client as a function of its moments. Batches of different clients and steps
are independent, so that clients are correlated by gossip only.

The law is not Gaussian. Its second moment contracts on a smaller range of step sizes than its mean: noise
grows with the distance. With L(Q) the solution of S = M S M' + Q, it does where the map of client
covariances B -> blocks of L(noise of B) has radius below one.

Source: DE-SGLD section 5.1 and appendix D; the moments are derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import Array

from ..affine import NoExactLaw
from ..batches import fixed_covariance, require_fixed
from ..tables import symmetrised
from .average_first import FLAT
from .general import GossipMap
from .white import eigenvectors

arpack = lazy("scipy.sparse.linalg")

DENSE_UNKNOWNS = 30
"""Up to this many entries of client covariances the radius is that of a dense matrix."""
TRIES = 12
"""Applications of the map to client covariances that may decide whether they contract, before the radius."""


@dataclass(frozen=True)
class MinibatchMap(GossipMap):
    """One step of all clients with minibatches. It is no affine map of the state: it can only be stepped."""

    data: Any = None

    def noises(self, mean: Array, cov: Array) -> Array:
        """E D_i, (1, N, d, d)."""
        return self._noises(self.components.positions(mean), self.components.own(cov)[0])

    def _noises(self, means: Array, covs: Array) -> Array:
        """The same by the moments of the clients' positions, (N, d) and (N, d, d)."""
        size = self.move.size
        return super().noises(means, covs) + size * size * self.data.mean(means, covs)[None]

    def squared(self) -> Any:
        """There is no such map of this kind."""
        raise NoExactLaw("minibatch noise depends on the state: the law is stepped, not raised to powers")

    def power(self, rounds: np.ndarray) -> Any:
        """A function to step with."""
        work = 4.0 * float(rounds[-1]) * self.size**2 * self.components.clients
        if work > 1e13:
            raise NoExactLaw(f"n_rounds={rounds[-1]} with minibatches would be stepped through one by one "
                             f"({work:.1g} operations); ask for fewer rounds, or use stationary_law")
        return lambda number: self

    @cached_property
    def solve(self) -> Callable[[Array], Array]:
        """Solver of S = M S M' + Q."""
        return GossipMap(self.components, self.move).lyapunov()

    @cached_property
    def react(self) -> Callable[[Array], Array]:
        """The map of client covariances (N, d, d) whose radius decides."""
        factor = self.move.size * self.move.size
        short = self._own_blocks() if self.move.keep is None else None

        def react(blocks: Array) -> Array:
            noise = factor * self.data.linear(blocks)
            if short is not None:
                return short(noise)
            source = np.zeros((1, self.size, self.size))
            self.add_noise(source, noise[None])
            return self.components.own(self.solve(source))[0]

        return react

    def _own_blocks(self) -> Callable[[Array], Array] | None:
        """`solve` from the clients' own noise to their own blocks, in eigenvectors: two products of four.

        None where they have not the digits.
        """
        (values,), (rows,) = eigenvectors(GossipMap(self.components, self.move))
        if values.max() >= -FLAT:
            return None
        own, gaps = rows.reshape(*self._table[:2], -1), -(values[:, None] + values + np.outer(values, values))

        def solved(noise: Array) -> Array:
            states = rows.T @ (noise @ own).reshape(rows.shape) / gaps
            return symmetrised((rows @ states).reshape(own.shape) @ own.swapaxes(1, 2))

        return solved

    def contracts(self) -> bool:
        """Does the second moment contract, given that the mean does?"""
        blocks = np.broadcast_to(np.eye(self.components.width), self._table)
        for _ in range(TRIES):  # a map of cones that takes an inner point below itself has radius below one
            after = self.react(blocks)
            values, vectors = np.linalg.eigh(blocks)
            if values.min() <= 1e-8 * values.max():
                break
            root = vectors / np.sqrt(values)[:, None, :]
            ratios = np.linalg.eigvalsh(root.swapaxes(1, 2) @ after @ root)
            if ratios.max() < 1.0 or ratios.min() >= 1.0:  # and one that takes it above itself has not
                return bool(ratios.max() < 1.0)
            blocks = after
        return self.radius() < 1.0

    def radius(self) -> float:
        """Of the map of client covariances; below one where the second moment contracts."""
        size, start = int(np.prod(self._table)), np.broadcast_to(np.eye(self._table[1]), self._table)

        def flat(vector: Array) -> Array:
            return self.react(vector.reshape(self._table)).ravel()

        if not flat(start).any():
            return 0.0
        if size <= DENSE_UNKNOWNS:
            table = np.stack([flat(row) for row in np.eye(size)], axis=1)
            return float(np.abs(np.linalg.eigvals(table)).max())
        operator = arpack.LinearOperator((size, size), flat, dtype=np.float64)
        values = arpack.eigs(operator, k=1, v0=start.ravel(), tol=1e-8, return_eigenvectors=False)
        return float(np.abs(values).max())

    @property
    def _table(self) -> tuple[int, int, int]:
        return self.components.clients, self.components.width, self.components.width

    def stationary(self) -> tuple[Array, Array]:
        """Fixed moments; the caller has checked that the second moment contracts."""
        mean, c = self.fixed_mean(), self.components

        def solved(blocks: Array) -> Array:
            source = np.zeros((1, self.size, self.size))
            self.add_noise(source, self._noises(c.positions(mean), blocks))
            return self.solve(source)

        cov = solved(fixed_covariance(self.react, c.own(solved(np.zeros(self._table)))[0]))
        return mean, require_fixed(cov, solved(c.own(cov)[0]))  # the check, and one more digit
