"""The moments of DE-SGLD and DE-SGHMC the slow way: full matrices, every minibatch."""

from __future__ import annotations

import itertools

import numpy as np
from examples_of import close
from scipy.linalg import block_diag

import fedsim as fs


def algorithms(mixing, problem, schedule=None):
    """Both algorithms; DE-SGHMC with and without velocities at the start."""
    rng = np.random.default_rng(8)
    yield fs.DESGLD(0.2 if schedule is None else schedule, mixing)
    eta = 0.3 if schedule is None else schedule
    yield fs.DESGHMC(eta, 2.0, mixing)
    yield fs.DESGHMC(eta, 3.3, mixing, rng.standard_normal(problem.dim))
    yield fs.DESGHMC(eta, 1.0, mixing, rng.standard_normal((problem.n_clients, problem.dim)))


def stacked(problem, algorithm, step):
    """M, v and Q of the stacked state (x, v) with full matrices, from the algorithms' definitions."""
    n_clients, dim, w = problem.n_clients, problem.dim, problem.weights
    curvature = block_diag(*(w[i] * problem.dense_hessians[i] for i in range(n_clients)))
    pull, unit = curvature @ problem.minimizers.ravel(), np.eye(n_clients * dim)
    noises = problem.noise_covariances
    noise = np.zeros_like(unit) if noises is None else block_diag(*(w[i] ** 2 * noises[i]
                                                                    for i in range(n_clients)))
    gossip, eta = np.kron(algorithm.mixing, np.eye(dim)), float(algorithm.schedule.at(step))
    if isinstance(algorithm, fs.DESGLD):
        return gossip - eta * curvature, eta * pull, 2 * eta * unit + eta**2 * noise
    beta = 1.0 - algorithm.friction * eta
    kick = 2 * algorithm.friction * eta * unit + eta**2 * noise
    return (np.block([[gossip - eta**2 * curvature, eta * beta * unit], [-eta * curvature, beta * unit]]),
            np.concatenate([eta**2 * pull, eta * pull]), np.kron([[eta**2, eta], [eta, 1.0]], kick))


def brute_force(problem, algorithm, n_steps, start=None):
    """Mean and covariance of the stacked state at every step."""
    n_clients, dim = problem.n_clients, problem.dim
    cov = np.zeros((dim, dim))
    if start is None:
        mean = np.zeros(n_clients * dim)
    elif isinstance(start, fs.Gaussian):
        mean, cov = np.tile(start.mean, n_clients), start.cov
    else:
        mean = np.broadcast_to(start, (n_clients, dim)).ravel()
    cov = np.kron(np.ones((n_clients, n_clients)), cov)
    if isinstance(algorithm, fs.DESGHMC):
        v = 0.0 if algorithm.start_velocity is None else algorithm.start_velocity
        mean = np.concatenate([mean, np.broadcast_to(v, (n_clients, dim)).ravel()])
        cov = block_diag(cov, np.zeros_like(cov))
    found = [(mean, cov)]
    for step in range(n_steps):
        matrix, shift, noise = stacked(problem, algorithm, step)
        mean, cov = matrix @ mean + shift, matrix @ cov @ matrix.T + noise
        found.append((mean, cov))
    return found


def views(problem, mean, cov):
    """Average first, then every client: means and covariances of positions."""
    n_clients, dim = problem.n_clients, problem.dim
    average = np.kron(np.ones((1, n_clients)) / n_clients, np.eye(dim))
    size = n_clients * dim
    rows = [average, *np.split(np.eye(size), n_clients)]
    return [(row @ mean[:size], row @ cov[:size, :size] @ row.T) for row in rows]


def batches(problem, client):
    """[(Hessian, pull)] of every equally likely minibatch gradient of the component."""
    mine = problem.clients == client
    features, targets, size = problem.features[mine], problem.targets[mine], int(mine.sum())
    draw = itertools.product(range(size), repeat=problem.batch_size) if problem.replace else (
        itertools.combinations(range(size), problem.batch_size))
    scale = (size / problem.batch_size if problem.grad_scale == "unbiased" else 1.0) / problem.noise_std**2
    prior = np.eye(problem.dim) / (problem.prior_variance * problem.n_clients)
    return [(scale * features[list(rows)].T @ features[list(rows)] + prior,
             scale * features[list(rows)].T @ targets[list(rows)]) for rows in draw]


def outcomes(problem, algorithm):
    """(M, v) of the stacked state for every combination of minibatches, and the injected noise."""
    found = []
    for chosen in itertools.product(*(batches(problem, client) for client in range(problem.n_clients))):
        hessians, pulls = zip(*chosen, strict=True)
        curvature, pull = block_diag(*hessians), np.concatenate(pulls)
        gossip, eta = np.kron(algorithm.mixing, np.eye(problem.dim)), algorithm.step_size
        unit = np.eye(len(pull))
        if isinstance(algorithm, fs.DESGLD):
            found.append((gossip - eta * curvature, eta * pull))
            heat = 2 * eta * unit
        else:
            beta = 1.0 - algorithm.friction * eta
            found.append((np.block([[gossip - eta**2 * curvature, eta * beta * unit],
                                    [-eta * curvature, beta * unit]]),
                          np.concatenate([eta**2 * pull, eta * pull])))
            heat = np.kron([[eta**2, eta], [eta, 1.0]], 2 * algorithm.friction * eta * unit)
    return np.array([m for m, _ in found]), np.array([v for _, v in found]), heat


def same_laws(one, other, tol):
    for first, second in zip((one, *one.clients), (other, *other.clients), strict=True):
        close(first.mean, second.mean, tol)
        if second.cov is not None:
            close(first.cov, second.cov, tol)
