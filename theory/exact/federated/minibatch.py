"""Exact moments of federated algorithms on linear regression with minibatches: every gradient in turn.

Between communications the state of client c is s = (theta, rest), and its chain's evaluations make

    s' = F s - k g_c(theta),   g_c(theta) = A_c theta - A_c b_c + xi,   Cov(xi | theta) = G_c(theta) / w_c^2,

with G_c of the component as in `batches`. Batches are new for every evaluation, so that their noise is
uncorrelated between clients, given where they are, and E G_c needs client c's own moments only.
A communication is that of `federated`. The law is not Gaussian.

Source: FA-LD equations (7) and (11), FA-HMC Algorithms 1 and 3 for the recursions; the moments are derived.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array
from fedsim.stability.search import cone_radius

from ..affine import Moments, NoExactLaw
from ..batches import MinibatchNoise, fixed_covariance, require_fixed
from ..families import family_of
from ..tables import symmetrised
from .averaging import Averaging
from .chain import Part, length, unrolled
from .joint import LocalStep, after_step, communicate

MOST_PARTS = 100_000
"""Parts of a local step that are made."""
LARGEST_WORK = 1e12
"""Operations beyond which rounds are not stepped through."""


def parts_of(algorithm: Any, eta: float, dim: int) -> list[list[Array]]:
    """I + change (p d, p d), kick and noise (p d, d) of every part of a local step of size `eta`."""
    family = family_of(algorithm)
    if family.memory(algorithm):
        raise NoExactLaw(f"debias={algorithm.debias!r}: with minibatches there are exact moments without "
                         "debiasing only; use fedsim.simulate")
    chain = family.chain(algorithm, eta)
    if length(chain) > MOST_PARTS:
        raise NoExactLaw(f"a local step of {length(chain)} parts has no exact moments with minibatches: each "
                         f"part is a matrix, and at most {MOST_PARTS} are made")
    parts = list(unrolled(chain))
    if not all(isinstance(part, Part) for part in parts):
        raise NoExactLaw(f"{type(algorithm).__name__} has no exact moments with minibatches here: it makes "
                         "other moves than those of gradients")
    none = np.zeros(len(parts[0].change))
    tables = ((np.diag(none + 1.0) + part.change, *(
        np.array([none if column is None else column]).T for column in part[1:])) for part in parts)
    stages: list[list[Array]] = []
    for part_tables in tables:
        drift, *added = (np.kron(table, np.eye(dim)) for table in part_tables)
        if stages and not any(column.any() for column in added):  # nothing is evaluated: one with the last
            drift, *added = (drift @ table for table in stages.pop())
        stages.append([drift, *added])
    return stages


class MinibatchRounds:
    """Rounds of a federated algorithm on a `fedsim.LinearRegression` with minibatches."""

    def __init__(self, problem: Any, algorithm: Any) -> None:
        followed = problem.curvature_problem()
        self.problem, self.algorithm, self.averaging = problem, algorithm, Averaging.of(problem, algorithm)
        self.parts = lru_cache(maxsize=1)(lambda eta: parts_of(algorithm, eta, problem.dim))
        first = self.parts(algorithm.schedule.largest)
        self.count, self.width = len(first), len(first[0][0])
        refuse_bytes(32.0 * (problem.n_clients * self.width) ** 2, f"covariances of {problem.n_clients} "
                     f"clients at dimension {problem.dim}", "use fewer clients, or covariance='none' with "
                     "allow_unstable=True for means alone")
        self.hessians, self.weights = followed.dense_hessians, followed.weights
        self.pulls = np.einsum("cij,cj->ci", self.hessians, followed.minimizers)
        self.data = MinibatchNoise(problem)

    def round(self, number: int, mean: Any, cov: Any, linear: bool = False) -> tuple[Array, Array]:
        """Moments after round `number`; `linear` keeps what is linear in the covariance, at mean zero."""
        dim, every, width = self.problem.dim, self.algorithm.local_steps, self.width
        held = self.problem.n_clients + (self.averaging.mean is not None)  # and the server's old value
        means, blocks = np.zeros((held, width)), np.zeros((held, held, width, width))
        means[:, :dim], blocks[:, :, :dim, :dim] = mean, cov
        for step in range(number * every, (number + 1) * every):
            for part in self.parts(float(self.algorithm.schedule.at(step))):
                means, blocks = self._after(part, means, blocks, linear)
        return self._averaged(number, means[:, :dim], blocks[:, :, :dim, :dim])

    def _averaged(self, number: int, means: Array, blocks: Array) -> tuple[Array, Array]:
        """Moments of the server's new value."""
        averaging = self.averaging
        if averaging.mean is None:
            shares = averaging.means([number])[0]
            return communicate(means, blocks, shares, averaging.factor)[:2]
        shares = np.append(averaging.mean, 1.0 - averaging.mean.sum())  # the last is what the server keeps
        centre, server, _ = communicate(means, blocks, shares, 0.0)
        if averaging.roots is not None:
            for root in np.column_stack([averaging.roots, -averaging.roots.sum(axis=1)]):
                gap = root @ means
                server = server + communicate(means, blocks, root, 0.0)[1] + np.outer(gap, gap)
        return centre, symmetrised(server)

    def _after(self, part: list[Array], means: Array, blocks: Array, linear: bool) -> tuple[Array, Array]:
        """Moments after a part."""
        clients, dim, shared = self.problem.n_clients, self.problem.dim, self.algorithm.shared_noise
        drift, kick, noise = part
        each, maps = np.arange(clients), np.repeat(drift[None], clients, axis=0)
        maps[:, :, :dim] -= kick @ self.hessians
        shifts, injected = np.zeros_like(means[:clients]), np.zeros_like(drift)
        if not linear:
            shifts, injected = self.pulls @ kick.T, noise @ noise.T
        own = (1.0 - shared) / self.weights[:, None, None] * injected
        if kick.any():
            alone = blocks[each, each, :dim, :dim]
            spread = self.data.linear(alone) if linear else self.data.mean(means[:clients, :dim], alone)
            own = own + kick @ (spread / self.weights[:, None, None] ** 2) @ kick.T
        return after_step(LocalStep(maps, shifts, own, shared * injected), means, blocks)

    def moments(self, rounds: np.ndarray, mean: Array, cov: Array) -> Iterator[Moments]:
        """At increasing `rounds`, beginning at round 0."""
        parts = self.count * self.algorithm.local_steps
        work = float(rounds[-1]) * parts * 8.0 * self.problem.n_clients**2 * self.problem.dim**3
        if work > LARGEST_WORK:
            raise NoExactLaw(f"n_rounds={rounds[-1]} with minibatches would be stepped through gradient by "
                             f"gradient ({work:.1g} operations); ask for fewer rounds, or use stationary_law")
        return self._moments(rounds, mean, cov)

    def _moments(self, rounds: np.ndarray, mean: Array, cov: Array) -> Iterator[Moments]:
        yield mean, cov
        for number in range(int(rounds[-1])):
            mean, cov = self.round(number, mean, cov)
            if number + 1 in rounds:
                yield mean, cov

    def radius(self) -> float:
        """Of the part of a round that is linear in the server's covariance; per round, of all known sets."""
        zero, sets = np.zeros(self.problem.dim), self.averaging.sets
        count = 1 if sets is None or sets.settles else sets.n_sets

        def linear(cov: Any) -> Array:
            for number in range(count):
                cov = self.round(number, zero, cov, linear=True)[1]
            return np.asarray(cov)

        return float(cone_radius(linear, len(zero)) ** (1.0 / count))

    def contracts(self) -> bool:
        """Is the radius below one?"""
        return self.radius() < 1.0

    def stationary(self) -> tuple[Array, Array]:
        """Fixed moments; the caller has checked that they contract."""
        dim = self.problem.dim
        zero, none = np.zeros(dim), np.zeros((dim, dim))
        shift = self.round(0, zero, none)[0]
        matrix = np.stack([self.round(0, row, none)[0] - shift for row in np.eye(dim)], axis=1)
        mean: Any = np.linalg.solve(np.eye(dim) - matrix, shift)

        cov = symmetrised(fixed_covariance(lambda table: self.round(0, zero, table, linear=True)[1],
                                           self.round(0, mean, none)[1]))
        return mean, require_fixed(cov, self.round(0, mean, cov)[1])
