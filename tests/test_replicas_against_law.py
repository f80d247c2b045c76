"""Replicas of every algorithm against the exact law: mean and covariance at several rounds."""

import numpy as np
import pytest
from algorithms import ROWS, each
from cases.fa_ld import LAWS
from problems import quadratic
from scipy import stats
from scores import all_scores, normal_scores, scores

import fedsim as fs
import theory

REPLICAS = 100_000
ROUNDS = 8
RECORD = (1, 2, 4)


@pytest.mark.parametrize(**each(lambda row: row.laws))
def test_replicas_follow_the_exact_law(kind, name, alarm):
    row = ROWS[kind]
    problem, algorithm, start = row.laws[name]
    options = {"start": start, "record": row.record}
    law = theory.exact_law(problem, algorithm, row.n_rounds, **options)
    run = fs.simulate(problem, algorithm, row.n_rounds, row.n_replicas, seed=row.seed, **options)
    alarm.assert_normal(all_scores(run, law), name)


@pytest.mark.parametrize("name", ["partly shared noise", "one dimension", "three dimensions", "scheme I"])
def test_single_precision_variates_follow_it_too(name, alarm):
    problem, algorithm, start = LAWS[name]
    law = theory.exact_law(problem, algorithm, ROUNDS, start=start, record=RECORD)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=12, start=start, record=RECORD,
                      noise="single")
    alarm.assert_normal(scores(run, law), name)


def test_many_coordinates(alarm):
    """Large d: variances of all coordinates, and random directions, from few replicas each."""
    problem, algorithm = quadratic(2, 400, "diagonal", noise=0.3), fs.FALD(0.1, 3, shared_noise=0.3)
    law = theory.exact_law(problem, algorithm, 5, record=[2], covariance="diagonal")
    run = fs.simulate(problem, algorithm, 5, 3000, seed=13, record=[2], covariance="diagonal",
                      keep_final=True)
    variance = law.cov[1:]
    alarm.assert_normal((run.mean[1:] - law.mean[1:]) / np.sqrt(variance / 3000), "means")
    freedom = stats.chi2(2999)
    alarm.assert_normal(normal_scores(2999 * run.cov[1:] / variance, freedom), "variances")
    u = np.random.default_rng(1).standard_normal((50, 400))
    found = np.var(run.final @ u.T, axis=0, ddof=1)
    alarm.assert_normal(normal_scores(2999 * found / (u**2 @ variance[-1]), freedom), "directions")


def test_few_replicas_in_many_coordinates(alarm):
    """The layout with coordinates as lanes: the same law, pooled over coordinates."""
    problem, algorithm = quadratic(2, 4000, "isotropic", noise=0.3), fs.FALD(0.1, 3, shared_noise=0.3)
    law = theory.exact_law(problem, algorithm, 4, record=(), covariance="diagonal")
    run = fs.simulate(problem, algorithm, 4, 20, seed=14, record=(), covariance="none", keep_final=True)
    z = (run.final - law.mean[-1]) / np.sqrt(law.cov[-1])
    alarm.assert_normal([z.mean() * np.sqrt(z.size)], "mean")
    alarm.assert_normal(normal_scores((z**2).sum(), stats.chi2(z.size)), "variance")
    alarm.assert_normal(z.mean(axis=0) * np.sqrt(20), "coordinates")


def test_gaussian_laws_are_gaussian(alarm):
    """Not only the moments: the final iterates, whitened by the exact law, are standard normal."""
    problem, algorithm, _ = LAWS["gradient noise covariances"]
    law = theory.exact_law(problem, algorithm, ROUNDS)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=15, keep_final=True)
    whitened = np.linalg.solve(np.linalg.cholesky(law.cov[-1]), (run.final - law.mean[-1]).T)
    alarm.assert_pvalue([stats.kstest(row, "norm").pvalue for row in whitened], "normality")
    alarm.assert_pvalue(stats.kstest((whitened**2).sum(axis=0), stats.chi2(2).cdf).pvalue, "radius")


def test_time_averages_follow_the_stationary_law(alarm):
    """`average` along each replica: many replicas started in the stationary law of the average."""
    problem, algorithm, _ = LAWS["partly shared noise"]
    stationary = theory.stationary_law(problem, algorithm)
    run = fs.simulate(problem, algorithm, 30, 20_000, seed=16, start=stationary, average="square")
    expected = (stationary.mean**2).sum() + np.trace(stationary.cov)
    spread = run.averages.std(ddof=1) / np.sqrt(len(run.averages))
    alarm.assert_normal((run.averages.mean() - expected) / spread, "average of squares")
    run = fs.simulate(problem, algorithm, 30, 20_000, seed=17, start=stationary, average="identity")
    spread = run.averages.std(ddof=1) / np.sqrt(len(run.averages))
    alarm.assert_normal((run.averages.mean() - stationary.mean.sum()) / spread, "average")


def test_sampled_rounds_follow_the_exact_law(alarm):
    """`theory.exact.sample_rounds` draws rounds with NumPy's generator: same law, other numbers."""
    for name in ("partly shared noise", "scheme I", "scheme II, shared"):
        problem, algorithm, _ = LAWS[name]
        law = theory.exact_law(problem, algorithm, ROUNDS, record=RECORD)
        drawn = theory.exact.sample_rounds(problem, algorithm, ROUNDS, 50_000, 18)[:, -1]
        deviation = np.sqrt(np.diagonal(law.cov[-1]) / len(drawn))
        alarm.assert_normal((drawn.mean(axis=0) - law.mean[-1]) / deviation, f"{name}: mean")
        squares = (drawn - law.mean[-1]) ** 2
        error = squares.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        alarm.assert_normal((squares.mean(axis=0) - np.diagonal(law.cov[-1])) / error, f"{name}: variance")
