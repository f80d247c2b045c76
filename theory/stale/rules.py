"""Step sizes that are best for the rates of Theorems 2, 3 and 4, where the terms with tau dominate.

Source: stale-gradient paper, sections 4 and 5.1. The rules diverge at tau = 0, where a gradient's own
step of age 1 takes its place, because the integrator's term then has the same order.
"""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import nonnegative, positive, whole


def _age(tau: float) -> float:
    return max(nonnegative("tau", tau), 1.0)


def bias_step_size(n_iterations: float, tau: float, constant: float = 1.0) -> float:
    """h = (M1 tau L)^(-1/2), which minimises 1/(L h) + M1 tau h.

    Parameters
    ----------
    n_iterations : float
        L.
    tau : float
    constant : float
        M1.

    Returns
    -------
    float
        h, in the units of 1/smoothness.

    Raises
    ------
    ValueError
        For arguments that are not greater than 0; tau may be 0, and not less.

    Source: stale-gradient paper, section 4, from Theorem 2.

    Examples
    --------
    >>> theory.stale.bias_step_size(100, 4)
    0.05
    """
    length = positive("n_iterations", n_iterations)
    return float((positive("constant", constant) * _age(tau) * length) ** -0.5)


def bias_optimum(n_iterations: float, tau: float, constant: float = 1.0) -> float:
    """2 sqrt(M1 tau / L), the rate of the bias at `bias_step_size`, in units of D1.

    Parameters
    ----------
    n_iterations, tau, constant
        As for `bias_step_size`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As for `bias_step_size`.

    Source: stale-gradient paper, section 4, from Theorem 2.

    Examples
    --------
    >>> round(theory.stale.bias_optimum(100, 4), 12)
    0.4
    """
    length = positive("n_iterations", n_iterations)  # its root apart: a quotient may be beyond the floats
    return float(2.0 * np.sqrt(positive("constant", constant) * _age(tau)) / np.sqrt(length))


def mse_step_size(n_iterations: float, tau: float, constant: float = 1.0) -> float:
    """h = C tau^(-2/3) L^(-1/3), which minimises 1/(L h) + M tau^2 h^2 for C = (2 M)^(-1/3).

    Parameters
    ----------
    n_iterations : float
        L.
    tau : float
    constant : float
        C; see `optimal_constant` for the Gaussian model.

    Returns
    -------
    float
        h, in the units of 1/smoothness.

    Raises
    ------
    ValueError
        As for `bias_step_size`.

    Source: stale-gradient paper, sections 4 and 5.1, from Theorem 3.

    Examples
    --------
    >>> round(theory.stale.mse_step_size(1000, 8), 12)
    0.025
    """
    return float(positive("constant", constant) * _age(tau) ** (-2.0 / 3.0)
                 * positive("n_iterations", n_iterations) ** (-1.0 / 3.0))


def mse_optimum(n_iterations: float, tau: float, constant: float = 1.0) -> float:
    """(3/2) tau^(2/3) L^(-2/3) / C, the rate of the MSE at `mse_step_size`, in units of D2.

    Parameters
    ----------
    n_iterations, tau, constant
        As for `mse_step_size`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        As for `bias_step_size`.

    Source: stale-gradient paper, sections 4 and 5.1, from Theorem 3.

    Examples
    --------
    >>> round(theory.stale.mse_optimum(1000, 8), 12)
    0.06
    """
    value = float(1.5 / positive("constant", constant) * _age(tau) ** (2.0 / 3.0)
                  * positive("n_iterations", n_iterations) ** (-2.0 / 3.0))
    if np.isinf(value):
        raise ValueError(f"constant={constant!r} is too small with tau={tau!r}: the optimum leaves the range "
                         "of float64")
    return value


def variance_step_size(n_iterations: float, constant: float = 1.0, order: int = 1) -> float:
    """h = C L^(-1/(2K+1)), of the order that minimises 1/(L h) + h^(2K) (Corollary 5).

    Parameters
    ----------
    n_iterations : float
        L.
    constant : float
        C.
    order : int
        K, at least 1.

    Returns
    -------
    float
        h, in the units of 1/smoothness.

    Raises
    ------
    ValueError
        For `n_iterations` or `constant` not greater than 0, and order below 1.

    Source: stale-gradient paper, Corollary 5.

    Examples
    --------
    >>> round(theory.stale.variance_step_size(1000), 12)
    0.1
    """
    K = whole("order", order, 1)
    length = positive("n_iterations", n_iterations)
    return float(positive("constant", constant) * length ** (-1.0 / (2 * K + 1)))
