"""Tables of small matrices, (..., m, m): products that are cheap where m is 1, and Kronecker products."""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import Array


def symmetrised(cov: Array) -> Array:
    """Exactly symmetric, (..., d, d)."""
    return 0.5 * (cov + np.swapaxes(cov, -1, -2))


def times(left: Array, right: Array) -> Array:
    """left @ right, elementwise where the matrices are numbers: one by one they would be dear."""
    return left * right if left.shape[-1] == 1 else left @ right


def at(maps: Array, points: Array) -> Array:
    """Matrices (..., m, m) at points (..., m)."""
    return times(maps, points[..., None])[..., 0]


def around(maps: Array, cov: Array) -> Array:
    """M_i C_ij M_j' of maps (..., g, m, m) and covariances of as many axes, or one more between groups."""
    left, right = maps, np.swapaxes(maps, -1, -2)
    if cov.ndim > maps.ndim:
        left, right = left[..., None, :, :], right[..., None, :, :, :]
    return left * right * cov if maps.shape[-1] == 1 else left @ cov @ right


def kron(left: Array, right: Array, between: bool) -> Array:
    """Kronecker products of (n, g, ., .) for each group, or each pair of groups, summed over n."""
    one, pair = ("j", "ij") if between else ("i", "i")
    large = left.size > 1000  # BLAS is a detour for less
    table = np.einsum(f"niab,n{one}cd->{pair}acbd", left, right, optimize=large)
    return table.reshape(*table.shape[:-4], left.shape[2] * right.shape[2], left.shape[3] * right.shape[3])


def flat(cov: Array) -> Array:
    """Blocks (..., m, m) as columns (..., m^2, 1)."""
    return cov.reshape(*cov.shape[:-2], -1, 1)
