"""FA-HMC's moments the slow way: explicit leapfrog steps of all clients on symbols for every random number.

Each quantity is a row of coefficients on the basis (1, clients, anchor, server, momenta, gradient draws)
of one local update. Outcomes of participation are enumerated. Nothing is shared with `theory.exact`.
"""

from __future__ import annotations

import numpy as np
from brute_force import outcomes
from scipy.linalg import block_diag


def recursion(problem, algorithm, n_steps, mean=None, cov=None):
    """Moments of theta after every local update, and of beta at communications.

    Returns two lists of (step, mean (N d,), cov (N d, N d)).
    """
    n_clients, dim, weights = problem.n_clients, problem.dim, np.array(problem.weights)
    hessians, minimizers = np.array(problem.dense_hessians), np.array(problem.minimizers)
    noises = problem.noise_covariances
    noises = np.zeros_like(hessians) if noises is None else np.array(noises)
    size, unit, ones = n_clients * dim, np.eye(dim), np.ones(n_clients)
    start = np.zeros(dim) if mean is None else np.asarray(mean, dtype=float)
    spread = np.zeros((dim, dim)) if cov is None else np.asarray(cov, dtype=float)
    known = np.append(ones, [0.0, 1.0])  # clients and server at the start, the anchor still zero
    x, c = np.kron(known, start), np.kron(np.outer(known, known), spread)
    if algorithm.debias == "fresh":
        x[size:size + dim], known[n_clients] = start, 1.0
        c = np.kron(np.outer(known, known), spread)
    inside = len(x)
    share, n_leaps = algorithm.shared_noise, algorithm.leapfrog_steps
    momenta = np.kron(share * np.outer(ones, ones) + (1.0 - share) * np.diag(1.0 / weights), unit)
    draws = block_diag(*noises)
    blocks = 2 * n_leaps
    basis = 1 + inside + size + blocks * size
    total = 1 + inside + size

    def take(first, count):
        return np.eye(basis)[first:first + count]

    thetas, betas = [(0, x[:size], c[:size, :size])], []
    for k in range(n_steps):
        eta, number = float(algorithm.schedule.at(k)), k // algorithm.local_steps
        anchor = take(1 + size, dim)
        corrected = algorithm.debias == "fresh" or (
            algorithm.debias == "stale" and (number > 0 or algorithm.first_round != "none"))
        mean_gradient = sum(w * a @ (anchor - np.outer(b, take(0, 1)))
                            for w, a, b in zip(weights, hessians, minimizers, strict=True))
        if algorithm.debias == "stale" and number == 0 and algorithm.first_round == "printed":
            mean_gradient = 0.0 * mean_gradient
        rows = []
        for client in range(n_clients):
            a, b = hessians[client], minimizers[client]

            def gradient(point, draw, a=a, b=b, client=client, anchor=anchor, corrected=corrected,
                         mean_gradient=mean_gradient):
                value = a @ (point - np.outer(b, take(0, 1)))
                if corrected:
                    value = value - a @ (anchor - np.outer(b, take(0, 1))) + mean_gradient
                return value + take(total + draw * size + client * dim, dim)

            point, momentum = take(1 + client * dim, dim), take(1 + inside + client * dim, dim)
            for leap in range(n_leaps):
                first = gradient(point, 2 * leap)
                point = point + eta * momentum - 0.5 * eta**2 * first
                momentum = momentum - 0.5 * eta * (first + gradient(point, 2 * leap + 1))
            rows.append(point)
        full = np.concatenate([*rows, take(1 + size, 2 * dim)])
        mean_basis = np.concatenate([[1.0], x, np.zeros(size + blocks * size)])
        cov_basis = block_diag([[0.0]], c, momenta, *[draws] * blocks)
        x, c = full @ mean_basis, full @ cov_basis @ full.T
        if (k + 1) % algorithm.local_steps == 0:
            betas.append((k + 1, x[:size], c[:size, :size]))
            mixed_mean, mixed_second = np.zeros(inside), np.zeros((inside, inside))
            for probability, shares in outcomes(algorithm.participation, weights, number):
                average = np.kron(shares, unit)
                kept = (1.0 - shares.sum()) * unit
                server = np.concatenate([average, np.zeros((dim, dim)), kept], axis=1)
                before = np.concatenate([np.zeros((dim, size + dim)), unit], axis=1)
                after = np.concatenate([*[server] * n_clients,
                                        server if algorithm.debias == "fresh" else before, server])
                point = after @ x
                mixed_mean = mixed_mean + probability * point
                mixed_second += probability * (after @ c @ after.T + np.outer(point, point))
            x, c = mixed_mean, mixed_second - np.outer(mixed_mean, mixed_mean)
        thetas.append((k + 1, x[:size], c[:size, :size]))
    return thetas, betas


def rounds(problem, algorithm, n_rounds, mean=None, cov=None):
    """Mean (n, d) and covariance (n, d, d) of the server's value at rounds 0..n_rounds."""
    thetas, _ = recursion(problem, algorithm, n_rounds * algorithm.local_steps, mean, cov)
    kept = thetas[:: algorithm.local_steps]
    dim = problem.dim
    return np.array([x[:dim] for _, x, _ in kept]), np.array([c[:dim, :dim] for _, _, c in kept])
