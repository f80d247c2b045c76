"""K leapfrog steps of size eta along a direction of curvature a multiply the distance by T_K(1 - eta^2 a/2).

T_K(cos t) = cos(K t), here with t = 2 arcsin(eta sqrt(a)/2), which keeps its digits where a step hardly turns
and, from the other end, near the half turn at which trajectories stop being bounded.
"""

from __future__ import annotations

import numpy as np

from ..settings.validation import Array


def leapfrog_shift(eta: float, curvatures: Array, steps: int) -> Array:
    """T_K(1 - eta^2 a/2) - 1 for curvatures a, in O(1) operations whatever K is.

    The phase K t carries the relative rounding error of t: log10(K t) of the 15.6 digits of a cosine are
    lost, nine are left at K = 10^6 and none from K t = 10^15 on. Near the half turn t = pi - s it is that of
    eta sqrt(a)/2, which leaves less of s.

    Examples
    --------
    >>> from fedsim.stability.leapfrog import leapfrog_shift
    >>> leapfrog_shift(1.0, np.array([1.0, 2.0, 5.0]), 2).round(12).tolist()
    [-1.5, -2.0, 2.5]
    """
    half = 0.5 * eta * np.sqrt(curvatures)  # sin(t/2)
    apart = np.abs((1.0 - half) * (1.0 + half))  # cos(t/2)^2
    turned = np.arcsin(np.minimum(np.where(half < 0.7, half, np.sqrt(apart)), 1.0))
    phase = steps * turned
    near_zero = -2.0 * np.sin(phase) ** 2
    near_half = near_zero if steps % 2 == 0 else -2.0 * np.cos(phase) ** 2
    with np.errstate(over="ignore"):
        grown = np.cosh(2.0 * steps * np.arcsinh(np.sqrt(apart)))
    beyond = (-1.0 if steps % 2 else 1.0) * grown - 1.0
    return np.where(half < 0.7, near_zero, np.where(half <= 1.0, near_half, beyond))


def resonant(eta: float, curvatures: Array, steps: int) -> np.ndarray:
    """Where K steps make whole half turns, up to rounding, and a single one does not nearly make one."""
    turns = 2.0 * steps * np.arcsin(np.minimum(0.5 * eta * np.sqrt(curvatures), 1.0)) / np.pi
    near = np.rint(turns)
    return (near >= 1.0) & (near < steps) & (np.abs(turns - near) < 1e-6)
