"""A round of a sampler by brute force: its tape as it was written, on numbers.

No merging of sums, no loops, no blocks: matrix and noise are read off unit vectors and unit noises.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fedsim.samplers import tape as tapes


def tape_of(algorithm, n_clients, weights, n_rounds=None):
    """The raw nodes, the names of the state, and the nodes of its new values."""
    tape = tapes.Tape(n_clients, np.asarray(weights))
    with tapes.recording(tape):
        given = [tape.add("state", part) for part in algorithm._state]
        made = type(algorithm)._function(*given, **algorithm._given(n_clients, n_rounds))
    made = made if isinstance(made, tuple) else (made,)
    return tape.nodes, list(algorithm._state), [one.node for one in made]


def one_round(algorithm, problem, history, normals, number=0, exact=True, n_rounds=None):
    """New values by name: `history` has the state of this round and of those before, the latest first;
    `normals(node, common)` gives (N, d)."""
    one = algorithm._follows == "global"
    N = 1 if one else problem.n_clients
    weights = np.ones(1) if one else problem.weights
    nodes, names, out = tape_of(algorithm, N, weights, n_rounds)
    scale = weights if algorithm._follows == "components" else np.ones(N)
    values: list[Any] = []
    for n, (kind, payload, terms) in enumerate(nodes):
        total = np.zeros((N, problem.dim))
        for m, c in terms:
            factor = c[number if len(c) > 1 else 0][:, None] if isinstance(c, np.ndarray) else c
            total = total + factor * values[m]
        if kind == "state":
            values.append(history[0][payload])
        elif kind == "past":
            values.append(history[min(payload[1], len(history) - 1)][payload[0]])
        elif kind == "noise":
            values.append(normals(n, payload))
        elif kind == "grad":
            if one:
                rows = [sum(w * problem.gradient(c, total[0]) for c, w in enumerate(problem.weights))]
            else:
                rows = [scale[c] * problem.gradient(c, total[c]) for c in range(N)]
            values.append(np.stack(rows) + (0.0 if exact else normals(("gradient", n), False)))
        elif kind == "mix":
            values.append(payload[number % len(payload)] @ total)
        elif kind == "mean":
            row = payload[number % len(payload)]
            values.append(np.broadcast_to(row @ total, total.shape))
        else:
            values.append(total)
    return {name: values[m] for name, m in zip(names, out, strict=True)}


def noises_of(algorithm, n_clients, weights):
    """Nodes of noise: (node, common)."""
    return [(n, node.payload) for n, node in enumerate(tape_of(algorithm, n_clients, weights)[0])
            if node.kind == "noise"]


def law_of(algorithm, problem, n_rounds, start):
    """Mean (d,) and covariance (d, d) of the average of the first part, and means (N, d) of the clients,
    from a point; gradients are exact."""
    N = 1 if algorithm._follows == "global" else problem.n_clients
    weights, d = np.ones(1) if N == 1 and algorithm._follows == "global" else problem.weights, problem.dim
    names, first = algorithm._state, algorithm._state[0]
    begin = {name: np.broadcast_to(start if name == first else np.zeros(d), (N, d)) for name in names}

    def run(normals):
        history = [begin]
        for number in range(n_rounds):
            history.insert(0, one_round(algorithm, problem, history,
                                        lambda n, common, number=number: normals(number, n, common), number,
                                        n_rounds=n_rounds))
        return history[0][first]

    centre = run(lambda *_: np.zeros((N, d)))
    cov = np.zeros((d, d))
    for number in range(n_rounds):
        for node, common in noises_of(algorithm, N, weights):
            for c in [None] if common else range(N):
                for i in range(d):
                    unit = np.zeros((N, d))
                    unit[slice(None) if c is None else c, i] = 1.0
                    moved = run(lambda r, n, _, key=(number, node), unit=unit:
                                unit if (r, n) == key else np.zeros((N, d))) - centre
                    cov += np.outer(moved.mean(0), moved.mean(0))
    return centre.mean(0), cov, centre


def stacked_law(algorithm, problem, n_rounds, start):
    """Mean and covariance of the first part of all clients at every round, by unit noises."""
    N, d, first = problem.n_clients, problem.dim, algorithm._state[0]
    begin = {name: np.broadcast_to(start if name == first else np.zeros(d), (N, d))
             for name in algorithm._state}

    def run(normals):
        history = [begin]
        for number in range(n_rounds):
            history.insert(0, one_round(algorithm, problem, history, lambda n, common, number=number: normals(
                number, n), number))
        return np.stack([one[first].ravel() for one in history[::-1]])

    centre, cov = run(lambda *_: np.zeros((N, d))), np.zeros((n_rounds + 1, N * d, N * d))
    none, noises = np.zeros((N, d)), noises_of(algorithm, N, problem.weights)
    for number, (node, common) in itertools.product(range(n_rounds), noises):
        for c, i in np.ndindex(1 if common else N, d):
            unit = np.zeros((N, d))
            unit[slice(None) if common else c, i] = 1.0
            moved = run(lambda r, n, key=(number, node), unit=unit: unit if (r, n) == key else none) - centre
            cov += moved[:, :, None] * moved[:, None]
    return centre, cov
