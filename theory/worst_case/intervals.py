"""Interval arithmetic without a dependency: every result contains the exact one, whatever was rounded.

NumPy's +, -, *, / and sqrt are correctly rounded (IEEE 754), so a step of `np.nextafter` is rigorous;
exp, log and general powers are not, and are missing here. Every operation refuses a thread that flushes
subnormal numbers to zero (`theory.certificates.refuse_flushing`). Floats beside an `Interval` are refused:
say `Interval.exact(0.1)` for the double that 0.1 is, or `Interval.rational(1, 10)`. Whole numbers and
`Fraction` are taken as they are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from fedsim.settings.validation import Array, array, whole

from ..certificates import refuse_flushing
from .rounding import doubles, down, power, up

HIGHEST_POWER = 2**20


def _between(operation: Callable[[Any, Any], Interval]) -> Callable[[Any, Any], Any]:
    """An operation of intervals, offered what stands beside one; what carries more does it itself."""
    @functools.wraps(operation)
    def offered(self: Interval, other: Any) -> Any:
        if isinstance(other, Exact) and not isinstance(other, Interval):
            return NotImplemented
        refuse_flushing()
        with np.errstate(all="ignore"):
            return operation(self, Interval.beside(other))

    return offered


class Exact:
    """What numbers with a proof refuse: to become a float, and to be compared as one is."""

    __array_ufunc__ = None  # so that NumPy's arrays leave the operators to us
    __hash__ = None  # type: ignore[assignment]

    def _refuse(self, *others: Any) -> NoReturn:
        raise TypeError(f"no {type(self).__name__} is a float, or has an order: what a float says of it is "
                        "no proof; read its ends, lo and hi")

    __float__ = __int__ = __index__ = __bool__ = __array__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse  # type: ignore[assignment]


class Interval(Exact):
    """Closed intervals, an array of them: all real numbers between two ends, which may be infinite.

    Parameters
    ----------
    lo, hi : array_like of one shape
        Ends, as the doubles that they are; ``lo <= hi``.

    Raises
    ------
    ValueError
        For ends that are no doubles, in the wrong order, or with no real number between them.
    TypeError
        For an operation that would compute with floats.
    RuntimeError
        Here and in every operation, where the thread flushes subnormal numbers to zero.

    Examples
    --------
    >>> third = theory.worst_case.Interval.rational(1, 3)
    >>> one = third * 3
    >>> bool(one.lo <= 1.0 <= one.hi), bool(one.hi - one.lo < 1e-15)
    (True, True)
    >>> 0.1 * third
    Traceback (most recent call last):
    ...
    TypeError: 0.1 beside an Interval must be exact: say Interval.exact(0.1), or Interval.rational
    """

    __slots__ = ("hi", "lo")
    lo: Array
    hi: Array

    def __init__(self, lo: Any, hi: Any) -> None:
        refuse_flushing()
        low, high = np.broadcast_arrays(doubles("lo", lo), doubles("hi", hi))
        if not (low <= high).all():
            raise ValueError(f"lo={lo!r} must be at most hi={hi!r}, and both numbers")
        if (low == np.inf).any() or (high == -np.inf).any():
            raise ValueError(f"lo={lo!r} and hi={hi!r} must have a real number between them")
        self.lo, self.hi = low, high

    @classmethod
    def _of(cls, lo: Any, hi: Any) -> Interval:
        made = object.__new__(cls)
        made.lo, made.hi = lo, hi
        return made

    @classmethod
    def exact(cls, value: Any) -> Interval:
        """The finite doubles of an array, each exactly what it is."""
        refuse_flushing()
        doubles("value", value)
        values = array("value", value)
        return cls._of(values, values)

    @classmethod
    def rational(cls, numerator: int | Fraction, denominator: int = 1) -> Interval:
        """A fraction, between two neighbouring doubles where it is none."""
        refuse_flushing()
        value = Fraction(numerator, denominator)
        try:
            near = float(value)  # a quotient of integers is correctly rounded
        except OverflowError:
            near = math.inf if value > 0 else -math.inf
        ends = (near, near) if near == value else (down(near), up(near))
        return cls._of(*map(np.array, ends))

    @classmethod
    def beside(cls, other: Any) -> Interval:
        """What stands beside one, as one itself."""
        if isinstance(other, Interval):
            return other
        if isinstance(other, (int, Fraction)) and not isinstance(other, bool):
            return cls.rational(other)
        raise TypeError(f"{other!r} beside an Interval must be exact: say Interval.exact({other!r}), "
                        "or Interval.rational")

    def contains(self, value: Any) -> Any:
        """Whether a float, an array or a Fraction lies in it; without rounding."""
        if isinstance(value, Fraction):
            ends = np.broadcast(self.lo, self.hi)  # Python compares a float with a Fraction exactly
            return np.array([float(low) <= value <= float(high) for low, high in ends]).reshape(ends.shape)
        return (self.lo <= value) & (value <= self.hi)

    def __repr__(self) -> str:
        return f"Interval({self.lo.tolist()!r}, {self.hi.tolist()!r})"

    def __neg__(self) -> Interval:
        return Interval._of(-self.hi, -self.lo)

    @_between
    def __add__(self, b: Interval) -> Interval:
        return Interval._of(down(self.lo + b.lo), up(self.hi + b.hi))

    @_between
    def __sub__(self, b: Interval) -> Interval:
        return Interval._of(down(self.lo - b.hi), up(self.hi - b.lo))

    @_between
    def __mul__(self, b: Interval) -> Interval:
        return _hull(self.lo * b.lo, self.lo * b.hi, self.hi * b.lo, self.hi * b.hi)

    @_between
    def __truediv__(self, b: Interval) -> Interval:
        found = _hull(self.lo / b.lo, self.lo / b.hi, self.hi / b.lo, self.hi / b.hi)
        unknown = (b.lo <= 0.0) & (b.hi >= 0.0)
        return Interval._of(np.where(unknown, -np.inf, found.lo), np.where(unknown, np.inf, found.hi))

    def __pow__(self, n: int) -> Interval:
        n = whole("n", n, 0, HIGHEST_POWER)
        refuse_flushing()
        if n == 0:
            return Interval._of(np.ones_like(self.lo), np.ones_like(self.hi))
        low, high = np.abs(self.lo), np.abs(self.hi)
        with np.errstate(all="ignore"):
            if n % 2 == 0:
                across = (self.lo <= 0.0) & (self.hi >= 0.0)
                nearest = np.where(across, 0.0, np.minimum(low, high))
                return Interval._of(power(nearest, n, down), power(np.maximum(low, high), n, up))
            return Interval._of(
                np.where(self.lo >= 0.0, power(low, n, down), -power(low, n, up)),
                np.where(self.hi >= 0.0, power(high, n, up), -power(high, n, down)))

    def sqrt(self) -> Interval:
        """The square root of what is at least 0 in it; where nothing is, nothing is known."""
        refuse_flushing()
        with np.errstate(all="ignore"):
            low = np.maximum(down(np.sqrt(np.maximum(self.lo, 0.0))), 0.0)
            high = up(np.sqrt(np.maximum(self.hi, 0.0)))
        none = self.hi < 0.0
        return Interval._of(np.where(none, -np.inf, low), np.where(none, np.inf, high))

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Interval:
        return self.beside(other) - self

    def __rtruediv__(self, other: Any) -> Interval:
        return self.beside(other) / self


def _hull(*ends: Array) -> Interval:
    """Of products or quotients of ends, outward. 0 times infinity is 0: all that is meant is finite."""
    low, high = ends[0], ends[0]
    for end in ends[1:]:
        low, high = np.fmin(low, end), np.fmax(high, end)
    low, high = down(low), up(high)
    undecided = np.isnan(low)
    if undecided.any():  # 0 by what is unbounded, at all four
        low, high = np.where(undecided, 0.0, low), np.where(undecided, 0.0, high)
    return Interval._of(low, high)
