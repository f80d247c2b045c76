"""TEMPLATE of an algorithm's slow twin; it becomes `tests/naive_fa_new.py`.

FA-NEW in plain Python, one number at a time, written from the paper: kernels must agree with it to 1e-12.
"""

from __future__ import annotations

import math

import numpy as np
from naive import OWN_NOISE, SHARED_NOISE, Streams, draw_clients, first_point, stochastic_gradient


def fa_new(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """What one replica does: server values (n_rounds + 1, d)."""
    streams, weights = Streams(seed, replica, single), [float(weight) for weight in problem.weights]
    dim, shared = problem.dim, algorithm.shared_noise
    server = first_point(start, dim, seed, replica)
    path = [server]
    for round in range(n_rounds):
        drawn = range(len(weights)) if algorithm.participation is None else draw_clients(
            streams, round, algorithm.participation, weights)
        local = {client: list(server) for client in drawn}
        for step in range(round * algorithm.local_steps, (round + 1) * algorithm.local_steps):
            eta, common = float(algorithm.schedule.at(step)), streams.of_step(SHARED_NOISE, step, 0, dim)
            for client, x in local.items():
                gradient = stochastic_gradient(problem, streams, client, step, x)
                own = streams.of_step(OWN_NOISE, step, client, dim)
                local[client] = [
                    x[i] - eta * gradient[i] + math.sqrt(2 * eta * shared) * common[i]
                    + math.sqrt(2 * eta * (1 - shared) / weights[client]) * own[i] for i in range(dim)]
        shares = weights if algorithm.participation is None else [
            list(drawn).count(client) / len(drawn) for client in range(len(weights))]
        server = [sum(shares[c] * local[c][i] for c in local) for i in range(dim)]
        path.append(server)
    return np.array(path)
