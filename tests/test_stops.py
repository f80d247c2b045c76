"""Ctrl-C is answered and progress told within a round, however long it is; what is finished stays right."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from sampler_zoo import fa_ld
from tqdm.auto import tqdm

import fedsim as fs
from fedsim.engine import pool, running
from fedsim.engine.block import BlockPart, Stopped
from fedsim.engine.job import make_job
from fedsim.engine.within import Within
from fedsim.samplers import grad, mean, noise
from fedsim.vector.memory import signal_of, signals

PROBLEM = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
DENSE = fs.Quadratic([[[2.0, 1.0], [1.0, 2.0]]], [[0.0, 1.0]])
WITHOUT_END = {"FA-LD": (PROBLEM, fs.FALD(1e-4, local_steps=10**9)),
               "FA-HMC": (PROBLEM, fs.FAHMC(1e-4, 2, local_steps=10**9)),
               "a trajectory": (PROBLEM, fs.FAHMC(1e-12, 10**9)),
               "a trajectory, dense": (DENSE, fs.FAHMC(1e-12, 10**9))}
RUNS = {"simulate": lambda problem, algorithm: fs.simulate(problem, algorithm, 4, 200, seed=1),
        "sample_path": lambda problem, algorithm: fs.sample_path(problem, algorithm, 4, seed=1)}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", WITHOUT_END)
def test_a_round_without_end_is_interrupted(name, run):
    fs.warm_up(*WITHOUT_END[name])
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    before = time.monotonic()
    given = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            RUNS[run](*WITHOUT_END[name])
    finally:
        signal.signal(signal.SIGINT, given)
    assert time.monotonic() - before < 60.0  # the round itself would take minutes


@pytest.mark.parametrize("algorithm", [WITHOUT_END["FA-LD"][1], fa_ld(step_size=1e-4, local_steps=20_000)])
def test_a_stopped_block_gives_nothing(algorithm):
    """A block that is told to stop raises, and hands back no moments of half a round."""
    flags = signals(1)
    flags[0] = 1
    part = BlockPart(make_job(PROBLEM, algorithm, 2, 64, seed=1), 0, 64, stop=signal_of(flags, 0))
    with pytest.raises(Stopped):
        part.run_to(1, 1)


@fs.sampler
def of_loops(x, *, step_size):
    for _ in range(8):
        y = x
        for _ in range(9):
            y = W @ y - step_size * grad(y)
        x = 0.5 * y + 0.5 * x
    return mean(x + noise())


W = np.array([[0.9, 0.1], [0.1, 0.9]])
COUNTING = {
    "FA-LD": fs.FALD(1e-4, local_steps=7), "FA-HMC": fs.FAHMC(1e-4, 2, local_steps=3),
    "drawn clients": fs.FALD(1e-4, local_steps=4, participation=fs.Participation(1, replace=True)),
    "a sampler": fa_ld(step_size=1e-4, local_steps=6), "loops in loops": of_loops(step_size=1e-4)}


@pytest.mark.filterwarnings("ignore:of_loops aims")
@pytest.mark.parametrize("name", COUNTING)
def test_a_round_counts_as_often_as_is_said(name):
    """So that parts of a round add up to it."""
    job = make_job(PROBLEM, COUNTING[name], 3, 64, seed=1)
    part, counted = BlockPart(job, 0, 64), job.algorithm._counted(job.problem)
    part.run_to(1, 1)
    assert part.stop[1] == counted > 2
    part.run_to(3, 1)
    assert part.stop[1] == 3 * counted


def test_what_is_told_of_rounds_never_goes_back_and_adds_up():
    """Of blocks that take turns, the third in the place of one that is finished."""
    told, rng, n_rounds, coming = [], np.random.default_rng(0), 6, [0, 64, 128]
    within, begun, rounds = Within(2, 5, told.append), {}, {}
    while coming or begun:
        while coming and len(begun) < 2:
            first = coming.pop(0)
            begun[first], rounds[first] = within.begin(first, first + 64), 0
        one = int(rng.choice(list(begun)))
        counter = signal_of(within.flags, begun[one])[1:]
        counter += 3  # of five
        within.look()
        assert sum(told) == 64 * sum(rounds.values()) + 38
        counter += 2
        rounds[one] += 1
        within.done(one, 1, rounds[one] == n_rounds)
        assert sum(told) == 64 * sum(rounds.values())
        if rounds[one] == n_rounds:
            del begun[one]
    assert sum(told) == 3 * 64 * n_rounds and min(told) > 0


def test_a_bar_moves_within_a_round(monkeypatch):
    told, algorithm = [], fs.FALD(1e-4, local_steps=10**5)

    class Bar(tqdm):
        def update(self, n=1):
            told.append(n)
            return super().update(n)

    monkeypatch.setattr(running, "tqdm", Bar)
    monkeypatch.setattr(pool, "PATIENCE", 0.01)
    fs.warm_up(PROBLEM, algorithm)
    fs.simulate(PROBLEM, algorithm, 1, 64, seed=1, threads=1, progress=True)
    assert len(told) > 1 and sum(told) == 64 and min(told) > 0
    told.clear()
    fs.simulate(PROBLEM, algorithm, 1, 64, seed=1, threads=1)
    assert told == [64]  # nobody looks
