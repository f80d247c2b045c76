"""Compiled code of stale SGLD and SGHMC: past iterates in a ring, and one update of all lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine.rounds import advance, observe
from ..problems.gradients import stochastic_gradient
from ..random.normals import normals
from ..random.slots import NormalRoom, Normals, Numbers, normal_row
from ..random.streams import OWN_NOISE
from ..settings.schedules import step_size
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import compiled, dispatched


class FixedAges(NamedTuple):
    """Ages min(l, tau)."""

    tau: int


class ListedAges(NamedTuple):
    """An age per update."""

    values: Any


class SeveralAges(NamedTuple):
    """Ages (m, n) of several schedules."""

    values: Any


class StaleKernel(NamedTuple):
    """Compiled parameters."""

    schedule: Any
    ages: Any
    dynamics: Any


class Langevin(NamedTuple):
    """Stale SGLD."""

    unused: int


class Hamiltonian(NamedTuple):
    """Stale SGHMC."""

    friction: float


class StaleWork(NamedTuple):
    """Iterates (size + 1, d, B): a ring, and room for past ones gathered from it; the velocity (d, B); the
    number of updates made."""

    ring: Array
    velocity: Array
    made: Any
    own: NormalRoom
    gradient: Array
    scratch: Any


@dispatched
def _age(ages: Any, update: int) -> int:
    """Age of the gradient at this update."""


@_age.register(FixedAges)
def _fixed_age(ages, update):
    return min(update, ages.tau)


@_age.register(ListedAges)
def _listed_age(ages, update):
    return ages.values[update]


@dispatched
def _past(ages: Any, ring: Any, lane_set: Any, update: int) -> int:
    """Place in the ring of the iterate at which the gradient of this update is taken."""


def _common_past(ages, ring, lane_set, update):
    return (update - _age(ages, update)) % (ring.shape[0] - 1)


_past.register(FixedAges)(_common_past)
_past.register(ListedAges)(_common_past)


@compiled
def _gather(ring, coordinate, values, replicas, update):
    size = ring.shape[0] - 1
    for b in range(ring.shape[2]):
        age = values[replicas[b] % np.uint64(values.shape[0]), update]
        ring[size, coordinate, b] = ring[(update - age) % size, coordinate, b]


@_past.register(SeveralAges)
def _own_past(ages, ring, lane_set, update):
    for i in range(ring.shape[1]):
        _gather(ring, i, ages.values, lane_set.replicas, update)
    return ring.shape[0] - 1


@dispatched
def _move(dynamics: Any, work: Any, own: Normals, h: float, old: Any, new: Any) -> None:
    """Write the next iterate, from the old one, ``work.gradient`` and normals."""


@_move.register(Langevin)
def _langevin_move(dynamics, work, own, h, old, new):
    for i in range(new.shape[0]):
        lanes.copy(new[i], old[i])
        lanes.langevin(new[i], h, work.gradient[i], np.sqrt(2.0 * h), 1.0, normal_row(own, i))


@_move.register(Hamiltonian)
def _hamiltonian_move(dynamics, work, own, h, old, new):
    size = np.sqrt(2.0 * dynamics.friction * h)
    for i in range(new.shape[0]):
        lanes.damp(work.velocity[i], 1.0 - dynamics.friction * h)
        lanes.langevin(work.velocity[i], h, work.gradient[i], size, 1.0, normal_row(own, i))
        lanes.scale_pair(new[i], 1.0, old[i], h, work.velocity[i])


@advance.register(StaleKernel)
def _update(kernel, problem, lane_set, work, round):
    size, dim = work.ring.shape[0] - 1, work.gradient.shape[0]
    per_draw, together = work.own.rows.shape[1] // dim, work.own.slots.shape[2]
    draw = round // per_draw
    if round % per_draw == 0 and draw % together == 0:
        normals(lane_set, OWN_NOISE, Numbers(draw), 0, work.own.rows[0])
    own = Normals(work.own.slots[0], draw % together, round % per_draw * dim)
    past = work.ring[_past(kernel.ages, work.ring, lane_set, round)]
    stochastic_gradient(problem, lane_set, 0, round, 0, past, work.scratch, work.gradient)
    _move(kernel.dynamics, work, own, step_size(kernel.schedule, round),
          work.ring[round % size], work.ring[(round + 1) % size])
    work.made[0] = round + 1


@observe.register(StaleWork)
def _observe(work, view, out):
    now = work.made[0] % (work.ring.shape[0] - 1)
    for i in range(out.shape[0]):
        lanes.copy(out[i], work.ring[now, i])
