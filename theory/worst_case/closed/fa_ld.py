"""FA-LD on two scalar clients: K local steps x <- x - eta g_c(x) + noise, then the weighted average.

a_c = 1 - eta h_c, P_c = eta geo(a_c, K); a step injects 2 eta (s + (1-s)/p_c) and eta^2 sigma^2 of the
gradient. In S H - B (2 - B) the terms 2 eta K H cancel: with geo(x, K) = K - (1 - x) D(x), weights w_ab of
the noise that add up to 1, and 1 - a_1 a_2 = eta (h_1 + a_1 h_2), it is

    2 eta^2 sum_c p_c h_c^2 D(a_c) + B^2 - 2 eta H sum_ab w_ab (1 - a_a a_b) D(a_a a_b).

Derived here; source of the algorithm: FA-LD Algorithms 2 and 3.

Two clients in the plane do not commute.

H_c = m I + (L-m) u_c u_c', u_c = (cos phi, +-sin phi), and equal weights. With z = cos^2 phi and P_c = u_c
u_c', P_1 + P_2 = 2 diag(z, 1-z), P_1 - P_2 has 2 cos phi sin phi off its diagonal and 0 on it, and P_1 P_2
+ P_2 P_1 = 2 (2z - 1) diag(z, -(1-z)). Every function of H_c is f(m) I + (f(L) - f(m)) P_c, so all sums
over both clients are diagonal: with B_x = eta x geo(1 - eta x, K), the coordinates have B = B_m + (B_L -
B_m) z and the same at 1-z, precision m + (L-m) z, and noise of a round

    eta (2 - s) [G_m + (G_L - G_m) z] + eta s [G_m + 2 z (G_c - G_m) + z (2z-1) (G_L - 2 G_c + G_m)],

where G_x = geo(a_x^2, K), G_c = geo(a_m a_L, K); gradient noise adds (eta sigma)^2/2 of the first bracket.
The brackets of ones are 1, so that 2 eta K H cancels in the excess as above. Gradients g, -g at the
minimizer along the second axis move the mean along the first by eta |geo_L - geo_m| sqrt(z (1-z)) |g|/B. W2^2
is linear in the squares of the components of g, and z -> 1-z swaps the axes, so that gradients along one
axis are enough. Everything is rational in z. Derived here.

It is not the worst of the plane in general: with one local step, or little heterogeneity, H_c = L I of both
clients is worse, which commute. That no pair is worse than this family and all that commute is not proved.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.problems.quadratic import Quadratic

from ..exact_values import Instance
from .closed_form import Moments, Values, closed_form
from .two_clients import Updates, averaged, geometric, geometric_deficit, geometric_slope, two_clients


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


UNKNOWN = "cosine_squared"


def in_the_plane(v: Values) -> Instance:
    """Problem and algorithm of these floats; the minimizer is 0."""
    m, L, z = v["lowest"], v["highest"], v[UNKNOWN]
    directions = np.array([[math.sqrt(z), math.sqrt(1.0 - z)], [math.sqrt(z), -math.sqrt(1.0 - z)]])
    hessians = m * np.eye(2) + (L - m) * directions[:, :, None] * directions[:, None, :]
    gradients = np.array([[0.0, v["heterogeneity"]], [0.0, -v["heterogeneity"]]])
    minimizers = -np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
    problem = Quadratic(hessians, minimizers, None, v["gradient_noise"] or None)
    return Instance(problem, FALD(v["step_size"], v["local_steps"], 1.0, v["shared_noise"]), math.nan)


@closed_form("fa_ld", family="rotated", instance=in_the_plane, check=below_two, counts=("local_steps",),
      curvatures=("lowest", "highest"), numbers=("step_size", "shared_noise", "gradient_noise"),
      quantities=("stationary_w2", "stationary_bias"), apart=("heterogeneity",),
      hidden=((UNKNOWN, (0.0, 1.0)),))
def rotated(v: Values, n_rounds: int | None) -> list[Moments]:
    """The stationary law of the average, in the axes in which it is diagonal."""
    eta, K, s, m, L = v["step_size"], v["local_steps"], v["shared_noise"], v["lowest"], v["highest"]
    am, aL = 1 - eta * m, 1 - eta * L
    geo_m, geo_L, jitter = geometric(am, K), geometric(aL, K), eta * v["gradient_noise"] ** 2 / 2
    Dm, DL = m**2 * geometric_deficit(am, K), L**2 * geometric_deficit(aL, K)
    Gm, GL = geometric(am**2, K), geometric(aL**2, K)
    # (K - G)/eta of the products of a_m and a_L
    em, eL, ec = (rate * geometric_deficit(product, K) for rate, product in (
        (m * (1 + am), am**2), (L * (1 + aL), aL**2), (m + am * L, am * aL)))

    def along(z: Any, y: Any, push: Any) -> Moments:
        """One axis; y is 1 - z."""
        B, H = eta * (m * geo_m * y + L * geo_L * z), m * y + L * z
        # e_m + 2z (e_c - e_m) + z (2z-1) (e_L - 2 e_c + e_m), collected
        common = y * (y - z) * em + 4 * z * y * ec + z * (z - y) * eL
        spread = (2 - s) * (em * y + eL * z) + s * common
        surplus = eta**2 * (2 * (Dm * y + DL * z) - H * spread) + B**2 + eta * jitter * (Gm * y + GL * z) * H
        return Moments(push / B**2, surplus / (B * (2 - B)), H)

    z = v[UNKNOWN]
    apart = eta * (L - m) * geometric_slope(am, aL, K)
    push = (eta * v["heterogeneity"] * apart) ** 2 * z * (1 - z)
    return [along(z, 1 - z, push), along(1 - z, z, 0 * z)]
