"""simulate and sample_path: progress, divergence, checkpoints, memory, costs, and nothing at import."""

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from algorithms import ROWS

import fedsim as fs
from fedsim.engine import rounds as kernel, running
from fedsim.engine.block import CHECK_EVERY, RADIUS
from fedsim.engine.job import make_job
from fedsim.engine.moments import Tree, leaf_moments
from fedsim.engine.rounds import LEAF
from fedsim.settings import limits

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]],
                       [0.3, 0.7])
ALGORITHM = fs.FALD(0.1, 3, 1.0, 0.3)


def run(n_rounds=6, n_replicas=200, **options):
    return fs.simulate(PROBLEM, ALGORITHM, n_rounds, n_replicas, **{"seed": 3} | options)


def test_moments_are_those_of_the_replicas():
    """Means and covariances at every round against NumPy's on whole paths; the spread of leaves too."""
    result = run(n_replicas=64 * 5 + 13)
    paths = fs.sample_path(PROBLEM, ALGORITHM, 6, seed=3, n_chains=64 * 5 + 13)
    np.testing.assert_allclose(result.mean[1:], paths.mean(axis=0), rtol=1e-13)
    full = paths[:320].reshape(5, 64, 6, 2)
    for i in range(6):
        np.testing.assert_allclose(result.cov[i + 1], np.cov(paths[:, i].T), rtol=1e-12)
        leaves = np.array([np.cov(full[leaf, :, i].T) for leaf in range(5)])
        np.testing.assert_allclose(result.leaf_cov[i + 1], leaves.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(result.spread[i + 1], leaves.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-10)
    assert (result.n_leaves, result.n_replicas) == (5, 333)


def test_moments_of_a_far_cloud_keep_their_digits():
    """Centred sums: a mean of 10^7 does not cost the covariance its digits."""
    problem = fs.Quadratic(PROBLEM.hessians, PROBLEM.minimizers + 1e7, PROBLEM.weights)
    far = fs.simulate(problem, ALGORITHM, 4, 320, seed=3, start=[1e7, 1e7])
    near = fs.simulate(PROBLEM, ALGORITHM, 4, 320, seed=3)
    np.testing.assert_allclose(far.cov[1:], near.cov[1:], rtol=1e-6)


def test_kinds_of_covariance_agree():
    full, diagonal, none = (run(covariance=kind) for kind in ("full", "diagonal", "none"))
    assert diagonal.cov.shape == (7, 2) and none.cov is None and none.spread is None
    assert full.mean.tobytes() == diagonal.mean.tobytes() == none.mean.tobytes()
    np.testing.assert_allclose(np.diagonal(full.cov, axis1=1, axis2=2), diagonal.cov, rtol=1e-14)
    np.testing.assert_array_equal(full.cov, np.swapaxes(full.cov, 1, 2))


def test_the_tree_does_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    for first, last in ((0, 1), (0, 7), (3, 4), (3, 12), (5, 8)):
        leaves = {i: leaf_moments(rng.standard_normal((1, 2, 3)), rng.random((1, 2, 9)), LEAF)
                  for i in range(first, last)}
        roots = []
        for _ in range(4):
            tree = Tree(first, last, False)
            for leaf in rng.permutation(np.arange(first, last)):
                tree.add(int(leaf), leaves[int(leaf)])
            roots.append(tree.root())
        assert {root.mean.tobytes() + root.square.tobytes() for root in roots} == {
            roots[0].mean.tobytes() + roots[0].square.tobytes()}
        assert roots[0].count == LEAF * (last - first)
        np.testing.assert_allclose(roots[0].mean, np.mean([m.mean for m in leaves.values()], axis=0))


def test_progress(capsys):
    run(progress=True)
    shown = capsys.readouterr().err
    assert "FALD" in shown and "100%" in shown
    run()
    assert not capsys.readouterr().err


def test_progress_counts_every_round_once(monkeypatch):
    amounts = []

    class Bar:
        def __init__(self, total, **options):
            self.total = total
            amounts.append(-total)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def update(self, amount):
            amounts.append(amount)

    monkeypatch.setattr(running, "tqdm", Bar)
    run(50, 64 * 7, threads=2)
    assert sum(amounts) == 0 and amounts[0] == -50 * 64 * 7


def test_divergence_names_the_round_and_the_limit():
    algorithm = fs.FALD(3.0)
    limit = algorithm.stability(PROBLEM).max_step_size
    message = r"diverged at round \d+.*step_size=3.*stability limit"
    with pytest.raises(fs.DivergedError, match=message) as caught:
        fs.simulate(PROBLEM, algorithm, 10_000, 64, seed=1, allow_unstable=True)
    assert f"{limit:.6g}" in str(caught.value)
    # the distance from the fixed point grows by the radius in every round
    growth = np.log(RADIUS) / np.log(algorithm.stability(PROBLEM).radius)
    assert caught.value.round == pytest.approx(growth, rel=0.05)
    # and not one round earlier, although not every round is looked at
    fs.simulate(PROBLEM, algorithm, caught.value.round - 1, 64, seed=1, allow_unstable=True)


def test_a_divergence_has_the_same_date_however_seldom_it_is_looked_for():
    dates = []
    for record in (range(200), ()):
        with pytest.raises(fs.DivergedError) as caught:
            fs.simulate(PROBLEM, fs.FALD(3.0), 200, 64, seed=1, record=record, allow_unstable=True)
        dates.append(caught.value.round)
    assert dates[0] == dates[1] and dates[0] % CHECK_EVERY


def test_divergence_in_a_pool_of_threads_and_of_tasks():
    class Serial:
        def submit(self, function, *args):
            future = Future()
            try:
                future.set_result(function(*args))
            except fs.DivergedError as error:
                future.set_exception(error)
            return future

    for options in ({"threads": 2, "block_size": 64}, {"executor": Serial()}):
        with pytest.raises(fs.DivergedError, match="diverged at round"):
            fs.simulate(PROBLEM, fs.FALD(3.0), 10_000, 640, seed=1, allow_unstable=True, **options)


def test_an_unstable_step_is_refused_unless_allowed():
    algorithm = fs.FALD(3.0)
    with pytest.raises(fs.UnstableStepSize, match="step_size=3 must be less than") as caught:
        fs.simulate(PROBLEM, algorithm, 5, 64, seed=1)
    stability = algorithm.stability(PROBLEM)
    assert (caught.value.step_size, caught.value.limit) == (3.0, stability.max_step_size)
    assert fs.FALD(0.999 * stability.max_step_size).stability(PROBLEM).stable
    assert not fs.FALD(1.001 * stability.max_step_size).stability(PROBLEM).stable
    assert np.isfinite(fs.simulate(PROBLEM, algorithm, 5, 64, seed=1, allow_unstable=True).mean).all()


def test_memory_is_refused_before_it_is_allocated(monkeypatch):
    big = fs.Quadratic(np.ones(2), np.zeros((2, 20_000)))
    monkeypatch.setattr(limits, "memory_limit", lambda: 1e9)
    with pytest.raises(ValueError, match=r"covariance='full'.*GB.*use covariance='diagonal' or 'none'"):
        fs.simulate(big, fs.FALD(0.1), 5, 64, seed=1)
    with pytest.raises(ValueError, match="keep_final=True needs about"):
        fs.simulate(PROBLEM, ALGORITHM, 5, 10**8, seed=1, keep_final=True)
    with pytest.raises(ValueError, match="average='square' and keep_final=False needs about"):
        fs.simulate(PROBLEM, ALGORITHM, 5, 2 * 10**8, seed=1, average="square")
    with pytest.raises(ValueError, match="GB"):
        fs.sample_path(PROBLEM, ALGORITHM, 10**9, seed=1, n_chains=100)
    with pytest.raises(ValueError, match="GB"):
        fs.simulate(PROBLEM, fs.FALD(0.1, participation=fs.Participation(60_000, True)), 5, 10**6, seed=1,
                    block_size=64 * 100)


def test_average_is_that_of_the_path():
    paths = fs.sample_path(PROBLEM, ALGORITHM, 6, seed=3, n_chains=200)
    np.testing.assert_allclose(run(average="identity").averages, paths.sum(axis=2).mean(axis=1), rtol=1e-12)
    squares = (paths**2).sum(axis=2).mean(axis=1)
    np.testing.assert_allclose(run(average="square").averages, squares, rtol=1e-12)
    assert run().averages is None and run().final is None


class _Cube(NamedTuple):
    """The sum of the cubed coordinates, a test function of one's own."""

    unused: int


@kernel.accumulate.register(_Cube)
def _cubes(function, work, observed, unfolded, sums):
    kernel.observe_unfolded(work, 0, observed, unfolded)
    for i in range(unfolded.shape[0]):
        for b in range(sums.shape[0]):
            sums[b] += unfolded[i, b] ** 3


def test_a_test_function_of_ones_own_is_averaged(monkeypatch):
    monkeypatch.setitem(kernel.TEST_FUNCTIONS, "cube", _Cube(0))
    algorithm, start = fs.FALD(0.1, 2), [2.0] * PROBLEM.dim
    found = fs.simulate(PROBLEM, algorithm, 20, 64, seed=3, start=start, average="cube").averages
    paths = fs.sample_path(PROBLEM, algorithm, 20, seed=3, n_chains=64, start=start)
    np.testing.assert_allclose(found, (paths[:, -20:] ** 3).sum(axis=2).mean(axis=1), rtol=1e-12)



def test_no_rounds_at_all():
    start = fs.Gaussian([1.0, 2.0], [1.0, 0.0])
    nothing = run(0, start=start, keep_final=True, average="identity")
    assert nothing.rounds.tolist() == [0] and nothing.mean.shape == (1, 2)
    np.testing.assert_allclose(nothing.final.mean(axis=0), nothing.mean[0], rtol=1e-13)
    assert np.ptp(nothing.final[:, 1]) == 0.0 and (nothing.averages == 0.0).all()
    assert fs.sample_path(PROBLEM, ALGORITHM, 0, seed=1).shape == (1, 0, 2)


def test_sample_path_shapes():
    assert fs.sample_path(PROBLEM, ALGORITHM, 700, seed=1, every=3, n_chains=2).shape == (2, 233, 2)
    assert fs.sample_path(PROBLEM, ALGORITHM, 2, seed=1, every=3).shape == (1, 0, 2)


def test_record_chooses_rounds_and_nothing_else():
    everything, some = run(50), run(50, record=[7, 20])
    assert some.rounds.tolist() == [0, 7, 20, 50]
    assert some.mean.tobytes() == everything.mean[[0, 7, 20, 50]].tobytes()
    assert some.cov.tobytes() == everything.cov[[0, 7, 20, 50]].tobytes()


def test_costs():
    costs = run(10).costs
    assert costs == {"communications": 10, "gradient_evaluations": 10 * 3 * 2,
                     "floats_sent": 10 * 2 * (2 + 2)}
    drawn = fs.FALD(0.1, 4, participation=fs.Participation(5, True))
    costs = fs.simulate(PROBLEM, drawn, 10, 64, seed=1).costs
    assert costs == {"communications": 10, "gradient_evaluations": 10 * 4 * 5,
                     "floats_sent": 10 * 2 * (5 + 2)}


def kept(folder):
    return sorted(folder.glob("block-*.npz"))


def test_a_checkpoint_is_used(tmp_path):
    first = run(checkpoint=tmp_path / "a" / "b")
    stamps = [path.stat().st_mtime_ns for path in kept(tmp_path / "a" / "b")]
    assert stamps and run(checkpoint=tmp_path / "a" / "b").mean.tobytes() == first.mean.tobytes()
    assert [path.stat().st_mtime_ns for path in kept(tmp_path / "a" / "b")] == stamps


def _truncate(path):
    path.write_bytes(path.read_bytes()[:200])


def _flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _alter(path):
    with np.load(path) as stored:
        data = {name: stored[name] for name in stored.files}
    data["mean"] = data["mean"] + 1e-15
    np.savez(path, **data)


def _rename(path):
    path.rename(path.with_name("block-64-192.npz"))


def _foreign(path):
    np.savez(path, mean=np.zeros(3))


def _empty(path):
    path.write_bytes(b"")


def _text(path):
    path.write_text("x" * 99)


@pytest.mark.parametrize("damage", [_truncate, _flip, _alter, _rename, _foreign, _empty, _text])
def test_a_damaged_block_is_refused(tmp_path, damage):
    run(checkpoint=tmp_path, block_size=64)
    damage(kept(tmp_path)[1])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="is damaged or foreign"):
        run(checkpoint=tmp_path, block_size=64)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_removed_block_is_computed_again(tmp_path):
    first = run(checkpoint=tmp_path, block_size=64)
    kept(tmp_path)[1].unlink()
    assert run(checkpoint=tmp_path, block_size=64).cov.tobytes() == first.cov.tobytes()


