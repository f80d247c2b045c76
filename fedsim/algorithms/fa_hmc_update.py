"""Compiled code of FA-HMC: coordinates of a round, the debiasing's anchor, and a client's local update."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..problems.gradients import drift, exact_gradient, is_exact, leapfrog, stochastic_gradient
from ..random.slots import Normals, normal_row
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import dispatched, inner
from ..vector.trajectories import (
    Modes,
    NoModes,
    from_modes,
    to_modes,
    trajectory_in_modes,
    trajectory_of_normals,
)
from .bodies import advance, step_size_at
from .clients import local_update
from .federated import begin_round, federated_round, receive, receive_value, send, send_value

STALE, FRESH = 1, 2
FIRST_ROUND = {"none": 0, "exact": 1, "printed": 2}


class FAHMCKernel(NamedTuple):
    """Compiled parameters; `debias` is 0, STALE or FRESH, `first_round` one of `FIRST_ROUND`."""

    schedule: Any
    leapfrog_steps: int
    local_steps: int
    shared_noise: float
    debias: int
    first_round: int
    weights: Array
    clients: Any
    modes: Any


class FAHMCExtra(NamedTuple):
    """Rows (d, B): velocity, anchor z, its mean gradient, the server's last value; and the correction
    grad f(z) - grad f_(c)(z) of each slot (slots, d, B)."""

    velocity: Array
    anchor: Array
    mean_gradient: Array
    previous: Array
    correction: Array


advance.register(FAHMCKernel)(federated_round)


@inner
def is_corrected(kernel, round):
    """Whether gradients of this round are debiased."""
    return kernel.debias != 0 and (kernel.debias == FRESH or round > 0 or kernel.first_round != 0)


@begin_round.register(FAHMCKernel)
def _begin_round(kernel, problem, lane_set, work, round):
    set_anchor(kernel.modes, kernel, problem, work, round)


@dispatched
def set_anchor(modes: Any, kernel: Any, problem: Any, work: Any, round: int) -> None:
    """What debiasing needs to know at a round's start."""


@receive.register(FAHMCKernel)
def _receive(kernel, work, slot):
    receive_in(kernel.modes, work, slot)


@send.register(FAHMCKernel)
def _send(kernel, work, slot):
    send_from(kernel.modes, work, slot)


@dispatched
def receive_in(modes: Any, work: Any, slot: int) -> None:
    """`receive` in these coordinates; with modes every slot is the client of its number."""


@dispatched
def send_from(modes: Any, work: Any, slot: int) -> None:
    """`send` from these coordinates."""


@receive_in.register(Modes)
def _turn_to(modes, work, slot):
    to_modes(modes, slot, work.local[slot], work.server)


@send_from.register(Modes)
def _turn_back(modes, work, slot):
    from_modes(modes, slot, work.local[slot], work.gradient)


receive_in.register(NoModes)(receive_value)
send_from.register(NoModes)(send_value)


@set_anchor.register(Modes)
def _no_anchor(modes, kernel, problem, work, round):
    pass


@set_anchor.register(NoModes)
def _set_any_anchor(modes, kernel, problem, work, round):
    extra = work.extra
    if not is_corrected(kernel, round):
        if kernel.debias != 0:
            for i in range(work.server.shape[0]):
                lanes.copy(extra.previous[i], work.server[i])
        return
    for i in range(work.server.shape[0]):
        if kernel.debias == FRESH:
            lanes.copy(extra.anchor[i], work.server[i])
        elif round == 0:
            lanes.fill(extra.anchor[i], 0.0)
        else:
            lanes.copy(extra.anchor[i], extra.previous[i])
        lanes.copy(extra.previous[i], work.server[i])
        lanes.fill(extra.mean_gradient[i], 0.0)
    if kernel.debias == STALE and round == 0 and kernel.first_round == 2:
        return  # as printed: the server's gradient is set to zero
    for client in range(kernel.weights.shape[0]):
        exact_gradient(problem, client, extra.anchor, work.scratch, work.gradient)
        for i in range(work.server.shape[0]):
            lanes.axpy(extra.mean_gradient[i], kernel.weights[client], work.gradient[i])


@local_update.register(FAHMCKernel)
def _hamiltonian_step(kernel, problem, lane_set, work, slot, step, client, private, own, shared):
    eta = step_size_at(kernel.schedule, step)
    own_size, shared_size = eta * np.sqrt(1.0 - kernel.shared_noise), eta * np.sqrt(kernel.shared_noise)
    _trajectory(kernel.modes, kernel, problem, lane_set, work, slot, step, client, eta, own_size, private,
                own, shared_size, shared)


@inner
def _draw_momentum(velocity, own_size, private, own, shared_size, shared):
    """velocity = own_size private own + shared_size shared"""
    for i in range(velocity.shape[0]):
        if shared_size == 0.0:
            lanes.scale_product(velocity[i], own_size, private, normal_row(own, i))
        elif own_size == 0.0:
            lanes.scale(velocity[i], shared_size, normal_row(shared, i))
        else:
            lanes.blend(velocity[i], own_size, private, normal_row(own, i), shared_size,
                        normal_row(shared, i))


@dispatched(inline=True)
def _trajectory(modes: Any, kernel: Any, problem: Any, lane_set: Any, work: Any, slot: int, step: int,
                client: Any, eta: float, own_size: float, private: Any, own: Normals, shared_size: float,
                shared: Normals) -> None:
    """All leapfrog steps of a local update; sizes and velocities are eta times those of the momentum."""


@_trajectory.register(Modes)
def _trajectory_in_modes(modes, kernel, problem, lane_set, work, slot, step, client, eta, own_size, private,
                         own, shared_size, shared):
    x, velocity = work.local[slot], work.extra.velocity
    if shared_size == 0.0:
        trajectory_of_normals(modes, client, eta, kernel.leapfrog_steps, x, own_size * private, own)
    else:
        if own_size > 0.0 or slot == 0:  # without a part of its own it is the same for all clients
            _draw_momentum(velocity, own_size, private, own, shared_size, shared)
        trajectory_in_modes(modes, client, eta, kernel.leapfrog_steps, x, velocity)


@_trajectory.register(NoModes)
def _plain_trajectory(modes, kernel, problem, lane_set, work, slot, step, client, eta, own_size, private,
                      own, shared_size, shared):
    x, velocity, correction = work.local[slot], work.extra.velocity, work.extra.correction
    _draw_momentum(velocity, own_size, private, own, shared_size, shared)
    corrected = is_corrected(kernel, step // kernel.local_steps)
    if corrected and step % kernel.local_steps == 0:
        exact_gradient(problem, client, work.extra.anchor, work.scratch, work.gradient)
        for i in range(x.shape[0]):
            lanes.scale_pair(correction[slot, i], 1.0, work.extra.mean_gradient[i], -1.0, work.gradient[i])
    half = -0.5 * eta * eta
    for k in range(kernel.leapfrog_steps):  # velocity is eta p - (eta^2/2) g1: fewer passes over the rows
        if work.stop[0] != 0:
            return
        if is_exact(problem):
            leapfrog(problem, client, half if k == 0 else 2.0 * half, x, velocity, corrected, correction,
                     slot, work.scratch, work.gradient)
        else:
            for draw in range(max(0, 2 * k - 1), 2 * k + 1):  # the last step's g2, and this one's g1
                stochastic_gradient(problem, lane_set, client, step, draw, x, work.scratch, work.gradient)
                for i in range(x.shape[0]):
                    lanes.axpy(velocity[i], half, work.gradient[i])
            drift(half if k == 0 else 2.0 * half, x, velocity, corrected, correction, slot)
