"""One block of replicas, run in short segments of rounds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..settings.validation import Array
from ..vector.memory import aligned
from .job import Job
from .moments import Moments, leaf_moments
from .rounds import LEAF, Path, Record, run_rounds
from .state import lane_state

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
        begins = range(self.first, self.last, LEAF)
        return [(begin // LEAF, leaf_moments(mean, square, min(LEAF, self.last - begin)))
                for begin, mean, square in zip(begins, self.mean, self.square, strict=True)]


class BlockRunner:
    """The state of a block between segments; with `n_kept`, `every` and `view` as in `Path`."""

    def __init__(self, job: Job, first: int, last: int, n_kept: int = 0, every: int = 1,
                 view: int = 0) -> None:
        self.job, self.first, self.last = job, first, last
        self.done = 0
        self._state = lane_state(job, first, last)
        shape = -(-(last - first) // LEAF), job.n_views, len(job.rounds)
        self._record = Record(job.rounds, np.zeros((*shape, job.problem.dim)), np.zeros((*shape, job.width)),
                              np.zeros(last - first), job.function)
        self._centred = aligned(self._state.unfolded.shape)
        self.path = Path(np.empty((n_kept, *self._state.unfolded.shape)), every, view)
        self._index = 0
        self._chunk = 1

    @property
    def finished(self) -> bool:
        """True when all rounds are done."""
        return self._index > 0 and self.done >= self.job.n_rounds

    def run_to(self, last: int, every: int) -> int:
        """Run up to round `last`; returns the first bad round of those looked at, -1 if there is none."""
        self._index, bad = run_rounds(*self._state, self._record, self._centred, self.path, self.done, last,
                                      self._index, RADIUS, every)
        self.done = last
        return int(bad)

    def advance(self) -> int:
        """Run one segment; returns the number of rounds done in it."""
        begin = time.perf_counter()
        last = min(self.done + self._chunk, self.job.n_rounds)
        rounds = last - self.done
        bad = self.run_to(last, CHECK_EVERY)
        if bad >= 0:  # the block is run again up to there, and looked at every round
            bad = BlockRunner(self.job, self.first, self.last).run_to(bad, 1)
            raise diverged(self.job.problem, self.job.algorithm, bad)
        seconds = max(time.perf_counter() - begin, 1e-7)
        # the first call may include compiling: grow gradually, never more than eightfold
        self._chunk = int(np.clip(rounds * SEGMENT_SECONDS / seconds, 1, 8 * self._chunk))
        return rounds

    def result(self) -> BlockResult:
        """Moments of the leaves, the test function's averages, and the last average iterate."""
        state, final = self._state, np.empty((0, self.job.problem.dim))
        if self.job.keep_final:
            final = state.unfolded[:, :self.last - self.first].T.copy()
        sums = self._record.sums if self.job.average else np.empty(0)
        return BlockResult(self.first, self.last, self._record.mean, self._record.square,
                           sums / max(self.job.n_rounds, 1), final)


def diverged(problem: Problem, algorithm: SimulatedAlgorithm, round: int) -> DivergedError:
    """The error that names the round and, where it is known, the stability limit."""
    limit = ""
    try:
        stability = algorithm.stability(problem)
        if not np.isnan(stability.max_step_size):
            limit = f"; step_size={stability.step_size:g}, stability limit {stability.max_step_size:.6g}"
    except ValueError:  # too large to be judged
        pass
    return DivergedError(f"diverged at round {round}: a coordinate is not finite or beyond {RADIUS:g}{limit}",
                         round)


def run_block(job: Job, first: int, last: int) -> BlockResult:
    """A whole block as one task, for executors."""
    runner = BlockRunner(job, first, last)
    while not runner.finished:
        runner.advance()
    return runner.result()
