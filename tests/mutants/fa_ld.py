"""FA-LD with one fault each. In two dimensions every step has a draw of normals to itself."""

from __future__ import annotations

import numpy as np
from problems import contrasted

import fedsim as fs
from fedsim.algorithms.bodies import advance, step_size_at
from fedsim.algorithms.clients import (
    IndependentClients,
    average_clients,
    choose_clients,
    local_update,
    step_clients,
)
from fedsim.algorithms.fa_ld import FALDKernel
from fedsim.algorithms.federated import begin_round, receive, send
from fedsim.problems.gradients import langevin, stochastic_gradient
from fedsim.random.normals import normals
from fedsim.random.slots import Normals, normal_row
from fedsim.random.streams import OWN_NOISE, SHARED_NOISE
from fedsim.vector import lanes
from fedsim.vector.compile import dispatched, inner
from mutants import Case, Mutants

HARMONIC = fs.schedules.Harmonic(5.0, 0.7)
THREE, FOUR = contrasted(3, [0.5, 0.3, 0.2]), contrasted(4, None)
SELDOM = fs.IndependentParticipation([0.3, 0.6, 0.4])
FA_LD = Mutants(fs.FALD, FALDKernel, {
    "full": Case(THREE, lambda cls: cls(HARMONIC, 3, 0.6, 0.4)),
    "own noise": Case(THREE, lambda cls: cls(HARMONIC, 3, 3.0, 0.0), n_replicas=200_000),
    # without a difference of curvatures the amount of shared noise does not show at all
    "from paper": Case(contrasted(2, None, 0.01), lambda cls: cls.from_paper(
        fs.schedules.Harmonic(3.0, 0.01), 3, 3.0, 0.5)),
    "scheme I": Case(THREE, lambda cls: cls(HARMONIC, 3, 0.6, 0.2, fs.Participation(3, True))),
    "scheme II": Case(FOUR, lambda cls: cls(HARMONIC, 3, 0.6, 0.2, fs.Participation(2, False))),
    "sets": Case(THREE, lambda cls: cls(HARMONIC, 3, 0.6, 0.2, fs.FixedParticipation(
        [[0], [1, 2], [0, 2]], cyclic=True))),
    "answers": Case(THREE, lambda cls: cls(HARMONIC, 3, 0.6, 0.2, SELDOM), [2.0, -3.0]),
    "unbiased answers": Case(THREE, lambda cls: cls(HARMONIC, 3, 0.6, 0.2, fs.IndependentParticipation(
        [0.5, 0.9, 0.4], unbiased=True))),
}, n_rounds=5, n_replicas=50_000, seed=21)


# what Python hands over

@FA_LD.kernel_change("noise too large by 2 percent", "own noise")
def _(kernel, problem):
    return kernel._replace(temperature=1.02**2 * kernel.temperature)


@FA_LD.kernel_change("temperature dropped", "full")
def _(kernel, problem):
    return kernel._replace(temperature=1.0)


FA_LD.override("the paper's rho taken for its square", "from paper",
               from_paper=classmethod(lambda cls, eta, K, tau, rho: cls(eta, K, tau, rho)))


def clients_change(name, case):
    """A kernel whose clients have other fields: a dict, from the right ones and the problem's weights."""
    def add(change):
        @FA_LD.kernel_change(name, case)
        def changed(kernel, problem):
            return kernel._replace(clients=kernel.clients._replace(**change(kernel.clients, problem.weights)))

        return change

    return add


@clients_change("private noise over the weight, not its root", "full")
def _(clients, weights):
    return {"private": 1.0 / weights}


@clients_change("weights ignored in the average", "full")
def _(clients, weights):
    return {"shares": np.full_like(weights, 1.0 / len(weights))}


@clients_change("scheme I draws uniformly", "scheme I")
def _(clients, weights):
    return {"cumulative_weights": np.cumsum(np.full_like(weights, 1.0 / len(weights)))}


@clients_change("scheme I: a client's weight used twice", "scheme I")
def _(clients, weights):
    return {"private": clients.private**2}


@clients_change("scheme II draws with replacement", "scheme II")
def _(clients, weights):
    return {"replace": True}


@clients_change("sets: shares not normalised", "sets")
def _(clients, weights):
    return {"shares": weights[clients.members]}


