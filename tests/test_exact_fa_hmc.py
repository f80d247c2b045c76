"""The exact laws of FA-HMC against brute force, against each other and against hand calculations."""

from __future__ import annotations

import itertools
import time

import brute_force_fa_hmc as brute_force
import numpy as np
import pytest
from examples_of import SCHEME_I, SCHEME_II, close, gaussian_start, make_problem
from scipy.special import eval_chebyt, eval_chebyu

from fedsim import schedules
from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.algorithms.fa_ld import FALD
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.participation import Participation
from fedsim.settings.validation import UnstableStepSize
from theory.exact import FAHMCFlow, NoExactLaw, affine, exact_law, joint_law, sample_rounds, stationary_law
from theory.exact.federated import chain, fa_hmc, flow

DECREASING = schedules.Harmonic(offset=4.0, slope=0.2)
DEBIAS = [(None, "none"), ("fresh", "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed")]


def as_dense(problem):
    """The same problem with its Hessians given as matrices."""
    return Quadratic(problem.dense_hessians, problem.minimizers, problem.weights, problem.gradient_noise)


@pytest.mark.parametrize(("debias", "first_round"), DEBIAS)
@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
def test_law_equals_brute_force(structure, participation, debias, first_round):
    """Explicit leapfrog steps of all clients, and all outcomes of a draw, one by one."""
    grid = itertools.product((None, 0.7, "covariances"), ((0.2, 3, 0.4), (DECREASING, 2, 1.0), (0.3, 1, 0.0)),
                             (None, gaussian_start(2), gaussian_start(2, diagonal=True)))
    for number, (noise, (step, leaps, shared), start) in enumerate(grid):
        if number % 3 == 1 and structure == "isotropic":
            continue  # the same tables as diagonal ones
        problem = make_problem(structure, noise=noise, uniform=participation is SCHEME_II)
        algorithm = FAHMC(step, leaps, 2, shared, debias, first_round, participation)
        moments = () if start is None else (start.mean, start.cov)
        mean, cov = brute_force.rounds(problem, algorithm, 3, *moments)
        options = dict(start=start, allow_unstable=True)
        law = exact_law(problem, algorithm, 3, **options)
        assert law.is_gaussian == (participation is None)
        close(law.mean, mean, 1e-12)
        close(law.cov, cov, 1e-12)
        thin = exact_law(problem, algorithm, 3, covariance="diagonal", record=[2], **options)
        close(thin.cov, np.diagonal(cov, axis1=1, axis2=2)[[0, 2, 3]], 1e-12)
        bare = exact_law(problem, algorithm, 3, covariance="none", **options)
        close(bare.mean, mean, 1e-12)


@pytest.mark.parametrize(("debias", "first_round"), DEBIAS)
@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
def test_joint_law_equals_brute_force(participation, debias, first_round):
    problem = make_problem(n_clients=3, dim=2, noise="covariances", uniform=participation is SCHEME_II)
    start = gaussian_start(2)
    for step in (0.2, DECREASING):
        algorithm = FAHMC(step, 3, 3, 0.4, debias, first_round, participation)
        thetas, betas = brute_force.recursion(problem, algorithm, 10, start.mean, start.cov)
        law = joint_law(problem, algorithm, 10, start=start)
        close(law.mean.reshape(11, -1), [x for _, x, _ in thetas])
        close(law.cov, [c for _, _, c in thetas])
        close(law.before_mean.reshape(3, -1), [x for _, x, _ in betas])
        close(law.before_cov, [c for _, _, c in betas])
        rounds = exact_law(problem, algorithm, 3, start=start)
        close(law.average_cov[[0, 3, 6, 9]], rounds.cov)
        close(law.average_mean[[0, 3, 6, 9]], rounds.mean)
    diagonal = make_problem("diagonal", noise=0.5, uniform=participation is SCHEME_II)
    algorithm = FAHMC(0.2, 3, 2, 0.4, debias, first_round, participation)
    one, other = (joint_law(p, algorithm, 5, start=start) for p in (diagonal, as_dense(diagonal)))
    close(one.cov, other.cov)


