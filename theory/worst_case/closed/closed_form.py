"""What a closed form is: the law of the average in terms of named numbers, and the instance it is of.

`QUANTITIES` says what may be maximised: a number made of the moments of a law, which `of_quantity` has by
exact laws. `parts_of` reads a class of problems: numbers and ranges of them, checked before any work begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from fedsim.settings.validation import fraction, nonnegative, one_of, positive, real, shown, whole

from ..exact_values import Instance
from ..numbers import sqrt
from ..problem_class import ProblemClass, alone, inside, span

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


@dataclass(frozen=True, kw_only=True)
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
    moments: Callable[[Values, int | None], list[Moments]]
    instance: Callable[[Values], Instance]
    check: Callable[[Values], None]
    numbers: tuple[str, ...]
    counts: tuple[str, ...] = ()
    family: str = "commuting"
    curvatures: tuple[str, ...] = ("curvature_1", "curvature_2")
    quantities: tuple[str, ...] = ("stationary_w2", "w2", "stationary_bias", "variance_ratio")
    apart: tuple[str, ...] = ("distance", "heterogeneity")
    hidden: tuple[tuple[str, tuple[float, float]], ...] = ()


CLOSED_FORMS: dict[tuple[str, str], ClosedForm] = {}
"""By name and family."""


def closed_form(name: str, **given: Any) -> Callable[[Any], Any]:
    """Decorator: this function of named numbers is the closed form of an algorithm; see `ClosedForm`."""
    def add(moments: Callable[[Values, int | None], list[Moments]]) -> Any:
        form = ClosedForm(name=name, moments=moments, **given)
        CLOSED_FORMS[name, form.family] = form
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

FREE_WEIGHTS, FREE_MIXING = (1.0 / (1.0 + math.exp(6.0)), 1.0 / (1.0 + math.exp(-6.0))), (5e-5, 0.95)
"""Ranges that a search tries for two clients, where the class gives none."""


ALLOWED: dict[str, Callable[[str, Any], float]] = {
    "curvatures": positive, "step_size": positive, "shared_noise": fraction, "weight": inside,
    "distance": nonnegative, "heterogeneity": nonnegative, "gradient_noise": nonnegative, "mixing": inside,
    "start": real,
}


@dataclass(frozen=True)
class Part:
    """A part of a class of problems, as a closed form reads it.

    Attributes
    ----------
    form, quantity : ClosedForm, Quantity
    fixed : mapping name -> float
    ranges : mapping name -> (low, high)
        The unknowns, in their order.
    counts : mapping name -> int
        "n_rounds" among them, where the quantity is at a round.
    """

    form: ClosedForm
    quantity: Quantity
    fixed: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    counts: Mapping[str, int]


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


def require_left_out(told: Mapping[str, Any], own: Collection[str], why: str) -> None:
    """Refuse arguments that are no one's own, of those that were given."""
    for name, value in told.items():
        if name not in own:
            raise ValueError(f"{name}={shown(value)} must be left out: {why}")


def class_of(quantity: Any, given: Mapping[str, Any], told: Mapping[str, Any]) -> ProblemClass:
    """The class of problems of the arguments of `certify`, of which numbers are known and pairs are not.

    Raises
    ------
    ValueError
        Naming argument, value and condition: of ranges that are none, of numbers outside of what they may
        be, and of arguments that do not belong together.
    """
    form, row = chosen(quantity, given["family"])
    at_rounds = ("start", "n_rounds") if row.at_rounds else ()
    apart = form.apart if row.of_minimizers else ()
    own = {"family", "curvatures", *form.numbers, *form.counts, *apart, *at_rounds}
    require_left_out(told, own, f"{quantity} of the {form.family} family has no such argument")
    for name in ("mixing", "n_rounds"):
        if name in own and given[name] is None:
            raise ValueError(f"{name}=None must be given: {quantity} depends on it")
    named = [name for name in apart if given[name] is not None]
    if apart and len(named) != 1:
        values = ", ".join(f"{name}={shown(given[name])}" for name in apart)
        raise ValueError(f"{values}: exactly one of {' and '.join(apart)} must be given")
    given = {**given, "start": 0.0 if given["start"] is None else given["start"]}
    numbers = ("curvatures", *form.numbers, *named, *at_rounds[:1])
    asked: dict[str, Any] = {name: number_or_range(name, given[name]) for name in numbers}
    counts: dict[str, Any] = {name: whole(name, given[name], *COUNTS[name])
                              for name in (*form.counts, *at_rounds[1:])}
    curvatures, rotated = asked.pop("curvatures"), form.family == "rotated"
    for name in ("start", "gradient_noise"):  # a number alone would be the largest
        asked[name] = span(name, asked.get(name, 0.0), real)
    return ProblemClass(
        dim=2 if rotated else 1, spectra="ends" if rotated else "free", curvature_range=curvatures,
        weights=asked.pop("weight", "equal"), start_variance=0.0, **asked, **counts)


