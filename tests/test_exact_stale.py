"""Exact laws with stale gradients: closed forms, companion form, brute force, and time averages."""

from __future__ import annotations

import dataclasses
import time

import naive_stale
import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import minimize_scalar

import fedsim as fs
import theory
from theory.exact.delay import (
    average_law,
    combine_servers,
    companion,
    continuous_variance,
    long_run_variance,
    stability_limit,
    stationary_autocovariance,
    stationary_variance,
)
from theory.rates import loglog_slope

TAUS = (0, 1, 2, 3, 5, 10, 20)


def dense_problem(seed=0, n_clients=3, dim=3):
    """Curvatures and noise covariances that do not commute."""
    rng = np.random.default_rng(seed)
    factor, root = rng.standard_normal((2, n_clients, dim, dim))
    hessians = factor @ np.swapaxes(factor, 1, 2) + np.eye(dim)
    return fs.Quadratic(hessians, rng.standard_normal((n_clients, dim)),
                        rng.dirichlet(np.ones(n_clients) * 4), root @ np.swapaxes(root, 1, 2))


def dense_companion(problem, algorithm):
    """Map, noise and width of the state (theta_l, ..., theta_{l-tau}, q) with matrices, fixed age."""
    pooled, h, tau = problem.pooled(), algorithm.step_size, algorithm.staleness
    friction, d = getattr(algorithm, "friction", None), problem.dim
    a, unit = pooled.dense_hessians[0], np.eye(d)
    given = pooled.noise_covariances
    size = d * (tau + 1) + (d if friction else 0)
    m, q = np.zeros((size, size)), np.zeros((size, size))
    m[d:d * (tau + 1), :d * tau] = np.eye(d * tau)
    old = slice(d * tau, d * tau + d)
    noise = 2 * h * (friction or 1.0) * unit + h**2 * (0.0 if given is None else given[0])
    m[:d, :d] = unit
    if friction is None:
        m[:d, old] -= h * a
        q[:d, :d] = noise
    else:
        keep = 1.0 - friction * h
        m[-d:, -d:], m[:d, -d:] = keep * unit, h * keep * unit
        m[-d:, old] -= h * a
        m[:d, old] -= h * h * a
        q[-d:, -d:], q[:d, :d] = noise, h * h * noise
        q[:d, -d:] = q[-d:, :d] = h * noise
    return m, q


# --- one dimension, closed forms

@pytest.mark.parametrize("tau", TAUS)
def test_closed_forms_solve_the_lyapunov_equation(tau):
    for share in (0.02, 0.3, 0.7, 0.95):
        a, noise = 3.0, 2.5
        h = share * stability_limit(tau) / a
        m = companion(a, h, tau)
        q = np.zeros_like(m)
        q[0, 0] = 2 * h + h**2 * noise
        cov = scipy.linalg.solve_discrete_lyapunov(m, q, method="direct")  # the other is good to 1e-12 only
        found = stationary_autocovariance(a, h, tau, 3 * tau + 9, noise)
        power = np.eye(tau + 1)
        for value in found:  # Cov(theta_{l+k}, theta_l)
            assert abs((power @ cov)[0, 0] - value) <= 1e-12 * found[0]
            power = power @ m
        assert stationary_variance(a, h, tau, noise) == pytest.approx(cov[0, 0], rel=1e-12)
        problem = fs.Quadratic([a], [[0.7]], None, np.sqrt(noise))
        law = theory.stationary_law(problem, fs.StaleSGLD(h, tau))
        assert law.cov[0, 0] == pytest.approx(found[0], rel=1e-12)
        assert law.mean[0] == pytest.approx(0.7, rel=1e-14)


@pytest.mark.parametrize("tau", [*TAUS, 50])
def test_the_companion_radius_crosses_one_at_the_limit(tau):
    limit = stability_limit(tau)
    radius = [np.abs(np.linalg.eigvals(companion(1.0, factor * limit, tau))).max()
              for factor in (1 - 1e-6, 1.0, 1 + 1e-6)]
    assert radius[0] < 1.0 - 1e-9 and abs(radius[1] - 1.0) < 1e-12 and radius[2] > 1.0 + 1e-9
    stability = fs.StaleSGLD(0.5 * limit / 4.0, tau).stability(fs.Quadratic([4.0], [[0.0]]))
    assert stability.max_step_size == pytest.approx(limit / 4.0, rel=1e-12)
    assert stability.radius == pytest.approx(np.abs(np.linalg.eigvals(
        companion(4.0, 0.5 * limit / 4.0, tau))).max(), rel=1e-9)


