"""What federated algorithms share: broadcast, local steps, and the server's average.

A round copies the server's value to the active clients, makes `local_steps` local updates on each,
and replaces the server's value by sum_c w_c theta_c, or with participation as `settings.participation` has
it. An algorithm supplies `begin_round`, `local_update` and its parameters. From `receive` to `send` only
these may read ``work.local``: it may be in other coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import Problem, offers
from ..random.normals import draw, steps_per_draw
from ..random.slots import NormalRoom, Numbers, normal_room
from ..random.streams import SHARED_NOISE
from ..settings.participation import Participation
from ..settings.participation_fixed import FixedParticipation, as_participation
from ..settings.participation_independent import IndependentParticipation
from ..settings.validation import Array, fraction, instance, set_fields, whole
from ..stability.averaging import Averaging, ByChance, BySets
from ..stability.federated import FederatedStability
from ..vector import lanes
from ..vector.compile import Nothing, dispatched
from ..vector.memory import aligned, aligned_copy, signal_of, signals
from .bodies import observe
from .clients import (
    AllClients,
    DrawnClients,
    FixedClients,
    IndependentClients,
    average_clients,
    choose_clients,
    step_clients,
)

KINDS = Participation, IndependentParticipation, FixedParticipation


COMMON = {"lr": "step_size", "learning_rate": "step_size", "h": "step_size"}
SCHEMES = "participation=fs.Participation(S, replace=True) for scheme I, replace=False for scheme II"
"""Other names of arguments, and what to write for them."""


class FederatedWork(NamedTuple):
    """State of a block of B lanes: rows are (d, B). `extra` belongs to the algorithm.

    `drawn` (slots, B) are the clients of a round where lanes have their own, `lane_shares` what they count.
    A round ends early once ``stop[0]`` is not zero; ``stop[1]`` counts its local steps.
    """

    server: Array
    local: Array
    own: NormalRoom
    shared: NormalRoom
    gradient: Array
    scratch: Any
    drawn: Any
    pool: Any
    lane_shares: Array
    extra: Any
    stop: Any


class NoExtra(Nothing):
    """An algorithm without further state."""


@dispatched
def receive(kernel: Any, work: Any, slot: int) -> None:
    """Set ``work.local[slot]`` to the server's value; an algorithm may have coordinates of its own."""


@dispatched
def send(kernel: Any, work: Any, slot: int) -> None:
    """Make ``work.local[slot]`` what the server averages, where it is in other coordinates."""


@receive.otherwise
def receive_value(kernel, work, slot):
    """Leave the value as it arrived."""
    for i in range(work.server.shape[0]):
        lanes.copy(work.local[slot, i], work.server[i])


@send.otherwise
def send_value(kernel, work, slot):
    """Leave the value as it is sent."""


@dispatched
def begin_round(kernel: Any, problem: Any, lane_set: Any, work: Any, round: int) -> None:
    """What an algorithm does at a round's start, after the broadcast."""


def federated_round(kernel, problem, lane_set, work, round):
    """Body of `advance` for federated algorithms: one communication round."""
    active = choose_clients(kernel.clients, lane_set, work, round)
    for slot in range(active):
        receive(kernel, work, slot)
    begin_round(kernel, problem, lane_set, work, round)
    dim, first = work.server.shape[0], round * kernel.local_steps
    per_draw = work.shared.rows.shape[1] // dim
    for step in range(first, first + kernel.local_steps):
        if work.stop[0] != 0:
            return
        work.stop[1] += 1
        fresh = step % per_draw == 0 or step == first
        shared = draw(lane_set, work.shared, SHARED_NOISE, step // per_draw, Numbers(0), 0, step, dim,
                      fresh and kernel.shared_noise > 0.0)
        step_clients(kernel.clients, kernel, problem, lane_set, work, step, fresh, active, shared)
    for slot in range(active):
        send(kernel, work, slot)
    average_clients(kernel.clients, work, round, active)


@observe.register(FederatedWork)
def _observe_server(work, view, out):
    for i in range(out.shape[0]):
        lanes.copy(out[i], work.server[i])


@lru_cache(maxsize=8)
def _by_chance(chosen: IndependentParticipation, weights: bytes) -> ByChance:
    """Once for all step sizes that a search tries."""
    return ByChance(chosen.shares(np.frombuffer(weights)))


