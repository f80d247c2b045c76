"""The numbers that the statements of the paper share."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.law import recorded_rounds
from fedsim.staleness import as_staleness
from fedsim.validation import whole

PAPER = "Stale gradients"


def iterations(n_rounds: Any, record: Any) -> np.ndarray:
    """The L at which a rate is evaluated: recorded rounds without 0."""
    return recorded_rounds(whole("n_rounds", n_rounds, 1), record)[1:]


def fixed_step(algorithm: Any) -> float:
    """h; the paper's statements are for a constant step size."""
    if not algorithm.schedule.is_constant:
        raise ValueError(f"step_size={algorithm.step_size!r} must be constant: the paper's theorems have "
                         "one h")
    return float(algorithm.schedule.largest)


def largest_age(algorithm: Any, n_rounds: int) -> int:
    """tau: the largest age that occurs in so many updates, or the age that a schedule settles at."""
    staleness = as_staleness(algorithm.staleness)
    if staleness.limit is not None:
        return staleness.limit
    return int(algorithm.ages(n_rounds).max(initial=0))
