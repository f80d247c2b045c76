"""Distances between laws: W2 of Gaussians, W1 of their marginals, the finite-replica floor.

What is given is checked here, and computed in `moments`.
"""

from __future__ import annotations

import numpy as np

from ..settings.alignment import square, together
from ..settings.lazy_import import lazy
from ..settings.validation import Array, array, positive, shape, whole
from .law_checks import covariance, not_negative
from .moments import floor_parts, floor_parts_diagonal, roots, w2_of

__all__ = ["psd_sqrt", "w1_normal", "w1_samples", "w2_floor", "w2_floor_parts", "w2_floor_parts_diagonal",
           "w2_gaussian"]

ndtr = lazy("scipy.special", "ndtr")


def _numbers(name: str, value: object) -> Array:
    """Finite numbers; large arrays are not copied."""
    if type(value) is np.ndarray and value.dtype == np.float64 and np.isfinite(value).all():
        return value
    return array(name, value)


def _moments(number: int, mean: object, cov: object) -> tuple[Array, Array]:
    """Mean (..., d) and covariance (..., d, d) or variances (..., d) of law `number`."""
    centre, spread = _numbers(f"mean{number}", mean), _numbers(f"cov{number}", cov)
    dim = centre.shape[-1:]
    axes = int(spread.ndim != centre.ndim)
    if not centre.size or not dim or spread.shape[-1 - axes:] != dim * (1 + axes):
        raise ValueError(f"mean{number} has shape {centre.shape} and cov{number} {spread.shape}; they must "
                         "be (..., d), and (..., d, d) or (..., d)")
    return centre, (covariance(f"cov{number}", spread, cov) if axes else
                    not_negative(f"cov{number}", spread))


def _full(name: str, cov: object) -> Array:
    """Covariances (..., d, d)."""
    matrix = _numbers(name, cov)
    if matrix.ndim < 2 or not matrix.size or matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError(f"{name} has shape {matrix.shape}; it must be (..., d, d)")
    return covariance(name, matrix, cov)


def w2_gaussian(mean1: Array, cov1: Array, mean2: Array, cov2: Array) -> Array:
    """2-Wasserstein distance between Gaussians, vectorised over leading axes.

    Parameters
    ----------
    mean1, mean2 : (..., d)
    cov1, cov2 : (..., d, d), or (..., d) for diagonal covariances
        Both of the same kind.

    Returns
    -------
    (...) distances, not squared. Relative accuracy is that of the eigen decomposition even when
    the two laws nearly coincide.

    Raises
    ------
    ValueError
        Naming the argument, for shapes that do not go together and for what is no covariance.
    """
    last = int(max(getattr(mean, "ndim", 1) for mean in (mean1, mean2)) > 1)  # of tables the columns
    mean1, cov1, mean2, cov2 = together(last, mean1=mean1, cov1=cov1, mean2=mean2, cov2=cov2)
    if last == 0:
        cov1, cov2 = square("cov1", cov1), square("cov2", cov2)
    (mean1, cov1), (mean2, cov2) = _moments(1, mean1, cov1), _moments(2, mean2, cov2)
    if mean1.shape[-1] != mean2.shape[-1] or (cov1.ndim == mean1.ndim) != (cov2.ndim == mean2.ndim):
        raise ValueError(f"mean2 has shape {mean2.shape} and cov2 {cov2.shape}; they must be of the "
                         f"dimension and kind of mean1 {mean1.shape} and cov1 {cov1.shape}")
    try:
        np.broadcast_shapes(mean1.shape, mean2.shape)
    except ValueError:
        raise ValueError(f"mean2 has shape {mean2.shape}; it must go with mean1 of shape {mean1.shape}"
                         ) from None
    return w2_of(mean1, cov1, mean2, cov2)


def psd_sqrt(cov: Array) -> Array:
    """Symmetric square roots of covariances, shape (..., d, d).

    Raises
    ------
    ValueError
        For what is not symmetric, or not positive semidefinite.
    """
    return roots(_full("cov", cov))


