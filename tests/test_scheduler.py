"""Thousands of seeded schedules of fedsim/engine/pool.py, with Ctrl-C, dead workers and full disks.

Without a fault every leaf is taken exactly once and the moments have the same bits. With faults the error is
raised, nothing is taken twice, whatever was finished and handed over is kept, no task is left pending, and
the resumed run has the same bits. A failure names its `Schedule(seed)`, which replays it.
"""

import concurrent.futures
import threading

import pytest
from schedules import FAULTS, Broken, Schedule, load

import fedsim as fs
from fedsim.engine import pool as pool_module


@pytest.fixture(scope="module", name="pool")
def _pool():
    return load()


def test_schedules(pool):
    kinds = set()
    for seed in range(1500):
        schedule = Schedule(seed)
        schedule.run(pool)
        kinds.add((schedule.fault, schedule.with_executor))
    assert len(kinds) == 2 * len(FAULTS)


@pytest.mark.slow
def test_more_schedules(pool):
    for seed in range(1500, 11_500):
        Schedule(seed).run(pool)


def test_a_seed_replays_its_schedule(pool):
    for seed in range(50):
        log = Schedule(seed).run(pool)
        assert len(log) > 3 and Schedule(seed).run(pool) == log


TAKE = "                take(result)\n"
HANDLED = "            pending.remove(future)\n", "            yield _result(pool, future)\n"
OF_THREADS, OF_EXECUTORS = ("        give_up(pending, keep, patiently=True, stop=within.flags)\n",
                            "        give_up(pending, take, patiently=False)\n")
POPPED = ("                future = pending.pop()  # before it is kept: never twice\n"
          "                if future.done():\n                    keep(future.result())\n")
SUPPRESSED = "with suppress(KeyboardInterrupt, Exception):"
PLANTED = {
    "a block is taken twice": (f"{TAKE}            within", f"{TAKE}{TAKE}            within"),
    "taken again after an error": ("".join(HANDLED), "".join(HANDLED[::-1])),
    "kept again and again": ("pending.pop()  # before", "next(iter(pending))  # before"),
    "taken again after a Ctrl-C": (POPPED, POPPED.replace("pending.pop()", "next(iter(pending))")
                                   + "                pending.remove(future)\n"),
    "threads drop results on Ctrl-C": (OF_THREADS, ""),
    "executors drop results on Ctrl-C": (OF_EXECUTORS, "        [future.cancel() for future in pending]\n"),
    "segments are not waited for": (OF_THREADS, OF_THREADS.replace("True", "False")),
    "the second Ctrl-C drops results": (SUPPRESSED, "with suppress(Exception):"),
    "the second error drops results": (SUPPRESSED, "with suppress(KeyboardInterrupt):"),
    "it gives up at the second Ctrl-C": ("    while pending:\n        with", "    if pending:\n        with"),
    "tasks are not cancelled": ("                    future.cancel()", "                    pass"),
    "begun blocks are lost": ("begun.append(runner)", "len(begun) < 2 and begun.append(runner)"),
    "two threads have one block": ("begun.popleft(), within", "begun[0], within"),
    "the error is hidden": (f"{OF_EXECUTORS}        raise", OF_EXECUTORS),
    "threads are left": ("        pool.shutdown(cancel_futures=True)", "        pass"),
    "coming blocks are lost": ("waiting.extend(islice(coming, 1))", "next(coming, None)"),
    "it looks too far ahead": ("waiting.extend(islice(coming, 1))", "waiting.extend(coming)"),
    "all blocks are begun": ("open_blocks < threads or", "True or"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_caught(fault):
    pool = load(PLANTED[fault])
    with pytest.raises(Broken, match=r"^Schedule\(\d+\)"):
        for seed in range(1500):
            Schedule(seed).run(pool)


def test_many_interrupts_of_real_threads(tmp_path, monkeypatch):
    """Ctrl-C in the middle, and again and again while the threads end: what is done is kept."""
    arguments = {"problem": fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), "algorithm": fs.FALD(0.1),
                 "n_rounds": 300, "n_replicas": 64 * 40, "seed": 5, "record": []}
    whole = fs.simulate(**arguments)
    before, pressed = threading.active_count(), []

    def wait(futures, **options):
        if len(pressed) < 6 and len(list(tmp_path.glob("block-*.npz"))) > 3:
            pressed.append("Ctrl-C")
            raise KeyboardInterrupt
        return concurrent.futures.wait(futures, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pool_module, "wait", wait)
        with pytest.raises(KeyboardInterrupt):
            fs.simulate(**arguments, threads=2, block_size=64, checkpoint=tmp_path)
    assert len(pressed) == 6 and threading.active_count() == before
    assert 3 < len(list(tmp_path.glob("block-*.npz"))) < 40 and not list(tmp_path.glob("*.part"))
    resumed = fs.simulate(**arguments, checkpoint=tmp_path)
    assert resumed.mean.tobytes() + resumed.cov.tobytes() == whole.mean.tobytes() + whole.cov.tobytes()
