"""What makes interval arithmetic rigorous: steps outward, and the refusal of what would be rounded."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array


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
        raise ValueError(f"{name}={value!r} must be doubles; of other numbers say Interval.rational")
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
