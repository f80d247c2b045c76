"""DE-SGLD and DE-SGHMC: momenta, frictions and step sizes that are allowed, plans, minibatches."""

from __future__ import annotations

import dataclasses
from math import sqrt

import numpy as np
import pytest
from examples_of.decentralized import W, by_hand

import fedsim as fs
import theory
from reproduce import random_settings

SEED = 20240811
LD, HMC = theory.de_sgld, theory.de_sghmc


# --- momenta and frictions that Theorem 11 allows

def test_largest_momentum_solves_the_implicit_condition():
    rng = np.random.default_rng([SEED, 3])
    for _ in range(200):
        clients = int(rng.integers(1, 8))
        mixing, high = random_settings.network(rng, clients), 10.0 ** rng.uniform(-3, 3)
        mu = high * 10.0 ** rng.uniform(-3, 0)
        eta = HMC.step_size_limit(mu, high, mixing) * rng.uniform(0.1, 1.0)
        least = fs.network.smallest_eigenvalue(mixing)

        def room(beta, mu=mu, high=high, eta=eta, least=least):  # (38) as printed, before it is solved
            c1 = 0.5 * eta**2 * mu / ((1 + beta) + (1 - beta) * eta**2 * mu / (1 - least + eta**2 * high))
            linear = (1 + least - 4 * eta**2 * mu) / 4
            return min(linear, eta**3 * sqrt(c1 * mu**3 * (1 + least) / 64)) - beta

        beta = HMC.largest_momentum(mu, high, mixing, eta)
        assert abs(room(beta)) <= 1e-9 * beta + 1e-16
        assert room(0.999 * beta) >= 0.0 > room(1.001 * beta + 1e-15)
        easy = eta**4 * mu**2 * sqrt(1 + least) / 16  # a sufficient closed form
        assert room(min(easy, beta)) >= -1e-9 * beta - 1e-16
        low, top = HMC.friction_interval(mu, high, mixing, eta)
        assert low <= top == 1 / eta and 1 - low * eta == pytest.approx(beta, abs=1e-15)
        for friction, inside in ((low, True), (top, True), (low * (1 - 1e-9), False)):
            algorithm = fs.DESGHMC(eta, friction, mixing)
            known = by_hand(strong_convexity=mu, smoothness=high, n_clients=clients, gaps_at_origin=None,
                            gradient_at_minimizer=np.ones(clients), gradient_noise_traces=0.0)
            step, momentum = HMC.chain(known, algorithm).hypotheses
            assert step.holds and momentum.holds is inside


# --- the paper's own settings

def regression(batch_size=None):
    rng = np.random.default_rng(0)
    truth, features = sqrt(10) * rng.standard_normal(2), rng.standard_normal((5000, 2))
    targets = features @ truth + rng.standard_normal(5000)
    return fs.LinearRegression(features, targets, np.arange(5000) % 100, noise_std=1.0, prior_variance=10.0,
                               batch_size=batch_size)


@pytest.mark.parametrize("network, step, average, clients", [
    (fs.network.complete, 0.008, 1600.0, 1800.0), (fs.network.complete, 1e-5, 0.05, 0.07),
    (fs.network.ring, 0.006, 4e8, 4.6e8)])
def test_size_of_the_bound_in_the_papers_setting(network, step, average, clients):
    """Orders of magnitude: the bound is 10^5 to 10^11 times the exact W2 where Figure 2 is drawn."""
    problem, algorithm = regression(), fs.DESGLD(step, network(100))
    facts = theory.constants(problem, algorithm)
    assert 17 < facts.strong_convexity < 30 and 74 < facts.smoothness < 107
    bound = LD.w2_bound(facts, algorithm, n_rounds=10**9, record=[])
    assert bound.hypotheses_hold and bound.floor == pytest.approx(average, rel=0.3)
    assert LD.w2_clients_bound(facts, algorithm, n_rounds=0).floor == pytest.approx(clients, rel=0.3)
    exact = theory.stationary_law(problem, algorithm).w2(problem.target())
    assert 1e4 < bound.floor / exact < 1e12


