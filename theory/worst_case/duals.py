"""Numbers with a gradient: one formula gives a function's range on a box, and that of its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import whole

from .intervals import HIGHEST_POWER, Exact, Interval


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

    def __rsub__(self, other: Any) -> Dual:
        return -self + other

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
