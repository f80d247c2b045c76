"""Planted faults are caught and named, right kernels are not accused, and intervals hold what they say."""

from __future__ import annotations

import json

import kernel_faults as faults
import numpy as np
import pytest
import right_kernels
from scipy import stats
from scipy.special import ndtr
from seeded import normals

import fedsim as fs
import theory
from theory.testing.comparing import compared
from theory.testing.likeness import draws_for

SMALLEST = json.loads(faults.STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", faults.FAULTS)
def test_a_fault_is_caught_and_named_and_nothing_without_it(name):
    assert not isinstance(faults.asked(name, 0.0), str)
    words = faults.asked(name, 1.0)
    assert isinstance(words, str) and (faults.FAULTS[name][2] or "differs") in words
    assert isinstance(faults.asked(name, SMALLEST[name]), str)
    assert not isinstance(faults.asked(name, SMALLEST[name] / 4.0), str)  # rounding may help by a factor 2


def test_there_are_thirty_faults_and_all_are_recorded():
    assert len(faults.FAULTS) >= 30 and set(SMALLEST) == set(faults.FAULTS)
    by_noise = [size for size in SMALLEST.values() if size > 1e-5]
    assert len(by_noise) >= 15 and max(by_noise) <= 1.0


def accused(numbers, level, n_draws=2000):
    """How many right kernels are said to differ from what they are, at this level each."""
    count = 0
    for number in numbers:
        problem, make, algorithm, options, heat, step = right_kernels.drawn(number)
        found = theory.testing.probe(make(step), problem, n_draws=n_draws, seed=number, batched=True,
                                     temperature=heat, **options)
        findings = compared(found, problem, algorithm(step), level, {})
        assert not findings[0].differs, f"{number}: {findings[0]}"  # the matrix is no matter of chance
        count += findings[1].differs
    return count


def reported(numbers, level):
    """How many reports of right kernels have a difference."""
    count = 0
    for number in numbers:
        problem, make, algorithm, options, heat, step = right_kernels.drawn(number)
        found = theory.testing.report(make, problem, step_size=step, like=algorithm(step), temperature=heat,
                                      n_draws=2000, seed=number, batched=True, false_alarm=level, **options)
        count += found.differs
    return count


def binomial(alarm, count, total, level, name):
    alarm.assert_pvalue(stats.binom.sf(count - 1, total, level), name)


def test_few_right_kernels_are_accused(alarm):
    binomial(alarm, accused(range(160), 0.05), 160, 0.05, "right kernels accused")
    binomial(alarm, reported(range(24), 0.05), 24, 0.05, "right kernels reported")


@pytest.mark.slow
def test_of_two_thousand_right_kernels_no_more_are_accused_than_the_level_allows(alarm):
    count = accused(range(2000), 0.01)
    assert stats.binom.sf(count - 1, 2000, 0.01) > 1e-3, count
    binomial(alarm, count, 2000, 0.01, "right kernels accused")
    count = accused(range(2000), 1e-4)
    assert count <= 3
    count = reported(range(400), 0.02)
    binomial(alarm, count, 400, 0.02, "right kernels reported")


def test_a_level_that_is_not_kept_would_be_seen(alarm):
    alarm.must_fail(stats.norm.isf(stats.binom.sf(59, 160, 0.05)), "60 of 160 accused")


def test_two_per_cent_of_the_noise_are_seen_as_often_as_promised(alarm):
    """Of 300 kernels with noise 2 % off, no more than a tenth are missed where a tenth may be."""
    count = draws_for(0.02, 1e-4, 0.1, 2)
    missed = 0
    for seed in range(60):
        for sign in (1.0, -1.0):
            kernel = faults.sgld(1.0, lambda s, sign=sign: 1 + 0.02 * sign)
            found = theory.testing.probe(kernel, faults.ONE, n_draws=count, seed=seed, batched=True)
            missed += not compared(found, faults.ONE, faults.SGLD, 1e-4, {})[1].differs
    binomial(alarm, missed, 120, 0.1, "kernels with 2 % missed")
    assert draws_for(0.02, 1e-4, 1e-3, 2) < 40_000


def heavy(z):
    """Noise of variance one that is not normal: E z^3 = 2 sqrt(2/pi) of |z|."""
    return np.sign(z) * np.abs(z) ** 1.5 / np.sqrt(2.0 * np.sqrt(2.0 / np.pi))


NOISES = {"normal": lambda z: z, "uniform": lambda z: np.sqrt(3) * (2 * ndtr(z) - 1), "heavy": heavy}


def covered(draw, dim, n_draws, seeds, with_w2):
    """How often the intervals (90 %) of the variance ratio, of W2 and of the noise hold the exact value."""
    rng = np.random.default_rng(dim)
    problem = fs.Quadratic(np.diag(rng.uniform(0.5, 2.0, dim))[None], rng.normal(size=(1, dim)))
    exact, target = theory.stationary_law(problem, fs.StaleSGLD(0.2, 0)), problem.target()
    ratio, w2 = np.trace(np.linalg.solve(target.cov, exact.cov)) / dim, exact.w2(target)

    def kernel(seeds, x):
        return x - 0.2 * problem.gradient(0, x) + np.sqrt(0.4) * draw(normals(seeds, dim, stream=3))

    hits = np.zeros(3, int)
    for seed in seeds:
        found = theory.testing.probe(kernel, problem, n_draws=n_draws, seed=seed, batched=True)
        one, other = found.variance_ratio(0.9), found.w2_interval(0.9) if with_w2 else (w2, w2, w2)
        hits += [one.low <= ratio <= one.high, other[1] <= w2 <= other[2],
                 abs(found.noise_cov[0, 0] - 0.4) <= 1.645 * found.noise_error[0, 0]]
    return hits


def assert_covered(alarm, form, seeds, with_w2):
    settings = ((1, 500), (2, 4000), (5, 2000))
    hits = sum(covered(NOISES[form], dim, n_draws, seeds, with_w2) for dim, n_draws in settings)
    total = len(settings) * len(seeds)
    for name, count in zip(("ratio", "w2", "noise"), hits, strict=True):
        alarm.assert_pvalue(stats.binom.cdf(count, total, 0.88), f"{name} covered")
    assert hits[0] < total  # an interval that is never left says nothing


def test_intervals_hold_what_they_say(alarm):
    assert_covered(alarm, "heavy", range(120), False)


@pytest.mark.slow
@pytest.mark.parametrize("form", NOISES)
def test_many_intervals_hold_what_they_say(alarm, form):
    assert_covered(alarm, form, range(100), True)
