"""FA-LD's moments the slow way: the stacked state of all clients, one local step at a time.

Written from the algorithm's definition with full (N d, N d) matrices, and from an enumeration of all
outcomes where clients are drawn. Nothing is shared with `theory.exact`.
"""

from __future__ import annotations

import itertools
from math import factorial

import numpy as np
from scipy.linalg import block_diag

import fedsim as fs


def outcomes(participation, weights, number=0):
    """[(probability, client shares)] of every way in which a round can average; the server keeps the rest."""
    n_clients = len(weights)
    if participation is None:
        return [(1.0, np.array(weights))]
    if isinstance(participation, fs.FixedParticipation):
        members = participation.sets[number % len(participation.sets)]
        taking = np.isin(np.arange(n_clients), members) * np.array(weights)
        return [(1.0, taking / taking.sum())]
    if isinstance(participation, fs.IndependentParticipation):
        chances, found = np.broadcast_to(participation.probabilities, n_clients), []
        for answers in itertools.product((False, True), repeat=n_clients):
            taking = np.array(answers) * np.array(weights)
            share = taking / chances if participation.unbiased else taking / (taking.sum() or 1.0)
            found.append((np.prod(np.where(answers, chances, 1.0 - chances)), share))
        return found
    active = participation.n_active
    if not participation.replace:
        subsets = list(itertools.combinations(range(n_clients), active))
        return [(1.0 / len(subsets), np.isin(np.arange(n_clients), subset) / active) for subset in subsets]
    found = []
    for drawn in itertools.combinations_with_replacement(range(n_clients), active):
        counts = np.bincount(drawn, minlength=n_clients)
        ways = factorial(active) / np.prod([float(factorial(int(count))) for count in counts])
        found.append((ways * np.prod(np.asarray(weights) ** counts), counts / active))
    return found


def recursion(problem, algorithm, n_steps, mean=None, cov=None):
    """Moments (mean (N d,), cov) of theta after every local step, and of beta at communications.

    Returns two lists of (step, mean, cov): theta at steps 0..n_steps, and beta at communications.
    """
    n_clients, dim, weights = problem.n_clients, problem.dim, np.array(problem.weights)
    hessians = np.array(problem.dense_hessians)
    noises = problem.noise_covariances
    noises = np.zeros_like(hessians) if noises is None else np.array(noises)
    start = np.zeros(dim) if mean is None else np.asarray(mean, dtype=float)
    spread = np.zeros((dim, dim)) if cov is None else np.asarray(cov, dtype=float)
    ones, unit = np.ones(n_clients + 1), np.eye(dim)  # the last is the server's value
    size = n_clients * dim
    x, c = np.kron(ones, start), np.kron(np.outer(ones, ones), spread)
    pull = [*(a @ b for a, b in zip(hessians, problem.minimizers, strict=True)), np.zeros(dim)]
    pull = np.concatenate(pull)
    share, tau = algorithm.shared_noise, algorithm.temperature
    langevin = np.kron(share * np.ones((n_clients, n_clients)) + (1.0 - share) * np.diag(1.0 / weights), unit)
    langevin, noise = block_diag(langevin, 0.0 * unit), block_diag(*noises, 0.0 * unit)
    thetas, betas = [(0, x[:size], c[:size, :size])], []
    for k in range(n_steps):
        step = float(algorithm.schedule.at(k))
        drift = block_diag(*[unit - step * a for a in hessians], unit)
        x = drift @ x + step * pull
        c = drift @ c @ drift.T + 2.0 * step * tau * langevin + step**2 * noise
        if (k + 1) % algorithm.local_steps == 0:
            betas.append((k + 1, x[:size], c[:size, :size]))
            mixed_mean, mixed_second = np.zeros(dim), np.zeros((dim, dim))
            for probability, shares in outcomes(algorithm.participation, weights, k // algorithm.local_steps):
                average = np.kron(np.append(shares, 1.0 - shares.sum()), unit)
                point = average @ x
                mixed_mean = mixed_mean + probability * point
                mixed_second += probability * (average @ c @ average.T + np.outer(point, point))
            x = np.kron(ones, mixed_mean)
            c = np.kron(np.outer(ones, ones), mixed_second - np.outer(mixed_mean, mixed_mean))
        thetas.append((k + 1, x[:size], c[:size, :size]))
    return thetas, betas


def rounds(problem, algorithm, n_rounds, mean=None, cov=None):
    """Mean (n, d) and covariance (n, d, d) of the server's value at rounds 0..n_rounds."""
    thetas, _ = recursion(problem, algorithm, n_rounds * algorithm.local_steps, mean, cov)
    kept = thetas[:: algorithm.local_steps]
    dim = problem.dim
    return np.array([x[:dim] for _, x, _ in kept]), np.array([c[:dim, :dim] for _, _, c in kept])
