"""FA-HMC: federated averaging Hamiltonian Monte Carlo, without a Metropolis step.

Local update t of client c draws the momentum p = sqrt(s) xi_t + sqrt((1-s)/w_c) xi_t^c, where s is
shared_noise, and makes K = leapfrog_steps steps

    theta <- theta + eta p - (eta^2/2) g1,        p <- p - (eta/2) (g1 + g2),

with g1 a gradient of f_(c) before and g2 a fresh one after the move; with noisy gradients all 2K-1
evaluations that matter are independent draws. After `local_steps` updates the server averages.

Debiasing replaces grad f_(c)(x) by grad f_(c)(x) - grad f_(c)(z) + grad f(z), where the anchor z is the
server's value one round ago ("stale", the paper's) or now ("fresh", one more exchange).

Source: FA-HMC Algorithms 1 to 3, B.1 and B.2; section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import eval_chebyt

from ..modes import NoModes, modes_of
from ..participation import Participation
from ..problems.quadratic import Quadratic
from ..stability import (
    Stability,
    block_round_radius,
    curvature_problem,
    largest_stable,
    round_radius,
    scalar_round_radius,
)
from ..tiles import TILE, aligned
from ..validation import Array, fraction, one_of, whole
from .fa_hmc_kernels import FIRST_ROUND, FRESH, STALE, FAHMCExtra, FAHMCKernel
from .federated import Federated, FederatedWork, curvatures
from .minibatch_stability import Radius, batch_response, federated_radius, first_limit, judged


@dataclass(frozen=True, eq=False)
class FAHMC(Federated):
    """Parameters of FA-HMC.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        eta of the leapfrog, in units of 1/sqrt(Hessian); a schedule is indexed by the local update.
    leapfrog_steps : int
        K, leapfrog steps in a local update.
    local_steps : int
        T, local updates between communications.
    shared_noise : float
        Fraction of the averaged momentum's variance that is common to all clients, the paper's rho.
    debias : None, "stale" or "fresh"
        Correct the gradients by the server's, at its value one round ago or now.
    first_round : "none", "exact" or "printed"
        With "stale", what round 0 does, which has no round before it: no correction; the anchor 0
        with its true gradient; or the anchor 0 with the server's gradient set to zero, as printed.
    participation : Participation, optional
        Clients drawn each round; all by default.

    Source: FA-HMC Algorithm 3, section 6, Algorithm B.2.

    Examples
    --------
    >>> FAHMC.from_paper(eta=0.01, K=5, T=10, rho=0.5).leapfrog_steps
    5
    """

    step_size: Any
    leapfrog_steps: int
    local_steps: int = 1
    shared_noise: float = 1.0
    debias: str | None = None
    first_round: str = "none"
    participation: Participation | None = None

    def __post_init__(self) -> None:
        self._normalise()
        object.__setattr__(self, "leapfrog_steps", whole("leapfrog_steps", self.leapfrog_steps, 1))
        one_of("debias", self.debias, (None, "stale", "fresh"))
        one_of("first_round", self.first_round, tuple(FIRST_ROUND))

    @classmethod
    def from_paper(cls, eta: Any, K: int = 1, T: int = 1, rho: float = 1.0) -> FAHMC:
        """The paper's symbols; its rho is the shared fraction of the variance itself."""
        return cls(eta, K, T, fraction("rho", rho))

    def _gradients_per_step(self, problem: Any) -> int:
        """K; with gradient noise each interior point costs a second evaluation, 2 K - 1 in all."""
        noisy = (getattr(problem, "gradient_noise", None) is not None
                 or getattr(problem, "has_minibatches", False))
        return 2 * self.leapfrog_steps - 1 if noisy else self.leapfrog_steps

    def _radius(self, problem: Any) -> float:
        """Radius of the round map at the largest step size, see `Stability.radius`."""
        self.check(problem)
        followed, step, (second, _) = curvature_problem(problem), self.schedule.largest, self._second(problem)
        mean = _radius(self, followed, curvatures(followed), step)
        return mean if second is None else max(mean, second(step))

    def _second(self, problem: Any) -> tuple[Radius | None, str]:
        """Root of the radius of the second moment under minibatches, where there is one; and a remark."""
        if self.debias is not None:
            noisy = hasattr(problem, "batch_response") and problem.has_minibatches
            return None, "; with debiasing, of the mean alone under minibatches" if noisy else ""
        response, remark = batch_response(problem, table=4)
        return (None if response is None else
                federated_radius(problem, response, self, self._evaluations(problem.dim))), remark

    def _evaluations(self, dim: int) -> Callable[[float], list[tuple[Array, Array]]]:
        """What a local update does with gradients, see `federated_radius`."""
        one, none = np.eye(dim), np.zeros((dim, dim))

        def chain(eta: float) -> list[tuple[Array, Array]]:
            drift, half = np.block([[one, eta * one], [none, one]]), 0.5 * eta * one
            return [(drift, np.concatenate([eta * half, half])),
                    (np.eye(2 * dim), np.concatenate([none, half]))] * self.leapfrog_steps

        return chain

    def stability(self, problem: Any) -> Stability:
        """Radius of the round map (second moment with participation) and step-size limit.

        The leapfrog itself needs eta^2 curvature < 4 on every client; a radius of one can also be a
        resonance, where an update returns every trajectory to its start. Minibatches whose noise depends on
        the point are part of the second moment, without debiasing and unless N d^4 or the number of data is
        too large (see `source`).
        """
        self.check(problem)
        judge, problem = self._second(problem), curvature_problem(problem)
        step, modes = self.schedule.largest, curvatures(problem)
        edge = 2.0 / np.sqrt(float(modes[0].max()))

        def radius(eta: float) -> float:
            return _radius(self, problem, modes, eta)

        # undebiased, a quarter turn of the stiffest client in all leapfrog steps together is safe
        below, value = 0.25 * edge / self.leapfrog_steps, radius(step)
        while self.debias is not None and below > 1e-9 * edge and not radius(below) < 1.0:
            below *= 0.5
        limit = largest_stable(radius, below, scan=2 + int(np.log(edge / below) / np.log(1.02)))
        stable = value < 1.0 or step < below  # a tiny step's radius rounds to one
        reason = f"FA-HMC round map; the leapfrog needs step_size < {edge:.6g}"
        if value == 1.0 and not stable and step < limit:
            limit, reason = step, f"a resonance: trajectories return to where they began; {reason}"
        return judged(Stability(value, bool(stable), limit, step, reason), judge, first_limit)

    def _kernel(self, problem: Any) -> FAHMCKernel:
        """The NamedTuple that compiled code sees."""
        return FAHMCKernel(
            self.schedule.arrays(), self.leapfrog_steps, self.local_steps, self.shared_noise,
            {None: 0, "stale": STALE, "fresh": FRESH}[self.debias], FIRST_ROUND[self.first_round],
            problem.weights, self._clients(problem),
            modes_of(problem) if self._turns(problem) else NoModes(0))

    def _turns(self, problem: Any) -> bool:
        """True when trajectories go along the clients' eigenvectors: dense curvature, exact gradients."""
        dense = isinstance(problem, Quadratic) and problem.structure == "dense"
        return (dense and problem.gradient_noise is None and self.debias is None
                and self.participation is None)

    def _workspace(self, problem: Any, start: Array, dtype: Any) -> FederatedWork:
        """As for every federated algorithm."""
        if self._turns(problem) and start.shape[-1] % TILE:
            raise ValueError(f"start has {start.shape[-1]} lanes; rows must be padded to a multiple of "
                             f"{TILE}")
        return super()._workspace(problem, start, dtype)

    def _extra(self, active: int, dim: int, n_lanes: int) -> FAHMCExtra:
        """Further state: velocities and corrections."""
        slots = 0 if self.debias is None else active
        velocity, anchor, mean_gradient, previous = aligned((4, dim, n_lanes))
        return FAHMCExtra(velocity, anchor, mean_gradient, previous, aligned((slots, dim, n_lanes)))


