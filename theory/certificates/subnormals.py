"""Floats below 2^-1022, without which outward rounding proves nothing."""

from __future__ import annotations

NORMAL, SUBNORMAL, HALF = 2.0**-1022, 2.0**-1060, 0.5


def product(a: float, b: float) -> float:
    """What this thread's arithmetic gives."""
    return a * b


def refuse_flushing() -> None:
    """Refuse to prove anything in a thread that takes numbers below 2^-1022 for zero.

    There a product that is above the double 0 comes out as 0, and the double above 0 is taken for 0 again, so
    that an interval would no longer contain what it stands for. Libraries that are built with -ffast-math set
    this for the thread that loads them, and threads inherit it.

    Raises
    ------
    RuntimeError
        Where a result or an operand is flushed to zero.

    Source: IEEE 754-2019, section 3.3: subnormal numbers are numbers.

    Examples
    --------
    >>> theory.certificates.refuse_flushing()
    """
    for what, a, b in (("result", NORMAL, HALF), ("operand", SUBNORMAL, 1.0)):
        if product(a, b) == 0.0:
            raise RuntimeError(
                f"this thread flushes subnormal numbers to zero ({a!r} * {b!r} must not be 0: the {what} is "
                "lost), so that nothing is proved in it; a library built with -ffast-math, loaded before, "
                "sets this: work in a process or thread that has not loaded it, or unset FTZ and DAZ")
