"""Stale gradients: long paths, degenerate cases, time averages."""

from __future__ import annotations

import naive_stale
import numpy as np
import pytest
from examples_of.stale import mean_model
from problems import quadratic
from scipy import stats

import fedsim as fs
import theory
from theory.exact.delay import average_law

SEED = 0x1F83D9ABFB41BD6B


def test_a_long_path_keeps_its_history():
    """The ring of iterates goes round many times."""
    problem, algorithm = quadratic(2, 2, noise=0.3), fs.StaleSGLD(0.05, fs.Workers(5, "pareto", seed=3))
    paths = fs.sample_path(problem, algorithm, 200, seed=SEED, n_chains=2)
    for replica in (0, 1):
        slow = naive_stale.chain(problem, algorithm, 200, SEED, replica)
        np.testing.assert_allclose(paths[replica], slow[1:], rtol=0, atol=1e-12 * np.abs(slow).max())


def test_schedules_differ_and_begin_with_the_one_of_a_single_schedule():
    workers = fs.Workers(4, "lognormal", seed=2, schedules=3)
    assert len({tuple(workers.history(9, number).ages) for number in range(3)}) == 3
    np.testing.assert_array_equal(fs.Workers(4, "lognormal", seed=2).ages(9), workers.ages(9))
    run = fs.simulate(quadratic(2, 4, "diagonal"), fs.StaleSGLD(0.1, workers), 9, 70, seed=SEED)
    assert not run.is_gaussian


@pytest.mark.parametrize("problem", [quadratic(3, 3, noise="cov"), quadratic(2, 1), mean_model(4),
                                     mean_model(None)], ids=repr)
def test_zero_staleness_is_sgld(problem):
    options = {"n_rounds": 20, "n_replicas": 70, "seed": 5, "keep_final": True}
    h = 0.2 * fs.StaleSGLD(1e-9).stability(problem).max_step_size
    stale = fs.simulate(problem, fs.StaleSGLD(h), **options)
    fresh = fs.simulate(problem.pooled(), fs.FALD(h), **options)
    np.testing.assert_allclose(stale.final, fresh.final, rtol=0, atol=1e-12 * np.abs(fresh.final).max())
    np.testing.assert_allclose(stale.cov, fresh.cov, rtol=1e-10, atol=1e-13)
    if isinstance(problem, fs.Quadratic):
        found, known = (theory.exact_law(p, a, 20) for p, a in ((problem, fs.StaleSGLD(h)),
                                                               (problem.pooled(), fs.FALD(h))))
        np.testing.assert_allclose(found.mean, known.mean, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.cov, known.cov, rtol=1e-12, atol=1e-14)


def test_a_step_that_ends_in_one_update_is_stable():
    """One worker's gradients are fresh, and step_size curvature = 1 leaves nothing to grow or to shrink."""
    for staleness in (fs.Workers(1), [0] * 130):
        algorithm = fs.StaleSGLD(0.5, staleness)
        assert algorithm._radius(fs.Quadratic([2.0], [[1.0]])) == 0.0
        assert algorithm._radius(fs.Quadratic([[2.0, 1.0]], [[1.0, 1.0]])) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("tau", [0, 1, 4])
def test_friction_one_over_h_is_sgld_of_step_h_squared(tau):
    problem, h = quadratic(3, 2, noise=0.5), 0.2
    momentum, plain = fs.StaleSGHMC(h, 1.0 / h, tau), fs.StaleSGLD(h * h, tau)
    options = {"n_rounds": 25, "n_replicas": 70, "seed": 5, "keep_final": True, "start": [1.0, -2.0]}
    one, two = (fs.simulate(problem, algorithm, **options) for algorithm in (momentum, plain))
    np.testing.assert_allclose(one.final, two.final, rtol=0, atol=1e-12)
    laws = [theory.exact_law(problem, algorithm, 25, start=[1.0, -2.0]) for algorithm in (momentum, plain)]
    np.testing.assert_allclose(laws[0].cov, laws[1].cov, rtol=1e-12, atol=1e-14)


def test_clients_of_a_regression_are_pooled():
    rng = np.random.default_rng(4)
    features, labels = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    clients = np.arange(40) % 3
    options = {"prior_variance": 2.0, "batch_size": 4}
    for make, target in ((fs.LogisticRegression, {}), (fs.LinearRegression, {"noise_std": 1.5})):
        several = make(features, labels, clients, **options, **target)
        one = make(features, labels, np.zeros(40, int), **options, **target)
        x = rng.standard_normal(3)
        np.testing.assert_allclose(several.pooled().gradient(0, x), several.gradient(None, x), rtol=1e-12)
        runs = [fs.simulate(problem, algorithm, 10, 64, seed=3) for problem, algorithm in (
            (several, fs.StaleSGLD(0.01)), (one, fs.FALD(0.01)))]
        np.testing.assert_allclose(runs[0].mean, runs[1].mean, rtol=1e-11, atol=1e-13)
    noisy = fs.LogisticRegression(features, labels, clients, prior_variance=2.0, gradient_noise=0.5)
    assert noisy.pooled().gradient_noise == pytest.approx(0.5 * np.sqrt((noisy.weights**2).sum()))
    linear = fs.LinearRegression(features, labels, clients, prior_variance=2.0, noise_std=1.0)
    law = theory.exact_law(linear, fs.StaleSGLD(0.01, 2), 5)
    np.testing.assert_allclose(law.cov, theory.exact_law(linear.as_quadratic(), fs.StaleSGLD(0.01, 2), 5).cov)


