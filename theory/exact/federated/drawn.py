"""Rounds of replicas that each draw their own clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array


class DrawnRound:
    """One round of replicas in which clients are drawn."""

    def __init__(self, problem: Any, participation: Any, clients: Any) -> None:
        self.problem, self.scheme, self.clients = problem, participation, clients
        self.own = np.sqrt(clients.own) if clients.own.ndim == 2 else _factors(clients.own)
        self.shared: Any = None
        if clients.shared is not None and clients.shared.ndim == 4:
            size = clients.shared.shape[0] * problem.dim
            self.shared = _factors(clients.shared.transpose(0, 2, 1, 3).reshape(size, size))
        elif clients.shared is not None:  # (g, g, d): coordinate by coordinate
            self.shared = _factors(clients.shared.transpose(2, 0, 1))

    def __call__(self, points: Array, previous: Array, generator: np.random.Generator) -> Array:
        """New server values (R, d); a client drawn twice counts twice with the same noise."""
        shares, common = self._shares(generator, len(points)), self._common(generator, len(points))
        after, clients = points.copy(), self.clients
        for client in range(self.problem.n_clients):
            drawn = np.flatnonzero(shares[:, client])
            kicks = generator.standard_normal((len(drawn), self.problem.dim))
            move = _apply(clients.deviations[client], points[drawn]) + clients.pulls[client]
            move += _apply(self.own[client], kicks)
            if clients.anchored is not None:
                move += _apply(clients.anchored[client], previous[drawn])
            if common is not None:
                move += common[drawn, clients.group[client]]
            after[drawn] += shares[drawn, client, None] * move
        return after

    def _common(self, generator: np.random.Generator, replicas: int) -> Array | None:
        """Noise that all clients share, as it arrives in each group, (R, g, d)."""
        if self.shared is None:
            return None
        dim, width = self.problem.dim, self.shared.shape[-1]
        if self.shared.ndim == 2:
            return (generator.standard_normal((replicas, width)) @ self.shared.T).reshape(replicas, -1, dim)
        draws = generator.standard_normal((dim, replicas, width))
        return (draws @ np.swapaxes(self.shared, 1, 2)).transpose(1, 2, 0)

    def _shares(self, generator: np.random.Generator, replicas: int) -> Array:
        n_clients, active = self.problem.n_clients, self.scheme.n_active
        if self.scheme.replace:
            return generator.multinomial(active, self.problem.weights, size=replicas) / active
        order = np.argsort(generator.random((replicas, n_clients)), axis=1)
        return (order < active) / active  # ranks of a random permutation below S: a uniform subset


def _apply(matrix: Array, points: Array) -> Array:
    """A matrix (d, d), or a diagonal (d,), times points (R, d)."""
    return points * matrix if matrix.ndim == 1 else points @ matrix.T


def _factors(cov: Array) -> Array:
    """F with F F' = cov, (..., d, d); singular matrices too."""
    values, vectors = np.linalg.eigh(cov)
    return vectors * np.sqrt(np.clip(values, 0.0, None))[..., None, :]
