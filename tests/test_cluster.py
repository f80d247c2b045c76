"""Beyond one process: executors of every kind and a real Dask cluster give the same bits, broken or not."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import distributed
import pytest
from a_notebook_of_samplers import SAMPLERS
from joblib.externals.loky import get_reusable_executor
from problems import quadratic

import fedsim as fs
from fedsim.engine import running
from fedsim.engine.pool import run_whole_block

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]])
ALGORITHM = fs.FALD(0.1, 3, 1.0, 0.3)
BLOCKS = 12
PATIENCE = 900.0  # seconds until a test gives up on other processes: a busy machine is slow


ARGUMENTS = {"problem": PROBLEM, "algorithm": ALGORITHM, "n_rounds": 8000, "n_replicas": 64 * BLOCKS,
             "seed": 7, "record": [3], "block_size": 64, "keep_final": True}


def simulate(**options):
    return fs.simulate(**ARGUMENTS | options)


def bits(run):
    return [part.tobytes() for part in (run.mean, run.cov, run.spread, run.final)]


@pytest.fixture(scope="module", name="whole")
def _whole():
    """What every way to run it must give."""
    return bits(simulate(threads=2))


@pytest.fixture(scope="module", name="client")
def _client():
    """A Dask cluster of two processes on this machine, without its web page."""
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port: its usual one may be taken by another test's
            silence_logs=50) as cluster, cluster.get_client() as client:
        yield client


def at_the_third_block(monkeypatch, act):
    """Call `act` when three blocks are finished."""
    count = []

    class Bar(contextlib.nullcontext):
        def __init__(self, **options):
            super().__init__(self)

        def update(self, amount):
            count.append(amount)
            if len(count) == 3:
                act()

    monkeypatch.setattr(running, "tqdm", Bar)


def press_ctrl_c():
    raise KeyboardInterrupt


def test_a_dask_cluster_gives_the_same_bits(client, whole):
    assert bits(simulate(executor=client.get_executor())) == whole
    assert bits(simulate(executor=client.get_executor(), block_size=192, threads=2)) == whole


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_travel_to_dask_without_their_functions(client, name):
    """Their module is one that no worker can import."""
    problem = quadratic(4, 2)
    base = fs.simulate(problem, SAMPLERS[name], 20, 256, seed=7, keep_final=True)
    run = fs.simulate(problem, SAMPLERS[name], 20, 256, seed=7, keep_final=True, block_size=64,
                      executor=client.get_executor())
    assert bits(run) == bits(base)


def test_a_dask_worker_is_killed(client, whole, monkeypatch):
    """Its block is computed by another worker, and the nanny starts a new one."""
    pids = list(client.run(os.getpid).values())
    at_the_third_block(monkeypatch, lambda: os.kill(pids[0], signal.SIGKILL))
    assert bits(simulate(executor=client.get_executor())) == whole
    client.wait_for_workers(2, timeout=PATIENCE)
    assert pids[0] not in client.run(os.getpid).values()


def test_ctrl_c_during_a_run_on_dask(client, whole, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        at_the_third_block(patch, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            simulate(executor=client.get_executor(), checkpoint=tmp_path)
    kept = sorted(path.name for path in tmp_path.glob("block-*.npz"))
    assert 3 <= len(kept) < BLOCKS
    assert bits(simulate(executor=client.get_executor(), checkpoint=tmp_path)) == whole


def test_errors_travel_from_dask(client):
    with pytest.raises(fs.DivergedError, match="diverged at round") as caught:
        simulate(executor=client.get_executor(), algorithm=fs.FALD(3.0), allow_unstable=True)
    assert caught.value.round > 10


SCRIPT = """
import multiprocessing, pickle, sys
from concurrent.futures import ProcessPoolExecutor
import fedsim as fs
with open(sys.argv[1], "rb") as file:
    arguments = pickle.load(file)
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    fs.simulate(**arguments, executor=pool).save(sys.argv[2])
"""


def test_forked_processes(whole, tmp_path):
    """In a process of its own: a fork copies no locks of Dask's threads then."""
    given, result = tmp_path / "given", tmp_path / "run.npz"
    given.write_bytes(pickle.dumps(ARGUMENTS))
    environment = os.environ | {"PYTHONPATH": str(Path(fs.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", SCRIPT, str(given), str(result)], env=environment, check=True,
                   timeout=PATIENCE)
    assert bits(fs.load(result)) == whole


def test_loky(whole):
    reusable = get_reusable_executor(max_workers=2, timeout=60)
    try:
        assert bits(simulate(executor=reusable)) == whole
    finally:
        reusable.shutdown(wait=True, kill_workers=True)
    with pytest.raises(ValueError, match=r"executor=.* must not be shut down"):
        simulate(executor=reusable)


class Foreign:
    """What mpi4py.futures looks like: `submit` and futures, but no class of concurrent.futures."""

    def __init__(self, pool):
        self._pool = pool

    def submit(self, function, *args):
        return self._pool.submit(function, *args)


def test_an_executor_of_another_make(whole):
    with ThreadPoolExecutor(2) as pool:
        assert bits(simulate(executor=Foreign(pool))) == whole


class Deadly(Foreign):
    """Its fifth task kills the process that has it, when three others at least are done."""

    def __init__(self, pool):
        super().__init__(pool)
        self._given = 0

    def submit(self, function, *args):
        self._given += 1
        if self._given == 5:
            return self._pool.submit(signal.raise_signal, signal.SIGKILL)
        return super().submit(function, *args)


def test_a_killed_process_breaks_the_pool_and_loses_nothing(whole, tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(BrokenExecutor) as caught:
            simulate(executor=Deadly(pool), checkpoint=tmp_path)
    kept = len(list(tmp_path.glob("block-*.npz")))
    assert 3 <= kept < BLOCKS
    note, = caught.value.__notes__
    assert note == (f"{kept} of {BLOCKS} leaves of 64 replicas are finished and kept in checkpoint="
                    f"{str(tmp_path)!r}: the same call with a new executor goes on from there")
    with ThreadPoolExecutor(2) as pool:
        assert bits(simulate(executor=pool, checkpoint=tmp_path)) == whole


class Failing(Foreign):
    """Its second task fails."""

    def submit(self, function, *args):
        future = Future()
        future.set_exception(OSError("the network is gone")) if args[-1] > 64 else future.set_result(
            function(*args))
        return future


def test_without_a_checkpoint_the_note_says_that_nothing_is_kept():
    with pytest.raises(OSError, match="the network is gone") as caught:
        simulate(executor=Failing(None))
    note, = caught.value.__notes__
    assert note == "1 of 12 leaves of 64 replicas are finished, and none is kept without a checkpoint"


def test_a_finished_result_is_taken_when_another_task_fails(tmp_path):
    with pytest.raises(OSError, match="the network is gone"):
        simulate(executor=Failing(None), checkpoint=tmp_path)
    assert [path.name for path in tmp_path.glob("block-*.npz")] == ["block-0-64.npz"]


class _Futureless(Foreign):
    def submit(self, function, *args):
        return "soon"


def _stopped():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    return pool


@pytest.mark.parametrize(("executor", "words"), [
    (3, "must have the interface of concurrent.futures.Executor"),
    ("threads", "must have the interface of concurrent.futures.Executor"),
    (ThreadPoolExecutor, "this is the class: call it"),
    (_stopped(), "must not be shut down"),
    (_Futureless(None), r"must give a concurrent.futures.Future for a task, not 'soon'")])
def test_bad_executors(executor, words):
    with pytest.raises(ValueError, match=f"executor=.*{words}"):
        simulate(executor=executor)


class ClosedClientError(Exception):
    """As Dask names what a closed client raises; it is no RuntimeError."""


class Closing(Failing):
    """It does its tasks at once, and takes no third one, or gives it up."""

    def __init__(self, error):
        self._error = error

    def submit(self, function, *args):
        future = Future()
        if args[-2] < 128:
            future.set_result(function(*args))
        elif self._error is None:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            raise self._error
        return future


@pytest.mark.parametrize(("error", "words"), [
    (RuntimeError("cannot schedule new futures after shutdown"), "must not be shut down"),
    (ClosedClientError("Client is closed."), r"must not be shut down \(Client is closed\.\)"),
    (None, "cancelled a task that it had taken")], ids=["pool", "client", "cancelled"])
def test_an_executor_that_closes_under_a_run_is_named_and_loses_nothing(error, words, whole, tmp_path):
    with pytest.raises(ValueError, match=f"^executor=.*{words}") as caught:
        simulate(executor=Closing(error), checkpoint=tmp_path)
    assert caught.value.__cause__ is error or error is None
    assert len(list(tmp_path.glob("block-*.npz"))) == 2
    note, = caught.value.__notes__
    assert note.startswith("2 of 12 leaves of 64 replicas are finished and kept")
    assert note.endswith("the same call with a new executor goes on from there")
    assert bits(simulate(executor=None, checkpoint=tmp_path)) == whole


def test_a_pool_that_came_broken_is_named():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(os._exit, 1).result()
        with pytest.raises(ValueError, match=r"^executor=.*must not be broken \(.*; pass a new") as caught:
            simulate(executor=pool)
    assert isinstance(caught.value.__cause__, BrokenExecutor)


def test_a_closed_client_of_dask_is_named(client):
    with distributed.Client(client.cluster, set_as_default=False) as other:
        executor = other.get_executor()
        other.close()
        with pytest.raises(ValueError, match=r"^executor=.*must not be shut down \(Client is closed"):
            simulate(executor=executor)


def test_other_pools_are_told_the_way_to_an_executor(client):
    with pytest.raises(ValueError, match=r"executor=<Client.*use client\.get_executor\(\)"):
        simulate(executor=client)
    with pytest.raises(ValueError, match=r"executor=.*use cluster\.get_client\(\)\.get_executor\(\)"):
        simulate(executor=client.cluster)
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(
            ValueError, match=r"use concurrent\.futures\.ProcessPoolExecutor instead of"):
        simulate(executor=pool)


def test_a_worker_with_other_sources_is_refused():
    with pytest.raises(RuntimeError, match="other sources of fedsim or another numba"):
        run_whole_block("another", "call", None, 0, 64)
