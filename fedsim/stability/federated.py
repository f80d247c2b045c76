"""Stability of a federated round, from what an algorithm says about one local update.

A local update is a chain s -> F s - k g(theta) of the state s = (theta, rest), whose rest is zero where a
round begins; where an update draws it anew, its first F forgets it: columns of zeros. From these small
matrices follow the round's map, the second moment under minibatches, and the limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interfaces import Problem
from ..problems.quadratic import Quadratic
from ..settings.validation import Array
from .averaging import Averaging, ByScheme
from .batches import batch_response
from .minibatch import Judged, federated_radius, forgets
from .search import Radius, Stability, largest_stable, round_radius, scalar_round_radius, stable_below

Modes = tuple[Array, Array | None]


def curvatures(problem: Quadratic) -> Modes:
    """Curvatures (N, d) of the clients and their eigenvectors (None when coordinates do not mix)."""
    if problem.structure == "isotropic":
        return problem.hessians[:, None], None
    if problem.structure == "diagonal":
        return problem.hessians, None
    return np.linalg.eigh(problem.hessians)


class FederatedStability(Judged):
    """`stability` of a federated algorithm, which has to declare `_evaluations` alone."""

    local_steps: int
    _name: str | None = None
    """What messages call the algorithm; its class by default."""

    def _evaluations(self, eta: float) -> list[tuple[Array, Array]]:
        """Pairs (F, k) of shapes (p, p) and (p,), one for each gradient evaluation of a local update."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a local update does")

    def _shift(self, eta: float, curvature: Array) -> Array:
        """What a round multiplies theta by, minus one, for every entry of `curvature`.

        Deviations from the identity keep their digits where a round hardly moves.
        """
        total: Array | None = None
        for drift, kick in self._evaluations(eta):
            step = np.broadcast_to(drift - np.eye(len(drift)), (*curvature.shape, *drift.shape)).copy()
            step[..., 0] -= curvature[..., None] * kick
            total = step if total is None else total + step + step @ total
        assert total is not None
        if forgets(self._evaluations(eta)):
            return powers_shift(total[..., 0, 0], self.local_steps)
        return _matrix_power_shift(total, self.local_steps)[..., 0, 0]

    def _averaging(self, problem: Problem) -> Averaging | None:
        """How the server averages, where that is otherwise than over all clients or those of a scheme."""
        return None

    def _working(self) -> Any:
        """Index of the clients that take part in some round."""
        return slice(None)

    def _idle(self, shifts: Array) -> Array:
        """The shift (1, ...) of one client more, which keeps the server's value."""
        return np.zeros_like(shifts[:1])

    def _search(self, radius: Radius, largest: float) -> tuple[float, int]:
        """Where the search for the limit begins, a stable step size, and how often it takes 2 % more.

        `largest` is the largest curvature of a client.
        """
        return stable_below(radius, 2.0 / largest) or 2.0**-60 / largest, 2000

    def _source(self, largest: float) -> str:
        """The condition in words."""
        return f"{self._name or type(self).__name__} round map, largest client curvature {largest:g}"

    def _round_shifts(self, problem: Quadratic, modes: Modes, eta: float) -> Array:
        """The clients' maps (N, d, d) of a round minus the identity, or (N, d) along each coordinate."""
        shifts, vectors = self._shift(eta, modes[0]), modes[1]
        return shifts if vectors is None else turned_back(shifts, vectors)

    def _round_radius(self, problem: Quadratic, modes: Modes, eta: float) -> float:
        """Radius of the round map for a constant step size, see `Stability.radius`."""
        with np.errstate(over="ignore", invalid="ignore"):
            shifts = self._round_shifts(problem, modes, eta)
            chosen = self._averaging(problem)
            if chosen is not None:
                idle = np.concatenate([shifts, self._idle(shifts)])
                return chosen.radius(idle)
            find = scalar_round_radius if shifts.ndim == 2 else round_radius
            return find(shifts, problem.weights, self.variance_factor(problem))

    def _second_moment(self, problem: Problem) -> tuple[Radius | None, str]:
        if problem.response_work is None:  # nor are evaluations made, which may be many
            return None, ""
        width = len(self._evaluations(self.schedule.largest)[0][0])
        response, remark = batch_response(problem, table=width**2)
        if response is None:
            return None, remark
        chosen = self._averaging(problem) or ByScheme(problem.weights, self.variance_factor(problem))
        return federated_radius(problem, response, self._evaluations, self.local_steps, chosen), remark

    def _exact_radius(self, problem: Quadratic, step: float) -> float:
        return self._radius_at(problem, curvatures(problem), step)

    def _radius_at(self, problem: Quadratic, modes: Modes, eta: float) -> float:
        """`_round_radius`, infinite where powers of the step size leave the range of float64."""
        try:
            return self._round_radius(problem, modes, eta)
        except OverflowError:
            return float("inf")

    def _exact_stability(self, problem: Quadratic) -> Stability:
        step, modes = self.schedule.largest, curvatures(problem)
        largest = float(modes[0][self._working()].max())

        def radius(eta: float) -> float:
            return self._radius_at(problem, modes, eta)

        below, scan = self._search(radius, largest)
        if self._averaging(problem) is not None:  # shares that vary much may need far smaller steps
            least = 1e-12 * below
            while below > least and not radius(below) < 1.0:
                below, scan = 0.5 * below, scan + 36
        value, limit, source = radius(step), largest_stable(radius, below, scan=scan), self._source(largest)
        stable = value < 1.0 or step < below  # a tiny step's radius rounds to one
        if value == 1.0 and not stable and step < limit:
            limit, source = step, f"a resonance: trajectories return to where they began; {source}"
        return Stability(value, bool(stable), limit, step, source)


def turned_back(values: Array, vectors: Array) -> Array:
    """The clients' matrices (N, d, d) from what they multiply their eigenvectors by."""
    return (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def powers_shift(shift: Array, n: int | Array) -> Array:
    """(1 + shift)^n - 1, accurate for a tiny shift."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(shift > -1.0, np.expm1(n * np.log1p(np.maximum(shift, -1.0))),
                        (1.0 + shift) ** n - 1.0)


def _matrix_power_shift(shift: Array, n: int) -> Array:
    """The same of matrices (..., p, p), by squaring."""
    total = np.zeros_like(shift)
    while n:
        if n & 1:
            total = total + shift + shift @ total
        shift, n = 2.0 * shift + shift @ shift, n >> 1
    return total
