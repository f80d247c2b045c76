"""FA-HMC on two scalar clients: T trajectories of K leapfrog steps with fresh momenta, then the average.

A trajectory takes x to C x + E p. With u = eta^2 h and d_k = (1 - C_k)/u, e_k = E_k/eta the leapfrog is

    d_{k+1} = d_k + s_k,  C_{k+1} = 1 - u d_{k+1},  s_{k+1} = s_k + C_{k+1},   d_0 = 0, s_0 = 1/2,
    e_{k+1} = e_k + r_k,  r_{k+1} = r_k - u e_{k+1},                           e_0 = 0, r_0 = 1,

so that 1 - C is never a difference. P_c = eta^2 d_K geo(C_c, T). Noise of the gradients, drawn afresh for
each of the 2K - 1 evaluations that matter, kicks the momentum by eta/2 each: once at the start of a
trajectory, twice between, which moves the end by (eta^2/4)(E_K^2 + 2 sum_{k<K} E_k^2) sigma^2. Derived
here; source of the algorithm: FA-HMC Algorithm 3.
"""

from __future__ import annotations

import math
from typing import Any

from fedsim.algorithms.fa_hmc import FAHMC

from .forms import Instance, Moments, Values, form, geometric
from .pair import Updates, averaged, two_clients


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
                         "a trajectory of half an oscillation or more is in resonance for some curvature "
                         "below it")


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


@form("fa_hmc", instance=instance, check=no_resonance, counts=("local_steps", "leapfrog_steps"),
      numbers=("step_size", "shared_noise", "weight", "gradient_noise"))
def fa_hmc(v: Values, n_rounds: int | None) -> list[Moments]:
    """The law of the average."""
    eta, T, K = v["step_size"], v["local_steps"], v["leapfrog_steps"]
    (P1, C1, E1, N1), (P2, C2, E2, N2) = (trajectory(eta, v[name], K)
                                          for name in ("curvature_1", "curvature_2"))
    return averaged(v, Updates((P1 * geometric(C1, T), P2 * geometric(C2, T)), (C1, C2),
                               (E1**2, E1 * E2, E2**2), (N1, N2), T), n_rounds)
