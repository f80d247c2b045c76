"""Exact law of DE-SGHMC on quadratic clients: with beta = 1 - gamma eta and heat 2 gamma eta,

    v' = beta v - eta (A x - A b) + noise,   x' = (W x I) x + eta v',   D_i = 2 gamma eta I + eta^2 G_i,

in the notation of `decentralized`; the same noise enters v and, times eta, x.

Source: DE-SGHMC equations (32) and (33) for the recursion; the law is derived.
"""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.settings.validation import Array

from ..families import exact
from . import DecentralizedFamily, Move


@exact(DESGHMC)
class DESGHMCFamily(DecentralizedFamily):
    """A step of DE-SGHMC."""

    def move(self, algorithm: Any, size: float) -> Move:
        friction = algorithm.friction
        return Move(size, 1.0 - friction * size, 2.0 * friction * size)

    def velocities(self, problem: Any, algorithm: Any) -> Array | None:
        return algorithm.start_velocities(problem)
