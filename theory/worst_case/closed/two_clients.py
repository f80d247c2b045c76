"""Two clients that go their own ways for a round and are averaged then: what FA-LD and FA-HMC share.

In a round client c takes x to b_c + (1 - B_c)(x - b_c) plus noise, where 1 - B_c = a_c^n for n local updates
by a_c, and B_c = h_c P_c is written without 1 - a_c^n. With B = p_1 B_1 + p_2 B_2, and q = p_1 g_1 = -p_2 g_2
the clients' gradients at the global minimizer x_*, the mean's fixed point is x_* + q (P_2 - P_1)/B, and the
variance is V = S/(B (2 - B)) with S the noise of a round. With H = p_1 h_1 + p_2 h_2 the excess V H - 1 is
[S H - B (2 - B)]/(B (2 - B)). After n rounds from x_0,

    mean - x_* = (1-B)^n (x_0 - x_*) + q (P_2 - P_1) geo(1 - B, n),    variance = S geo((1-B)^2, n),

where geo(x, n) = 1 + x + ... + x^(n-1). Derived here.

Geometric sums, and what they differ by, are written for any kind of number, without a difference or a
quotient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fedsim.problems.quadratic import Quadratic

from .closed_form import Moments, Values


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


class Updates(NamedTuple):
    """What the local updates of a round do to two clients.

    Attributes
    ----------
    pull : P_1, P_2
    apart : P_2 - P_1, exactly 0 where it is
    keep : a_1, a_2, the factor of one update
    heat : variance of an update's injected noise of 1, common to 1 and 2, of 2, at unit variance of a draw
    jitter : the same of gradient noise, independent between the clients
    number : local updates in a round
    surplus : S H - B (2 - B) from H, B and the weights of the heat, where it is known without a difference
    """

    pull: tuple[Any, Any]
    apart: Any
    keep: tuple[Any, Any]
    heat: tuple[Any, Any, Any]
    jitter: tuple[Any, Any]
    number: int
    surplus: Callable[[Any, Any, tuple[Any, Any, Any]], Any] | None = None


def disagreement(v: Values) -> Any:
    """q = p_1 g_1 = -p_2 g_2 at the global minimizer: of the distance, or the largest that gamma allows."""
    p1, p2 = v["weight"], 1 - v["weight"]
    if "distance" in v:
        h1, h2 = v["curvature_1"], v["curvature_2"]
        return v["distance"] * p1 * p2 * h1 * h2 / (p1 * h1 + p2 * h2)
    return v["heterogeneity"] * (p1 if v["lighter"] == 1 else p2)


def start_offset(v: Values) -> Any:
    """x_0 - x_*, where x_0 is given from client 1's minimizer, or from x_*."""
    if "distance" in v:
        p1, p2, h1, h2 = v["weight"], 1 - v["weight"], v["curvature_1"], v["curvature_2"]
        return v["start"] - v["distance"] * p2 * h2 / (p1 * h1 + p2 * h2)
    return v["start"] * v["side"]


def averaged(v: Values, updates: Updates, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    p1, h1, h2, s = v["weight"], v["curvature_1"], v["curvature_2"], v["shared_noise"]
    p2 = 1 - p1
    (P1, P2), (a1, a2), n = updates.pull, updates.keep, updates.number
    (heat1, both, heat2), (jitter1, jitter2) = updates.heat, updates.jitter
    B = p1 * h1 * P1 + p2 * h2 * P2
    G1, G2, cross = geometric(a1**2, n), geometric(a2**2, n), geometric(a1 * a2, n)
    w1, w2, both_weigh = p1 * (1 - s * p2), p2 * (1 - s * p1), 2 * s * p1 * p2
    noise = v["gradient_noise"] ** 2 * (p1**2 * jitter1 * G1 + p2**2 * jitter2 * G2)
    push, H = disagreement(v) * updates.apart, p1 * h1 + p2 * h2
    if n_rounds is None and updates.surplus is not None:
        surplus = updates.surplus(H, B, (w1, w2, both_weigh)) + noise * H
        return [Moments((push / B) ** 2, surplus / (B * (2 - B)), H)]
    S = w1 * heat1 * G1 + w2 * heat2 * G2 + both_weigh * both * cross + noise
    if n_rounds is None:
        return [Moments((push / B) ** 2, S * H / (B * (2 - B)) - 1, H)]
    left = 1 - B
    return [Moments((left**n_rounds * start_offset(v) + push * geometric(left, n_rounds)) ** 2,
                    S * geometric(left**2, n_rounds) * H - 1, H)]


def two_clients(v: Values, scale: float = 1.0) -> tuple[Quadratic, float]:
    """The problem of these floats, and where it starts; `scale` times the curvatures and the noise."""
    p1, h1, h2 = v["weight"], v["curvature_1"], v["curvature_2"]
    if "distance" in v:
        minimizers = [[0.0], [v["distance"]]]
    else:  # the same but for a reflection as the start on the other side
        q = disagreement(v) * v["side"]
        minimizers = [[-q / (p1 * h1) / scale], [q / ((1.0 - p1) * h2) / scale]]
    noise = v["gradient_noise"] * scale
    problem = Quadratic([scale * h1, scale * h2], minimizers, [p1, 1.0 - p1], noise or None)
    return problem, float(v["start"])
