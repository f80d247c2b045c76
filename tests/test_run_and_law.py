"""Gaussian, Law and Run: samples, z-scores, files and tables."""

import dataclasses
import math
import re

import numpy as np
import pytest
from examples_of import ALGORITHM, PROBLEM, SIGMA
from scipy import sparse, stats

import fedsim as fs
import theory
from fedsim.laws.law import Law


def test_z_scores():
    law = theory.exact_law(PROBLEM, ALGORITHM, 6)
    run = fs.simulate(PROBLEM, ALGORITHM, 6, 5000, seed=1, record=[2])
    z = run.z_scores(law)
    assert z.mean.shape == (3, 2) and z.cov.shape == (3, 2, 2)
    assert (z.mean[0] == 0.0).all() and (z.cov[0] == 0.0).all()  # the start is a point
    exact = law.cov[2]
    np.testing.assert_allclose(z.mean[1], (run.mean[1] - law.mean[2]) / np.sqrt(np.diag(exact) / 5000))
    error = np.sqrt((np.outer(np.diag(exact), np.diag(exact)) + exact**2) / 4999)
    np.testing.assert_allclose(z.cov[1], (run.cov[1] - exact) / error)
    assert z.largest() == max(np.abs(z.mean).max(), np.abs(z.cov).max())
    wrong = fs.simulate(PROBLEM, ALGORITHM, 6, 5000, seed=1, start=[1.0, 0.0])
    assert wrong.z_scores(law, same=False).largest() == math.inf  # another point at the start
    thin = fs.simulate(PROBLEM, ALGORITHM, 6, 5000, seed=1, covariance="diagonal")
    np.testing.assert_allclose(thin.z_scores(law).cov[1:], np.diagonal(
        fs.simulate(PROBLEM, ALGORITHM, 6, 5000, seed=1).z_scores(law).cov, axis1=1, axis2=2)[1:])
    assert fs.simulate(PROBLEM, ALGORITHM, 6, 64, seed=1, covariance="none").z_scores(law).cov is None


@pytest.mark.parametrize("drawn", [None, fs.Participation(1, True)])
def test_z_scores_at_a_point_start_know_rounding(drawn):
    """The mean of equal numbers is off by its last digit: no deviation from a law without variance."""
    algorithm = dataclasses.replace(ALGORITHM, participation=drawn)
    start = [2.24475663, -1e9 / 3.0]
    law = theory.exact_law(PROBLEM, algorithm, 2, start=start)
    for covariance in ("full", "diagonal"):
        run = fs.simulate(PROBLEM, algorithm, 2, 1300, seed=1, start=start, covariance=covariance)
        assert run.cov[0].any() or run.mean[0].tolist() == start
        z = run.z_scores(law if drawn is None or covariance == "full" else theory.exact_law(
            PROBLEM, algorithm, 2, start=start, covariance=covariance))
        assert (z.mean[0] == 0.0).all() and (z.cov[0] == 0.0).all() and np.isfinite(z.largest())
    with pytest.raises(ValueError, match=r"law=3 must be a fedsim\.Law"):
        run.z_scores(3)


def test_z_scores_of_mixtures_need_leaves():
    drawn = fs.FALD(0.1, 3, participation=fs.Participation(1, True))
    law = theory.exact_law(PROBLEM, drawn, 3)
    with pytest.raises(ValueError, match="n_replicas=640 must be at least 1280"):
        fs.simulate(PROBLEM, drawn, 3, 640, seed=1).z_scores(law)
    assert np.isfinite(fs.simulate(PROBLEM, drawn, 3, 1280, seed=1).z_scores(law).largest())
    with pytest.raises(ValueError, match="law has dimension 1; it must be 2"):
        fs.simulate(PROBLEM, drawn, 3, 1280, seed=1).z_scores(
            theory.exact_law(fs.Quadratic([1.0], [[0.0]]), fs.FALD(0.1), 3))


