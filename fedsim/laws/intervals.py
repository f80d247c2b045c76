"""Intervals for the W2 between a law and its target, from R replicas.

Let m, S be the law's moments, mhat, Shat those of R draws of it, and n = R - 1. By the triangle inequality
the measured W2 is off by at most D,

    D^2 = |mhat - m|^2 + B(S, Shat)^2,    B the W2 of centred Gaussians (Bures),

whatever the target. For a Gaussian law mhat = m + S^(1/2) z / sqrt(R) and Shat = S^(1/2) V S^(1/2), where z
is standard normal and n V is independent of it, of Wishart's law with n degrees of freedom.

`half_widths` is a quantile of D. To leading order for large n, D^2 is a sum of independent chi-square
variables whose weights depend on S; with Shat for S, and a gamma law of the same mean and variance, that is
right where n is much larger than d. Two factors, both at least 1, make it hold for every n:

* `spectrum_factor`, of d / n: the eigenvalues of Shat spread about those of S (Marchenko and Pastur), and
  B(S, Shat) is larger than its leading term. It is exact for equal eigenvalues and many dimensions.
* `scale_factor`, of R and the level: the size of S is itself estimated. It is exact in one dimension, where
  the size is known worst.

That no other eigenvalues need more is not proved; `tests/test_intervals.py` looks for some.

`proved_ends` uses tail bounds alone, each with its proof in its docstring, and holds without any
approximation or large number: a contradiction rests on it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..settings.lazy_import import lazy
from ..settings.validation import Array
from .moments import roots

gammainc, gammaincc, gammaincinv, gammainccinv, lambertw = lazy(
    "scipy.special", "gammainc", "gammaincc", "gammaincinv", "gammainccinv", "lambertw")

_NODES = 200
"""Angles at which the law of Marchenko and Pastur is summed: 1e-10 and better."""
_CELLS = 2000
"""Of the logarithm of a chi-square variable."""
_LEAST = 0.75
"""Level from which one dimension is the worst; the factor of lower ones is that of this."""
_HALF = 0.5
"""Lower levels are given the quantile of this one: of one large weight and many small ones the gamma law's
are far too small."""
_MANY = 10
"""Replicas a dimension, from which the errors of the second order are near their leading term."""
_PIECE = 2**16
"""Pairs of eigenvalues at once."""


@lru_cache(maxsize=512)
def spectrum_factor(ratio: float) -> float:
    """B(S, Shat)^2 over its leading term at Shat, for S = I and d, n to infinity with d / n = `ratio`.

    With l = 1 + r + 2 sqrt(r) cos t the law of Marchenko and Pastur is 2 sin(t)^2 / (pi l) dt on (0, pi), and
    what is missing to 1 stands at 0. Per dimension, B^2 is 2 - 2 E sqrt(l) and the leading term
    (r / 2) E l l' / (l + l').
    """
    angle = (np.arange(_NODES) + 0.5) * np.pi / _NODES
    values = 1.0 + ratio + 2.0 * np.sqrt(ratio) * np.cos(angle)
    weights = 2.0 * np.sin(angle)**2 / (_NODES * values)
    # 2 - 2 sqrt(l) = (1 - sqrt(l))^2 + 1 - l, and E l = 1: nothing cancels
    square = (weights * (1.0 - np.sqrt(values))**2).sum() + 1.0 - weights.sum()
    pairs = values[:, None] / (values[:, None] + values) * values
    return float(max(1.0, square / (0.5 * ratio * (weights @ pairs @ weights))))


@lru_cache(maxsize=512)
def scale_factor(n_replicas: int, level: float) -> float:
    """What makes the interval exact in one dimension: p with P(D^2 <= p w q) = `level`.

    There D^2 = z^2 / R + (1 - sqrt(w))^2 for variance 1, with w the sample variance, and half the width is
    the root of p w q: w is small by chance more often than D is large.
    """
    n, level = n_replicas - 1, max(level, _LEAST)
    miss = 1.0 - level
    weights = np.array([1.0 / n_replicas, spectrum_factor(1.0 / n) / (2 * n)])
    quantile = float(_quantile(weights.sum(), (weights**2).sum(), level))
    shape, beyond = 0.5 * n, 1e-4 * miss
    ends = gammaincinv(shape, beyond), gammainccinv(shape, beyond)
    edges = np.geomspace(max(float(ends[0]), 1e-290), float(ends[1]), _CELLS + 1)
    # either has all its digits in its own tail
    chances = np.where(edges[1:] < shape, np.diff(gammainc(shape, edges)), -np.diff(gammaincc(shape, edges)))
    lowest = float(gammainc(shape, edges[0]))
    scales = np.sqrt(edges[1:] * edges[:-1]) / shape
    gaps = (1.0 - np.sqrt(scales))**2

    def missed(factor: float) -> float:
        left = np.maximum(0.0, factor * quantile * scales - gaps)
        return lowest + float(chances @ gammaincc(0.5, 0.5 * n_replicas * left))

    low, high = 0.0, 1.0  # of its logarithm
    while missed(np.exp(high)) > miss:
        low, high = high, 2.0 * high
    for _ in range(50):
        half = 0.5 * (low + high)
        low, high = (half, high) if missed(np.exp(half)) > miss else (low, half)
    return float(np.exp(high))


def _quantile(total: Array, squares: Array, level: float) -> Array:
    """Of a sum of chi-square variables with these sums of weights and of their squares, by a gamma law."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = total**2 / (2.0 * squares)
        found = gammainccinv(shape, 1.0 - max(level, _HALF)) * total / shape
    return np.where(total > 0.0, found, 0.0)


