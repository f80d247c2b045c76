"""FA-LD on two clients in the plane that do not commute.

H_c = m I + (L-m) u_c u_c', u_c = (cos phi, +-sin phi), and equal weights. With z = cos^2 phi and P_c = u_c
u_c', P_1 + P_2 = 2 diag(z, 1-z), P_1 - P_2 has 2 cos phi sin phi off its diagonal and 0 on it, and P_1 P_2
+ P_2 P_1 = 2 (2z - 1) diag(z, -(1-z)). Every function of H_c is f(m) I + (f(L) - f(m)) P_c, so all sums
over both clients are diagonal: with B_x = eta x geo(1 - eta x, K), the coordinates have B = B_m + (B_L -
B_m) z and the same at 1-z, precision m + (L-m) z, and noise of a round

    eta (2 - s) [G_m + (G_L - G_m) z] + eta s [G_m + 2 z (G_c - G_m) + z (2z-1) (G_L - 2 G_c + G_m)],

where G_x = geo(a_x^2, K), G_c = geo(a_m a_L, K); gradient noise adds (eta sigma)^2/2 of the first bracket.
Gradients g, -g at the minimizer along the second axis move the mean along the first by eta |geo_L - geo_m|
sqrt(z (1-z)) |g|/B. W2^2 is linear in the squares of the components of g, and z -> 1-z swaps the axes, so
that gradients along one axis are enough. Everything is rational in z. Derived here.

Conjecture, not proved: no other pair of clients with curvatures in [m, L] in the plane is worse.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.problems.quadratic import Quadratic

from .fa_ld import below_two
from .forms import Instance, Moments, Values, form, geometric

UNKNOWN = "cosine_squared"


def instance(v: Values) -> Instance:
    """Problem and algorithm of these floats; the minimizer is 0."""
    m, L, z = v["lowest"], v["highest"], v[UNKNOWN]
    directions = np.array([[math.sqrt(z), math.sqrt(1.0 - z)], [math.sqrt(z), -math.sqrt(1.0 - z)]])
    hessians = m * np.eye(2) + (L - m) * directions[:, :, None] * directions[:, None, :]
    gradients = np.array([[0.0, v["heterogeneity"]], [0.0, -v["heterogeneity"]]])
    minimizers = -np.linalg.solve(hessians, gradients[:, :, None])[:, :, 0]
    problem = Quadratic(hessians, minimizers, None, v["gradient_noise"] or None)
    return Instance(problem, FALD(v["step_size"], v["local_steps"], 1.0, v["shared_noise"]), math.nan)


@form("fa_ld", family="rotated", instance=instance, check=below_two, counts=("local_steps",),
      curvatures=("lowest", "highest"), numbers=("step_size", "shared_noise", "gradient_noise"),
      quantities=("stationary_w2", "stationary_bias"), apart=("heterogeneity",),
      hidden=((UNKNOWN, (0.0, 1.0)),))
def rotated(v: Values, n_rounds: int | None) -> list[Moments]:
    """The stationary law of the average, in the axes in which it is diagonal."""
    eta, K, s, m, L = v["step_size"], v["local_steps"], v["shared_noise"], v["lowest"], v["highest"]
    am, aL = 1 - eta * m, 1 - eta * L
    geo_m, geo_L = geometric(am, K), geometric(aL, K)
    Gm, GL, Gc = geometric(am**2, K), geometric(aL**2, K), geometric(am * aL, K)
    own = 2 - s + eta * v["gradient_noise"] ** 2 / 2

    def along(z: Any, y: Any, push: Any) -> Moments:
        """One axis; y is 1 - z."""
        B = eta * (m * geo_m * y + L * geo_L * z)
        # G_m + 2z (G_c - G_m) + z (2z-1) (G_L - 2 G_c + G_m), collected
        common = y * (y - z) * Gm + 4 * z * y * Gc + z * (z - y) * GL
        S = eta * (own * (Gm * y + GL * z) + s * common)
        return Moments(push / B**2, S / (B * (2 - B)), m * y + L * z)

    z = v[UNKNOWN]
    push = (eta * v["heterogeneity"] * (geo_m - geo_L)) ** 2 * z * (1 - z)
    return [along(z, 1 - z, push), along(1 - z, z, 0 * z)]
