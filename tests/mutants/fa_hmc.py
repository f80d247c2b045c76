"""FA-HMC with one fault each."""

from __future__ import annotations

import numpy as np
from problems import contrasted, quadratic

import fedsim as fs
from fedsim.algorithms.bodies import advance, step_size_at
from fedsim.algorithms.clients import local_update
from fedsim.algorithms.fa_hmc_update import (
    FIRST_ROUND,
    FAHMCKernel,
    NoModes,
    is_corrected,
    receive_in,
    send_from,
    set_anchor,
)
from fedsim.algorithms.federated import begin_round, federated_round, receive, send
from fedsim.problems.gradients import drift, exact_gradient, is_exact, leapfrog, stochastic_gradient
from fedsim.random.slots import normal_row
from fedsim.vector import lanes
from fedsim.vector.compile import dispatched, inner
from fedsim.vector.trajectories import Modes, trajectory_in_modes, trajectory_of_normals
from mutants import Case, Mutants

START = [3.0, -2.0]
NOISY = contrasted(3, [0.5, 0.3, 0.2])
STEEP = fs.Quadratic(NOISY.hessians, NOISY.minimizers, NOISY.weights)  # or debiasing hardly shows
DIAGONAL = quadratic(structure="diagonal")
FA_HMC = Mutants(fs.FAHMC, FAHMCKernel, {
    "private": Case(quadratic(), lambda cls: cls(0.25, 3, 2, 0.5), START),
    "noisy": Case(quadratic(noise=8.0), lambda cls: cls(fs.schedules.Harmonic(4.0, 0.5), 3, 2, 0.5), START),
    "shared": Case(quadratic(), lambda cls: cls(0.25, 3, 2, 1.0), START),
    "own": Case(quadratic(), lambda cls: cls(0.25, 3, 2, 0.0), START),
    "diagonal, own": Case(DIAGONAL, lambda cls: cls(0.25, 3, 2, 0.0), START),
    "diagonal": Case(DIAGONAL, lambda cls: cls(0.25, 3, 2, 0.5), START),
    "lone": Case(quadratic(1), lambda cls: cls(0.25, 3, 2, 0.5), START),
    "stale": Case(STEEP, lambda cls: cls(0.2, 3, 3, 0.5, "stale", "exact"), START),
}, n_rounds=4, n_replicas=60_000, seed=41)


# what Python hands over

@FA_HMC.kernel_change("one leapfrog step too many", "private")
def _(kernel, problem):
    return kernel._replace(leapfrog_steps=kernel.leapfrog_steps + 1)


@FA_HMC.kernel_change("square root of the weight forgotten", "private")
@FA_HMC.kernel_change("square root of the weight forgotten without shared momentum", "own")
@FA_HMC.kernel_change("square root of the weight forgotten without modes", "diagonal")
@FA_HMC.kernel_change("square root of the weight forgotten without modes or shared momentum", "diagonal, own")
def _(kernel, problem):
    return kernel._replace(clients=kernel.clients._replace(private=np.ones(problem.n_clients)))


@FA_HMC.kernel_change("first round as printed", "stale")
def _(kernel, problem):
    return kernel._replace(first_round=FIRST_ROUND["printed"])


@FA_HMC.kernel_change("server's gradient unweighted", "stale")
def _(kernel, problem):
    return kernel._replace(weights=np.full(problem.n_clients, 1.0 / problem.n_clients))


# the round

ANCHOR = FA_HMC.switch("anchor one round late", "stale")
ONCE = FA_HMC.switch("the server's value received only once", "private")
NOT_BACK = FA_HMC.switch("not turned back from the modes", "private")

advance.register(FA_HMC.kernel)(federated_round)


@begin_round.register(FA_HMC.kernel)
def _begin_round(kernel, problem, lane_set, work, round):
    if kernel.fault == ANCHOR:
        for i in range(work.server.shape[0]):
            lanes.copy(work.extra.previous[i], work.server[i])
    set_anchor(kernel.modes, kernel, problem, work, round)


@receive.register(FA_HMC.kernel)
def _receive(kernel, work, slot):
    if not (kernel.fault == ONCE and work.local[slot, 0, 0] != 0.0):
        receive_in(kernel.modes, work, slot)


@send.register(FA_HMC.kernel)
def _send(kernel, work, slot):
    if kernel.fault != NOT_BACK:
        send_from(kernel.modes, work, slot)


# the local update

