"""Exact law of DE-SGLD on quadratic clients: a step of size eta without velocities, heat 2 eta.

    x' = (W x I - eta A) x + eta A b + noise,   D_i = 2 eta I + eta^2 G_i,

in the notation of `decentralized`. For a common Hessian the average's stationary covariance along an
eigenvector of curvature theta of the f_i is (1/(N theta)) / (1 - eta theta/2); the target has 1/(N theta).

Source: DE-SGLD equations (2) and (13) for the recursion; the law is derived.
"""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.de_sgld import DESGLD

from ..families import exact
from . import DecentralizedFamily, Move


@exact(DESGLD)
class DESGLDFamily(DecentralizedFamily):
    """A step of DE-SGLD."""

    def move(self, algorithm: Any, size: float) -> Move:
        return Move(size, None, 2.0 * size)
