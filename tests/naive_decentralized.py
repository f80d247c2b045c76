"""Slow twins of DE-SGLD and DE-SGHMC: plain Python, one number at a time, from equations (2), (32), (33).

Random numbers come from the twin of the streams in `naive`. Both follow the components f_i = w_i f_(i).
"""

from __future__ import annotations

import math

import numpy as np
from naive import Streams, first_point, stochastic_gradient

from fedsim.random.streams import OWN_NOISE


def first_points(start, n_clients, dim, seed, replica):
    """Every client's start: one of its own, or the same for all."""
    if start is not None and not hasattr(start, "cov") and np.ndim(start) == 2:
        return [[float(entry) for entry in row] for row in start]
    return [list(first_point(start, dim, seed, replica)) for _ in range(n_clients)]


def step_parts(problem, algorithm, streams, step, x):
    """What both algorithms read from the old positions: mixed neighbours, component gradients, normals."""
    n_clients, dim = problem.n_clients, problem.dim
    mixed = [[sum(float(algorithm.mixing[i, j]) * x[j][a] for j in range(n_clients)) for a in range(dim)]
             for i in range(n_clients)]
    gradients = [[float(problem.weights[i]) * entry for entry in stochastic_gradient(
        problem, streams, i, step, x[i])] for i in range(n_clients)]
    return mixed, gradients, [streams.of_step(OWN_NOISE, step, i, dim) for i in range(n_clients)]


def de_sgld(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """Equation (2): positions of all clients after every iteration, (n_rounds + 1, N, d)."""
    n_clients, dim = problem.n_clients, problem.dim
    streams = Streams(seed, replica, single)
    x = first_points(start, n_clients, dim, seed, replica)
    path = [x]
    for step in range(n_rounds):
        eta = float(algorithm.schedule.at(step))
        mixed, gradients, normals = step_parts(problem, algorithm, streams, step, x)
        x = [[mixed[i][a] - eta * gradients[i][a] + math.sqrt(2 * eta) * normals[i][a] for a in range(dim)]
             for i in range(n_clients)]
        path.append(x)
    return np.array(path)


def de_sghmc(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """Equations (32) and (33): positions of all clients after every iteration, (n_rounds + 1, N, d)."""
    n_clients, dim = problem.n_clients, problem.dim
    streams, gamma = Streams(seed, replica, single), algorithm.friction
    x = first_points(start, n_clients, dim, seed, replica)
    given = np.zeros(dim) if algorithm.start_velocity is None else np.asarray(algorithm.start_velocity)
    v = [[float(entry) for entry in (given if given.ndim == 1 else given[i])] for i in range(n_clients)]
    path = [x]
    for step in range(n_rounds):
        eta = float(algorithm.schedule.at(step))
        mixed, gradients, normals = step_parts(problem, algorithm, streams, step, x)
        v = [[v[i][a] - eta * (gamma * v[i][a] + gradients[i][a])
              + math.sqrt(2 * gamma * eta) * normals[i][a] for a in range(dim)] for i in range(n_clients)]
        x = [[mixed[i][a] + eta * v[i][a] for a in range(dim)] for i in range(n_clients)]
        path.append(x)
    return np.array(path)
