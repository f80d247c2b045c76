"""Signs of rational expressions too long for fractions: enclosed by integers, ever more of their digits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

PRECISIONS = (128, 512, 2048, 8192)
"""Bits after the point, one after the other, until all signs are known."""

Found = TypeVar("Found")


class Undecided(ArithmeticError):
    """So many bits do not tell a sign."""


class Enclosure:
    """A real number between two multiples of 2^-bits: every operation rounds outward.

    Python's integers know neither overflow nor subnormal numbers, so that the ends depend on no state of the
    processor.

    Parameters
    ----------
    lo, hi : int
        The ends in units of 2^-bits, lo <= hi.
    bits : int

    Examples
    --------
    >>> from fractions import Fraction
    >>> third = theory.certificates.Enclosure.of(Fraction(1, 3), 10)
    >>> one = third * 3
    >>> (one.lo, one.hi), (one - 2).sign
    ((1023, 1026), -1)
    """

    __slots__ = ("bits", "hi", "lo")

    def __init__(self, lo: int, hi: int, bits: int) -> None:
        self.lo, self.hi, self.bits = lo, hi, bits

    @classmethod
    def of(cls, value: int | Fraction, bits: int) -> Enclosure:
        """The narrowest about a number."""
        over, under = value.numerator << bits, value.denominator
        return cls(over // under, -(-over // under), bits)

    def _beside(self, other: Any) -> Enclosure:
        return other if isinstance(other, Enclosure) else Enclosure.of(other, self.bits)

    @property
    def sign(self) -> int:
        """1, 0 or -1; `Undecided` where the ends leave it open."""
        if self.lo > 0 or self.hi < 0 or self.lo == self.hi:
            return (self.lo > 0) - (self.hi < 0)
        raise Undecided(f"between {self.lo} and {self.hi} units of 2^-{self.bits}")

    @property
    def least(self) -> Fraction:
        """The lower end."""
        return Fraction(self.lo, 1 << self.bits)

    def __add__(self, other: Any) -> Enclosure:
        b = self._beside(other)
        return Enclosure(self.lo + b.lo, self.hi + b.hi, self.bits)

    def __sub__(self, other: Any) -> Enclosure:
        b = self._beside(other)
        return Enclosure(self.lo - b.hi, self.hi - b.lo, self.bits)

    def __rsub__(self, other: Any) -> Enclosure:
        return self._beside(other) - self

    def __mul__(self, other: Any) -> Enclosure:
        b = self._beside(other)
        ends = (self.lo * b.lo, self.lo * b.hi, self.hi * b.lo, self.hi * b.hi)
        return Enclosure(min(ends) >> self.bits, -(-max(ends) >> self.bits), self.bits)

    def __truediv__(self, other: Any) -> Enclosure:
        b = self._beside(other)
        if b.sign == 0:
            raise ZeroDivisionError(f"{self!r} by 0")
        ends = [(end << self.bits, by) for end in (self.lo, self.hi) for by in (b.lo, b.hi)]
        return Enclosure(min(end // by for end, by in ends), max(-(-end // by) for end, by in ends),
                         self.bits)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return f"Enclosure({self.lo}, {self.hi}, bits={self.bits})"


def decided(question: Callable[..., Found], *values: int | Fraction) -> Found | None:
    """What is found at the first precision that tells every sign that is asked for.

    Parameters
    ----------
    question : callable(*numbers) -> anything
        Computes with + - * / and asks for `sign`.
    values : int or Fraction
        Its arguments.

    Returns
    -------
    What it returns, or None where 8192 bits leave a sign open: a number is 0, or as good as.

    Raises
    ------
    ZeroDivisionError
        Where the question divides by what is 0.

    Source: derived here: outward rounding.

    Examples
    --------
    >>> from fractions import Fraction
    >>> theory.certificates.decided(lambda x: (x * x - 2).sign, Fraction(141421, 100000))
    -1
    >>> theory.certificates.decided(lambda x: (x * 3 - 1).sign, Fraction(1, 3)) is None
    True
    """
    for bits in PRECISIONS:
        try:
            return question(*(Enclosure.of(value, bits) for value in values))
        except Undecided:
            continue
    return None
