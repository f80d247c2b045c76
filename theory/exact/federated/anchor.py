"""Rounds that depend on the server's previous value z as well: the state is s = (x, z).

With matrices the state is a vector (2 d,); where coordinates do not mix it is a pair (x_i, z_i) for each,
an array (d, 2), and covariances are (d, 2, 2) or, between coordinates, (d, d, 2, 2).
"""

from __future__ import annotations

import numpy as np

from fedsim.settings.validation import Array

from ..affine import Moments


def lift(deviations: Array, anchored: Array, pulls: Array) -> tuple[Array, Array]:
    """Maps x' = x + deviation x + anchored z + pull and z' = x of clients, as (deviations, pulls) of s."""
    dense = deviations.ndim == 3
    unit: Array = np.broadcast_to(np.eye(deviations.shape[-1]) if dense else 1.0, deviations.shape)
    rows = [[deviations, anchored], [unit, -unit]]
    both: Array = np.block(rows) if dense else np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    still = np.zeros_like(pulls)
    return both, np.concatenate([pulls, still], axis=1) if dense else np.stack([pulls, still], axis=-1)


def lift_noise(noise: Array, dense: bool) -> Array:
    """The round's noise enters x alone: from (d, d), or (d,) where coordinates do not mix."""
    if dense:
        return np.pad(noise, (0, len(noise)))
    return noise[..., None, None] * np.diag([1.0, 0.0])


def begin(mean: Array, cov: Array | None, dense: bool) -> Moments:
    """Moments of s for a start x, with z = 0."""
    return begin_points(mean[None], dense)[0], None if cov is None else lift_noise(cov, dense)


def begin_points(points: Array, dense: bool) -> Array:
    """States (R, 2 d) or (R, d, 2) of points x (R, d), with z = 0."""
    still = np.zeros_like(points)
    return np.concatenate([points, still], axis=1) if dense else np.stack([points, still], axis=-1)


def present(mean: Array, cov: Array | None, dim: int) -> Moments:
    """Moments of x."""
    if mean.ndim == 2:
        return mean[:, 0], None if cov is None else cov[..., 0, 0]
    return mean[:dim], None if cov is None else cov[:dim, :dim]


def present_points(states: Array, dim: int) -> Array:
    """x of states."""
    return states[..., 0] if states.ndim == 3 else states[:, :dim]
