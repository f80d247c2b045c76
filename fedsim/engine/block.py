"""One block of replicas, run in short segments of rounds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..laws.distance import psd_sqrt
from ..random.normals import as_single, normals
from ..random.streams import START, by_coordinates, lane_set
from ..settings.validation import Array
from ..vector.compile import compiled
from ..vector.tiles import aligned, aligned_copy
from .moments import Moments, leaf_moments
from .plan import Plan
from .rounds import LEAF, empty_record, observe, run_rounds, unfold

RADIUS = 1e75
"""A coordinate beyond this has diverged: its fourth power, in standard errors, would soon overflow."""
CHECK_EVERY = 16  # rounds: looking at the average costs as much as a pass over all clients
SEGMENT_SECONDS = 0.03


class DivergedError(RuntimeError):
    """A replica left every reasonable bound.

    Attributes
    ----------
    round : int
        First recorded communication at which a coordinate is NaN, infinite or beyond 1e75.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> try:
    ...     fs.simulate(problem, fs.FALD(3.0), 2000, 64, seed=1, allow_unstable=True)
    ... except fs.DivergedError as error:
    ...     print(str(error)[:30])
    diverged at round 107: a coord
    """

    def __init__(self, message: str, round: int) -> None:
        super().__init__(message)
        self.round = round

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.round)


@dataclass
class BlockResult:
    """What a finished block hands back; plain arrays, so that it travels between processes."""

    first: int
    last: int
    mean: Array
    square: Array
    sums: Array
    final: Array

    def leaves(self) -> list[tuple[int, Moments]]:
        """The moments of each leaf, by leaf number."""
        result = []
        for i in range(self.mean.shape[0]):
            begin = self.first + i * LEAF
            count = min(LEAF, self.last - begin)
            result.append((begin // LEAF, leaf_moments(self.mean[i], self.square[i], count)))
        return result


@compiled
def _start_normals(lanes, out):
    normals(lanes, START, 0, 0, out)


@compiled
def observe_average(work, seen, wide):
    """The average iterate as (d, B) in `wide`."""
    observe(work, 0, seen)
    unfold(seen, wide)


def start_rows(mean: Array, cov: Array | None, lanes: Any) -> Array:
    """Starting points (d, B): the mean, or one draw per replica common to all clients.

    A point per client (N, d) gives (N, d, B).
    """
    rows = aligned_copy(np.repeat(mean[..., None], len(lanes.replicas), axis=-1))
    if cov is None:
        return rows
    draws = aligned(rows.shape)
    _start_normals(lanes, draws)
    for j, column in enumerate(psd_sqrt(cov).T):  # no BLAS: its bits depend on shapes
        rows += column[:, None] * draws[j]
    return rows


@dataclass
class LaneState:
    """Compiled arguments of a block, with replicas or pairs of coordinates as lanes.

    Rows may have more lanes than the block has replicas: those at the end repeat the last replica.
    """

    kernel: Any
    arrays: Any
    lanes: Any
    work: Any
    seen: Array
    wide: Array


FEW_REPLICAS = 32
"""Below this, rows of coordinates are longer than rows of replicas and run faster."""


def lane_state(plan: Plan, first: int, last: int) -> LaneState:
    """Lay a block out in lanes. The bits do not depend on which layout is chosen."""
    problem, algorithm, n_lanes = plan.problem, plan.algorithm, last - first
    arrays = None
    if n_lanes < FEW_REPLICAS and plan.noise == "double" and algorithm._separates(problem):
        arrays = problem._coordinate_arrays(n_lanes)
    lanes: Any = lane_set(plan.seed, first, n_lanes)
    start = start_rows(plan.start_mean, plan.start_cov, lanes)
    if arrays is not None:
        n_pairs = problem.dim // 2
        lanes = by_coordinates(lanes, n_lanes, n_pairs)
        pairs = start[..., :n_lanes].reshape(*start.shape[:-2], n_pairs, 2, n_lanes)
        start = np.swapaxes(pairs, -3, -2).reshape(*start.shape[:-2], 2, -1)
        wide = aligned((problem.dim, n_lanes))
        seen = wide if n_pairs == 1 else aligned(start.shape[-2:])  # one pair: nothing to unfold
    else:
        arrays = problem._arrays()
        seen = wide = aligned(start.shape[-2:])
        lanes = as_single(lanes) if plan.noise == "single" else lanes
    work = algorithm._workspace(problem, aligned_copy(start), plan.dtype)
    return LaneState(algorithm._kernel(problem), arrays, lanes, work, seen, wide)


class BlockRunner:
    """The state of a block between segments."""

    def __init__(self, plan: Plan, first: int, last: int) -> None:
        n_lanes, dim = last - first, plan.problem.dim
        self.plan, self.first, self.last = plan, first, last
        self.done = 0
        self._state = lane_state(plan, first, last)
        self._record = empty_record(plan.rounds, n_lanes, plan.n_views, dim, plan.covariance, plan.function)
        self._centred = aligned(self._state.wide.shape)
        self._index = 0
        self._chunk = 1

    @property
    def finished(self) -> bool:
        """True when all rounds are done."""
        return self._index > 0 and self.done >= self.plan.n_rounds

    def advance(self) -> int:
        """Run one segment; returns the number of rounds done in it."""
        begin = time.perf_counter()
        last = min(self.done + self._chunk, self.plan.n_rounds)
        rounds = last - self.done
        state = self._state
        self._index, bad = run_rounds(
            state.kernel, state.arrays, state.lanes, state.work, self._record, state.seen, state.wide,
            self._centred, self.done, last, self._index, RADIUS, CHECK_EVERY)
        if bad >= 0:
            raise diverged(self.plan.problem, self.plan.algorithm, self._first_bad(bad))
        self.done = last
        seconds = max(time.perf_counter() - begin, 1e-7)
        # the first call may include compiling: grow gradually, never more than eightfold
        self._chunk = int(np.clip(rounds * SEGMENT_SECONDS / seconds, 1, 8 * self._chunk))
        return rounds

    def _first_bad(self, known: int) -> int:
        """The first bad round, up to a known one: the block is run again and looked at every round."""
        again = BlockRunner(self.plan, self.first, self.last)
        state = again._state
        return run_rounds(state.kernel, state.arrays, state.lanes, state.work, again._record, state.seen,
                          state.wide, again._centred, 0, known, 0, RADIUS, 1)[1]

    def result(self) -> BlockResult:
        """Moments of the leaves, the test function's averages, and the last average iterate."""
        wide = self._state.wide
        final = np.empty((0, wide.shape[0]))
        if self.plan.keep_final:
            observe_average(self._state.work, self._state.seen, wide)
            final = wide[:, :self.last - self.first].T.copy()
        sums = self._record.sums if self.plan.average else np.empty(0)
        return BlockResult(self.first, self.last, self._record.mean, self._record.square,
                           sums / max(self.plan.n_rounds, 1), final)


def diverged(problem: Problem, algorithm: SimulatedAlgorithm, round: int) -> DivergedError:
    """The error that names the round and, where it is known, the stability limit."""
    stability = algorithm.stability(problem)
    known = ("" if np.isnan(stability.max_step_size)
             else f"; step_size={stability.step_size:g}, stability limit {stability.max_step_size:.6g}")
    return DivergedError(f"diverged at round {round}: a coordinate is not finite or beyond {RADIUS:g}"
                         f"{known}", round)


def run_block(plan: Plan, first: int, last: int) -> BlockResult:
    """A whole block as one task, for executors."""
    runner = BlockRunner(plan, first, last)
    while not runner.finished:
        runner.advance()
    return runner.result()
