"""DE-SGHMC's Remark 12: eta^2 = c log(sqrt K)/(mu K) for 2 K iterations.

It is within (37) exactly when log K <= K/a, a = c (L + mu)/(mu (1 + lambda_N)), for which
K >= max(34, a^2/e) suffices; friction 1/eta is then within (38).
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from fedsim.network import check_mixing, smallest_eigenvalue
from fedsim.validation import positive, real, whole


def _ratio(strong_convexity: float, smoothness: float, mixing: Any, c: float) -> float:
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    if real("c", c) <= 1.0:
        raise ValueError(f"c={c!r} must be greater than 1")
    return c * (L + mu) / (mu * (1.0 + smallest_eigenvalue(check_mixing(mixing))))


def least_iterations(strong_convexity: float, smoothness: float, mixing: Any, c: float = 1.5) -> int:
    """Iterations K from which on Remark 12's step size is within Theorem 11: max(34, a^2/e).

    Parameters
    ----------
    strong_convexity, smoothness : float
        mu and L of the components.
    mixing : (N, N)
    c : float
        Greater than 1.

    Source: DE-SGHMC Remark 12, with the condition that Remark 2 lacks made for (37).

    Examples
    --------
    >>> from fedsim import network
    >>> least_iterations(1.0, 9.0, network.complete(4))
    83
    """
    return ceil(max(34.0, _ratio(strong_convexity, smoothness, mixing, c) ** 2 / np.e))


def remark_step_size(strong_convexity: float, smoothness: float, mixing: Any, n_iterations: int,
                     c: float = 1.5) -> float:
    """eta = sqrt(c log(sqrt K)/(mu K)) of Remark 12, checked to be within (37); use with friction 1/eta.

    Parameters
    ----------
    strong_convexity, smoothness, mixing, c
        As for `least_iterations`.
    n_iterations : int
        K, at least 2.

    Raises
    ------
    ValueError
        Where log K > K/a: the step size is beyond the theorem's range.

    Source: DE-SGHMC Remark 12.

    Examples
    --------
    >>> from fedsim import network
    >>> round(remark_step_size(1.0, 4.0, network.complete(4), 1000), 6)
    0.071978
    """
    K, a = whole("n_iterations", n_iterations, 2), _ratio(strong_convexity, smoothness, mixing, c)
    if np.log(K) > K / a:
        enough = least_iterations(strong_convexity, smoothness, mixing, c)
        raise ValueError(f"n_iterations={K} gives log K={np.log(K):.4g} more than K/a={K / a:.4g}: the step "
                         f"size is beyond Theorem 11; {enough} or more suffices (DE-SGHMC Remark 12)")
    return float(np.sqrt(c * 0.5 * np.log(K) / (strong_convexity * K)))
