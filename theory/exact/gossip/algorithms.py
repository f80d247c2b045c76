"""Exact laws of DE-SGLD and DE-SGHMC on quadratic clients, in the notation of this package.

A step of size eta of DE-SGLD has heat 2 eta and no velocities,

    x' = (W x I - eta A) x + eta A b + noise,   D_i = 2 eta I + eta^2 G_i.

For a common Hessian the average's stationary covariance along an eigenvector of curvature theta of the f_i
is (1/(N theta)) / (1 - eta theta/2); the target has 1/(N theta). DE-SGHMC has beta = 1 - gamma eta and heat
2 gamma eta,

    v' = beta v - eta (A x - A b) + noise,   x' = (W x I) x + eta v',   D_i = 2 gamma eta I + eta^2 G_i,

where the same noise enters v and, times eta, x.

Source: DE-SGLD equations (2) and (13) and DE-SGHMC equations (32) and (33) for the recursions; the laws are
derived.
"""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.validation import Array

from ..families import exact
from .family import DecentralizedFamily
from .general import Move


@exact(DESGLD)
class DESGLDFamily(DecentralizedFamily):
    """A step of DE-SGLD."""

    def move(self, algorithm: Any, size: float) -> Move:
        return Move(size, None, 2.0 * size)


@exact(DESGHMC)
class DESGHMCFamily(DecentralizedFamily):
    """A step of DE-SGHMC."""

    def move(self, algorithm: Any, size: float) -> Move:
        damping = algorithm.friction * size
        return Move(size, 1.0 - damping, 2.0 * damping, damping)

    def velocities(self, problem: Any, algorithm: Any) -> Array | None:
        return algorithm.start_velocities(problem)
