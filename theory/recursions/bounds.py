"""From a recursion to the terms, the floor and the start of a bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..facts import Constants
from ..statement import Terms
from .floor import floor_state
from .rounds import Recursion, evaluate


def gradients_at_minimizer(constants: Constants, weights: Any) -> float:
    """Gamma = (sum_c w_c |grad f_c(theta_*)|^2)^(1/2), or the largest norm where only that is known."""
    if constants.n_clients == 1:
        return 0.0
    if constants.gradient_at_minimizer is None:
        return float(constants.need("heterogeneity"))
    return float(np.sqrt(np.asarray(weights) @ constants.gradient_norms**2))


def recursion_terms(recursion: Recursion, rounds: np.ndarray) -> Terms:
    """The terms at the recorded rounds, and the floor where all rounds are the same."""
    first = recursion.terms(recursion.begin(), {"initialization": recursion.begin()[0]}, 0)
    return Terms(evaluate(recursion, rounds), floor=floor(recursion), start_distance=sum(first.values()))


def floor(recursion: Any) -> float | None:
    """The limit of the bound, infinite where it has none; None for schedules."""
    if not recursion.constant:
        return None
    last = floor_state(recursion, recursion.given(10**18), recursion.scale)
    return math.inf if last is None else float(sum(recursion.terms(last.tolist(), {"initialization": last[0]},
                                                                   10**18).values()))
