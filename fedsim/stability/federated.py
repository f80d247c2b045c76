"""Stability of a federated round, from what an algorithm says about one local update.

A local update is a chain s -> F s - k g(theta) of the state s = (theta, rest), whose rest is zero where a
round begins; where an update draws it anew, its first F forgets it: columns of zeros. From these small
matrices follow the round's map, the second moment under minibatches, and the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..interfaces import AlgorithmParts, Problem
from ..settings.validation import Array
from .minibatch import Radius, batch_response, federated_radius, first_limit, forgets, judged
from .search import Stability, largest_stable, round_radius, scalar_round_radius

if TYPE_CHECKING:
    from ..problems.quadratic import Quadratic

Modes = tuple[Array, Array | None]


def curvatures(problem: Quadratic) -> Modes:
    """Curvatures (N, d) of the clients and their eigenvectors (None when coordinates do not mix)."""
    if problem.structure == "isotropic":
        return problem.hessians[:, None], None
    if problem.structure == "diagonal":
        return problem.hessians, None
    return np.linalg.eigh(problem.hessians)


class FederatedStability(AlgorithmParts):
    """`stability` of a federated algorithm, which has to declare `_evaluations` alone."""

    local_steps: int
    _name: str | None = None
    """What messages call the algorithm; its class by default."""

    def _evaluations(self, eta: float) -> list[tuple[Array, Array]]:
        """Pairs (F, k) of shapes (p, p) and (p,), one for each gradient evaluation of a local update."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a local update does")

    def _factor(self, eta: float, curvature: Array) -> Array:
        """What a round multiplies theta by, for every entry of `curvature`."""
        total: Array | None = None
        for drift, kick in self._evaluations(eta):
            step = np.broadcast_to(drift, (*curvature.shape, *drift.shape)).copy()
            step[..., 0] -= curvature[..., None] * kick
            total = step if total is None else step @ total
        assert total is not None
        if forgets(self._evaluations(eta)):
            return total[..., 0, 0] ** self.local_steps
        return np.linalg.matrix_power(total, self.local_steps)[..., 0, 0]

    def _search(self, radius: Radius, largest: float) -> tuple[float, int]:
        """Where the search for the limit begins, a stable step size, and how often it takes 2 % more.

        `largest` is the largest curvature of a client.
        """
        below = 1.0 / largest
        for _ in range(60):
            if radius(below) < 1.0:
                break
            below *= 0.5
        return below, 2000

    def _source(self, largest: float) -> str:
        """The condition in words."""
        return f"{self._name or type(self).__name__} round map, largest client curvature {largest:g}"

    def _round_radius(self, problem: Quadratic, modes: Modes, eta: float) -> float:
        """Radius of the round map for a constant step size, see `Stability.radius`."""
        values, vectors = modes
        weights, factor = problem.weights, self.variance_factor(problem)
        with np.errstate(over="ignore", invalid="ignore"):
            powers = self._factor(eta, values)
            if vectors is None:
                return scalar_round_radius(powers, weights, factor)
            return round_radius(turned_back(powers, vectors), weights, factor)

    def _second_moment(self, problem: Problem) -> tuple[Radius | None, str]:
        """Root of the radius of the second moment under minibatches, where there is one; and a remark."""
        width = len(self._evaluations(self.schedule.largest)[0][0])
        response, remark = batch_response(problem, table=width**2)
        if response is None:
            return None, remark
        return federated_radius(problem, response, self._evaluations, self.local_steps,
                                self.variance_factor(problem)), remark

    def _radius(self, problem: Problem) -> float:
        """`Stability.radius` without the search for the limit."""
        self.check(problem)
        followed, step = problem.curvature_problem(), self.schedule.largest
        second, _ = self._second_moment(problem)
        mean = self._round_radius(followed, curvatures(followed), step)
        return mean if second is None else max(mean, second(step))

    def stability(self, problem: Problem) -> Stability:
        """Radius of the round map (of its second moment with participation) and step-size limit.

        A schedule is judged at its largest step size. A radius of one below the limit is a resonance, where
        an update returns every trajectory to its start. Minibatches whose noise depends on the point are part
        of the second moment, without debiasing and unless N d^4 or the number of data is too large (see
        `source`).
        """
        self.check(problem)
        followed, step = problem.curvature_problem(), self.schedule.largest
        modes = curvatures(followed)
        largest = float(modes[0].max())

        def radius(eta: float) -> float:
            return self._round_radius(followed, modes, eta)

        below, scan = self._search(radius, largest)
        value, limit, source = radius(step), largest_stable(radius, below, scan=scan), self._source(largest)
        stable = value < 1.0 or step < below  # a tiny step's radius rounds to one
        if value == 1.0 and not stable and step < limit:
            limit, source = step, f"a resonance: trajectories return to where they began; {source}"
        mean = Stability(value, bool(stable), limit, step, source)
        return judged(mean, self._second_moment(problem), first_limit)


def turned_back(powers: Array, vectors: Array) -> Array:
    """The clients' maps (N, d, d) from what they multiply their eigenvectors by."""
    return (vectors * powers[:, None, :]) @ np.swapaxes(vectors, 1, 2)
