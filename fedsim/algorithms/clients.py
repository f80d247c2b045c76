"""Who takes part in a round, as compiled code sees it: choosing clients, stepping them, and averaging.

A class of NamedTuple for each kind of participation; a slot is the place of an active client.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..random.normals import draw
from ..random.participants import draw_answers, draw_clients
from ..random.slots import Listed, Normals, Numbers
from ..random.streams import OWN_NOISE
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import dispatched, spliced
from ..vector.per_lane import entry


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


class FixedClients(NamedTuple):
    """Known sets: the `members` and their `shares` from first[r] on, r the round modulo `period`."""

    first: Any
    members: Any
    shares: Array
    private: Array
    period: int


class IndependentClients(NamedTuple):
    """Each answers with its probability; with `unbiased` w_c/q_c is its share, else w_c over their sum."""

    weights: Array
    probabilities: Array
    private: Array
    unbiased: bool


@dispatched(inline=True)
def local_update(kernel: Any, problem: Any, lane_set: Any, work: Any, slot: int, step: int,
                 client: Any, private: Any, own: Normals, shared: Normals) -> None:
    """One local step of the client in `slot`: updates ``work.local[slot]``.

    `own` and `shared` are its normals. `client` is a number, or one number per lane; `private` is
    1/sqrt(w_c) of it.
    """


@dispatched
def choose_clients(clients: Any, lane_set: Any, work: Any, round: int) -> int:
    """Decide who takes part, and how many slots are worked in."""


@dispatched
def step_clients(clients: Any, kernel: Any, problem: Any, lane_set: Any, work: Any, step: int,
                 fresh: bool, active: int, shared: Normals) -> None:
    """A local step of every active client."""


@dispatched
def average_clients(clients: Any, work: Any, round: int, active: int) -> None:
    """The server's new value."""


@choose_clients.register(AllClients)
def _choose_all(clients, lane_set, work, round):
    return work.local.shape[0]


@choose_clients.register(DrawnClients)
def _choose_drawn(clients, lane_set, work, round):
    draw_clients(lane_set, round, clients.replace, clients.cumulative_weights, work.drawn, work.pool)
    return work.local.shape[0]


@choose_clients.register(FixedClients)
def _choose_fixed(clients, lane_set, work, round):
    place = round % clients.period
    begin, active = clients.first[place], clients.first[place + 1] - clients.first[place]
    for slot in range(active):
        lanes.fill(work.drawn[slot], clients.members[begin + slot])
    return active


@choose_clients.register(IndependentClients)
def _choose_independent(clients, lane_set, work, round):
    return draw_answers(lane_set, round, clients.weights, clients.probabilities, clients.unbiased, work.drawn,
                        work.lane_shares)


@spliced
def _step_client(kernel, problem, lane_set, work, slot, step, fresh, client, private, group, shared):
    dim = work.server.shape[0]
    own = draw(lane_set, work.own, OWN_NOISE, step // (work.own.rows.shape[1] // dim), group, slot, step, dim,
               fresh and kernel.shared_noise < 1.0)  # otherwise the rows stay zero
    local_update(kernel, problem, lane_set, work, slot, step, client, private, own, shared)


@step_clients.register(AllClients)
def _step_all(clients, kernel, problem, lane_set, work, step, fresh, active, shared):
    for client in range(active):
        _step_client(kernel, problem, lane_set, work, client, step, fresh, client,
                     clients.private[client], Numbers(client), shared)


@step_clients.register(DrawnClients)
def _step_drawn(clients, kernel, problem, lane_set, work, step, fresh, active, shared):
    for slot in range(active):
        drawn = work.drawn[slot]
        _step_client(kernel, problem, lane_set, work, slot, step, fresh, drawn,
                     entry(clients.private, drawn), Listed(work.drawn, slot), shared)


step_clients.register(IndependentClients)(_step_drawn)


@step_clients.register(FixedClients)
def _step_fixed(clients, kernel, problem, lane_set, work, step, fresh, active, shared):
    begin = clients.first[step // kernel.local_steps % clients.period]
    for slot in range(active):  # one client in all lanes: its arrays are read once
        client = clients.members[begin + slot]
        _step_client(kernel, problem, lane_set, work, slot, step, fresh, client, clients.private[client],
                     Listed(work.drawn, slot), shared)


@spliced
def _weighted(shares, begin, active, work):
    for i in range(work.server.shape[0]):
        lanes.fill(work.server[i], 0.0)
        for slot in range(active):
            lanes.axpy(work.server[i], shares[begin + slot], work.local[slot, i])


@average_clients.register(AllClients)
def _average_all(clients, work, round, active):
    _weighted(clients.shares, 0, active, work)


@average_clients.register(DrawnClients)
def _average_drawn(clients, work, round, active):
    _weighted(clients.shares, 0, active, work)


@average_clients.register(FixedClients)
def _average_fixed(clients, work, round, active):
    _weighted(clients.shares, clients.first[round % clients.period], active, work)


@average_clients.register(IndependentClients)
def _average_independent(clients, work, round, active):
    for i in range(work.server.shape[0]):
        lanes.fill(work.gradient[i], 0.0)
        for slot in range(active):
            lanes.add_share(work.gradient[i], work.lane_shares[slot], work.local[slot, i], work.server[i])
        lanes.axpy(work.server[i], 1.0, work.gradient[i])
