"""Stale SGLD with a constant age in one dimension: stability and stationary law in closed form.

theta_{l+1} = theta_l - h a (theta_{l - tau} - m) + e_l, Var e = v = 2 h + h^2 S. With w = 2 asin(h a / 2)
the stationary autocovariances are, for 0 <= k <= tau + 1,

    c_k = c_0 cos(w k) + c_0 (sin(w/2) - cos(w tau)) / (cos(w/2) + sin(w tau)) sin(w k),
    c_0 = v (cos(w/2) + sin(w tau)) / (2 h a cos(w/2) (cos(w tau) - sin(w/2))),

and c_{k+1} = c_k - h a c_{k - tau} for k > tau. The recursion is stable exactly for
0 < h a < 2 sin(pi / (2 (2 tau + 1))). Source: derived, for the recursion of the stale-gradient paper's
equation (3).
"""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import Array, nonnegative, positive, whole


def stability_limit(tau: int) -> float:
    """Least h a at which a constant age tau is no longer stable.

    >>> [round(theory.exact.delay.stability_limit(tau), 6) for tau in (1, 2, 20)]
    [1.0, 0.618034, 0.076605]
    """
    return float(2.0 * np.sin(np.pi / (2.0 * (2 * whole("tau", tau) + 1))))


def companion(curvature: float, step_size: float, tau: int) -> Array:
    """The map (tau+1, tau+1) of (theta_l, ..., theta_{l-tau}) minus the minimizer."""
    size = whole("tau", tau) + 1
    matrix = np.eye(size, k=-1)
    matrix[0, 0] = 1.0
    matrix[0, -1] -= positive("step_size", step_size) * positive("curvature", curvature)
    return matrix


def _angle(curvature: float, step_size: float, tau: int) -> tuple[float, float]:
    ha = positive("curvature", curvature) * positive("step_size", step_size)
    limit = stability_limit(tau)
    if ha >= limit:
        raise ValueError(f"step_size={step_size!r} must be less than {limit / curvature:.6g} for tau={tau} "
                         f"and curvature={curvature!r}: no law is stationary beyond the stability limit")
    return ha, 2.0 * float(np.arcsin(0.5 * ha))


def stationary_variance(curvature: float, step_size: float, tau: int,
                        gradient_variance: float = 0.0) -> float:
    """Variance c_0 of the stationary law.

    Parameters
    ----------
    curvature : float
        a, second derivative of f.
    step_size : float
        h.
    tau : int
        Age of every gradient.
    gradient_variance : float
        S, variance of the gradient noise.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> tuple(round(theory.exact.delay.stationary_variance(1.0, 0.5, tau), 12) for tau in (0, 1))
    (1.333333333333, 2.4)
    """
    ha, w = _angle(curvature, step_size, tau)
    v = 2.0 * step_size + step_size**2 * nonnegative("gradient_variance", gradient_variance)
    gap = np.cos(w * tau) - np.sin(0.5 * w)
    return float(v * (np.cos(0.5 * w) + np.sin(w * tau)) / (2.0 * ha * np.cos(0.5 * w) * gap))


def stationary_autocovariance(curvature: float, step_size: float, tau: int, n_lags: int,
                              gradient_variance: float = 0.0) -> Array:
    """Cov(theta_l, theta_{l+k}) for k = 0, ..., n_lags, (n_lags + 1,).

    Parameters
    ----------
    curvature, step_size, tau, gradient_variance : as for `stationary_variance`
    n_lags : int
    """
    ha, w = _angle(curvature, step_size, tau)
    variance = stationary_variance(curvature, step_size, tau, gradient_variance)
    lags = np.arange(whole("n_lags", n_lags) + 1)
    tilt = (np.sin(0.5 * w) - np.cos(w * tau)) / (np.cos(0.5 * w) + np.sin(w * tau))
    covs = variance * (np.cos(w * lags) + tilt * np.sin(w * lags))
    if n_lags > tau + 1:
        from scipy.signal import lfilter, lfiltic  # slow to import

        taps = np.zeros(tau + 2)
        taps[0], taps[1] = 1.0, -1.0
        taps[-1] += ha
        past = lfiltic([1.0], taps, covs[tau + 1::-1][:tau + 1])
        covs[tau + 2:] = lfilter([1.0], taps, np.zeros(n_lags - tau - 1), zi=past)[0]
    return covs


def continuous_variance(curvature: float, delay: float) -> float:
    """Variance of the limit h -> 0 at constant delay tau h, (1/a) (1 + sin(a delay)) / cos(a delay).

    >>> theory.exact.delay.continuous_variance(2.0, 0.0)
    0.5
    """
    angle = positive("curvature", curvature) * nonnegative("delay", delay)
    if angle >= 0.5 * np.pi:
        limit = 0.5 * np.pi / curvature
        raise ValueError(f"delay={delay!r} must be less than {limit:.6g} = pi / (2 curvature)")
    return float((1.0 + np.sin(angle)) / np.cos(angle) / curvature)


def long_run_variance(curvature: float, step_size: float, tau: int, mean: float = 0.0,
                      gradient_variance: float = 0.0) -> float:
    """Limit of L Var of the average of theta^2 over L iterates, in the stationary law.

    sum over all lags of 2 c_k^2 + 4 mean^2 c_k. The sum of c_k itself is v / (h a)^2, whatever tau is.

    Parameters
    ----------
    curvature, step_size, tau, gradient_variance : as for `stationary_variance`
    mean : float
        Mean m of the law, the minimizer of f.
    """
    ha, _ = _angle(curvature, step_size, tau)
    v = 2.0 * step_size + step_size**2 * nonnegative("gradient_variance", gradient_variance)
    lags = 8 * (tau + 1)
    while True:
        covs = stationary_autocovariance(curvature, step_size, tau, lags, gradient_variance)
        if np.abs(covs[-tau - 2:]).max() <= 1e-10 * covs[0]:  # enters squared
            break
        lags *= 2
    squares = 2.0 * (covs[0]**2 + 2.0 * (covs[1:] ** 2).sum())
    return float(squares + 4.0 * mean**2 * v / ha**2)
