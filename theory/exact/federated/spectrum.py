"""Rounds and local steps of clients in the eigenbases of their Hessians.

On quadratic clients without a preconditioner every sum over the local updates of a round is a function
of curvatures: in eigenbases A_c = V_c diag(a) V_c' it is V_c [(V_c' X V_e) o g] V_e', with one number g
per pair of eigenvalues. The algorithm's `chain` gives those numbers; step sizes that change make them sums
and products over their own steps, and the eigenbases stay. Clients with the same Hessian share their sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from ..tables import symmetrised
from .chain import Motion, Round, spread
from .joint import LocalStep

BLOCK = 200_000
"""Pairs of curvatures treated at a time."""
PAIRS = np.s_[:, :, None], np.s_[:, None, :]
"""All pairs of directions within a group."""


@dataclass(frozen=True)
class ClientMaps:
    """What rounds do in each client; matrices are (d,) diagonals where coordinates do not mix.

    All but `group` begin with an axis of rounds, which `at` leaves away.

    Parameters
    ----------
    deviations : (S, N, d, d) or (S, N, d), G_c - I
    pulls : (S, N, d), what a client adds; (I - G_c) b_c where it is drawn to its own minimizer
    own : (S, N, d, d), or (S, N, d) variances where coordinates do not mix
        Covariance of the noise that client c has for itself.
    group : (N,) int
        Clients with equal entries receive the same common noise through the same map.
    shared : (S, g, g, d, d) or (S, g, g, d), or None
        Covariances of the common noise between groups; only made for sampling.
    shared_average, shared_alone : (S, d, d) or (S, d)
        sum_ce p_c p_e and sum_c p_c of the common noise's covariances.
    anchored : (S, N, d, d) or (S, N, d), or None
        Factor of the server's previous value.
    """

    deviations: Array
    pulls: Array
    own: Array
    group: np.ndarray
    shared: Array | None
    shared_average: Array
    shared_alone: Array
    anchored: Array | None = None

    def at(self, index: int) -> ClientMaps:
        """Of one of the rounds."""
        return ClientMaps(**{name: value if value is None or name == "group" else value[index]
                             for name, value in vars(self).items()})


class Spectrum:
    """Eigenvalues (g, d) and eigenvectors (g, d, d) (None: coordinates) of the distinct Hessians."""

    def __init__(self, problem: Any) -> None:
        self.dense = problem.structure == "dense"
        tables = problem.hessians if self.dense else problem.diagonal_hessians
        flat = tables.reshape(problem.n_clients, -1)
        _, index, group = np.unique(flat[:, 0], return_index=True, return_inverse=True)
        if len(index) < len(flat):  # only then can Hessians be the same, and comparing rows is slow
            _, index, group = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        self.group = group.ravel()
        self.weights: Any = np.bincount(self.group, weights=problem.weights)
        self.values: Array
        self.vectors: Any
        self.values, self.vectors = np.linalg.eigh(tables[index]) if self.dense else (tables[index], None)

    def compose(self, values: Array) -> Array:
        """V diag(values) V' per group, or `values` themselves where coordinates do not mix."""
        if not self.dense:
            return values
        return symmetrised((self.vectors * values[..., None, :]) @ np.swapaxes(self.vectors, 1, 2))

    def wide(self, table: Array) -> Array:
        """Blocks (..., N, p d, q d) of functions of curvature (p, q, ..., g, d); N = 1 for constants."""
        unit = np.eye(table.shape[-1])
        if (table == table[..., :1, :1]).all():
            blocks = table[..., :1, :1, None] * unit
        else:
            blocks = self.compose(table) if self.dense else table[..., None] * unit
            blocks = blocks[..., self.group, :, :]
        return np.block([list(row) for row in blocks])

    def filtered(self, noise: Array, sums: Array) -> Array:
        """V [(V' noise V) o sums] V' of covariances (N, d, d) and numbers (..., g, d, d)."""
        sums = sums[..., self.group, :, :]
        if not self.dense or (sums == sums[..., :1, :1]).all():
            return noise * sums
        vectors = self.vectors[self.group]
        back = np.swapaxes(vectors, 1, 2)
        return symmetrised(vectors @ ((back @ noise @ vectors) * sums) @ back)

    def shared_rows(self, steps: Round, first: int, last: int) -> Array:
        """Covariances of common noise of groups [first, last) and all, (S, rows, g, d, d) or a d less."""
        rows = slice(first, last)
        if not self.dense:
            return steps.injected(np.s_[rows, None, :], np.s_[None, :, :])
        sums = steps.injected(np.s_[rows, None, :, None], np.s_[None, :, None, :])
        left, right = self.vectors[rows, None], self.vectors[None]
        return left @ ((np.swapaxes(left, 2, 3) @ right) * sums) @ np.swapaxes(right, 2, 3)


