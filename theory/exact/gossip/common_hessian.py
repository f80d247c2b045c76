"""The law of all clients where they have the same Hessian and the same gradient noise.

With A_i = P diag(theta) P' for all i and W = U diag(lambda) U', the mode (j, r) of positions (and
velocities) moves by itself:

    without velocities    factor lambda_j - eta theta_r,
    with them             [[lambda_j - eta^2 theta_r, eta beta], [-eta theta_r, beta]].

Client i's variance along r is sum_j U_ij^2 C_jr; where W is circulant, U is the Hartley basis, applied
by FFT, and all clients have the same variance. A start's covariance is common to all clients, so that it
stays in the mode of the average, for which one more block of modes with lambda = 1 is carried along: its
mean, started at (1, 0), is the response to the start, and its covariance is N times the average's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ...float_range import times_squared
from ..affine import AffineMap, Moments
from ..evolution import matrix_of, variances_of
from .general import Move

SAME = 1e-14


class Network:
    """Eigenvalues of W, and its eigenvectors as a transform."""

    def __init__(self, mixing: Array) -> None:
        size = len(mixing)
        shifted = mixing[0][(np.arange(size) - np.arange(size)[:, None]) % size]
        self.circulant = bool(np.abs(mixing - shifted).max() <= SAME)
        if self.circulant:
            self.values = np.fft.fft(mixing[0]).real
            self.vectors = None
        else:
            self.values, self.vectors = np.linalg.eigh(mixing)
        self.values[np.argmax(self.values)] = 1.0  # of the average, which is left alone

    def turn(self, table: Array) -> Array:
        """U' times (N, k)."""
        if self.vectors is not None:
            return self.vectors.T @ table
        waves = np.fft.fft(table, axis=0)
        return (waves.real - waves.imag) / np.sqrt(len(table))

    def back(self, table: Array) -> Array:
        """U times (N, k)."""
        return self.turn(table) if self.vectors is None else self.vectors @ table

    def client_sums(self, table: Array) -> Array:
        """sum_j U_ij^2 table_j for every client, (N, k)."""
        if self.vectors is not None:
            return self.vectors**2 @ table
        return np.broadcast_to(table.mean(axis=0), table.shape)


def common(problem: Any) -> tuple[Array, Any, Array] | None:
    """Curvatures (d,), their basis P (d, d) (None: coordinates) and noise variances (d,) along it.

    Of the components w_i f_(i); None where clients differ, or where noise is correlated along P.
    """
    weights = problem.weights.reshape(-1, *([1] * (problem.hessians.ndim - 1)))
    tables = weights * problem.hessians
    if np.ptp(tables, axis=0).max() > SAME * np.abs(tables).max():
        return None
    if problem.structure == "dense":
        curvatures, basis = np.linalg.eigh(tables[0])
    else:
        curvatures, basis = np.broadcast_to(tables[0], (problem.dim,)), None
    if problem.gradient_noise is None:
        return curvatures, basis, np.zeros(problem.dim)
    if np.ndim(problem.gradient_noise) == 0:  # without (N, d, d) tables
        scaled = problem.weights**2 * problem.gradient_noise**2
        equal = np.ptp(scaled) <= SAME * scaled.max()
        return (curvatures, basis, np.full(problem.dim, scaled[0])) if equal else None
    noises = problem.weights[:, None, None] ** 2 * problem.noise_covariances
    noise = noises[0] if basis is None else basis.T @ noises[0] @ basis
    crossed = np.abs(noise - np.diag(np.diagonal(noise))).max()
    if max(crossed, np.ptp(noises, axis=0).max()) > SAME * np.abs(noises).max():
        return None
    return curvatures, basis, np.diagonal(noise)


@dataclass(frozen=True)
class ModeLaw:
    """The laws of average and clients from the moments of the modes; rows are (N + 1 modes) x d."""

    network: Network
    curvatures: Array
    basis: Any
    noise: Array
    pulls: Array
    start_cov: Array
    full: bool

    @classmethod
    def of(cls, problem: Any, mixing: Array, cov: Array | None, full: bool) -> ModeLaw | None:
        """For a start's covariance `cov`; None where modes do not decouple."""
        shared = common(problem)
        if shared is None:
            return None
        curvatures, basis, noise = shared
        network = Network(mixing)
        centres = problem.minimizers if basis is None else problem.minimizers @ basis
        start = np.zeros(problem.dim) if cov is None else cov
        if basis is not None:
            start = basis.T @ matrix_of(start) @ basis
        elif not full:
            start = variances_of(start)
        return cls(network, curvatures, basis, noise, network.turn(curvatures * centres), start, full)

    def map(self, move: Move) -> AffineMap:
        """A step, of rows of `move.parts` numbers."""
        modes = np.append(self.network.values, 1.0)[:, None]
        eta, theta = move.size, self.curvatures
        pulls = np.concatenate([eta * self.pulls, np.zeros((1, len(theta)))])
        noise = np.broadcast_to(move.heat + times_squared(eta, self.noise), pulls.shape)
        if move.keep is None:
            deviation = (modes - 1.0 - eta * theta)[..., None, None]
        else:
            entries = (modes - 1.0 - times_squared(eta, theta), eta * move.keep, -eta * theta,
                       -move.lost)
            rows = [np.broadcast_to(entry, pulls.shape) for entry in entries]
            deviation = np.stack(rows, axis=-1).reshape(*pulls.shape, 2, 2)
        kicks = move.kicks
        return AffineMap(deviation.reshape(-1, *deviation.shape[2:]), pulls.reshape(-1, 1) * kicks,
                        noise.reshape(-1, 1, 1) * (kicks[:, None] * kicks))

    def begin(self, mean: Array, velocities: Array | None, cov: Array | None) -> Moments:
        """Moments of the rows for a start (d,) or (N, d)."""
        clients, dim = self.pulls.shape
        tables = [mean] if velocities is None else [mean, velocities]
        rows = np.zeros((clients + 1, dim, len(tables)))
        for part, table in enumerate(tables):
            each = np.broadcast_to(table, (clients, dim))
            rows[:-1, :, part] = self.network.turn(each if self.basis is None else each @ self.basis)
        rows[-1, :, 0] = 1.0
        state = rows.reshape(-1, len(tables))
        return state, None if cov is None else np.zeros((*state.shape, len(tables)))

    def views(self, mean: Array, cov: Array | None) -> Moments:
        """Average and clients: means (1 + N, d), covariances (1 + N, d, d) or variances (1 + N, d)."""
        clients, dim = self.pulls.shape
        rows, basis = mean.reshape(clients + 1, dim, -1)[..., 0], self.basis
        x = self.network.back(rows[:-1])
        if basis is not None:
            x = x @ basis.T
        means = np.concatenate([x.mean(axis=0)[None], x])
        if cov is None:
            return means, None
        spread = cov[:, 0, 0].reshape(clients + 1, dim)
        variances = np.concatenate([spread[-1:] / clients, self.network.client_sums(spread[:-1])])
        response = rows[-1]
        if self.start_cov.ndim == 1:
            return means, variances + response**2 * self.start_cov
        refuse_bytes(32.0 * (clients + 1) * dim * dim, f"covariances of {clients} clients at dimension {dim}",
                     "use covariance='none' for means, or fewer clients")
        crossed = response[:, None] * self.start_cov * response
        if basis is None:
            return means, crossed + variances[:, :, None] * np.eye(dim)
        if not self.full:
            return means, variances @ (basis**2).T + np.einsum("ir,rs,is->i", basis, crossed, basis)
        return means, basis @ (crossed + variances[:, :, None] * np.eye(dim)) @ basis.T
