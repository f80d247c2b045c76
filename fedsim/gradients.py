"""What compiled code a problem provides: gradients of its clients, lane by lane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compile import dispatched
from .validation import Array


class Scratch(NamedTuple):
    """Rows (d, B) that a gradient may overwrite: float64 ones, and ones for normals."""

    rows: Array
    normals: Any


def scratch_rows(dim: int, n_lanes: int, dtype: Any) -> Scratch:
    """Scratch for gradients in `dim` dimensions whose normals have this dtype."""
    return Scratch(np.empty((dim, n_lanes)), np.empty((dim, n_lanes), dtype))


def gradient_scratch(problem: Any, dim: int, n_lanes: int, dtype: Any) -> Any:
    """What `problem` asks for by a method ``scratch(dim, n_lanes, dtype)``, else a `Scratch`."""
    return getattr(problem, "scratch", scratch_rows)(dim, n_lanes, dtype)


@dispatched
def exact_gradient(problem: Any, client: Any, x: Array, scratch: Scratch, out: Array) -> None:
    """Evaluate a client's exact gradient at `x` (d, B) into `out` (d, B), lane by lane.

    `client` is a number, or one number per lane. One body per class of problem.
    """


@dispatched
def stochastic_gradient(problem: Any, lane_set: Any, client: Any, step: int, draw: int, x: Array,
                        scratch: Scratch, out: Array) -> None:
    """The same with the problem's gradient noise.

    `draw` counts the evaluations within a step, so that each has its own noise.
    """


@dispatched
def is_exact(problem: Any) -> bool:
    """True when `stochastic_gradient` has no noise, so that equal points give equal gradients."""
