"""The law test: do samples, mostly of the final average iterate, have the exact law?

With quadratic clients and normal noise the law is Gaussian at every round, so each statistic below has a
known law at any sample size and gets an exact p-value:

- mean and variance of the coordinates and of random projections (normal and chi-squared laws),
- over all directions at once, the whitened mean (chi-squared, d degrees of freedom) and the whitened
  sample covariance's trace (chi-squared, d (n - 1)), which see small errors at large d.

Minibatches, and averages of squares, have no Gaussian law, only exact means and covariances. There the
means are normal by the central limit theorem, and a sum of squares gets the chi-squared law with as many
degrees of freedom as give it the variance that the samples show: p-values are approximate, and the
samples large.

With `ALLOWED` statistics in the whole comparison, each judged at FALSE_ALARM / ALLOWED, a comparison of
correct programs declares any of them invalid with probability at most FALSE_ALARM (Bonferroni).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-3
ALLOWED = 100_000
PROJECTIONS = 16


class Finding(NamedTuple):
    """Number of statistics, and the smallest p-value with its name."""

    count: int  # type: ignore[assignment]
    p: float
    name: str

    @property
    def valid(self) -> bool:
        """Not below the level of one statistic."""
        return self.p >= FALSE_ALARM / ALLOWED


def _two_sided(law, value) -> np.ndarray:
    return np.minimum(1.0, 2.0 * np.minimum(law.cdf(value), law.sf(value)))


def _sums_of_squares(terms: np.ndarray, freedom: int, gaussian: bool) -> np.ndarray:
    """p-values of the column sums of `terms` (n, k), n - 1 degrees of freedom for each expected `freedom`.

    Without a Gaussian law a sum with this mean m and variance v is m / f times chi-squared, f = 2 m^2 / v.
    """
    n = len(terms)
    expected, total = freedom * (n - 1.0), terms.sum(axis=0)
    if gaussian:
        return _two_sided(stats.chi2(expected), total)
    degrees = 2.0 * expected**2 / (n * np.maximum(terms.var(axis=0), 1e-12))
    return _two_sided(stats.chi2(degrees), total * degrees / expected)


def judge(samples: np.ndarray, mean: np.ndarray, cov: np.ndarray, gaussian: bool = True) -> Finding:
    """Test samples (n, d) against mean (d,) and covariance (d, d), or variances (d,).

    Raises
    ------
    ValueError
        When the shapes do not agree: then nothing was tested.
    """
    if samples.ndim != 2 or samples.shape[1:] != mean.shape or len(samples) < 2:
        raise ValueError(f"samples of shape {samples.shape} must be (n, {len(mean)}), n at least 2")
    if not np.isfinite(samples).all():
        return Finding(1, 0.0, "a sample is not finite")
    n, dim = samples.shape
    rng = np.random.default_rng(7)
    root = np.linalg.cholesky(cov) if cov.ndim == 2 else np.sqrt(cov)
    gaps = samples - mean
    white = np.linalg.solve(root, gaps.T).T if cov.ndim == 2 else gaps / root
    some = rng.standard_normal((dim, PROJECTIONS))
    spread = np.sqrt(np.diagonal(cov) if cov.ndim == 2 else cov)
    views = np.concatenate([gaps / spread, white @ (some / np.linalg.norm(some, axis=0))], axis=1)
    means = np.sqrt(n) * views.mean(axis=0)
    squares, whole = ((part - part.mean(axis=0)) ** 2 for part in (views, white))
    groups = {
        "mean": _two_sided(stats.norm, means),
        "variance": _sums_of_squares(squares, 1, gaussian),
        "whole mean": _two_sided(stats.chi2(dim), n * (white.mean(axis=0) ** 2).sum()),
        "whole covariance": _sums_of_squares(whole.sum(axis=1, keepdims=True), dim, gaussian)}
    worst = min(groups, key=lambda name: float(np.min(groups[name])))
    return Finding(sum(np.size(p) for p in groups.values()), float(np.min(groups[worst])), worst)
