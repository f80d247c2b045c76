"""Runs blocks: on threads in short segments, or as tasks of an executor."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from ..settings.validation import whole
from .block import BlockResult, BlockRunner, run_block
from .job import Job

Take = Callable[[BlockResult], None]
Tick = Callable[[int], None]
Pending = set[Future[Any]]


def thread_count(threads: int | None) -> int:
    """As many as were asked for; None: processors that this process may use."""
    if threads is not None:
        return whole("threads", threads, 1, 4096)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _run(pool: Executor, next_task: Callable[[int], tuple[Any, ...] | None], in_flight: int, pending: Pending,
         handle: Callable[[Any], None]) -> None:
    """Keep tasks under way until there is no next one, and handle each result when it comes.

    `next_task` is told how many are `pending`, at most `in_flight`, and gives what to submit.
    """
    while True:
        while len(pending) < in_flight and (task := next_task(len(pending))) is not None:
            pending.add(pool.submit(*task))
        if not pending:
            return
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            pending.remove(future)
            handle(future.result())


def _segment(job: Job, work: BlockRunner | tuple[int, int]) -> tuple[BlockRunner, int, BlockResult | None]:
    """One segment of a block: the block, the rounds done, and its result when they were the last."""
    runner = work if isinstance(work, BlockRunner) else BlockRunner(job, *work)
    rounds = runner.advance()
    return runner, rounds, runner.result() if runner.finished else None


def run_on_threads(job: Job, blocks: list[tuple[int, int]], threads: int, take: Take, tick: Tick) -> None:
    """Run the blocks, handing each result to `take` in the calling thread.

    On Ctrl-C the threads end within one segment, what is finished is taken, and it is raised again.
    """
    waiting, begun = deque(blocks), deque[BlockRunner]()
    pending: Pending = set()

    def next_task(running: int) -> tuple[Any, ...] | None:
        """Depth first, so that blocks finish early; near the end all blocks at once, for balance."""
        open_blocks = len(begun) + running
        if waiting and (open_blocks < threads or len(waiting) + open_blocks <= 3 * threads):
            return _segment, job, waiting.popleft()
        return (_segment, job, begun.popleft()) if begun else None

    def handle(done: tuple[BlockRunner, int, BlockResult | None]) -> None:
        runner, rounds, result = done
        if result is None:
            begun.append(runner)
        else:
            take(result)
        tick(rounds * (runner.last - runner.first))

    with ThreadPoolExecutor(threads) as pool:
        try:
            _run(pool, next_task, threads, pending, handle)
        except BaseException:
            for future in wait(pending).done:
                if future.exception() is None and (result := future.result()[2]) is not None:
                    take(result)
            raise


def run_on_executor(job: Job, blocks: list[tuple[int, int]], executor: Executor, take: Take, tick: Tick,
                    in_flight: int = 64) -> None:
    """Run each block as one task; at most `in_flight` are submitted at a time."""
    waiting = deque(blocks)
    pending: Pending = set()

    def handle(result: BlockResult) -> None:
        take(result)
        tick(job.n_rounds * (result.last - result.first))

    def next_task(running: int) -> tuple[Any, ...] | None:
        return (run_block, job, *waiting.popleft()) if waiting else None

    try:
        _run(executor, next_task, in_flight, pending, handle)
    except BaseException:
        for future in pending:
            future.cancel()
        raise