def half_widths(cov: Array, n_replicas: int, level: float, kurtosis: Array,
                reference: Array | None = None) -> Array:
    """Half the width of the interval of W2 by these sample covariances, (n,).

    Of variances (n, d) alone the correlations are not known: the larger quantile is taken of none, and of
    those that are 1 in size, when all coordinates err together and D^2 is as that of one dimension.

    Parameters
    ----------
    cov : (n, d, d), or (n, d) variances
    kurtosis : (n,)
        How much larger the variance of sample variances is than for a Gaussian law.
    reference : (d, d), optional
        Covariance of the target. Where it is much smaller than S the measured W2 errs by less than D, and
        from `_MANY` replicas a dimension on that is used: What^2 = W^2 + L + Q, where the remainder Q >= 0 of
        the second order is smaller than D^2, and L, linear in the errors, by less than twice W times the
        mean's error in the worst direction.
    """
    if cov.ndim == 2:
        return _of_variances(cov, n_replicas, level, kurtosis)
    values, cross = np.clip(np.linalg.eigvalsh(cov), 0.0, None), None
    if reference is not None and n_replicas >= _MANY * cov.shape[-1]:
        size, root = _largest(values), roots(reference)
        scale = float(np.abs(root).max()) or 1.0
        squares = np.linalg.eigvalsh((root / scale) @ (cov / size[:, None, None]) @ (root / scale))
        cross = scale * np.sqrt(size)[:, None] * np.sqrt(np.clip(squares, 0.0, None))
    return of_eigenvalues(values, cross, n_replicas, level, kurtosis)


def of_eigenvalues(values: Array, cross: Array | None, n_replicas: int, level: float, kurtosis: Array
                   ) -> Array:
    """`half_widths` by the eigenvalues (n, d) of sample covariances.

    Parameters
    ----------
    cross : (n, d) or None
        Roots of the eigenvalues of Shat T.
    """
    n, size = n_replicas - 1, _largest(values)
    factor = spectrum_factor(values.shape[1] / n) * kurtosis / (2 * n)
    values = values / size[:, None]  # squares of tiny weights would underflow
    found = _leading(values, values, n_replicas, factor, level)
    if cross is not None:
        cross = np.minimum(cross / size[:, None], 1e10)  # far larger than D, whose squares would overflow
        found = np.minimum(found, _leading(values, cross, n_replicas, factor, level))
    return np.sqrt(size * scale_factor(n_replicas, level) * found)


def _of_variances(variances: Array, n_replicas: int, level: float, kurtosis: Array) -> Array:
    n, size = n_replicas - 1, _largest(variances)
    factor = spectrum_factor(1.0 / n) * kurtosis / (2 * n)
    values = variances / size[:, None]
    total, both, power = values.sum(axis=1), 1.0 / n_replicas + factor, 1.0 / n_replicas**2 + factor**2
    together, apart = (_quantile(total * both, squares * power, level)
                       for squares in (total**2, (values**2).sum(axis=1)))
    return np.sqrt(size * scale_factor(n_replicas, level) * np.maximum(together, apart))


def _largest(values: Array) -> Array:
    """Of each row, (n,); 1 where all are 0."""
    size = values.max(axis=1)
    return np.where(size > 0.0, size, 1.0)


