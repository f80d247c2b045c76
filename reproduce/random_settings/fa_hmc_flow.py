"""Random problems of FA-HMC's lower bound for the scoreboard: two kinds of clients, exact trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

import fedsim as fs
from theory.exact import FAHMCFlow

ALGORITHM = FAHMCFlow


def draw(rng: np.random.Generator) -> tuple[fs.Quadratic, FAHMCFlow, int, Any]:
    """Problem, algorithm, rounds and start, which has mean zero; most draws meet the hypotheses.

    d from 1 to 4, two or four clients, condition numbers to 1e3, T from 1 to 50.
    """
    low = float(10.0 ** rng.uniform(-1.0, 1.0))
    high = low * float(10.0 ** rng.uniform(0.0, 3.0))
    near = float(10.0 ** rng.uniform(-1.0, 1.0))
    dim, clients = int(rng.integers(1, 5)), int(rng.choice([2, 4]))
    problem = fs.papers.fa_hmc_two_groups(dim, curvatures=(high, low), n_clients=clients,
                                          minimizers=(near * (1.0 + 3.0 * rng.random()), near))
    length = float(10.0 ** rng.uniform(-2.0, 0.1)) / np.sqrt(high)
    flow = FAHMCFlow(length, int(rng.choice([1, 2, 10, 50])), float(rng.choice([0.0, 1.0, rng.random()])))
    start = None if rng.random() < 0.5 else fs.Gaussian(np.zeros(dim), rng.random() * np.eye(dim))
    return problem, flow, int(rng.integers(5, 60)), start
