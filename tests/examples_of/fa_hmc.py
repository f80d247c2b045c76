"""Random settings of FA-HMC's theorems, and one point for hand calculations."""

from __future__ import annotations

import math

import numpy as np

import fedsim as fs
import theory
from examples_of import random_quadratic


def draw_problem(rng):
    """A random quadratic: any scale, condition up to 1e3, very unequal weights, gradient noise."""
    shape, scale = (int(rng.integers(1, 6)), int(rng.integers(1, 4))), 10.0 ** rng.uniform(-3, 3)
    kappa = 10.0 ** rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 3)])
    return random_quadratic(rng, shape, scale, kappa, lambda: rng.integers(4), (0.7, 0.4), 1.5)


def draw_start(rng, problem):
    """The origin, a point up to 1000 standard deviations away, a Gaussian, the target itself."""
    size = 10.0 ** rng.uniform(-2, 3) * np.sqrt(np.trace(problem.target().cov))
    point = problem.minimizer + size * rng.standard_normal(problem.dim)
    return [None, point, fs.Gaussian(point, size**2 * rng.random(problem.dim)), problem.target()][
        rng.integers(4)]


def draw_case(rng, longest="half"):
    """Problem, algorithm within the hypotheses, start and number of rounds.

    `longest` trajectory: "half" and "full" of 1/sqrt(L), "reach" of the recursion, "moments" of Lemma D.7.
    """
    problem = draw_problem(rng)
    curvatures = np.linalg.eigvalsh(problem.dense_hessians)
    low, high = curvatures.min(), curvatures.max()
    limit = {"half": 0.5 / np.sqrt(high), "full": 1.0 / np.sqrt(high),
             "reach": min(1.0 / np.sqrt(high), 0.5 / np.sqrt(low)),
             "moments": 0.5 * np.sqrt(low) / high}[longest]
    limit *= 1.0 - 1e-13  # the theorems' own eigenvalues may differ in the last digit
    length = limit * rng.choice([1.0, rng.uniform(0.1, 1.0), 10.0 ** rng.uniform(-2, 0)])
    K, T = (int(rng.choice([1, 2, rng.integers(1, 12)])) for _ in range(2))
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    return problem, fs.FAHMC(length / K, K, T, shared), draw_start(rng, problem), int(rng.choice([1, 2, 5]))


MU, L, D, K, T, ETA, RHO, BEND = 0.5, 2.0, 3, 4, 3, 0.04, 0.25, 1.5
WEIGHTS, TRACES, SLOPES = np.array([0.2, 0.3, 0.5]), np.array([0.6, 1.2, 0.9]), np.array([1.7, 0.8, 0.3])
DISTANCE, W2 = 2.4, 2.0
X = 0.16
S = np.array([4.0, 2.75, 1.75])  # 1/4 + 3/(4 w)
MOMENTS = np.array([3.0, 5.0, 7.0])
C_D = 128 + 32 * math.log(6.0) ** 2
FACTS = {"dim": D, "strong_convexity": MU, "smoothness": L, "weights": WEIGHTS,
         "gradient_at_minimizer": SLOPES, "gradient_noise_traces": TRACES, "initial_distance": DISTANCE,
         "initial_w2": W2, "hessian_smoothness": 0.0}


def by_hand(**changes):
    return theory.Constants(**(FACTS | changes))


def fahmc(**changes):
    given = {"step_size": ETA, "leapfrog_steps": K, "local_steps": T, "shared_noise": RHO}
    return fs.FAHMC(**(given | changes))