def test_few_leaves_count_as_students():
    """Errors from 20 leaves: a score is a normal one only after Student's law with 19 degrees of freedom."""
    law = Law(np.arange(1), np.zeros((1, 2)), np.ones((1, 2)), is_gaussian=False)
    run = fs.Run(np.arange(1), np.zeros((1, 2)), np.ones((1, 2)), is_gaussian=False, n_replicas=1280,
                 n_leaves=20, leaf_cov=np.array([[1.4, 0.7]]), spread=np.full((1, 2), 0.1))
    # the spread of a variance that is smaller than the law's is brought to the law's size
    wanted = [stats.norm.isf(stats.t.sf(4.0, 19)), -stats.norm.isf(stats.t.sf(0.7 * 3.0, 19))]
    np.testing.assert_allclose(run.z_scores(law).cov, [wanted], rtol=1e-10)
    assert 0.0 < wanted[0] < 3.6


# Gaussian

def test_gaussian_samples(alarm):
    law = fs.Gaussian([1.0, -2.0], SIGMA)
    drawn = law.sample(100_000, 7)
    assert drawn.shape == (100_000, 2) and drawn.tobytes() == law.sample(100_000, 7).tobytes()
    assert drawn.tobytes() != law.sample(100_000, 8).tobytes()
    alarm.assert_normal((drawn.mean(axis=0) - law.mean) / np.sqrt(np.diag(SIGMA) / 1e5), "mean")
    whitened = np.linalg.solve(np.linalg.cholesky(SIGMA), (drawn - law.mean).T)
    alarm.assert_pvalue([stats.kstest(row, "norm").pvalue for row in whitened], "normality")
    thin = fs.Gaussian([0.0, 0.0], [4.0, 9.0]).sample(100_000, 7)
    freedom = stats.chi2(99_999)
    alarm.assert_pvalue(2 * np.minimum(freedom.cdf(99_999 * thin.var(axis=0, ddof=1) / [4, 9]),
                                       freedom.sf(99_999 * thin.var(axis=0, ddof=1) / [4, 9])), "variance")


def test_gaussian_properties():
    thin, full = fs.Gaussian([0.0, 1.0], [2.0, 3.0]), fs.Gaussian([0.0, 1.0], np.diag([2.0, 3.0]))
    assert thin.is_diagonal and not full.is_diagonal and thin.dim == 2
    np.testing.assert_array_equal(thin.cov, full.cov)
    np.testing.assert_array_equal(full.variances, [2.0, 3.0])
    assert thin.w2(full) == pytest.approx(0.0, abs=1e-12) and "dim=2" in repr(thin)


# Law and Run: access, files, tables