@clients_change("sets: equal shares", "sets")
def _(clients, weights):
    sizes = np.diff(clients.first)
    return {"shares": np.repeat(1.0 / sizes, sizes)}


@clients_change("sets: the cycle begins a set late", "sets")
def _(clients, weights):
    return vars_of(fs.FixedParticipation([[1, 2], [0, 2], [0]]), weights)


@clients_change("sets: the last set never comes", "sets")
def _(clients, weights):
    return {"period": clients.period - 1}


def vars_of(sets, weights):
    """Fields of other sets."""
    return {"first": sets.first, "members": sets.members, "shares": sets._flat_shares(weights)}


@clients_change("answers: probabilities of the next client", "answers")
def _(clients, weights):
    return {"probabilities": np.roll(clients.probabilities, 1)}


@clients_change("answers: weights ignored", "answers")
def _(clients, weights):
    return {"weights": np.full_like(weights, 1.0 / len(weights))}


@clients_change("answers: everybody answers", "answers")
def _(clients, weights):
    return {"probabilities": np.ones_like(weights)}


@clients_change("answers: an average where inverse probabilities weigh", "unbiased answers")
def _(clients, weights):
    return {"unbiased": False}


@clients_change("answers: inverse probabilities weigh where an average is meant", "answers")
def _(clients, weights):
    return {"unbiased": True}


@FA_LD.arrays_change("gradient noise dropped", "full")
def _(arrays):
    return arrays._replace(factors=0.0 * arrays.factors)


@FA_LD.arrays_change("gradient noise doubled", "full")
def _(arrays):
    return arrays._replace(factors=2.0 * arrays.factors)


@FA_LD.arrays_change("gradient noise uncorrelated", "full")
def _(arrays):
    return arrays._replace(factors=np.eye(2) * arrays.factors.sum(axis=2, keepdims=True))


# the round

LATE = FA_LD.switch("synchronisation a local step late", "full")
EARLY = FA_LD.switch("synchronisation a local step early", "full")
LATE_I = FA_LD.switch("scheme I: late synchronisation", "scheme I")
UNHEARD = FA_LD.switch("no broadcast after the average", "full")
SAME_CLIENTS = FA_LD.switch("scheme I: the same clients in every round", "scheme I")
ONE_CLIENT = FA_LD.switch("scheme I: one client fills all slots", "scheme I")
NO_SWAP = FA_LD.switch("scheme II: a shuffle that forgets to swap", "scheme II")
FIRST_SHARES = FA_LD.switch("sets: shares of the first set in every round", "sets")
RESET = FA_LD.switch("answers: a round without any begins at zero", "answers")
NOT_DIVIDED = FA_LD.switch("answers: shares not normalised", "answers")
NO_CHANCE = FA_LD.switch("answers: weights not over probabilities", "unbiased answers")
SAME_ANSWERS = FA_LD.switch("answers: the same in every round", "answers")
SHARE = FA_LD.switch("scheme II averages over all clients' number", "scheme II")


@advance.register(FA_LD.kernel)
def _round(kernel, problem, lane_set, work, round):
    fault = kernel.fault
    active = choose_clients(kernel.clients, lane_set, work,
                            0 if fault == SAME_CLIENTS or fault == SAME_ANSWERS else round)
    for slot in range(active):
        if not (fault == UNHEARD and round > 0):
            receive(kernel, work, slot)
    begin_round(kernel, problem, lane_set, work, round)
    first = round * kernel.local_steps
    last = first + kernel.local_steps + (fault == LATE or fault == LATE_I) - (fault == EARLY)
    shared = Normals(work.shared.slots[0], 0, 0)
    for step in range(first, last):
        if kernel.shared_noise > 0.0:
            normals(lane_set, SHARED_NOISE, step, 0, work.shared.rows[0])
        step_clients(kernel.clients, kernel, problem, lane_set, work, step, True, active, shared)
    for slot in range(active):
        send(kernel, work, slot)
    reweigh(kernel.clients, work, fault, active)
    average_clients(kernel.clients, work, 0 if fault == FIRST_SHARES else round, active)


@dispatched
def reweigh(clients, work, fault, active):
    """Other shares, of those who answered."""


@reweigh.otherwise
def _keep_shares(clients, work, fault, active):
    pass


