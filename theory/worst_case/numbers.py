"""Numbers with a proof: intervals that contain the exact result, whatever was rounded, and their gradients.

NumPy's +, -, *, / and sqrt are correctly rounded (IEEE 754), so a step of `np.nextafter` is rigorous;
exp, log and general powers are not, and are missing here. Every operation refuses a thread that flushes
subnormal numbers to zero (`theory.certificates.refuse_flushing`). Floats beside an `Interval` are refused:
say `Interval.exact(0.1)` for the double that 0.1 is, or `Interval.rational(1, 10)`. Whole numbers and
`Fraction` are taken as they are. A `Dual` carries a gradient: one formula gives a function's range on a
box, and that of its gradient.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from fedsim.settings.validation import Array, array, shown, whole

from ..certificates import refuse_flushing


def down(x: Any) -> Any:
    """The double below, of each: at most what x was rounded from."""
    return np.nextafter(x, -np.inf)


def up(x: Any) -> Any:
    """The double above, of each: at least what x was rounded from."""
    return np.nextafter(x, np.inf)


def doubles(name: str, value: Any) -> Array:
    """Numbers that are doubles, as an array of its own: others would be rounded, and prove nothing."""
    numbers = np.asarray(value)
    result = np.array(numbers, dtype=np.float64) if numbers.dtype.kind in "fiu" else np.zeros(0)
    whole_numbers = numbers.dtype.kind in "iu"  # compared as Python does, which is exact
    if not (numbers.dtype.kind in "fiu" and numbers.dtype.itemsize <= 8) or (whole_numbers and not all(
            int(x) == float(y) for x, y in zip(numbers.flat, result.flat, strict=True))):
        raise ValueError(f"{name}={shown(value)} must be doubles; of other numbers say Interval.rational")
    return result


def power(x: Array, n: int, outward: Any) -> Array:
    """x**n of numbers >= 0, rounded in one direction at every product."""
    result, base = np.ones_like(x), x
    while True:
        if n & 1:
            result = np.maximum(outward(result * base), 0.0)
        n >>= 1
        if not n:
            return result
        base = np.maximum(outward(base * base), 0.0)


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

    def __rsub__(self, other: Any) -> Any:
        return -self + other  # type: ignore[operator]

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


class Dual(Exact):
    """A function's values on boxes, and its gradients there: both `Interval`.

    Parameters
    ----------
    value : Interval (n,)
    gradient : Interval (p, n)
        With respect to p unknowns.

    Examples
    --------
    >>> Interval, Dual = theory.worst_case.Interval, theory.worst_case.Dual
    >>> x = Dual.unknowns(Interval([[1.0]], [[2.0]]))[0]
    >>> y = 3 * x**2
    >>> np.round([y.value.lo[0], y.value.hi[0], y.gradient.lo[0, 0], y.gradient.hi[0, 0]], 9).tolist()
    [3.0, 12.0, 6.0, 12.0]
    """

    __slots__ = ("gradient", "value")

    def __init__(self, value: Interval, gradient: Interval) -> None:
        self.value, self.gradient = value, gradient

    @classmethod
    def unknowns(cls, boxes: Interval) -> list[Dual]:
        """The unknowns themselves on n boxes, given as (p, n)."""
        directions = np.eye(boxes.lo.shape[0])[:, :, None] * np.ones(boxes.lo.shape[1])
        return [cls(Interval(boxes.lo[i], boxes.hi[i]), Interval(directions[i], directions[i]))
                for i in range(len(directions))]

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.gradient!r})"

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.gradient)

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.gradient + other.gradient)
        return Dual(self.value + other, self.gradient)

    def __sub__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, self.gradient - other.gradient)
        return Dual(self.value - other, self.gradient)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.gradient * other.value + other.gradient * self.value)
        return Dual(self.value * other, self.gradient * other)

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            quotient = self.value / other.value
            return Dual(quotient, (self.gradient - other.gradient * quotient) / other.value)
        return Dual(self.value / other, self.gradient / other)

    def __pow__(self, n: int) -> Dual:
        n = whole("n", n, 1, HIGHEST_POWER)
        return Dual(self.value**n, self.gradient * (self.value**(n - 1) * n))

    def sqrt(self) -> Dual:
        """Square root, and its gradient, of which nothing is known at 0."""
        root = self.value.sqrt()
        return Dual(root, self.gradient / (root * 2))

    __radd__, __rmul__ = __add__, __mul__

    def __rtruediv__(self, other: Any) -> Dual:
        quotient = other / self.value
        return Dual(quotient, -(self.gradient * quotient) / self.value)


def sqrt(x: Any) -> Any:
    """Square root of a float or an array, an Interval or a Dual; of a Fraction there is none in general.

    Examples
    --------
    >>> bool(theory.worst_case.sqrt(theory.worst_case.Interval(4.0, 9.0)).contains(2.5))
    True
    """
    return x.sqrt() if isinstance(x, (Interval, Dual)) else np.sqrt(x)
