"""What the statements of the paper share: their hypotheses, and the numbers L, h and tau."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.stale import StaleSGLD
from fedsim.law import recorded_rounds
from fedsim.problems.quadratic import Quadratic
from fedsim.stability import stability_radius
from fedsim.staleness import Workers, as_staleness
from fedsim.validation import whole

from ..bound import ROUNDING, Assumption
from ..constants import Constants
from ..exact.stale import stability_limit

PAPER = "Stale gradients"

STANDARD = (
    "elliptic or hypoelliptic diffusion (Assumption 2)",
    "psi and its derivatives up to the third bounded by a function whose moments along the chain are bounded "
    "(Assumption 3)",
    "drift infinitely differentiable with bounded derivatives of any order (Assumption 4)",
    "constant step size",
)
"""Of Lemma 1; psi solves the Poisson equation."""
HYPOTHESES = (
    "unbiased stochastic gradients of bounded variance, Lipschitz (Assumption 1)", *STANDARD,
    "age at most tau",
)
"""Of the theorems. No number decides Assumptions 1 to 4, but for bounded moments: `stable_step`."""


def iterations(n_rounds: Any, record: Any) -> np.ndarray:
    """The L at which a rate is evaluated: recorded rounds without 0."""
    return recorded_rounds(whole("n_rounds", n_rounds, 1), record)[1:]


def fixed_step(algorithm: Any) -> float:
    """h; the paper's statements are for a constant step size."""
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: the paper's theorems have "
                         "one h")
    return float(algorithm.schedule.largest)


def each_age(algorithm: Any, n_rounds: int) -> np.ndarray:
    """Ages of so many updates under every schedule of the algorithm, (m, n_rounds)."""
    staleness, first = as_staleness(algorithm.staleness), algorithm.ages(n_rounds)
    if isinstance(staleness, Workers) and staleness.schedules > 1:
        staleness = staleness.worked_out(n_rounds)  # type: ignore[assignment]
    return np.atleast_2d(getattr(staleness, "values", first))


def largest_age(algorithm: Any, n_rounds: int) -> int:
    """tau: the age that the schedule settles at, or the largest one in so many updates of any schedule."""
    limit = as_staleness(algorithm.staleness).limit
    return int(each_age(algorithm, n_rounds).max(initial=0)) if limit is None else limit


def stable_step(constants: Constants, algorithm: Any) -> Assumption:
    """Bounded moments along the chain (Assumption 3, part 2), as far as numbers decide it.

    On quadratic f the moments stay bounded exactly for a stable step size: for stale SGLD with an age that
    settles, h L < 2 sin(pi / (2 (2 tau + 1))); otherwise the noise-free recursion must shrink, at the
    smallest and the largest curvature of f. For other f this is necessary where f is nearly quadratic
    about its minimizer, and not sufficient.
    """
    age, h = as_staleness(algorithm.staleness).limit, float(algorithm.schedule.largest)
    if age is not None and isinstance(algorithm, StaleSGLD):
        name, value = "step_size smoothness < 2 sin(pi/(2 (2 tau + 1)))", h * constants.smoothness
        limit = stability_limit(age)
    else:
        ends = np.array([[constants.strong_convexity, constants.smoothness]])
        name, limit = "growth per update < 1 at strong_convexity and smoothness", 1.0
        value = stability_radius(Quadratic(ends, np.zeros((1, 2))), algorithm)
    room = (limit - value) / limit
    room = room if room > 0.0 else min(room, -ROUNDING)  # the limit itself is not stable
    return Assumption(f"stable step size (bounded moments): {name}", room > 0.0, room)
