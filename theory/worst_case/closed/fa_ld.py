"""FA-LD on two scalar clients: K local steps x <- x - eta g_c(x) + noise, then the weighted average.

a_c = 1 - eta h_c, P_c = eta geo(a_c, K); a step injects 2 eta (s + (1-s)/p_c) and eta^2 sigma^2 of the
gradient. Derived here; source of the algorithm: FA-LD Algorithms 2 and 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fedsim.algorithms.fa_ld import FALD

from .forms import Instance, Moments, Values, form, geometric
from .pair import Updates, averaged, two_clients


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


@form("fa_ld", instance=instance, check=below_two, counts=("local_steps",),
      numbers=("step_size", "shared_noise", "weight", "gradient_noise"))
def fa_ld(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    eta, K = v["step_size"], v["local_steps"]
    a1, a2 = (1 - eta * v[name] for name in ("curvature_1", "curvature_2"))
    heat: Any = 2 * eta
    return averaged(v, Updates((eta * geometric(a1, K), eta * geometric(a2, K)), (a1, a2), (heat, heat, heat),
                               (eta**2, eta**2), K), n_rounds)
