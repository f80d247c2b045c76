"""Posteriors of regression: mode, curvature, stability, and the reference that samples them."""

import numpy as np
import pytest
from examples_of import posterior
from scipy import integrate, optimize, stats

import fedsim as fs
import theory
from fedsim.laws.distance import w1_samples
from fedsim.stability.federated import curvatures
from reproduce.reference import metropolis_hmc, posterior_reference


def test_mode_laplace_and_curvature():
    problem = posterior("logistic", weights=[0.2, 0.5, 0.3])
    mode = problem.mode()
    found = optimize.minimize(lambda x: problem.potential(None, x), np.ones(3), method="Nelder-Mead",
                              options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}).x
    np.testing.assert_allclose(mode, found, atol=1e-6)
    assert np.abs(problem.gradient(None, mode)).max() < 1e-13
    hessian = optimize.approx_fprime(mode, lambda x: problem.gradient(None, x), 1e-6)
    np.testing.assert_allclose(np.linalg.inv(problem.laplace(2.0).cov), hessian / 2.0, rtol=1e-5)
    separable = fs.LogisticRegression([[1e3], [-1e3]], [1, 0], [0, 0], prior_variance=1e6)
    assert abs(float(separable.gradient(None, separable.mode())[0])) < 1e-10


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_curvature_bounds_hold(kind):
    """Hessians by differences, at many points, lie between the bounds; those of DE appendix E."""
    problem = posterior(kind, weights=[0.2, 0.5, 0.3])
    points = np.random.default_rng(4).standard_normal((20, 3)) * [[3.0]]

    def hessians(client):
        result = [optimize.approx_fprime(x, lambda y: problem.gradient(client, y), 1e-6) for x in points]
        return np.linalg.eigvalsh((np.array(result) + np.swapaxes(result, 1, 2)) / 2)

    values = np.array([hessians(client) for client in range(3)])
    scaled = values * problem.weights[:, None, None]
    for convention, spectrum in (("federated", values), ("components", scaled), ("global", hessians(None))):
        low, high = problem.curvature_bounds(convention)
        assert low <= spectrum.min() * (1 + 1e-5) and spectrum.max() <= high * (1 + 1e-5)
        if kind == "linear":
            np.testing.assert_allclose([low, high], [spectrum.min(), spectrum.max()], rtol=1e-5)
        else:
            assert spectrum.max() > 0.3 * high  # not idle
    assert (problem.strong_convexity, problem.smoothness) == problem.curvature_bounds("federated")
    grams = [problem.features[problem.clients == c] for c in range(3)]
    largest = max(np.linalg.norm(rows, 2) ** 2 for rows in grams)
    factor = 0.25 if kind == "logistic" else 1 / 0.49
    expected = factor * largest + 1 / 15
    np.testing.assert_allclose(problem.curvature_bounds("components")[1], expected, rtol=1e-12)


EYE3 = fs.network.complete(3)


def test_stability_is_judged():
    linear = posterior("linear", weights=[0.2, 0.5, 0.3])
    for algorithm in (fs.FALD(0.01, 3), fs.FAHMC(0.02, 2, 2, debias="stale"), fs.DESGLD(0.01, EYE3)):
        found, expected = algorithm.stability(linear), algorithm.stability(linear.as_quadratic())
        assert (found.radius, found.max_step_size) == (expected.radius, expected.max_step_size)
    logistic = posterior("logistic")
    limit = fs.FALD(0.01, 3).stability(logistic).max_step_size
    np.testing.assert_allclose(limit, 2.0 / logistic.smoothness, rtol=1e-9)
    fs.validate(logistic, fs.FALD(0.99 * limit, 3))
    with pytest.raises(fs.UnstableStepSize, match="step_size"):
        fs.validate(logistic, fs.FALD(1.01 * limit, 3))
    summed = posterior("logistic", batch_size=2, grad_scale="batch_sum")
    assert fs.FALD(0.01).stability(summed).max_step_size > 1.2 * limit
    for algorithm in (fs.FAHMC(0.05, 3, debias="stale"), fs.DESGHMC(0.05, 10.0, EYE3), fs.DESGLD(0.01, EYE3)):
        assert np.isfinite(algorithm.stability(logistic).max_step_size)
    assert (curvatures(logistic.curvature_problem())[0] == logistic.smoothness).all()


