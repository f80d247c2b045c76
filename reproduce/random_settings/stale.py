"""Random problems and parameters of stale SGLD for the scoreboard."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs
from theory.potentials import potentials

from .de_sgld import problem_of

ALGORITHM = fs.StaleSGLD
SERVICES = ("deterministic", "exponential", "lognormal", "pareto")


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, fs.StaleSGLD, int, Any]:
    """Problem, algorithm, updates and start; the hypothesis on the step size holds for most draws.

    One age up to 11 for all updates, or those of workers that discard older gradients, under one schedule or
    three; steps from a thirtieth of the largest allowed to beyond it, and exactly the largest in a part of
    the draws.
    """
    problem, age = problem_of(rng, int(rng.integers(1, 5))), int(rng.integers(0, 12))
    staleness: Any = age
    if rng.random() < 0.6:
        staleness = fs.Workers(age + 1, SERVICES[rng.integers(4)], cap=age, seed=int(rng.integers(2**31)),
                               schedules=int(rng.choice([1, 3])))
    share = 1.0 if rng.random() < 0.2 else float(10.0 ** rng.uniform(-1.5, 0.05))
    step = share / ((age + 1.0) * float(potentials(problem).global_curvature[1]))
    return problem, fs.StaleSGLD(step, staleness), int(rng.integers(3, 60)), _start(rng, problem)


def _start(rng: np.random.Generator, problem: fs.Quadratic) -> Any:
    """The origin, a point, or a Gaussian, near the target or far from it."""
    size = float(10.0 ** rng.uniform(-2.0, 2.0)) * float(np.sqrt(problem.target().variances.sum()))
    choice, point = int(rng.integers(3)), problem.minimizer + size * rng.standard_normal(problem.dim)
    return (None, point, fs.Gaussian(point, size**2 * rng.random(problem.dim)))[choice]