def test_friction_of_figure_3_is_not_allowed():
    problem = regression()
    curvature = problem.curvature_bounds("components")
    for network in (fs.network.complete(100), fs.network.ring(100)):
        with pytest.raises(LD.NotApplicable, match=r"step_size=0.1 must be at most 0.0"):
            HMC.friction_interval(*curvature, network, 0.1)
        low, high = HMC.friction_interval(*curvature, network, HMC.step_size_limit(*curvature, network))
        assert 7 < 0.99 * high < low < high
        with pytest.raises(LD.NotApplicable, match="has no value"):
            algorithm = fs.DESGHMC(0.1, 7.0, network)
            HMC.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=3)


def test_lemma_9_in_its_printed_range():
    problem = fs.Quadratic.from_components(np.array([[0.1, 1.0]] * 5), np.zeros((5, 2)))
    algorithm = fs.DESGLD(0.99 * 10 / 1.1, fs.network.complete(5))
    verdict = theory.examine("de_sgld.euler_bound", problem, algorithm, 10, variant="printed")
    assert verdict.contradicts_theorem
    assert not theory.examine("de_sgld.euler_bound", problem, algorithm, 10).hypotheses_met


# --- step sizes: Remarks 2 and 12, and the plan

def test_step_size_of_remark_2():
    rng = np.random.default_rng([SEED, 6])
    for _ in range(200):
        mixing = random_settings.network(rng, int(rng.integers(1, 8)))
        high, c = 10.0 ** rng.uniform(-3, 3), rng.uniform(1.01, 4.0)
        mu = high * 10.0 ** rng.uniform(-3, 0)
        for module, limit, order in ((LD, LD.step_size_limit, 1), (HMC, HMC.step_size_limit, 2)):
            enough = module.least_iterations(mu, high, mixing, c)
            step = module.remark_step_size(mu, high, mixing, enough, c)
            assert step**order == pytest.approx(c * np.log(sqrt(enough)) / (mu * enough))
            assert step <= limit(mu, high, mixing) * (1 + 1e-12)
            for few in (2, 5, enough // 2 + 2):
                inside = (c * np.log(few) / (2 * mu * few)) ** (1 / order) <= limit(mu, high, mixing)
                if not inside:
                    with pytest.raises(ValueError, match="n_iterations"):
                        module.remark_step_size(mu, high, mixing, few, c)
    with pytest.raises(ValueError, match="c=1"):
        LD.least_iterations(1.0, 2.0, W, 1.0)


@pytest.mark.parametrize("eps", [3.0, 0.5, 0.05])
def test_the_plan_keeps_its_promise(eps):
    problem = fs.Quadratic.from_components([1.0, 2.0, 1.5], [[0.3], [0.2], [-0.1]])
    facts = theory.constants(problem, fs.DESGLD(0.1, W), [2.0])
    found = LD.plan(facts, fs.DESGLD(0.1, W), eps)
    bound = LD.w2_bound(facts, found.algorithm, n_rounds=found.n_rounds, record=[])
    assert bound.hypotheses_hold and bound.value[-1] <= eps
    assert theory.exact_law(problem, found.algorithm, found.n_rounds, start=[2.0], record=[]).w2()[-1] <= eps
    assert (bound.value[-1], bound.floor) == (found.value, found.floor)
    assert found.n_rounds == 0 or LD.w2_bound(
        facts, found.algorithm, n_rounds=found.n_rounds - 1, record=[]).value[-1] > eps
    compared = theory.tuning.compare(problem, fs.DESGLD(0.1, W), eps, start=[2.0])
    assert compared.planned_rounds <= compared.predicted_rounds


# --- minibatches (appendix D) and regression's constants (appendix E)

def test_minibatch_noise_grows_no_faster_than_said():
    rng = np.random.default_rng([SEED, 7])
    features, targets = rng.standard_normal((30, 2)), 3.0 * rng.standard_normal(30)
    for replace in (True, False):
        problem = fs.LinearRegression(features, targets, np.arange(30) % 3, noise_std=0.7, prior_variance=2.0,
                                      batch_size=4, replace=replace)
        growth = LD.noise_growth(problem)
        worst = 0.0
        for x in 10.0 ** rng.uniform(-2, 2, (200, 1)) * rng.standard_normal((200, 2)):
            for c in range(3):
                mine = problem.clients == c
                rows = (features[mine] @ x - targets[mine])[:, None] * features[mine] / 0.7**2
                centred = rows - rows.mean(axis=0)  # n/b sum of b draws of rows
                trace = 10.0**2 / 4 * (centred**2).sum() / 10 * (1.0 if replace else 6.0 / 9.0)
                worst = max(worst, trace / (1.0 + x @ x))
        assert 0.05 * growth < worst <= growth


def test_theorem_1_with_minibatches():
    """sigma^2 a priori and a posteriori against the exact moments; the former needs a small step."""
    rng = np.random.default_rng([SEED, 8])
    features = rng.standard_normal((60, 2))
    targets = features @ [1.0, -0.5] + rng.standard_normal(60)
    problem = fs.LinearRegression(features, targets, np.arange(60) % 3, noise_std=1.0, prior_variance=10.0,
                                  batch_size=10)
    for step, known in ((2e-4, "a_priori"), (2e-4, "a_posteriori"), (0.01, "a_posteriori")):
        algorithm = fs.DESGLD(step, W)
        options = {"n_rounds": 200} if known == "a_posteriori" else {}
        facts = LD.minibatch_constants(problem, algorithm, known=known, **options)
        # the noise at the start is what the first step's covariance has beyond that of exact gradients
        rough, calm = (theory.exact.joint_law(followed, algorithm, 1).cov[1]
                       for followed in (problem, problem.as_quadratic()))
        noise = np.trace((rough - calm).reshape(3, 2, 3, 2), axis1=1, axis2=3).diagonal() / step**2
        assert (noise > 0.0).all() and (noise <= facts.gradient_noise_traces * (1 + 1e-9)).all()
        bound = LD.w2_bound(facts, algorithm, n_rounds=200)
        verdict = theory.check(bound, theory.exact_law(problem, algorithm, 200))
        assert bound.hypotheses_hold and verdict.holds and "not Gaussian" in verdict.note
    with pytest.raises(LD.NotApplicable, match="appendix D"):
        LD.minibatch_constants(problem, fs.DESGLD(0.01, W))
    with pytest.raises(ValueError, match="appendix D is about it alone"):
        LD.minibatch_constants(problem, fs.DESGHMC(0.01, 1.0, W))
    with pytest.raises(ValueError, match="depends on the state"):
        theory.constants(problem, fs.DESGLD(0.01, W))
    summed = dataclasses.replace(problem, grad_scale="batch_sum")
    with pytest.raises(ValueError, match="must be 'unbiased'"):
        LD.noise_growth(summed)


def test_constants_of_logistic_regression():
    rng = np.random.default_rng([SEED, 9])
    features = rng.standard_normal((60, 2))
    labels = (rng.random(60) < 0.5).astype(float)
    problem = fs.LogisticRegression(features, labels, np.arange(60) % 3, prior_variance=4.0, batch_size=5)
    algorithm = fs.DESGLD(0.01, W)
    facts = theory.constants(problem, algorithm)
    low, high = problem.curvature_bounds("components")
    assert (facts.strong_convexity, facts.smoothness) == pytest.approx((low, high), rel=1e-12)
    assert facts.target is None and facts.initial_w2 is None
    assert np.linalg.norm(facts.gradient_at_minimizer.sum(axis=0)) < 1e-9
    for c in range(3):  # |slope| <= 1, and f_i is at least 0
        mine = problem.clients == c
        assert facts.gradient_noise_traces[c] == pytest.approx(20 / 5 * (features[mine] ** 2).sum())
        assert facts.gaps_at_origin[c] >= problem.weights[c] * problem.potential(c, np.zeros(2)) * (1 - 1e-12)
    assert np.isfinite(LD.w2_bound(facts, algorithm, n_rounds=5).value).all()