def test_below_the_limit_chains_come_together():
    """What the logistic limit promises: with the same noise, chains never part, from wherever they start."""
    problem = posterior("logistic", 2)
    algorithm = fs.FALD(0.98 * 2.0 / problem.smoothness, 3, participation=fs.Participation(2, True))
    runs = [fs.simulate(problem, algorithm, 3 * k, 64, seed=5, start=start, keep_final=True)
            for k in (1, 4) for start in ([30.0, -20.0], [-1.0, 2.0])]
    gaps = [np.linalg.norm(a.final - b.final, axis=1) for a, b in (runs[:2], runs[2:])]
    assert (gaps[0] < np.hypot(31.0, 22.0)).all() and (gaps[1] < gaps[0]).all()


def test_no_target_but_everything_else():
    problem = posterior("logistic")
    with pytest.raises(ValueError, match="no closed form"):
        problem.target()
    run = fs.simulate(problem, fs.FALD(0.01), 5, 128, seed=1)
    assert run.target is None and not run.is_gaussian
    assert run.w2(problem.laplace())[-1] > 0.0
    with pytest.raises(ValueError, match="target=None"):
        run.w2()
    with pytest.raises(theory.NoExactLaw):
        theory.exact_law(problem, fs.FALD(0.01), 5)


def test_w1_of_samples():
    rng = np.random.default_rng(6)
    one, two = rng.standard_normal((500, 3)), 1.5 * rng.standard_normal((500, 3)) + 0.3
    expected = np.mean([stats.wasserstein_distance(one[:, i], two[:, i]) for i in range(3)])
    np.testing.assert_allclose(w1_samples(one, two), expected, rtol=1e-12)
    np.testing.assert_allclose(w1_samples(one, np.repeat(two, 2, axis=0)), expected, rtol=1e-12)
    assert w1_samples(one, one[::-1]) == 0.0
    for first, second, name in ((one, two[:, :2], "second"), (one[0], two, "first"),
                                (one, two * np.nan, "second")):
        with pytest.raises(ValueError, match=name):
            w1_samples(first, second)


def test_the_reference_samples_a_gaussian(alarm):
    law = fs.Gaussian([1.0, -2.0], [[2.0, 0.9], [0.9, 0.5]])
    precision = np.linalg.inv(law.cov)
    made = metropolis_hmc(lambda x: 0.5 * np.einsum("ri,ij,rj->r", x - law.mean, precision, x - law.mean),
                          lambda x: (x - law.mean) @ precision, law.sample(400, 1), n_draws=100, seed=2)
    assert 0.7 < made.acceptance < 1.0
    mean, error = made.mean()
    alarm.assert_student((mean - law.mean) / error, 399, "mean")
    square, error = made.mean(lambda x: np.stack([(x[..., 0] - 1.0) ** 2, (x[..., 1] + 2.0) ** 2,
                                                  (x[..., 0] - 1.0) * (x[..., 1] + 2.0)], axis=-1))
    alarm.assert_student((square - [2.0, 0.5, 0.9]) / error, 399, "covariance")


def quadrature(problem):
    """Normalised density of a one-dimensional posterior, and integrals of functions under it."""
    mode, width = problem.mode()[0], np.sqrt(problem.laplace().cov[0, 0])
    limits = (mode - 15 * width, mode + 15 * width)
    floor = float(problem.potential(None, problem.mode()))

    def integral(function):
        return integrate.quad(lambda x: function(x) * np.exp(floor - problem.potential(None, np.array([x]))),
                              *limits, points=[mode], epsabs=1e-13, limit=200)[0]

    return lambda function: integral(function) / integral(lambda x: 1.0)


