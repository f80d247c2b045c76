"""Runs blocks: on threads in short segments, or as tasks of an executor."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from typing import Any

from ..settings.validation import whole
from .block import BlockResult, BlockRunner, run_block
from .plan import Plan

Take = Callable[[BlockResult], None]
Tick = Callable[[int], None]


def thread_count(threads: int | None) -> int:
    """As many as were asked for; None: processors that this process may use."""
    if threads is not None:
        return whole("threads", threads, 1, 4096)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class _Workers:
    """Threads that take turns on the active blocks, one segment at a time."""

    def __init__(self, plan: Plan, blocks: list[tuple[int, int]], threads: int) -> None:
        self.plan, self.threads = plan, threads
        self.waiting = deque(blocks)
        self.active: deque[BlockRunner] = deque()
        self.running = 0
        self.alive = threads
        self.finished: deque[BlockResult] = deque()
        self.ticks = 0
        self.error: BaseException | None = None
        self.stop = False
        self.changed = threading.Condition()

    def _next(self) -> BlockRunner | tuple[int, int] | None:
        """Depth first, so that blocks finish early; near the end all blocks at once, for balance."""
        in_flight = len(self.active) + self.running
        left = len(self.waiting) + in_flight
        if self.waiting and (in_flight < self.threads or left <= 3 * self.threads):
            return self.waiting.popleft()
        return self.active.popleft() if self.active else None

    def work(self) -> None:
        try:
            while True:
                with self.changed:
                    job = None
                    while not self.stop and (job := self._next()) is None:
                        if not (self.waiting or self.active or self.running):
                            break
                        self.changed.wait(0.05)
                    if job is None:
                        return
                    self.running += 1
                try:
                    self._segment(job)
                finally:
                    with self.changed:
                        self.running -= 1
                        self.changed.notify_all()
        except BaseException as error:
            with self.changed:
                self.error = self.error or error
                self.stop = True
        finally:
            with self.changed:
                self.alive -= 1
                self.changed.notify_all()

    def _segment(self, job: BlockRunner | tuple[int, int]) -> None:
        runner = BlockRunner(self.plan, *job) if isinstance(job, tuple) else job
        rounds = runner.advance()
        result = runner.result() if runner.finished else None
        with self.changed:
            self.ticks += rounds * (runner.last - runner.first)
            if result is None:
                self.active.append(runner)
            else:
                self.finished.append(result)


def run_on_threads(plan: Plan, blocks: list[tuple[int, int]], threads: int, take: Take,
                   tick: Tick) -> None:
    """Run the blocks, handing each result to `take` in the calling thread.

    On Ctrl-C the threads end within one segment, what is finished is taken, and it is raised again.
    """
    state = _Workers(plan, blocks, threads)
    workers = [threading.Thread(target=state.work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        while state.alive:
            with state.changed:
                if state.alive and not state.finished:
                    state.changed.wait(0.1)
            _drain(state, take, tick)
    except BaseException:
        with state.changed:
            state.stop = True
            state.changed.notify_all()
        for worker in workers:
            worker.join()
        _drain(state, take, tick)
        raise
    _drain(state, take, tick)
    if state.error is not None:
        raise state.error


def _drain(state: _Workers, take: Take, tick: Tick) -> None:
    with state.changed:
        ticks, state.ticks = state.ticks, 0
        results = list(state.finished)
        state.finished.clear()
    for result in results:
        take(result)
    if ticks:
        tick(ticks)


def run_on_executor(plan: Plan, blocks: list[tuple[int, int]], executor: Executor, take: Take,
                    tick: Tick, in_flight: int = 64) -> None:
    """Run each block as one task; at most `in_flight` are submitted at a time."""
    source: Iterator[tuple[int, int]] = iter(blocks)
    pending: set[Any] = set()
    try:
        while True:
            while len(pending) < in_flight and (block := next(source, None)) is not None:
                pending.add(executor.submit(run_block, plan, *block))
            if not pending:
                return
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                take(result)
                tick(plan.n_rounds * (result.last - result.first))
    except BaseException:
        for future in pending:
            future.cancel()
        raise