def round_clients(problem: Any, spectrum: Spectrum, steps: Round, shared_noise: float,
                  variances: bool, sampling: bool) -> ClientMaps:
    """All that rounds do in each client, by the arguments of `FederatedFamily.rounds`."""
    values, group = spectrum.values, spectrum.group
    alone = spectrum.compose(steps.injected())  # (S, g, d, d) or (S, g, d)
    weights = problem.weights.reshape(-1, *([1] * (alone.ndim - 2)))
    own = (1.0 - shared_noise) / weights * alone[:, group]
    if problem.gradient_noise is not None:
        own = _add_gradient_noise(own, problem, spectrum, steps, variances)
    average, table = np.zeros_like(alone[:, 0]), []
    if shared_noise > 0.0 and not sampling and _few_steps(steps, len(values)):
        average = shared_noise * _shared_average(spectrum, steps)
    elif shared_noise > 0.0:
        if sampling:
            refuse_bytes(32.0 * len(values) * alone.size, f"covariances of the common noise of {len(values)} "
                         f"clients at dimension {problem.dim}", "use fewer clients, shared_noise=0, or "
                         "fedsim.simulate")
        rows = max(1, BLOCK // (len(values) * alone[:, 0].size))
        for i in range(0, len(values), rows):
            block = shared_noise * spectrum.shared_rows(steps, i, i + rows)
            average = average + weighted(spectrum.weights[i:i + rows], weighted(spectrum.weights, block, 2))
            if sampling:
                table.append(block)
    deviations = spectrum.compose(steps.deviation())[:, group]
    return ClientMaps(deviations, -apply(deviations, problem.minimizers), own, group,
                      np.concatenate(table, axis=1) if table else None, average,
                      shared_noise * weighted(spectrum.weights, alone))


def _few_steps(steps: Round, groups: int) -> bool:
    """Are the local steps of a number for each coordinate, and fewer than kinds of clients?"""
    return len(steps.motions) == len(steps.motions[0].change) == 1 and (
        steps.repeats * steps.motions[0].injected.shape[1] < groups)


def _shared_average(spectrum: Spectrum, steps: Round) -> Array:
    """sum_ce p_c p_e of the common noise's covariances: squares of what local steps do to the average."""
    change, reach = steps.motions[0].change[0, 0], steps.motions[0].injected[0]
    total: Any = 0.0
    for _ in range(steps.repeats):
        for one in reach:
            mean = weighted(spectrum.weights, spectrum.compose(one))
            total = total + (mean @ np.swapaxes(mean, -1, -2) if spectrum.dense else mean**2)
        reach = reach + change * reach
    return np.asarray(total)


def weighted(weights: Array, tables: Array, axis: int = 1) -> Array:
    """Sum of tables with these weights along an axis."""
    return np.tensordot(weights, tables, axes=(0, axis))


def apply(maps: Array, points: Array) -> Array:
    """Maps (S, N, d, d) or (S, N, d) at points (N, d), or at one (1, d)."""
    return (maps @ points[..., None])[..., 0] if maps.ndim == 4 else maps * points


def _add_gradient_noise(own: Array, problem: Any, spectrum: Spectrum, steps: Round,
                        variances: bool) -> Array:
    """Private covariances plus those of gradient noise."""
    noise, group = problem.gradient_noise, spectrum.group
    if np.ndim(noise) == 0:
        return own + noise**2 * spectrum.compose(steps.gradient())[:, group]
    if variances:  # coordinates do not mix, so that variances need variances only
        return own + np.diagonal(noise, axis1=1, axis2=2) * steps.gradient()[:, group]
    wide = spectrum.filtered(noise, steps.gradient(*PAIRS))
    return wide + (own if spectrum.dense else own[..., None] * np.eye(problem.dim))


def local_steps(problem: Any, spectrum: Spectrum, shared_noise: float, steps: Motion) -> LocalStep:
    """Local steps (p, ., ..., g, d) as matrices, with the same axes before those of clients."""
    dim, noise = problem.dim, problem.noise_covariances
    change, reach = spectrum.wide(steps.change), spectrum.wide(steps.injected)
    back = np.swapaxes(reach, -1, -2)
    own = (1.0 - shared_noise) / problem.weights[:, None, None] * (reach @ back)
    if noise is not None:
        own = own + np.block([[spectrum.filtered(noise, entry) for entry in row]
                              for row in spread(steps.kicked, *PAIRS)])
    return LocalStep(np.eye(change.shape[-1]) + change,
                     -(change[..., :dim] @ problem.minimizers[..., None])[..., 0], own,
                     shared_noise * (reach[..., :, None, :, :] @ back[..., None, :, :, :]))
