"""Random problems and parameters of DE-SGHMC for the scoreboard."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs
from theory.de_sghmc import largest_momentum, step_size_limit

from .de_sgld import components, network, problem_of, start_of

ALGORITHM = fs.DESGHMC


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, fs.DESGHMC, int, Any]:
    """Problem, algorithm, rounds and start within the hypotheses of Theorem 11; N from 1 to 6.

    Momentum zero, half of the largest that the theorem allows, or all of it; velocities at rest or not.
    """
    clients = int(rng.integers(1, 7))
    problem, mixing = problem_of(rng, clients), network(rng, clients)
    curvature = components(problem)
    limit = step_size_limit(*curvature, mixing)
    step = float(limit * rng.choice([1.0, rng.uniform(0.05, 1.0), 10.0 ** rng.uniform(-1.5, 0.0)]))
    beta = largest_momentum(*curvature, mixing, step) * float(rng.choice([0.0, 0.5, 1.0]))
    velocity = None
    if rng.random() < 0.5:
        velocity = float(10.0 ** rng.uniform(-2.0, 2.0)) * rng.standard_normal((clients, problem.dim))
    algorithm = fs.DESGHMC(step, (1.0 - beta) / step, mixing, velocity)
    return problem, algorithm, int(rng.integers(1, 40)), start_of(rng, problem)