def test_updates_are_chebyshev_polynomials():
    """C = T_K(1 - eta^2 a/2), D = eta U_{K-1}(1 - eta^2 a/2), and V by its sum; also beyond stability."""
    a = np.array([1e-12, 1e-3, 0.5, 1.0, 1.9, 2.0, 3.3, 3.999, 4.0, 4.3])
    for eta, steps in ((1.0, 1), (0.7, 2), (1.0, 5), (0.3, 24)):
        x = 1.0 - eta**2 * a / 2.0
        moved = fa_hmc.leapfrog(eta, steps).motion(a, True)
        deviation, reach = moved.change[0]
        close(1.0 + deviation, eval_chebyt(steps, x), 1e-11)
        close(reach, eta * eval_chebyu(steps - 1, x), 1e-11)
        reaches = [eta * eval_chebyu(k - 1, x) for k in range(1, steps + 1)]
        wanted = eta**2 / 4.0 * (reaches[-1][:, None] * reaches[-1]
                                 + 2.0 * sum(np.outer(r, r) for r in reaches[:-1]))
        close(chain.spread(moved.kicked[:1], np.s_[:, None], np.s_[None, :])[0, 0], wanted, 1e-11)
    tiny, _ = fa_hmc.leapfrog(1e-10, 7).motion(np.array([1.0]), False).change[0]
    close(tiny, [-0.5 * 49 * 1e-20], 1e-14)
    short, reach = flow.Flow(1e-10).motion(np.array([4.0]), False).change[0]
    close(short, [-2e-20], 1e-14)
    close(reach, [1e-10], 1e-14)


def test_equal_updates_are_listed_ones():
    values, pairs = np.array([[0.4, 2.0], [1.0, 3.0]]), (np.s_[:1, :], np.s_[1:, :])
    for update in (fa_hmc.leapfrog(0.3, 4), flow.Flow(0.8)):
        step = chain.local_step([fa_hmc.FRESH, update], values, True)
        equal, listed = chain.Round([step], 5), chain.Round([step] * 5, 1)
        close(equal.deviation(), listed.deviation(), 1e-14)
        close(equal.injected(*pairs), listed.injected(*pairs), 1e-14)
        np.testing.assert_allclose(equal.gradient(*pairs), listed.gradient(*pairs), rtol=1e-14)


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("noise", [None, 0.7, "covariances"])
def test_one_leapfrog_step_is_langevin(noise, participation):
    """FAHMC(eta, 1, T) is FALD(eta^2/2, T), with the same shared_noise (the defaults differ)."""
    problem = make_problem(noise=noise, uniform=participation is SCHEME_II)
    for shared in (0.0, 0.4, 1.0):
        one = FAHMC(0.4, 1, 5, shared, participation=participation)
        other = FALD(0.08, 5, shared_noise=shared, participation=participation)
        laws = [exact_law(problem, algorithm, 12, start=gaussian_start(2)) for algorithm in (one, other)]
        close(laws[0].mean, laws[1].mean)
        close(laws[0].cov, laws[1].cov)
        close(stationary_law(problem, one).cov, stationary_law(problem, other).cov)
    sizes = np.linspace(0.5, 0.1, 12)
    laws = [exact_law(problem, algorithm, 4) for algorithm in (
        FAHMC(sizes, 1, 3, 0.3, participation=participation),
        FALD(sizes**2 / 2, 3, shared_noise=0.3, participation=participation))]
    close(laws[0].cov, laws[1].cov)


def test_stationary_variance_of_one_client():
    """1/(a (1 - eta^2 a/4)), whatever the number of leapfrog steps, updates and the shared noise."""
    for curvature, phase in itertools.product((1e-6, 0.3, 2e5), (1e-3, 0.2, 1.3, 1.9)):
        step, problem = phase / np.sqrt(curvature), Quadratic([curvature], [[2.0]])
        for leaps, count, shared in ((1, 1, 1.0), (2, 3, 0.0), (5, 1, 0.3), (11, 4, 1.0)):
            law = stationary_law(problem, FAHMC(step, leaps, count, shared))
            close(law.cov[0, 0], 1.0 / (curvature * (1.0 - phase**2 / 4.0)), 1e-12)
            close(law.mean, [2.0])


@pytest.mark.parametrize("debias", ["stale", "fresh"])
@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
def test_debiasing_mends_the_mean_and_not_the_covariance(participation, debias):
    problem = make_problem(n_clients=4, dim=2, noise=0.3, uniform=participation is SCHEME_II)
    algorithm = FAHMC(0.1, 3, 8, 0.5, debias, participation=participation)
    plain = FAHMC(0.1, 3, 8, 0.5, participation=participation)
    for given in (problem, make_problem("diagonal", n_clients=4, uniform=participation is SCHEME_II)):
        law, target = stationary_law(given, algorithm), given.target()
        close(law.mean, target.mean, 1e-12)
        assert np.linalg.norm(stationary_law(given, plain).mean - target.mean) > 0.01
        assert np.linalg.norm(law.cov - target.cov) > 0.01 * np.linalg.norm(target.cov)


