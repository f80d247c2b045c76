"""The engine runs samplers of one's own as it runs the algorithms that come with fedsim."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import sampler_zoo as zoo
from a_notebook_of_samplers import NOWHERE, RING, SAMPLERS
from interrupting import ctrl_c_after
from problems import quadratic

import fedsim as fs
import theory
from fedsim.engine import running
from fedsim.engine.job import make_job
from fedsim.samplers import grad, mean, noise, past, sqrt, weights
from fedsim.settings import limits
from fedsim.vector.compile import compiled_here

PROBLEM = quadratic(4, 2)
START = fs.Gaussian([1.0, -1.0], [[1.0, 0.4], [0.4, 2.0]])
REPLICAS = 64 * 4 + 20
each = pytest.mark.parametrize("name", SAMPLERS)


def simulate(name="extra", n_rounds=12, n_replicas=REPLICAS, **options):
    given = {"seed": 99, "record": [3], "keep_final": True, "average": "square", "threads": 1, "start": START}
    return fs.simulate(PROBLEM, SAMPLERS[name], n_rounds, n_replicas, **given | options)


def bits(run):
    return [part.tobytes() for law in (run, *run.clients) for part in (law.mean, law.cov, law.spread)] + [
        run.final.tobytes(), run.averages.tobytes()]


@each
def test_threads_blocks_and_shards(name, tmp_path):
    base = bits(simulate(name))
    for block_size in (64, 128):
        for threads in (1, 2):
            assert bits(simulate(name, block_size=block_size, threads=threads)) == base
    for shard in ((128, REPLICAS), (0, 128)):
        simulate(name, replicas=shard, checkpoint=tmp_path)
    assert bits(simulate(name, replicas="kept", checkpoint=tmp_path)) == base


@each
def test_interrupted_and_resumed(name, tmp_path, monkeypatch):
    base = bits(simulate(name, 400, 64 * 20))
    with monkeypatch.context() as patch:
        patch.setattr(running, "tqdm", ctrl_c_after(64 * 400 * 3))
        with pytest.raises(KeyboardInterrupt):
            simulate(name, 400, 64 * 20, block_size=64, checkpoint=tmp_path)
    assert 0 < len(list(tmp_path.glob("block-*.npz"))) < 20
    assert bits(simulate(name, 400, 64 * 20, checkpoint=tmp_path)) == base


def test_processes_need_nothing_of_the_module_that_declares_a_sampler():
    with pytest.raises(ModuleNotFoundError):
        __import__(NOWHERE.extra.__module__)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name in SAMPLERS:
            assert bits(simulate(name, executor=pool, block_size=128)) == bits(simulate(name))


def test_a_checkpoint_knows_which_parts_begin_at_the_start(tmp_path):
    """Two rounds of the same operations: one's second part is the past of x, the other's begins at zero."""
    @fs.sampler(follows="global")
    def aged(x, *, step_size):
        return x - step_size * grad(past(x, 1)) + sqrt(2 * step_size) * noise()

    @fs.sampler(follows="global")
    def kept(x, y, *, step_size):
        return x - step_size * grad(y) + sqrt(2 * step_size) * noise(), x

    fs.simulate(PROBLEM, aged(step_size=0.05), 3, 64, seed=1, start=[5.0, 5.0], checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        fs.simulate(PROBLEM, kept(step_size=0.05), 3, 64, seed=1, start=[5.0, 5.0], checkpoint=tmp_path)


@each
def test_paths_are_those_of_replicas(name):
    final = simulate(name).final
    paths = fs.sample_path(PROBLEM, SAMPLERS[name], 12, seed=99, every=6, n_chains=70, start=START)
    assert paths.shape == (70, 2, 2) and paths[:, -1].tobytes() == final[:70].tobytes()


def test_a_path_may_be_that_of_a_client():
    run = simulate()
    assert len(run.clients) == 4 and not simulate("drawn").clients
    paths = np.stack([fs.sample_path(PROBLEM, SAMPLERS["extra"], 12, seed=99, n_chains=REPLICAS, start=START,
                                     client=client) for client in range(4)])
    for client in range(4):
        np.testing.assert_allclose(paths[client, :, -1].mean(axis=0), run.clients[client].mean[-1],
                                   rtol=1e-12)
    with pytest.raises(ValueError, match="client=0 must be None for drawn: its clients share one iterate"):
        fs.sample_path(PROBLEM, SAMPLERS["drawn"], 12, seed=99, client=0)


def test_what_is_recorded():
    run = simulate()
    less = simulate(covariance="diagonal")
    assert run.rounds.tolist() == [0, 3, 12]
    np.testing.assert_array_equal(less.cov[-1], np.diagonal(run.cov[-1]))
    assert less.mean.tobytes() == run.mean.tobytes()
    assert simulate(covariance="none").cov is None
    np.testing.assert_allclose(run.final.mean(axis=0), run.mean[-1], rtol=1e-12)
    path = fs.sample_path(PROBLEM, SAMPLERS["extra"], 12, seed=99, n_chains=REPLICAS, start=START)
    np.testing.assert_allclose(run.averages, (path**2).sum(axis=2).mean(axis=1), rtol=1e-12)


def test_a_start_for_each_client():
    start = np.arange(8.0).reshape(4, 2)
    run = simulate(start=start)
    for client, law in enumerate(run.clients):
        np.testing.assert_array_equal(law.mean[0], start[client])
    exact = theory.exact_law(PROBLEM, SAMPLERS["extra"], 12, start=start)
    spread = np.sqrt(np.diagonal(exact.cov[-1]) / REPLICAS)
    assert (np.abs(run.mean[-1] - exact.mean[-1]) < 6.0 * spread).all()
    with pytest.raises(ValueError, match="start"):
        simulate("drawn", start=start)


def test_a_run_has_the_name_of_its_sampler(capsys):
    for name in SAMPLERS:
        assert simulate(name, progress=True).label == f"{name} on Quadratic"
        shown = capsys.readouterr().err
        assert name in shown and "100%" in shown and "Bound" not in shown
        assert "Bound" not in str(fs.explain(PROBLEM, SAMPLERS[name]))


def test_too_large_a_step():
    algorithm = zoo.extra_sgld(step_size=3.0, W=RING)
    limit = algorithm.stability(PROBLEM).max_step_size
    with pytest.raises(fs.UnstableStepSize, match=f"step_size=3 .*{limit:.6g}"):
        fs.simulate(PROBLEM, algorithm, 500, 64, seed=1)
    words = rf"at round \d+.*step_size=3, stability limit {limit:.6g}"
    with pytest.raises(fs.DivergedError, match=words) as caught:
        fs.simulate(PROBLEM, algorithm, 500, 64, seed=1, allow_unstable=True)
    last = caught.value.round - 1
    fs.simulate(PROBLEM, algorithm, last, 64, seed=1, allow_unstable=True)
    with pytest.raises(fs.DivergedError, match=f"diverged at round {last + 1}:"):
        fs.sample_path(PROBLEM, algorithm, 500, seed=1, n_chains=64, allow_unstable=True)


def test_schedules_that_do_not_fit():
    sampler = zoo.de_sgld(step_size=[0.05, 0.04, 0.03], W=RING)
    with pytest.raises(ValueError, match="step_size has 3 entries; n_rounds=4 needs 4"):
        fs.simulate(PROBLEM, sampler, 4, 64, seed=1)
    run, shipped = (fs.simulate(PROBLEM, one, 2, 64, seed=1) for one in (sampler, fs.DESGLD(
        [0.05, 0.04], RING)))
    assert run.mean.tobytes() == shipped.mean.tobytes()


def test_many_local_steps_are_turns_of_a_loop():
    sampler = zoo.fa_ld(step_size=1e-4, local_steps=10**4)
    assert len(make_job(PROBLEM, sampler, 2, 64, seed=1).algorithm.program.steps) < 10
    run, shipped = (fs.simulate(PROBLEM, one, 2, 64, seed=1) for one in (sampler, fs.FALD(1e-4, 10**4)))
    assert run.mean.tobytes() == shipped.mean.tobytes()


def test_memory_is_refused_before_it_is_taken(monkeypatch):
    schedule = zoo.de_sgld(step_size=fs.schedules.Harmonic(8.0, 0.5), W=RING)
    with pytest.raises(ValueError, match="n_rounds=1000000000 with a schedule for step_size needs"):
        fs.simulate(PROBLEM, schedule, 10**9, 64, seed=1)
    many = fs.Quadratic(np.ones((70_000, 1)), np.zeros((70_000, 1)))
    with pytest.raises(ValueError, match="70000"):
        fs.simulate(many, zoo.fa_ld(step_size=0.1), 2, 64, seed=1)
    some = fs.Quadratic(np.ones((200, 50)), np.zeros((200, 50)))
    monkeypatch.setattr(limits, "memory_limit", lambda: 1e8)
    with pytest.raises(ValueError, match=r"algorithm=fa_ld\(.*GB.* fewer threads, a smaller block_size"):
        make_job(some, zoo.fa_ld(step_size=0.01), 2, 6400, seed=1, block_size=640)


@pytest.mark.filterwarnings("ignore::fedsim.samplers.SamplerWarning")
def test_nothing_is_compiled_for_a_sampler():
    """Of a class of problems that has been run: whatever the sampler does."""
    simulate()
    before = compiled_here()

    @fs.sampler
    def never_seen(x, y, *, step_size):
        old = past(x, 2)
        for _ in range(4):
            y = y - step_size / 3 * grad(x - y) + noise(common=True) / 10
            x = x - step_size * grad(old) + step_size * mean(y) + sqrt(step_size) * noise()
        return mean(x), y + sqrt(weights()) * x

    assert fs.warm_up(PROBLEM, never_seen(step_size=0.01), allow_unstable=True) == 0
    pairs = zoo.random_pairs(step_size=0.01, W=fs.network.random([RING, np.eye(4)]))
    for sampler in (never_seen(step_size=0.01), pairs,
                    zoo.fa_hmc(step_size=0.1, leapfrog_steps=4, local_steps=3)):
        fs.simulate(PROBLEM, sampler, 5, 128, seed=1, allow_unstable=True)
    assert compiled_here() == before