ROUNDS = FA_HMC.switch("schedule counts rounds", "noisy")
NO_ROOT = FA_HMC.switch("shared momentum without its square root", "private")
NOT_REFRESHED = FA_HMC.switch("momentum not refreshed", "lone")
FA_HMC.switch("momentum not refreshed without modes", "diagonal, own", NOT_REFRESHED)
FA_HMC.switch("shared momentum of the step before", "shared", NOT_REFRESHED)
OF_FIRST = FA_HMC.switch("private momentum of the first client", "private")
OTHER_MODES = FA_HMC.switch("another client's modes", "private")
FA_HMC.switch("another client's modes without shared momentum", "own", OTHER_MODES)
SIGN = FA_HMC.switch("correction with the wrong sign", "stale")
CORRECTED_ONCE = FA_HMC.switch("correction only in the first update", "stale")
WHOLE_KICK = FA_HMC.switch("position kicked by a whole step", "diagonal")
ONE_KICK = FA_HMC.switch("momentum kicked once between two moves", "noisy")
POINT_SHARES = FA_HMC.switch("an interior point's two gradients share a draw", "noisy")
STEP_SHARES = FA_HMC.switch("a step's two gradients share a draw", "noisy")


@local_update.register(FA_HMC.kernel)
def _hamiltonian_step(kernel, problem, lane_set, work, slot, step, client, private, own, shared):
    fault, fraction = kernel.fault, kernel.shared_noise
    eta = step_size_at(kernel.schedule, step // kernel.local_steps if fault == ROUNDS else step)
    own_size = eta * np.sqrt(1.0 - fraction)
    shared_size = eta * (fraction if fault == NO_ROOT else np.sqrt(fraction))
    kept = (fault == NOT_REFRESHED and step % kernel.local_steps > 0) or (fault == OF_FIRST and slot > 0)
    if not kept:
        momentum(work.extra.velocity, own_size, private, own, shared_size, shared)
    size = own_size * private
    trajectory(kernel.modes, kernel, problem, lane_set, work, slot, step, client, eta, size, own, shared_size)


@inner
def momentum(velocity, own_size, private, own, shared_size, shared):
    """The step size times a new momentum."""
    for i in range(velocity.shape[0]):
        if shared_size == 0.0:
            lanes.scale_product(velocity[i], own_size, private, normal_row(own, i))
        elif own_size == 0.0:
            lanes.scale(velocity[i], shared_size, normal_row(shared, i))
        else:
            lanes.blend(velocity[i], own_size, private, normal_row(own, i), shared_size,
                        normal_row(shared, i))


@dispatched(inline=True)
def trajectory(modes, kernel, problem, lane_set, work, slot, step, client, eta, size, own, shared_size):
    """All leapfrog steps of a local update."""


@trajectory.register(Modes)
def _trajectory_in_modes(modes, kernel, problem, lane_set, work, slot, step, client, eta, size, own,
                         shared_size):
    turned, n_steps = 0 if kernel.fault == OTHER_MODES else client, kernel.leapfrog_steps
    if shared_size == 0.0:
        trajectory_of_normals(modes, turned, eta, n_steps, work.local[slot], size, own)
    else:
        trajectory_in_modes(modes, turned, eta, n_steps, work.local[slot], work.extra.velocity)


@trajectory.register(NoModes)
def _plain_trajectory(modes, kernel, problem, lane_set, work, slot, step, client, eta, size, own,
                      shared_size):
    fault, first = kernel.fault, step % kernel.local_steps == 0
    x, velocity, correction = work.local[slot], work.extra.velocity, work.extra.correction
    gradient = work.gradient
    corrected = is_corrected(kernel, step // kernel.local_steps) and (first or fault != CORRECTED_ONCE)
    if corrected and first:
        exact_gradient(problem, client, work.extra.anchor, work.scratch, gradient)
        sign = 1.0 if fault == SIGN else -1.0
        for i in range(x.shape[0]):
            lanes.scale_pair(correction[slot, i], 1.0, work.extra.mean_gradient[i], sign, gradient[i])
    half = -0.5 * eta * eta
    for k in range(kernel.leapfrog_steps):
        kick = half if k == 0 and fault != WHOLE_KICK else 2.0 * half
        if is_exact(problem):
            leapfrog(problem, client, kick, x, velocity, corrected, correction, slot, work.scratch, gradient)
        else:
            part = 0.5 * half if fault == ONE_KICK and k > 0 else half
            for draw in range(max(0, 2 * k - 1), 2 * k + 1):
                number = 2 * k if fault == POINT_SHARES else draw - (fault == STEP_SHARES and k > 0)
                stochastic_gradient(problem, lane_set, client, step, number, x, work.scratch, gradient)
                for i in range(x.shape[0]):
                    lanes.axpy(velocity[i], part, gradient[i])
            drift(kick, x, velocity, corrected, correction, slot)
