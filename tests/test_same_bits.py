"""The same seed gives the same bytes however the work is cut, run, interrupted and put together."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from algorithms import ROWS, each
from interrupting import ctrl_c_after

import fedsim as fs
from fedsim.engine import running

RNG = np.random.default_rng(4)
DENSE = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], RNG.standard_normal((2, 2)),
                     [0.3, 0.7])
DIAGONAL = fs.Quadratic(RNG.uniform(0.5, 2.0, (3, 6)), RNG.standard_normal((3, 6)), gradient_noise=0.4)
PLAIN = fs.FALD(0.1, 3, 1.0, 0.3)
DRAWN = fs.FALD(0.1, 3, participation=fs.Participation(2, True))
SETS = fs.FALD(0.1, 3, 1.0, 0.3, fs.FixedParticipation([[0], [0, 1], [1]], cyclic=True))
ANSWERS = fs.FALD(0.1, 3, 1.0, 0.3, fs.IndependentParticipation([0.6, 0.3]))
START = fs.Gaussian([1.0, -1.0], [[1.0, 0.4], [0.4, 2.0]])
REPLICAS = 64 * 9 + 20  # the last leaf is short: few replicas may be laid out in another way


def arrays(run):
    """Every number of a run, as bytes."""
    parts = (run.rounds, run.mean, run.cov, run.leaf_cov, run.spread, run.final, run.averages)
    return [part.tobytes() if part is not None else b"" for part in parts] + [run.n_replicas, run.n_leaves]


def simulate(problem=DENSE, algorithm=PLAIN, n_replicas=REPLICAS, **options):
    given = {"seed": 99, "keep_final": True, "average": "square", "threads": 1, "record": [3, 7]} | options
    return fs.simulate(problem, algorithm, 12, n_replicas, **given)


CASES = {"dense": {"start": START}, "diagonal": {"problem": DIAGONAL}, "drawn": {"algorithm": DRAWN},
         "sets": {"algorithm": SETS}, "answers": {"algorithm": ANSWERS},
         "single": {"noise": "single"}, "diagonal moments": {"problem": DIAGONAL, "covariance": "diagonal"},
         "no moments": {"covariance": "none"}}


@pytest.mark.parametrize("case", CASES)
def test_threads_and_blocks(case):
    base = arrays(simulate(block_size=64, **CASES[case]))
    for block_size in (64, 128, 192, 256, 1024, None):
        for threads in (1, 2, 5):
            assert arrays(simulate(**CASES[case] | {"block_size": block_size, "threads": threads})) == base


def test_bytes_depend_on_the_seed_and_the_noise():
    base = arrays(simulate())
    for change in ({"seed": 98}, {"seed": 99 + 2**32}, {"noise": "single"}, {"n_replicas": REPLICAS - 1}):
        assert arrays(simulate(**change))[1] != base[1]


@pytest.mark.parametrize("case", ["dense", "drawn", "sets", "answers"])
def test_executors(case):
    base = arrays(simulate(**CASES[case]))
    with ThreadPoolExecutor(3) as pool:
        assert arrays(simulate(**CASES[case], executor=pool)) == base
        assert arrays(simulate(**CASES[case], executor=pool, block_size=128)) == base


def test_processes():
    base = arrays(simulate(start=START))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert arrays(simulate(start=START, executor=pool, block_size=256)) == base


def test_threads_that_simulate_at_once():
    """Whole calls side by side, each with threads of its own; of one setting, and of several."""
    names = ("dense", "diagonal", "drawn", "dense")
    bases = [arrays(simulate(**CASES[name])) for name in names]
    start = threading.Barrier(len(names))

    def call(name):
        start.wait(60)
        return [arrays(simulate(**CASES[name], threads=threads)) for threads in (1, 2, 3)]

    with ThreadPoolExecutor(len(names)) as pool:
        for base, found in zip(bases, pool.map(call, names), strict=True):
            assert found == [base] * 3


def test_calls_from_an_event_loop():
    async def calls():
        return await asyncio.gather(*(asyncio.to_thread(simulate, threads=threads) for threads in (1, 2, 2)))

    assert [arrays(run) for run in asyncio.run(calls())] == [arrays(simulate())] * 3


IN_PROCESSES = """
    import multiprocessing, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np
    import fedsim as fs

    problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])

    def numbers(threads):
        run = fs.simulate(problem, fs.FALD(0.1, 3, 1.0, 0.3), 12, 64 * 9 + 20, seed=99, threads=threads,
                          start=fs.Gaussian([1.0, -1.0], [[1.0, 0.4], [0.4, 2.0]]))
        return run.mean.tobytes() + run.cov.tobytes() + run.spread.tobytes()

    if __name__ == "__main__":
        method, before = sys.argv[1], int(sys.argv[2])
        bases = [numbers(2)] * before  # threads ran, and ended, before the processes begin
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            found = [*pool.map(numbers, (1, 2, 3))]
        assert found == [numbers(2)] * 3 and set(bases) <= set(found), "other bits"
        print("the same bits")
