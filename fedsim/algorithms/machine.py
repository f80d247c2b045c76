"""The machine that runs the program of any sampler: compiled once for each class of problems, as a kernel is.

All clients make a step before the next one begins. Noise j of a round has the address of local step
round J + j of the algorithms that come with kernels, for J noises a round. A gradient has that of the noise
that is drawn with it, or was drawn last, and is told apart by how many were evaluated since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..problems.gradients import langevin, stochastic_gradient
from ..random.normals import draw, steps_per_draw
from ..random.participants import draw_answers, draw_clients, uniform
from ..random.slots import NormalRoom, Numbers, normal_room, normal_row
from ..random.streams import OWN_NOISE, SHARED_NOISE
from ..samplers import operations as ops
from ..samplers.nodes import Each
from ..samplers.operations import Program
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import dispatched, inner, spliced
from ..vector.memory import aligned, signal_of, signals
from ..vector.trajectories import Modes, NoModes, gradient_in_modes, leaps, turn
from .bodies import advance, observe
from .each_bodies import apply_each, draw_uniforms, functions_of, read_potential
from .gossip import mix


class MachineKernel(NamedTuple):
    """Compiled parameters: those of `Program`, and the functions of `each`."""

    code: Any
    steps: Any
    coefficients: Any
    numbers: Array
    matrices: Any
    first: Any
    columns: Any
    entries: Array
    draws: Any
    widths: Any
    uniforms: Any
    marks: Any
    functions: Any
    n_clients: int
    modes: Any


class MachineWork(NamedTuple):
    """State of a block of B lanes: rows (slots, d, B). Register r of client c is at base[r] + c width[r].

    `shares` (draws N, B) are of clients drawn at random, `chosen` (draws, B) matrices; `turns` counts those
    of the loops that have begun. A round ends early once ``stop[0]`` is not zero, and counts its steps in
    ``stop[1]``.
    """

    rows: Array
    base: Any
    widths: Any
    turns: Any
    own: NormalRoom
    shared: NormalRoom
    gradient: Array
    scratch: Any
    drawn: Any
    pool: Any
    shares: Array
    chosen: Any
    uniforms: Array
    n_clients: Any
    stop: Any


@inner
def _averaged(shares, stride, n_clients, rows, base, width, out):
    for i in range(rows.shape[1]):
        lanes.fill(rows[out, i], 0.0)
        for client in range(n_clients):
            if shares[stride * client] != 0.0:
                lanes.axpy(rows[out, i], shares[stride * client], rows[base + width * client, i])


@inner
def _averaged_by_lanes(shares, n_clients, rows, base, width, out):
    for i in range(rows.shape[1]):
        lanes.fill(rows[out, i], 0.0)
        for client in range(n_clients):
            lanes.axpy(rows[out, i], shares[client], rows[base + width * client, i])


@inner
def _mixed_by_lanes(first, columns, entries, chosen, client, n_clients, rows, base, width, out):
    for i in range(rows.shape[1]):
        for b in range(rows.shape[2]):
            row = chosen[b] * n_clients + client
            total = 0.0
            for k in range(first[row], first[row + 1]):
                total += entries[k] * rows[base + width * columns[k], i, b]
            rows[out, i, b] = total


@inner
def _draw_shares(lane_set, position, kind, active, weights, drawn, pool, shares):
    """Shares (N, B) of clients that are drawn in every lane."""
    n_clients = pool.shape[0]
    for client in range(n_clients):
        lanes.fill(shares[client], 0.0)
    if kind <= ops.UNREPLACED:
        draw_clients(lane_set, position, kind == ops.REPLACED, weights[:n_clients], drawn[:active], pool)
        for slot in range(active):
            for b in range(shares.shape[1]):
                shares[drawn[slot, b], b] += 1.0 / active
    else:
        draw_answers(lane_set, position, weights[:n_clients], weights[n_clients:], kind == ops.UNBIASED, pool,
                     shares)
        for slot in range(n_clients - 1, -1, -1):  # slots hold clients in ascending order
            for b in range(shares.shape[1]):
                share, client = shares[slot, b], pool[slot, b]
                if client != slot:
                    shares[slot, b] = 0.0
                    if share != 0.0:
                        shares[client, b] = share


@inner
def _choose(lane_set, position, cumulative, chosen):
    for b in range(chosen.shape[0]):
        u = uniform(lane_set, b, position, 0)
        place = 0
        while place < cumulative.shape[0] - 1 and cumulative[place] <= u:
            place += 1
        chosen[b] = place


@inner
def _linear(op, rows, out, a, b, k, l):  # noqa: E741
    for i in range(rows.shape[1]):
        if op == ops.SCALE:
            if k == 1.0:
                lanes.copy(rows[out, i], rows[a, i])
            else:
                lanes.scale(rows[out, i], k, rows[a, i])
        elif op == ops.PAIR:
            lanes.scale_pair(rows[out, i], k, rows[a, i], l, rows[b, i])
        elif op == ops.ADD:
            lanes.axpy(rows[out, i], k, rows[a, i])
        elif op == ops.ADD_PAIR:
            lanes.axpy_pair(rows[out, i], k, rows[a, i], l, rows[b, i])
        else:
            lanes.fill(rows[out, i], k)


@inner
def _factor(places, numbers, number, round, client):
    place = places[number]
    at = place[0] + client * place[3]
    if place[1] > 1:  # a division takes as long as a short row
        at += (round % place[1]) * place[2]
    return numbers[at]


@spliced
def _turned(work, step, at, depth):
    """Where it goes on, and how many loops have begun, after a step that is not of clients."""
    after = at
    if step[0] == ops.LOOP:
        work.turns[depth] = step[1]
        depth += 1
    elif step[0] == ops.END:
        work.turns[depth - 1] -= 1
        if work.turns[depth - 1] > 0:
            after = step[1]
        else:
            depth -= 1
    elif step[0] == ops.EXCHANGE:
        one = work.base[step[1]]
        work.base[step[1]] = work.base[step[2]]
        work.base[step[2]] = one
    return after, depth


@spliced
def _draw_at_random(kernel, lane_set, work, round, number):
    drawing, position = kernel.draws[number], round * kernel.draws.shape[0] + number
    if drawing[0] == ops.MATRICES:
        _choose(lane_set, position, kernel.numbers[drawing[2]:drawing[2] + drawing[1]], work.chosen[number])
    else:
        begin = kernel.n_clients * number
        _draw_shares(lane_set, position, drawing[0], drawing[1],
                     kernel.numbers[drawing[2]:drawing[2] + 2 * kernel.n_clients], work.drawn, work.pool,
                     work.shares[begin:begin + kernel.n_clients])


@spliced
def _met(kernel, work, line, out, client, round):
    """out = what comes of the others: mixed, averaged, either at random."""
    base, width = work.base[line[2]], work.widths[line[2]]
    if line[0] == ops.MIX:
        matrix = kernel.matrices[line[7]]
        place = matrix[0] + (round % matrix[2]) * matrix[1] + client
        mix(kernel.first[place:place + 2], kernel.columns, kernel.entries, work.rows, base, width,
            work.rows[out])
    elif line[0] == ops.MEAN:
        shares = kernel.coefficients[line[4]]
        _averaged(kernel.numbers[shares[0] + (round % shares[1]) * shares[2]:], shares[3], kernel.n_clients,
                  work.rows, base, width, out)
    elif kernel.draws[line[7], 0] == ops.MATRICES:
        first = kernel.matrices[kernel.draws[line[7], 3], 0]
        _mixed_by_lanes(kernel.first[first:], kernel.columns, kernel.entries, work.chosen[line[7]], client,
                        kernel.n_clients, work.rows, base, width, out)
    else:
        _averaged_by_lanes(work.shares[kernel.n_clients * line[7]:], kernel.n_clients, work.rows, base, width,
                           out)


@dispatched
def along_modes(modes: Any, rows: Array, line: Any, client: int, out: int, a: int, b: int, c: int, k: float,
                l: float, m: float) -> None:  # noqa: E741
    """Turns, gradients and leaps along the eigenvectors of a client's curvature."""


