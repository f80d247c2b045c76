"""The exact laws of FA-LD against brute force, against each other and against hand calculations."""

from __future__ import annotations

import time

import brute_force
import numpy as np
import pytest
from examples_of import SCHEME_I, SCHEME_II, close, gaussian_start, make_problem

from fedsim import schedules
from fedsim.algorithms.fa_ld import FALD
from fedsim.laws.law import recorded_rounds
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from theory.exact import affine, exact_law, stationary_law
from theory.exact.federated import chain, fa_ld

DECREASING = schedules.Harmonic(offset=12.0, slope=0.3)
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


def test_sums_over_local_steps():
    """Closed forms against plain loops, also where 1 - P is tiny and beyond stability."""
    for x in (0.0, 1e-18, 1e-9, 0.3, 1.0, 1.7, 2.0, 2.5, -0.1):
        for n in (1, 2, 5, 8):
            close(chain.geometric(np.float64(x), n), sum((1.0 - x) ** j for j in range(n)), 1e-14)
    assert chain.power_deviation(np.float64(1e-20), 10) == pytest.approx(-1e-19, rel=1e-15)
    values, pairs = np.array([[0.4, 2.0], [1.0, 3.0]]), (np.s_[:1, :], np.s_[1:, :])
    step = chain.local_step(fa_ld.FALDFamily().chain(FALD(0.2), 0.2), values, True)
    equal, listed = chain.Round([step], 6), chain.Round([step] * 6, 1)
    close(equal.deviation(), listed.deviation(), 1e-14)
    close(equal.injected(*pairs), listed.injected(*pairs), 1e-14)
    close(equal.gradient(*pairs), listed.gradient(*pairs), 1e-14)


@pytest.mark.parametrize("hessians", [
    np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 0.5]]),
    np.array([[[1.0, 0.2], [0.2, 2.0]], [[1.0, 0.2], [0.2, 3.0]], [[1.0, 0.2], [0.2, 0.5]]])])
def test_hessians_that_share_entries_are_told_apart(hessians):
    """Turned about, the same clients differ in the first entry of their Hessians."""
    minimizers = np.array([[0.0, 1.0], [2.0, -1.0], [-0.5, 3.0]])
    algorithm = FALD(0.2, 3, shared_noise=0.4)
    law = exact_law(Quadratic(hessians, minimizers), algorithm, 4)
    axes = tuple(range(1, hessians.ndim))
    turned = exact_law(Quadratic(np.flip(hessians, axes).copy(), minimizers[:, ::-1].copy()), algorithm, 4)
    close(law.mean, turned.mean[:, ::-1])
    close(law.cov, turned.cov[:, ::-1, ::-1])


@pytest.mark.parametrize("steps", [0.05, [0.05, 0.01, 0.02, 0.04]])
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_common_noise_by_steps_is_that_by_pairs_of_clients(structure, steps, monkeypatch):
    draws = np.random.default_rng(3)
    hessians = draws.uniform(0.5, 3.0, (6, 2))
    if structure == "dense":
        roots = draws.standard_normal((6, 2, 2))
        hessians = roots @ roots.swapaxes(1, 2) + np.eye(2)
    problem = Quadratic(hessians, draws.standard_normal((6, 2)))
    algorithm = FALD(steps, 2, shared_noise=0.7)
    law = exact_law(problem, algorithm, 2)
    monkeypatch.setattr("theory.exact.federated.spectrum._few_steps", lambda *given: False)
    np.testing.assert_allclose(law.cov, exact_law(problem, algorithm, 2).cov, rtol=1e-12, atol=1e-15)
