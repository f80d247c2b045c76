"""The support of a problem: a box outside which its potentials are infinite."""

from __future__ import annotations

from typing import Any
from warnings import warn

import numpy as np

from .validation import Array, as_array, locked, shape, shown

Support = tuple[Array, Array]
"""Lower and upper ends (d,) of the coordinates, which may be infinite; they belong to it."""


class OutsideWarning(UserWarning):
    """Replicas left the support of their problem: their numbers are no sample of its target.

    Examples
    --------
    >>> import fedsim as fs, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", fs.OutsideWarning)
    """


def support_of(given: Any, dim: int) -> Support | None:
    """The ends of a support as they are kept; None for the whole space.

    Raises
    ------
    ValueError
        Naming the end, its value and the condition.
    """
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(f"support={shown(given)} must be a pair (lo, hi) of numbers or arrays ({dim},), or "
                         "None")
    low, high = (_ends(f"support[{i}]", part, dim) for i, part in enumerate(given))
    for i in np.flatnonzero(~(low < high) | (low == np.inf) | (high == -np.inf)):
        raise ValueError(f"support[0]={low[i]:g} must be less than support[1]={high[i]:g}"
                         f"{f' in coordinate {i}' if dim > 1 else ''}; one end or both may be infinite")
    return None if np.isinf(low).all() and np.isinf(high).all() else (low, high)


def _ends(name: str, given: Any, dim: int) -> Array:
    values = as_array(given)
    if values.dtype.kind not in "biuf" or isinstance(given, np.ma.MaskedArray):
        raise ValueError(f"{name}={shown(given)} must be a number, or an array of {dim} numbers")
    values = values.astype(np.float64) + 0.0  # -0 is 0
    if values.ndim:
        shape(name, values, (dim,), " (a number, or one per coordinate)")
    if np.isnan(values).any():
        raise ValueError(f"{name}={shown(given)} must not be NaN")
    return locked(np.array(np.broadcast_to(values, (dim,))))


def outside(support: Support, x: Array) -> np.ndarray:
    """Which points (..., d) are outside, (...); one that is not a number is."""
    low, high = support
    return np.logical_not(np.all((x >= low) & (x <= high), axis=-1))


def shown_support(support: Support) -> str:
    """Numbers where all coordinates have the same ends."""
    words = [f"{part[0]:g}" if (part == part[0]).all() else shown(part) for part in support]
    return f"({words[0]}, {words[1]})"


def within(support: Support | None, points: Array) -> Array:
    """Points (R, d) on the scale of one; those coordinates that are not well within are moved there."""
    if support is None:
        return points
    low, high = support
    room = np.minimum(points - low, high - points)
    with np.errstate(over="ignore"):
        from_low = np.isfinite(low) & ~(np.isfinite(high) & (np.abs(high) < np.abs(low)))
        end, width = np.where(from_low, low, high), high - low
        size = np.exp(points) * np.maximum(1.0, 1e-6 * np.abs(end))
        size = np.minimum(size, width / (1.0 + np.exp(-points)))
    with np.errstate(invalid="ignore"):  # coordinates without ends stay
        moved = end + np.where(from_low, size, -size)
    return np.where(room >= 1e-3, points, moved)


def warn_outside(counts: np.ndarray, rounds: np.ndarray, n_replicas: int) -> None:
    """Warn who called the caller, where there are any."""
    if counts.any():
        warn(f"{told(counts, rounds, n_replicas)}: their numbers are no sample of the target", OutsideWarning,
             stacklevel=3)


def told(counts: np.ndarray, rounds: np.ndarray, n_replicas: int) -> str:
    """What is said of the numbers of replicas outside (n,) at these rounds: of the most, and of the last."""
    worst = len(counts) - 1 - int(np.argmax(counts[::-1]))
    last = "" if worst == len(counts) - 1 else f", {counts[-1]:,} at round {rounds[-1]}"
    return f"{counts[worst]:,} of {n_replicas:,} replicas outside the support at round {rounds[worst]}{last}"