def test_first_rounds_of_a_stale_anchor():
    """Without correction it is the plain law; the next ones forget how it began."""
    problem, start = make_problem(noise=0.4), gaussian_start(2)
    plain, none, exact, printed = (
        exact_law(problem, FAHMC(0.2, 3, 2, 0.5, *debias), 200, start=start)
        for debias in ((None,), ("stale", "none"), ("stale", "exact"), ("stale", "printed")))
    close(none.cov[1], plain.cov[1], 0.0)
    close(none.mean[1], plain.mean[1], 0.0)
    for one, other in itertools.combinations((none, exact, printed), 2):
        assert np.abs(one.mean[1] - other.mean[1]).max() > 0.01
        close(one.mean[-1], other.mean[-1], 1e-10)
        close(one.cov[-1], other.cov[-1], 1e-10)
    # as printed the first round follows grad f_c(x) - grad f_c(0): clients are drawn to zero
    zeros = Quadratic(problem.hessians, np.zeros((3, 2)), problem.weights, 0.4)
    close(printed.mean[1], exact_law(zeros, FAHMC(0.2, 3, 2, 0.5), 1, start=start).mean[1])


def test_debiasing_equal_clients_changes_nothing():
    hessian = np.array([[3.0, 1.0], [1.0, 2.0]])
    problem = Quadratic(np.tile(hessian, (3, 1, 1)), np.tile([1.0, -2.0], (3, 1)), [0.5, 0.3, 0.2], 0.3)
    plain = exact_law(problem, FAHMC(0.2, 3, 4, 0.3), 20)
    for debias in (("fresh", "none"), ("stale", "none"), ("stale", "exact")):
        law = exact_law(problem, FAHMC(0.2, 3, 4, 0.3, *debias), 20)
        close(law.mean, plain.mean, 1e-11)
        close(law.cov, plain.cov, 1e-11)


