"""Powers from logarithms, for bases close to one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import Array


def power(log_base: float, exponent: Any) -> Array:
    """exp(exponent * log_base) with 0^0 = 1."""
    exponent = np.asarray(exponent, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(exponent == 0.0, 1.0, np.exp(exponent * log_base))


def geometric_sum(log_x: float, log_y: float, k: Any) -> Array:
    """sum_{i<k} x^i y^(k-1-i) from the logarithms, without loss where x and y are close."""
    k = np.asarray(k, dtype=np.float64)
    high, gap = max(log_x, log_y), -abs(log_x - log_y)
    with np.errstate(invalid="ignore"):
        ratio = k if gap == 0.0 else np.expm1(k * gap) / np.expm1(gap)
    return np.where(k == 0.0, 0.0, power(high, np.maximum(k - 1.0, 0.0)) * ratio)
