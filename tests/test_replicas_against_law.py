"""Replicas against the exact law: mean and covariance at several rounds, for every option of FA-LD."""

import numpy as np
import pytest
from scipy import stats

import fedsim as fs
import theory

REPLICAS = 100_000
ROUNDS = 8
RECORD = (1, 2, 4)


def directions(dim):
    """Unit vectors whose variances determine a covariance: axes and diagonals of their planes."""
    axes = np.eye(dim)
    planes = [(axes[i] + sign * axes[j]) / np.sqrt(2.0)
              for i in range(dim) for j in range(i) for sign in (1.0, -1.0)]
    return np.array([*axes, *planes])


def normal_scores(statistic, law):
    """Standard normal numbers with the tail probabilities of `statistic` under `law`, exact far out."""
    low, high = law.logcdf(statistic), law.logsf(statistic)
    tail = np.exp(np.maximum(np.minimum(low, high), -650.0))
    return np.where(high < low, 1.0, -1.0) * stats.norm.isf(np.clip(tail, 1e-280, 0.5))


def scores(run, law):
    """Deviations of a run from a law, as standard normal numbers.

    Of a Gaussian law the sample means are normal and (R-1) u'S u / u'C u has a chi-square law, exactly.
    Otherwise (clients drawn at random) means are normal to the precision of R, and covariances are
    judged by their variation between leaves of 64 replicas.
    """
    np.testing.assert_array_equal(run.rounds, law.rounds)
    assert run.is_gaussian == law.is_gaussian
    if not law.is_gaussian:
        result = run.z_scores(law, same=False)  # mutants differ from the law on purpose
        return np.concatenate([result.mean[1:].ravel(), result.cov[1:].ravel()])
    random = np.flatnonzero(np.trace(law.cov, axis1=1, axis2=2) > 0.0)
    fixed = np.setdiff1d(np.arange(len(law.rounds)), random)  # a start from a point
    np.testing.assert_allclose(run.mean[fixed], law.mean[fixed], rtol=1e-14)
    assert not run.cov[fixed].any()
    deviation = np.sqrt(np.diagonal(law.cov[random], axis1=1, axis2=2) / run.n_replicas)
    mean = (run.mean[random] - law.mean[random]) / deviation
    u = directions(run.dim)
    found = np.einsum("ui,nij,uj->nu", u, run.cov[random], u)
    exact = np.einsum("ui,nij,uj->nu", u, law.cov[random], u)
    freedom = run.n_replicas - 1
    return np.concatenate([mean.ravel(), normal_scores(freedom * found / exact, stats.chi2(freedom)).ravel()])


def spd(rng, n, dim, low=0.5):
    factor = rng.standard_normal((n, dim, dim))
    return factor @ np.swapaxes(factor, 1, 2) / dim + low * np.eye(dim)


def quadratic(n_clients=3, dim=2, structure="dense", weights="unequal", noise=None, seed=0):
    """Clients whose curvatures and minimizers differ a lot, so that every part of a round shows."""
    rng = np.random.default_rng(seed)
    hessians = {"dense": lambda: spd(rng, n_clients, dim), "diagonal": lambda: rng.uniform(0.4, 3.0, (
        n_clients, dim)), "isotropic": lambda: rng.uniform(0.4, 3.0, n_clients)}[structure]()
    minimizers = 2.0 * rng.standard_normal((n_clients, dim))
    p = np.arange(1.0, n_clients + 1.0)
    covariances = 4.0 * spd(rng, n_clients, dim, low=0.1) if noise == "cov" else noise
    return fs.Quadratic(hessians, minimizers, p / p.sum() if weights == "unequal" else None, covariances)




def one(n_active):
    """Scheme I."""
    return fs.Participation(n_active, True)


def two(n_active):
    """Scheme II."""
    return fs.Participation(n_active, False)


