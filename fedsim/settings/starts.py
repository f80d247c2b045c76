"""Where runs and laws begin: a point, a point for each client, or a Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np

from .support import outside, shown_support
from .validation import Array, array, shape, shown


def start_moments(start: Any, dim: int, n_clients: int | None = None) -> tuple[Array, Array | None]:
    """Mean (d,) and covariance of a start; the origin when None.

    The covariance is (d, d), or variances (d,) of a Gaussian that was made from them, or None for a point.
    With `n_clients` (decentralized algorithms) a point per client (N, d) is allowed too.
    """
    if start is None:
        return np.zeros(dim), None
    if hasattr(start, "variances") and hasattr(start, "table"):  # a Gaussian; frames have a `cov` too
        if start.dim != dim:
            raise ValueError(f"start has dimension {start.dim}; it must be {dim}")
        return start.mean, start.table
    point = array("start", start, 1) if n_clients is None else array("start", start, 1, 2)
    return shape("start", point, (n_clients or 0, dim)[-point.ndim:], " (the problem's dimension)"), None


def start_of(problem: Any, algorithm: Any, start: Any) -> tuple[Array, Array | None]:
    """`start_moments` for this problem and algorithm; within the problem's support, where it has one.

    Raises
    ------
    ValueError
        Also for a start outside the support, or at its edge where a gradient is not finite.
    """
    differ = algorithm._clients_differ(problem)
    mean, cov = start_moments(start, problem.dim, problem.n_clients if differ else None)
    if problem.support is not None:
        _require_within(problem, start, mean)
    return mean, cov


def _require_within(problem: Any, start: Any, mean: Array) -> None:
    low, high = problem.support
    what = f"start={'the origin' if start is None else shown(start)}"
    if outside(problem.support, mean).any():
        raise ValueError(f"{what} must lie within support={shown_support(problem.support)}")
    if ((mean > low) & (mean < high)).all():
        return
    for client in range(problem.n_clients):
        if not np.isfinite(problem.gradient(client, mean)).all():
            raise ValueError(f"{what} lies at the edge of support={shown_support(problem.support)}, where "
                             f"the gradient of client {client} is not finite; it must be")
