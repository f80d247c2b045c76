"""Random problems and parameters of DE-SGLD for the scoreboard."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs
from theory.de_sgld import step_size_limit

ALGORITHM = fs.DESGLD


def network(rng: np.random.Generator, clients: int) -> Any:
    """Mixing matrix of a connected graph: complete, ring, path, star, or a path with random links."""
    kind = int(rng.integers(5))
    if kind < 4:
        return (fs.network.complete, fs.network.ring, fs.network.path, fs.network.star)[kind](clients)
    links = np.triu(rng.random((clients, clients)) < 0.4, 1) | np.eye(clients, k=1, dtype=bool)
    return fs.network.metropolis((links | links.T).astype(float))


def problem_of(rng: np.random.Generator, clients: int) -> fs.Quadratic:
    """Quadratics of any scale, d from 1 to 3, condition numbers to 1e3; weights or noise in some."""
    dim, condition = int(rng.integers(1, 4)), float(10.0 ** rng.uniform(0.0, 3.0))
    hessians = np.empty((clients, dim, dim))
    for c in range(clients):
        basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        hessians[c] = (basis * condition ** rng.random(dim)) @ basis.T
    scale = float(10.0 ** rng.uniform(-3.0, 3.0))
    minimizers = float(10.0 ** rng.uniform(-2.0, 2.0)) / np.sqrt(scale) * rng.standard_normal((clients, dim))
    weights = None if rng.random() < 0.5 else rng.dirichlet(np.full(clients, 1.0)) * 0.9 + 0.1 / clients
    noise = None if rng.random() < 0.5 else float(np.sqrt(scale) * 10.0 ** rng.uniform(-2.0, 1.0))
    return fs.Quadratic(clients * scale * hessians, minimizers, weights, noise)


def components(problem: fs.Quadratic) -> tuple[float, float]:
    """Strong convexity and smoothness of the components f_i = w_i f_(i)."""
    values = problem.weights[:, None] * np.linalg.eigvalsh(problem.hessians)
    return float(values.min()), float(values.max())


def start_of(rng: np.random.Generator, problem: fs.Quadratic) -> Any:
    """The origin, a point, a point per client, or a Gaussian, near the target or far from it."""
    size = float(10.0 ** rng.uniform(-2.0, 2.0)) * float(np.sqrt(problem.target().variances.sum()))
    choice, point = int(rng.integers(4)), problem.minimizer + size * rng.standard_normal(problem.dim)
    if choice == 2:
        return point + size * rng.standard_normal(problem.minimizers.shape)
    return (None, point, None, fs.Gaussian(point, size**2 * rng.random(problem.dim)))[choice]


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, fs.DESGLD, int, Any]:
    """Problem, algorithm, rounds and start within the hypotheses of Theorem 1; N from 1 to 6."""
    clients = int(rng.integers(1, 7))
    problem, mixing = problem_of(rng, clients), network(rng, clients)
    limit = step_size_limit(*components(problem), mixing)
    step = float(limit * rng.choice([1.0 - 1e-6, rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-3.0, 0.0)]))
    algorithm = fs.DESGLD(min(step, (1.0 - 1e-6) * limit), mixing)
    return problem, algorithm, int(rng.integers(1, 40)), start_of(rng, problem)
