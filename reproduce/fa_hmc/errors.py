"""Marginal errors of FA-HMC's figure 1: of laws, of samples, and their mean over a chain's randomness."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

import fedsim as fs

ORDERS = 24
"""Hermite orders of an indicator's correlations; what is beyond is taken to decay like the last one."""


def spread_of(target: fs.Gaussian) -> float:
    """The unit of errors in the figures: mean standard deviation of the coordinates."""
    return float(np.sqrt(target.variances).mean())


def error_of_law(law: fs.Gaussian, target: fs.Gaussian) -> float:
    """Marginal error between two normal laws: mean over coordinates of W1."""
    return float(fs.distance.w1_normal(law.mean, np.sqrt(law.variances), target.mean,
                                       np.sqrt(target.variances)).mean())


def error_of_sample(sample: np.ndarray, target: fs.Gaussian) -> float:
    """Marginal error of a sample (n, d) against a normal law: exact W1, coordinate by coordinate.

    With t the i-th sorted draw, standardised, and [a, b] the normal's part for it, the cost is the integral
    of |t - z| phi(z) over [a, b], split at c, the point of [a, b] nearest to t.
    """
    spread, n = np.sqrt(target.variances), len(sample)
    t = (np.sort(sample, axis=0) - target.mean) / spread
    edges = ndtri(np.arange(n + 1) / n)[:, None]
    c = np.clip(t, edges[:-1], edges[1:])
    heights, levels = _density(edges), np.arange(n + 1)[:, None] / n
    below = t * (ndtr(c) - levels[:-1]) - heights[:-1]
    above = t * (levels[1:] - ndtr(c)) + heights[1:]
    return float(((below - above + 2.0 * _density(c)).sum(axis=0) * spread).mean())


def error_of_chain(chain: Any, target: fs.Gaussian, counts: Any) -> np.ndarray:
    """Expected marginal error of n averages in a row of a stationary chain, for each n of `counts`.

    W1 is the integral of |F_n - F|. At a point the empirical F_n is taken to be normal, with its exact mean
    and variance: an indicator's autocovariance is sum_m c_m^2 rho^m, c_m its Hermite coefficients and rho the
    chain's autocorrelation. Sums over lags are interpolated between lags that grow geometrically.
    """
    lengths = np.asarray(counts, dtype=float)
    goal, spread = np.sqrt(target.variances), np.sqrt(chain.law.variances)
    lags = np.unique(np.rint(np.r_[np.arange(33), np.geomspace(32, max(33, lengths.max()), 150)]))
    rho = chain.autocorrelation(lags)
    shares = np.clip(1.0 - lags / lengths[:, None], 0.0, None) * _lag_weights(lags)
    ends = [(target.mean + side * 6.0 * goal - chain.law.mean) / spread for side in (-1.0, 1.0)]
    z = np.linspace(min(-6.0, ends[0].min()), max(6.0, ends[1].max()), 161)
    level = ndtr(z)
    left, power = level * ndtr(-z), np.ones_like(rho)
    variance = np.repeat(left[None], len(lengths) * len(goal), axis=0)
    before, hermite, sums = np.zeros_like(z), np.ones_like(z), np.zeros((len(lengths) * len(goal), 1))
    for order in range(1, ORDERS + 1):
        squares = (_density(z) * hermite) ** 2 / order
        power = power * rho
        sums = (shares @ power).reshape(-1, 1)
        variance += 2.0 * sums * squares
        left = left - squares
        before, hermite = hermite, (z * hermite - np.sqrt(order - 1.0) * before) / np.sqrt(order)
    variance += 2.0 * sums * np.clip(left, 0.0, None)
    variance = variance.reshape(len(lengths), len(goal), len(z)) / lengths[:, None, None]
    points = chain.law.mean[:, None] + spread[:, None] * z
    bias = level - ndtr((points - target.mean[:, None]) / goal[:, None])
    error = np.sqrt(np.clip(variance, 1e-300, None))
    gap = 2.0 * error * _density(bias / error) + bias * (1.0 - 2.0 * ndtr(-bias / error))
    return (np.trapezoid(gap, z, axis=2) * spread).mean(axis=1)


def _lag_weights(lags: np.ndarray) -> np.ndarray:
    """Weights of the lags for a sum over all lags from 1 on that is linear between them."""
    weights, steps = np.zeros(len(lags)), np.diff(lags)
    weights[:-1] += 0.5 * (steps - 1.0)
    weights[1:] += 0.5 * (steps + 1.0)
    return weights


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