def w1_normal(mean1: Array, sd1: Array, mean2: Array, sd2: Array) -> Array:
    """1-Wasserstein distance between one-dimensional normals, elementwise.

    The quantile functions differ by a + b z with z standard normal, a = m1-m2, b = s1-s2, so the
    distance is E|a + b z| (FA-HMC section 7's marginal error averages it over coordinates).
    """
    mean1, sd1, mean2, sd2 = together(0, 1, mean1=mean1, sd1=sd1, mean2=mean2, sd2=sd2)
    shift = np.abs(_numbers("mean1", mean1) - _numbers("mean2", mean2))
    sds = _numbers("sd1", sd1), _numbers("sd2", sd2)
    for number, sd in enumerate(sds, 1):
        if (sd < 0.0).any():
            raise ValueError(f"sd{number} has an entry {sd.min():g}; it must be at least 0")
    spread = np.abs(sds[0] - sds[1])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = shift / spread
        folded = spread * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + shift * (1 - 2 * ndtr(-ratio))
    return np.where(spread > 0.0, folded, shift)


def w1_samples(first: Array, second: Array) -> float:
    """Marginal error: 1-Wasserstein distance of two samples, averaged over coordinates.

    Parameters
    ----------
    first : (n, d)
    second : (m, d)
        One row per draw. With n = m it is the mean gap between sorted draws of each coordinate,
        otherwise the integral of the gap between the empirical quantile functions.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-HMC section 7.

    Examples
    --------
    >>> fs.distance.w1_samples([[0.0], [2.0]], [[3.0], [1.0]])
    1.0
    """
    first, second = together(1, first=first, second=second)
    one, two = array("first", first, 2), array("second", second, 2)
    shape("second", two, (len(two), one.shape[1]), " (the dimension of first)")
    if len(one) == len(two):
        return float(np.abs(np.sort(one, axis=0) - np.sort(two, axis=0)).mean())
    from scipy.stats import wasserstein_distance  # slow to import

    return float(np.mean([wasserstein_distance(one[:, i], two[:, i]) for i in range(one.shape[1])]))


def w2_floor(cov: Array, n_replicas: int, reference: Array | None = None) -> Array:
    """Root mean square W2 between a Gaussian and the Gaussian fitted to R draws of it.

    Parameters
    ----------
    cov : (..., d, d)
        Covariance S of the law that is sampled.
    n_replicas : int
        R, at least 2. The fit uses the sample mean and the 1/(R-1) covariance.
    reference : (..., d, d), optional
        Covariance of the Gaussian W2 is measured to, default `cov` itself.

    Returns
    -------
    (...) the leading term for large R of sqrt(E[W2^2] - W2(N(m, S), reference)^2) due to noise in
    mean and covariance; for a reference that does not commute with S it is an approximation.

    Raises
    ------
    ValueError
        Naming the argument, for what is no covariance, and for fewer than two replicas.
    """
    cov, reference = together(0, cov=cov, reference=reference)
    cov, reference = square("cov", cov), square("reference", reference)
    mean_part, cov_part = w2_floor_parts(cov, n_replicas, reference)
    return np.sqrt(mean_part.sum(axis=-1) + cov_part.sum(axis=-1))


def w2_floor_parts(cov: Array, n_replicas: int, reference: Array | None = None) -> tuple[Array, Array]:
    """Weights of the independent chi-square variables whose sum is the W2^2 due to sampling noise.

    Returns the weights of the mean's part (..., d) and of the covariance's part (..., d*d); their sum
    is the expectation, twice the sum of their squares the variance. See `w2_floor`.
    """
    given, goal = _full("cov", cov), None if reference is None else _full("reference", reference)
    if goal is not None and goal.shape[-1] != given.shape[-1]:
        raise ValueError(f"reference has shape {goal.shape}; it must be (..., d, d), d that of cov")
    return floor_parts(given, whole("n_replicas", n_replicas, 2), goal)


def w2_floor_parts_diagonal(variances: Array, n_replicas: int) -> tuple[Array, Array]:
    """The same when only variances (..., d) are fitted."""
    return floor_parts_diagonal(not_negative("variances", _numbers("variances", variances)),
                                whole("n_replicas", n_replicas, 2))


def check_quantile(level: float) -> float:
    """A confidence level in (0, 1)."""
    value = positive("level", level)
    if value >= 1.0:
        raise ValueError(f"level={level!r} must be less than 1")
    return value
