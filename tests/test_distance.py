"""W2 between Gaussians, W1, and what a finite number of replicas adds to W2."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg
from examples_of import ALGORITHM, PROBLEM, SIGMA
from hypothesis import given, strategies as st
from problems import spd
from scipy import stats

import fedsim as fs
import theory
from fedsim.laws.distance import (
    psd_sqrt,
    w1_normal,
    w2_floor,
    w2_floor_parts,
    w2_floor_parts_diagonal,
    w2_gaussian,
)


def test_w2_against_the_textbook_formula():
    """||m1-m2||^2 + tr(S1 + S2 - 2 (S2^(1/2) S1 S2^(1/2))^(1/2)), where it keeps its digits."""
    rng = np.random.default_rng(0)
    for dim in (1, 2, 3, 6):
        for _ in range(5):
            (m1, m2), (s1, s2) = rng.standard_normal((2, dim)), spd(rng, 2, dim, 0.1)
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
    """A weighted sum of chi-squares, drawn here: its quantiles are met by the gamma law of the interval.

    Of variances alone it is the larger one of independent coordinates and of those that all err together.
    """
    problem = fs.Quadratic([[1.0, 3.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    run = fs.simulate(problem, fs.FALD(0.1, 2), 30, 500, seed=4, covariance=covariance)
    cov = run.cov[-1]
    parts = w2_floor_parts_diagonal(cov, 500) if cov.ndim == 1 else w2_floor_parts(
        cov, 500, problem.target().cov)
    noise = np.random.default_rng(0).standard_normal((400_000, sum(map(len, parts)))) ** 2
    drawn = [noise @ np.concatenate(parts)]
    if cov.ndim == 1:
        drawn.append(noise[:, :2] @ [part.sum() for part in parts])
    for level in (0.5, 0.95):
        half = run.w2_interval(level)[-1, 1] - run.w2()[-1]
        assert half**2 == pytest.approx(max(np.quantile(one, level) for one in drawn), rel=0.04)


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
    a, b, c = (fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim, 0.1)[0]) for _ in range(3))
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
    stack = spd(rng, 5, 4, 0.0)
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