@reweigh.register(IndependentClients)
def _change_shares(clients, work, fault, active):
    for b in range(work.drawn.shape[1]):
        total = 0.0
        for slot in range(active):
            total += work.lane_shares[slot, b]
            if (fault == NOT_DIVIDED or fault == NO_CHANCE) and work.lane_shares[slot, b] > 0.0:
                work.lane_shares[slot, b] = clients.weights[work.drawn[slot, b]]
        for i in range(work.server.shape[0]):
            if fault == RESET and total == 0.0:
                work.server[i, b] = 0.0


@begin_round.register(FA_LD.kernel)
def _begin_round(kernel, problem, lane_set, work, round):
    for b in range(work.drawn.shape[1]):
        if kernel.fault == ONE_CLIENT:
            work.drawn[1:, b] = work.drawn[0, b]
        if kernel.fault == NO_SWAP and work.drawn[1, b] == 0:  # of two: client 0 stands where the first stood
            work.drawn[1, b] = work.drawn[0, b]


@send.register(FA_LD.kernel)
def _send(kernel, work, slot):
    if kernel.fault == SHARE:
        for i in range(work.server.shape[0]):
            lanes.damp(work.local[slot, i], work.local.shape[0] / work.pool.shape[0])


# the local step

TWICE = FA_LD.switch("noise too large by sqrt(2)", "full")
NO_ROOT = FA_LD.switch("shared noise without its square root", "full")
NEXT_STEP = FA_LD.switch("schedule one step late", "full")
ROUNDS = FA_LD.switch("schedule counts rounds", "full")
AT_SERVER = FA_LD.switch("gradient at the server's value", "full")
SHARED_EACH = FA_LD.switch("shared noise drawn for each client", "full")
SHARED_AGAIN = FA_LD.switch("shared noise the same in every round", "full")
OWN_AGAIN = FA_LD.switch("own noise the same in every round", "full")
GRADIENT_AGAIN = FA_LD.switch("gradient noise the same at every step", "full")
OWN_OF_FIRST = FA_LD.switch("own noise of the group's first client", "full")
OWN_TWICE = FA_LD.switch("scheme I: fresh noise for a client drawn twice", "scheme I")
OWN_OF_SLOT = FA_LD.switch("scheme I: own noise of the slot's number", "scheme I")


@inner
def redraw(lane_set, tag, position, client, room, out):
    """Other normals `out` for a client, drawn into `room` (d, B) first."""
    normals(lane_set, tag, position, client, room)
    for i in range(room.shape[0]):
        lanes.copy(normal_row(out, i), room[i])


@local_update.register(FA_LD.kernel)
def _langevin_step(kernel, problem, lane_set, work, slot, step, client, private, own, shared):
    fault, x, room, within = kernel.fault, work.local[slot], work.gradient, step % kernel.local_steps
    counted = step + 1 if fault == NEXT_STEP else step // kernel.local_steps if fault == ROUNDS else step
    eta = step_size_at(kernel.schedule, counted)
    spread, fraction = 2.0 * eta * kernel.temperature, kernel.shared_noise
    size = np.sqrt(spread * (1.0 - fraction) * (2.0 if fault == TWICE else 1.0))
    shared_size = np.sqrt(spread * fraction * (fraction if fault == NO_ROOT else 1.0))
    if fault == SHARED_EACH:
        redraw(lane_set, SHARED_NOISE, step, slot + 1, room, shared)
    if fault == SHARED_AGAIN:
        redraw(lane_set, SHARED_NOISE, within, 0, room, shared)
    if fault == OWN_AGAIN:
        redraw(lane_set, OWN_NOISE, within, client, room, own)
    if fault == OWN_TWICE:
        redraw(lane_set, OWN_NOISE + 8 + slot, step, client, room, own)
    if fault == OWN_OF_SLOT:
        redraw(lane_set, OWN_NOISE, step, slot, room, own)
    drawn = Normals(own.values, 0 if fault == OWN_OF_FIRST else own.slot, own.first)
    if fault == AT_SERVER:
        stochastic_gradient(problem, lane_set, client, step, 0, work.server, work.scratch, room)
        for i in range(x.shape[0]):
            lanes.langevin_shared(x[i], eta, room[i], size, private, normal_row(drawn, i), shared_size,
                                  normal_row(shared, i))
    else:
        moment = 0 if fault == GRADIENT_AGAIN else step
        langevin(problem, lane_set, client, moment, x, work.scratch, room, eta, size, private, drawn,
                 shared_size, shared)
