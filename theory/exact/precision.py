"""How many digits of a law are left next to the stability limit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..float_range import PrecisionWarning
from .batches import has_minibatches

FEW = 6.0
"""Digits below which a law is warned of."""
AWAY = 1e-6
"""Relative distance at which contraction is compared with that of the step size asked for."""
DIGITS = 15.65


def distance_to_limit(problem: Any, algorithm: Any) -> float:
    """About (limit - step size)/limit where that is tiny, else infinity.

    The gap 1 - radius falls linearly to zero at a limit: a step size smaller by `AWAY` has a gap that is
    larger by AWAY/distance. Where contraction is slow because steps are small it is not larger.
    """
    gap = 1.0 - algorithm._radius(problem)
    if gap > AWAY or not algorithm.schedule.is_constant:
        return float("inf")
    step = algorithm.schedule.largest * (1.0 - AWAY)
    name = "step_size" if "step_size" in algorithm.__dataclass_fields__ else "trajectory_length"
    wider = 1.0 - replace(algorithm, **{name: step})._radius(problem)
    gap = max(gap, 1e-16)
    return AWAY * gap / (wider - gap) if wider > 100.0 * gap else float("inf")


def rounding(problem: Any, algorithm: Any) -> float:
    """About the relative error that rounding leaves in a stationary law next to the stability limit."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        distance = np.inf if has_minibatches(problem) else distance_to_limit(problem, algorithm)
    return float(10.0**-DIGITS / max(distance, 1e-16))


def warn_of_lost_digits(problem: Any, algorithm: Any, n_rounds: float = np.inf) -> None:
    """Give a `PrecisionWarning` where fewer than `FEW` digits of a law after so many rounds are left.

    Each round adds an error of rounding, and 1/(1 - radius) of them are remembered.
    """
    if n_rounds < 10.0 ** (DIGITS - FEW) or has_minibatches(problem):
        return
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        distance = distance_to_limit(problem, algorithm)
    left = DIGITS + np.log10(max(distance, 1e-16, 1.0 / n_rounds))
    if left < FEW:
        size = algorithm.schedule.largest
        warnings.warn(f"step_size={size:.17g} is within {max(distance, 1e-16):.1g} of the stability limit: "
                      f"about {left:.0f} digits of this law are left; take a smaller step size",
                      PrecisionWarning, stacklevel=3)
