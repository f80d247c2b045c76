"""Problems that several tests use."""

from __future__ import annotations

import numpy as np

import fedsim as fs


def spd(rng, n, dim, low=0.5):
    """Random symmetric positive definite matrices (n, d, d)."""
    factor = rng.standard_normal((n, dim, dim))
    return factor @ np.swapaxes(factor, 1, 2) / dim + low * np.eye(dim)


def quadratic(n_clients=3, dim=2, structure="dense", weights="unequal", noise=None, seed=0):
    """Clients whose curvatures and minimizers differ a lot, so that every part of a round shows."""
    rng = np.random.default_rng(seed)
    hessians = {"dense": lambda: spd(rng, n_clients, dim), "diagonal": lambda: rng.uniform(0.4, 3.0, (
        n_clients, dim)), "isotropic": lambda: rng.uniform(0.4, 3.0, n_clients)}[structure]()
    minimizers = 2.0 * rng.standard_normal((n_clients, dim))
    p = np.arange(1.0, n_clients + 1.0)
    covariances = 4.0 * spd(rng, n_clients, dim, low=0.1) if noise == "cov" else noise
    return fs.Quadratic(hessians, minimizers, p / p.sum() if weights == "unequal" else None, covariances)


def contrasted(n_clients, weights, flattest=0.3):
    """Clients whose curvatures differ tenfold and whose gradient noise is correlated the same way."""
    scale = np.linspace(flattest, 3.0, n_clients)[:, None, None]
    return fs.Quadratic(scale * np.array([[1.0, 0.3], [0.3, 0.8]]),
                        2.0 * np.random.default_rng(5).standard_normal((n_clients, 2)), weights,
                        np.broadcast_to([[3.0, 2.0], [2.0, 2.5]], (n_clients, 2, 2)))


def drawn_quadratic(rng, structure, noise, n_clients, dim, weighted, singular=False):
    """Random clients; `noise` is None, "std" or "cov", `singular` of rank d - 1."""
    minimizers = rng.standard_normal((n_clients, dim))
    weights = rng.dirichlet(np.full(n_clients, 3.0)) if weighted else None
    hessians = {"dense": lambda: spd(rng, n_clients, dim),
                "diagonal": lambda: rng.uniform(0.5, 3.0, (n_clients, dim)),
                "isotropic": lambda: rng.uniform(0.5, 3.0, n_clients)}[structure]()
    if noise == "cov":
        factor = rng.standard_normal((n_clients, dim, dim))
        if singular:
            factor[:, :, 0] = 0.0  # zero at d = 1
        noise = factor @ np.swapaxes(factor, 1, 2)
    elif noise == "std":
        noise = 0.7
    return fs.Quadratic(hessians, minimizers, weights, noise)