def test_equal_hessians_leave_no_trace_of_rounds_and_of_shared_noise():
    """T local updates are T rounds of one, for any minimizers, weights and gradient noise."""
    rng = np.random.default_rng(3)
    hessian = np.array([[3.0, 1.0], [1.0, 2.0]])
    problem = Quadratic(np.tile(hessian, (6, 1, 1)), 10.0 * rng.normal(size=(6, 2)),
                        rng.dirichlet(np.ones(6)), 0.5)
    reference = exact_law(problem, FAHMC(0.2, 4, 1), 60)
    for count, shared in itertools.product((2, 5, 12, 60), (0.0, 0.3, 1.0)):
        law = exact_law(problem, FAHMC(0.2, 4, count, shared), 60 // count)
        close(law.mean, reference.mean[::count], 1e-10)
        close(law.cov, reference.cov[::count], 1e-10)


@pytest.mark.parametrize(("debias", "first_round"), DEBIAS)
def test_scale_covariance(debias, first_round):
    """x -> s x with curvatures / s^2, steps * s and gradient noise / s."""
    problem, scale = make_problem(noise=0.6), 37.5
    scaled = Quadratic(problem.hessians / scale**2, scale * problem.minimizers, problem.weights, 0.6 / scale)
    for participation in (None, SCHEME_I):
        one = exact_law(problem, FAHMC(0.2, 3, 2, 0.4, debias, first_round, participation), 30)
        other = exact_law(scaled, FAHMC(0.2 * scale, 3, 2, 0.4, debias, first_round, participation), 30)
        close(other.mean, scale * one.mean, 1e-10)
        close(other.cov, scale**2 * one.cov, 1e-10)


@pytest.mark.parametrize(("debias", "first_round"), DEBIAS)
@pytest.mark.parametrize("participation", [None, SCHEME_I])
def test_structures_and_schedules_agree(participation, debias, first_round, monkeypatch):
    """Diagonal Hessians given as matrices, and a schedule that stays constant; leaps equal steps."""
    problem, start = make_problem("diagonal", n_clients=4, dim=3, noise=0.5), gaussian_start(3)
    options = (3, 2, 0.3, debias, first_round, participation)
    law = exact_law(problem, FAHMC(0.1, *options), 60, start=start)
    for other in (exact_law(as_dense(problem), FAHMC(0.1, *options), 60, start=start),
                  exact_law(problem, FAHMC(np.full(120, 0.1), *options), 60, start=start)):
        close(other.mean, law.mean, 1e-11)
        close(other.cov, law.cov, 1e-11)
    monkeypatch.setattr(affine, "STEP_ROUNDS", 0)
    for given in (problem, as_dense(problem)):
        for covariance in ("full", "diagonal"):
            leapt = exact_law(given, FAHMC(0.1, *options), 60, start=start, record=[1, 2, 7],
                              covariance=covariance)
            cov = law.cov if covariance == "full" else np.diagonal(law.cov, axis1=1, axis2=2)
            close(leapt.mean, law.mean[[0, 1, 2, 7, 60]], 1e-11)
            close(leapt.cov, cov[[0, 1, 2, 7, 60]], 1e-11)


def test_all_clients_drawn_without_replacement_is_full_participation():
    problem = make_problem(n_clients=4, uniform=True, noise=0.2)
    for debias, first_round in DEBIAS:
        one, other = (exact_law(problem, FAHMC(0.1, 3, 6, 0.2, debias, first_round, p), 40)
                      for p in (None, Participation(4, False)))
        close(one.cov, other.cov, 0.0)
        assert other.is_gaussian


@pytest.mark.parametrize(("debias", "first_round"), DEBIAS)
@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize(("structure", "noise"), [("dense", "covariances"), ("diagonal", 0.4),
                                                  ("isotropic", "covariances")])
def test_stationary_law_is_the_long_run(structure, noise, participation, debias, first_round):
    problem = make_problem(structure, n_clients=4, dim=3, noise=noise, uniform=participation is SCHEME_II)
    algorithm = FAHMC(0.1, 4, 2, 0.3, debias, first_round, participation)
    law, limit = exact_law(problem, algorithm, 600), stationary_law(problem, algorithm)
    close(limit.mean, law.mean[-1], 1e-10)
    close(limit.cov, law.cov[-1], 1e-10)
    again = stationary_law(problem, algorithm, client=2)
    close(again.cov, limit.cov, 0.0)


def test_a_thousand_dimensions_and_a_billion_rounds_are_instant():
    rng = np.random.default_rng(2)
    problem = Quadratic(rng.uniform(1.0, 2.0, size=(2, 1000)), rng.normal(size=(2, 1000)))
    for debias in (None, "stale", "fresh"):
        algorithm = FAHMC(0.02, 5, 10, 1.0, debias)
        algorithm.stability(problem)  # not timed: only the law is
        began = time.perf_counter()
        law = exact_law(problem, algorithm, 10**9, record=[3, 50], covariance="diagonal")
        limit = stationary_law(problem, algorithm)
        assert time.perf_counter() - began < 2.0  # 0.1 s unloaded
        close(law.cov[-1], limit.variances, 1e-9)
        part = Quadratic(problem.hessians[:, :2], problem.minimizers[:, :2])
        few = exact_law(part, algorithm, 10**9, record=[3, 50])
        close(law.mean[:, :2], few.mean, 1e-11)
        close(law.cov[:, :2], np.diagonal(few.cov, axis1=1, axis2=2), 1e-11)


SAMPLED = [(structure, participation, debias, first_round)
           for structure in ("dense", "diagonal") for participation in (None, SCHEME_I, SCHEME_II)
           for debias, first_round in DEBIAS[::2] + DEBIAS[1:2]]


@pytest.mark.parametrize(("structure", "participation", "debias", "first_round"), SAMPLED)
def test_sampled_rounds_have_the_exact_law(structure, participation, debias, first_round, alarm):
    noise = "covariances" if structure == "dense" else 0.4
    problem = make_problem(structure, n_clients=4, dim=2, noise=noise, uniform=participation is SCHEME_II)
    for step in (0.15, DECREASING):
        algorithm = FAHMC(step, 3, 3, 0.4, debias, first_round, participation)
        start, replicas = gaussian_start(2), 10_000
        drawn = sample_rounds(problem, algorithm, 7, replicas, 11, start=start, record=[1, 3])
        law = exact_law(problem, algorithm, 7, start=start, record=[1, 3])
        errors = drawn - law.mean
        deviation = np.sqrt(np.diagonal(law.cov, axis1=1, axis2=2) / replicas)
        alarm.assert_normal(errors.mean(axis=0) / deviation, "mean")
        for i, j in ((0, 0), (0, 1), (1, 1)):
            products = errors[..., i] * errors[..., j]
            z = (products.mean(axis=0) - law.cov[:, i, j]) / (products.std(axis=0) / np.sqrt(replicas))
            alarm.assert_student(z, replicas - 1, "covariance")


def test_sampled_rounds_leap(alarm):
    for structure in ("dense", "diagonal"):
        problem = make_problem(structure, noise="covariances")
        algorithm = FAHMC(0.1, 3, 4, 0.2, "stale", "printed")
        limit = stationary_law(problem, algorithm)
        drawn = sample_rounds(problem, algorithm, 10**9, 10_000, 3)[:, 0]
        alarm.assert_normal((drawn.mean(axis=0) - limit.mean) / np.sqrt(np.diagonal(limit.cov) / 10_000))
        squares = (drawn - limit.mean) ** 2
        alarm.assert_student((squares.mean(axis=0) - np.diagonal(limit.cov)) / (
            squares.std(axis=0) / np.sqrt(10_000)), 9_999)


def test_schedules_have_no_stationary_law():
    with pytest.raises(NoExactLaw, match="changes from step to step"):
        stationary_law(make_problem(), FAHMC(DECREASING, 2))
    with pytest.raises(ValueError, match="step_size has 3"):
        exact_law(make_problem(), FAHMC([0.1, 0.1, 0.1], 2, 2), 2)


STEEP = Quadratic([0.1, 10.0], [[1.0], [0.0]])
LONE = Quadratic([2.0], [[1.0]])
REFUSED = [
    (LONE, FAHMC(1.5, 3), "step_size=1.5 must be less than the stability limit 1.41421", np.sqrt(2.0)),
    (LONE, FAHMC(np.array([0.1, 1.5]), 3), "step_size=1.5 must be less than", np.sqrt(2.0)),
    (LONE, FAHMC(1.0, 2), r"step_size=1 .* limit 1 \(a resonance.* radius 1", 1.0),
    (LONE, FAHMC(1.0, 4, 3, participation=Participation(2, True)), "a resonance", 1.0),
    (LONE, FAHMCFlow(np.pi / np.sqrt(2.0), 3), "trajectory_length=2.22144 .* limit 2.22144", 2.2214415),
    (STEEP, FAHMC(0.1, 10, 5, debias="fresh"), "limit 0.0534322 .* radius 5.17398", 0.0534322),
    (STEEP, FAHMC(0.1, 10, 5, debias="stale"), "limit 0.0454045 .* radius 2.25015", 0.0454045),
    (STEEP, FAHMC(0.01, 10, 1000, debias="stale"), "limit 0.00321429", 0.00321429),
]


@pytest.mark.parametrize(("problem", "algorithm", "message", "limit"), REFUSED)
def test_no_law_beyond_stability(problem, algorithm, message, limit):
    """Also at resonance, where an update returns every trajectory to where it began."""
    for function, numbers in ((exact_law, (2,)), (stationary_law, ()), (joint_law, (2,)),
                              (sample_rounds, (2, 2, 0))):
        with pytest.raises(UnstableStepSize, match=message) as refused:
            function(problem, algorithm, *numbers)
        assert refused.value.limit == pytest.approx(limit, rel=1e-5)
    assert exact_law(problem, algorithm, 2, allow_unstable=True).cov.shape == (3, 1, 1)


def test_stability_is_that_of_the_law():
    """Inside the limit the debiased law settles, just beyond it does not."""
    for debias, participation in itertools.product(("stale", "fresh"), (None, Participation(1, True))):
        limit = FAHMC(0.01, 10, 5, 0.5, debias, participation=participation).stability(STEEP).max_step_size
        inside, outside = (FAHMC(factor * limit, 10, 5, 0.5, debias, participation=participation)
                           for factor in (0.98, 1.02))
        law = exact_law(STEEP, inside, 1500)
        close(law.cov[-1], stationary_law(STEEP, inside).cov, 1e-6)
        grown = exact_law(STEEP, outside, 1500, allow_unstable=True).cov[[-750, -1], 0, 0]
        assert grown[1] > 100.0 * grown[0]
