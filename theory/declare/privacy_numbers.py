"""The numbers that statements on privacy take besides problem and algorithm, and what each has to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedsim.settings.validation import fraction, positive, such, whole

MOST = 2**53
NUMBERS = ("sensitivity", "batch_fraction", "delta0", "delta1", "delta2", "client_sizes")
"""What statements on privacy take besides problem and algorithm; the last may be left out."""


def below_one(name: str, value: object, zero: bool = True) -> float:
    """A probability below one; zero only where allowed."""
    return such(name, value, lambda number: 0.0 < number < 1.0 or (zero and number == 0.0),
                f"lie in {'[' if zero else '('}0, 1)")


def counted(name: str, value: object) -> int:
    """A whole number from 1 on."""
    return whole(name, value, 1, MOST)


CHECKS: dict[str, Callable[[str, Any], float]] = {
    "sensitivity": positive, "batch_fraction": lambda name, value: fraction(name, positive(name, value)),
    "delta0": lambda name, value: below_one(name, value, False), "delta1": below_one, "delta2": below_one,
    "local_steps": counted, "n_rounds": counted, "temperature": positive, "shared_noise": fraction}
"""What each number has to be, in the order in which they are looked at."""
