"""Distances between laws: W2 of Gaussians, W1 of their marginals, the finite-replica floor.

W2 is computed as  ||m1-m2||^2 + min_U ||S1^(1/2) - S2^(1/2) U||_F^2  with the polar factor U, and
not by the trace difference  tr(S1 + S2 - 2 (S2^(1/2) S1 S2^(1/2))^(1/2)), which subtracts two nearly
equal numbers and loses all digits when the laws are close.
"""

from __future__ import annotations

import numpy as np

from ..settings.alignment import square, together
from ..settings.lazy import lazy
from ..settings.limits import refuse_bytes
from ..settings.validation import Array, array, positive, shape, whole

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
    if axes == 0 and (spread < 0.0).any():
        raise ValueError(f"cov{number} has a negative variance {spread.min():g}; it must be at least 0")
    return centre, spread


def psd_sqrt(cov: Array) -> Array:
    """Symmetric square roots of positive semidefinite matrices, shape (..., d, d)."""
    values, vectors = np.linalg.eigh(cov)
    root = np.sqrt(np.clip(values, 0.0, None))
    return (vectors * root[..., None, :]) @ np.swapaxes(vectors, -1, -2)


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
    shift = _length(mean1 - mean2, 1)
    if cov1.ndim == mean1.ndim:
        return np.hypot(shift, _length(np.sqrt(cov1) - np.sqrt(cov2), 1))
    refuse_bytes(8.0 * (cov1.nbytes + cov2.nbytes), f"W2 of covariances of shape {cov1.shape} to those of "
                 f"shape {cov2.shape}", "keep fewer rounds (record), or variances (covariance='diagonal')")
    root1, root2 = psd_sqrt(cov1), psd_sqrt(cov2)
    left, _, right = np.linalg.svd(root2 @ root1)  # polar factor of S2^(1/2) S1^(1/2)
    return np.hypot(shift, _length(root1 - root2 @ (left @ right), 2))


def _length(x: Array, axes: int) -> Array:
    """Euclidean length over the last axes; squares can neither overflow nor underflow."""
    over = tuple(range(-axes, 0))
    _, power = np.frexp(np.abs(x).max(axis=over, keepdims=True))
    squares = np.ldexp(x, -power) ** 2  # a power of two: scaling does not round
    return np.ldexp(np.sqrt(squares.sum(axis=over)), power.reshape(power.shape[:-axes]))


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


def w2_floor_parts(cov: Array, n_replicas: int, reference: Array | None = None) -> tuple[Array, Array]:
    """Weights of the independent chi-square variables whose sum is the W2^2 due to sampling noise.

    Returns the weights of the mean's part (..., d) and of the covariance's part (..., d*d); their sum
    is the expectation, twice the sum of their squares the variance. See `w2_floor`.
    """
    n_replicas = whole("n_replicas", n_replicas, 2)
    values, vectors = np.linalg.eigh(cov)
    values = np.clip(values, 0.0, None)
    target = values
    if reference is not None:
        target = np.einsum("...ji,...jk,...ki->...i", vectors, reference, vectors)
    cross = np.sqrt(values) * np.sqrt(np.clip(target, 0.0, None))
    total = cross[..., :, None] + cross[..., None, :]
    pair = cross[..., :, None] / np.where(total > 0.0, total, 1.0) * cross[..., None, :]
    terms = pair * (1.0 + np.eye(values.shape[-1])) / (2 * (n_replicas - 1))
    terms = 2 * np.tril(terms, -1) + terms * np.eye(values.shape[-1])  # (i, j) and (j, i) are one variable
    return values / n_replicas, terms.reshape(*terms.shape[:-2], -1)


def w2_floor_parts_diagonal(variances: Array, n_replicas: int) -> tuple[Array, Array]:
    """The same when only variances (..., d) are fitted."""
    n_replicas = whole("n_replicas", n_replicas, 2)
    return variances / n_replicas, variances / (2 * (n_replicas - 1))


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
    """
    cov, reference = together(0, cov=cov, reference=reference)
    cov, reference = square("cov", cov), square("reference", reference)
    parts = {"cov": _numbers("cov", cov), "reference": cov if reference is None else reference}
    for name, part in parts.items():
        matrix = parts[name] = _numbers(name, part)
        if matrix.ndim < 2 or matrix.shape[-2:] != parts["cov"].shape[-1:] * 2:
            raise ValueError(f"{name} has shape {matrix.shape}; it must be (..., d, d), d that of cov")
    mean_part, cov_part = w2_floor_parts(parts["cov"], n_replicas, None if reference is None else (
        parts["reference"]))
    return np.sqrt(mean_part.sum(axis=-1) + cov_part.sum(axis=-1))


def check_quantile(level: float) -> float:
    """A confidence level in (0, 1)."""
    value = positive("level", level)
    if value >= 1.0:
        raise ValueError(f"level={level!r} must be less than 1")
    return value
