"""Runs blocks: on threads in short segments, or as tasks of an executor."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext, suppress
from itertools import islice
from typing import Any, cast

import numpy as np

from ..fingerprints import source_hash
from ..settings.validation import shown, whole
from .block import BlockResult, BlockRunner, first_fault, run_block
from .divergence import DivergedError, Fault, diverged
from .job import Job
from .within import Within

Block = tuple[int, int]
Take = Callable[[BlockResult], None]
Tick = Callable[[int], None]
Pending = set[Future[Any]]
PATIENCE = 1.0
"""Seconds after Ctrl-C in which a block may end its segment, before it is told to stop within a round."""


def thread_count(threads: int | None) -> int:
    """As many as were asked for; None: processors that this process may use."""
    if threads is not None:
        return whole("threads", threads, 1, 4096)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def check_executor(executor: object) -> None:
    """None, or what looks like an executor; else a ValueError with the way from what was meant to one."""
    is_class, is_client = isinstance(executor, type), hasattr(executor, "get_executor")
    if executor is None or (callable(getattr(executor, "submit", None)) and not is_class and not is_client):
        return
    ways = {"get_executor": "use client.get_executor()",  # of Dask, whose own futures are of another kind
            "get_client": "use cluster.get_client().get_executor()",
            "apply_async": "use concurrent.futures.ProcessPoolExecutor instead of multiprocessing.Pool"}
    advice = "; this is the class: call it" if is_class else next(
        (f"; {way}" for name, way in ways.items() if hasattr(executor, name)), "")
    raise ValueError(f"executor={shown(executor)} must have the interface of concurrent.futures.Executor"
                     f"{advice}")


def check_travels(job: Job, executor: object) -> None:
    """Raise ValueError where processes of this executor cannot be handed the problem or the algorithm.

    Others than the standard library's have their own ways to hand functions over.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return
    for name in ("problem", "algorithm"):
        try:
            pickle.dumps(getattr(job, name))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(f"{name}={shown(getattr(job, name))} cannot be handed to a process of executor="
                             f"{shown(executor)} ({error}); use threads, or define its functions by def "
                             "at the top of a module") from None


class UnusableExecutor(ValueError):
    """An executor that takes no tasks, or no more of them."""


def _closed(error: Exception) -> bool:
    """True for what says that no task is taken any more: of any pool, and of Dask's client."""
    return "after shutdown" in str(error) or type(error).__name__ == "ClosedClientError"


def _submit(pool: Executor, task: tuple[Any, ...], is_first: bool) -> Future[Any]:
    """Hand a task over; an `UnusableExecutor` where the pool is no pool, was shut down or came broken."""
    try:
        future = pool.submit(*task)
    except BrokenExecutor as error:
        if not is_first:  # it broke under the run
            raise
        raise UnusableExecutor(f"executor={shown(pool)} must not be broken ({error}); pass a new one"
                               ) from error
    except Exception as error:
        if not _closed(error):
            raise
        raise UnusableExecutor(f"executor={shown(pool)} must not be shut down ({error}); pass one that is "
                               "open") from error
    if not isinstance(future, Future):
        raise UnusableExecutor(f"executor={shown(pool)} must give a concurrent.futures.Future for a task, "
                               f"not {shown(future)}")
    return future


def _result(pool: Executor, future: Future[Any]) -> Any:
    """What a task gave; an `UnusableExecutor` where the pool gave the task up, which nobody here had."""
    try:
        return future.result()
    except CancelledError as error:
        raise UnusableExecutor(f"executor={shown(pool)} cancelled a task that it had taken: it must not be "
                               "shut down before its tasks are done") from error


def completed(pool: Executor, next_task: Callable[[int], tuple[Any, ...] | None], in_flight: int,
              pending: Pending, look: Callable[[], None] | None = None) -> Iterator[Any]:
    """Keep tasks under way until there is no next one, and give each result when it comes.

    `next_task` is told how many are `pending`, at most `in_flight`, and gives what to submit. A caller that
    does not exhaust it, whatever the reason, is to `give_up` those that are pending. While nothing comes,
    `look` is called every `PATIENCE` seconds.
    """
    is_first = True
    while True:
        while len(pending) < in_flight and (task := next_task(len(pending))) is not None:
            pending.add(_submit(pool, task, is_first))
            is_first = False
        if not pending:
            return
        patience = None if look is None else PATIENCE
        done = wait(pending, timeout=patience, return_when=FIRST_COMPLETED).done
        if look is not None and not done:
            look()
        for future in done:
            pending.remove(future)
            yield _result(pool, future)


