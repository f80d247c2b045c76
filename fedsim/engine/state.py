"""A block's state, laid out in lanes, and the memory that it takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..random.normals import as_single, normals
from ..random.streams import START, by_coordinates, lane_set
from ..settings.validation import Array, read_only
from ..vector.compile import compiled
from ..vector.memory import aligned, aligned_copy, tallied


@compiled
def _start_normals(lanes, out):
    normals(lanes, START, 0, 0, out)


def start_rows(mean: Array, root: Array | None, lanes: Any) -> Array:
    """Starting points (d, B): the mean, or one draw per replica common to all clients.

    A point per client (N, d) gives (N, d, B). `root` is the covariance's square root (d, d), standard
    deviations (d,) of independent coordinates, or None.
    """
    rows = aligned_copy(np.broadcast_to(mean[..., None], (*mean.shape, len(lanes.replicas))))
    if root is None:
        return rows
    draws = aligned(rows.shape)
    _start_normals(lanes, draws)
    if root.ndim == 1:
        draws *= root[:, None]
        rows += draws
        return rows
    for j, column in enumerate(root.T):  # no BLAS: its bits depend on shapes
        rows += column[:, None] * draws[j]
    return rows


class LaneState(NamedTuple):
    """Compiled arguments of a block, with replicas or pairs of coordinates as lanes.

    Rows may have more lanes than the block has replicas: those at the end repeat the last replica.
    """

    kernel: Any
    arrays: Any
    lanes: Any
    work: Any
    observed: Array
    unfolded: Array


FEW_REPLICAS = 28
"""Below this, rows of coordinates are longer than rows of replicas and run faster."""


def by_coordinate(problem: Problem, algorithm: SimulatedAlgorithm, n_lanes: int, noise: str) -> Any:
    """The problem's compiled form with pairs of coordinates as lanes, where they are to be; else None."""
    if n_lanes < FEW_REPLICAS and noise == "double" and algorithm._separates(problem):
        return problem._coordinate_arrays(n_lanes)
    return None


def lane_state(job: Any, first: int, last: int) -> LaneState:
    """Lay a block of a job out in lanes. The bits do not depend on which layout is chosen."""
    problem, n_lanes = job.problem, last - first
    lanes = lane_set(job.seed, first, n_lanes, job.first_coordinate // 2)
    few = by_coordinate(problem, job.algorithm, n_lanes, job.noise)
    state = _laid_out(job, lanes, few is not None, start_rows(job.start_mean, job.start_root, lanes), n_lanes)
    return LaneState(_read_only(job.algorithm._kernel(problem)),
                     _read_only(problem._arrays() if few is None else few), *state)


def _read_only(value: Any) -> Any:
    """Parameters whose arrays, in nested tuples, are read-only, as not all are and none that was pickled.

    Code is compiled for the one or the other.
    """
    if isinstance(value, tuple):
        parts = [_read_only(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return read_only(value) if isinstance(value, np.ndarray) else value


def _laid_out(job: Any, lanes: Any, few: bool, start: Array, n_lanes: int) -> tuple[Any, Any, Array, Array]:
    """Lanes, workspace, and room to observe and to unfold; `few`: with pairs of coordinates as lanes."""
    dim = job.problem.dim
    if few:
        n_pairs = dim // 2
        lanes = by_coordinates(lanes, n_lanes, n_pairs)
        pairs = start[..., :n_lanes].reshape(*start.shape[:-2], n_pairs, 2, n_lanes)
        start = np.swapaxes(pairs, -3, -2).reshape(*start.shape[:-2], 2, -1)
        unfolded = aligned((dim, n_lanes))
        observed = unfolded if n_pairs == 1 else aligned(start.shape[-2:])  # one pair: nothing to unfold
    else:
        observed = unfolded = aligned(start.shape[-2:])
        lanes = as_single(lanes) if job.noise == "single" else lanes
    work = job.algorithm._workspace(job.problem, aligned_copy(start), job.dtype)
    return lanes, work, observed, unfolded


_MANY = 2**16
"""Replicas beyond which a block's state grows in proportion to them."""


def state_bytes(job: Any, n_replicas: int) -> float:
    """Bytes that a block of so many replicas takes, whatever its algorithm keeps; none of them is taken.

    Rows of `aligned` are counted when they are asked for, other arrays of the workspace when they are there.
    What was given anyway is not counted: the problem's arrays and the algorithm's parameters.
    """
    size = min(n_replicas, _MANY)
    with tallied() as tally:
        try:
            few = by_coordinate(job.problem, job.algorithm, size, job.noise) is not None
            lanes = lane_set(job.seed, job.first, size)
            start = aligned((*job.start_mean.shape, len(lanes.replicas)))
            if job.start_cov is not None:
                aligned(start.shape)
            _, work, _, unfolded = _laid_out(job, lanes, few, start, size)
            aligned(unfolded.shape)  # centred values, when moments are taken
            loose = sum(part.nbytes for part in arrays_in(work) if not tally.has(part))
        except OverflowError:  # enough is known
            loose = 0
    return (tally.n_bytes + loose) * n_replicas / size


def arrays_in(value: Any) -> list[np.ndarray]:
    """The arrays in nested tuples."""
    if isinstance(value, tuple):
        return [part for inner in value for part in arrays_in(inner)]
    return [value] if isinstance(value, np.ndarray) else []
