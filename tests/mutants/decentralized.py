"""DE-SGLD and DE-SGHMC with one fault each: in the round, which they share, and in a client's step."""

from __future__ import annotations

import numpy as np
from problems import quadratic

import fedsim as fs
from fedsim.algorithms.bodies import advance, step_size_at
from fedsim.algorithms.de_sghmc import DESGHMCKernel
from fedsim.algorithms.de_sgld import DESGLDKernel
from fedsim.algorithms.gossip import Gossip, client_update, gossip_round, mix
from fedsim.problems.gradients import stochastic_gradient
from fedsim.random.normals import normals
from fedsim.random.slots import Normals, Numbers, normal_row
from fedsim.random.streams import OWN_NOISE
from fedsim.vector import lanes
from fedsim.vector.compile import inner
from mutants import Case, Mutants

PROBLEM, PATH, START = quadratic(4, 2, noise="cov"), fs.network.path(4), [3.0, -2.0]
SIZES = {"n_rounds": 4, "n_replicas": 60_000, "seed": 61}
DE_SGLD = Mutants(fs.DESGLD, DESGLDKernel, {
    "Langevin": Case(PROBLEM, lambda cls: cls(fs.schedules.Harmonic(4.0, 0.3), PATH), START)}, **SIZES)
DE_SGHMC = Mutants(fs.DESGHMC, DESGHMCKernel, {
    "Hamiltonian": Case(PROBLEM, lambda cls: cls(0.4, 2.0, PATH, [2.0, -1.0]), START)}, **SIZES)


# what Python hands over

@DE_SGLD.kernel_change("weights of the components forgotten", "Langevin")
def _(kernel, problem):
    return kernel._replace(weights=np.full(problem.n_clients, 1.0 / problem.n_clients))


@DE_SGLD.kernel_change("gradients of f_(i) instead of f_i", "Langevin")
def _(kernel, problem):
    return kernel._replace(weights=np.ones(problem.n_clients))


@DE_SGLD.kernel_change("no mixing", "Langevin")
def _(kernel, problem):
    return kernel._replace(gossip=fs.DESGLD(0.1, np.eye(problem.n_clients))._gossip())


@DE_SGLD.kernel_change("a neighbour too few", "Langevin")
def _(kernel, problem):
    first, columns, weights = kernel.gossip
    kept = np.setdiff1d(np.arange(len(columns)), first[1:] - 1)
    return kernel._replace(gossip=Gossip(first - np.arange(len(first)), columns[kept], weights[kept]))


def _without_velocity(self):
    fs.DESGHMC.__post_init__(self)
    object.__setattr__(self, "start_velocity", None)


DE_SGHMC.override("velocities at the start forgotten", "Hamiltonian", __post_init__=_without_velocity)


# the round

GAUSS_SEIDEL = DE_SGLD.switch("Gauss-Seidel instead of synchronous gossip", "Langevin")
AT_MIXED = DE_SGLD.switch("gradient at the mixed point", "Langevin")
AT_NEIGHBOUR = DE_SGLD.switch("gradient at a neighbour's point", "Langevin")
COMMON_NOISE = DE_SGLD.switch("noise common to all clients", "Langevin")

advance.register(DE_SGHMC.kernel)(gossip_round)


@advance.register(DE_SGLD.kernel)
def _round(kernel, problem, lane_set, work, round):
    fault, turn, dim = kernel.fault, work.turn[0], work.gradient.shape[0]
    per_draw, together = work.own.rows.shape[1] // dim, work.own.slots.shape[2]
    for client in range(work.positions.shape[1]):
        x, new = work.positions[turn, client], work.positions[1 - turn, client]
        room = min(client // together, work.own.rows.shape[0] - 1)
        if round % per_draw == 0 and client % together == 0:
            normals(lane_set, OWN_NOISE, round // per_draw, Numbers(client), work.own.rows[room])
        gossip = kernel.gossip
        mix(gossip.first[client:client + 2], gossip.columns, gossip.weights, work.positions[turn], 0, 1, new)
        at = new if fault == AT_MIXED else work.positions[turn, 0] if fault == AT_NEIGHBOUR else x
        stochastic_gradient(problem, lane_set, client, round, 0, at, work.scratch, work.gradient)
        slot = 0 if fault == COMMON_NOISE else client % together
        own = Normals(work.own.slots[room], slot, round % per_draw * dim)
        client_update(kernel, work, round, client, kernel.weights[client], own, new)
        if fault == GAUSS_SEIDEL:
            for i in range(dim):
                lanes.copy(x[i], new[i])
    work.turn[0] = 1 - turn


# the step of a client

TWICE = DE_SGLD.switch("Langevin noise too large by sqrt(2)", "Langevin")
OVER_WEIGHT = DE_SGLD.switch("Langevin noise over the weight", "Langevin")
LATE = DE_SGLD.switch("Langevin schedule late", "Langevin")


@client_update.register(DE_SGLD.kernel)
def _langevin_step(kernel, work, step, client, weight, own, new):
    fault, eta = kernel.fault, step_size_at(kernel.schedule, step + (kernel.fault == LATE))
    size = np.sqrt((4.0 if fault == TWICE else 2.0) * eta)
    private = 1.0 / weight if fault == OVER_WEIGHT else 1.0
    for i in range(new.shape[0]):
        lanes.langevin(new[i], eta * weight, work.gradient[i], size, private, normal_row(own, i))


MIXED = DE_SGHMC.switch("velocity mixed", "Hamiltonian")
OLD = DE_SGHMC.switch("old velocity used", "Hamiltonian")
TWICE_TOO = DE_SGHMC.switch("Hamiltonian noise too large by sqrt(2)", "Hamiltonian")
NO_FRICTION = DE_SGHMC.switch("noise without friction", "Hamiltonian")
DAMPED = DE_SGHMC.switch("gradient damped too", "Hamiltonian")


@inner
def mix_velocity(gossip, velocities, client, i):
    """v_i <- sum_j W_ij v_j in place, which the algorithm does not do."""
    neighbours = range(gossip.first[client], gossip.first[client + 1])
    for k in neighbours:
        if gossip.columns[k] == client:
            lanes.damp(velocities[client, i], gossip.weights[k])
    for k in neighbours:
        if gossip.columns[k] != client:
            lanes.axpy(velocities[client, i], gossip.weights[k], velocities[gossip.columns[k], i])


@client_update.register(DE_SGHMC.kernel)
def _momentum_step(kernel, work, step, client, weight, own, new):
    fault, eta = kernel.fault, step_size_at(kernel.schedule, step)
    keep, friction = 1.0 - eta * kernel.friction, 1.0 if fault == NO_FRICTION else kernel.friction
    size = np.sqrt((4.0 if fault == TWICE_TOO else 2.0) * friction * eta)
    pull = eta * weight * (keep if fault == DAMPED else 1.0)
    for i in range(new.shape[0]):
        velocity = work.velocities[client, i]
        if fault == OLD:
            lanes.axpy(new[i], eta, velocity)
        if fault == MIXED:
            mix_velocity(kernel.gossip, work.velocities, client, i)
        lanes.damp(velocity, keep)
        lanes.langevin(velocity, pull, work.gradient[i], size, 1.0, normal_row(own, i))
        if fault != OLD:
            lanes.axpy(new[i], eta, velocity)
