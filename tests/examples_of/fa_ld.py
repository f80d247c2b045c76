"""Random settings of FA-LD's theorems, and one point for hand calculations."""

from __future__ import annotations

import numpy as np

import fedsim as fs
import theory
from examples_of import random_quadratic
from fedsim.settings.schedules import Harmonic


def draw_problem(rng, largest_n=20, largest_d=5, equal_weights=False):
    """A random quadratic: condition number up to 1e3, any scale, unequal weights, gradient noise."""
    shape = int(rng.integers(1, largest_n + 1)), int(rng.integers(1, largest_d + 1))
    scale, kappa, kind = 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(0, 3), rng.integers(5)
    return random_quadratic(rng, shape, scale, kappa, lambda: kind, (0.0 if equal_weights else 0.6, 0.7), 1.0)


def draw_start(rng, problem):
    """None, a point near or far, or a Gaussian."""
    size = 10.0 ** rng.uniform(-2, 2) * np.sqrt(np.trace(problem.target().cov))
    point = problem.minimizer + size * rng.standard_normal(problem.dim)
    choice = rng.integers(3)
    if choice == 0:
        return None
    return point if choice == 1 else fs.Gaussian(point, size**2 * rng.random(problem.dim))


def draw_case(rng, participation=False, schedule=False, largest_n=20, largest_d=5, largest_k=30):
    """Problem, algorithm within the theorems' step sizes, start and number of rounds."""
    replace = bool(rng.random() < 0.5)
    problem = draw_problem(rng, largest_n, largest_d, equal_weights=participation and not replace)
    facts = theory.constants(problem, fs.FALD(1e-9))
    m, smooth = facts.strong_convexity, facts.smoothness
    step = 0.5 / smooth * rng.choice([1.0, rng.uniform(0.1, 1.0), 10.0 ** rng.uniform(-3, 0)])
    steps = int(rng.choice([1, 2, rng.integers(1, largest_k + 1)]))
    shared = float(rng.choice([0.0, 1.0, rng.random()]))
    tau = float(10.0 ** rng.uniform(-2, 2))
    drawn = None
    if participation:
        top = 2 * problem.n_clients if replace else problem.n_clients
        drawn = fs.Participation(int(rng.integers(1, top + 1)), replace)
    if schedule:
        step = Harmonic.from_theorem(strong_convexity=m, smoothness=smooth)
    algorithm = fs.FALD(step, steps, tau, shared, drawn)
    return problem, algorithm, draw_start(rng, problem), int(rng.choice([1, 3, 10, 40]))


M, L, TAU, ETA, K, RHO2, D = 0.5, 2.0, 3.0, 0.1, 4, 0.25, 3
WEIGHTS = np.array([0.2, 0.3, 0.5])
TRACES = np.array([0.6, 1.2, 0.9])
HETEROGENEITY, DISTANCE = 1.7, 2.4

# Definition A.4, written out with numbers: D^2 = 5.76/3, T = 3 (.25 + .75/.2) = 12, sigma^2 = 1.2/3
H = 1.92 + 12.0 / 0.5 + 2.89 / (0.25 * 3) + 0.4 / 0.25
KAPPA = 4.0
MEAN_TEMPERATURE = 3.0 * (0.25 + 3 * 0.75)  # tau (rho^2 + N (1 - rho^2))


def by_hand(**changes):
    facts = {"dim": D, "strong_convexity": M, "smoothness": L, "weights": WEIGHTS,
             "heterogeneity": HETEROGENEITY, "gradient_noise_traces": TRACES, "initial_distance": DISTANCE}
    return theory.Constants(**(facts | changes))


def fald(**changes):
    given = {"step_size": ETA, "local_steps": K, "temperature": TAU, "shared_noise": RHO2}
    return fs.FALD(**(given | changes))
