"""The server's round: an affine map of its states, or replicas that each draw their own clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedsim.settings.participation_independent import IndependentParticipation
from fedsim.settings.validation import Array

from ..affine import Moments
from ..stacked import Stacked
from ..tables import symmetrised
from .averaging import Averaging
from .spectrum import ClientMaps, weighted


@dataclass(frozen=True)
class States:
    """How the server's value x is held in the groups of `affine`.

    With `dense` Hessians all coordinates are one group, else each is one. Where rounds depend on the server's
    previous value z as well (`anchored`), a group holds its x and then its z, which is 0 at the start.
    """

    dim: int
    dense: bool
    anchored: bool

    def grouped(self, table: Array, axes: int) -> Array:
        """Vectors (axes = 1) or matrices (axes = 2), the latter as diagonals where coordinates do not mix."""
        return np.expand_dims(table, -1 - axes if self.dense else tuple(range(-axes, 0)))

    def begin_points(self, points: Array) -> Array:
        """States (..., g, m) of points (..., d)."""
        return self._padded(self.grouped(points, 1), 1)

    def begin_cov(self, cov: Array) -> Array:
        """Covariances of states, from (d, d), or variances (d,) where coordinates do not mix."""
        return self._padded(self.grouped(cov, 2), 2)

    def _padded(self, table: Array, axes: int) -> Array:
        if not self.anchored:
            return table
        return np.pad(table, [(0, 0)] * (table.ndim - axes) + [(0, table.shape[-1])] * axes)

    def begin(self, mean: Array, cov: Array | None) -> Moments:
        """Moments of the state for those of x."""
        return self.begin_points(mean), None if cov is None else self.begin_cov(cov)

    def present_points(self, states: Array) -> Array:
        """x (..., d) of states."""
        return states[..., :self.dim if self.dense else 1].reshape(*states.shape[:-2], self.dim)

    def present(self, mean: Array, cov: Array | None) -> Moments:
        """Moments of x."""
        if cov is not None:
            cov = cov[0, :self.dim, :self.dim] if self.dense else cov[..., 0, 0]
        return self.present_points(mean), cov


def server_maps(problem: Any, clients: ClientMaps, states: States, factor: float,
                variances: bool) -> Stacked:
    """The rounds, with the `factor` f of participation; `variances` alone are followed, or covariances."""
    weights, deviations, pulls = problem.weights, states.grouped(clients.deviations, 2), clients.pulls
    widen = partial(_widened, variances)
    noise = widen(clients.shared_average) + widen(weighted(weights**2, clients.own))
    if factor:
        alone = widen(clients.shared_alone) + widen(weighted(weights, clients.own))
        noise = (1.0 - factor) * noise + factor * alone
    if clients.anchored is not None:
        unit = np.broadcast_to(np.eye(deviations.shape[-1]), deviations.shape)
        deviations = np.block([[deviations, states.grouped(clients.anchored, 2)], [unit, -unit]])
    pulls = states.begin_points(pulls)
    deviation, shift = weighted(weights, deviations), weighted(weights, pulls)
    tables = [deviation, shift, states.begin_cov(noise)]
    if factor:
        scale = np.sqrt(factor * weights)[:, None, None]
        tables += [(deviations - deviation[:, None]) * scale[..., None], (pulls - shift[:, None]) * scale]
    return Stacked(*tables)


def averaged_maps(clients: ClientMaps, states: States, averaging: Averaging, numbers: np.ndarray,
                  variances: bool) -> Stacked:
    """The rounds of these numbers with shares that `averaging` knows; `clients` are of them, or of any."""
    means, deviations = averaging.means(numbers), states.grouped(clients.deviations, 2)
    pulls, second = states.begin_points(clients.pulls), averaging.second_moments(means)
    noise = _widened(variances, _mixed(np.einsum("scc->sc", second), clients.own))
    if clients.shared is not None:
        of_group = np.eye(clients.shared.shape[1])[clients.group]
        between = _mixed(of_group.T @ second @ of_group, clients.shared, 2)
        noise = noise + _widened(variances, between)
    tables = [_mixed(means, deviations), _mixed(means, pulls), states.begin_cov(noise)]
    if clients.anchored is not None:
        towards = states.grouped(clients.anchored, 2)
        unit = np.broadcast_to(np.eye(towards.shape[-1]), towards.shape)[:, 0]
        tables[0] = _remembering(tables[0], _mixed(means, towards), unit)
    if averaging.roots is not None:
        spread = _each(averaging.roots, deviations)
        if clients.anchored is not None:
            spread = _remembering(spread, _each(averaging.roots, towards), 0.0 * unit[:, None])
        tables += [spread, _each(averaging.roots, pulls)]
    return Stacked(*tables)


def _widened(variances: bool, cov: Array) -> Array:
    """Covariances (S, d, d), also of variances (S, d) unless those are all that is followed."""
    if cov.ndim == 3:
        return symmetrised(cov)
    return cov if variances else cov[..., None] * np.eye(cov.shape[-1])


def _mixed(weights: Array, tables: Array, axes: int = 1) -> Array:
    """Sums over clients, or pairs of groups, with weights (S, N) or (S, g, g); either may be of one round."""
    shape = (*weights.shape, *[1] * (tables.ndim - weights.ndim))
    return np.asarray((weights.reshape(shape) * tables).sum(axis=tuple(range(1, 1 + axes))))


def _each(roots: Array, tables: Array) -> Array:
    """Sums over clients of tables (S, N, ...) with each row of weights (k, N), (S, k, ...)."""
    return np.moveaxis(np.tensordot(roots, tables, axes=(1, 1)), 0, 1)


def _remembering(now: Array, before: Array, unit: Array) -> Array:
    """Of x and z together: x' = (I + now) x + before z, and x where z was."""
    below = np.broadcast_to(unit, now.shape)
    return np.block([[now, before], [below, -below]])


class DrawnRound:
    """One round of replicas in which clients are drawn; of the `clients` `at` it."""

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
        n_clients = self.problem.n_clients
        if isinstance(self.scheme, IndependentParticipation):
            answers = generator.random((replicas, n_clients)) < self.scheme.of_clients(n_clients)
            counted = answers * self.problem.weights
            if self.scheme.unbiased:
                return counted / self.scheme.of_clients(n_clients)
            total = counted.sum(axis=1, keepdims=True)
            return counted / np.where(total > 0.0, total, 1.0)
        active = self.scheme.n_active
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
