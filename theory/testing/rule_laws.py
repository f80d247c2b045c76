"""Exact laws of programs: powers of their matrices, seen through what is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fedsim.samplers.clients import Round
from fedsim.samplers.rounds import conserved, kept
from fedsim.settings.validation import Array, shown

from ..exact.affine import AffineMap, Moments, NoExactLaw
from ..exact.evolution import drawn, evolve, matrix_of
from ..exact.families import ExactFamily, exact
from .rules import Seen, UpdateRule


def stationary_of(whole: Round, view: Array, start: Array, slope: Array | None) -> tuple[Array, Array]:
    """Mean (d,) and covariance of view (d, n) times the state that a round leaves unchanged in law.

    Sums that the round conserves stay as the start (n,) has them.

    Raises
    ------
    NoExactLaw
        Where they carry the point of the start into the limit: its slope there is (n, d).
    """
    fixed = conserved(whole)
    rest, basis = kept(whole)
    pulled = basis.T @ whole.deviation[0] @ fixed

    def lifted(sums: Array) -> Array:
        return fixed @ sums - basis @ np.linalg.solve(rest.deviation[0], pulled @ sums)

    if slope is not None and fixed.size and np.abs(view @ lifted(fixed.T @ slope)).max() > 1e-8:
        raise NoExactLaw("a sum that the rule conserves carries the start into the limit: there is no one "
                         "stationary law; use exact_law")
    mean, cov = AffineMap(*rest).stationary()
    centre = basis @ mean[0] + (lifted(fixed.T @ start) if fixed.size else 0.0)
    spread = view @ basis
    return view @ centre, spread @ cov[0] @ spread.T


@exact(UpdateRule)
class RuleFamily(ExactFamily):
    """Laws of any program that is affine in state and noise."""

    def solvable(self, problem: Any) -> Any:
        """Any problem: its gradient is in the program."""
        return problem

    def _begin(self, algorithm: UpdateRule, mean: Array, cov: Array | None) -> Moments:
        seen: Seen = algorithm._seen
        if seen.slope is not None:
            spread = None if cov is None else seen.slope @ matrix_of(cov) @ seen.slope.T
            return (seen.start + seen.slope @ mean)[None], None if spread is None else spread[None]
        own = seen.view @ seen.start + seen.offset
        if (cov is not None and cov.any()) or np.abs(own - mean).max() > 1e-12 * max(1.0, np.abs(own).max()):
            raise ValueError(f"start={shown(mean.tolist())} (by default the origin) must be what the rule's "
                             f"own start reads, {shown(own.tolist())}; or make that start a function of the "
                             "point")
        return seen.start[None], None if cov is None else np.zeros((1, len(seen.start), len(seen.start)))

    def _map(self, algorithm: UpdateRule) -> AffineMap:
        seen: Seen = algorithm._seen
        return AffineMap(seen.deviation[None], seen.shift[None], seen.noise[None])

    def moments(self, problem: Any, algorithm: Any, rounds: np.ndarray, mean: Array, cov: Array | None,
                full: bool) -> Iterable[Moments]:
        seen: Seen = algorithm._seen
        begun = self._begin(algorithm, mean, cov)
        for state, spread in evolve(rounds, *begun, self._map(algorithm)):
            yield (seen.view @ state[0] + seen.offset,
                   None if spread is None else seen.view @ spread[0] @ seen.view.T)

    def stationary(self, problem: Any, algorithm: Any, client: int | None) -> tuple[Array, Array]:
        seen: Seen = algorithm._seen
        mean, cov = stationary_of(seen.round(), seen.view, seen.start, seen.slope)
        return mean + seen.offset, cov

    def sample(self, problem: Any, algorithm: Any, rounds: np.ndarray, points: Array,
               generator: np.random.Generator) -> Array:
        seen: Seen = algorithm._seen
        begun = np.stack([self._begin(algorithm, one, None)[0] for one in points])
        steps = drawn(rounds, begun, lambda number: self._map(algorithm), True, generator)
        return np.stack([state[:, 0] @ seen.view.T + seen.offset for state in steps], axis=1)
