"""Stale SGLD and SGHMC: the whole stochastic gradient is taken at an old iterate.

With g an unbiased gradient of f, tau_l the age at update l and z standard normal,

    stale SGLD    theta_{l+1} = theta_l - h g(theta_{l - tau_l}) + sqrt(2 h) z
    stale SGHMC   q_{l+1} = (1 - B h) q_l - h g(theta_{l - tau_l}) + sqrt(2 B h) z
                  theta_{l+1} = theta_l + h q_{l+1}

There is one chain, on the pooled problem f = sum_c w_c f_(c); a round is one update.

Source: stale-gradient paper, equation (3) and Algorithm 1.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import AlgorithmParts, Problem, largest_noise, offers
from ..problems.gradients import stochastic_gradient
from ..random.normals import draw, steps_per_draw
from ..random.slots import NormalRoom, Normals, Numbers, normal_room, normal_row
from ..random.streams import OWN_NOISE
from ..settings.limits import refuse_bytes
from ..settings.schedules import StepSizeLike
from ..settings.staleness import (
    Ages,
    Fixed,
    FixedAges,
    ListedAges,
    Sequence,
    SeveralAges,
    Staleness,
    Workers,
    as_staleness,
)
from ..settings.validation import Array, positive, set_fields, whole
from ..stability.delay import growth_at, pooled_curvatures, safe_step, step_limit
from ..stability.search import Stability
from ..vector import lanes
from ..vector.compile import Nothing, dispatched, inner
from ..vector.memory import aligned
from .bodies import advance, momentum_noise, observe, step_size_at

_AHEAD = 64  # draws made together at most


class StaleKernel(NamedTuple):
    """Compiled parameters."""

    schedule: Any
    ages: Any
    dynamics: Any


class Langevin(Nothing):
    """Stale SGLD."""


class Hamiltonian(NamedTuple):
    """Stale SGHMC."""

    friction: float


class StaleWork(NamedTuple):
    """State of a block of B lanes: a ring of iterates (size + 1, d, B), and velocities (d, B).

    The last place of the ring is room for past iterates gathered from it; `updates` (1,) counts.
    """

    ring: Array
    velocity: Array
    updates: Any
    own: NormalRoom
    gradient: Array
    scratch: Any


@dispatched
def past_place(ages: Any, ring: Any, lane_set: Any, update: int) -> int:
    """Place in the ring of the iterate at which the gradient of this update is taken."""


@past_place.register(FixedAges)
def _after_fixed_age(ages, ring, lane_set, update):
    return (update - ages.tau if update > ages.tau else 0) % (ring.shape[0] - 1)


@past_place.register(ListedAges)
def _after_listed_age(ages, ring, lane_set, update):
    return (update - ages.values[update]) % (ring.shape[0] - 1)


@inner
def _gather(ring, coordinate, values, replicas, update):
    size = ring.shape[0] - 1
    for b in range(ring.shape[2]):
        age = values[replicas[b] % np.uint64(values.shape[0]), update]
        ring[size, coordinate, b] = ring[(update - age) % size, coordinate, b]


@past_place.register(SeveralAges)
def _after_own_age(ages, ring, lane_set, update):
    for i in range(ring.shape[1]):
        _gather(ring, i, ages.values, lane_set.replicas, update)
    return ring.shape[0] - 1


@dispatched
def move(dynamics: Any, work: Any, own: Normals, h: float, old: Any, new: Any) -> None:
    """Write the next iterate, from the old one, ``work.gradient`` and normals."""


@move.register(Langevin)
def _langevin_move(dynamics, work, own, h, old, new):
    for i in range(new.shape[0]):
        lanes.copy(new[i], old[i])
        lanes.langevin(new[i], h, work.gradient[i], np.sqrt(2.0 * h), 1.0, normal_row(own, i))


@move.register(Hamiltonian)
def _hamiltonian_move(dynamics, work, own, h, old, new):
    size = np.sqrt(2.0 * dynamics.friction * h)
    for i in range(new.shape[0]):
        lanes.damped(work.velocity[i], 1.0 - dynamics.friction * h, h, work.gradient[i], size,
                     normal_row(own, i))
        lanes.scale_pair(new[i], 1.0, old[i], h, work.velocity[i])


@advance.register(StaleKernel)
def _update(kernel, problem, lane_set, work, round):
    size, dim = work.ring.shape[0] - 1, work.gradient.shape[0]
    per_draw = work.own.rows.shape[1] // dim
    number = round // per_draw
    own = draw(lane_set, work.own, OWN_NOISE, Numbers(number), 0, number, round, dim, round % per_draw == 0)
    past = work.ring[past_place(kernel.ages, work.ring, lane_set, round)]
    stochastic_gradient(problem, lane_set, 0, round, 0, past, work.scratch, work.gradient)
    move(kernel.dynamics, work, own, step_size_at(kernel.schedule, round),
         work.ring[round % size], work.ring[(round + 1) % size])
    work.updates[0] = round + 1


@observe.register(StaleWork)
def _observe(work, view, out):
    now = work.updates[0] % (work.ring.shape[0] - 1)
    for i in range(out.shape[0]):
        lanes.copy(out[i], work.ring[now, i])


COMMON = {"h": "step_size", "eta": "step_size", "lr": "step_size", "learning_rate": "step_size",
          "tau": "staleness", "delay": "staleness"}
"""Other names of arguments, and what to write for them."""


class Stale(ByValue, AlgorithmParts):
    """What both stale algorithms share."""

    convention = "global"
    staleness: Any
    friction: float | None

    def __post_init__(self) -> None:
        self._normalise_step()
        staleness = as_staleness(self.staleness)
        plain = isinstance(staleness, Fixed) and staleness.reach is None
        set_fields(self, staleness=staleness.tau if plain else staleness)

    def ages(self, n_rounds: int) -> np.ndarray:
        """Age of the gradient at updates 0, ..., n_rounds - 1."""
        count = whole("n_rounds", n_rounds)
        refuse_bytes(16.0 * count, f"n_rounds={count}", "ask for fewer ages")
        return as_staleness(self.staleness).ages(count)

    def _bind(self, problem: Problem, n_rounds: int | None,
              n_replicas: int | None = None) -> tuple[Any, Any]:
        """The pooled problem, and this algorithm with the ages of so many updates worked out."""
        staleness = as_staleness(self.staleness)
        if isinstance(staleness, Workers):
            staleness = staleness.worked_out(n_rounds or 0, n_replicas)
        elif isinstance(staleness, Fixed):
            staleness = dataclasses.replace(staleness, reach=n_rounds or 0)
        elif isinstance(staleness, Sequence) and n_rounds is not None:
            staleness.ages(n_rounds)  # there must be one for each update
        return problem.pooled(), dataclasses.replace(self, staleness=staleness)  # type: ignore[type-var]

    def _separates(self, problem: Problem) -> bool:
        """True: a step treats each coordinate alone, given a problem that does."""
        return True

    def _is_gaussian(self, problem: Problem) -> bool:
        """False for real minibatches, and for mixtures over several schedules."""
        return as_staleness(self.staleness).schedules == 1 and problem.keeps_gaussian

    def costs(self, problem: Problem, n_rounds: int) -> dict[str, int]:
        """What one replica costs: every update is one gradient, one upload and one download."""
        offers("problem", problem, Problem)
        n_rounds = whole("n_rounds", n_rounds)
        return {"communications": n_rounds, "gradient_evaluations": n_rounds,
                "floats_sent": 2 * n_rounds * problem.dim}

    def _radius(self, problem: Problem) -> float:
        """Growth per update of the slowest or least stable mode."""
        with np.errstate(over="ignore", invalid="ignore"):
            return growth_at(self, pooled_curvatures(problem), self.schedule.largest)

    def stability(self, problem: Problem) -> Stability:
        """Growth per update, and the step-size limit."""
        offers("problem", problem, Problem)
        step, value, curvatures = self.schedule.largest, self._radius(problem), pooled_curvatures(problem)
        with np.errstate(over="ignore", invalid="ignore"):
            limit, safe = step_limit(self, curvatures), safe_step(self, curvatures)
        return Stability(value, bool(value < 1.0 or step < safe), limit, step,
                         f"{type(self).__name__} with stale gradients")

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> StaleWork:
        """Room for one block, beginning at `start` (d, B)."""
        dim, n_lanes = start.shape
        ages = as_staleness(self.staleness)._arrays()
        ring = aligned((int(np.max(ages[0], initial=0)) + 3, dim, n_lanes))  # the oldest age is in reach
        ring[0] = start
        return StaleWork(
            ring=ring, velocity=aligned((dim, n_lanes)), updates=np.zeros(1, np.int64),
            own=normal_room(_AHEAD, steps_per_draw(dim, dtype) * dim, n_lanes, dtype),
            gradient=aligned((dim, n_lanes)), scratch=problem._scratch(dim, n_lanes, dtype))

    def _kernel(self, problem: Problem) -> StaleKernel:
        """The NamedTuple that compiled code sees."""
        dynamics = Langevin() if self.friction is None else Hamiltonian(self.friction)
        return StaleKernel(self.schedule.arrays(), as_staleness(self.staleness)._arrays(), dynamics)


@dataclass(frozen=True, eq=False)
class StaleSGLD(Stale):
    """Parameters of stale SGLD. A problem of several clients is pooled: there is one chain, on f.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        h, in units of 1/Hessian of f.
    staleness : int, sequence of int, or `Workers`
        tau: the age min(l, tau) at update l; or an age for every update; or a simulated server.

    Examples
    --------
    >>> fs.StaleSGLD(0.01, staleness=4).ages(6).tolist()
    [0, 1, 2, 3, 4, 4]
    """

    step_size: StepSizeLike
    staleness: Staleness | Ages = 0
    friction = None
    _aliases = COMMON | {"friction": "fs.StaleSGHMC(step_size, friction, staleness), which has friction",
                        "B": "fs.StaleSGHMC(step_size, friction, staleness), which has friction"}

    @classmethod
    def from_paper(cls, h: Any, tau: Any = 0) -> StaleSGLD:
        """The paper's symbols."""
        return cls(h, tau)


@dataclass(frozen=True, eq=False)
class StaleSGHMC(Stale):
    """Parameters of stale SGHMC; velocities start at zero. A problem of several clients is pooled.

    Parameters
    ----------
    step_size : float, array (n_steps,) or schedule
        h.
    friction : float
        B, positive.
    staleness : int, sequence of int, or `Workers`
        As in `StaleSGLD`.

    Examples
    --------
    >>> problem = fs.GaussianMean([1.0, 2.0, 3.0])
    >>> round(fs.StaleSGHMC(0.01, friction=1.0, staleness=2).stability(problem).max_step_size, 3)
    0.129
    """

    step_size: StepSizeLike
    friction: float
    staleness: Staleness | Ages = 0
    _aliases = COMMON | {"B": "friction", "gamma": "friction"}

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, friction=positive("friction", self.friction))

    def _noise_so_far(self, problem: Problem, n_rounds: Array) -> Array:
        return momentum_noise(self, n_rounds, largest_noise(problem))

    @classmethod
    def from_paper(cls, h: Any, B: float, tau: Any = 0) -> StaleSGHMC:
        """The paper's symbols."""
        return cls(h, B, tau)
