"""The exact laws of FA-LD against brute force, against each other and against hand calculations."""

from __future__ import annotations

import time

import brute_force
import numpy as np
import pytest

from fedsim import schedules
from fedsim.algorithms.fa_ld import FALD
from fedsim.law import Gaussian, recorded_rounds
from fedsim.participation import Participation
from fedsim.problems.quadratic import Quadratic
from fedsim.validation import UnstableStepSize
from theory.exact import (
    NoExactLaw,
    affine,
    dispatch,
    exact_law,
    federated,
    joint_law,
    sample_rounds,
    stationary_law,
    sums,
)

SCHEME_I, SCHEME_II = Participation(2, True), Participation(2, False)
DECREASING = schedules.Harmonic(offset=12.0, slope=0.3)


def close(found, wanted, tol=1e-12):
    """Equal within `tol` of the largest entry."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tol * np.abs(wanted).max()


def make_problem(structure="dense", n_clients=3, dim=2, noise=None, uniform=False, seed=0):
    """Random unequal clients with curvatures between 0.5 and 4."""
    rng = np.random.default_rng([seed, n_clients, dim])
    if structure == "dense":
        bases = np.linalg.qr(rng.normal(size=(n_clients, dim, dim)))[0]
        curvatures = rng.uniform(0.5, 4.0, size=(n_clients, 1, dim))
        hessians = (bases * curvatures) @ bases.transpose(0, 2, 1)
    else:
        hessians = rng.uniform(0.5, 4.0, size=(n_clients, dim)[: 2 if structure == "diagonal" else 1])
    weights = None if uniform else rng.dirichlet(np.full(n_clients, 5.0))
    if noise == "covariances":
        factor = rng.normal(size=(n_clients, dim, dim))
        noise = factor @ factor.transpose(0, 2, 1)
        noise = 0.5 * (noise + noise.transpose(0, 2, 1))
    return Quadratic(hessians, 3.0 * rng.normal(size=(n_clients, dim)), weights, noise)


def gaussian_start(dim, diagonal=False):
    """A start with correlated (or independent) coordinates."""
    rng = np.random.default_rng(5)
    factor = rng.normal(size=(dim, dim))
    cov = factor @ factor.T
    return Gaussian(rng.normal(size=dim), np.diag(cov) if diagonal else 0.5 * (cov + cov.T))


CASES = [(structure, noise, participation, step, shared)
         for structure in ("dense", "diagonal", "isotropic")
         for noise in (None, 0.7, "covariances")
         for participation in (None, SCHEME_I, SCHEME_II)
         for step, shared in ((0.1, 0.0), (0.15, 0.4), (DECREASING, 1.0), (DECREASING, 0.3))]


@pytest.mark.parametrize(("structure", "noise", "participation", "step", "shared"), CASES)
def test_law_equals_brute_force(structure, noise, participation, step, shared):
    problem = make_problem(structure, noise=noise, uniform=participation is SCHEME_II)
    algorithm = FALD(step, 4, temperature=0.6, shared_noise=shared, participation=participation)
    for start in (None, gaussian_start(2), gaussian_start(2, diagonal=True)):
        moments = () if start is None else (start.mean, start.cov)
        mean, cov = brute_force.rounds(problem, algorithm, 5, *moments)
        law = exact_law(problem, algorithm, 5, start=start)
        assert law.rounds.tolist() == [0, 1, 2, 3, 4, 5]
        assert law.is_gaussian == (participation is None)
        close(law.mean, mean)
        close(law.cov, cov)
        thin = exact_law(problem, algorithm, 5, start=start, covariance="diagonal", record=[2])
        close(thin.mean, mean[[0, 2, 5]])
        close(thin.cov, np.diagonal(cov, axis1=1, axis2=2)[[0, 2, 5]])
        bare = exact_law(problem, algorithm, 5, start=start, covariance="none")
        close(bare.mean, mean)
        assert bare.cov is None


@pytest.mark.parametrize("participation", [None, Participation(3, True), Participation(1, True),
                                           Participation(3, False), Participation(1, False)])
def test_more_clients_and_dimensions(participation):
    uniform = participation is not None and not participation.replace
    problem = make_problem(n_clients=4, dim=3, noise="covariances", uniform=uniform)
    algorithm = FALD(0.2, 3, shared_noise=0.5, participation=participation)
    mean, cov = brute_force.rounds(problem, algorithm, 8)
    law = exact_law(problem, algorithm, 8)
    close(law.mean, mean)
    close(law.cov, cov)
    close(law.cov, law.cov.transpose(0, 2, 1), 0.0)


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_doubling_equals_stepping(structure, participation, monkeypatch):
    problem = make_problem(structure, n_clients=5, dim=3, noise="covariances",
                           uniform=participation is SCHEME_II)
    algorithm = FALD(1e-3, 2, shared_noise=0.4, participation=participation)
    start = gaussian_start(3)
    record = [1, 2, 3, 100, 777]
    stepped = exact_law(problem, algorithm, 1500, start=start)
    monkeypatch.setattr(affine, "STEP_ROUNDS", 0)
    for covariance in ("full", "diagonal"):
        leapt = exact_law(problem, algorithm, 1500, start=start, record=record, covariance=covariance)
        at = leapt.rounds
        close(leapt.mean, stepped.mean[at])
        cov = stepped.cov[at] if covariance == "full" else np.diagonal(stepped.cov[at], axis1=1, axis2=2)
        close(leapt.cov, cov)


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_a_constant_schedule_is_a_constant(structure, participation):
    problem = make_problem(structure, n_clients=4, dim=2, noise=0.3, uniform=participation is SCHEME_II)
    constant = FALD(0.12, 5, shared_noise=0.25, participation=participation)
    listed = FALD(np.full(100, 0.12), 5, shared_noise=0.25, participation=participation)
    one, other = exact_law(problem, constant, 20), exact_law(problem, listed, 20)
    close(one.mean, other.mean)
    close(one.cov, other.cov)


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize(("structure", "noise"), [("dense", "covariances"), ("diagonal", 0.4),
                                                  ("isotropic", "covariances")])
def test_stationary_law_is_the_long_run(structure, noise, participation):
    problem = make_problem(structure, n_clients=4, dim=3, noise=noise, uniform=participation is SCHEME_II)
    algorithm = FALD(0.1, 7, temperature=2.0, shared_noise=0.3, participation=participation)
    law, limit = exact_law(problem, algorithm, 400), stationary_law(problem, algorithm)
    close(limit.mean, law.mean[-1], 1e-10)
    close(limit.cov, law.cov[-1], 1e-10)
    kept = exact_law(problem, algorithm, 3, start=limit)
    close(kept.cov, np.broadcast_to(limit.cov, kept.cov.shape), 1e-12)
    again = stationary_law(problem, algorithm, client=2)
    close(again.cov, limit.cov, 0.0)


def test_stationary_law_in_a_large_dimension_splits_the_random_part(monkeypatch):
    problem = make_problem(n_clients=4, dim=6)
    algorithm = FALD(0.2, 5, shared_noise=0.3, participation=SCHEME_I)
    direct = stationary_law(problem, algorithm)
    monkeypatch.setattr(affine, "DIRECT_DIM", 2)
    split = stationary_law(problem, algorithm)
    close(split.cov, direct.cov)
    close(split.mean, direct.mean)


def test_equal_hessians_make_the_average_a_plain_langevin_chain():
    """For any local_steps, shared noise and minimizers (also with gradient noise)."""
    rng = np.random.default_rng(3)
    hessian = np.array([[3.0, 1.0], [1.0, 2.0]])
    weights = rng.dirichlet(np.ones(6))
    problem = Quadratic(np.tile(hessian, (6, 1, 1)), 10.0 * rng.normal(size=(6, 2)), weights, 0.5)
    reference = exact_law(problem, FALD(0.05, 1), 60)
    step = np.eye(2) - 0.05 * hessian  # by hand: the average follows one chain with averaged noise
    added = 0.1 * np.eye(2) + 0.05**2 * 0.25 * (weights**2).sum() * np.eye(2)
    mean, cov = np.zeros(2), np.zeros((2, 2))
    for _ in range(60):
        mean, cov = mean + 0.05 * hessian @ (problem.minimizer - mean), step @ cov @ step + added
    close(reference.mean[-1], mean, 1e-12)
    close(reference.cov[-1], cov, 1e-12)
    for local_steps in (2, 5, 12, 30, 60):
        for shared in (0.0, 0.3, 1.0):
            law = exact_law(problem, FALD(0.05, local_steps, shared_noise=shared), 60 // local_steps)
            close(law.mean, reference.mean[::local_steps], 1e-10)
            close(law.cov, reference.cov[::local_steps], 1e-10)


def test_scale_covariance():
    """x -> s x with curvatures / s^2 and steps * s^2, noise / s."""
    problem, scale = make_problem(noise=0.6), 37.5
    scaled = Quadratic(problem.hessians / scale**2, scale * problem.minimizers, problem.weights, 0.6 / scale)
    for participation in (None, SCHEME_I):
        one = exact_law(problem, FALD(0.1, 5, 0.8, 0.4, participation), 30)
        other = exact_law(scaled, FALD(0.1 * scale**2, 5, 0.8, 0.4, participation), 30)
        close(other.mean, scale * one.mean, 1e-11)
        close(other.cov, scale**2 * one.cov, 1e-11)
        close(other.w2(), scale * one.w2(), 1e-9)


def test_all_clients_drawn_without_replacement_is_full_participation():
    problem = make_problem(n_clients=4, uniform=True, noise=0.2)
    whole, drawn = (FALD(0.1, 6, shared_noise=0.2, participation=p) for p in (None, Participation(4, False)))
    one, other = exact_law(problem, whole, 40), exact_law(problem, drawn, 40)
    close(one.cov, other.cov, 0.0)
    assert other.is_gaussian


def test_langevin_variance_of_one_client():
    """1 / (a (1 - eta a / 2)), and with gradient noise (2 eta tau + eta^2 sigma^2) / (1 - (1 - eta a)^2)."""
    for curvature in (1e-6, 0.3, 5.0, 2e5):
        for step in (1e-9 / curvature, 0.1 / curvature, 1.9 / curvature):
            problem = Quadratic([curvature], [[2.0]])
            for local_steps in (1, 7):
                law = stationary_law(problem, FALD(step, local_steps))
                close(law.cov[0, 0], 1.0 / (curvature * (1.0 - step * curvature / 2.0)), 1e-13)
                close(law.mean, [2.0], 1e-14)
    noisy = stationary_law(Quadratic([2.0], [[0.0]], None, 3.0), FALD(0.3, 4, temperature=0.5))
    close(noisy.cov[0, 0], (0.3 + 0.81) / (1.0 - 0.16))


def test_first_order_bias_of_the_mean():
    """eta (K-1)/2 Abar^-1 sum_c p_c A_c^2 (x* - b_c), with an error of second order."""
    problem = make_problem(n_clients=4, dim=3)
    hessians, weights, local_steps = problem.hessians, problem.weights, 6
    pull = np.einsum("c,cij,cjk,ck->i", weights, hessians, hessians, problem.minimizer - problem.minimizers)
    slope = 0.5 * (local_steps - 1) * np.linalg.solve(problem.mean_hessian, pull)
    errors = []
    for step in (1e-3, 5e-4, 2.5e-4):
        bias = stationary_law(problem, FALD(step, local_steps)).mean - problem.minimizer
        errors.append(np.linalg.norm(bias - step * slope))
        assert errors[-1] < 0.1 * step * np.linalg.norm(slope)
    ratios = np.array(errors[:-1]) / errors[1:]
    assert (np.abs(ratios - 4.0) < 0.1).all()
    single = stationary_law(problem, FALD(0.1, 1)).mean
    close(single, problem.minimizer, 1e-13)


@pytest.mark.parametrize("shared", [0.0, 0.36, 1.0])
@pytest.mark.parametrize("active", [1, 3, 9])
def test_floor_of_partial_participation(active, shared):
    """Equal clients, vanishing step: factors 1 + (N-S)/S (1-s) and 1 + (N-1)/S (1-s) of the target."""
    n_clients = 10
    problem = Quadratic(np.full(n_clients, 2.0), np.ones((n_clients, 2)))
    for replace, factor in ((False, (n_clients - active) / active), (True, (n_clients - 1) / active)):
        algorithm = FALD(1e-9, 5, 0.7, shared, Participation(active, replace))
        law = stationary_law(problem, algorithm)
        close(law.cov, (1.0 + factor * (1.0 - shared)) * algorithm.target(problem).cov, 1e-7)
        assert law.w2(algorithm.target(problem)) == pytest.approx(
            (np.sqrt(1.0 + factor * (1.0 - shared)) - 1.0) * np.sqrt(0.7), abs=1e-7)


def test_a_billion_rounds_cost_no_more_than_a_thousand():
    rng = np.random.default_rng(8)
    bases = np.linalg.qr(rng.normal(size=(50, 2, 2)))[0]
    hessians = (bases * rng.uniform(1.0, 3.0, size=(50, 1, 2))) @ bases.transpose(0, 2, 1)
    problem = Quadratic(hessians, rng.normal(size=(50, 2)))
    for local_steps in (1, 30_000):
        for participation in (None, Participation(5, True), Participation(5, False)):
            algorithm = FALD(1e-6, local_steps, shared_noise=0.3, participation=participation)
            limit = stationary_law(problem, algorithm)
            algorithm.stability(problem)  # not timed: only the law is
            began = time.perf_counter()
            law = exact_law(problem, algorithm, 10**9)
            assert time.perf_counter() - began < 2.0  # 0.05 s unloaded
            close(law.cov[-1], limit.cov, 1e-9)
            close(law.mean[-1], limit.mean, 1e-9)
            assert len(law.rounds) == len(recorded_rounds(10**9))


def test_the_papers_problem():
    """N=50, d=2, equal Hessians 5e4 inv(Sigma), step 1e-7: the bias is 1.38e-5 at any K and shared noise."""
    sigma = np.array([[5.0, -2.0], [-2.0, 1.0]])
    rng = np.random.default_rng(1)
    problem = Quadratic(np.tile(5e4 * np.linalg.inv(sigma), (50, 1, 1)), rng.normal(size=(50, 2)))
    values = np.linalg.eigvalsh(problem.mean_hessian)
    closed = np.sqrt(((1.0 / np.sqrt(values * (1.0 - 0.5e-7 * values)) - 1.0 / np.sqrt(values)) ** 2).sum())
    assert closed == pytest.approx(1.384e-5, rel=1e-3)
    for local_steps in (1, 10, 3000, 30_000):
        for shared in (0.0, 1.0):
            algorithm = FALD(1e-7, local_steps, shared_noise=shared)
            assert stationary_law(problem, algorithm).w2(problem.target()) == pytest.approx(closed, rel=1e-8)
            assert exact_law(problem, algorithm, 10**6).w2()[-1] == pytest.approx(closed, rel=1e-8)


def test_large_diagonal_problems_never_build_matrices():
    rng = np.random.default_rng(2)
    problem = Quadratic(rng.uniform(1.0, 2.0, size=(2, 1000)), rng.normal(size=(2, 1000)))
    for participation in (None, Participation(1, True)):
        algorithm = FALD(0.1, 10, shared_noise=0.5, participation=participation)
        algorithm.stability(problem)
        began = time.perf_counter()
        law = exact_law(problem, algorithm, 10**6, record=[3, 50], covariance="diagonal")
        assert time.perf_counter() - began < 1.0  # 0.02 s unloaded
        part = Quadratic(problem.hessians[:, :2], problem.minimizers[:, :2])
        few = exact_law(part, algorithm, 10**6, record=[3, 50])
        close(law.mean[:, :2], few.mean)
        close(law.cov[:, :2], np.diagonal(few.cov, axis1=1, axis2=2))
    wide = exact_law(problem, FALD(0.1, 10, shared_noise=0.5), 3, record=[])
    assert wide.cov.shape == (2, 1000, 1000)
    assert np.count_nonzero(wide.cov[-1] - np.diag(np.diagonal(wide.cov[-1]))) == 0


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("step", [0.1, DECREASING])
def test_joint_law_equals_brute_force(participation, step):
    problem = make_problem(n_clients=3, dim=2, noise="covariances", uniform=participation is SCHEME_II)
    algorithm = FALD(step, 3, 0.5, 0.4, participation)
    start = gaussian_start(2)
    thetas, betas = brute_force.recursion(problem, algorithm, 10, start.mean, start.cov)
    law = joint_law(problem, algorithm, 10, start=start)
    close(law.mean.reshape(11, -1), [x for _, x, _ in thetas])
    close(law.cov, [c for _, _, c in thetas])
    assert law.sync_steps.tolist() == [k for k, _, _ in betas] == [3, 6, 9]
    close(law.before_mean.reshape(3, -1), [x for _, x, _ in betas])
    close(law.before_cov, [c for _, _, c in betas])
    assert law.is_gaussian == (participation is None)

    rounds = exact_law(problem, algorithm, 3, start=start)
    for i, k in enumerate([0, 3, 6, 9]):
        close(law.average(k).cov, rounds.cov[i])
        close(law.average(k).mean, rounds.mean[i])
    close(law.average_cov[[0, 3, 6, 9]], rounds.cov)
    close(law.average_mean[[0, 3, 6, 9]], rounds.mean)

    weights, point = np.array(problem.weights), np.array([0.3, -1.0])
    centre = np.kron(weights, np.eye(2))
    wanted_divergence, wanted_moment, wanted_gradient = [], [], []
    for _, x, c in thetas:
        second = c + np.outer(x, x)
        blocks = [np.kron(np.eye(3)[i], np.eye(2)) for i in range(3)]
        wanted_divergence.append(sum(w * np.trace((b - centre) @ second @ (b - centre).T)
                                     for w, b in zip(weights, blocks, strict=True)))
        wanted_moment.append([np.trace(b @ c @ b.T) + ((b @ x - point) ** 2).sum() for b in blocks])
        wanted_gradient.append([
            np.trace(a @ b @ c @ b.T @ a) + ((a @ (b @ x - m)) ** 2).sum() + np.trace(s)
            for a, b, m, s in zip(problem.hessians, blocks, problem.minimizers, problem.noise_covariances,
                                  strict=True)])
    close(law.divergence(), wanted_divergence, 1e-10)
    close(law.second_moment_about(point), wanted_moment)
    close(law.gradient_second_moment(), wanted_gradient)
    assert (law.divergence()[[0, 3, 6, 9]] == 0.0).all()
    assert (law.divergence()[[1, 2, 4, 5]] > 0.0).all()

    gaps = []  # E ||theta - beta||^2 by enumeration of the draws
    for _, x, c in betas:
        second = c + np.outer(x, x)
        gaps.append(sum(probability * np.trace(
            np.kron(shares - weights, np.eye(2)) @ second @ np.kron(shares - weights, np.eye(2)).T)
            for probability, shares in brute_force.outcomes(participation, weights)))
    assert np.abs(law.participation_gap() - gaps).max() <= 1e-10 * max(max(gaps), 1.0)
    assert (law.participation_gap() > 0.0).all() == (participation is not None)


def test_equal_clients_never_diverge_under_fully_shared_noise():
    problem = Quadratic(np.full(4, 2.0), np.ones((4, 3)))
    law = joint_law(problem, FALD(0.1, 5, shared_noise=1.0, participation=Participation(1, True)), 12)
    assert law.divergence().max() <= 1e-15
    assert law.participation_gap().max() <= 1e-15


SAMPLED = [(structure, participation, step, shared)
           for structure in ("dense", "diagonal") for participation in (None, SCHEME_I, SCHEME_II)
           for step, shared in ((0.15, 0.4), (DECREASING, 0.0))]


@pytest.mark.parametrize(("structure", "participation", "step", "shared"), SAMPLED)
def test_sampled_rounds_have_the_exact_law(structure, participation, step, shared, alarm):
    noise = "covariances" if structure == "dense" else 0.4
    problem = make_problem(structure, n_clients=4, dim=2, noise=noise, uniform=participation is SCHEME_II)
    algorithm = FALD(step, 3, 0.7, shared, participation)
    start, replicas = gaussian_start(2), 20_000
    drawn = sample_rounds(problem, algorithm, 7, replicas, 11, start=start, record=[1, 3])
    law = exact_law(problem, algorithm, 7, start=start, record=[1, 3])
    assert drawn.shape == (replicas, 4, 2)
    for i in range(4):
        errors = drawn[:, i] - law.mean[i]
        alarm.assert_normal(errors.mean(axis=0) / np.sqrt(np.diagonal(law.cov[i]) / replicas), "mean")
        for a, b in ((0, 0), (0, 1), (1, 1)):
            products = errors[:, a] * errors[:, b]
            z = (products.mean() - law.cov[i, a, b]) / (products.std() / np.sqrt(replicas))
            alarm.assert_student(z, replicas - 1, "covariance")


def test_sampled_rounds_leap_and_repeat(alarm):
    problem = make_problem(n_clients=3, dim=2)
    algorithm = FALD(1e-3, 4, shared_noise=0.2)
    limit = stationary_law(problem, algorithm)
    drawn = sample_rounds(problem, algorithm, 10**9, 10_000, 3)
    assert drawn.shape == (10_000, 1, 2)
    alarm.assert_normal((drawn[:, 0].mean(axis=0) - limit.mean) / np.sqrt(np.diagonal(limit.cov) / 10_000))
    assert (drawn == sample_rounds(problem, algorithm, 10**9, 10_000, 3)).all()
    assert (drawn != sample_rounds(problem, algorithm, 10**9, 10_000, 4)).all()
    at_zero = sample_rounds(problem, algorithm, 0, 2, 3, start=[1.0, 2.0])
    assert at_zero.tolist() == [[[1.0, 2.0]]] * 2


def test_a_wrong_sampler_would_be_caught(alarm, monkeypatch):
    """Noise scaled by sqrt(2) gives a statistic far beyond the limit."""
    problem, algorithm = make_problem(n_clients=3), FALD(0.15, 3)
    right = affine.correlated
    monkeypatch.setattr(federated, "correlated", lambda *a: np.sqrt(2.0) * right(*a))
    drawn = sample_rounds(problem, algorithm, 5, 20_000, 1)[:, 0]
    law = exact_law(problem, algorithm, 5)
    squares = (drawn - law.mean[-1]) ** 2
    gaps = squares.mean(axis=0) - np.diagonal(law.cov[-1])
    alarm.must_fail(gaps / (squares.std(axis=0) / np.sqrt(20_000)))


def test_sums_over_local_steps():
    """Closed forms against plain loops, also where 1 - P is tiny and beyond stability."""
    for x in (0.0, 1e-18, 1e-9, 0.3, 1.0, 1.7, 2.0, 2.5, -0.1):
        for n in (1, 2, 5, 8):
            close(sums.geometric(np.float64(x), n), sum((1.0 - x) ** j for j in range(n)), 1e-14)
    assert sums.power_deviation(np.float64(1e-20), 10) == pytest.approx(-1e-19, rel=1e-15)
    a, b = np.array([0.4, 2.0]), np.array([1.0, 3.0])
    equal, listed = sums.EqualSteps(0.2, 6), sums.ListedSteps(np.full(6, 0.2))
    close(equal.deviation(a), listed.deviation(a), 1e-14)
    for power in (1, 2):
        close(equal.overlap(a, b, power), listed.overlap(a, b, power), 1e-14)


def test_unstable_steps_are_refused_or_followed():
    problem = make_problem()
    limit = FALD(0.1, 4).stability(problem).max_step_size
    algorithm = FALD(1.05 * limit, 4)
    for call in (lambda: exact_law(problem, algorithm, 5), lambda: stationary_law(problem, algorithm),
                 lambda: joint_law(problem, algorithm, 5),
                 lambda: sample_rounds(problem, algorithm, 5, 2, 0)):
        with pytest.raises(UnstableStepSize, match="step_size"):
            call()
    mean, cov = brute_force.rounds(problem, algorithm, 6)
    law = exact_law(problem, algorithm, 6, allow_unstable=True)
    close(law.mean, mean, 1e-11)
    close(law.cov, cov, 1e-11)
    with pytest.raises(ValueError, match="range of float64 by round"):
        exact_law(problem, algorithm, 10**6, allow_unstable=True)
    # exactly at the limit of one client the mean has no fixed point, and the moments still exist
    single = Quadratic([2.0], [[1.0]])
    edge = exact_law(single, FALD(1.0, 2), 4, allow_unstable=True)
    assert edge.mean.tolist() == [[0.0]] * 5
    close(edge.cov[-1], [[16.0]])


def test_where_there_is_no_law():
    problem = make_problem()
    with pytest.raises(NoExactLaw, match="changes from step to step"):
        stationary_law(problem, FALD(DECREASING, 2))

    class Other(FALD):
        """A derived algorithm inherits the law."""

    close(exact_law(problem, Other(0.1), 3).mean, exact_law(problem, FALD(0.1), 3).mean)

    class Unknown:
        """An algorithm without a file in theory.exact."""

        def check(self, problem):
            """Runs on everything."""

        def stability(self, problem):
            """As FA-LD."""
            return FALD(0.1).stability(problem)

    with pytest.raises(NoExactLaw, match="Unknown"):
        exact_law(problem, Unknown(), 3)
    large = make_problem(n_clients=3, dim=affine.LIFT_DIM + 1)
    with pytest.raises(NoExactLaw, match="stepped through one by one"):
        exact_law(large, FALD(0.1, 2, participation=SCHEME_I), 10**9)
    assert issubclass(NoExactLaw, ValueError)


BAD = [
    (dict(n_rounds=-1), "n_rounds"), (dict(n_rounds=2.0), "n_rounds"),
    (dict(covariance="half"), "covariance"),
    (dict(record=[9]), "record"), (dict(start=[1.0]), "start"), (dict(start=[np.nan, 0.0]), "start"),
    (dict(start=Gaussian([0.0], [[1.0]])), "start"), (dict(allow_unstable=2), "allow_unstable"),
    (dict(problem=3), "problem"), (dict(algorithm=FALD), "algorithm"),
    (dict(algorithm=FALD(np.full(7, 0.1), 4)), "step_size has 7"),
    (dict(algorithm=FALD(0.1, participation=Participation(9, False))), "n_active"),
    (dict(algorithm=FALD(0.1, participation=Participation(2, False))), "weights"),
]


@pytest.mark.parametrize(("changed", "named"), BAD)
def test_bad_input_is_named(changed, named):
    arguments = dict(problem=make_problem(), algorithm=FALD(0.1, 4), n_rounds=5) | changed
    with pytest.raises(ValueError, match=named):
        exact_law(**arguments)


def test_bad_input_of_the_others_is_named():
    problem, algorithm = make_problem(), FALD(0.1, 4)
    for client in (-1, 3, 1.0):
        with pytest.raises(ValueError, match="client"):
            stationary_law(problem, algorithm, client=client)
    for n_steps in (-1, 1.5):
        with pytest.raises(ValueError, match="n_steps"):
            joint_law(problem, algorithm, n_steps)
    with pytest.raises(ValueError, match="n_replicas"):
        sample_rounds(problem, algorithm, 5, 0, 1)
    with pytest.raises(ValueError, match="seed"):
        sample_rounds(problem, algorithm, 5, 3, -1)
    with pytest.raises(ValueError, match="point"):
        joint_law(problem, algorithm, 2).second_moment_about([1.0])
    with pytest.raises(ValueError, match="k=9"):
        joint_law(problem, algorithm, 2).average(9)
    with pytest.raises(ValueError, match="step_size has 3"):
        joint_law(problem, FALD([0.1, 0.1, 0.1], 2), 4)


def test_memory_is_refused_before_it_is_taken():
    wide = Quadratic(np.ones(2), np.zeros((2, 3000)))
    with pytest.raises(ValueError, match=r"covariance='diagonal'"):
        exact_law(wide, FALD(0.1), 1000)
    assert exact_law(wide, FALD(0.1), 1000, covariance="diagonal").cov.shape == (1001, 3000)
    with pytest.raises(ValueError, match="n_steps=100"):
        joint_law(wide, FALD(0.1), 100)
    with pytest.raises(ValueError, match="n_replicas"):
        sample_rounds(wide, FALD(0.1), 5, 10**7, 0)
    assert dispatch.MEMORY_LIMIT == 2 * 1024**3
