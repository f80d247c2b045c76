"""Sums over equal steps, accurate relative to their size also where a step hardly moves."""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import Array


def power_deviation(x: Array, n: int) -> Array:
    """(1 - x)^n - 1, accurate for tiny x.

    >>> float(theory.exact.federated.sums.power_deviation(np.float64(1e-20), 10))
    -1e-19
    """
    if x.max() < 1.0:  # as nearly always; powers are dear
        return np.expm1(n * np.log1p(-x))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x < 1.0, np.expm1(n * np.log1p(-np.minimum(x, 1.0))), (1.0 - x) ** n - 1.0)


def geometric(x: Array, n: int) -> Array:
    """sum_{j<n} (1 - x)^j = (1 - (1-x)^n) / x, and n at x = 0."""
    if x.min() > 0.0:
        return -power_deviation(x, n) / x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x == 0.0, float(n), -power_deviation(x, n) / np.where(x == 0.0, 1.0, x))