"""


@pytest.mark.parametrize(("method", "before"), [("fork", 0), ("fork", 1), ("spawn", 1)])
def test_calls_in_processes(tmp_path, method, before):
    """Each process simulates on threads of its own; a fork takes along whatever its parent compiled."""
    (tmp_path / "script.py").write_text(textwrap.dedent(IN_PROCESSES))
    done = subprocess.run([sys.executable, str(tmp_path / "script.py"), method, str(before)], text=True,
                          env=os.environ | {"PYTHONPATH": str(Path(fs.__file__).parent.parent)},
                          capture_output=True, timeout=300)
    assert done.stdout == "the same bits\n", done.stderr


def test_more_replicas_keep_the_first_ones():
    small, large = simulate(n_replicas=64 * 3), simulate(n_replicas=64 * 5 + 1)
    assert small.final.tobytes() == large.final[:192].tobytes()
    assert small.averages.tobytes() == large.averages[:192].tobytes()


def test_few_replicas_are_the_first_of_many():
    """Blocks of few replicas put coordinates into lanes; the numbers are the same."""
    few, many = simulate(DIAGONAL, n_replicas=5), simulate(DIAGONAL, n_replicas=64)
    assert few.final.tobytes() == many.final[:5].tobytes()


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_every_algorithm_however_it_is_cut(kind, name):
    """Blocks, threads, an executor: the bytes of every moment, of clients too."""
    row = ROWS[kind]
    problem, algorithm, start = row.laws[name]

    def moments(**options):
        run = fs.simulate(problem, algorithm, row.n_rounds, 64 * 5 + 20, seed=99, start=start,
                          record=row.record, keep_final=True, **options)
        return [b"".join(arrays(law)[:6]) for law in (run, *run.clients)]

    base = moments(block_size=64, threads=1)
    assert moments(block_size=128, threads=2) == moments(threads=1) == base
    with ThreadPoolExecutor(2) as pool:
        assert moments(executor=pool, block_size=192) == base


@pytest.mark.parametrize(**each(lambda row: row.bits))
def test_few_replicas_and_chains_of_every_algorithm(kind, name):
    """They are the first of many replicas, also where coordinates are lanes."""
    row = ROWS[kind]
    problem, algorithm, start = row.laws[name]
    options = {"seed": 99, "start": start}
    many, few = (fs.simulate(problem, algorithm, row.n_rounds, n, keep_final=True, **options).final
                 for n in (70, 5))
    assert few.tobytes() == many[:5].tobytes()
    for chains in (5, 70):
        paths = fs.sample_path(problem, algorithm, row.n_rounds, n_chains=chains, **options)
        assert paths[:, -1].tobytes() == many[:chains].tobytes()


@pytest.mark.parametrize(("problem", "start"), [(DENSE, START), (DIAGONAL, None)])
def test_a_chain_of_sample_path_is_a_replica(problem, start):
    paths = fs.sample_path(problem, PLAIN, 12, seed=99, n_chains=70, start=start)
    final = simulate(problem, n_replicas=70, start=start).final
    assert paths[:, -1].tobytes() == final.tobytes()
    thin = fs.sample_path(problem, PLAIN, 12, seed=99, every=5, n_chains=70, start=start)
    assert thin.tobytes() == paths[:, [4, 9]].tobytes()


@pytest.mark.parametrize("algorithm", [fs.DESGLD(0.1, fs.network.ring(4)),
                                       fs.DESGHMC(0.2, 1.5, fs.network.path(4))], ids=["one", "two"])
def test_a_chain_of_sample_path_may_be_that_of_a_client(algorithm):
    rng = np.random.default_rng(4)
    problem = fs.Quadratic(rng.uniform(0.5, 2.0, (4, 3)), rng.standard_normal((4, 3)))
    run = fs.simulate(problem, algorithm, 6, 70, seed=99)
    paths = np.stack([fs.sample_path(problem, algorithm, 6, seed=99, n_chains=70, client=client)
                      for client in range(4)])
    for client in range(4):
        np.testing.assert_allclose(paths[client].mean(axis=0), run.clients[client].mean[1:], rtol=1e-12)
    average = fs.sample_path(problem, algorithm, 6, seed=99, n_chains=70)
    np.testing.assert_allclose(paths.mean(axis=0), average, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="client=4 must be"):
        fs.sample_path(problem, algorithm, 6, seed=99, client=4)


def test_only_some_algorithms_have_a_path_per_client():
    with pytest.raises(ValueError, match="client=0 must be None for FALD"):
        fs.sample_path(DENSE, PLAIN, 2, seed=1, client=0)
    with pytest.raises(fs.UnstableStepSize):
        fs.sample_path(DENSE, fs.FALD(100.0), 2, seed=1)
    assert np.isfinite(fs.sample_path(DENSE, fs.FALD(100.0), 2, seed=1, allow_unstable=True)).all()


def test_a_shorter_run_is_the_beginning_of_a_longer_one():
    short = fs.simulate(DENSE, PLAIN, 7, 128, seed=99)
    long = fs.simulate(DENSE, PLAIN, 12, 128, seed=99)
    assert short.mean.tobytes() == long.mean[:8].tobytes()
    assert short.cov.tobytes() == long.cov[:8].tobytes()


def test_shards_through_a_checkpoint(tmp_path):
    base = arrays(simulate())
    for shard in ((448, REPLICAS), (0, 192), (192, 448)):
        part = simulate(replicas=shard, checkpoint=tmp_path / "kept", block_size=128)
        assert part.n_replicas == shard[1] - shard[0]
    assert arrays(simulate(checkpoint=tmp_path / "kept", executor=_NoWork())) == base


class _NoWork:
    """An executor that must not be asked: everything is in the checkpoint."""

    def submit(self, *args):
        raise AssertionError("a finished block was computed again")


def test_resumed_with_other_blocks(tmp_path):
    """A checkpoint of one block size is completed with another."""
    simulate(replicas=(128, 320), checkpoint=tmp_path, block_size=192)
    assert arrays(simulate(checkpoint=tmp_path, block_size=256, threads=2)) == arrays(simulate())


BLOCK_WORK = 64 * 3000  # replica-rounds of one block in the runs below
ENOUGH = 4 * BLOCK_WORK
"""Two threads, working depth first, have finished some blocks by then."""


@pytest.mark.parametrize("with_executor", [False, True])
def test_interrupted_and_resumed(tmp_path, monkeypatch, with_executor):
    whole = fs.simulate(DENSE, PLAIN, 3000, 64 * 120, seed=5, threads=2)
    before = threading.active_count()
    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(running, "tqdm", ctrl_c_after(ENOUGH))
        with pytest.raises(KeyboardInterrupt):
            fs.simulate(DENSE, PLAIN, 3000, 64 * 120, seed=5, threads=2, block_size=64, checkpoint=tmp_path,
                        executor=pool if with_executor else None)
    assert threading.active_count() == before
    kept = list(tmp_path.glob("block-*.npz"))
    assert 0 < len(kept) < 120
    assert not list(tmp_path.glob("*.part"))
    stamps = {path.name: path.stat().st_mtime_ns for path in kept}
    resumed = fs.simulate(DENSE, PLAIN, 3000, 64 * 120, seed=5, threads=1, checkpoint=tmp_path)
    assert arrays(resumed) == arrays(whole)
    assert all((tmp_path / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())


def test_an_interrupt_without_a_checkpoint_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running, "tqdm", ctrl_c_after(ENOUGH))
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fs.simulate(DENSE, PLAIN, 3000, 64 * 120, seed=5, threads=2, block_size=64)
    assert threading.active_count() == before and not list(tmp_path.iterdir())


SCRIPT = """
    import signal
    import sys
    import fedsim as fs
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits SIGINT ignored
    problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
    print("ready", flush=True)
    fs.simulate(problem, fs.FALD(0.1, 3, 1.0, 0.3), int(sys.argv[2]), 64 * 30, seed=5, threads=2,
                block_size=64, checkpoint=sys.argv[1])
"""


def test_a_real_signal(tmp_path):
    """SIGINT to a process: it ends soon, as Python does on Ctrl-C, and its checkpoint can be resumed."""
    script, kept = tmp_path / "script.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(SCRIPT))
    root = str(Path(fs.__file__).parent.parent)
    environment = os.environ | {"PYTHONPATH": root}
    process = subprocess.Popen([sys.executable, str(script), str(kept), "20000"], env=environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not list(kept.glob("block-*.npz")):
            assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        _, errors = process.communicate(timeout=60)
        assert time.monotonic() - sent < 20  # it takes 0.1 s on an idle machine
    finally:
        process.kill()
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert 0 < len(list(kept.glob("block-*.npz"))) < 30
    problem = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
    resumed = fs.simulate(problem, PLAIN, 20000, 64 * 30, seed=5, checkpoint=kept)
    assert resumed.mean.tobytes() == fs.simulate(problem, PLAIN, 20000, 64 * 30, seed=5).mean.tobytes()