CHANGES = {
    "seed": {"seed": 4}, "rounds": {"n_rounds": 7}, "replicas": {"n_replicas": 264},
    "record": {"record": [2]}, "covariance": {"covariance": "diagonal"}, "final": {"keep_final": True},
    "noise": {"noise": "single"},
    "average": {"average": "square"}, "start": {"start": [1.0, 0.0]},
    "spread of the start": {"start": fs.Gaussian([0.0, 0.0], [1.0, 1.0])}}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_of_another_simulation_is_refused(tmp_path, change):
    run(checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        run(checkpoint=tmp_path, **CHANGES[change])


@pytest.mark.parametrize(("problem", "algorithm"), [
    (fs.Quadratic(PROBLEM.hessians, PROBLEM.minimizers + 1e-12, PROBLEM.weights), ALGORITHM),
    (fs.Quadratic(PROBLEM.hessians, PROBLEM.minimizers, PROBLEM.weights, 0.1), ALGORITHM),
    (fs.Quadratic(PROBLEM.hessians, PROBLEM.minimizers, [0.7, 0.3]), ALGORITHM),
    (fs.Quadratic(2.0 * PROBLEM.hessians, PROBLEM.minimizers, PROBLEM.weights), ALGORITHM),
    (fs.LinearRegression(np.eye(2), [1.0, 2.0], [0, 1], noise_std=1.0, prior_variance=1.0), ALGORITHM),
    (PROBLEM, fs.FALD(0.11, 3, 1.0, 0.3)), (PROBLEM, fs.FALD(0.1, 2, 1.0, 0.3)),
    (PROBLEM, fs.FALD(0.1, 3, 0.9, 0.3)), (PROBLEM, fs.FAHMC(0.1, 3)),
    (PROBLEM, fs.DESGLD(0.1, fs.network.complete(2))), (PROBLEM, fs.StaleSGLD(0.1, 3)),
    (PROBLEM, fs.FALD(0.1, 3, 1.0, 0.3 + 1e-15)), (PROBLEM, fs.FALD([0.1] * 18, 3, 1.0, 0.3)),
    (PROBLEM, fs.FALD(0.1, 3, 1.0, 0.3, fs.Participation(2, True)))])
def test_a_checkpoint_of_another_problem_is_refused(tmp_path, problem, algorithm):
    run(checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        fs.simulate(problem, algorithm, 6, 200, seed=3, checkpoint=tmp_path)


def test_every_setting_has_a_key_of_its_own():
    """Of all algorithms and problems that are tested, and of each precision and range of rounds."""
    keys = {}
    for kind, row in ROWS.items():
        for name, (problem, algorithm, start) in row.laws.items():
            for options in ({}, {"noise": "single"}, {"seed": 4}, {"record": ()}):
                job = make_job(problem, algorithm, row.n_rounds, 200, **{"seed": 3, "start": start} | options)
                keys.setdefault(job.key(), []).append((kind.__name__, name, *options))
    shared = [names for names in keys.values() if len(names) > 1]
    assert not shared and len(keys) > 100


def test_schemes_do_not_share_a_checkpoint(tmp_path):
    equal = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    fs.simulate(equal, fs.FALD(0.1, participation=fs.Participation(1, True)), 2, 64, seed=1,
                checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another simulation"):
        fs.simulate(equal, fs.FALD(0.1, participation=fs.Participation(1, False)), 2, 64, seed=1,
                    checkpoint=tmp_path)


def test_other_folders_and_files_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="must be a folder"):
        run(checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match=r"not empty and has no manifest\.json"):
        run(checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for text in ("", "{", "[]", "{}", json.dumps({"key": 5})):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(ValueError, match=r"manifest\.json is damaged|another simulation"):
            run(checkpoint=tmp_path)


IMPORT = """
import sys
import fedsim
slow = {"matplotlib", "pandas", "scipy", "numba", "llvmlite", "theory", "reproduce"}
assert not slow & set(sys.modules), slow & set(sys.modules)
fedsim.Quadratic([1.0], [[0.0]]); fedsim.FALD(0.1); fedsim.recorded_rounds(5)
try:
    fedsim.simulate(fedsim.Quadratic([1.0], [[0.0]]), fedsim.FALD(5.0), 2, 64, seed=1)
except fedsim.UnstableStepSize:
    pass
assert not {"numba", "llvmlite"} & set(sys.modules), "numba is imported"
"""


def test_importing_compiles_nothing(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path),
                                "PYTHONPATH": str(Path(fs.__file__).parent.parent)}
    result = subprocess.run([sys.executable, "-c", IMPORT], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