HARMONIC = fs.schedules.Harmonic(6.0, 0.5)
CASES = {
    "independent noise": (quadratic(), fs.FALD(0.15, 3)),
    "partly shared noise": (quadratic(), fs.FALD(0.15, 3, shared_noise=0.4)),
    "fully shared noise": (quadratic(), fs.FALD(0.15, 3, shared_noise=1.0)),
    "one local step": (quadratic(), fs.FALD(0.2, 1, shared_noise=0.3)),
    "five local steps": (quadratic(), fs.FALD(0.1, 5, shared_noise=0.3)),
    "temperature": (quadratic(), fs.FALD(0.15, 3, 0.05, 0.3)),
    "high temperature": (quadratic(), fs.FALD(0.15, 2, 7.0)),
    "gradient noise": (quadratic(noise=1.5), fs.FALD(0.15, 3, 0.3, 0.5)),
    "gradient noise covariances": (quadratic(noise="cov"), fs.FALD(0.15, 3, 0.3)),
    "harmonic schedule": (quadratic(), fs.FALD(HARMONIC, 3, shared_noise=0.3)),
    "listed schedule": (quadratic(), fs.FALD(np.linspace(0.25, 0.01, 3 * ROUNDS), 3)),
    "one client": (quadratic(1, 2), fs.FALD(0.2, 2, shared_noise=0.5)),
    "two clients": (quadratic(2, 2), fs.FALD(0.2, 2)),
    "eight clients": (quadratic(8, 2), fs.FALD(0.15, 2, shared_noise=0.2)),
    "one dimension": (quadratic(3, 1), fs.FALD(0.15, 3, shared_noise=0.4)),
    "three dimensions": (quadratic(3, 3), fs.FALD(0.1, 3, shared_noise=0.4)),
    "five dimensions": (quadratic(2, 5, noise=0.5), fs.FALD(0.1, 2, shared_noise=0.4)),
    "nine dimensions": (quadratic(2, 9), fs.FALD(0.1, 2, shared_noise=0.4)),
    "diagonal": (quadratic(structure="diagonal"), fs.FALD(0.15, 3, shared_noise=0.4)),
    "diagonal, noise": (quadratic(structure="diagonal", noise=1.0), fs.FALD(0.15, 3)),
    "diagonal, covariances": (quadratic(structure="diagonal", noise="cov"), fs.FALD(0.15, 3)),
    "isotropic": (quadratic(structure="isotropic"), fs.FALD(0.15, 2, shared_noise=1.0)),
    "scheme I": (quadratic(), fs.FALD(0.15, 3, participation=one(2))),
    "scheme I, one client": (quadratic(), fs.FALD(0.15, 3, shared_noise=0.5, participation=one(1))),
    "scheme I, more than N": (quadratic(2), fs.FALD(0.15, 2, shared_noise=1.0, participation=one(5))),
    "scheme I, noise": (quadratic(noise=1.0), fs.FALD(HARMONIC, 2, 0.5, participation=one(3))),
    "scheme I, a lone client": (quadratic(1), fs.FALD(0.15, 3, participation=one(3))),
    "scheme II": (quadratic(4, weights="equal"), fs.FALD(0.15, 3, participation=two(2))),
    "scheme II, shared": (quadratic(4, weights="equal"), fs.FALD(0.15, 3, 0.5, 1.0, two(3))),
    "scheme II, one client": (quadratic(3, 1, weights="equal"), fs.FALD(0.15, 2, participation=two(1))),
    "scheme II, all clients": (quadratic(3, weights="equal"), fs.FALD(0.15, 2, 1.0, 0.3, two(3))),
    "scheme II, covariances": (quadratic(3, 3, "diagonal", "equal", "cov"), fs.FALD(
        np.linspace(0.2, 0.1, 2 * ROUNDS), 2, participation=two(2))),
}
STARTS = {
    "scheme II, all clients": None,
    "one dimension": fs.Gaussian([3.0], [[2.0]]),
    "partly shared noise": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "diagonal": fs.Gaussian([1.0, 2.0], [0.25, 9.0]),
    "three dimensions": [5.0, -5.0, 0.0],
}


@pytest.mark.parametrize("name", CASES)
def test_replicas_follow_the_exact_law(name, alarm):
    problem, algorithm = CASES[name]
    start = STARTS.get(name)
    law = theory.exact_law(problem, algorithm, ROUNDS, start=start, record=RECORD)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=11, start=start, record=RECORD)
    alarm.assert_normal(scores(run, law), name)


@pytest.mark.parametrize("name", ["partly shared noise", "one dimension", "three dimensions", "scheme I"])
def test_single_precision_variates_follow_it_too(name, alarm):
    problem, algorithm = CASES[name]
    start = STARTS.get(name)
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
    problem, algorithm = CASES["gradient noise covariances"]
    law = theory.exact_law(problem, algorithm, ROUNDS)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=15, keep_final=True)
    whitened = np.linalg.solve(np.linalg.cholesky(law.cov[-1]), (run.final - law.mean[-1]).T)
    alarm.assert_pvalue([stats.kstest(row, "norm").pvalue for row in whitened], "normality")
    alarm.assert_pvalue(stats.kstest((whitened**2).sum(axis=0), stats.chi2(2).cdf).pvalue, "radius")


def test_time_averages_follow_the_stationary_law(alarm):
    """`average` along each replica: many replicas started in the stationary law of the average."""
    problem, algorithm = CASES["partly shared noise"]
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
        problem, algorithm = CASES[name]
        law = theory.exact_law(problem, algorithm, ROUNDS, record=RECORD)
        drawn = theory.exact.sample_rounds(problem, algorithm, ROUNDS, 50_000, 18)[:, -1]
        deviation = np.sqrt(np.diagonal(law.cov[-1]) / len(drawn))
        alarm.assert_normal((drawn.mean(axis=0) - law.mean[-1]) / deviation, f"{name}: mean")
        squares = (drawn - law.mean[-1]) ** 2
        error = squares.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        alarm.assert_normal((squares.mean(axis=0) - np.diagonal(law.cov[-1])) / error, f"{name}: variance")