@along_modes.register(Modes)
def _along_modes(modes, rows, line, client, out, a, b, c, k, l, m):  # noqa: E741
    if line[0] == ops.LEAP:
        leaps(modes, client, k, l, m, line[7], rows[out], rows[c], rows[a], rows[b])
    elif line[0] == ops.MODES_GRAD:
        gradient_in_modes(modes, client, rows[a], rows[out])
    else:
        turn(rows[out], modes.transposed if line[0] == ops.TURN else modes.vectors, rows[a], client)


@along_modes.register(NoModes)
def _no_modes(modes, rows, line, client, out, a, b, c, k, l, m):  # noqa: E741
    pass


@spliced
def _disturbed(op, rows, out, a, k, l, m, own, shared):  # noqa: E741
    for i in range(rows.shape[1]):
        if op == ops.KICK:
            lanes.langevin(rows[out, i], k, rows[a, i], l, 1.0, normal_row(own, i))
        elif op == ops.DAMPED_KICK:
            lanes.damped(rows[out, i], m, k, rows[a, i], l, normal_row(own, i))
        elif op == ops.SHARED_KICK:
            lanes.langevin_shared(rows[out, i], k, rows[a, i], l, 1.0, normal_row(own, i), m,
                                  normal_row(shared, i))
        elif op == ops.NOISE:
            lanes.axpy(rows[out, i], k, normal_row(own, i))
        else:
            lanes.axpy(rows[out, i], k, normal_row(shared, i))


