"""Ages of gradients from a simulated server and its workers; the Gaussian model."""

from __future__ import annotations

from itertools import combinations, product

import naive_stale
import numpy as np
import pytest
from examples_of.stale import DATA, mean_model

import fedsim as fs
import fedsim.vector.compile
import theory
from fedsim.settings import server

# --- the server and its workers

@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_round_robin(n):
    """Equal deterministic service: ages 0, 1, ..., n-1, n-1, ..."""
    for cost in (0.0, 0.01):
        ages = fs.Workers(n, "deterministic", update_cost=cost).ages(50)
        np.testing.assert_array_equal(ages, np.minimum(np.arange(50), n - 1))
    np.testing.assert_array_equal(fs.StaleSGLD(0.1, n - 1).ages(50), ages)


@pytest.mark.parametrize("service", ["exponential", "lognormal", "pareto"])
def test_exchangeable_service_has_mean_age_one_less_than_the_workers(service):
    for n in (1, 4, 9):
        history = fs.Workers(n, service, seed=3).history(40_000)
        oldest = history.ages.max()
        # every update's age counts the others since this worker's last one: ages add up to n - 1 each,
        # but for what is unfinished at the end
        assert abs(history.ages.mean() - (n - 1)) <= n * (oldest + 1) / 40_000
        assert (np.diff(history.times) >= 0.0).all() and (history.ages <= np.arange(40_000)).all()
        assert n == 1 or oldest > n
        assert (history.utilisation == 1.0).all()  # nobody waits for a server without costs
        assert 40_000 / history.times[-1] == pytest.approx(n, rel=0.05)  # mean service time 1


@pytest.mark.parametrize("service", ["deterministic", "exponential", "lognormal", "pareto"])
def test_ages_against_the_slow_twin(service):
    rng = np.random.default_rng(11)
    draws = {"deterministic": lambda: np.ones(1024), "exponential": lambda: rng.exponential(size=1024),
             "lognormal": lambda: rng.lognormal(-0.125, 0.5, size=1024),
             "pareto": lambda: (1.0 + rng.pareto(2.5, size=1024)) * 0.6}[service]

    def times():
        while True:
            yield from draws()

    history = fs.Workers(6, service, seed=11).history(3000)
    ages, clock = naive_stale.worker_ages(times(), 6, 3000)
    np.testing.assert_array_equal(history.ages, ages)
    np.testing.assert_allclose(history.times, clock, rtol=1e-12)
    shorter = fs.Workers(6, service, seed=11).ages(500)
    np.testing.assert_array_equal(shorter, history.ages[:500])  # a longer run begins like a shorter one


def intervals(workers, n_updates):
    """Busy time of each worker up to the last update, from a list of all its gradients; slow twin."""
    draws = server.service_times(workers.service, np.random.default_rng(workers.seed))
    ready = [next(draws) for _ in range(workers.n)]
    begun, order = [0.0] * workers.n, list(range(workers.n))
    version, busy, free, done, sent = [0] * workers.n, [[] for _ in order], 0.0, 0, workers.n
    while done < n_updates:
        worker = min(range(workers.n), key=lambda w: (ready[w], order[w]))
        now = ready[worker]
        busy[worker].append((begun[worker], now))
        if workers.cap is None or done - version[worker] <= workers.cap:
            now = free = max(free, now) + workers.update_cost
            done += 1
        version[worker], begun[worker], order[worker] = done, now, sent
        ready[worker], sent = now + next(draws), sent + 1
    for worker, past in enumerate(busy):
        past.append((begun[worker], ready[worker]))
    return [sum(max(min(b, free) - a, 0.0) for a, b in past) for past in busy], free


@pytest.mark.parametrize("service", ["deterministic", "exponential", "lognormal", "pareto"])
@pytest.mark.parametrize(("cost", "cap"), [(0.0, None), (0.3, None), (0.05, 4), (2.0, None)])
def test_utilisation_counts_work_in_flight(service, cost, cap):
    for n, updates in product((1, 3, 6), (1, 2, 7, 500)):
        workers = fs.Workers(n, service, cost, cap, seed=n)
        history = workers.history(updates)
        busy, end = intervals(workers, updates)
        assert history.times[-1] == pytest.approx(end, rel=1e-12)
        np.testing.assert_allclose(history.busy, busy, rtol=1e-12, atol=1e-12 * end)
        assert (history.utilisation <= 1.0).all() and (history.utilisation >= 0.0).all()
        if cost == 0.0:
            assert (history.utilisation == 1.0).all()
        else:
            assert history.utilisation.max() < 1.0 or n > 1


