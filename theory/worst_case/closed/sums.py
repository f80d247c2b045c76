"""Geometric sums and what they differ by, for any kind of number, without a difference or a quotient."""

from __future__ import annotations

from typing import Any


def geometric(x: Any, n: int) -> Any:
    """geo(x, n) = 1 + x + ... + x^(n-1), n >= 1, by doubling: no difference, and no division by 1 - x."""
    total, power = 1, x  # of one term, and x^1
    for bit in bin(n)[3:]:
        total, power = total * (1 + power), power**2
        if bit == "1":
            total, power = 1 + x * total, power * x
    return total


def geometric_deficit(x: Any, n: int) -> Any:
    """(n - geo(x, n))/(1 - x) = geo(x, 1) + ... + geo(x, n-1), by doubling."""
    total, deficit, power, terms = 1, 0, x, 1
    for bit in bin(n)[3:]:
        deficit = deficit * (1 + power) + terms * total
        total, power, terms = total * (1 + power), power**2, 2 * terms
        if bit == "1":
            deficit, total, power, terms = deficit + total, 1 + x * total, power * x, terms + 1
    return deficit


def geometric_slope(x: Any, y: Any, n: int) -> Any:
    """(geo(y, n) - geo(x, n))/(y - x) by doubling: products' slopes are f[x, y] g(y) + f(x) g[x, y]."""
    total, slope = 1, 0
    powers, of_power = (x, y), 1
    for bit in bin(n)[3:]:
        slope, total = slope * (1 + powers[1]) + total * of_power, total * (1 + powers[0])
        of_power, powers = of_power * (powers[0] + powers[1]), (powers[0] ** 2, powers[1] ** 2)
        if bit == "1":
            slope, total = total + y * slope, 1 + x * total
            of_power, powers = powers[0] + y * of_power, (powers[0] * x, powers[1] * y)
    return slope