WORKERS = fs.Workers(4, "exponential", seed=7)
GROUPS, SIZE = 100, 500
"""Groups of replicas whose estimates give standard errors without a law for the averages."""


def average_scores(averages, law):
    """Student statistics of mean, variance and mean squared error of time averages, from groups."""
    last = law.at(int(law.lengths[-1]))
    groups = averages.reshape(GROUPS, SIZE)
    estimates = {"mean": (groups.mean(axis=1), last.mean[0]),
                 "variance": (groups.var(axis=1, ddof=1), last.variance[0]),
                 "mse": (((groups - last.truth) ** 2).mean(axis=1), last.mse[0])}
    return {name: (found.mean() - exact) / (found.std(ddof=1) / np.sqrt(GROUPS))
            for name, (found, exact) in estimates.items()}


AVERAGES = {
    "fixed": (quadratic(3, 1, noise=1.0), fs.StaleSGLD(0.15, 3), [2.0]),
    "listed": (quadratic(noise=1.0), fs.StaleSGLD(0.1, [0, 1, 2, 0, 1, 4, 6, 2] + [3] * 32), None),
    "workers": (quadratic(3, 3, noise="cov"), fs.StaleSGLD(0.05, WORKERS), [1.0, 1.0, 1.0]),
    "momentum": (quadratic(3, 2, noise=1.0), fs.StaleSGHMC(0.15, 3.0, WORKERS), [2.0, 1.0]),
    "minibatches": (mean_model(2), fs.StaleSGLD(0.008, 3), [1.0]),
    "schedules": (quadratic(2, 1, noise=1.0), fs.StaleSGLD(0.15, fs.Workers(4, seed=3, schedules=5)), [4.0]),
    "minibatches, workers": (mean_model(1, True), fs.StaleSGHMC(0.04, 4.0, WORKERS), None),
}


@pytest.mark.parametrize("function", ["square", "identity"])
@pytest.mark.parametrize("name", AVERAGES)
def test_time_averages_have_the_exact_bias_variance_and_error(name, function, alarm):
    problem, algorithm, start = AVERAGES[name]
    law = average_law(problem, algorithm, 40, start=start, function=function)
    run = fs.simulate(problem, algorithm, 40, GROUPS * SIZE, seed=33, start=start, average=function,
                      record=())
    for what, score in average_scores(run.averages, law).items():
        alarm.assert_student(score, GROUPS - 1, f"{name}, {what} of {function}")


def test_minibatches_are_not_normal_in_the_variance_of_squares():
    """What the exact variance gains over a normal noise of the same variance is seen by this test."""
    problem, algorithm, start = AVERAGES["minibatches"]
    exact, normal = (average_law(p, algorithm, 40, start=start, truth=0.0).variance[-1]
                     for p in (problem, problem.as_quadratic()))
    assert abs(exact / normal - 1.0) > 0.005


def test_estimators(alarm):
    """Values by their definitions, and intervals that cover."""
    problem, algorithm, start = AVERAGES["fixed"]
    law = average_law(problem, algorithm, 40, start=start)
    run = fs.simulate(problem, algorithm, 40, 40_000, seed=35, start=start, average="square", record=())
    found = fs.estimators.errors(run.averages, law.truth)
    n = len(run.averages)
    mse = found.bias.value**2 + found.variance.value * (n - 1) / n
    assert found.mse.value == pytest.approx(mse, rel=1e-12)
    hits = {name: 0 for name in ("bias", "variance", "mse")}
    for group in run.averages.reshape(200, 200):
        parts = fs.estimators.errors(group, law.truth, level=0.9)
        for name in hits:
            part = getattr(parts, name)
            hits[name] += part.low <= getattr(law, name)[-1] <= part.high
            assert part.low < part.value < part.high and part.error > 0.0
    for name, count in hits.items():  # intervals are approximate: 0.85 to 0.95 are allowed besides chance
        alarm.assert_pvalue(stats.binom.cdf(count, 200, 0.85), name)
        alarm.assert_pvalue(stats.binom.sf(count - 1, 200, 0.95), name)


def test_servers_are_combined_by_time(alarm):
    problem = quadratic(1, 1, noise=0.5)
    lengths, steps = (20, 60), (0.3, 0.1)
    algorithms = [fs.StaleSGLD(h, 2) for h in steps]
    times = np.multiply(lengths, steps)
    law = theory.exact.delay.combine_servers(
        [average_law(problem, a, n) for a, n in zip(algorithms, lengths, strict=True)], times)
    runs = [fs.simulate(problem, a, n, GROUPS * SIZE, seed=40 + n, average="square", record=())
            for a, n in zip(algorithms, lengths, strict=True)]
    together = fs.estimators.combine([run.averages for run in runs], times)
    for what, score in average_scores(together, law).items():
        alarm.assert_student(score, GROUPS - 1, what)


def test_an_average_that_counts_the_start_is_caught(alarm):
    problem, algorithm, start = *AVERAGES["fixed"][:2], [6.0]
    law = average_law(problem, algorithm, 40, start=start)
    run = fs.simulate(problem, algorithm, 40, GROUPS * SIZE, seed=33, start=start, average="square",
                      record=(), keep_final=True)
    shifted = run.averages + (np.square(start).sum() - run.final[:, 0] ** 2) / 40  # l = 0, ..., L - 1
    alarm.must_fail(list(average_scores(shifted, law).values()), "theta_0 in the average")
