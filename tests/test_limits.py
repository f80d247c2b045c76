"""What a call may take is estimated and refused, by name, before it is taken."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from algorithms import ROWS, each

import fedsim as fs
import fedsim.engine.job
import fedsim.engine.paths
import fedsim.engine.running
import fedsim.settings.server
import theory
from fedsim.engine.job import make_job
from fedsim.engine.pool import thread_count
from fedsim.engine.state import lane_state, state_bytes
from fedsim.laws.recording import n_recorded
from fedsim.settings.progress import bars_shown, progress_bar
from fedsim.vector.memory import aligned

Q2 = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
WIDE = 10_000
DIAGONAL = fs.Quadratic(np.full((2, WIDE), [[1.0], [2.0]]), np.zeros((2, WIDE)))
START = fs.Gaussian(np.ones(WIDE), np.full(WIDE, 0.25))
MIDDLE = fs.Quadratic(np.ones((2, 50)), np.zeros((2, 50)))
NO_RECORD = {"covariance": "none", "record": ()}
NO_MOMENTS = NO_RECORD | {"threads": 1}


@pytest.fixture(autouse=True)
def a_machine_of_16_gigabytes(monkeypatch):
    """What is refused must not depend on where the tests run."""
    monkeypatch.setattr("fedsim.settings.limits.memory_limit", lambda: 8e9)


def peak_of(function, *args, **options):
    """Bytes at most that were taken at a time."""
    tracemalloc.start()
    try:
        function(*args, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def simulate(algorithm=None, n_rounds=10, n_replicas=64, problem=Q2, **options):
    return fs.simulate(problem, fs.FALD(0.1) if algorithm is None else algorithm, n_rounds, n_replicas,
                       seed=1, **options)


# --- what a block takes

def test_no_gradient_is_older_than_the_chain():
    """10^9 is as old as 10 in ten rounds, and takes as much."""
    old, ten = (simulate(fs.StaleSGLD(1e-11, age), keep_final=True) for age in (10**9, 10))
    np.testing.assert_array_equal(old.final, ten.final)
    paths = [fs.sample_path(Q2, fs.StaleSGLD(1e-11, age), 10, seed=1) for age in (10**9, 10)]
    np.testing.assert_array_equal(*paths)
    fs.explain(Q2, fs.StaleSGLD(1e-11, 10**9))  # makes no ring of that length


@pytest.mark.parametrize("algorithm", [fs.StaleSGLD(1e-11, 10**9), fs.StaleSGHMC(1e-11, 1.0, 2**60)])
def test_a_long_ring_is_refused(algorithm):
    for run in (fs.simulate, fs.sample_path):
        replicas = {"n_replicas": 64, "covariance": "none", "record": ()} if run is fs.simulate else {}
        options = {"n_rounds": 10**9, "seed": 1, "allow_unstable": True} | replicas
        if run is fs.sample_path:
            options["every"] = 10**9
        with pytest.raises(ValueError, match=r"algorithm=Stale.*n_rounds=1000000000.*needs about"):
            run(Q2, algorithm, **options)


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_the_estimate_is_what_a_block_takes(kind, name):
    example = ROWS[kind].laws[name]
    for n_replicas in (5, 320):
        job = make_job(example.problem, example.algorithm, ROWS[kind].n_rounds, n_replicas, seed=1,
                       start=example.start, block_size=320, allow_unstable=True, record=())
        lane_state(job, 0, n_replicas)  # what is kept for good is made
        taken = peak_of(lane_state, job, 0, n_replicas)
        assert 0.5 < state_bytes(job, n_replicas) / taken < 2.0


def test_arrays_of_a_newcomer_are_counted(monkeypatch):
    """Whatever a workspace holds is seen: rows of `aligned`, and others."""
    job = make_job(Q2, fs.FALD(0.1), 6, 64, seed=1)
    plain = state_bytes(job, 64)
    monkeypatch.setattr(fs.FALD, "_extra", lambda self, active, dim, lanes: (aligned((10**9, lanes)),))
    assert 64 * 8e9 < state_bytes(job, 64) < 64 * 8e9 + 2 * plain
    monkeypatch.setattr(fs.FALD, "_extra", lambda self, active, dim, lanes: (np.zeros((1000, lanes)),))
    assert 64 * 8e3 < state_bytes(job, 64) < 64 * 8e3 + 2 * plain


@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.1, participation=fs.Participation(60_000, True)),
    fs.FAHMC(1e-3, 2, debias="stale", participation=fs.Participation(60_000, True))])
def test_state_of_active_clients_is_counted(algorithm):
    wide = fs.Quadratic(np.ones((1, 30_000)), np.zeros((1, 30_000)))
    with pytest.raises(ValueError, match=r"60000 active clients.*needs about"):
        simulate(algorithm, problem=wide, allow_unstable=True, covariance="none")


@pytest.fixture(name="asked")
def _asked(monkeypatch):
    """The bytes that were asked for, in place of a refusal."""
    estimates = []
    for module in (fedsim.engine.job, fedsim.engine.paths):
        monkeypatch.setattr(module, "refuse_bytes", lambda n_bytes, *words: estimates.append(n_bytes))
    return estimates


@pytest.mark.parametrize("run", [
    lambda: simulate(problem=MIDDLE, n_rounds=1, n_replicas=64 * 200, keep_final=True, **NO_MOMENTS),
    lambda: simulate(n_rounds=1, n_replicas=64 * 2_000, average="square", **NO_MOMENTS),
    lambda: fs.sample_path(Q2, fs.FALD(0.1), 1000, seed=1, n_chains=640, threads=1)],
    ids=["last iterates", "averages", "paths"])
def test_the_estimate_is_what_a_run_keeps(run, asked):
    run()  # compiles
    asked.clear()
    taken = peak_of(run)
    assert 0.75 < asked[-1] / taken < 2.0


def test_blocks_that_are_open_at_once_are_counted(asked):
    """Near the end of a run three for each thread."""
    job = make_job(MIDDLE, fs.FALD(0.1), 1, 64 * 100, seed=1, block_size=64, threads=4, **NO_RECORD)
    assert 12.0 <= asked[-1] / state_bytes(job, 64) < 13.0


def test_a_block_is_no_larger_than_the_run():
    run = simulate(block_size=2**40)
    np.testing.assert_array_equal(run.mean, simulate().mean)


# --- schedules of workers

@pytest.mark.parametrize(("workers", "n_rounds", "n_replicas"), [
    (fs.Workers(4, schedules=2**20), 10**5, 2**21), (fs.Workers(4), 2**31, 64), (fs.Workers(10**10), 10, 64)])
def test_ages_are_refused_before_events_are_simulated(workers, n_rounds, n_replicas, monkeypatch):
    algorithm = fs.StaleSGLD(1e-9, workers)
    monkeypatch.setattr(fedsim.settings.server, "_simulate", None)
    with pytest.raises(ValueError, match=rf"Workers\(n={workers.n}, .*n_updates={n_rounds} .*needs about"):
        simulate(algorithm, n_rounds, n_replicas, allow_unstable=True)
    with pytest.raises(ValueError, match="needs about"):
        workers.history(10**12)


def test_schedules_that_nobody_follows_are_not_made():
    few, many = (simulate(fs.StaleSGLD(0.01, fs.Workers(3, seed=4, schedules=m)), 20, 64, keep_final=True)
                 for m in (64, 2**20))
    np.testing.assert_array_equal(few.final, many.final)
    alone = fs.Workers(3, schedules=2**20).worked_out(5, 1)
    assert 1 < alone.schedules < 3  # the law of one replica is a mixture too


def test_histories_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(fedsim.settings.server, "_KEPT_BYTES", 2**21)
    kept = fedsim.settings.server._kept
    for seed in range(40):
        fs.Workers(2, seed=seed).history(2**12)
    assert len(kept) < 40 and sum(24 * length for _, length, _ in kept) <= 2**21
    assert fs.Workers(2, seed=39).history(2**12) is fs.Workers(2, seed=39).history(2**12)


def test_long_schedules_have_a_bar(capsys):
    simulate(fs.StaleSGLD(1e-3, fs.Workers(2, seed=77)), 2**17, 2, covariance="none", progress=True)
    assert "schedule of workers: 100%" in capsys.readouterr().err
    with bars_shown(True), progress_bar(10, "short") as bar:
        assert bar.disable


# --- starts of independent coordinates

@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.1), fs.FAHMC(0.1, 2), fs.StaleSGLD(0.1, 2), fs.StaleSGHMC(0.1, 1.0, 2),
    fs.DESGLD(0.1, fs.network.complete(2))], ids=lambda algorithm: type(algorithm).__name__)
def test_a_diagonal_start_is_never_dense(algorithm):
    dense = 8 * WIDE**2
    small = {"covariance": "diagonal", "record": (), "start": START}
    narrow = fs.Quadratic(np.ones((2, 4)), np.zeros((2, 4)))
    fs.simulate(narrow, algorithm, 2, 33, seed=1, covariance="diagonal")  # compiles
    fs.sample_path(narrow, algorithm, 2, seed=1)
    assert peak_of(fs.simulate, DIAGONAL, algorithm, 2, 33, seed=1, threads=1, **small) < dense / 4
    assert peak_of(fs.sample_path, DIAGONAL, algorithm, 2, seed=1, start=START) < dense / 4
    assert peak_of(theory.exact_law, DIAGONAL, algorithm, 2, **small) < dense / 4
    assert peak_of(theory.constants, DIAGONAL, algorithm, START) < dense / 4


def test_a_diagonal_start_is_the_dense_one():
    """The same law, and the same constants; replicas have the same bits."""
    mean, variances = [1.0, -2.0, 0.5], [0.25, 4.0, 0.0]
    problem = fs.Quadratic([[1.0, 2.0, 3.0]], [[0.0, 1.0, 2.0]])
    starts = fs.Gaussian(mean, variances), fs.Gaussian(mean, np.diag(variances))
    algorithm = fs.StaleSGLD(0.05, 2)
    one, other = (simulate(algorithm, 5, 70, problem, start=start, keep_final=True) for start in starts)
    np.testing.assert_array_equal(one.final, other.final)
    one, other = (theory.constants(problem, algorithm, start) for start in starts)
    assert one.initial_distance == pytest.approx(other.initial_distance, rel=1e-14)
    assert one.initial_w2 == pytest.approx(other.initial_w2, rel=1e-12)
    one, other = (theory.stale.average_law(problem, algorithm, 9, start=start) for start in starts)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-12)


# --- recorded rounds

@pytest.mark.parametrize("record", [range(10**9), range(0, 10**9, 10), range(10**9, -1, -1)])
def test_a_long_range_is_not_written_out(record):
    def refused():
        with pytest.raises(ValueError, match="rounds"):
            simulate(n_rounds=10**9, record=record)
        if len(record) > 10**8 + 1:
            for call in (lambda: theory.exact_law(Q2, fs.FALD(0.1), 10**9, record=record),
                         lambda: theory.exact.sample_rounds(Q2, fs.FALD(0.1), 10**9, 9, 1, record=record),
                         lambda: fs.recorded_rounds(10**9, record)):
                with pytest.raises(ValueError, match="rounds"):
                    call()

    assert peak_of(refused) < 1e7


@pytest.mark.parametrize("record", [range(0), range(3), range(5, -1, -2), range(2, 9, 3), [7, 7, 1], None, 4])
def test_rounds_are_counted_as_they_are_recorded(record):
    assert n_recorded(9, record) == len(fs.recorded_rounds(9, record))
    if isinstance(record, range):
        np.testing.assert_array_equal(fs.recorded_rounds(9, record), fs.recorded_rounds(9, list(record)))


@pytest.mark.parametrize("record", [range(-1, 3), range(3, 12), range(10**30), range(0, -10**30, -1)])
def test_ranges_beyond_the_run_are_refused(record):
    for count in (n_recorded, fs.recorded_rounds):
        with pytest.raises(ValueError, match=r"record contains .* must lie in \[0, n_rounds=9\]"):
            count(9, record)


def test_long_lists_are_refused(monkeypatch):
    monkeypatch.setattr("fedsim.settings.limits.memory_limit", lambda: 1e6)
    for record in (list(range(10**5)), np.arange(10**5)):
        with pytest.raises(ValueError, match=r"record=.* of 100000 rounds needs about"):
            fs.recorded_rounds(10**6, record)


# --- sizes that make matrices

@pytest.mark.parametrize(("call", "message"), [
    (lambda: fs.network.ring(10**6), "n=1000000: a dense mixing matrix"),
    (lambda: fs.network.complete(10**7), "n=10000000: "), (lambda: fs.network.path(10**6), "n=1000000: "),
    (lambda: fs.network.star(10**6), "n=1000000: "), (lambda: fs.network.grid(10**4, 10**4), "a, b="),
    (lambda: fs.network.disconnected(10**7), "n=10000000: "),
    (lambda: fs.Gaussian([0.0], [1.0]).sample(10**12, 1), "n=1000000000000 draws"),
    (lambda: fs.Gaussian(np.zeros(10**6), np.ones(10**6)).cov, "dim=1000000"),
    (lambda: fs.papers.fa_ld_simulation(n_clients=10**10), "n_clients=10000000000"),
    (lambda: fs.papers.fa_hmc_gaussian(10**6, n_clients=10**6), "dim=1000000 of n_clients=1000000"),
    (lambda: fs.papers.fa_hmc_logistic(10**10), "dim=10000000000"),
    (lambda: fs.Quadratic(np.ones((1, 10**6)), np.zeros((1, 10**6))).dense_hessians, "dense Hessians of Q"),
    (lambda: fs.validate(fs.LogisticRegression(np.ones((2, 10**6)), [0, 1], [0, 0], prior_variance=1.0),
                         fs.FALD(1e-9)), "features with 1000000 columns")])
def test_matrices_without_room_are_refused(call, message):
    def refused():
        with pytest.raises(ValueError, match=rf"{message}.*needs about .* GB"):
            call()

    assert peak_of(refused) < 1e8


def test_distances_without_room_are_refused(monkeypatch):
    law = simulate(problem=fs.Quadratic(np.ones((1, 30)), np.zeros((1, 30))), n_rounds=100)
    monkeypatch.setattr("fedsim.settings.limits.memory_limit", lambda: 1e6)
    with pytest.raises(ValueError, match=r"W2 of covariances of shape \(101, 30, 30\).*needs about"):
        law.w2()


# --- very many replicas

def test_blocks_are_made_as_they_are_run(monkeypatch):
    """The first block is there at once, and no list of the others."""
    class Enough(Exception):
        """Raised in place of the run."""

    def only_first(job, blocks, *rest):
        assert next(blocks)[0] == 0
        raise Enough

    monkeypatch.setattr(fedsim.engine.running, "run_on_threads", only_first)

    def begun():
        with pytest.raises(Enough):
            simulate(n_replicas=2**32)

    assert peak_of(begun) < 1e7


@pytest.mark.parametrize(("threads", "in_flight"), [(1, 64), (2, 64), (100, 200)])
def test_so_many_tasks_are_handed_to_an_executor_and_no_more(monkeypatch, threads, in_flight):
    """Each of them is kept by it, and later a result."""
    handed = []
    monkeypatch.setattr(fedsim.engine.running, "run_on_executor", lambda *args: handed.append(args[-1]))
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="parts of the tree"):
        simulate(threads=threads, executor=pool)
    assert handed == [in_flight]


def test_threads_are_as_many_as_processors_that_may_be_used(monkeypatch):
    """Of a machine that has more, as within a container or a batch job."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {1, 4, 5}, raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    assert thread_count(None) == 3 and thread_count(7) == 7
    monkeypatch.delattr("os.sched_getaffinity")
    assert thread_count(None) == 64


