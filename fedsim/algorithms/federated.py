"""What federated algorithms share: broadcast, local steps, and the server's average.

A round copies the server's value to the active clients, makes `local_steps` local updates on each,
and replaces the server's value by sum_c w_c theta_c, or with participation by (1/S) sum over the
drawn clients. An algorithm supplies `begin_round`, `local_update` and its parameters. From `receive` to
`send` only these may read ``work.local``: it may be in other coordinates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..interfaces import Problem, offers
from ..random.normals import draw, steps_per_draw
from ..random.participants import draw_clients
from ..random.slots import Listed, NormalRoom, Normals, Numbers, normal_room
from ..random.streams import OWN_NOISE, SHARED_NOISE
from ..settings.participation import Participation
from ..settings.validation import Array, fraction, instance, set_fields, whole
from ..stability.federated import FederatedStability
from ..vector import lanes
from ..vector.compile import Nothing, dispatched, inner, spliced
from ..vector.memory import aligned, aligned_copy
from ..vector.per_lane import entry
from .bodies import observe


class AllClients(NamedTuple):
    """Every client takes part, with its weight as its share; `private` is 1/sqrt(w_c)."""

    shares: Array
    private: Array


class DrawnClients(NamedTuple):
    """Clients are drawn each round, with equal shares; `replace` is scheme I."""

    shares: Array
    cumulative_weights: Array
    private: Array
    replace: bool


class FederatedWork(NamedTuple):
    """State of a block of B lanes: rows are (d, B). `extra` belongs to the algorithm."""

    server: Array
    local: Array
    own: NormalRoom
    shared: NormalRoom
    gradient: Array
    scratch: Any
    drawn: Any
    pool: Any
    extra: Any


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
    """As it is."""
    for i in range(work.server.shape[0]):
        lanes.copy(work.local[slot, i], work.server[i])


@send.otherwise
def send_value(kernel, work, slot):
    """As it is."""


@dispatched
def begin_round(kernel: Any, problem: Any, lane_set: Any, work: Any, round: int) -> None:
    """What an algorithm does at a round's start, after the broadcast."""


@dispatched(inline=True)
def local_update(kernel: Any, problem: Any, lane_set: Any, work: Any, slot: int, step: int,
                 client: Any, private: Any, own: Normals, shared: Normals) -> None:
    """One local step of the client in `slot`: updates ``work.local[slot]``.

    `own` and `shared` are its normals. `client` is a number, or one number per lane; `private` is
    1/sqrt(w_c) of it.
    """


@dispatched
def choose_clients(clients: Any, lane_set: Any, work: Any, round: int) -> None:
    """Draw who takes part."""


@dispatched
def step_clients(clients: Any, kernel: Any, problem: Any, lane_set: Any, work: Any, step: int,
                  fresh: bool, shared: Normals) -> None:
    """A local step of every active client."""


@choose_clients.register(AllClients)
def _choose_all(clients, lane_set, work, round):
    pass


@choose_clients.register(DrawnClients)
def _choose_drawn(clients, lane_set, work, round):
    draw_clients(lane_set, round, clients.replace, clients.cumulative_weights, work.drawn, work.pool)


@spliced
def _step_client(kernel, problem, lane_set, work, slot, step, fresh, client, private, group, shared):
    dim = work.server.shape[0]
    own = draw(lane_set, work.own, OWN_NOISE, step // (work.own.rows.shape[1] // dim), group, slot, step, dim,
               fresh and kernel.shared_noise < 1.0)  # otherwise the rows stay zero
    local_update(kernel, problem, lane_set, work, slot, step, client, private, own, shared)


@step_clients.register(AllClients)
def _step_all(clients, kernel, problem, lane_set, work, step, fresh, shared):
    for client in range(work.local.shape[0]):
        _step_client(kernel, problem, lane_set, work, client, step, fresh, client,
                     clients.private[client], Numbers(client), shared)


@step_clients.register(DrawnClients)
def _step_drawn(clients, kernel, problem, lane_set, work, step, fresh, shared):
    for slot in range(work.local.shape[0]):
        drawn = work.drawn[slot]
        _step_client(kernel, problem, lane_set, work, slot, step, fresh, drawn,
                     entry(clients.private, drawn), Listed(work.drawn, slot), shared)


@inner
def average_clients(clients, work):
    """The server's new value."""
    for i in range(work.server.shape[0]):
        lanes.fill(work.server[i], 0.0)
        for slot in range(work.local.shape[0]):
            lanes.axpy(work.server[i], clients.shares[slot], work.local[slot, i])


