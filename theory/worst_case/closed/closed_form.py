"""What a closed form is: the law of the average in terms of named numbers, and the instance it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..values import Instance

Values = Mapping[str, Any]
"""Numbers by name: floats, intervals, duals or fractions; whole numbers are Python's."""


class Moments(NamedTuple):
    """The Gaussian law of the average in one coordinate.

    Attributes
    ----------
    offset_sq : square of the mean minus the global minimizer
    excess : the average's variance over the target's, minus 1; of the order of the step size
    precision : of the target, one over its variance
    """

    offset_sq: Any
    excess: Any
    precision: Any


@dataclass(frozen=True)
class ClosedForm:
    """An algorithm on scalar clients.

    Attributes
    ----------
    name : str
        First part of the ids of its quantities, e.g. "fa_ld".
    family : "commuting" or "rotated"
    curvatures : tuple of str
        Names of the clients' curvatures; of the ends of both spectra where the family is rotated.
    numbers, counts : tuple of str
        Further arguments: numbers, which may be ranges, and whole numbers.
    quantities : tuple of str
        Which rows of `quantities` it has.
    apart : tuple of str
        Which of `distance` and `heterogeneity` may say how far the clients are apart; one is wanted.
    hidden : tuple of (name, (low, high))
        Unknowns that nobody gives, e.g. an angle.
    moments : callable(values, n_rounds or None) -> list of Moments
        One per coordinate; stationary for None. A start is at values["start"].
    instance : callable(values) -> Instance
    check : callable(highest)
        Raises ValueError where the numbers are not stable; each is at the end that is worst.
    """

    name: str
    family: str
    curvatures: tuple[str, ...]
    numbers: tuple[str, ...]
    counts: tuple[str, ...]
    quantities: tuple[str, ...]
    apart: tuple[str, ...]
    hidden: tuple[tuple[str, tuple[float, float]], ...]
    moments: Callable[[Values, int | None], list[Moments]]
    instance: Callable[[Values], Instance]
    check: Callable[[Values], None]


CLOSED_FORMS: dict[tuple[str, str], ClosedForm] = {}
"""By name and family."""


def closed_form(name: str, *, instance: Callable[[Values], Instance], check: Callable[[Values], None],
         numbers: tuple[str, ...], counts: tuple[str, ...] = (), family: str = "commuting",
         curvatures: tuple[str, ...] = ("curvature_1", "curvature_2"),
         quantities: tuple[str, ...] = ("stationary_w2", "w2", "stationary_bias", "variance_ratio"),
         apart: tuple[str, ...] = ("distance", "heterogeneity"),
         hidden: tuple[tuple[str, tuple[float, float]], ...] = ()) -> Callable[[Any], Any]:
    """Decorator: this function of named numbers is the closed form of an algorithm; see `ClosedForm`."""
    def add(moments: Callable[[Values, int | None], list[Moments]]) -> Any:
        CLOSED_FORMS[name, family] = ClosedForm(name, family, curvatures, numbers, counts, quantities, apart,
                                   hidden, moments, instance, check)
        return moments

    return add