@pytest.mark.parametrize("done", [(), {0}, {1, 2, 7}, {3}, set(range(8))])
def test_blocks_cover_what_is_not_done(done):
    job = make_job(Q2, fs.FALD(0.1), 2, 500, seed=1, block_size=192)
    blocks = list(job.blocks(done))
    covered = [leaf for first, last in blocks for leaf in range(first // 64, -(-last // 64))]
    assert covered == [leaf for leaf in range(8) if leaf not in done]
    assert all(last - first <= 192 for first, last in blocks)
    assert done or blocks == [(0, 192), (192, 384), (384, 500)]


def test_chains_that_keep_nothing_are_counted():
    with pytest.raises(ValueError, match=r"n_chains=4294967296 .*needs about"):
        fs.sample_path(Q2, fs.FALD(0.1), 2, seed=1, n_chains=2**32, every=10)


# --- the end of float64

@pytest.mark.parametrize("step_size", [1e80, 1e155, 1e300])
@pytest.mark.parametrize("make", [
    lambda h: fs.FALD(h, 3), lambda h: fs.FAHMC(h, 3, 2), lambda h: fs.FAHMC(h, 3, 2, debias="stale"),
    lambda h: fs.DESGLD(h, fs.network.complete(2)), lambda h: fs.StaleSGLD(h, 3),
    lambda h: fs.StaleSGLD(h, fs.Workers(3)), lambda h: fs.StaleSGLD(h, [0, 1, 2, 0]),
    lambda h: fs.StaleSGHMC(h, 1.0, 3), lambda h: fs.StaleSGHMC(h, 1.0, fs.Workers(3))])
def test_huge_steps_are_unstable(make, step_size):
    with pytest.raises(fs.UnstableStepSize, match="must be less than the stability limit"):
        fs.validate(Q2, make(step_size))


def test_ages_that_have_too_many_roots_are_refused():
    """Where steps are so small that two roots next to one decide, none are searched for."""
    with pytest.raises(ValueError, match="staleness=1000000 must be at most 3000"):
        fs.validate(Q2, fs.StaleSGHMC(1e-3, 1.0, 10**6))
    fs.validate(Q2, fs.StaleSGHMC(1e-9, 1.0, 10**6))


@pytest.mark.parametrize(("most", "call"), [
    ("local_steps=range.* has more than 100000", lambda: theory.sweep(
        Q2, fs.FALD(0.1), local_steps=range(10**9))),
    ("algorithms=.* has more than 10000", lambda: theory.compare_algorithms(
        Q2, (fs.FALD(0.1) for _ in range(10**9)), 0.1)),
    ("n_rounds=range.* has more than 1000", lambda: theory.worst_case.ProblemClass(
        dim=1, n_clients=2, n_rounds=range(1, 10**9)))])
def test_lists_without_end_are_not_held(most, call):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"{most} entries; it must have at most so many"):
            call()
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()