def _leading(values: Array, cross: Array, n_replicas: int, factor: Array, level: float) -> Array:
    """The leading quantile, (n,): the mean's part is of `values`, the covariance's of `cross`, (n, d)."""
    total, squares = values.sum(axis=1) / n_replicas, (values**2).sum(axis=1) / n_replicas**2
    step = max(1, _PIECE // values.shape[1]**2)
    for begin in range(0, len(values), step):
        piece = slice(begin, begin + step)
        one, other = cross[piece, :, None], cross[piece, None, :]
        sums = one + other
        pairs = factor[piece, None, None] * one / np.where(sums > 0.0, sums, 1.0) * other
        both = np.diagonal(pairs, axis1=1, axis2=2)
        # (i, j) and (j, i) are one variable of twice the weight; (i, i) has twice its weight
        total[piece] += pairs.sum(axis=(1, 2)) + both.sum(axis=1)
        squares[piece] += 2.0 * (pairs**2).sum(axis=(1, 2)) + 2.0 * (both**2).sum(axis=1)
    return _quantile(total, squares, level)


def proved_ends(gaps: tuple[Array, Array], cov: Array, n_replicas: int, level: float, goal: float
                ) -> tuple[Array, Array]:
    """Ends between which the W2 of a Gaussian law lies with probability at least `level`, proved, (n,) each.

    Parameters
    ----------
    gaps : (n,) and (n,)
        |mhat - mu| and B(Shat, T), the measured distances of means and of covariances to the target's.
    cov : (n, d, d), or (n, d) variances
    goal : float
        Trace of the target's covariance T.

    With five events that fail with probability exp(-x) each, x = log(5 / (1 - level)):

    * tr Shat / tr S lies between the two roots u of u - 1 - log u = 2 x / n (two events): by Markov's
      inequality for exp(-+a n tr Shat), since prod(1 +- 2 a s_i) >= 1 +- 2 a tr S whatever the eigenvalues
      s_i, either is left with probability at most (u e^(1-u))^(n/2).
    * All singular values of the n x d normal matrix over sqrt(n) lie within e = sqrt(d/n) + sqrt(2x/n) of 1
      (Davidson and Szarek, two events), so that Shat >= (1 - e)^2 S where e < 1, and
      B(S, Shat) <= |(I - V^(1/2)) S^(1/2)|_F <= e sqrt(tr S): for S^(1/2) V^(1/2) is a root of Shat. Of
      variances alone, d = 1 for each coordinate, at x + log d.
    * |S^(1/2) z| <= sqrt(tr S) + sqrt(2 x s_max), z standard normal: it is Lipschitz in z (Borell, Sudakov
      and Tsirelson).

    Then W^2 = |m - mu|^2 + B(S, T)^2, with |m - mu| off by the error of the mean at most, and B(S, T) by
    B(S, Shat); and sqrt(tr S) and sqrt(tr T) differ by B(S, T) at most.
    """
    n, x = n_replicas - 1, float(np.log(5.0 / (1.0 - level)))
    full = cov.ndim == 3
    size = np.trace(cov, axis1=1, axis2=2) if full else cov.sum(axis=1)
    dim, more = (cov.shape[-1], 0.0) if full else (1, float(np.log(cov.shape[-1])))
    off = np.sqrt(dim / n) + np.sqrt(2.0 * (x + more) / n)
    least = max(0.0, 1.0 - off)**2
    power = -np.exp(-1.0 - 2.0 * x / n)
    low, high = (float(-lambertw(power, branch).real) for branch in (0, -1))
    trace, smallest = size / max(low, least), size / high
    largest = trace
    if full and least > 0.0:
        largest = np.minimum(trace, np.linalg.eigvalsh(cov)[:, -1] / least)
    of_mean = (np.sqrt(trace) + np.sqrt(2.0 * x * largest)) / np.sqrt(n_replicas)
    of_cov = np.minimum(off * np.sqrt(trace), np.sqrt(trace + size))
    apart = np.maximum(np.sqrt(smallest) - np.sqrt(goal), np.sqrt(goal) - np.sqrt(trace))
    means, covs = gaps
    lower = np.hypot(np.maximum(0.0, means - of_mean), np.maximum(0.0, np.maximum(covs - of_cov, apart)))
    return lower, np.hypot(means + of_mean, covs + of_cov)
