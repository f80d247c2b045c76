"""Stale SGLD on one scalar client, every gradient 0 or 1 updates old.

With u = h a (step size times curvature) and noise N = 2 h + h^2 sigma^2, age 0 is x <- (1 - u) x + noise,
and age 1 is x_{l+1} = x_l - u x_{l-1} + noise, an AR(2) with stationary variance V = N (1 + u)/((1 - u) u
(2 + u)) and covariance V/(1 + u) of neighbours (Yule and Walker's equations). Over the target's variance V
is 1 plus (u + h sigma^2)/(2 - u) at age 0, and plus [u (3 + u) + h sigma^2 (1 + u)]/((1 - u)(2 + u)) at age
1. The first update of age 1 takes its gradient at the start, as if x_{-1} = x_0. With U_0 = 0, U_1 = 1 and
U_{n+1} = U_n - u U_{n-1} the mean is U_{n+2} x_0, and what V lacks after n updates is V [U_{n+1}^2 - 2 u U_n
U_{n+1}/(1 + u) + u^2 U_n^2]. The stationary mean is the minimizer. Derived here; source of the algorithm:
stale-gradient paper, equation (3).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fedsim.algorithms.stale import StaleSGLD
from fedsim.problems.quadratic import Quadratic

from ..exact_values import Instance
from .closed_form import Moments, Values, closed_form
from .two_clients import geometric


def contracts(v: Values) -> None:
    """u < 2 at age 0, u < 1 at age 1, without rounding."""
    step, curvature, age = v["step_size"], v["curvature"], v["staleness"]
    limit = 2 - age
    if Fraction(step) * Fraction(curvature) >= limit:
        most = f"{limit}/curvature={limit / curvature:.6g}"
        raise ValueError(f"step_size={step!r} must be less than {most} at the largest curvature "
                         f"{curvature!r} of the class and staleness={age}: beyond it no law is stationary")


def instance(v: Values) -> Instance:
    """Problem, algorithm and start of these floats."""
    problem = Quadratic([v["curvature"]], [[0.0]], None, v["gradient_noise"] or None)
    return Instance(problem, StaleSGLD(v["step_size"], v["staleness"]), float(v["start"]))


def lucas(u: Any, n: int) -> tuple[Any, Any]:
    """U_n and U_{n+1}, by doubling: U_2n = U_n (2 U_{n+1} - U_n), U_{2n+1} = U_{n+1}^2 - u U_n^2."""
    now, later = 1, 1
    for bit in bin(n)[3:]:
        now, later = now * (2 * later - now), later**2 - u * now**2
        if bit == "1":
            now, later = later, later - u * now
    return now, later


@closed_form("stale", instance=instance, check=contracts, counts=("staleness",), curvatures=("curvature",),
      numbers=("step_size", "gradient_noise"), quantities=("stationary_w2", "w2", "variance_ratio"),
      apart=())
def stale(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the iterate."""
    eta, a, n = v["step_size"], v["curvature"], n_rounds
    u, jitter = eta * a, eta * v["gradient_noise"] ** 2
    excess = (u + jitter) / (2 - u)
    if v["staleness"] == 1:
        excess = (u * (3 + u) + jitter * (1 + u)) / ((1 - u) * (2 + u))
    if n is None:
        return [Moments(0 * u, excess, a)]
    if v["staleness"] == 0:
        left = 1 - u
        return [Moments((left**n * v["start"]) ** 2, u * (2 + jitter) * geometric(left**2, n) - 1, a)]
    now, later = lucas(u, n)
    lacks = later**2 - 2 * u * now * later / (1 + u) + (u * now) ** 2
    return [Moments(((later - u * now) * v["start"]) ** 2, excess - (1 + excess) * lacks, a)]