def runs():
    drawn = fs.FALD(0.1, 3, participation=fs.Participation(1, True))
    return {"full": fs.simulate(PROBLEM, ALGORITHM, 5, 200, seed=1, keep_final=True, average="square"),
            "diagonal": fs.simulate(PROBLEM, ALGORITHM, 5, 200, seed=1, covariance="diagonal"),
            "none": fs.simulate(PROBLEM, ALGORITHM, 5, 200, seed=2**64 - 1, covariance="none"),
            "drawn": fs.simulate(PROBLEM, drawn, 5, 200, seed=1),
            "law": Law(np.arange(2), np.zeros((2, 2)), np.ones((2, 2)), fs.Gaussian([0.0, 0.0], [1.0, 2.0]),
                       label="by hand"),
            "without a target": Law(np.arange(2), np.zeros((2, 2)), np.array([np.eye(2)] * 2)),
            "with clients": Law(np.arange(2), np.zeros((2, 1)), np.ones((2, 1)), None, True, (
                Law(np.arange(2), np.ones((2, 1)), None),
                Law(np.arange(2), np.ones((2, 1)), np.ones((2, 1)))))}


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and (
            a.tobytes() == b.tobytes())
    if isinstance(a, fs.Gaussian):
        return a.is_diagonal == b.is_diagonal and same(a.mean, b.mean) and same(a.cov, b.cov)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Law):
        return type(a) is type(b) and all(same(value, vars(b)[name]) for name, value in vars(a).items())
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("kind", runs())
def test_files_keep_everything(kind, tmp_path):
    law = runs()[kind]
    law.save(tmp_path / "law.npz")
    back = fs.load(tmp_path / "law.npz")
    assert same(law, back) and back.summary() == law.summary()
    assert [path.name for path in tmp_path.iterdir()] == ["law.npz"]
    law.save(tmp_path / "law.npz")  # again, over the old one
    with np.load(tmp_path / "law.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored.files)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "file.npz"
    law = runs()["full"]
    law.save(path)
    good = path.read_bytes()
    np.savez(tmp_path / "other.npz", mean=np.zeros(3))
    with np.load(path) as stored:
        without_mean = {name: stored[name] for name in stored.files if name != "mean"}
    np.savez(tmp_path / "less.npz", **without_mean)
    for data in (b"", b"text", good[:100], good[:-30], (tmp_path / "other.npz").read_bytes(),
                 (tmp_path / "less.npz").read_bytes(), good[:400] + b"\xff\xff" + good[402:]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"must be a file written by Law\.save"):
            fs.load(path)
    with pytest.raises(FileNotFoundError):
        fs.load(tmp_path / "absent.npz")


def test_an_interrupted_save_keeps_the_old_file(tmp_path, monkeypatch):
    law, path = runs()["full"], tmp_path / "law.npz"
    law.save(path)
    before = path.read_bytes()

    def interrupted(file, **data):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        law.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["law.npz"]


def test_tables():
    table = runs()["full"].to_frame(wide=True)
    assert list(table.columns) == ["round", "mean_0", "mean_1", "var_0", "var_1", "w2", "w2_low", "w2_high",
                                   "w2_floor"]
    law = runs()["full"]
    np.testing.assert_array_equal(table["w2"], law.w2())
    np.testing.assert_array_equal(table["var_1"], law.cov[:, 1, 1])
    np.testing.assert_array_equal(table[["w2_low", "w2_high"]], law.w2_interval())
    assert not table.isna().any().any()
    assert list(runs()["none"].to_frame(wide=True).columns) == ["round", "mean_0", "mean_1"]
    assert "w2" not in runs()["diagonal"].to_frame(wide=True)  # the target has correlations
    assert "w2" in runs()["law"].to_frame(wide=True)
    assert "w2" not in runs()["without a target"].to_frame(wide=True)


def test_summaries():
    text = runs()["full"].summary()
    for part in ("FALD on Quadratic", "d=2", "rounds 0..5", "200 replicas, seed 1", "W2 to target", "floor",
                 "communications 5", "gradient evaluations 30"):
        assert part in text
    assert "not Gaussian" in runs()["drawn"].summary() and "not Gaussian" not in text
    assert "W2" not in runs()["none"].summary() and "by hand" in runs()["law"].summary()


def test_at_and_w2():
    run = runs()["full"]
    assert run.at(3).w2(PROBLEM.target()) == pytest.approx(run.w2()[3], rel=1e-12)
    other = fs.Gaussian([5.0, 5.0], np.eye(2))
    assert run.w2(other)[2] == pytest.approx(run.at(2).w2(other), rel=1e-12)
    sparse = fs.simulate(PROBLEM, ALGORITHM, 5, 64, seed=1, record=())
    for bad in (3, 9):
        with pytest.raises(ValueError, match=f"round={bad} was not recorded"):
            sparse.at(bad)
    with pytest.raises(ValueError, match="covariance='none'"):
        runs()["none"].w2()
    with pytest.raises(ValueError, match="covariance='diagonal' keeps variances only"):
        runs()["diagonal"].w2()
    assert runs()["diagonal"].w2(fs.Gaussian([0.0, 0.0], [1.0, 1.0])).shape == (6,)
    with pytest.raises(ValueError, match="target=None"):
        runs()["without a target"].w2()
    with pytest.raises(ValueError, match=r"target\.mean has shape \(1,\)"):
        run.w2(fs.Gaussian([0.0], [1.0]))


def test_recorded_rounds():
    assert fs.recorded_rounds(0).tolist() == [0]
    assert fs.recorded_rounds(2000).tolist() == list(range(2001))
    assert fs.recorded_rounds(50, [50, 3, 3, 0]).tolist() == [0, 3, 50]
    assert fs.recorded_rounds(50, []).tolist() == [0, 50] == fs.recorded_rounds(50, ()).tolist()
    for n_rounds in (2001, 10**5, 10**9):
        rounds = fs.recorded_rounds(n_rounds)
        assert rounds[0] == 0 and rounds[1] == 1 and rounds[-1] == n_rounds
        assert (np.diff(rounds) > 0).all() and 400 <= len(rounds) <= 425
        late = rounds[rounds > 1000]
        assert (late[1:] / late[:-1]).max() < 1.1


def test_a_distance_to_what_is_not_known_says_so():
    law = fs.Law(np.arange(2), np.zeros((2, 1)), np.ones((2, 1, 1)), None)
    with pytest.raises(ValueError, match=r"target=None: the target .* is not known in closed form; pass a"):
        law.w2()


NEGATIVE = np.array([[1.0, -0.9, -0.9], [-0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]])
"""Correlations below 1, and smallest eigenvalue -0.8."""


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1.0, 1e150, 1.7e308])
def test_a_negative_eigenvalue_is_refused_whoever_makes_the_law(size):
    cov = size * np.array([np.eye(3), NEGATIVE])
    message = re.escape(f"cov[1] has smallest eigenvalue {-0.8 * size:g}; it must be positive semidefinite")
    with pytest.raises(ValueError, match=message):
        Law(np.arange(2), np.zeros((2, 3)), cov)
    with pytest.raises(ValueError, match=message):
        fs.Run(np.arange(2), np.zeros((2, 3)), cov, n_replicas=64)
    assert Law(np.arange(2), np.zeros((2, 3)), cov[:1].repeat(2, axis=0)).dim == 3


