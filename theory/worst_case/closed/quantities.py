"""What may be maximised: a number made of the moments of a law, and the same by the project's exact laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...exact import exact_law, stationary_law
from ..duals import sqrt
from .forms import Instance, Moments


@dataclass(frozen=True)
class Quantity:
    """One row.

    Attributes
    ----------
    objective : callable(list of Moments) -> number
        Smooth, and what is maximised.
    squared : bool
        Whether that is the quantity's square.
    at_rounds : bool
        Whether it is at a round, from a start.
    of_minimizers : bool
        Whether it depends on how far the clients' minimizers are apart.
    measure : callable(Instance, n_rounds) -> float
        The quantity by `theory.stationary_law` or `theory.exact_law`.
    """

    objective: Callable[[list[Moments]], Any]
    squared: bool
    at_rounds: bool
    of_minimizers: bool
    measure: Callable[[Instance, Any], float]


def w2_sq(moments: list[Moments]) -> Any:
    """Squared W2 to the target: offset^2 + (sqrt V - sqrt T)^2, of V = (1 + e) T: T (e/(1 + sqrt(1+e)))^2."""
    total: Any = 0
    for offset_sq, excess, precision in moments:
        total = total + offset_sq + (excess / (1 + sqrt(1 + excess))) ** 2 / precision
    return total


def bias_sq(moments: list[Moments]) -> Any:
    """Squared distance of the mean from the global minimizer."""
    return sum((one.offset_sq for one in moments[1:]), start=moments[0].offset_sq)


def _ratio(moments: list[Moments]) -> Any:
    (_, excess, _), = moments
    return 1 + excess


def _stationary(at: Instance) -> Any:
    return stationary_law(at.problem, at.algorithm)


def _measured_w2(at: Instance, n_rounds: Any) -> float:
    return float(_stationary(at).w2(at.algorithm.target(at.problem)))


def _measured_w2_at(at: Instance, n_rounds: Any) -> float:
    law = exact_law(at.problem, at.algorithm, n_rounds, start=np.array([at.start]), record=[n_rounds])
    return float(law.w2()[-1])


def _measured_bias(at: Instance, n_rounds: Any) -> float:
    return float(np.linalg.norm(_stationary(at).mean - at.algorithm.target(at.problem).mean))


def _measured_ratio(at: Instance, n_rounds: Any) -> float:
    ratios = _stationary(at).variances / at.algorithm.target(at.problem).variances
    return float(ratios[0])


QUANTITIES = {
    "stationary_w2": Quantity(w2_sq, True, False, True, _measured_w2),
    "w2": Quantity(w2_sq, True, True, True, _measured_w2_at),
    "stationary_bias": Quantity(bias_sq, True, False, True, _measured_bias),
    "variance_ratio": Quantity(_ratio, False, False, False, _measured_ratio),
}