def federated_round(kernel, problem, lane_set, work, round):
    """Body of `advance` for federated algorithms: one communication round."""
    choose_clients(kernel.clients, lane_set, work, round)
    for slot in range(work.local.shape[0]):
        receive(kernel, work, slot)
    begin_round(kernel, problem, lane_set, work, round)
    dim, first = work.server.shape[0], round * kernel.local_steps
    per_draw = work.shared.rows.shape[1] // dim
    for step in range(first, first + kernel.local_steps):
        fresh = step % per_draw == 0 or step == first
        shared = draw(lane_set, work.shared, SHARED_NOISE, step // per_draw, Numbers(0), 0, step, dim,
                      fresh and kernel.shared_noise > 0.0)
        step_clients(kernel.clients, kernel, problem, lane_set, work, step, fresh, shared)
    for slot in range(work.local.shape[0]):
        send(kernel, work, slot)
    average_clients(kernel.clients, work)


@observe.register(FederatedWork)
def _observe_server(work, view, out):
    for i in range(out.shape[0]):
        lanes.copy(out[i], work.server[i])


class Federated(ByValue, FederatedStability):
    """Base of the federated algorithms' parameter classes."""

    local_steps: int
    shared_noise: float
    participation: Participation | None

    def _normalise(self) -> None:
        """Check and convert the common fields; called by ``__post_init__``."""
        self._normalise_step()
        set_fields(self, local_steps=whole("local_steps", self.local_steps, 1),
                   shared_noise=fraction("shared_noise", self.shared_noise))
        instance("participation", self.participation, Participation, type(None))

    def check(self, problem: Problem) -> None:
        """Raise ValueError unless this algorithm can run on this problem."""
        offers("problem", problem, Problem)
        if self.participation is not None:
            self.participation.check(problem)

    def n_active(self, problem: Problem) -> int:
        """Clients that work in a round."""
        offers("problem", problem, Problem)
        return problem.n_clients if self.participation is None else self.participation.n_active

    def variance_factor(self, problem: Problem) -> float:
        """`Participation.variance_factor`, 0 when all clients take part."""
        offers("problem", problem, Problem)
        return 0.0 if self.participation is None else self.participation.variance_factor(problem.n_clients)

    def _separates(self, problem: Problem) -> bool:
        """True when a step treats each coordinate alone, given a problem that does."""
        return self.participation is None

    def _is_gaussian(self, problem: Problem) -> bool:
        """False for mixtures over who was drawn, and where the problem's gradients are not affine."""
        chosen = self.participation
        whoever = chosen is None or chosen.variance_factor(problem.n_clients) == 0.0
        return whoever and problem.keeps_gaussian

    def _steps(self, n_rounds: int) -> int:
        """Local steps in `n_rounds` rounds: what schedules and streams count."""
        return n_rounds * self.local_steps

    def _gradients_per_step(self, problem: Problem) -> int:
        """Gradient evaluations of a client in a local step."""
        return 1

    def costs(self, problem: Problem, n_rounds: int) -> dict[str, int]:
        """What one replica of `n_rounds` costs: communications, gradient evaluations, floats sent.

        Each round every client receives the server's d numbers and every active client sends d.
        """
        active, n_rounds = self.n_active(problem), whole("n_rounds", n_rounds)
        return {"communications": n_rounds,
                "gradient_evaluations": self._steps(n_rounds) * active * self._gradients_per_step(problem),
                "floats_sent": n_rounds * problem.dim * (active + problem.n_clients)}

    def _clients(self, problem: Problem) -> AllClients | DrawnClients:
        """Who takes part, as compiled code sees it."""
        private, active = 1.0 / np.sqrt(problem.weights), self.n_active(problem)
        if self.participation is None:
            return AllClients(problem.weights, private)
        return DrawnClients(np.full(active, 1.0 / active), np.cumsum(problem.weights), private,
                            self.participation.replace)

    def _extra(self, active: int, dim: int, n_lanes: int) -> Any:
        """Further state of the algorithm."""
        return NoExtra()

    def _workspace(self, problem: Problem, start: Array, dtype: Any) -> FederatedWork:
        """Room for one block, beginning at `start` (d, B); `dtype` is that of the normals."""
        dim, n_lanes = start.shape
        active = self.n_active(problem)
        pool = 0 if self.participation is None else problem.n_clients
        per_draw = steps_per_draw(dim, dtype)
        return FederatedWork(
            server=aligned_copy(start), local=aligned((active, dim, n_lanes)),
            own=normal_room(active, per_draw * dim, n_lanes, dtype, keep=per_draw > 1),
            shared=normal_room(1, per_draw * dim, n_lanes, dtype),
            gradient=aligned((dim, n_lanes)), scratch=problem._scratch(dim, n_lanes, dtype),
            drawn=aligned((active, n_lanes), np.int64), pool=aligned((pool, n_lanes), np.int64),
            extra=self._extra(active, dim, n_lanes))
