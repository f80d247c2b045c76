"""FA-LD on two scalar clients: K local steps x <- x - eta g_c(x) + noise, then the weighted average.

a_c = 1 - eta h_c, P_c = eta geo(a_c, K); a step injects 2 eta (s + (1-s)/p_c) and eta^2 sigma^2 of the
gradient. In S H - B (2 - B) the terms 2 eta K H cancel: with geo(x, K) = K - (1 - x) D(x), weights w_ab of
the noise that add up to 1, and 1 - a_1 a_2 = eta (h_1 + a_1 h_2), it is

    2 eta^2 sum_c p_c h_c^2 D(a_c) + B^2 - 2 eta H sum_ab w_ab (1 - a_a a_b) D(a_a a_b).

Derived here; source of the algorithm: FA-LD Algorithms 2 and 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fedsim.algorithms.fa_ld import FALD

from ..values import Instance
from .closed_form import Moments, Values, closed_form
from .pair import Updates, averaged, two_clients
from .sums import geometric, geometric_deficit, geometric_slope


def below_two(v: Values) -> None:
    """step_size * curvature < 2, without rounding: beyond it no law is stationary."""
    step, curvature = v["step_size"], v["curvature"]
    if Fraction(step) * Fraction(curvature) >= 2:
        raise ValueError(f"step_size={step!r} must be less than 2/curvature={2.0 / curvature:.6g} at the "
                         f"largest curvature {curvature!r} of the class: beyond it no law is stationary")


def instance(v: Values) -> Instance:
    """Problem, algorithm and start of these floats."""
    problem, start = two_clients(v)
    return Instance(problem, FALD(v["step_size"], v["local_steps"], 1.0, v["shared_noise"]), start)


@closed_form("fa_ld", instance=instance, check=below_two, counts=("local_steps",),
      numbers=("step_size", "shared_noise", "weight", "gradient_noise"))
def fa_ld(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    eta, K, p1, h1, h2 = v["step_size"], v["local_steps"], v["weight"], v["curvature_1"], v["curvature_2"]
    a1, a2 = 1 - eta * h1, 1 - eta * h2

    def surplus(H: Any, B: Any, weights: tuple[Any, Any, Any]) -> Any:
        w1, w2, both = weights
        drift = p1 * h1**2 * geometric_deficit(a1, K) + (1 - p1) * h2**2 * geometric_deficit(a2, K)
        spread = (w1 * h1 * (1 + a1) * geometric_deficit(a1**2, K)
                  + w2 * h2 * (1 + a2) * geometric_deficit(a2**2, K)
                  + both * (h1 + a1 * h2) * geometric_deficit(a1 * a2, K))
        return 2 * eta**2 * (drift - H * spread) + B**2

    heat: Any = 2 * eta
    return averaged(v, Updates((eta * geometric(a1, K), eta * geometric(a2, K)),
                               eta**2 * (h1 - h2) * geometric_slope(a1, a2, K), (a1, a2), (heat, heat, heat),
                               (eta**2, eta**2), K, surplus), n_rounds)