def give_up(pending: Pending, keep: Callable[[Any], None], *, patiently: bool,
            stop: np.ndarray | None = None) -> None:
    """Cancel the pending tasks and keep what is finished of them; `patiently`: wait for those that run.

    However often Ctrl-C is pressed meanwhile, it goes on; an error that comes now is not the one to tell.
    What runs for longer than `PATIENCE` is told to `stop`.
    """
    while pending:
        with suppress(KeyboardInterrupt, Exception):
            for future in pending:
                with suppress(Exception):
                    future.cancel()
            if patiently and wait(pending, timeout=PATIENCE).not_done and stop is not None:
                stop[0] = 1
            if patiently:
                wait(pending)
            while pending:
                future = pending.pop()  # before it is kept: never twice
                if future.done():
                    keep(future.result())


def _segment(job: Job, work: BlockRunner | Block, flags: np.ndarray,
             place: int) -> tuple[BlockRunner, int, BlockResult | None]:
    """One segment of a block: the block, the rounds done, and its result when they were the last."""
    runner = work if isinstance(work, BlockRunner) else BlockRunner(job, *work, flags, place)
    rounds = runner.advance()
    return runner, rounds, runner.result() if runner.finished else None


def run_on_threads(job: Job, blocks: Iterable[Block], threads: int, take: Take, tick: Tick,
                   counted: int = 0) -> None:
    """Run the blocks, handing each result to `take` in the calling thread.

    Where kernels count so often in a round (`counted`), `tick` is told of parts of rounds too, about once in
    `PATIENCE` seconds.

    On Ctrl-C, or any error, the threads end within one segment, what is finished is taken, and it is
    raised again.
    """
    coming = iter(blocks)  # may be millions: only so many are looked at as balance needs
    waiting, begun = deque(islice(coming, 3 * threads)), deque[BlockRunner]()
    pending: Pending = set()
    within = Within(3 * threads, counted, tick)

    def next_task(running: int) -> tuple[Any, ...] | None:
        """Depth first, so that blocks finish early; near the end all blocks at once, for balance."""
        open_blocks = len(begun) + running
        if waiting and (open_blocks < threads or len(waiting) + open_blocks <= 3 * threads):
            waiting.extend(islice(coming, 1))
            block = waiting.popleft()
            return _segment, job, block, within.flags, within.begin(*block)
        return (_segment, job, begun.popleft(), within.flags, -1) if begun else None

    def keep(done: tuple[BlockRunner, int, BlockResult | None]) -> None:
        if (result := done[2]) is not None:
            take(result)

    pool = ThreadPoolExecutor(threads)
    try:
        look = within.look if counted else None
        for runner, rounds, result in completed(pool, next_task, threads, pending, look):
            if result is None:
                begun.append(runner)
            else:
                take(result)
            within.done(runner.first, rounds, result is not None)
    except BaseException:
        give_up(pending, keep, patiently=True, stop=within.flags)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def run_whole_block(source: str, call: str, job: Job, first: int, last: int) -> BlockResult:
    """A task of an executor: refused where its process would run another fedsim than the one that asks.

    `call` is of one call alone: Dask knows tasks by their arguments, and those of an interrupted call are
    cancelled.
    """
    if source != source_hash():
        raise RuntimeError("a process of the executor has other sources of fedsim or another numba than the "
                           "one that called simulate: all replicas are to be of one simulation")
    return run_block(job, first, last)


def run_on_executor(job: Job, blocks: Iterable[Block], executor: Executor, take: Take, tick: Tick,
                    in_flight: int = 64) -> None:
    """Run each block as one task; at most `in_flight` are submitted at a time.

    On Ctrl-C, or any error, tasks that have not finished are cancelled, those that have are taken, and it
    is raised again.
    """
    call, pending = os.urandom(8).hex(), cast(Pending, set())
    tasks = ((run_whole_block, source_hash(), call, job, *block) for block in blocks)
    try:
        for result in completed(executor, lambda running: next(tasks, None), in_flight, pending):
            take(result)
            tick(job.n_rounds * (result.last - result.first))
    except BaseException:
        give_up(pending, take, patiently=False)
        raise


def fault_of_block(call: str, stop: list[bool], job: Job, first: int, last: int, before: int) -> Fault | None:
    """A task of an executor; `call` as in `run_whole_block`. Threads see when they are to `stop`."""
    return first_fault(job, first, last, before, stop)


def first_of_all(job: Job, executor: Executor | None, threads: int, before: int) -> DivergedError:
    """What is said of the first fault of all replicas in the rounds up to `before`, however the work was cut.

    Each block is run again up to the first bad round that is known then.
    """
    call, stop, pending = os.urandom(8).hex(), list[bool](), cast(Pending, set())
    found: Fault | None = None
    tasks = ((fault_of_block, call, stop, job, *block, before if found is None else found.round)
             for block in job.blocks())

    def handle(fault: Fault | None) -> None:
        nonlocal found
        if fault is not None and (found is None or fault < found):
            found = fault

    with ThreadPoolExecutor(threads) if executor is None else nullcontext(executor) as pool:
        try:
            for fault in completed(pool, lambda running: next(tasks, None), threads, pending):
                handle(fault)
        except BaseException:
            stop.append(True)
            give_up(pending, handle, patiently=executor is None)
            raise
    return diverged(job, cast(Fault, found))