@spliced
def _operated(kernel, problem, lane_set, work, line, client, round, number, draws, calls, own,
              shared):
    """One operation of one client; returns how many gradients the part has evaluated after it."""
    rows, op, count = work.rows, line[0], 0
    out = work.base[line[1]] + work.widths[line[1]] * client
    a = work.base[line[2]] + work.widths[line[2]] * client
    k = _factor(kernel.coefficients, kernel.numbers, line[4], round, client)
    l = _factor(kernel.coefficients, kernel.numbers, line[5], round, client)  # noqa: E741
    m = _factor(kernel.coefficients, kernel.numbers, line[6], round, client)
    if op == ops.STEP:
        langevin(problem, lane_set, client, number, rows[out], work.scratch, work.gradient, k, l, 1.0, own, m,
                 shared)
        count = 1
    elif op == ops.GRAD:
        stochastic_gradient(problem, lane_set, client, number, draws + line[8], rows[a], work.scratch,
                            rows[out])
        count = line[8] + 1
    elif ops.MIX <= op <= ops.RANDOM:
        _met(kernel, work, line, out, client, round)
    elif op == ops.EACH:
        uniforms = work.uniforms[:kernel.uniforms[line[7]]]
        if uniforms.shape[0] > 0:
            draw_uniforms(lane_set, round * kernel.marks[4] + calls + line[8], client, uniforms)
        for i in range(rows.shape[1]):
            lanes.fill(rows[out, i], np.nan)
        apply_each(kernel.functions, line[7], rows, a, work.base[line[3]] + work.widths[line[3]] * client,
                   work.base[line[9]] + work.widths[line[9]] * client, uniforms, out)
    elif op == ops.POTENTIAL:
        read_potential(kernel.functions, problem, client, rows[a], work.scratch, k, rows[out])
    elif op >= ops.TURN:
        along_modes(kernel.modes, rows, line, client, out, a,
                    work.base[line[3]] + work.widths[line[3]] * client,
                    work.base[line[9]] + work.widths[line[9]] * client, k, l, m)
    elif op >= ops.NOISE:
        _disturbed(op, rows, out, a, k, l, m, own, shared)
    else:
        _linear(op, rows, out, a, work.base[line[3]] + work.widths[line[3]] * client, k, l)
    return count


