"""Stability of the second moment where minibatch noise grows with the distance from the minimizers.

With minibatches of linear regression a gradient is A x - A b + xi with Cov(xi | x) a quadratic function of
x. The part of it that is quadratic, R(x x'), multiplies what the second moment of deviations is mapped to:

    S -> M S M' + K R(own blocks of S) K',

which has at least the radius of M squared, so that the largest stable step size is smaller than the mean's.
Batches of different clients and evaluations are independent: R needs each client's own block only.

Source: derived; DE-SGLD section 5.1 and FA-LD appendix G for the gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..interfaces import AlgorithmParts, Problem
from ..problems.quadratic import Quadratic
from ..settings.lazy_import import lazy
from ..settings.validation import Array
from .averaging import Averaging, root_of
from .batches import batch_response
from .own_blocks import SymmetricGossip
from .search import Radius, Stability, first_limit, leading, stable_below

brentq = lazy("scipy.optimize", "brentq")

MAX_POSITIONS, MAX_STATE = 300, 80
"""Numbers N d that all clients of DE-SGLD hold, and 2 N d of DE-SGHMC, whose map is not symmetric: the
radius is searched for more slowly."""
SMALL = 8
"""Numbers of a state up to which the radius is that of a dense table."""


class Judged(AlgorithmParts):
    """`stability` of the mean, made stricter by that of the second moment where there is one."""

    def _exact_radius(self, problem: Quadratic, step: float) -> float:
        """Radius of the round map with exact gradients."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a round does")

    def _exact_stability(self, problem: Quadratic) -> Stability:
        """`stability` with exact gradients."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a round does")

    def _second_moment(self, problem: Problem) -> tuple[Radius | None, str]:
        """Root of the radius of the second moment under minibatches, where there is one; and a remark."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a round does")

    def _limit(self, radius: Radius, high: float) -> float:
        """Where the root is one, given a step size where it is at least one."""
        return first_limit(radius, high)

    def _radius(self, problem: Problem) -> float:
        """`Stability.radius` without the search for the limit."""
        self.check(problem)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # infinite: not stable
            return self._judged_radius(problem)

    def _judged_radius(self, problem: Problem) -> float:
        step, (second, _) = self.schedule.largest, self._second_moment(problem)
        mean = self._exact_radius(problem.curvature_problem(), step)
        return mean if second is None else max(mean, second(step))

    def stability(self, problem: Problem) -> Stability:
        """Radius of the map of a round at the largest step size, and the limit.

        With participation it is the radius of the second moment; a schedule is judged at its largest step
        size. A radius of one below the limit is a resonance, where an update returns every trajectory to its
        start. Minibatches whose noise depends on the point are part of the second moment, without debiasing
        and unless N d^4, the number of data or a decentralized state is too large (N d > 300, or N d > 40
        with velocities); see `source`.
        """
        self.check(problem)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._judged(problem)

    def _judged(self, problem: Problem) -> Stability:
        mean = self._exact_stability(problem.curvature_problem())
        second, remark = self._second_moment(problem)
        if second is None:
            return replace(mean, source=mean.source + remark)
        step, high = mean.step_size, mean.max_step_size
        value = second(step)
        if not high < np.inf:
            high = step
            while second(high) < 1.0:
                high *= 2.0
        limit = self._limit(second, high)
        return replace(mean, radius=max(mean.radius, value), max_step_size=limit,
                       stable=bool(mean.stable and (value < 1.0 or step < limit)),
                       source=f"{mean.source}; of the second moment, which decides under minibatches")


def only_limit(radius: Radius, high: float) -> float:
    """Where `radius` is one if it is so at one positive step size; NaN where none is found."""
    low = stable_below(radius, high)
    if low == 0.0:
        return float("nan")
    if radius(high) < 1.0:  # the mean's own limit, up to rounding
        return high
    return float(brentq(lambda step: radius(step) - 1.0, low, min(2.0 * low, high), rtol=1e-10))


