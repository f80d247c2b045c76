"""Exact moments of samplers of one's own on linear regression with minibatches.

A round is cut before every gradient (`fedsim.samplers.pieces`): the noise of a gradient has mean zero and a
covariance that the first two moments of its point give (`batches`), so that those of the state close,
whatever local steps do. Laws are not Gaussian. They are stepped through piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from fedsim.samplers.pieces import Piece, after_all
from fedsim.samplers.radius import clients_scale, in_all, linear_map, pieces_of
from fedsim.samplers.trace import Trace
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array

from .affine import Moments, NoExactLaw, doubling
from .batches import MinibatchNoise, fixed_covariance, require_fixed
from .tables import symmetrised

REFINEMENTS, COARSE = 3, 1e-6
"""How often the stationary covariance is solved for, each time to this residual of what is left."""
LARGEST_WORK = 1e12
"""Operations beyond which rounds are not stepped through."""


class MinibatchRounds:
    """Rounds of a trace on a `fedsim.LinearRegression` with minibatches; moments are (1, n) and (1, n, n)."""

    def __init__(self, problem: Any, algorithm: Any, trace: Trace) -> None:
        followed = problem.pooled() if algorithm._follows == "global" else problem
        n = len(trace.names) * followed.n_clients * followed.dim
        refuse_bytes(48.0 * n * n, f"covariances of {n} numbers, with room to work,", "use fewer clients, or "
                     "covariance='none' with allow_unstable=True for means alone")
        self.pieces, self.trace = pieces_of(followed, algorithm._follows, trace), trace
        self.constant, self.clients = algorithm.schedule.is_constant, self.pieces.clients
        self.sizes = self.pieces.sizes
        self.data = MinibatchNoise(followed)
        w = followed.weights
        self.scale = clients_scale(algorithm._follows, w) / w[:, None, None] ** 2
        self._kept = lru_cache(maxsize=max(1, trace.period))(self.pieces.round)

    def round(self, number: int) -> list[Piece]:
        """The pieces of a round."""
        return self._kept(number % self.trace.period if self.constant else number)

    def noise(self, means: Array, covs: Array) -> Array:
        """E G of the clients' gradients, (N, d, d), for moments of their points."""
        return self.scale * self.data.mean(means, covs)

    def linear(self, means: Array, covs: Array) -> Array:
        """The part of it that is linear in the covariances."""
        return self.scale * self.data.linear(covs)

    def step(self, number: int, mean: Array, cov: Array) -> tuple[Array, Array]:
        """Moments after the round of this number."""
        after, grown = after_all(self.round(number), mean[0], cov[0], self.noise)
        return after[None], grown[None]

    def moments(self, rounds: np.ndarray, mean: Array, cov: Array) -> Iterator[Moments]:
        """At increasing `rounds`, beginning at round 0."""
        cost = sum(4.0 * piece.matrix.size * len(mean[0]) for piece in self.round(0))
        if rounds[-1] * cost > LARGEST_WORK:
            raise NoExactLaw(f"n_rounds={rounds[-1]} with minibatches would be stepped through gradient by "
                             f"gradient ({rounds[-1] * cost:.1g} operations); ask for fewer rounds, or use "
                             "stationary_law")
        return self._moments(rounds, mean, cov)

    def _moments(self, rounds: np.ndarray, mean: Array, cov: Array) -> Iterator[Moments]:
        yield mean, cov
        wanted = set(rounds.tolist())
        for number in range(int(rounds[-1])):
            mean, cov = self.step(number, mean, cov)
            if number + 1 in wanted:
                yield mean, cov

    def stationary(self) -> tuple[Array, Array]:
        """Fixed moments without what a round conserves; the caller has checked that they contract."""
        turns = self.round(0)
        whole, basis = in_all(turns)
        mean = basis @ np.linalg.solve(-whole.deviation[0], whole.shift[0])
        react = linear_map(turns, basis, self.linear)

        def after(cov: Array) -> Array:
            return basis.T @ after_all(turns, mean, basis @ cov @ basis.T, self.noise)[1] @ basis

        # S = L(R(S) + source) with the solution L(Q) of S = M S M' + Q, for the minibatches' answer R alone
        solve, M = doubling(whole.deviation), np.eye(basis.shape[1]) + whole.deviation[0]
        source, cov = solve(after(np.zeros(M.shape))[None])[0], np.zeros(M.shape)

        def answered(table: Array) -> Array:
            return solve((react(table) - M @ table @ M.T)[None])[0]

        for _ in range(REFINEMENTS):  # a residual of 1e-14 at once would not be reached
            cov = cov + fixed_covariance(answered, source - cov + answered(cov), COARSE)
        cov = require_fixed(symmetrised(cov), after(symmetrised(cov)))
        return mean[None], (basis @ cov @ basis.T)[None]