def _radius(algorithm: FAHMC, problem: Any, modes: tuple[Array, Array | None], step: float) -> float:
    """Radius of the round map for a constant step size.

    Per curvature a, an update multiplies by the Chebyshev polynomial T_K(1 - eta^2 a / 2).
    """
    values, _ = modes
    if step**2 * values.max() >= 4.0:
        return float("inf")  # the stiffest client's own trajectories grow without limit
    radius = _round_radius(algorithm, problem, modes, step)
    return 1.0 if abs(radius - 1.0) < 1e-12 else radius  # at resonance, up to rounding


def _round_radius(algorithm: FAHMC, problem: Any, modes: tuple[Array, Array | None], step: float) -> float:
    values, vectors = modes
    weights, factor = problem.weights, algorithm.variance_factor(problem)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = eval_chebyt(algorithm.leapfrog_steps, 1.0 - 0.5 * step**2 * values) ** algorithm.local_steps
        if not np.isfinite(powers).all():
            return float("inf")
        if algorithm.debias is None and vectors is None:
            return scalar_round_radius(powers, weights, factor)
        if vectors is None:  # each coordinate by itself
            apart = _debiased(algorithm, values[..., None, None], powers[..., None, None], weights)
            return block_round_radius(apart, weights, factor)
        maps = (vectors * powers[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        if algorithm.debias is not None:
            maps = _debiased(algorithm, problem.hessians, maps, weights)
        return round_radius(maps, weights, factor)


def _debiased(algorithm: FAHMC, hessians: Array, maps: Array, weights: Array) -> Array:
    """Client maps (N, ..., d, d) of a debiased round; (N, ..., 2d, 2d) of two values with a stale anchor."""
    dim = maps.shape[-1]
    mean = np.tensordot(weights, hessians, axes=1)
    pull = (np.eye(dim) - maps) @ (np.eye(dim) - np.linalg.solve(hessians, np.broadcast_to(mean, maps.shape)))
    if algorithm.debias == "fresh":
        return maps + pull
    shift = np.broadcast_to(np.eye(dim, 2 * dim), (*maps.shape[:-1], 2 * dim))
    return np.concatenate([np.concatenate([maps, pull], axis=-1), shift], axis=-2)