@pytest.mark.parametrize("dim", [2, 7, 60])
def test_semidefinite_to_rounding_is_no_negative_eigenvalue(dim):
    """Of fewer replicas than dimensions, of noise in few directions, of entries that fill the range."""
    rng = np.random.default_rng(dim)
    few = rng.standard_normal((max(dim // 3, 1), dim))
    for cov in (few.T @ few, np.ones((dim, dim)), np.diag(np.arange(dim) % 2.0), np.zeros((dim, dim)),
                np.outer(few[0], few[0])):
        for size in (1e-300, 1e-20, 1.0, 1e20, 1e300):
            assert Law(np.arange(1), np.zeros((1, dim)), size * cov[None]).dim == dim
    problem = fs.Quadratic(np.ones((2, dim)), np.zeros((2, dim)))
    run = fs.simulate(problem, fs.FALD(0.1, 2), 2, 3, seed=1)
    assert Law(run.rounds, run.mean, run.cov).dim == run.dim == dim


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, np.int64])
def test_covariances_of_other_types_are_judged_alike(kind):
    root = np.random.default_rng(3).standard_normal((2, 5))
    full = [root.T @ root] if kind is np.longdouble else []
    for cov in (np.eye(5), np.ones((5, 5)), *full):
        assert Law(np.arange(1), np.zeros((1, 5)), cov[None].astype(kind)).dim == 5
    with pytest.raises(ValueError, match=r"cov\[0\] has smallest eigenvalue -"):
        Law(np.arange(1), np.zeros((1, 3)), (10.0 * NEGATIVE[None]).astype(kind))


def test_sparse_matrices_are_no_arrays_of_a_law():
    for mean, cov, name in ((sparse.eye(2), None, "mean"), (np.zeros((2, 2)), sparse.eye(2), "cov")):
        with pytest.raises(ValueError, match=f"^{name}=.*must be an array of real numbers"):
            Law(np.arange(2), mean, cov)
