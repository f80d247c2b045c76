"""What a closed form is: the law of the average in terms of named numbers, and the instance it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Instance(NamedTuple):
    """What the project's own exact laws take."""

    problem: Any
    algorithm: Any
    start: float


@dataclass(frozen=True)
class Form:
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


FORMS: dict[tuple[str, str], Form] = {}
"""By name and family."""


def form(name: str, *, instance: Callable[[Values], Instance], check: Callable[[Values], None],
         numbers: tuple[str, ...], counts: tuple[str, ...] = (), family: str = "commuting",
         curvatures: tuple[str, ...] = ("curvature_1", "curvature_2"),
         quantities: tuple[str, ...] = ("stationary_w2", "w2", "stationary_bias", "variance_ratio"),
         apart: tuple[str, ...] = ("distance", "heterogeneity"),
         hidden: tuple[tuple[str, tuple[float, float]], ...] = ()) -> Callable[[Any], Any]:
    """Decorator: this function of named numbers is the closed form of an algorithm; see `Form`."""
    def add(moments: Callable[[Values, int | None], list[Moments]]) -> Any:
        FORMS[name, family] = Form(name, family, curvatures, numbers, counts, quantities, apart,
                                   hidden, moments, instance, check)
        return moments

    return add


def geometric(x: Any, n: int) -> Any:
    """geo(x, n) = 1 + x + ... + x^(n-1), n >= 1, by doubling: no difference, and no division by 1 - x."""
    total, power = 1, x  # of one term, and x^1
    for bit in bin(n)[3:]:
        total, power = total * (1 + power), power**2
        if bit == "1":
            total, power = 1 + x * total, power * x
    return total


def geometric_deficit(x: Any, n: int) -> Any:
    """(n - geo(x, n))/(1 - x) = geo(x, 1) + ... + geo(x, n-1), by doubling."""
    total, deficit, power, terms = 1, 0, x, 1
    for bit in bin(n)[3:]:
        deficit = deficit * (1 + power) + terms * total
        total, power, terms = total * (1 + power), power**2, 2 * terms
        if bit == "1":
            deficit, total, power, terms = deficit + total, 1 + x * total, power * x, terms + 1
    return deficit


def geometric_slope(x: Any, y: Any, n: int) -> Any:
    """(geo(y, n) - geo(x, n))/(y - x) by doubling: products' slopes are f[x, y] g(y) + f(x) g[x, y]."""
    total, slope = 1, 0
    powers, of_power = (x, y), 1
    for bit in bin(n)[3:]:
        slope, total = slope * (1 + powers[1]) + total * of_power, total * (1 + powers[0])
        of_power, powers = of_power * (powers[0] + powers[1]), (powers[0] ** 2, powers[1] ** 2)
        if bit == "1":
            slope, total = total + y * slope, 1 + x * total
            of_power, powers = powers[0] + y * of_power, (powers[0] * x, powers[1] * y)
    return slope
