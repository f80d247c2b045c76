"""Gaussian, Law, Run and the distances: known values, files, tables, floors, intervals and z-scores."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fedsim as fs
import theory
from fedsim.distance import (
    psd_sqrt,
    w1_normal,
    w2_floor,
    w2_floor_parts,
    w2_floor_parts_diagonal,
    w2_gaussian,
)
from fedsim.law import Law

PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.2], [-0.2, 0.7]]], [[0.0, 1.0], [2.0, 3.0]],
                       [0.3, 0.7])
ALGORITHM = fs.FALD(0.1, 3, 1.0, 0.3)
SIGMA = np.array([[5.0, -2.0], [-2.0, 1.0]])


def spd(rng, dim, low=0.1):
    factor = rng.standard_normal((dim, dim))
    return factor @ factor.T / dim + low * np.eye(dim)


# Distances

def test_w2_against_the_textbook_formula():
    """||m1-m2||^2 + tr(S1 + S2 - 2 (S2^(1/2) S1 S2^(1/2))^(1/2)), where it keeps its digits."""
    rng = np.random.default_rng(0)
    for dim in (1, 2, 3, 6):
        for _ in range(5):
            (m1, m2), s1, s2 = rng.standard_normal((2, dim)), spd(rng, dim), spd(rng, dim)
            root = scipy.linalg.sqrtm(s2)
            cross = scipy.linalg.sqrtm(root @ s1 @ root).real
            square = ((m1 - m2) ** 2).sum() + np.trace(s1 + s2 - 2 * cross)
            assert fs.Gaussian(m1, s1).w2(fs.Gaussian(m2, s2)) == pytest.approx(math.sqrt(square), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-290, 1e-180, 1e-120, 1e120, 1e180, 1e290])
def test_w2_does_not_overflow(scale):
    one, other = fs.Gaussian([1.0, 2.0], [4.0, 9.0]), fs.Gaussian([2.0, 0.0], [1.0, 1.0])
    root = math.sqrt(scale)
    for form in (lambda g: g.variances, lambda g: g.cov):  # mean by scale alone, covariance by root^2
        large, far = (fs.Gaussian(g.mean * root, form(g) * scale) for g in (one, other))
        assert large.w2(far) == pytest.approx(root * one.w2(other), rel=1e-12)
        assert fs.Gaussian([scale], [0.0]).w2(fs.Gaussian([-scale], [0.0])) == 2 * scale
        floor, base = (w2_floor(np.diag(g.variances) * s, 100, np.diag(other.variances) * s)
                       for g, s in ((one, scale), (one, 1.0)))
        assert floor == pytest.approx(root * base, rel=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_heavy_tails_raise_the_floor(covariance):
    """A rare client far away: sample variances vary by the fourth moment, not as for a Gaussian law."""
    problem = fs.Quadratic([1.0, 1.0], [[0.0, 0.0], [30.0, 20.0]], [0.98, 0.02])
    algorithm = fs.FALD(0.1, 20, participation=fs.Participation(1, True))
    run = fs.simulate(problem, algorithm, 3, 64 * 400, seed=6, covariance=covariance, keep_final=True)
    gap = run.final - run.final.mean(axis=0)
    variances = (gap**2).mean(axis=0)
    excess = ((gap**4).mean(axis=0) - variances**2).sum() / (2 * variances**2).sum()
    target = problem.target().cov
    parts = (w2_floor_parts_diagonal(run.cov[-1], run.n_replicas) if covariance == "diagonal"
             else w2_floor_parts(run.cov[-1], run.n_replicas, target))
    assert excess > 10.0
    assert run.w2_floor()[-1] ** 2 == pytest.approx(parts[0].sum() + excess * parts[1].sum(), rel=0.1)
    gaussian = dataclasses.replace(run, is_gaussian=True)
    assert run.w2_floor()[-1] > 1.5 * gaussian.w2_floor()[-1]
    assert np.ptp(run.w2_interval()[-1]) > 1.3 * np.ptp(gaussian.w2_interval()[-1])


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_the_half_width_is_a_quantile_of_the_sampling_noise(covariance):
    """A weighted sum of chi-squares, drawn here: its quantiles are met by the gamma law of the interval."""
    problem = fs.Quadratic([[1.0, 3.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    run = fs.simulate(problem, fs.FALD(0.1, 2), 30, 500, seed=4, covariance=covariance)
    cov = run.cov[-1]
    parts = w2_floor_parts_diagonal(cov, 500) if cov.ndim == 1 else w2_floor_parts(
        cov, 500, problem.target().cov)
    noise = np.random.default_rng(0).standard_normal((400_000, sum(map(len, parts)))) ** 2
    drawn = noise @ np.concatenate(parts)
    for level in (0.5, 0.95):
        half = run.w2_interval(level)[-1, 1] - run.w2()[-1]
        assert half**2 == pytest.approx(np.quantile(drawn, level), rel=0.04)


@pytest.mark.parametrize("scale", [1e-200, 1e-140, 1e-60, 1e60, 1e140])
def test_intervals_scale_with_the_problem(scale):
    """Variances times `scale`: the band is that of scale 1 times its root, at any scale."""
    bands = []
    for s in (1.0, scale):
        problem = fs.Quadratic(PROBLEM.hessians / s, PROBLEM.minimizers * math.sqrt(s), PROBLEM.weights)
        run = fs.simulate(problem, fs.FALD(0.1 * s, 3, 1.0, 0.3), 5, 200, seed=2)
        bands.append(np.column_stack([run.w2_interval(), run.w2_floor()]) / math.sqrt(s))
    np.testing.assert_allclose(bands[1], bands[0], rtol=1e-9, atol=1e-12)


def test_w2_keeps_its_digits_near_equality():
    """Covariances a relative 1e-8 apart, condition 1e4: the difference of traces would give 0 or 1e-6."""
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    values = np.array([1.0, 1e-2, 1e-4])
    near = values * (1 + 1e-8) ** 2
    exact = 1e-8 * math.sqrt(values.sum())
    found = fs.Gaussian(np.zeros(3), basis @ np.diag(values) @ basis.T).w2(
        fs.Gaussian(np.zeros(3), basis @ np.diag(near) @ basis.T))
    assert found == pytest.approx(exact, rel=1e-5)


def test_w2_of_singular_laws():
    point, line = fs.Gaussian([0.0, 0.0], np.zeros((2, 2))), fs.Gaussian([3.0, 0.0], np.diag([16.0, 0.0]))
    assert point.w2(line) == pytest.approx(5.0) and point.w2(point) == 0.0
    assert fs.Gaussian([0.0], [0.0]).w2(fs.Gaussian([0.0], [4.0])) == 2.0


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_w2_is_a_metric(seed, dim):
    rng = np.random.default_rng(seed)
    a, b, c = (fs.Gaussian(rng.standard_normal(dim), spd(rng, dim)) for _ in range(3))
    assert a.w2(b) == pytest.approx(b.w2(a), rel=1e-9)
    assert a.w2(a) <= 1e-7
    assert a.w2(c) <= (a.w2(b) + b.w2(c)) * (1 + 1e-12)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    moved = [fs.Gaussian(turn @ g.mean, turn @ g.cov @ turn.T) for g in (a, b)]
    assert moved[0].w2(moved[1]) == pytest.approx(a.w2(b), rel=1e-7)


def test_w2_is_vectorised_and_diagonal_agrees_with_full():
    rng = np.random.default_rng(2)
    means, variances = rng.standard_normal((2, 7, 3)), rng.random((2, 7, 3))
    thin = w2_gaussian(means[0], variances[0], means[1], variances[1])
    full = w2_gaussian(means[0], variances[0][..., None] * np.eye(3), means[1],
                       variances[1][..., None] * np.eye(3))
    np.testing.assert_allclose(thin, full, rtol=1e-10)
    assert thin.shape == (7,)


def test_w1_of_normals_against_quadrature():
    levels = (np.arange(200_000) + 0.5) / 200_000
    z = stats.norm.ppf(levels)
    for m1, s1, m2, s2 in ((0.0, 1.0, 0.5, 1.0), (0.0, 1.0, 0.3, 2.5), (1.0, 0.2, 1.0, 0.4),
                           (2.0, 1.0, -1.0, 3.0)):
        expected = np.abs((m1 + s1 * z) - (m2 + s2 * z)).mean()
        assert w1_normal(m1, s1, m2, s2) == pytest.approx(expected, rel=2e-4)
    assert w1_normal(1.0, 2.0, 4.0, 2.0) == 3.0 and w1_normal(0.0, 1.0, 0.0, 1.0) == 0.0


def test_square_roots():
    rng = np.random.default_rng(3)
    stack = np.array([spd(rng, 4, 0.0) for _ in range(5)])
    root = psd_sqrt(stack)
    np.testing.assert_allclose(root @ root, stack, atol=1e-13)
    np.testing.assert_allclose(root, np.swapaxes(root, 1, 2), atol=1e-14)


# The finite-replica floor

def test_floor_of_an_isotropic_law():
    """d lambda / R + d (d+1) lambda / (4 (R-1))."""
    for dim, scale, replicas in ((1, 1.0, 50), (3, 2.5, 300)):
        expected = dim * scale / replicas + dim * (dim + 1) * scale / (4 * (replicas - 1))
        assert w2_floor(scale * np.eye(dim), replicas) == pytest.approx(math.sqrt(expected), rel=1e-12)
        parts = w2_floor_parts_diagonal(np.full(dim, scale), replicas)
        assert sum(part.sum() for part in parts) == pytest.approx(
            dim * scale / replicas + dim * scale / (2 * (replicas - 1)), rel=1e-12)


def test_floor_of_the_papers_target():
    """7.8e-4 at 300 replicas, 1.92e-3 at 50: what the simulations of FA-LD cannot see beneath."""
    assert w2_floor(SIGMA / 5e4, 300) == pytest.approx(7.82e-4, rel=2e-3)
    assert w2_floor(SIGMA / 5e4, 50) == pytest.approx(1.92e-3, rel=3e-3)


def fits(rng, cov, replicas, n):
    """W2 of `n` Gaussians fitted to samples of N(0, cov), to N(0, cov)."""
    factor = np.linalg.cholesky(cov)
    x = rng.standard_normal((n, replicas, len(cov))) @ factor.T
    mean = x.mean(axis=1)
    centred = x - mean[:, None]
    fitted = np.einsum("nri,nrj->nij", centred, centred) / (replicas - 1)
    return w2_gaussian(mean, fitted, np.zeros(len(cov)), np.broadcast_to(cov, fitted.shape))


@pytest.mark.parametrize("cov", [SIGMA, np.diag([1.0, 0.1, 0.01]), np.eye(1)])
def test_floor_against_simulation(cov, alarm):
    """Mean and variance of W2^2 over fits; the formula is the leading order in 1/R, 1 percent off here."""
    n, replicas = 4000, 400
    square = fits(np.random.default_rng(4), cov, replicas, n) ** 2
    mean_part, cov_part = w2_floor_parts(cov, replicas)
    weights = np.concatenate([mean_part, cov_part])
    expected = weights.sum()
    tolerance = 0.02 * expected  # terms of second order in 1/R
    error = square.std(ddof=1) / math.sqrt(n)
    excess = max(0.0, abs(square.mean() - expected) - tolerance)
    alarm.assert_normal(excess / error, "floor")
    spread = 2 * (weights**2).sum()
    deviations = (square - square.mean()) ** 2
    excess = max(0.0, abs(deviations.mean() - spread) - 0.05 * spread)
    alarm.assert_normal(excess * math.sqrt(n) / deviations.std(ddof=1), "variance of W2 squared")
    assert w2_floor(cov, replicas) == pytest.approx(math.sqrt(expected))


def test_floor_against_a_commuting_reference():
    """The formula for a fit of diag(lam) compared with diag(nu)."""
    lam, nu, replicas = np.array([1.0, 0.3]), np.array([0.7, 0.5]), 100
    cross = np.sqrt(lam * nu)
    total = sum((lam[i] * lam[j] + (i == j) * lam[i] ** 2) * nu[i] * nu[j]
                / (cross[i] * cross[j] * (cross[i] + cross[j])) for i in range(2) for j in range(2))
    expected = lam.sum() / replicas + total / (2 * (replicas - 1))
    assert w2_floor(np.diag(lam), replicas, np.diag(nu)) ** 2 == pytest.approx(expected, rel=1e-12)


def test_a_run_reports_floor_and_interval(alarm):
    """Replicas started in the target and left there: W2 is all noise, and the floor says how much."""
    target = PROBLEM.target()
    runs = [fs.simulate(PROBLEM, ALGORITHM, 0, 300, seed=seed, start=target) for seed in range(400)]
    square = np.array([run.w2()[0] ** 2 for run in runs])
    floor = w2_floor(target.cov, 300)
    assert runs[0].w2_floor()[0] == pytest.approx(float(w2_floor(runs[0].cov[0], 300, target.cov)), rel=1e-12)
    alarm.assert_normal(max(0.0, abs(square.mean() - floor**2) - 0.02 * floor**2) * 20 / square.std(ddof=1))
    covered = sum(run.w2_interval(0.9)[0, 0] == 0.0 for run in runs)  # the true distance is zero
    alarm.assert_pvalue(stats.binomtest(covered, 400, 0.9, alternative="less").pvalue, "coverage")
    assert covered < 400


def test_an_interval_holds_the_exact_distance():
    law = theory.exact_law(PROBLEM, ALGORITHM, 30)
    run = fs.simulate(PROBLEM, ALGORITHM, 30, 2000, seed=1)
    low, high = run.w2_interval(0.999999).T
    assert ((low <= law.w2()) & (law.w2() <= high)).all()
    assert (low <= run.w2()).all() and (run.w2() <= high).all() and (low >= 0.0).all()
    narrow = run.w2_interval(0.5).T
    assert (narrow[1] - narrow[0] <= high - low + 1e-15).all()
    for level in (0.0, 1.0, -1.0, float("nan"), "x"):
        with pytest.raises(ValueError, match="level="):
            run.w2_interval(level)


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
    wanted = [stats.norm.isf(stats.t.sf(4.0, 19)), -stats.norm.isf(stats.t.sf(3.0, 19))]
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
    table = runs()["full"].to_frame()
    assert list(table.columns) == ["round", "mean_0", "mean_1", "var_0", "var_1", "w2", "w2_low", "w2_high",
                                   "w2_floor"]
    law = runs()["full"]
    np.testing.assert_array_equal(table["w2"], law.w2())
    np.testing.assert_array_equal(table["var_1"], law.cov[:, 1, 1])
    np.testing.assert_array_equal(table[["w2_low", "w2_high"]], law.w2_interval())
    assert not table.isna().any().any()
    assert list(runs()["none"].to_frame().columns) == ["round", "mean_0", "mean_1"]
    assert "w2" not in runs()["diagonal"].to_frame()  # the target has correlations
    assert "w2" in runs()["law"].to_frame() and "w2" not in runs()["without a target"].to_frame()


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
