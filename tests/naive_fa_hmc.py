"""Slow twin of FA-HMC: plain Python, one number at a time, from Algorithms 1, 3 and B.2 of the paper.

Random numbers come from the twin of the streams in `naive`. Within a local update, leapfrog step k
evaluates the gradient with draw 2k at its start and with draw 2k + 1 at its end.
"""

from __future__ import annotations

import math

import numpy as np
from naive import Streams, averaged, exact_gradient, first_point, stochastic_gradient, taking_part

from fedsim.random.streams import OWN_NOISE, SHARED_NOISE


def leapfrog(gradient, theta, p, eta, n_steps):
    """Algorithm 1: `gradient(theta, draw)` is evaluated twice in each step. Position and momentum."""
    dim = len(theta)
    for k in range(n_steps):
        g1 = gradient(theta, 2 * k)
        theta = [theta[i] + eta * p[i] - eta**2 / 2 * g1[i] for i in range(dim)]
        g2 = gradient(theta, 2 * k + 1)
        p = [p[i] - eta / 2 * g1[i] - eta / 2 * g2[i] for i in range(dim)]
    return theta, p


def correction(problem, algorithm, round, server, previous):
    """grad f(z) - grad f_c(z) for each client, or None where a round is not corrected (Algorithm B.2)."""
    n_clients, dim = problem.n_clients, problem.dim
    if algorithm.debias is None or (
            algorithm.debias == "stale" and round == 0 and algorithm.first_round == "none"):
        return None
    anchor = list(server) if algorithm.debias == "fresh" else previous
    each = [exact_gradient(problem, client, anchor) for client in range(n_clients)]
    mean = [sum(float(problem.weights[c]) * each[c][i] for c in range(n_clients)) for i in range(dim)]
    if algorithm.debias == "stale" and round == 0 and algorithm.first_round == "printed":
        mean = [0.0] * dim
    return [[mean[i] - each[c][i] for i in range(dim)] for c in range(n_clients)]


def fa_hmc(problem, algorithm, n_rounds, seed, replica, start=None, single=False):
    """FA-HMC, Algorithm 3, debiased by Algorithm B.2: server values (n_rounds + 1, d)."""
    streams = Streams(seed, replica, single)
    weights = [float(weight) for weight in problem.weights]
    dim, rho = problem.dim, algorithm.shared_noise
    server = first_point(start, dim, seed, replica)
    previous, path = [0.0] * dim, [server]
    for round in range(n_rounds):
        drawn, shares = taking_part(streams, round, algorithm.participation, weights)
        shifts = correction(problem, algorithm, round, server, previous)
        local = {client: list(server) for client in drawn}
        for step in range(round * algorithm.local_steps, (round + 1) * algorithm.local_steps):
            eta = float(algorithm.schedule.at(step))
            common = streams.of_step(SHARED_NOISE, step, 0, dim)
            for client, theta in local.items():
                own = streams.of_step(OWN_NOISE, step, client, dim)
                p = [math.sqrt(rho) * common[i] + math.sqrt((1 - rho) / weights[client]) * own[i]
                     for i in range(dim)]

                def gradient(x, draw, client=client, step=step, shifts=shifts):
                    value = stochastic_gradient(problem, streams, client, step, x, draw)
                    shift = [0.0] * dim if shifts is None else shifts[client]
                    return [value[i] + shift[i] for i in range(dim)]

                local[client], _ = leapfrog(gradient, theta, p, eta, algorithm.leapfrog_steps)
        previous = server
        server = averaged(server, local, drawn, shares)
        path.append(server)
    return np.array(path)
