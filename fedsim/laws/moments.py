"""Distances and floors of moments that are known to be moments: nothing is checked here.

`distance` is the same for arrays from anywhere.

W2 is computed as  ||m1-m2||^2 + min_U ||S1^(1/2) - S2^(1/2) U||_F^2  with the polar factor U, and
not by the trace difference  tr(S1 + S2 - 2 (S2^(1/2) S1 S2^(1/2))^(1/2)), which subtracts two nearly
equal numbers and loses all digits when the laws are close.
"""

from __future__ import annotations

import numpy as np

from ..settings.limits import refuse_bytes
from ..settings.validation import Array

_SMALL = 2**16
"""Bytes for which nobody has to ask how large the memory is."""


def roots(cov: Array) -> Array:
    """Symmetric square roots of covariances, shape (..., d, d)."""
    values, vectors = np.linalg.eigh(cov)
    root = np.sqrt(np.clip(values, 0.0, None))
    return (vectors * root[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def w2_of(mean1: Array, cov1: Array, mean2: Array, cov2: Array) -> Array:
    """2-Wasserstein distance between Gaussians, over leading axes; covariances both full or both thin.

    Beside full ones the second may be variances (d,).
    """
    shift = _length(mean1 - mean2, 1)
    if cov1.ndim == mean1.ndim:
        return np.hypot(shift, _length(np.sqrt(cov1) - np.sqrt(cov2), 1))
    cov2 = np.diag(cov2) if cov2.ndim == 1 else cov2
    if cov1.nbytes + cov2.nbytes > _SMALL:
        refuse_bytes(8.0 * (cov1.nbytes + cov2.nbytes), f"W2 of covariances of shape {cov1.shape} to those "
                     f"of shape {cov2.shape}", "keep fewer rounds (record), or variances "
                     "(covariance='diagonal')")
    root1, root2 = roots(cov1), roots(cov2)
    left, _, right = np.linalg.svd(root2 @ root1)  # polar factor of S2^(1/2) S1^(1/2)
    return np.hypot(shift, _length(root1 - root2 @ (left @ right), 2))


def _length(x: Array, axes: int) -> Array:
    """Euclidean length over the last axes; squares can neither overflow nor underflow."""
    over = tuple(range(-axes, 0))
    _, power = np.frexp(np.abs(x).max(axis=over, keepdims=True))
    squares = np.ldexp(x, -power) ** 2  # a power of two: scaling does not round
    return np.ldexp(np.sqrt(squares.sum(axis=over)), power.reshape(power.shape[:-axes]))


def floor_parts(cov: Array, n_replicas: int, reference: Array | None = None) -> tuple[Array, Array]:
    """Weights of the independent chi-square variables whose sum is the W2^2 due to sampling noise.

    Returns the weights of the mean's part (..., d) and of the covariance's part (..., d*d); their sum
    is the expectation, twice the sum of their squares the variance. See `distance.w2_floor`.
    """
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


def floor_parts_diagonal(variances: Array, n_replicas: int) -> tuple[Array, Array]:
    """The same when only variances (..., d) are fitted."""
    return variances / n_replicas, variances / (2 * (n_replicas - 1))


