"""Stale SGLD and SGHMC with one fault each, where minibatches are not normal and ages are a server's."""

from __future__ import annotations

import numpy as np
from examples_of.stale import mean_model

import fedsim as fs
from fedsim.algorithms.bodies import advance, step_size_at
from fedsim.algorithms.stale import StaleKernel, move, past_place
from fedsim.problems.gradients import stochastic_gradient
from fedsim.random.normals import normals
from fedsim.random.slots import Normals, Numbers, normal_row
from fedsim.random.streams import OWN_NOISE
from fedsim.vector import lanes
from mutants import Case, Mutants

WORKERS, FRICTION = fs.Workers(4, "exponential", seed=7), 4.0
SIZES = {"n_rounds": 12, "n_replicas": 100_000, "seed": 31, "record": [1, 3, 6]}
STALE_SGLD = Mutants(fs.StaleSGLD, StaleKernel, {
    "workers": Case(mean_model(3), lambda cls: cls(0.008, WORKERS), [1.0])}, **SIZES)
STALE_SGHMC = Mutants(fs.StaleSGHMC, StaleKernel, {
    "momentum": Case(mean_model(3), lambda cls: cls(0.05, FRICTION, WORKERS), [1.0])}, **SIZES)


@STALE_SGLD.kernel_change("delay one too long", "workers")
def _(kernel, problem):
    ages = kernel.ages.values
    return kernel._replace(ages=kernel.ages._replace(values=np.minimum(ages + 1, np.arange(len(ages)))))


@STALE_SGLD.kernel_change("delay one too short", "workers")
def _(kernel, problem):
    return kernel._replace(ages=kernel.ages._replace(values=np.maximum(kernel.ages.values - 1, 0)))


TWICE = STALE_SGLD.switch("noise too large by sqrt(2)", "workers")
FRESH_PRIOR = STALE_SGLD.switch("fresh prior with stale likelihood", "workers")
NO_FRICTION = STALE_SGHMC.switch("momentum's noise without its friction", "momentum", FRESH_PRIOR + 1)


@advance.register(STALE_SGLD.kernel)
@advance.register(STALE_SGHMC.kernel)
def _update(kernel, problem, lane_set, work, round):
    fault, size, dim = kernel.fault, work.ring.shape[0] - 1, work.gradient.shape[0]
    per_draw, together = work.own.rows.shape[1] // dim, work.own.slots.shape[2]
    draw = round // per_draw
    if round % per_draw == 0 and draw % together == 0:
        normals(lane_set, OWN_NOISE, Numbers(draw), 0, work.own.rows[0])
    own = Normals(work.own.slots[0], draw % together, round % per_draw * dim)
    past, now = work.ring[past_place(kernel.ages, work.ring, lane_set, round)], work.ring[round % size]
    stochastic_gradient(problem, lane_set, 0, round, 0, past, work.scratch, work.gradient)
    for i in range(dim):
        if fault == FRESH_PRIOR:
            lanes.axpy_pair(work.gradient[i], 10.0, now[i], -10.0, past[i])
        if fault == TWICE:
            lanes.damp(normal_row(own, i), np.sqrt(2.0))
        if fault == NO_FRICTION:
            lanes.damp(normal_row(own, i), 1.0 / np.sqrt(FRICTION))
    move(kernel.dynamics, work, own, step_size_at(kernel.schedule, round), now, work.ring[(round + 1) % size])
    work.updates[0] = round + 1
