"""What may be maximised: a number made of the moments of a law; `values.of_quantity` has it by exact laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..duals import sqrt
from .closed_form import Moments


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
    """

    objective: Callable[[list[Moments]], Any]
    squared: bool
    at_rounds: bool
    of_minimizers: bool


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


QUANTITIES = {
    "stationary_w2": Quantity(w2_sq, True, False, True),
    "w2": Quantity(w2_sq, True, True, True),
    "stationary_bias": Quantity(bias_sq, True, False, True),
    "variance_ratio": Quantity(_ratio, False, False, False),
}
