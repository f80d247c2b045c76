"""ZScores: how far replicas are from a law, in standard errors and in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..settings.lazy_import import lazy
from ..settings.validation import Array
from .law import Law, variances_of

ndtr, ndtri, stdtr = lazy("scipy.special", "ndtr", "ndtri", "stdtr")

if TYPE_CHECKING:
    from .run import Run

LEAF = 64
"""Replicas of a leaf."""
_LEVEL = 0.01
"""Of the p-value, at which scores are said to differ."""
_ROUNDING = 1e-12
"""Relative size of what rounding may add to a mean or covariance of replicas."""


def leaf_errors(found: Array, spread: Array, exact: Array, n_leaves: int) -> Array:
    """Standard errors of the mean of leaves' covariances, for a law that may be skewed or heavy-tailed.

    The spread of the leaves alone is too small too often, together with the covariance itself: where the few
    replicas that are far off happen to be fewer. So it is brought to the size of the law's variances, where
    those found are smaller, and taken to be no less than that of a Gaussian law; where the spreads of all
    entries and rounds together are smaller than a Gaussian law's, as of two equal peaks, no less than as much
    smaller each.

    Parameters
    ----------
    found, spread, exact : (n, d, d) or (n, d)
        Mean of the leaves' covariances, its standard error by their spread, and the law's covariance.
    """
    full = exact.ndim == 3
    own, law = (np.diagonal(cov, axis1=1, axis2=2) if full else cov for cov in (found, exact))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(np.where(own > 0.0, np.maximum(1.0, law / own), 1.0))
        grown = spread * (root[:, :, None] * root[:, None, :] if full else root**2)
        product = law[:, :, None] * law[:, None, :] if full else exact**2
        gaussian = np.sqrt((product + exact**2) / ((LEAF - 1) * n_leaves))
        shares = (grown / gaussian)**2
    known = np.isfinite(shares) & (gaussian > 0.0)
    share = min(1.0, float(shares[known].mean())) if known.any() else 0.0
    return np.maximum(grown, np.sqrt(share) * gaussian)


class _Scores(NamedTuple):
    mean: Array
    cov: Array | None


class ZScores(_Scores):
    """Deviations from a law in standard errors: mean (n, d), cov (n, d, d), (n, d) or None.

    Its `note` says what is not known of run or law, or is known to differ.

    Examples
    --------
    >>> import fedsim as fs, theory
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1)
    >>> law = theory.exact_law(problem, algorithm, 20)
    >>> fs.simulate(problem, algorithm, 20, 1000, seed=1).z_scores(law)
    ZScores(largest |z| = 1.4 among 40, usually about 2.38, p <= 1: agrees with the law at level 0.01)
    """

    note = ""

    def largest(self) -> float:
        """Largest size of all of them."""
        parts = [np.abs(part).max() for part in self if part is not None and part.size]
        return float(np.max(parts))

    @property
    def n_random(self) -> int:
        """How many there are: each covariance once, and none that has to be 0, as at a point."""
        parts = [part if part.ndim < 3 else part[:, *np.triu_indices(part.shape[-1])]
                 for part in self if part is not None]
        return int(sum(np.count_nonzero(part) for part in parts))

    def usual_largest(self) -> float:
        """Median of the largest size of as many independent standard normals; dependence makes it smaller."""
        return float(-ndtri(-np.expm1(np.log(0.5) / self.n_random) / 2.0)) if self.n_random else 0.0

    def p_value(self) -> float:
        """Bound on the probability of so large a size if run and law agree, however the scores depend.

        Twice the normal tail of the largest, times their number (Bonferroni), at most 1.
        """
        return float(min(2.0 * max(1, self.n_random) * ndtr(-self.largest()), 1.0))  # not a number stays so

    def __repr__(self) -> str:
        p, note = self.p_value(), f". {self.note}" if self.note else ""
        says = "agrees with" if p >= _LEVEL else "differs from" if p < _LEVEL else "cannot be compared with"
        return (f"ZScores(largest |z| = {self.largest():.3g} among {self.n_random}, usually about "
                f"{self.usual_largest():.3g}, p <= {p:.2g}: {says} the law at level {_LEVEL}{note})")


def scores_of(run: Run, law: Law) -> ZScores:
    """Deviations of replicas from a law, see `Run.z_scores`."""
    rounds = np.intersect1d(run.rounds, law.rounds)
    here, there = np.isin(run.rounds, rounds), np.isin(law.rounds, rounds)
    exact = law._covariance()[there]
    variances = variances_of(exact)
    rounding = _ROUNDING * np.abs(law.mean[there])
    mean = _ratio(run.mean[here] - law.mean[there], np.sqrt(variances / run.n_replicas), rounding)
    if run.cov is None:
        return ZScores(mean, None)
    own = run.cov[here]
    if own.ndim != exact.ndim:
        own, exact = variances_of(own), variances
    # replicas that all stand at one point still differ from their mean by its rounding
    pairs = rounding**2 if exact.ndim == 2 else rounding[:, :, None] * rounding[:, None, :]
    rounding = _ROUNDING * np.abs(exact) + pairs
    if law.is_gaussian:
        product = 2 * exact**2 if exact.ndim == 2 else (
            variances[:, :, None] * variances[:, None, :] + exact**2)
        return ZScores(mean, _ratio(own - exact, np.sqrt(product / (run.n_replicas - 1)), rounding))
    if run.n_leaves < 20 or run.spread is None or run.leaf_cov is None:
        raise ValueError(f"n_replicas={run.n_replicas} must be at least 1280 for standard errors of a "
                         "law that is not Gaussian (they come from at least 20 leaves of 64)")
    if run.leaf_cov.ndim != exact.ndim:
        raise ValueError("law and run must keep the same kind of covariance when the law is not Gaussian")
    error = leaf_errors(run.leaf_cov[here], run.spread[here], exact, run.n_leaves)
    scores = _ratio(run.leaf_cov[here] - exact, error, rounding)
    size = np.abs(scores)
    normal = -ndtri(np.clip(stdtr(run.n_leaves - 1, -size), 1e-300, 0.5))
    return ZScores(mean, np.copysign(normal, scores))


def _ratio(difference: Array, error: Array, rounding: Array) -> Array:
    """difference / error; where the error is not above rounding, 0 if the difference is not either."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = difference / error
    return np.where((error <= rounding) & (np.abs(difference) <= rounding), 0.0, scores)
