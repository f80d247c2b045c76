"""Quadratic clients as a sampler follows them, and what a round makes of their stacked state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problems.quadratic import Quadratic
from ..settings.validation import Array


class Clients(NamedTuple):
    """Quadratic clients as a sampler follows them: hessians (G, N, e, e), pulls (G, N, e), and roots of the
    covariances of gradient noise (G, N, e, e) or None."""

    hessians: Array
    pulls: Array
    roots: Array | None

    @classmethod
    def of(cls, problem: Quadratic, components: bool, dense: bool) -> Clients:
        """The clients of a problem, with their functions or, as `components`, w_c f_(c)."""
        scale = problem.weights if components else np.ones(problem.n_clients)
        if dense:
            A = (scale[:, None, None] * problem.dense_hessians)[None]
            b = (A @ problem.minimizers[None, :, :, None])[..., 0]
        else:
            values = scale[:, None] * problem.diagonal_hessians
            A, b = values.T[:, :, None, None], (values * problem.minimizers).T[:, :, None]
        covs = problem.noise_covariances
        if covs is None:
            return cls(A, b, None)
        if dense:
            size, vectors = np.linalg.eigh(covs)
            roots = (vectors * np.sqrt(np.clip(size, 0.0, None))[:, None, :])[None]
        else:
            roots = np.sqrt(np.diagonal(covs, axis1=1, axis2=2)).T[:, :, None, None]
        return cls(A, b, scale[:, None, None] * roots)


class Round(NamedTuple):
    """deviation M - I (G, n, n), shift v (G, n) and noise Q (G, n, n) of a round.

    A round that is drawn at random adds sum_k z_k (H_k z + u_k), z_k uncorrelated, centred and of variance
    one: `spread` has the H_k (k, G, n, n), and `spread_shift` the u_k (k, G, n).
    """

    deviation: Array
    shift: Array
    noise: Array
    spread: Array | None = None
    spread_shift: Array | None = None

    def then(self, after: Round) -> Round:
        """This followed by another, neither at random."""
        first, second = self.deviation, after.deviation
        M = np.eye(second.shape[-1]) + second
        return Round(first + second + second @ first,
                     self.shift + after.shift + (second @ self.shift[..., None])[..., 0],
                     M @ self.noise @ np.swapaxes(M, -1, -2) + after.noise)

    def power(self, count: int) -> Round:
        """So many of it."""
        total: Round | None = None
        square = self
        while True:
            if count & 1:
                total = square if total is None else total.then(square)
            count >>= 1
            if not count:
                assert total is not None
                return total
            square = square.then(square)