@advance.register(MachineKernel)
def _run(kernel, problem, lane_set, work, round):
    dim, marks = work.rows.shape[1], kernel.marks
    per_draw = work.own.rows.shape[1] // dim
    own_step, shared_step = round * max(marks[0], 1), round * max(marks[1], 1)
    n_own = n_shared = draws = calls = depth = at = 0
    while at < kernel.steps.shape[0] and work.stop[0] == 0:
        step = kernel.steps[at]
        at += 1
        work.stop[1] += 1
        if step[0] == ops.DRAW:
            _draw_at_random(kernel, lane_set, work, round, step[1])
        elif step[0] != ops.CLIENTS:
            at, depth = _turned(work, step, at, depth)
        else:
            own_step += step[4] == 1 and n_own > 0
            shared_step += step[5] == 1 and n_shared > 0
            if (step[4] == 1 and n_own > 0) if marks[2] == 1 else (step[5] == 1 and n_shared > 0):
                draws = 0
            n_own += step[4]
            n_shared += step[5]
            most, number = 0, own_step if marks[2] == 1 else shared_step
            shared = draw(lane_set, work.shared, SHARED_NOISE, shared_step // per_draw, Numbers(0), 0,
                          shared_step, dim, step[5] == 1 and shared_step % per_draw == 0)
            for client in range(1 if step[3] == 1 else kernel.n_clients):
                own = draw(lane_set, work.own, OWN_NOISE, own_step // per_draw, Numbers(client), client,
                           own_step, dim, step[4] == 1 and own_step % per_draw == 0)
                for n in range(step[1], step[2]):
                    most = max(most, _operated(kernel, problem, lane_set, work, kernel.code[n], client, round,
                                               number, draws, calls, own, shared))
            draws += most
            for n in range(step[1], step[2]):
                calls += kernel.code[n, 0] == ops.EACH and kernel.uniforms[kernel.code[n, 7]] > 0


@observe.register(MachineWork)
def _observe(work, view, out):
    n_clients, rows, base, width = work.n_clients[0], work.rows, work.base[0], work.widths[0]
    for i in range(out.shape[0]):
        if view > 0:
            lanes.copy(out[i], rows[base + width * (view - 1), i])
        elif width == 0:
            lanes.copy(out[i], rows[base, i])
        else:
            lanes.scale(out[i], 1.0 / n_clients, rows[base, i])
            for client in range(1, n_clients):
                lanes.axpy(out[i], 1.0 / n_clients, rows[base + width * client, i])


def kernel_of(program: Program, functions: Sequence[Each], n_clients: int, modes: Any) -> MachineKernel:
    """The program as compiled code sees it."""
    reads_potentials = bool((program.code[:, 0] == ops.POTENTIAL).any())
    return MachineKernel(*program, functions_of(functions, reads_potentials), n_clients, modes)


def workspace_of(program: Program, starts: Sequence[int], problem: Any, start: Array,
                 dtype: Any) -> MachineWork:
    """Room for one block; the registers in `starts` begin at `start`: (d, B), or (N, d, B)."""
    dim, n_lanes = start.shape[-2:]
    N, per_draw = problem.n_clients, steps_per_draw(dim, dtype)
    sizes = np.where(program.widths == 1, N, 1)
    base = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = aligned((int(base[-1]), dim, n_lanes))
    for register in starts:
        rows[base[register]:base[register + 1]] = start
    drawn = program.draws
    clients = drawn[drawn[:, 0] != ops.MATRICES]
    some = N if len(clients) else 0
    return MachineWork(
        rows, base[:-1].copy(), program.widths.copy(),
        np.zeros(1 + int((program.steps[:, 0] == ops.LOOP).sum()), np.int64),
        normal_room(N, per_draw * dim, n_lanes, dtype, keep=per_draw > 1),
        normal_room(1, per_draw * dim, n_lanes, dtype), aligned((dim, n_lanes)),
        problem._scratch(dim, n_lanes, dtype),
        aligned((int(clients[:, 1].max(initial=0)), n_lanes), np.int64), aligned((some, n_lanes), np.int64),
        aligned((len(drawn) * some, n_lanes)),
        aligned((len(drawn) if len(clients) < len(drawn) else 0, n_lanes), np.int64),
        aligned((int(program.uniforms.max(initial=0)), n_lanes)), np.array([N]),
        signal_of(signals(1), 0))
