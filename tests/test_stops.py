"""Ctrl-C is answered within a round, however long the round is; what is finished stays right."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from sampler_zoo import fa_ld

import fedsim as fs
from fedsim.engine.block import BlockPart, Stopped
from fedsim.engine.job import make_job

PROBLEM = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
WITHOUT_END = {"FA-LD": fs.FALD(1e-4, local_steps=10**9), "FA-HMC": fs.FAHMC(1e-4, 2, local_steps=10**9)}
RUNS = {"simulate": lambda algorithm: fs.simulate(PROBLEM, algorithm, 4, 200, seed=1),
        "sample_path": lambda algorithm: fs.sample_path(PROBLEM, algorithm, 4, seed=1)}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", WITHOUT_END)
def test_a_round_without_end_is_interrupted(name, run):
    fs.warm_up(PROBLEM, WITHOUT_END[name])
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = time.monotonic()
    given = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            RUNS[run](WITHOUT_END[name])
    finally:
        signal.signal(signal.SIGINT, given)
    assert time.monotonic() - before < 60.0  # the round itself would take minutes


@pytest.mark.parametrize("algorithm", [WITHOUT_END["FA-LD"], fa_ld(step_size=1e-4, local_steps=20_000)])
def test_a_stopped_block_gives_nothing(algorithm):
    """A block that is told to stop raises, and hands back no moments of half a round."""
    part = BlockPart(make_job(PROBLEM, algorithm, 2, 64, seed=1), 0, 64, stop=np.ones(1, np.int64))
    with pytest.raises(Stopped):
        part.run_to(1, 1)
