"""One block of replicas, run in short segments of rounds."""

from __future__ import annotations

import time
from collections.abc import Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from ..settings.validation import Array
from ..vector.memory import aligned, signal_of, signals
from .divergence import RADIUS, DivergedError, Fault, centre, find_fault, reach, told_where
from .failing import failed_gradient
from .job import Job
from .moments import Moments, leaf_moments
from .rounds import LEAF, Bounds, Path, Record, run_rounds
from .state import lane_state

CHECK_EVERY = 16  # rounds: looking at the average costs as much as a pass over all clients
SEGMENT_SECONDS = 0.03
SEGMENT = 256
"""Rounds between two looks at whether another thread has failed."""


@dataclass
class BlockResult:
    """What a finished block hands back; plain arrays, so that it travels between processes."""

    first: int
    last: int
    mean: Array
    square: Array
    sums: Array
    final: Array
    outside: Any = 0

    def leaves(self) -> list[tuple[int, Moments]]:
        """The moments of each leaf, by leaf number."""
        begins = range(self.first, self.last, LEAF)
        return [(begin // LEAF, leaf_moments(mean, square, min(LEAF, self.last - begin)))
                for begin, mean, square in zip(begins, self.mean, self.square, strict=True)]


class Stopped(Exception):
    """A block was told to stop within a round; its state is of no use."""


class BlockPart:
    """The state of a block, or of some coordinates of it; with `n_kept`, `every` and `view` as in `Path`.

    Long rounds end early once the flag of `stop` is not zero, and count in it: see `signal_of`.
    """

    def __init__(self, job: Job, first: int, last: int, n_kept: int = 0, every: int = 1, view: int = 0,
                 stop: np.ndarray | None = None) -> None:
        self.job, self.first, self.last, self.done = job, first, last, 0
        self.fault: Fault | None = None
        self.stop = signal_of(signals(1), 0) if stop is None else stop
        state = lane_state(job, first, last)
        stops = "stop" in state.work._fields
        self.state = state._replace(work=state.work._replace(stop=self.stop)) if stops else state
        shape = -(-(last - first) // LEAF), job.n_views, len(job.rounds)
        self.record = Record(job.rounds, np.zeros((*shape, job.problem.dim)), np.zeros((*shape, job.width)),
                             np.zeros(last - first), job.function,
                             np.reshape(np.asarray(job.problem.support or (), np.float64), (2, -1)),
                             np.zeros(shape[1:], np.int64))
        self.path = Path(np.empty((n_kept, *self.state.unfolded.shape)), every, view)
        self.index = 0
        self._centred = aligned(self.state.unfolded.shape)
        known = 0 if job.scales is None else job.problem.dim
        self._home = np.repeat(centre(job)[:known, None], self.state.unfolded.shape[1], axis=1)

    def run_to(self, last: int, every: int) -> int:
        """Run up to round `last`; returns the first bad round of those looked at, -1 if there is none.

        Raises
        ------
        GradientError
            Where a gradient of one's own fails.
        ValueError
            Where a function of a sampler of one's own cannot be compiled.
        Stopped
        """
        try:
            bad = self.run_plainly(last, every)
        except Exception as error:
            if (blamed := self.job.algorithm._blamed(error)) is not None:
                raise blamed from None  # what the compiler says besides is long
            located = failed_gradient(self, last)
            if located is None:
                raise
            raise located from error
        if self.stop[0]:
            raise Stopped
        return bad

    def run_plainly(self, last: int, every: int) -> int:
        """The same, with what compiled code raises."""
        while True:
            bounds = Bounds(RADIUS, self._home, reach(self.job, self.done, last))
            self.index, bad = run_rounds(*self.state, self.record, self._centred, self.path, self.done, last,
                                         self.index, bounds, every)
            self.done = last if bad < 0 else int(bad)
            if bad < 0:
                return -1
            x = self.state.unfolded
            self.fault = find_fault(self.job, self.first, self.done, x, self._home)
            if self.fault is not None:
                return self.done
            if self.done % CHECK_EVERY == 0:  # whatever else is looked at, for every cut of the work
                limit = reach(self.job, self.done - 1, self.done)
                away = (np.abs(x - self._home) >= limit).any(axis=0)
                self._home[:, away] = x[:, away]


class BlockRunner:
    """A block between segments; its parts, of `Job.parts`, run side by side.

    The first of them counts in this place of `flags`, of `signals`, and the others in the last one.
    """

    def __init__(self, job: Job, first: int, last: int, flags: np.ndarray | None = None,
                 place: int = 0) -> None:
        self.job, self.first, self.last, self.place = job, first, last, place
        flags = signals(2) if flags is None else flags
        self._parts = [BlockPart(part, first, last, stop=signal_of(flags, number))
                       for part, number in zip(job.parts(), chain([place], repeat(-1)), strict=False)]
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
        if bad >= 0:  # who is the first of all, and when, is looked for then
            raise DivergedError(f"diverged by round {bad}", bad)
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
        return BlockResult(self.first, self.last, mean, square, sums / max(self.job.n_rounds, 1), final,
                           records[0].outside)


def first_fault(job: Job, first: int, last: int, before: int, stop: Sized = ()) -> Fault | None:
    """The first fault of a block in the rounds up to `before`, if it is not told to `stop`."""
    part = BlockPart(job, first, last)
    while part.fault is None and part.done < before and not len(stop):
        part.run_to(min(part.done + SEGMENT, before), 1)
    if part.fault is None or job.problem.support is None:
        return part.fault
    again = BlockPart(job, first, last)
    again.run_to(part.fault.round - 1, 1)
    return told_where(part.fault, job.problem.support, again.state.unfolded[:, part.fault.replica - first])


def run_block(job: Job, first: int, last: int) -> BlockResult:
    """A whole block as one task, for executors, in one thread."""
    runner = BlockRunner(replace(job, threads=1), first, last)
    while not runner.finished:
        runner.advance()
    return runner.result()
