"""Rounds of clients in the eigenbases of their Hessians.

On quadratic clients without a preconditioner every sum over the local updates of a round is a function
of curvatures: in eigenbases A_c = V_c diag(a) V_c' it is V_c [(V_c' X V_e) o g] V_e', with one number g
per pair of eigenvalues. An algorithm supplies those numbers as a `CurvatureRound`; step sizes that
change make them sums and products over their own steps, and the eigenbases stay. Clients with the same
Hessian share their sums.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fedsim.validation import Array

from .affine import symmetrised
from .federated import Clients

BLOCK = 200_000
"""Pairs of curvatures treated at a time."""


class CurvatureRound(Protocol):
    """What a round does along a direction of curvature a, or to a pair of directions a and b."""

    def deviation(self, a: Array) -> Array:
        """Factor by which the round multiplies the distance to the client's minimizer, minus one."""

    def injected(self, a: Array, b: Array) -> Array:
        """Covariance left by unit noise that both directions receive."""

    def gradient(self, a: Array, b: Array) -> Array:
        """Covariance left by gradient noise of covariance one."""


class Spectrum:
    """Eigenvalues (g, d) and eigenvectors (g, d, d) (None: coordinates) of the distinct Hessians."""

    def __init__(self, problem: Any) -> None:
        self.dense = problem.structure == "dense"
        tables = problem.hessians if self.dense else problem.diagonal_hessians
        flat, group = np.unique(tables.reshape(problem.n_clients, -1), axis=0, return_inverse=True)
        self.group = group.ravel()
        self.weights = np.bincount(self.group, weights=problem.weights)
        distinct = flat.reshape(len(flat), *tables.shape[1:])
        self.values: Array
        self.vectors: Any
        self.values, self.vectors = np.linalg.eigh(distinct) if self.dense else (distinct, None)

    def compose(self, values: Array) -> Array:
        """V diag(values) V' per group, or `values` themselves where coordinates do not mix."""
        if not self.dense:
            return values
        return symmetrised((self.vectors * values[:, None, :]) @ np.swapaxes(self.vectors, 1, 2))

    def shared_rows(self, steps: CurvatureRound, first: int, last: int) -> Array:
        """Covariances of common noise of groups [first, last) and all, (rows, g, d, d) or (rows, g, d)."""
        rows = slice(first, last)
        if not self.dense:
            return steps.injected(self.values[rows, None], self.values[None])
        sums = steps.injected(self.values[rows, None, :, None], self.values[None, :, None, :])
        left, right = self.vectors[rows, None], self.vectors[None]
        return left @ ((np.swapaxes(left, 2, 3) @ right) * sums) @ np.swapaxes(right, 2, 3)


def round_clients(problem: Any, spectrum: Spectrum, steps: CurvatureRound, shared_noise: float,
                  variances: bool, sampling: bool) -> Clients:
    """All that one round does in each client, by the arguments of `FederatedFamily.rounds`."""
    values, group = spectrum.values, spectrum.group
    alone = spectrum.compose(steps.injected(values, values))  # (g, d, d) or (g, d)
    weights = problem.weights.reshape(-1, *([1] * (alone.ndim - 1)))
    own = (1.0 - shared_noise) / weights * alone[group]
    if problem.gradient_noise is not None:
        own = _add_gradient_noise(own, problem, spectrum, steps, variances)
    average, table = np.zeros(alone.shape[1:]), []
    if shared_noise > 0.0:
        rows = max(1, BLOCK // (len(values) * alone[0].size))
        for i in range(0, len(values), rows):
            block = shared_noise * spectrum.shared_rows(steps, i, i + rows)
            average = average + np.tensordot(spectrum.weights[i:i + rows],
                                             np.tensordot(spectrum.weights, block, axes=(0, 1)), axes=1)
            if sampling:
                table.append(block)
    deviations = spectrum.compose(steps.deviation(values))[group]
    return Clients(deviations, -_apply(deviations, problem.minimizers), own, group,
                   np.concatenate(table) if table else None, average,
                   shared_noise * np.tensordot(spectrum.weights, alone, axes=1))


def _apply(maps: Array, points: Array) -> Array:
    """Maps (N, d, d) or (N, d) at points (N, d)."""
    return np.einsum("cij,cj->ci", maps, points) if maps.ndim == 3 else maps * points


def _add_gradient_noise(own: Array, problem: Any, spectrum: Spectrum, steps: CurvatureRound,
                        variances: bool) -> Array:
    """Private covariances plus those of gradient noise."""
    noise, values, group = problem.gradient_noise, spectrum.values, spectrum.group
    if np.ndim(noise) == 0:
        return own + noise**2 * spectrum.compose(steps.gradient(values, values))[group]
    if variances:  # coordinates do not mix, so that variances need variances only
        return own + np.diagonal(noise, axis1=1, axis2=2) * steps.gradient(values, values)[group]
    sums = steps.gradient(values[:, :, None], values[:, None, :])[group]
    if not spectrum.dense:
        places = np.arange(problem.dim)
        wide = noise * sums
        wide[:, places, places] += own
        return wide
    vectors = spectrum.vectors[group]
    back = np.swapaxes(vectors, 1, 2)
    return own + symmetrised(vectors @ ((back @ noise @ vectors) * sums) @ back)
