"""What a closed form is: the law of the average in terms of named numbers, and the instance it is of.

`QUANTITIES` says what may be maximised: a number made of the moments of a law, which `of_quantity` has by
exact laws. `setting` reads a class of problems: numbers and ranges of them, checked before any work begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedsim.settings.validation import fraction, nonnegative, one_of, positive, real, shown, whole

from ..exact_values import Instance
from ..numbers import sqrt

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


SMALLEST, LARGEST = 1e-40, 1e40
MOST_UNKNOWNS = 4
"""Boxes grow tenfold with every further one."""

COUNTS = {"local_steps": (1, 10_000), "leapfrog_steps": (1, 1_000), "staleness": (0, 1),
          "n_rounds": (1, 10_000)}
"""Whole numbers, from and to; evaluating a box takes work in proportion to some of them."""

DEFAULTS = {"local_steps": 1, "leapfrog_steps": 1, "shared_noise": 0.0, "weight": 0.5, "distance": None,
            "heterogeneity": None, "gradient_noise": 0.0, "mixing": None, "staleness": 0, "start": None,
            "n_rounds": None}


def _inside(name: str, value: Any) -> float:
    number = real(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name}={shown(value)} must lie strictly between 0 and 1")
    return number


ALLOWED: dict[str, Callable[[str, Any], float]] = {
    "curvatures": positive, "step_size": positive, "shared_noise": fraction, "weight": _inside,
    "distance": nonnegative, "heterogeneity": nonnegative, "gradient_noise": nonnegative, "mixing": _inside,
    "start": real,
}


@dataclass(frozen=True)
class Setting:
    """A class of problems.

    Attributes
    ----------
    form, quantity : ClosedForm, Quantity
    fixed : mapping name -> float
    ranges : mapping name -> (low, high)
        The unknowns, in their order.
    counts : mapping name -> int
    n_rounds : int or None
    """

    form: ClosedForm
    quantity: Quantity
    fixed: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    counts: Mapping[str, int]
    n_rounds: int | None


def _number(name: str, value: Any) -> float:
    """A number of its kind, whose powers stay far from the ends of float64."""
    number = ALLOWED[name.partition("[")[0]](name, value)
    if number != 0.0 and not SMALLEST <= abs(number) <= LARGEST:
        raise ValueError(f"{name}={shown(value)} must be between {SMALLEST:g} and {LARGEST:g} in size: "
                         "choose other units")
    return number


def number_or_range(name: str, value: Any) -> float | tuple[float, float]:
    """A number, or a pair (low, high) of what is not known."""
    if not isinstance(value, (tuple, list)):
        return _number(name, value)
    if len(value) != 2:
        raise ValueError(f"{name}={shown(value)} must be a number, or a pair (low, high)")
    low, high = (_number(f"{name}[{i}]", end) for i, end in enumerate(value))
    if not low < high:
        raise ValueError(f"{name}={shown(value)} must be a range with low < high; one number says that it is "
                         "known")
    return low, high


def chosen(quantity: Any, family: Any) -> tuple[ClosedForm, Quantity]:
    """The closed form and the row of an id like "fa_ld.stationary_w2"."""
    one_of("family", family, tuple(dict.fromkeys(kind for _, kind in CLOSED_FORMS)))
    known = {f"{form.name}.{row}": (form, QUANTITIES[row]) for form in CLOSED_FORMS.values()
             if form.family == family for row in form.quantities}
    return known[one_of("quantity", quantity, tuple(known))]


def _is_default(name: str, value: Any) -> bool:
    default = DEFAULTS[name]
    return value is default or (type(value) in (int, float) and value == default)


def _require_own(form: ClosedForm, row: Quantity, quantity: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of distance and heterogeneity is given; arguments of other quantities are refused."""
    apart = form.apart if row.of_minimizers else ()
    own = {*form.numbers, *form.counts, *apart, *(("start", "n_rounds") if row.at_rounds else ())}
    for name in DEFAULTS:
        if name not in own and not _is_default(name, given[name]):
            raise ValueError(f"{name}={shown(given[name])} must be left out: {quantity} of the {form.family} "
                             "family has no such argument")
    if "mixing" in own and given["mixing"] is None:
        raise ValueError(f"mixing=None must be given: {quantity} depends on it")
    if row.at_rounds and given["n_rounds"] is None:
        raise ValueError(f"n_rounds=None must be given: {quantity} is at a round")
    named = tuple(name for name in apart if given[name] is not None)
    if apart and len(named) != 1:
        values = ", ".join(f"{name}={shown(given[name])}" for name in apart)
        raise ValueError(f"{values}: exactly one of {' and '.join(apart)} must be given")
    return named


def setting(quantity: Any, family: Any, given: Mapping[str, Any]) -> Setting:
    """The class of problems of these arguments.

    Raises
    ------
    ValueError
        Naming argument, value and condition: of ranges that are none, of numbers outside of what they may
        be, of arguments that do not belong together, of too many unknowns, and where something would not be
        stable.
    """
    form, row = chosen(quantity, family)
    named = _require_own(form, row, quantity, given)
    counts = {name: whole(name, given[name], *COUNTS[name]) for name in form.counts}
    n_rounds = whole("n_rounds", given["n_rounds"], *COUNTS["n_rounds"]) if row.at_rounds else None
    curvatures = number_or_range("curvatures", given["curvatures"])
    fixed: dict[str, float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    if form.family == "rotated":
        if not isinstance(curvatures, tuple):
            raise ValueError(f"curvatures={shown(curvatures)} must be a pair (low, high): the ends of both "
                             "spectra")
        fixed |= zip(form.curvatures, curvatures, strict=True)
    else:
        _take(dict.fromkeys(form.curvatures, curvatures), fixed, ranges)
    wanted = {name: number_or_range(name, given[name]) for name in (*form.numbers, *named)}
    if row.at_rounds:
        wanted["start"] = 0.0 if given["start"] is None else number_or_range("start", given["start"])
    _take(wanted, fixed, ranges)
    ranges |= form.hidden
    if len(ranges) > MOST_UNKNOWNS:
        raise ValueError(f"{len(ranges)} unknowns ({', '.join(ranges)}) must be at most {MOST_UNKNOWNS}: the "
                         "number of boxes grows tenfold with each; give one number instead of a range")
    highest = curvatures[1] if isinstance(curvatures, tuple) else curvatures
    worst = {name: high for name, (_, high) in ranges.items()}
    form.check({**fixed, **worst, **counts, "curvature": highest})
    return Setting(form, row, fixed, ranges, counts, n_rounds)


def _take(given: Mapping[str, Any], fixed: dict[str, float], ranges: dict[str, tuple[float, float]]) -> None:
    """Put ranges to the unknowns, numbers to what is known."""
    for name, value in given.items():
        if isinstance(value, tuple):
            ranges[name] = value
        else:
            fixed[name] = value
