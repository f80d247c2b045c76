"""Processes that share the work of the command line."""

from __future__ import annotations

import multiprocessing
import multiprocessing.pool
import signal
import threading

from . import figure


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