def test_values_printed_in_the_derivation():
    assert [round(stability_limit(tau), 6) for tau in (0, 1, 2, 5, 10, 15, 20)] == [
        2.0, 1.0, 0.618034, 0.28463, 0.14946, 0.101298, 0.076605]
    h = 1e-4  # the leading bias of theta^2 is tau h, and h / 2 of the discretisation, for any curvature
    for a in (0.5, 2.0):
        for tau in (1, 4, 10):
            bias = stationary_variance(a, h, tau) - 1.0 / a
            assert bias == pytest.approx(tau * h + 0.5 * h, rel=0.01)
    assert stationary_variance(2.0, 1e-5, 20_000) == pytest.approx(continuous_variance(2.0, 0.2), rel=1e-3)


def test_the_variance_depends_on_staleness_though_the_mean_part_does_not():
    """L h Var of the average of squares at h = .005, a = 1: it grows with the age except at small h a tau."""
    h = 0.005
    for delay, expected in ((0.0, 2.0), (0.05, 2.11), (0.1, 2.24), (0.25, 2.78), (0.5, 4.81), (1.0, 40.7)):
        assert h * long_run_variance(1.0, h, round(delay / h)) == pytest.approx(expected, rel=4e-3)
    assert h * long_run_variance(1.0, h, 300) == pytest.approx(4e4, rel=0.02)
    parts = [long_run_variance(1.0, h, tau, mean=3.0) - long_run_variance(1.0, h, tau)
             for tau in (0, 10, 100)]
    np.testing.assert_allclose(parts, 4 * 9.0 * 2 * h / h**2, rtol=1e-9)
    lags = stationary_autocovariance(1.0, h, 10, 40_000)
    assert lags[0] + 2 * lags[1:].sum() == pytest.approx(2 * h / h**2, rel=1e-9)


# --- any dimension

FIXED = [fs.StaleSGLD(0.03, 5), fs.StaleSGLD(0.1, 0), fs.StaleSGLD(0.08, 1), fs.StaleSGHMC(0.08, 2.0, 3),
         fs.StaleSGHMC(0.2, 1.0, 0), fs.StaleSGHMC(0.1, 10.0, 1)]