class Federated(ByValue, FederatedStability):
    """Base of the federated algorithms' parameter classes."""

    local_steps: int
    shared_noise: float
    participation: Any

    def __post_init__(self) -> None:
        """Check and convert the common fields."""
        self._normalise_step()
        chosen = as_participation(self.participation)
        set_fields(self, local_steps=whole("local_steps", self.local_steps, 1),
                   shared_noise=fraction("shared_noise", self.shared_noise),
                   participation=instance("participation", chosen, *KINDS, type(None)))

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless this algorithm can run on this problem."""
        offers("problem", problem, Problem)
        if self.participation is not None:
            self.participation.check(problem)

    def n_active(self, problem: Problem) -> int:
        """Clients that work in a round, at most."""
        offers("problem", problem, Problem)
        n_clients = problem.n_clients
        return n_clients if self.participation is None else self.participation._most_active(n_clients)

    def variance_factor(self, problem: Problem) -> float:
        """`Participation.variance_factor`, 0 when all clients take part, or known ones.

        Raises
        ------
        ValueError
            For `IndependentParticipation`, whose shares' covariances no one number gives.
        """
        offers("problem", problem, Problem)
        chosen = self.participation
        if isinstance(chosen, IndependentParticipation):
            raise ValueError(f"participation={chosen!r} must be None, a fedsim.Participation or known sets: "
                             "no one factor gives what it adds; see its `shares`")
        return chosen.variance_factor(problem.n_clients) if isinstance(chosen, Participation) else 0.0

    def _averaging(self, problem: Problem) -> Averaging | None:
        chosen = self.participation
        if isinstance(chosen, IndependentParticipation):
            return _by_chance(chosen, problem.weights.tobytes())
        return BySets(chosen, problem.weights) if isinstance(chosen, FixedParticipation) else None

    def _working(self) -> Any:
        chosen = self.participation
        return np.unique(chosen.members) if isinstance(chosen, FixedParticipation) else super()._working()

    def _participation_words(self, problem: Problem) -> str:
        """Who takes part, in words."""
        chosen = self.participation
        return (super()._participation_words(problem) if chosen is None
                else str(chosen._words(problem.n_clients)))

    def _bind(self, problem: Problem, n_rounds: int | None,
              n_replicas: int | None = None) -> tuple[Problem, Any]:
        """The problem and this algorithm, where it is known who takes part in so many rounds."""
        if self.participation is not None and n_rounds is not None:
            self.participation.require(n_rounds)
        return problem, self

    def _separates(self, problem: Problem) -> bool:
        """True when a step treats each coordinate alone, given a problem that does."""
        return self.participation is None

    def _is_gaussian(self, problem: Problem) -> bool:
        """False for mixtures over who took part, and where the problem's gradients are not affine."""
        chosen = self.participation
        if isinstance(chosen, IndependentParticipation):
            return problem.keeps_gaussian and not chosen.shares(problem.weights).cov.any()
        return problem.keeps_gaussian and self.variance_factor(problem) == 0.0

    def _counted(self, problem: Problem) -> int:
        """Local steps, of all clients together."""
        return self.local_steps

    def _steps(self, n_rounds: int) -> int:
        """Local steps in `n_rounds` rounds: what schedules and streams count."""
        return n_rounds * self.local_steps

    def costs(self, problem: Problem, n_rounds: int) -> Mapping[str, float]:
        """What one replica of `n_rounds` costs: communications, gradient evaluations, floats sent.

        Each round every client receives the server's d numbers and every active client sends d. Where a
        random number of clients is active, costs are expected ones, and no integers.
        """
        offers("problem", problem, Problem)
        n_rounds, chosen = whole("n_rounds", n_rounds), self.participation
        active: Any = n_rounds * problem.n_clients
        if chosen is not None:
            active = chosen._total_active(problem.n_clients, n_rounds)
        return {"communications": n_rounds,
                "gradient_evaluations": self.local_steps * active * self._gradients_per_step(problem),
                "floats_sent": problem.dim * (active + n_rounds * problem.n_clients)}

    def _clients(self, problem: Problem) -> Any:
        """Who takes part, as compiled code sees it."""
        chosen, weights = self.participation, problem.weights
        private, active = 1.0 / np.sqrt(weights), self.n_active(problem)
        if chosen is None:
            return AllClients(weights, private)
        if isinstance(chosen, FixedParticipation):
            return FixedClients(chosen.first, chosen.members, chosen._flat_shares(weights), private,
                                chosen.n_sets)
        if isinstance(chosen, IndependentParticipation):
            return IndependentClients(weights, chosen.of_clients(problem.n_clients), private, chosen.unbiased)
        return DrawnClients(np.full(active, 1.0 / active), np.cumsum(weights), private, chosen.replace)

    def _extra(self, active: int, dim: int, n_lanes: int) -> Any:
        """Further state of the algorithm."""
        return NoExtra()

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> FederatedWork:
        """Room for one block, beginning at `start` (d, B); `dtype` is that of the normals."""
        dim, n_lanes = start.shape
        active = self.n_active(problem)
        drawn = isinstance(self.participation, Participation)
        pool = problem.n_clients if drawn else 0
        shares = active if isinstance(self.participation, IndependentParticipation) else 0
        per_draw = steps_per_draw(dim, dtype)
        return FederatedWork(
            server=aligned_copy(start), local=aligned((active, dim, n_lanes)),
            own=normal_room(active, per_draw * dim, n_lanes, dtype, keep=per_draw > 1),
            shared=normal_room(1, per_draw * dim, n_lanes, dtype),
            gradient=aligned((dim, n_lanes)), scratch=problem._scratch(dim, n_lanes, dtype),
            drawn=aligned((active, n_lanes), np.int64), pool=aligned((pool, n_lanes), np.int64),
            lane_shares=aligned((shares, n_lanes)),
            extra=self._extra(active, dim, n_lanes), stop=signal_of(signals(1), 0))