def momentum_radius(problem: Problem, response: Array, mixing: Array, friction: float) -> Radius:
    """Root of the radius of DE-SGHMC's second-moment map of all clients, as a function of the step size.

    States are positions (N d), followed by velocities.
    """
    followed, weights = problem.curvature_problem(), problem.weights
    clients, dim = problem.n_clients, problem.dim
    size, each = clients * dim, np.arange(clients)
    gossip, pull = np.kron(mixing, np.eye(dim)), np.zeros((clients, dim, clients, dim))
    pull[each, :, each, :] = weights[:, None, None] * followed.dense_hessians
    pulls, unit = pull.reshape(size, size), np.eye(size)
    response = weights[:, None, None] ** 2 * response
    starts = [np.eye(2 * size).ravel()]

    @np.errstate(over="ignore")
    def radius(eta: float) -> float:
        if not eta < 1e75:  # second moments would overflow
            return float("inf")
        keep, kicks = 1.0 - eta * friction, eta * np.array([eta, 1.0])
        matrix = np.block([[gossip - eta**2 * pulls, eta * keep * unit], [-eta * pulls, keep * unit]])

        def apply(flat: Array) -> Array:
            cov = flat.reshape(2 * size, 2 * size)
            after = np.ascontiguousarray((matrix @ np.ascontiguousarray((matrix @ cov).T)).T)
            own = cov.reshape(2, clients, dim, 2, clients, dim)[0, each, :, 0, each]
            noise = (response @ own.reshape(clients, dim * dim, 1)).reshape(own.shape)
            blocks = after.reshape(2, clients, dim, 2, clients, dim)
            for a, one in enumerate(kicks):
                for b, other in enumerate(kicks):
                    blocks[a, each, :, b, each] += one * other * noise
            return after.ravel()

        length = (2 * size) ** 2
        if 2 * size <= SMALL:
            return root_of(np.stack([apply(row) for row in np.eye(length)], axis=1))
        value, vector = leading(apply, starts[0], tol=1e-9, width=40)
        # near what the next step size needs; the identity keeps it inside the cone
        vector = vector if vector[:: 2 * size + 1].sum() >= 0.0 else -vector  # its trace is positive
        starts[0] = vector + 1e-3 * np.abs(vector).max() * np.eye(2 * size).ravel()
        return float(np.sqrt(value))

    return radius


def gossip_second_moment(problem: Problem, mixing: Array,
                         friction: float | None) -> tuple[Radius | None, str]:
    """Root of the radius of the second moment under minibatches, where there is one; and a remark."""
    size = problem.n_clients * problem.dim
    fits = size <= MAX_POSITIONS if friction is None else 2 * size <= MAX_STATE
    response, remark = batch_response(problem, fits)
    if response is None:
        return None, remark
    if friction is None:
        return SymmetricGossip(problem, response, mixing), remark
    return momentum_radius(problem, response, mixing, friction), remark


def forgets(evaluations: list[tuple[Array, Array]]) -> bool:
    """Whether nothing but theta lasts from one local update to the next."""
    return not evaluations[0][0][:, 1:].any()


def federated_radius(problem: Problem, response: Array,
                     evaluations: Callable[[float], list[tuple[Array, Array]]], local_steps: int,
                     averaging: Averaging) -> Radius:
    """Root of the radius of the second-moment map of a round, as a function of the step size.

    A local update makes `evaluations`, s -> F s - k g(theta) for (F, k), of the state s = (theta, rest) with
    rest = 0 where the round begins.
    """
    hessians, clients, dim = problem.curvature_problem().dense_hessians, problem.n_clients, problem.dim
    square, unit = dim * dim, np.eye(problem.dim)

    @np.errstate(over="ignore", invalid="ignore")
    def radius(eta: float) -> float:
        chain = [(np.kron(drift, unit), np.kron(kick[:, None], unit)) for drift, kick in evaluations(eta)]
        width = len(chain[0][0])
        covs = np.zeros((clients, square, width, width))
        covs[:, :, :dim, :dim] = np.eye(square).reshape(square, dim, dim)
        maps = np.broadcast_to(np.eye(width), (clients, width, width))
        alike = forgets(evaluations(eta))  # then a round is a power of one update
        for drift, kick in chain if alike else chain * local_steps:
            step = np.repeat(drift[None], clients, axis=0)
            step[:, :, :dim] -= kick @ hessians
            own = covs[:, :, :dim, :dim].reshape(clients, square, square)
            noise = (own @ response.swapaxes(1, 2)).reshape(clients, square, dim, dim)
            covs = step[:, None] @ covs @ step[:, None].swapaxes(2, 3) + kick @ noise @ kick.T
            maps = step @ maps
        update = covs[:, :, :dim, :dim].reshape(clients, square, square).swapaxes(1, 2)
        own = np.linalg.matrix_power(update, local_steps if alike else 1)
        maps = np.linalg.matrix_power(maps[:, :dim, :dim], local_steps if alike else 1)
        return averaging.second_radius(maps, own)

    return radius
