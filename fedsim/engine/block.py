"""One block of replicas, run in short segments of rounds."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..settings.validation import Array
from ..vector.memory import aligned
from .failing import failed_gradient
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


class BlockPart:
    """The state of a block, or of some coordinates of it; with `n_kept`, `every` and `view` as in `Path`."""

    def __init__(self, job: Job, first: int, last: int, n_kept: int = 0, every: int = 1,
                 view: int = 0) -> None:
        self.job, self.first, self.last, self.done = job, first, last, 0
        self.state = lane_state(job, first, last)
        shape = -(-(last - first) // LEAF), job.n_views, len(job.rounds)
        self.record = Record(job.rounds, np.zeros((*shape, job.problem.dim)), np.zeros((*shape, job.width)),
                             np.zeros(last - first), job.function)
        self.path = Path(np.empty((n_kept, *self.state.unfolded.shape)), every, view)
        self.index = 0
        self._centred = aligned(self.state.unfolded.shape)

    def run_to(self, last: int, every: int) -> int:
        """Run up to round `last`; returns the first bad round of those looked at, -1 if there is none.

        Raises
        ------
        GradientError
            Where a gradient of one's own fails.
        """
        try:
            return self.run_plainly(last, every)
        except Exception as error:
            located = failed_gradient(self, last)
            if located is None:
                raise
            raise located from error

    def run_plainly(self, last: int, every: int) -> int:
        """The same, with what compiled code raises."""
        self.index, bad = run_rounds(*self.state, self.record, self._centred, self.path, self.done, last,
                                     self.index, RADIUS, every)
        self.done = last
        return int(bad)


class BlockRunner:
    """A block between segments; its parts, of `Job.parts`, run side by side."""

    def __init__(self, job: Job, first: int, last: int) -> None:
        self.job, self.first, self.last = job, first, last
        self._parts = [BlockPart(part, first, last) for part in job.parts()]
        self._chunk = 1

    @property
    def done(self) -> int:
        """Rounds that are done."""
        return self._parts[0].done

    @property
    def finished(self) -> bool:
        """True when all rounds are done."""
        return self._parts[0].index > 0 and self.done >= self.job.n_rounds

    def _run_to(self, last: int) -> int:
        if len(self._parts) == 1:
            return self._parts[0].run_to(last, CHECK_EVERY)
        with ThreadPoolExecutor(len(self._parts)) as pool:
            return max(pool.map(lambda part: part.run_to(last, CHECK_EVERY), self._parts))

    def advance(self) -> int:
        """Run one segment; returns the number of rounds done in it."""
        begin = time.perf_counter()
        last = min(self.done + self._chunk, self.job.n_rounds)
        rounds = last - self.done
        bad = self._run_to(last)
        if bad >= 0:  # the block is run again up to there, in one part and looked at every round
            bad = BlockPart(self.job, self.first, self.last).run_to(bad, 1)
            raise diverged(self.job.problem, self.job.algorithm, bad)
        seconds = max(time.perf_counter() - begin, 1e-7)
        # the first call may include compiling: grow gradually, never more than eightfold
        self._chunk = int(np.clip(rounds * SEGMENT_SECONDS / seconds, 1, 8 * self._chunk))
        return rounds

    def result(self) -> BlockResult:
        """Moments of the leaves, the test function's averages, and the last average iterate."""
        records, final = [part.record for part in self._parts], np.empty((0, self.job.problem.dim))
        if self.job.keep_final:
            rows = np.concatenate([part.state.unfolded for part in self._parts])
            final = rows[:, :self.last - self.first].T.copy()
        mean, square = (np.concatenate(values, axis=-1) for values in zip(
            *((record.mean, record.square) for record in records), strict=True))
        sums = records[0].sums if self.job.average else np.empty(0)
        return BlockResult(self.first, self.last, mean, square, sums / max(self.job.n_rounds, 1), final)


def diverged(problem: Problem, algorithm: SimulatedAlgorithm, round: int) -> DivergedError:
    """The error that names the round and, where it is known, the stability limit."""
    limit = "" if problem.is_judged else "; nothing bounds the Hessians, so that no step size was judged"
    try:
        stability = algorithm.stability(problem)
        if not np.isnan(stability.max_step_size):
            limit = f"; step_size={stability.step_size:g}, stability limit {stability.max_step_size:.6g}"
    except ValueError:  # too large to be judged
        pass
    return DivergedError(f"diverged at round {round}: a coordinate is not finite or beyond {RADIUS:g}{limit}",
                         round)


def run_block(job: Job, first: int, last: int) -> BlockResult:
    """A whole block as one task, for executors, in one thread."""
    runner = BlockRunner(replace(job, threads=1), first, last)
    while not runner.finished:
        runner.advance()
    return runner.result()