def test_utilisation_of_the_first_update_and_of_none():
    """All six compute until the first of them is done, and the unfinished work counts."""
    assert fs.Workers(6, "pareto", seed=0).history(1).utilisation.tolist() == [1.0] * 6
    waiting = fs.Workers(3, "deterministic", update_cost=1.0).history(3)  # done at 2, 3 and 4
    np.testing.assert_allclose(waiting.busy, [2.0, 2.0, 1.0])
    with pytest.raises(ValueError, match="n_updates=0 must be at least 1"):
        assert fs.Workers(2).history(0).utilisation is None


def test_caps_and_the_cost_of_updates():
    capped = fs.Workers(9, cap=10, seed=2).history(5000)
    assert capped.ages.max() <= 10 and capped.discarded > 0
    busy = fs.Workers(9, update_cost=0.5, seed=2).history(5000)
    assert busy.times[-1] >= 2500.0  # the server handles one gradient at a time
    assert np.diff(busy.times).min() >= 0.5 - 1e-9
    strict = fs.Workers(5, cap=0, seed=2).history(100)
    assert not strict.ages.any() and strict.discarded > 100


def counted(monkeypatch, most):
    """Service times are counted; more than so many are a failure."""
    made, times = [0], server.service_times

    def counting(service, rng):
        for time in times(service, rng):
            made[0] += 1
            assert made[0] <= most, "more work than a refusal may cost"
            yield time

    monkeypatch.setattr(server, "service_times", counting)
    return made


def test_a_cap_that_discards_nearly_everything_is_refused_early(monkeypatch):
    """Each update makes the others' gradients too old: 3000 events each, of which a million are not made."""
    counted(monkeypatch, 400_000)
    with pytest.raises(ValueError, match=r"cap=0 discards nearly every gradient of n=3000 workers \(\d+ in "
                                         r"the first 64 updates\); use a larger cap or fewer workers"):
        fs.Workers(3000, "deterministic", cap=0).history(1_000_000)


def test_a_cap_that_discards_much_is_not_refused(monkeypatch):
    """900 of each update; and 3000 of few updates, which is no more than a thousand for each worker."""
    made = counted(monkeypatch, 400_000)
    assert fs.Workers(900, "deterministic", cap=0).history(200).discarded == 899 * 199
    assert made[0] < 200_000
    assert fs.Workers(3000, "deterministic", cap=0).history(60).discarded == 2999 * 59


# --- the Gaussian model

def test_cumulants_of_minibatches_by_enumeration():
    data = np.random.default_rng(2).gamma(0.7, size=6)
    for n in (1, 2, 3, 6):
        for size, replace, scale in product(range(1, n + 1), (False, True), ("unbiased", "batch_sum")):
            problem = fs.GaussianMean(data[:n], batch_size=size, replace=replace, grad_scale=scale)
            chosen = product(range(n), repeat=size) if replace else combinations(range(n), size)
            noise = -problem.scale * np.array([data[list(rows)].sum() for rows in chosen])
            noise -= noise.mean()
            second = (noise**2).mean()
            expected = second, (noise**3).mean(), (noise**4).mean() - 3.0 * second**2
            np.testing.assert_allclose(problem.gradient_cumulants, expected, rtol=1e-10,
                                       atol=1e-10 * max(second**2, 1.0))