@pytest.mark.parametrize("algorithm", FIXED, ids=repr)
def test_fixed_ages_against_dense_matrices(algorithm):
    problem = dense_problem()
    start = fs.Gaussian([3.0, -1.0, 0.5], np.diag([2.0, 0.5, 1.0]) + 0.3)
    law = theory.exact_law(problem, algorithm, 40, start=start)
    m, q = dense_companion(problem, algorithm)
    d, tau = problem.dim, algorithm.staleness
    spread = np.zeros((len(m), d))
    spread[:d * (tau + 1)] = np.tile(np.eye(d), (tau + 1, 1))
    mean, cov = spread @ (start.mean - problem.minimizer), spread @ start.cov @ spread.T
    for r in range(41):
        np.testing.assert_allclose(law.mean[r], problem.minimizer + mean[:d], rtol=0, atol=1e-12)
        np.testing.assert_allclose(law.cov[r], cov[:d, :d], rtol=0, atol=1e-12)
        mean, cov = m @ mean, m @ cov @ m.T + q
    stationary = theory.stationary_law(problem, algorithm)
    exact = scipy.linalg.solve_discrete_lyapunov(m, q)[:d, :d]
    np.testing.assert_allclose(stationary.cov, exact, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(stationary.mean, problem.minimizer, rtol=1e-14)


@pytest.mark.parametrize("algorithm", FIXED, ids=repr)
def test_powers_listed_ages_and_the_long_run_agree(algorithm):
    problem, n, record = dense_problem(1), 6000, [1, 7, 100, 5000]
    listed = dataclasses.replace(algorithm, staleness=algorithm.ages(n).tolist())
    by_powers = theory.exact_law(problem, algorithm, n, start=[1.0, 2.0, 3.0], record=record)
    stepped = theory.exact_law(problem, listed, n, start=[1.0, 2.0, 3.0], record=record)
    np.testing.assert_allclose(by_powers.mean, stepped.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(by_powers.cov, stepped.cov, rtol=1e-12, atol=1e-13)
    far = theory.exact_law(problem, algorithm, 10**9, start=[1.0, 2.0, 3.0], record=())
    stationary = theory.stationary_law(problem, algorithm)
    np.testing.assert_allclose(far.cov[-1], stationary.cov, rtol=1e-12)
    np.testing.assert_allclose(far.mean[-1], stationary.mean, rtol=1e-12)


def test_ages_and_step_sizes_that_vary_against_responses():
    """Every iterate as a linear function of every noise, one dimension."""
    n = 60
    model = fs.GaussianMean([1.0, 2.0, 4.0])
    for staleness in (fs.Workers(5, seed=4), fs.Workers(3, "pareto", seed=1, cap=4)):
        steps = np.linspace(0.08, 0.02, n)
        for algorithm in (fs.StaleSGLD(steps, staleness), fs.StaleSGHMC(steps, 3.0, staleness)):
            law = theory.exact_law(model, algorithm, n, start=fs.Gaussian([2.0], [[0.3]]))
            squares = sum(law.mean[1:, 0] ** 2 + law.cov[1:, 0, 0]) / n
            mean, variance = naive_stale.average_of_squares(model, algorithm, n, 2.0, 0.3)
            assert squares == pytest.approx(mean, rel=1e-12)
            found = average_law(model, algorithm, n, start=fs.Gaussian([2.0], [[0.3]]))
            assert found.mean[-1] == pytest.approx(mean, rel=1e-12)
            assert found.variance[-1] == pytest.approx(variance, rel=1e-12)


def test_covariance_keywords_and_diagonal_problems():
    rng = np.random.default_rng(2)
    curvature, minimizers = rng.uniform(0.5, 2.0, (2, 4)), rng.standard_normal((2, 4))
    noise = np.broadcast_to(0.5 * np.eye(4) + 0.2, (2, 4, 4))
    workers = fs.Workers(3, seed=1)
    for algorithm in (fs.StaleSGLD(0.1, 2), fs.StaleSGHMC(0.2, 2.0, workers)):
        for gradient_noise in (None, 0.7, noise):
            for start in (None, fs.Gaussian(np.ones(4), np.arange(1.0, 5.0)),
                          fs.Gaussian(np.ones(4), np.eye(4) + 0.5)):
                problem = fs.Quadratic(curvature, minimizers, None, gradient_noise)
                dense = fs.Quadratic(curvature[:, :, None] * np.eye(4), minimizers, None, gradient_noise)
                full = theory.exact_law(problem, algorithm, 30, start=start)
                other = theory.exact_law(dense, algorithm, 30, start=start)
                np.testing.assert_allclose(full.cov, other.cov, rtol=1e-11, atol=1e-13)
                diagonal = theory.exact_law(problem, algorithm, 30, start=start, covariance="diagonal")
                np.testing.assert_allclose(diagonal.cov, np.diagonal(full.cov, axis1=1, axis2=2), rtol=1e-12)
                none = theory.exact_law(dense, algorithm, 30, start=start, covariance="none")
                np.testing.assert_allclose(none.mean, full.mean, rtol=1e-12, atol=1e-13)
                assert none.cov is None


def test_sampled_rounds_follow_the_exact_law(alarm):
    problem = dense_problem(3)
    start = np.ones(3)
    for algorithm in (fs.StaleSGLD(0.05, 3), fs.StaleSGHMC(0.1, 2.0, fs.Workers(3, seed=2))):
        law = theory.exact_law(problem, algorithm, 15, start=start, record=[6])
        drawn = theory.exact.sample_rounds(problem, algorithm, 15, 40_000, 5, start=start, record=[6])
        for i in (1, 2):
            points = drawn[:, i]
            deviation = np.sqrt(np.diagonal(law.cov[i]) / len(points))
            alarm.assert_normal((points.mean(axis=0) - law.mean[i]) / deviation, "mean")
            squares = (points - law.mean[i]) ** 2
            error = squares.std(axis=0, ddof=1) / np.sqrt(len(points))
            alarm.assert_normal((squares.mean(axis=0) - np.diagonal(law.cov[i])) / error, "variance")


def test_unstable_steps_are_refused_alike():
    problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    limit = stability_limit(4) / 2.0
    algorithm = fs.StaleSGLD(1.01 * limit, 4)
    calls = [lambda: theory.stationary_law(problem, algorithm),
             lambda: theory.exact_law(problem, algorithm, 5),
             lambda: fs.simulate(problem, algorithm, 5, 64, seed=1),
             lambda: average_law(problem, algorithm, 5)]
    words = rf"step_size={1.01 * limit:g}.*limit {limit:.6g}"
    for call in calls:
        with pytest.raises(fs.UnstableStepSize, match=words) as caught:
            call()
        assert caught.value.limit == pytest.approx(limit, rel=1e-12)
    law = theory.exact_law(problem, algorithm, 300, allow_unstable=True, record=())
    assert np.isfinite(law.cov).all() and law.cov[-1, 0, 0] > 10.0
    with pytest.raises(ValueError, match="leaves the range of float64"):
        theory.exact_law(problem, fs.StaleSGLD(5.0, 1), 3000, allow_unstable=True)


def test_what_has_no_stationary_or_no_exact_law_says_why():
    problem = fs.Quadratic([1.0], [[0.0]])
    with pytest.raises(theory.NoExactLaw, match="never settle"):
        theory.stationary_law(problem, fs.StaleSGLD(0.1, fs.Workers(3)))
    with pytest.raises(theory.NoExactLaw, match="schedule"):
        theory.stationary_law(problem, fs.StaleSGLD(fs.schedules.Harmonic(9.0, 1.0), 2))
    round_robin = fs.StaleSGLD(0.1, fs.Workers(4, "deterministic"))
    assert theory.stationary_law(problem, round_robin).cov[0, 0] == pytest.approx(
        stationary_variance(1.0, 0.1, 3), rel=1e-12)
    with pytest.raises(theory.NoExactLaw, match="n_rounds=100000000"):
        theory.exact_law(problem, fs.StaleSGLD(0.1, fs.Workers(3)), 10**8)
    with pytest.raises(theory.NoExactLaw, match="FALD"):
        average_law(problem, fs.FALD(0.1), 5)
    with pytest.raises(ValueError, match="staleness has 3 entries"):
        theory.exact_law(problem, fs.StaleSGLD(0.1, [0, 1, 1]), 4)


# --- time averages

def test_averages_against_lags():
    """All L at once, against the slow twin that goes by lags."""
    for tau in (0, 1, 7):
        h = 0.05
        twin = naive_stale.by_diagonals(2.0, h, tau, 2 * h + h**2 * 0.3, 1.5, 400)
        problem = fs.Quadratic([2.0], [[0.0]], None, np.sqrt(0.3))
        law = average_law(problem, fs.StaleSGLD(h, tau), 400, start=[1.5])
        np.testing.assert_allclose(law.variance, twin, rtol=1e-11)
        np.testing.assert_array_equal(law.lengths, np.arange(1, 401))
        np.testing.assert_allclose(law.mse, law.bias**2 + law.variance, rtol=1e-15)
        assert law.truth == pytest.approx(0.5)


def test_averages_of_many_coordinates():
    """Rotations change nothing; coordinates that are independent add up."""
    rng = np.random.default_rng(7)
    curvature, centre, noise = rng.uniform(0.5, 2.0, 3), rng.standard_normal(3), rng.uniform(0.1, 1.0, 3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    plain = fs.Quadratic(curvature[None], centre[None], None, np.diag(noise)[None])
    turned = fs.Quadratic((turn * curvature @ turn.T)[None], (turn @ centre)[None], None,
                          (turn * noise @ turn.T)[None])
    start = fs.Gaussian([2.0, 0.0, -1.0], [[1.0, 0.2, 0.0], [0.2, 0.5, 0.0], [0.0, 0.0, 2.0]])
    there = fs.Gaussian(turn @ start.mean, turn @ start.cov @ turn.T)
    for algorithm in (fs.StaleSGLD(0.1, 3), fs.StaleSGHMC(0.2, 2.0, fs.Workers(3, seed=5))):
        one = average_law(plain, algorithm, 50, start=start)
        two = average_law(turned, algorithm, 50, start=there)
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-11)
        np.testing.assert_allclose(one.variance, two.variance, rtol=1e-11)
        apart = [average_law(fs.Quadratic([a], [[b]], None, np.sqrt(s)), algorithm, 50, start=[1.0])
                 for a, b, s in zip(curvature, centre, noise, strict=True)]
        both = average_law(plain, algorithm, 50, start=np.ones(3))
        np.testing.assert_allclose(both.variance, sum(law.variance for law in apart), rtol=1e-11)
        sums = average_law(turned, algorithm, 50, start=there, function="identity")
        law = theory.exact_law(turned, algorithm, 50, start=there)
        np.testing.assert_allclose(sums.mean * sums.lengths, np.cumsum(law.mean[1:].sum(axis=1)), rtol=1e-11)
        assert sums.variance[0] == pytest.approx(law.cov[1].sum(), rel=1e-11)


def test_the_average_of_ten_thousand_takes_seconds():
    problem, algorithm = fs.Quadratic([1.0], [[2.0]], None, 1.0), fs.StaleSGLD(0.005, 8)
    start, begin = theory.stationary_law(problem, algorithm), time.perf_counter()
    law = average_law(problem, algorithm, 10_000, start=start)
    assert time.perf_counter() - begin < 10.0  # about one second on an idle machine
    stationary = stationary_variance(1.0, 0.005, 8, 1.0) + 4.0 - 5.0
    assert law.bias[-1] == pytest.approx(stationary, rel=0.01)  # its first iterates have no past of their own
    late = 10_000 * law.variance[-1]
    assert late == pytest.approx(long_run_variance(1.0, 0.005, 8, 2.0, 1.0), rel=0.05)


def test_the_best_step_size_follows_theorem_3():
    """MSE like tau^(2/3) and h like tau^(-2/3) at fixed L, with h optimised on the exact law."""
    problem, length, taus = fs.Quadratic([1.0], [[0.0]]), 4000, np.array([4, 8, 16, 32])

    def best(tau, length):
        guess = np.log(0.85 * tau ** (-2 / 3) * length ** (-1 / 3))
        found = minimize_scalar(
            lambda u: np.log(average_law(problem, fs.StaleSGLD(np.exp(u), tau), length).mse[-1]),
            bounds=(guess - 0.2, guess + 0.2), method="bounded", options={"xatol": 2e-3})
        return np.exp(found.x), np.exp(found.fun)

    steps, errors = np.array([best(int(tau), length) for tau in taus]).T
    assert loglog_slope(taus, errors).value == pytest.approx(2 / 3, abs=0.01)
    assert loglog_slope(taus, steps).value == pytest.approx(-2 / 3, abs=0.015)
    scaled = steps * taus ** (2 / 3) * length ** (1 / 3)
    assert ((scaled > 0.7) & (scaled < 0.95)).all()
    short = best(8, 1000)[1]
    assert -0.75 < np.log(errors[1] / short) / np.log(4.0) < -2 / 3


def test_servers_weighted_by_time():
    problem = fs.Quadratic([1.0], [[1.0]])
    laws = [average_law(problem, fs.StaleSGLD(h, 2), n) for h, n in ((0.1, 100), (0.05, 300))]
    both = combine_servers(laws, [0.1 * 100, 0.05 * 300])
    assert both.mean[0] == pytest.approx(0.4 * laws[0].mean[-1] + 0.6 * laws[1].mean[-1], rel=1e-14)
    expected = 0.16 * laws[0].variance[-1] + 0.36 * laws[1].variance[-1]
    assert both.variance[0] == pytest.approx(expected, rel=1e-14)
    same = combine_servers([laws[0]] * 5, np.ones(5))
    assert same.bias[0] == pytest.approx(laws[0].bias[-1], rel=1e-12)
    assert same.variance[0] == pytest.approx(laws[0].variance[-1] / 5, rel=1e-12)
    for bad, words in (([1.0], "times has shape"), ([1.0, 0.0], r"times\[1\]=0.0")):
        with pytest.raises(ValueError, match=words):
            combine_servers(laws, bad)
