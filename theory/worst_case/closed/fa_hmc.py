"""FA-HMC on two scalar clients: T trajectories of K leapfrog steps with fresh momenta, then the average.

A trajectory takes x to C x + E p. With u = eta^2 h and d_k = (1 - C_k)/u, e_k = E_k/eta the leapfrog is

    d_{k+1} = d_k + s_k,  C_{k+1} = 1 - u d_{k+1},  s_{k+1} = s_k + C_{k+1},   d_0 = 0, s_0 = 1/2,
    e_{k+1} = e_k + r_k,  r_{k+1} = r_k - u e_{k+1},                           e_0 = 0, r_0 = 1,

so that 1 - C is never a difference, and neither are the slopes of d_K and C_K in u. P_c = eta^2 d_K geo(C_c,
T). Noise of the gradients, drawn afresh for each of the 2K - 1 evaluations that matter, kicks the momentum
by eta/2 each: once at the start of a trajectory, twice between, which moves the end by (eta^2/4)(E_K^2 + 2
sum_{k<K} E_k^2) sigma^2. Leapfrogs keep C^2 + h (1 - u/4) E^2 = 1, so that with P = (1 - C)/h, E^2 = 2 P - h
P^2 + u E^2/4, and in S H - B (2 - B) what is of first order comes to -2 T p_1 p_2 (h_2 - h_1)(P_2 - P_1).
Derived here; source of the algorithm: FA-HMC Algorithm 3.
"""

from __future__ import annotations

import math
from typing import Any

from fedsim.algorithms.fa_hmc import FAHMC

from ..exact_values import Instance
from .closed_form import Moments, Values, closed_form
from .two_clients import Updates, averaged, geometric, geometric_deficit, geometric_slope, two_clients


def no_resonance(v: Values) -> None:
    """The leapfrog is stable, and a trajectory shorter than half an oscillation."""
    step, curvature, K = v["step_size"], v["curvature"], v["leapfrog_steps"]
    u = step * step * curvature
    if u >= 4.0:
        raise ValueError(f"step_size={step!r} must be less than 2/sqrt(curvature)="
                         f"{2.0 / math.sqrt(curvature):.6g} at the largest curvature {curvature!r} of the "
                         "class: the leapfrog is unstable beyond")
    turned = K * math.acos(1.0 - 0.5 * u)
    if turned >= math.pi:
        raise ValueError(f"leapfrog_steps={K} must be less than {math.pi * K / turned:.6g} at "
                         f"step_size={step!r} and the largest curvature {curvature!r} of the class: "
                         "trajectories of half an oscillation or more are not covered, since curvatures in "
                         "resonance lie between")


def instance(v: Values) -> Instance:
    """Problem, algorithm and start of these floats."""
    problem, start = two_clients(v)
    algorithm = FAHMC(v["step_size"], v["leapfrog_steps"], v["local_steps"], v["shared_noise"])
    return Instance(problem, algorithm, start)


def trajectory(eta: Any, h: Any, K: int) -> tuple[Any, Any, Any, Any]:
    """(1 - C_K)/h, C_K, E_K, and the variance that gradient noise of variance 1 adds."""
    u = eta**2 * h
    d, C, s2 = 0, 1, 1  # s2 is 2 s: a half is no whole number
    e, r, kicks = 0, 1, 0
    for k in range(K):
        d, e = d + s2, e + r  # d is twice what is said above
        C = 1 - u * d / 2
        s2, r = s2 + 2 * C, r - u * e
        kicks = kicks + e**2 * (1 if k == K - 1 else 2)
    return eta**2 * d / 2, C, eta * e, eta**4 * kicks / 4


def slopes(eta: Any, h1: Any, h2: Any, K: int) -> tuple[Any, Any, Any]:
    """Differences of (1 - C_K)/h, of C_K and of E_K between two curvatures, over h_2 - h_1."""
    u1, u2 = eta**2 * h1, eta**2 * h2
    d, s2, e, r = 0, 1, 0, 1  # of the second client, as in `trajectory`
    of_d, of_C, of_s2, of_e, of_r = 0, 0, 0, 0, 0
    for _ in range(K):
        d, of_d, e, of_e = d + s2, of_d + of_s2, e + r, of_e + of_r
        of_C = -(d + u1 * of_d) / 2
        s2, of_s2 = s2 + 2 * (1 - u2 * d / 2), of_s2 + 2 * of_C
        r, of_r = r - u2 * e, of_r - e - u1 * of_e
    return eta**4 * of_d / 2, eta**2 * of_C, eta**3 * of_e


@closed_form("fa_hmc", instance=instance, check=no_resonance, counts=("local_steps", "leapfrog_steps"),
      numbers=("step_size", "shared_noise", "weight", "gradient_noise"))
def fa_hmc(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    eta, T, K = v["step_size"], v["local_steps"], v["leapfrog_steps"]
    h1, h2 = v["curvature_1"], v["curvature_2"]
    (P1, C1, E1, N1), (P2, C2, E2, N2) = (trajectory(eta, h, K) for h in (h1, h2))
    of_P, of_C, of_E = slopes(eta, h1, h2, K)
    apart = (h2 - h1) * (of_P * geometric(C2, T) + P1 * of_C * geometric_slope(C1, C2, T))

    def surplus(H: Any, B: Any, weights: tuple[Any, Any, Any]) -> Any:
        own, p1 = weights[:2], v["weight"]
        both, gap, total = weights[2], h2 - h1, B**2 - 2 * T * p1 * (1 - p1) * (h2 - h1) ** 2 * of_P
        for p, w, h, P, C, E in zip((p1, 1 - p1), own, (h1, h2), (P1, P2), (C1, C2), (E1, E2), strict=True):
            total = total + p * (2 * (h * P) ** 2 * geometric_deficit(C, T)
                                 + H * T * (h * (eta * E) ** 2 / 4 - h * P**2))
            total = total - H * w * E**2 * h * P * (1 + C) * geometric_deficit(C**2, T)
        return total - H * both * ((h1 * P1 + C1 * h2 * P2) * E1 * E2 * geometric_deficit(C1 * C2, T)
                                   + T * (gap * of_E) ** 2 / 2)

    return averaged(v, Updates((P1 * geometric(C1, T), P2 * geometric(C2, T)), apart, (C1, C2),
                               (E1**2, E1 * E2, E2**2), (N1, N2), T, surplus), n_rounds)