def test_the_gaussian_model_is_its_quadratic():
    problem = mean_model(None, prior_variance=2.0)
    assert problem.curvature == len(DATA) + 0.5 and problem.pull == pytest.approx(DATA.sum())
    assert problem.as_quadratic().gradient_noise is None
    for x in (-1.0, 0.5):
        slope = (problem.potential(0, [x + 1e-6]) - problem.potential(0, [x - 1e-6])) / 2e-6
        assert problem.gradient(0, [x])[0] == pytest.approx(problem.curvature * x - problem.pull)
        assert slope == pytest.approx(problem.gradient(0, [x])[0], rel=1e-6)
    target = problem.target()
    assert target.w2(problem.as_quadratic().target()) < 1e-12
    scaled = mean_model(4, grad_scale="batch_sum", prior_variance=2.0)
    assert scaled.curvature == 4.5 and scaled.target().w2(target) == 0.0
    assert scaled.as_quadratic().target().variances[0] == pytest.approx(1 / 4.5)
    assert problem.pooled() is problem and fs.GaussianMean([1.0]).target(0.5).variances[0] == 0.25
    assert theory.constants(problem, fs.StaleSGLD(0.01)).smoothness == problem.curvature


@pytest.mark.parametrize(("make", "words"), [
    (lambda: fs.StaleSGLD(0.1, -1), "staleness=-1 must be at least 0"),
    (lambda: fs.StaleSGLD(0.1, 1.5), "staleness=1.5 must be an integer"),
    (lambda: fs.StaleSGLD(0.1, [0, 1, 3]), r"staleness\[2\]=3 must lie in \[0, 2\]"),
    (lambda: fs.StaleSGLD(0.1, [0.0, 0.5]), "staleness=.* must be a sequence of integers"),
    (lambda: fs.StaleSGLD(0.1, [0, -1]), r"staleness\[1\]=-1"),
    (lambda: fs.StaleSGHMC(0.1, 0.0), "friction=0.0 must be greater than 0"),
    (lambda: fs.StaleSGLD(0.0), "step_size=0.0 must be greater than 0"),
    (lambda: fs.Workers(0), "n=0 must be at least 1"),
    (lambda: fs.Workers(2, "uniform"), "service='uniform' must be one of"),
    (lambda: fs.Workers(2, update_cost=-1.0), "update_cost=-1.0 must be at least 0"),
    (lambda: fs.Workers(2, cap=-1), "cap=-1 must be at least 0"),
    (lambda: fs.Workers(2, schedules=0), "schedules=0 must be at least 1"),
    (lambda: fs.Workers(2).history(5, 1), "number=1 must be at most 0"),
    (lambda: fs.Workers(2, seed=0.5), "seed=0.5 must be an integer"),
    (lambda: fs.GaussianMean([]), "data has shape"),
    (lambda: fs.GaussianMean([1.0, np.nan]), r"data\[1\]=nan must be finite"),
    (lambda: fs.GaussianMean([1.0], batch_size=2), "batch_size=2 must be at most 1"),
    (lambda: fs.GaussianMean([1.0], grad_scale="batch_sum"), "grad_scale='batch_sum' must be 'unbiased'"),
    (lambda: fs.GaussianMean([1.0], prior_variance=0), "prior_variance=0 must be greater than 0"),
    (lambda: fs.GaussianMean([1.0, 2.0], batch_size=1, replace=2), "replace=2 must be one of"),
    (lambda: fs.estimators.errors([1.0, 2.0], 0.0), "averages has 2 entries"),
    (lambda: fs.estimators.errors(np.ones(9), np.inf), "truth=inf must be finite"),
    (lambda: fs.estimators.errors(np.ones(9), 0.0, 1.0), "level=1.0 must be less than 1"),
    (lambda: fs.estimators.combine([], [1.0]), "averages is empty"),
    (lambda: fs.estimators.combine([[1.0], [1.0, 2.0]], [1.0, 1.0]), r"averages\[1\] has shape"),
    (lambda: fs.estimators.combine([[1.0]], [-1.0]), r"times\[0\]=-1.0 must be greater than 0"),
    (lambda: fs.simulate(mean_model(), fs.StaleSGLD(0.001, [0, 1]), 3, 64, seed=1),
     "staleness has 2 entries"),
    (lambda: fs.simulate(mean_model(), fs.StaleSGLD(1.0, fs.Workers(3)), 3, 64, seed=1),
     "step_size=1 must be less"),
    (lambda: fs.simulate(fs.papers, fs.StaleSGLD(1.0), 3, 64, seed=1), "must be a fedsim problem"),
])
def test_bad_input(make, words):
    with pytest.raises(ValueError, match=words):
        make()
