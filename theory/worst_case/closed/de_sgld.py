"""DE-SGLD on two scalar agents that mix with W = [[1-w, w], [w, 1-w]]: the law of their average.

Curvatures h_c, gradients g, -g at the minimizer and gradient noise are those of the components f_c that
agents follow, f = f_1 + f_2. One iteration is x <- M x + eta h b + noise of variance N = 2 eta + eta^2
sigma^2 each, with M = W - eta diag(h). Since M is symmetric, cov = N (I - M^2)^-1, and I - M^2 = (I - M)(I
+ M). With D = w (h_1 + h_2) + eta h_1 h_2, det(I - M) = eta D, and with u_c = 2 - eta h_c, det(I + M) = u_1
u_2 - w (u_1 + u_2):

    mean - x_* = eta g (h_1 - h_2)/(2 D),
    variance = (N/4) [(2w + eta h_2)(u_2 - 2w) + (2w + eta h_1)(u_1 - 2w)]/(det(I - M) det(I + M)).

In the excess over the target's variance 1/(h_1 + h_2) what is of first order cancels: with x = eta h_1, y =
eta h_2 and no gradient noise it is

    [4 (1-w^2)(x-y)^2 + 16 w (1-w) x y + 8 (1-w)(x+y) x y - 2 (x+y)(x^2+y^2) - 4 x^2 y^2]
        / (4 det(I - M) det(I + M)).

After n iterations from one point x_0 the sums of M^k and M^2k are made by doubling. Derived here; source of
the algorithm: DE-SGLD equation (2).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD

from ..exact_values import Instance
from .closed_form import Moments, Values, closed_form
from .two_clients import two_clients

Symmetric = tuple[Any, Any, Any]
"""Entries 11, 12, 22."""


def contracts(v: Values) -> None:
    """-1 < 1 - 2 w - eta h without rounding."""
    step, curvature, mixing = v["step_size"], v["curvature"], v["mixing"]
    if Fraction(step) * Fraction(curvature) >= 2 - 2 * Fraction(mixing):
        raise ValueError(f"step_size={step!r} must be less than (2 - 2*mixing)/curvature="
                         f"{(2.0 - 2.0 * mixing) / curvature:.6g} at the largest curvature {curvature!r} and "
                         f"mixing {mixing!r} of the class: beyond it no law is stationary")


def instance(v: Values) -> Instance:
    """Problem, algorithm and start of these floats; a component is half of a client's potential."""
    whole = {**v, "weight": 0.5}
    if "distance" not in v:
        whole["heterogeneity"] = 2.0 * v["heterogeneity"]
    problem, start = two_clients(whole, 2.0)
    w = v["mixing"]
    return Instance(problem, DESGLD(v["step_size"], np.array([[1.0 - w, w], [w, 1.0 - w]])), start)


def times(A: Symmetric, B: Symmetric) -> Symmetric:
    """Product of two that commute."""
    (a, b, d), (e, f, h) = A, B
    return a * e + b * f, a * f + b * h, b * f + d * h


def squared(A: Symmetric) -> Symmetric:
    """Its square, with squares that are seen to be positive."""
    a, b, d = A
    return a**2 + b**2, b * (a + d), b**2 + d**2


def plus_one(A: Symmetric) -> Symmetric:
    """I + A."""
    return 1 + A[0], A[1], 1 + A[2]


def powers(M: Symmetric, n: int) -> tuple[Symmetric, Symmetric]:
    """M^n, and I + M + ... + M^(n-1), by doubling."""
    total: Symmetric = (1, 0, 1)
    power = M
    for bit in bin(n)[3:]:
        total, power = times(total, plus_one(power)), squared(power)
        if bit == "1":
            total, power = plus_one(times(M, total)), times(power, M)
    return power, total


@closed_form("de_sgld", instance=instance, check=contracts, numbers=("step_size", "mixing", "gradient_noise"))
def de_sgld(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    eta, w, h1, h2 = v["step_size"], v["mixing"], v["curvature_1"], v["curvature_2"]
    H = h1 + h2
    g = v["distance"] * h1 * h2 / H if "distance" in v else v["heterogeneity"]
    noise = eta * (2 + eta * v["gradient_noise"] ** 2)
    if n_rounds is None:
        x, y, D, jitter = eta * h1, eta * h2, w * H + eta * h1 * h2, eta * v["gradient_noise"] ** 2
        other = 4 * D * ((2 - x) * (2 - y) - w * (4 - x - y))  # det(I - M) det(I + M) 4/eta
        spread = (2 * w + y) * (2 - y - 2 * w) + (2 * w + x) * (2 - x - 2 * w)
        surplus = (4 * (1 - w) * ((1 + w) * (h1 - h2) ** 2 + (4 * w + 2 * (x + y)) * h1 * h2)
                   - 2 * (x + y) * (h1**2 + h2**2) - (2 * x * h2) ** 2)
        excess = (eta * surplus + jitter * spread * H) / other
        return [Moments((eta * g * (h1 - h2) / (2 * D)) ** 2, excess, H)]
    start = v["start"] - v["distance"] * h2 / H if "distance" in v else v["start"] * v["side"]
    M = 1 - w - eta * h1, w, 1 - w - eta * h2
    (P11, P12, P22), (S11, _, S22) = powers(M, n_rounds)
    _, (Q11, Q12, Q22) = powers(squared(M), n_rounds)
    return [Moments((start * (P11 + 2 * P12 + P22) - eta * g * (S11 - S22)) ** 2 / 4,
                    noise * (Q11 + 2 * Q12 + Q22) * H / 4 - 1, H)]
