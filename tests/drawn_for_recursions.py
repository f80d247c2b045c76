"""Random settings within what the coupling recursions speak about, as their derivation's authors drew them.

1 to 6 clients in 1 to 3 dimensions, condition numbers to 1e3, rotated Hessians, minimizers of any size up to
30, unequal weights and gradient noise in about half, steps up to 1.9/L, starts near, far and in the target.
"""

from __future__ import annotations

import numpy as np

import fedsim as fs

GRAPHS = (fs.network.complete, fs.network.ring, fs.network.star, fs.network.path)


def spd(rng, dim, low, high):
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return (basis * np.exp(rng.uniform(np.log(low), np.log(high), dim))) @ basis.T


def problem(rng, equal=None):
    N, d = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    m, kappa = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(0, 3)
    hessians = np.array([spd(rng, d, m, m * kappa) for _ in range(N)])
    minimizers = 10 ** rng.uniform(-2, 1.5) * rng.standard_normal((N, d)) + (
        10 ** rng.uniform(-2, 1.5) * rng.standard_normal(d))
    weights = None if (rng.random() < 0.4 if equal is None else equal) else rng.dirichlet(np.full(N, 2.0))
    noise = (None, None, float(10 ** rng.uniform(-1, 1.5)),
             np.array([spd(rng, d, 0.01, 100.0) for _ in range(N)]))[rng.integers(4)]
    return fs.Quadratic(hessians, minimizers, weights, noise)


def start(rng, problem, algorithm):
    dim, kind = problem.dim, rng.random()
    if kind < 0.4:
        return algorithm.target(problem)
    if kind < 0.6:
        return None
    far = rng.standard_normal(dim) * 10 ** rng.uniform(-1, 1.5)
    return far if kind < 0.8 else fs.Gaussian(far, spd(rng, dim, 0.01, 100.0))


def sizes(rng, largest, count):
    """A constant step size, a schedule or a list."""
    kind = rng.random()
    if kind < 0.8:
        return largest
    if kind < 0.9:
        return fs.schedules.Harmonic(1 / largest, 10 ** rng.uniform(-3, 0) / largest)
    return largest * rng.uniform(0.1, 1, count)


def steepest(problem, weights=None):
    scale = np.ones(problem.n_clients) if weights is None else weights
    return (scale[:, None] * np.linalg.eigvalsh(problem.dense_hessians)).max()


def drawing(rng, problem, replace):
    return fs.Participation(int(rng.integers(1, problem.n_clients + 1)), replace)


def fa_ld(rng, n_rounds, part=None):
    part, replace = rng.random() < 0.3 if part is None else part, bool(rng.random() < 0.5)
    chosen = problem(rng, equal=True if part and not replace else None)
    K = 1 if rng.random() < 0.3 else int(rng.integers(1, 31))
    eta = 10 ** rng.uniform(-3.5, np.log10(1.9)) / steepest(chosen)
    return chosen, fs.FALD(sizes(rng, eta, n_rounds * K), K, temperature=10 ** rng.uniform(-2, 2),
                           shared_noise=float(rng.choice([0, 0.3, 1])),
                           participation=drawing(rng, chosen, replace) if part else None)


def fa_hmc(rng, n_rounds):
    part, replace = rng.random() < 0.2, bool(rng.random() < 0.5)
    chosen = problem(rng, equal=True if part and not replace else None)
    K, T = int(rng.integers(1, 11)), int(rng.integers(1, 11))
    X = 10 ** rng.uniform(-2, np.log10(1.4)) / np.sqrt(steepest(chosen))
    return chosen, fs.FAHMC(sizes(rng, X / K, n_rounds * T), K, T,
                            shared_noise=float(rng.choice([0, 0.3, 1])),
                            participation=drawing(rng, chosen, replace) if part else None)


def gossip(rng):
    chosen = problem(rng)
    N = chosen.n_clients
    mixing = GRAPHS[rng.integers(4)](N) if N > 1 else np.ones((1, 1))
    return chosen, mixing, (1 + np.linalg.eigvalsh(mixing)[0]) / steepest(chosen, chosen.weights)


def de_sgld(rng, n_rounds):
    chosen, mixing, limit = gossip(rng)
    eta = 10 ** rng.uniform(-3.5, np.log10(0.95)) * limit
    return chosen, fs.DESGLD(sizes(rng, eta, n_rounds), mixing)


def de_sghmc(rng, n_rounds):
    chosen, mixing, limit = gossip(rng)
    eta = np.sqrt(10 ** rng.uniform(-3.5, 0) * limit)
    beta = float(rng.choice([0, 0.1, 0.5, 0.9, rng.random()]))
    return chosen, fs.DESGHMC(eta, (1 - beta) / eta, mixing)


def stale(rng, n_rounds):
    chosen, oldest = problem(rng), int(rng.choice([0, 1, 2, 5, 10]))
    steep = np.linalg.eigvalsh(np.einsum("c,cij->ij", chosen.weights, chosen.dense_hessians)).max()
    ages = oldest if rng.random() < 0.6 else np.minimum(rng.integers(0, oldest + 1, n_rounds),
                                                        np.arange(n_rounds))
    return chosen, fs.StaleSGLD(10 ** rng.uniform(-3.5, np.log10(1.5 / (oldest + 1))) / steep, ages)


DRAWS = {"fa_ld": fa_ld, "fa_hmc": fa_hmc, "de_sgld": de_sgld, "de_sghmc": de_sghmc, "stale": stale}
