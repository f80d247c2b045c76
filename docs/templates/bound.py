"""TEMPLATE of a bound; it becomes `theory/new_paper.py`, or a file in the folder of its paper.

It is a true one: Dalalyan and Karagulyan's on Langevin Monte Carlo with exact gradients, on one client.
Replace the class of algorithms, the letters, the hypotheses, the statement, the paper's name and key, and
this docstring; then `python -m reproduce scoreboard` puts it against the exact law, and `theory.catalogue()`
(a table) lists it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim import FALD

from .declare.bound import Assumption
from .declare.paper import Paper
from .declare.statement import Hypothesis
from .facts import Constants
from .theorem_parts import decay


# The paper's letters: what its statements are functions of. Every argument `s` below is one of these.
class Letters:
    """m, M, d, tau, h of the paper, and W2 at the start."""

    def __init__(self, constants: Constants, algorithm: FALD) -> None:
        self.m, self.M, self.d = constants.strong_convexity, constants.smoothness, constants.dim
        self.tau, self.h = algorithm.temperature, algorithm.schedule.largest
        self.start = constants.need("initial_w2")


# A hypothesis that numbers decide has a judge. Judges and statements are called by the names of their
# arguments: constants, algorithm, s, rounds, variant, and what the user gives besides.
def _step(s: Letters) -> Assumption:
    return Assumption.at_most("step_size <= 2/(smoothness + strong_convexity)", s.h, 2.0 / (s.m + s.M))


def _alone(constants: Constants) -> Assumption:
    return Assumption.yes("one client", constants.need("n_clients") == 1)


# One without which the formula has no value for an algorithm has a refusal: the reason, "" where there is
# none. The problem is None where it is not known; the scoreboard has to find 60 that are not refused.
def _plain(algorithm: FALD, problem: Any) -> str:
    plain = algorithm.schedule.is_constant and algorithm.local_steps == 1 and algorithm.participation is None
    return "" if plain else (f"algorithm={algorithm!r} must have a constant step_size, local_steps=1 and no "
                             "participation for this theorem")


def _exact(constants: Constants) -> Assumption:
    return Assumption.yes("exact gradients", not np.any(constants.gradient_noise_traces)
                          and not constants.noise_growth)


# Once for each paper: the first part of the ids, its name, its key in theory/declare/papers.bib ("" without).
theorem = Paper(
    id="new_paper", name="New", key="", algorithm=FALD, convention="federated", setting=Letters,
    start_distances={"w2": lambda s: s.start}, raises="An unknown distance at the start.",
    only={"n_clients": 1, "local_steps": 1, "gradient_noise": 0.0},  # where searches find it within
    example=""">>> problem, algorithm = fs.Quadratic([1.0], [[3.0]]), fs.FALD(0.01)""").theorem


# Forms of it, if there are several: variants={"proof": "7 sqrt(2)/6", "printed": "1.65"}, name -> what it is
# in words; the first is the default, and `variant` is the name.
@theorem("Theorem 1", quantity="w2", terms=("initialization", "discretization"),
         hypotheses=(Hypothesis("constant step_size, one local step, all clients", refuses=_plain),
                     Hypothesis("one client", _alone),
                     Hypothesis("step_size <= 2/(smoothness + strong_convexity)", _step),
                     Hypothesis("exact gradients", _exact)))
def w2_bound(s: Letters, rounds: np.ndarray) -> dict[str, Any]:
    """W2 <= (1 - m h)^k W2(0) + 1.65 (M/m) sqrt(h tau d).

    Source: Dalalyan and Karagulyan, "User-friendly guarantees for the Langevin Monte Carlo with inaccurate
    gradient", Theorem 1, with the potential and the step size scaled by tau.

    Examples
    --------
    >>> float(bound.terms["discretization"][-1].round(3))
    0.165
    """
    return {"initialization": decay(s.m * s.h, rounds) * s.start,
            "discretization": np.full(len(rounds), 1.65 * s.M / s.m * np.sqrt(s.h * s.tau * s.d))}
