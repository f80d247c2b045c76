"""Random problems and parameters of FA-HMC for the scoreboard."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs

ALGORITHM = fs.FAHMC


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, fs.FAHMC, int, Any]:
    """Problem, algorithm, rounds and start; every hypothesis of the theorems holds for most draws.

    N from 1 to 5, d from 1 to 3, condition numbers to 1e2, K from 1 to 10, T from 1 to 15; unequal
    weights, gradient noise, shared noise, far starts and trajectories beyond the theorems' range each in
    a part of the draws.
    """
    clients, dim = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    problem = _problem(rng, clients, dim)
    values = np.linalg.eigvalsh(problem.hessians)
    smallest, largest = float(values.min()), float(values.max())
    # the theorems ask for lengths up to 1/(2 sqrt(L)), the moment bounds for sqrt(mu)/(2 L)
    longest = 0.5 / np.sqrt(largest) if rng.random() < 0.6 else 0.5 * np.sqrt(smallest) / largest
    length = longest * float(10.0 ** rng.uniform(-1.5, 0.05))
    leapfrogs, steps = int(rng.choice([1, 2, 5, 10])), int(rng.choice([1, 2, 5, 15]))
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    algorithm = fs.FAHMC(length / leapfrogs, leapfrogs, steps, shared)
    size = float(10.0 ** rng.uniform(-1.0, 1.0)) / np.sqrt(smallest)
    start = None if rng.random() < 0.5 else problem.minimizer + size * rng.standard_normal(dim)
    return problem, algorithm, int(rng.integers(3, 25)), start


def _problem(rng: np.random.Generator, clients: int, dim: int) -> fs.Quadratic:
    condition = float(10.0 ** rng.uniform(0.0, 2.0))
    hessians = np.empty((clients, dim, dim))
    for c in range(clients):
        basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        hessians[c] = (basis * condition ** rng.random(dim)) @ basis.T
    scale = float(10.0 ** rng.uniform(-2.0, 2.0))
    minimizers = float(10.0 ** rng.uniform(-2.0, 1.0)) * rng.standard_normal((clients, dim))
    weights = None if rng.random() < 0.4 else rng.dirichlet(np.full(clients, 0.4)) * 0.98 + 0.02 / clients
    noise = None if rng.random() < 0.5 else float(scale * rng.random())
    return fs.Quadratic(scale * hessians, minimizers, weights, noise)