def parts_of(quantity: Any, cls: ProblemClass) -> Iterator[Part]:
    """The parts of a class that have one number of steps and rounds each.

    Raises
    ------
    ValueError
        Naming argument, value and condition: of classes of which nothing is proved, of too many unknowns, and
        where something would not be stable.
    """
    form, row = chosen(quantity, "rotated" if cls.rotated else "commuting")
    _require_proved(form, row, quantity, cls)
    ends = number_or_range("curvatures", alone(cls.curvatures))
    numbers: dict[str, Any] = dict.fromkeys(form.curvatures, ends)
    if form.family == "rotated":
        if not isinstance(ends, tuple):
            raise ValueError(f"curvatures={shown(ends)} must be a pair (low, high): the ends of both spectra")
        numbers = dict(zip(form.curvatures, ends, strict=True))
    for name, value in _numbers(form, row, cls).items():
        numbers[name] = number_or_range(name, alone(value))
    fixed = {name: value for name, value in numbers.items() if not isinstance(value, tuple)}
    ranges = {name: value for name, value in numbers.items() if isinstance(value, tuple)} | dict(form.hidden)
    if len(ranges) > MOST_UNKNOWNS:
        raise ValueError(f"{len(ranges)} unknowns ({', '.join(ranges)}) must be at most {MOST_UNKNOWNS}: the "
                         "number of boxes grows tenfold with each; give one number instead of a range")
    worst = {**fixed, **{name: high for name, (_, high) in ranges.items()}, "curvature": cls.curvatures[1]}
    names = (*form.counts, *(("n_rounds",) if row.at_rounds else ()))
    for several in product(*(getattr(cls, name) for name in names)):
        counts = {name: whole(name, one, *COUNTS[name]) for name, one in zip(names, several, strict=True)}
        form.check({**worst, **counts})
        yield Part(form, row, fixed, ranges, counts)


def _require_proved(form: ClosedForm, row: Quantity, quantity: str, cls: ProblemClass) -> None:
    """Refuse a class that has problems of which the closed form says nothing."""
    rotated = form.family == "rotated"
    wanted: dict[str, Any] = {"dim": 2, "spectra": "ends", "weights": "equal"} if rotated else {"dim": 1}
    wanted |= {"n_clients": 2} if len(form.curvatures) > 1 else {}
    wanted |= {"start_variance": 0.0} if row.at_rounds else {}
    for name, only in wanted.items():
        if getattr(cls, name) != only:
            raise ValueError(f"{name}={getattr(cls, name)!r} of the problem class must be {only!r}: of "
                             f"others {quantity} is not certified, but by `commuting_supremum`")
    if cls.step_size is None:
        raise ValueError("step_size=None of the problem class must be given: no hypothesis limits it")
    if row.at_rounds and cls.start != 0.0 and not isinstance(cls.start, tuple):
        raise ValueError(f"start={cls.start:g} of the problem class must be 0 or a pair (low, high): one "
                         "number lets agents begin apart")
    if form.apart and row.of_minimizers and cls.heterogeneity is None and (
            rotated or (row.at_rounds and cls.distance is None)):
        raise ValueError(f"heterogeneity=None of the problem class must be given: of minimizers alone "
                         f"nothing is proved of {quantity}")


def _numbers(form: ClosedForm, row: Quantity, cls: ProblemClass) -> dict[str, Any]:
    """The numbers that the closed form needs, in the order of its unknowns."""
    weights = {"free": FREE_WEIGHTS, "equal": 0.5}
    said = {"weight": weights[cls.weights] if isinstance(cls.weights, str) else cls.weights,
            "mixing": FREE_MIXING if cls.mixing is None else cls.mixing, "step_size": cls.step_size,
            "shared_noise": cls.shared_noise, "gradient_noise": cls.gradient_noise}
    if not isinstance(cls.gradient_noise, tuple):
        said["gradient_noise"] = (0.0, cls.gradient_noise)
    said |= {"distance": (0.0, cls.minimizers) if cls.distance is None else cls.distance,
             "heterogeneity": cls.heterogeneity, "start": cls.start}
    apart = ["distance" if cls.heterogeneity is None else "heterogeneity"]
    names = (*form.numbers, *(apart if form.apart and row.of_minimizers else ()),
             *(("start",) if row.at_rounds else ()))
    return {name: said[name] for name in names}
