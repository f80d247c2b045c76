"""From a recursion to the terms, the floor and the start of a bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..declare.statement import Terms
from .floor import FOREVER, floor_state
from .rounds import Recursion, evaluate

HESSIAN_SMOOTHNESS = {
    "hessian_smoothness": "float, optional: M with |(Hess f(x) - Hess f(y)) u| <= M |x-y| |u| for the global "
                          "f; 0 for quadratics. Not known by default, which is never read as 0; "
                          "constants of federated or global potentials have one."}


def recursion_terms(recursion: Recursion, rounds: np.ndarray) -> Terms:
    """The terms at the recorded rounds, and the floor where all rounds are the same."""
    first = recursion.terms(recursion.begin(), {"initialization": recursion.begin()[0]}, 0)
    terms = evaluate(recursion, rounds)
    return Terms(terms, floor=floor(recursion), start_distance=sum(first.values()))


def floor(recursion: Any) -> float | None:
    """The limit of the bound, infinite where its state has none.

    None for schedules, and where float64 has too few digits to certify it: step sizes near its resolution.
    """
    if not recursion.constant:
        return None
    try:
        last = floor_state(recursion, recursion.given(FOREVER), recursion.scale)
    except ArithmeticError:
        return None
    if last is None:
        return math.inf
    return float(sum(recursion.terms(last.tolist(), {"initialization": float(last[0])}, FOREVER).values()))
