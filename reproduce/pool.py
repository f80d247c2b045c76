"""Processes and executors that share the work of the command line."""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.pool
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import fedsim
import reproduce
import theory
from fedsim.engine.pool import UnusableExecutor, check_executor, completed, give_up
from fedsim.fingerprints import source_hash

from . import figure

_PACKAGES = (fedsim, theory, reproduce)
"""Whose sources decide a number."""

HELP = ("where the work is done, instead of --workers processes: dask=ADDRESS, a Dask cluster whose workers "
        "have this checkout installed, or package.module:name, which is called and gives a "
        "concurrent.futures executor (concurrent.futures:ProcessPoolExecutor)")
"""What the command line says of ``--executor``."""


def pool(workers: int) -> multiprocessing.pool.Pool:
    """Processes that tell no notes, and leave Ctrl-C to this one, which ends them."""
    make = multiprocessing.get_context("spawn").Pool
    if threading.current_thread() is not threading.main_thread():
        return make(workers, figure.be_quiet)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited by the processes
    try:
        return make(workers, figure.be_quiet)
    finally:
        signal.signal(signal.SIGINT, previous)


def _called(sources: str, call: str, function: Callable[[Any], Any], item: Any) -> Any:
    """`function` of an item, in a process that has the same sources.

    `call` is of one call alone, because Dask knows tasks by their arguments.
    """
    if sources != source_hash(*_PACKAGES):
        raise figure.BadInput("--executor: a worker has another version of this checkout or of numba; "
                              "update it there")
    return function(item)


def _on_dask(words: str, address: str, ending: ExitStack) -> Any:
    """The executor of a Dask cluster; `ending` disconnects."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise figure.BadInput(f"--executor {words} needs the extra `cluster` (distributed)") from None
    if not address:
        raise figure.BadInput(f"--executor {words} must be dask=ADDRESS: `dask scheduler` prints its address")
    try:
        client = distributed.Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise figure.BadInput(f"--executor {words}: no scheduler answers there ({error})") from None
    return ending.enter_context(client).get_executor()


def _made(words: str) -> Any:
    """What the callable ``package.module:name`` gives."""
    module, _, name = words.partition(":")
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise figure.BadInput(f"--executor {words} must be dask=ADDRESS or package.module:name of a callable "
                              f"({error})") from None
    try:
        return make()
    except Exception as error:
        raise figure.BadInput(f"--executor {words}: calling it failed "
                              f"({type(error).__name__}: {error})") from error


@contextmanager
def opened(words: str) -> Iterator[Executor]:
    """The executor that ``--executor`` names, shut down afterwards; `BadInput` says what is wrong with it."""
    with ExitStack() as ending:
        kind, _, address = words.partition("=")
        executor = _on_dask(words, address, ending) if kind == "dask" else _made(words)
        try:
            check_executor(object() if executor is None else executor)
        except ValueError as error:
            raise figure.BadInput(f"--executor {words}: {error}") from None
        yield ending.enter_context(executor)


def results(function: Callable[[Any], Any], items: Sequence[Any], workers: int, executor: str | None,
            ) -> Generator[Any, None, None]:
    """`function` of every item, computed elsewhere in this order, as they finish.

    To be closed by who does not exhaust it: at the end of the process a cluster could no longer be left.
    """
    if executor is None:
        with pool(min(workers, len(items))) as processes:
            yield from processes.imap_unordered(function, items)
            processes.close()
            processes.join()  # ended by force they would leave semaphores behind, and warnings of them
        return
    with opened(executor) as where:
        one = partial(_called, source_hash(*_PACKAGES), os.urandom(8).hex(), function)
        tasks, pending = ((one, item) for item in items), set[Future[Any]]()
        try:
            yield from completed(where, lambda running: next(tasks, None), len(items), pending)
        except UnusableExecutor as error:
            raise figure.BadInput(f"--executor {executor}: {error}") from error
        finally:
            give_up(pending, lambda result: None, patiently=False)
