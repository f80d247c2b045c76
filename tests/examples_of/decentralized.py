"""A path of three nodes with gradient noise and a start apart, for hand calculations."""

from __future__ import annotations

from math import sqrt

import fedsim as fs
import theory

W = fs.network.path(3)  # [[2/3, 1/3, 0], [1/3, 1/3, 1/3], [0, 1/3, 2/3]]: eigenvalues 1, 2/3, 0
MU, L, N, D = 1.0, 2.0, 3, 2
G, LEAST = 2.0 / 3.0, 0.0
SIGMA2, GRADIENT2, GAPS, DISTANCE2, MOMENT, SPREAD = 0.9, 0.25 + 0.36 + 0.01, 3.3, 1.44, 0.7, 0.2
MINIMIZER = [0.3, 0.4]


def by_hand(**changes):
    """Constants of components; given ones replace them."""
    facts = {"dim": D, "strong_convexity": MU, "smoothness": L, "n_clients": N,
             "gradient_at_minimizer": [0.5, 0.6, 0.1], "gradient_noise_traces": [0.2, 0.9, 0.5],
             "initial_distance": sqrt(DISTANCE2), "initial_second_moment": MOMENT, "initial_spread": SPREAD,
             "gaps_at_origin": [1.0, 2.0, 0.3], "minimizer": MINIMIZER, "convention": "components"}
    return theory.Constants(**(facts | changes))