def test_the_reference_samples_a_posterior(alarm):
    """Skewed posterior of five data, against quadrature: two moments and the distribution function."""
    problem = fs.LogisticRegression([[1.0], [2.0], [0.5], [3.0], [1.5]], [1, 1, 1, 1, 0], np.zeros(5, int),
                                    prior_variance=9.0)
    expect = quadrature(problem)
    assert abs(expect(lambda x: x) - problem.mode()[0]) > 0.1  # so that the Laplace law would fail
    made = posterior_reference(problem, n_chains=400, n_draws=100, seed=3)
    for function in (lambda x: x, lambda x: x**2, lambda x: np.tanh(x - 1.0)):
        mean, error = made.mean(function)
        alarm.assert_student((mean - expect(function)) / error, 399, "posterior")
    laplace = problem.laplace().sample(400, 1)
    alarm.must_fail((laplace.mean() - expect(lambda x: x)) / (laplace.std() / 20.0) * 10.0, "Laplace law")


@pytest.mark.parametrize("name", ["FA-LD", "FA-HMC"])
def test_samplers_approach_the_posterior(name, alarm):
    """Against quadrature, in units of the posterior's sd: bias below 2 percent of it at a small step,
    and seen beyond that allowance at a large one. Each client holds the data of one label."""
    labels = np.array([1, 1, 0] * 4)
    problem = fs.LogisticRegression(np.linspace(0.5, 2.5, 12)[:, None], labels, labels, prior_variance=9.0)
    expect, unit = quadrature(problem), 1.0 / np.sqrt(problem.smoothness)
    mean = expect(lambda x: x)
    sd = np.sqrt(expect(lambda x: (x - mean) ** 2))
    if name == "FA-LD":
        small, large = (fs.FALD(0.02 * unit**2), 1500), (fs.FALD(0.9 * unit**2, 4), 100)
    else:
        small, large = (fs.FAHMC(0.05 * unit, 4), 400), (fs.FAHMC(0.6 * unit, 3, 4), 50)

    def deviations(algorithm, rounds):
        run = fs.simulate(problem, algorithm, rounds, 8192, seed=9, start=problem.laplace(), record=())
        errors = np.array([1.0 / np.sqrt(8192), 1.0 / np.sqrt(2 * 8192)]) * 1.5  # kurtosis of a skewed law
        gaps = np.array([(run.mean[-1, 0] - mean) / sd, np.sqrt(run.cov[-1, 0, 0]) / sd - 1.0])
        return np.maximum(np.abs(gaps) - 0.02, 0.0) / errors

    alarm.assert_normal(deviations(*small), name)
    alarm.must_fail(deviations(*large), name)


def test_long_chains_have_a_small_marginal_error():
    """One chain of FA-HMC, ergodic, against the reference; the error of a shifted sample is its shift."""
    problem = posterior("logistic", 3)
    reference = posterior_reference(problem, n_chains=200, n_draws=100, seed=4).pooled()
    sd = reference.std(axis=0)
    algorithm = fs.FAHMC(0.15 / np.sqrt(problem.smoothness), 5)
    chain = fs.sample_path(problem, algorithm, 6000, seed=5, n_chains=4, start=problem.mode()).reshape(-1, 3)
    error = w1_samples(chain / sd, reference / sd)
    assert error < 0.1
    assert abs(w1_samples(reference / sd + 0.5, reference / sd) - 0.5) < 1e-9


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_clients_weigh_as_many_as_they_have_data(kind):
    problem = posterior(kind, sizes=(9, 4, 13))
    np.testing.assert_allclose(problem.weights, np.array([9, 4, 13]) / 26, rtol=1e-15)
    assert problem.pooled().weights.tolist() == [1.0]
