"""The momenta that Theorem 11 allows, and so its frictions.

With alpha = eta^2 and beta = 1 - gamma eta, the theorem asks for

    (37)  eta^2 <= (1 + lambda_N)/(2 (L + mu)),
    (38)  beta <= min( (1 + lambda_N - 4 eta^2 mu)/4, eta^3 sqrt(c_1 mu^3 (1 + lambda_N)/64) ),

where c_1 = (eta^2 mu/2)/(1 + beta + (1 - beta) r), r = eta^2 mu/(1 - lambda_N + eta^2 L), depends on beta.
Since c_1 decreases in beta, (38) holds exactly up to the positive root of

    (1 - r) beta^3 + (1 + r) beta^2 = eta^8 mu^4 (1 + lambda_N)/128

or the first limit. Both are of order eta^4 or one: in numbers the friction is a hair below 1/eta.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.network import check_mixing, is_connected, smallest_eigenvalue
from fedsim.settings.validation import positive

from ..applicable import NotApplicable

brentq = lazy("scipy.optimize", "brentq")


def curvature_ratio(mu: float, L: float, smallest: float, alpha: float) -> float:
    """r = alpha mu/(1 - lambda_N + alpha L)."""
    return alpha * mu / (1.0 - smallest + alpha * L)


def first_constant(mu: float, L: float, smallest: float, alpha: float, beta: float) -> float:
    """c_1 of Theorem 11."""
    r = curvature_ratio(mu, L, smallest, alpha)
    return 0.5 * alpha * mu / ((1.0 + beta) + (1.0 - beta) * r)


def largest_beta(mu: float, L: float, smallest: float, alpha: float) -> float:
    """Largest beta that meets (38); negative where none does (which (37) excludes)."""
    linear = 0.25 * (1.0 + smallest - 4.0 * alpha * mu)
    r = curvature_ratio(mu, L, smallest, alpha)
    unit = (alpha * mu) ** 2 * np.sqrt((1.0 + smallest) / 128.0)  # the root lies between unit/2 and unit

    def surplus(share: float) -> float:
        return (1.0 - r) * unit * share**3 + (1.0 + r) * share**2 - 1.0

    root = unit * float(brentq(surplus, 0.0, 1.0, xtol=1e-15, rtol=1e-14))
    return float(min(linear, root))


def step_size_limit(strong_convexity: float, smoothness: float, mixing: Any) -> float:
    """Largest step size of Theorem 11: sqrt((1 + lambda_N)/(2 (L + mu))), equation (37), rounded down.

    Parameters
    ----------
    strong_convexity, smoothness, mixing
        As for `theory.de_sgld.step_size_limit`.

    Returns
    -------
    float
        eta, in the units of 1/sqrt(smoothness).

    Raises
    ------
    ValueError
        As there.

    Source: DE-SGHMC Theorem 11.

    Examples
    --------
    >>> round(theory.de_sghmc.step_size_limit(1.0, 7.0, fs.network.complete(4)), 12)
    0.25
    """
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    limit = (1.0 + smallest_eigenvalue(check_mixing(mixing))) / (2.0 * (L + mu))
    step = float(np.sqrt(limit))
    return step if step**2 <= limit else float(np.nextafter(step, 0.0))


def largest_momentum(strong_convexity: float, smoothness: float, mixing: Any, step_size: float) -> float:
    """Largest beta = 1 - friction * step_size that Theorem 11 allows, equation (38).

    Parameters
    ----------
    strong_convexity, smoothness : float
        mu and L of the components.
    mixing : (N, N)
        Connected.
    step_size : float
        eta, within `step_size_limit`.

    Returns
    -------
    float, from 0 to 1

    Raises
    ------
    NotApplicable
        For a network that is not connected, or a step size beyond the limit: no friction is allowed then.

    Source: DE-SGHMC Theorem 11, equation (38), which is implicit in beta; solved by its cubic.

    Examples
    --------
    >>> round(theory.de_sghmc.largest_momentum(22.5, 79.8, fs.network.complete(100), 0.0673), 6)
    0.000885
    """
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    eta, matrix = positive("step_size", step_size), check_mixing(mixing)
    if not is_connected(matrix):
        raise NotApplicable("mixing is not connected (second_eigenvalue = 1): Theorem 11 says nothing about "
                            "it and allows no friction")
    limit = step_size_limit(mu, L, matrix)
    if eta > limit * (1.0 + 1e-12):
        raise NotApplicable(f"step_size={eta:g} must be at most {limit:g}; no friction is allowed beyond it "
                            "(DE-SGHMC Theorem 11, equation (37))")
    return max(largest_beta(mu, L, smallest_eigenvalue(matrix), eta**2), 0.0)


def friction_interval(strong_convexity: float, smoothness: float, mixing: Any,
                      step_size: float) -> tuple[float, float]:
    """Least and largest friction that Theorem 11 allows: ((1 - largest_momentum)/eta, 1/eta).

    Parameters
    ----------
    strong_convexity, smoothness, mixing, step_size
        As for `largest_momentum`.

    Returns
    -------
    (least, largest), in the units of 1/step_size

    Raises
    ------
    NotApplicable
        As for `largest_momentum`.

    Source: DE-SGHMC Theorem 11, equations (37) and (38).

    Examples
    --------
    >>> least, largest = theory.de_sghmc.friction_interval(22.5, 79.8, fs.network.complete(100), 0.0673)
    >>> round(least, 3), round(largest, 3)
    (14.846, 14.859)
    """
    beta = largest_momentum(strong_convexity, smoothness, mixing, step_size)
    return (1.0 - beta) / step_size, 1.0 / step_size
