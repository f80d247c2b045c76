"""Random problems and parameters of FA-LD for the scoreboard."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs

ALGORITHM = fs.FALD


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, fs.FALD, int, Any]:
    """Problem, algorithm, rounds and start; every hypothesis of the theorems holds for most draws.

    N from 1 to 6, d from 1 to 3, condition numbers to 1e3; unequal weights, gradient noise, temperature,
    shared noise, participation and the harmonic schedule each in a part of the draws.
    """
    clients, dim = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    participation = None
    if rng.random() < 0.4:
        replace = bool(rng.random() < 0.5)
        participation = fs.Participation(int(rng.integers(1, clients + 1)), replace)
    equal = rng.random() < 0.4 or (participation is not None and not participation.replace)
    problem = _problem(rng, clients, dim, equal)
    values = np.linalg.eigvalsh(problem.hessians)
    smallest, largest = float(values.min()), float(values.max())
    step: Any = 0.5 / largest * float(10.0 ** rng.uniform(-2.0, 0.05))
    if participation is None and rng.random() < 0.3:
        step = fs.schedules.Harmonic.from_theorem(strong_convexity=smallest, smoothness=largest)
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    steps, temperature = int(rng.choice([1, 2, 3, 8, 30])), float(10.0 ** rng.uniform(-1.0, 1.0))
    algorithm = fs.FALD(step, steps, temperature, shared, participation)
    start = None if rng.random() < 0.5 else problem.minimizer + rng.standard_normal(dim)
    return problem, algorithm, int(rng.integers(5, 40)), start


def _problem(rng: np.random.Generator, clients: int, dim: int, equal: bool) -> fs.Quadratic:
    condition = float(10.0 ** rng.uniform(0.0, 3.0))
    hessians = np.empty((clients, dim, dim))
    for c in range(clients):
        basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        hessians[c] = (basis * condition ** rng.random(dim)) @ basis.T
    scale = float(10.0 ** rng.uniform(-2.0, 2.0))
    minimizers = float(10.0 ** rng.uniform(-2.0, 1.0)) * rng.standard_normal((clients, dim))
    weights = None if equal else rng.dirichlet(np.full(clients, 1.0)) * 0.9 + 0.1 / clients
    noise = None if rng.random() < 0.5 else float(scale * rng.random())
    return fs.Quadratic(scale * hessians, minimizers, weights, noise)
