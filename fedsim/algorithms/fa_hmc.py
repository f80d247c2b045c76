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

from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from ..interfaces import Problem, largest_noise
from ..problems.quadratic import Quadratic
from ..settings.participation import SetsOfClients, TakesPart
from ..settings.schedules import StepSizeLike
from ..settings.validation import Array, fraction, one_of, set_fields, whole
from ..stability.federated import Modes, powers_shift, turned_back
from ..stability.leapfrog import leapfrog_shift, resonant
from ..stability.search import Radius
from ..vector.memory import TILE, aligned
from ..vector.trajectories import NoModes, modes_of
from .fa_hmc_update import FIRST_ROUND, FRESH, STALE, FAHMCExtra, FAHMCKernel
from .federated import COMMON, SCHEMES, Federated, FederatedWork

MOST_STEPS = 10_000
"""Leapfrog steps up to which the second moment under minibatches is judged, each of which is a matrix, and up
to which trajectories go along eigenvectors."""


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
        Fraction of the averaged momentum's variance that is common to all clients: this paper's rho, where
        `FALD` has its paper's rho^2.
    debias : None, "stale" or "fresh"
        Correct the gradients by the server's, at its value one round ago or now.
    first_round : "none", "exact" or "printed"
        With "stale", what round 0 does, which has no round before it: no correction; the anchor 0
        with its true gradient; or the anchor 0 with the server's gradient set to zero, as printed.
    participation : optional
        Who takes part in a round, all clients by default: `Participation`, drawn by a scheme;
        `IndependentParticipation`, who answers by chance; or `FixedParticipation`, known sets, which may be
        given as a sequence or an array.

    Source: FA-HMC Algorithm 3, section 6, Algorithm B.2.

    Examples
    --------
    >>> fs.FAHMC.from_paper(eta=0.01, K=5, T=10, rho=0.5).leapfrog_steps
    5
    """

    step_size: StepSizeLike
    leapfrog_steps: int
    local_steps: int = 1
    shared_noise: float = 1.0
    debias: str | None = None
    first_round: str = "none"
    participation: TakesPart | SetsOfClients | None = None
    _aliases = COMMON | {"eta": "step_size", "K": "leapfrog_steps", "T": "local_steps", "rho": "shared_noise",
                        "S": SCHEMES, "scheme": SCHEMES,
                        "leapfrog_steps": "leapfrog_steps=1 makes Langevin steps of size step_size**2/2"}

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, leapfrog_steps=whole("leapfrog_steps", self.leapfrog_steps, 1))
        one_of("debias", self.debias, (None, "stale", "fresh"))
        one_of("first_round", self.first_round, tuple(FIRST_ROUND))

    @classmethod
    def from_paper(cls, eta: Any, K: int = 1, T: int = 1, rho: float = 1.0) -> FAHMC:
        """The paper's symbols; its rho is the shared fraction of the variance itself."""
        return cls(eta, K, T, fraction("rho", rho))

    def _gradients_per_step(self, problem: Problem) -> int:
        """K; with gradient noise each interior point costs a second evaluation, 2 K - 1 in all."""
        noisy = problem.gradient_noise is not None or problem.has_minibatches
        return 2 * self.leapfrog_steps - 1 if noisy else self.leapfrog_steps

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        """Of free flights, each with a momentum of its own, and with kicks by the noise of gradients."""
        steps, largest = self.leapfrog_steps, self.schedule.largest
        kicks = 1.0 + 0.25 * steps * (largest * largest_noise(problem)) ** 2
        return self.schedule.total(self._steps(n_rounds)) * largest * steps**2 * kicks  # type: ignore[arg-type]

    def _evaluations(self, eta: float) -> list[tuple[Array, Array]]:
        half = 0.5 * eta
        first, leap = np.eye(2, 1) @ np.eye(1, 2), np.array([[1.0, eta], [0.0, 1.0]])  # the momentum is new
        return [(drift, kick) for number in range(self.leapfrog_steps) for drift, kick in (
            (leap if number else first, np.array([eta * half, half])), (np.eye(2), np.array([0.0, half])))]

    def _shift(self, eta: float, curvature: Array) -> Array:
        return powers_shift(leapfrog_shift(eta, curvature, self.leapfrog_steps), self.local_steps)

    def _search(self, radius: Radius, largest: float) -> tuple[float, int]:
        # undebiased, a quarter turn of the stiffest client in all leapfrog steps together is safe
        edge = _edge(largest)
        below = 0.25 * edge / self.leapfrog_steps
        while self.debias is not None and below > 1e-9 * edge and not radius(below) < 1.0:
            below *= 0.5
        return below, 2 + int(np.log(edge / below) / np.log(1.02))

    def _source(self, largest: float) -> str:
        return f"FA-HMC round map; the leapfrog needs step_size < {_edge(largest):.6g}"

    def _second_moment(self, problem: Problem) -> tuple[Radius | None, str]:
        if problem.response_work is None:
            return None, ""
        if self.debias is None and self.leapfrog_steps <= MOST_STEPS:
            return super()._second_moment(problem)
        why = "with debiasing" if self.debias is not None else f"of more than {MOST_STEPS} leapfrog steps"
        return None, f"; {why}, of the mean alone under minibatches"

    def _round_radius(self, problem: Quadratic, modes: Modes, eta: float) -> float:
        values = modes[0][self._working()]
        if eta * np.sqrt(values.max()) >= 2.0:
            return float("inf")  # the stiffest client's own trajectories grow without limit
        radius = super()._round_radius(problem, modes, eta)
        at_one = abs(radius - 1.0) < 1e-12 and resonant(eta, values, self.leapfrog_steps).any()
        return 1.0 if at_one else radius  # at resonance, up to rounding

    def _round_shifts(self, problem: Quadratic, modes: Modes, eta: float) -> Array:
        (values, vectors), shifts = modes, self._shift(eta, modes[0])
        if self.debias is None or not np.isfinite(shifts).all():
            return super()._round_shifts(problem, modes, eta)
        if vectors is None:  # each coordinate by itself
            return _debiased(self, values[..., None, None], shifts[..., None, None], problem.weights)
        return _debiased(self, problem.hessians, turned_back(shifts, vectors), problem.weights)

    def _working(self) -> Any:
        return super()._working() if self.debias is None else slice(None)  # anchors are of all

    def _idle(self, shifts: Array) -> Array:
        idle = super()._idle(shifts)
        if self.debias == "stale" and shifts.ndim > 2:  # it remembers as the others do
            half = shifts.shape[-1] // 2
            idle[..., half:, :] = shifts[:1, ..., half:, :]
        return idle

    def _kernel(self, problem: Problem) -> FAHMCKernel:
        """The NamedTuple that compiled code sees."""
        return FAHMCKernel(
            self.schedule.arrays(), self.leapfrog_steps, self.local_steps, self.shared_noise,
            {None: 0, "stale": STALE, "fresh": FRESH}[self.debias], FIRST_ROUND[self.first_round],
            problem.weights, self._clients(problem),
            modes_of(problem.hessians, problem.minimizers) if self._turns(problem) else NoModes())

    def _turns(self, problem: Problem) -> TypeGuard[Quadratic]:
        """True when trajectories go along the clients' eigenvectors: dense curvature, exact gradients.

        There a trajectory is not stopped while it runs: not one of very many steps.
        """
        dense = isinstance(problem, Quadratic) and problem.structure == "dense"
        return (dense and problem.gradient_noise is None and self.debias is None
                and self.participation is None and self.leapfrog_steps <= MOST_STEPS)

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> FederatedWork:
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


def _edge(largest: float) -> float:
    """The leapfrog grows without limit from this step size on."""
    return float(2.0 / np.sqrt(largest))


def _debiased(algorithm: FAHMC, hessians: Array, shifts: Array, weights: Array) -> Array:
    """Client maps (N, ..., d, d) of a debiased round minus the identity, from `shifts` without debiasing.

    With a stale anchor (N, ..., 2d, 2d), of two values.
    """
    unit, mean = np.eye(shifts.shape[-1]), np.tensordot(weights, hessians, axes=1)
    towards = shifts @ np.linalg.solve(hessians, np.broadcast_to(mean, shifts.shape))
    if algorithm.debias == "fresh":
        return towards
    back = np.broadcast_to(np.concatenate([unit, -unit], axis=-1), (*shifts.shape[:-1], 2 * len(unit)))
    return np.concatenate([np.concatenate([shifts, towards - shifts], axis=-1), back], axis=-2)
