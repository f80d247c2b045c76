"""FA-HMC's test problems and what its figures stand on: printed numbers, surrogate, marginal error."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import fedsim as fs
import theory
from fedsim.problems import papers
from reproduce.fa_hmc import fig1c, surrogate
from reproduce.quadratic_surrogate import surrogate as expansions
from reproduce.random_settings import DRAWS
from theory.fa_hmc.theorem_c1 import TwoGroups


def test_the_gaussian_experiment_has_the_printed_posterior_and_the_slip_has_not():
    right, slip = papers.fa_hmc_gaussian(7).target(), papers.fa_hmc_gaussian(7, variance=2.0).target()
    np.testing.assert_allclose(right.mean, 16.2, rtol=1e-14)
    np.testing.assert_allclose(right.variances, 1.6, rtol=1e-14)
    np.testing.assert_allclose(slip.mean, 41 / 3, rtol=1e-14)
    np.testing.assert_allclose(slip.variances, 4 / 3, rtol=1e-14)


@pytest.mark.parametrize(("dim", "expected"), [(2, 203), (50, 1376), (1000, 7666)])
def test_rounds_of_figure_two(dim, expected):
    """Worked out independently from the scalar recursion, with T_K(1 - eta^2 a / 2) by hand."""
    eta, every = 0.02 / dim**0.25, np.arange(1, 9001)
    angles = np.arccos(1.0 - 0.5 * eta**2 * np.array([1.0, 0.25]))
    turn, reach = np.cos(5 * angles), eta * np.sin(5 * angles) / np.sin(angles)
    factor = (turn**10).mean()
    fixed = ((1.0 - turn**10) @ [20.0, 1.0]) / 2.0 / (1.0 - factor)
    noise = sum((reach * turn**j).mean() ** 2 for j in range(10))
    mean = fixed * (1.0 - factor**every)
    variance = noise * (1.0 - factor ** (2 * every)) / (1.0 - factor**2)
    w2_sq = dim * ((mean - 16.2) ** 2 + (np.sqrt(variance) - np.sqrt(1.6)) ** 2)
    assert every[np.argmax(w2_sq <= 0.1)] == expected
    problem, algorithm = papers.fa_hmc_gaussian(dim), fs.FAHMC(eta, 5, 10, 1.0)
    assert theory.tuning.rounds_to(problem, algorithm, np.sqrt(0.1)) == expected


def test_the_law_of_the_average_does_not_depend_on_the_number_of_clients():
    algorithm = fs.FAHMC(0.1, 3, 4, 1.0)
    two, ten = (theory.exact_law(papers.fa_hmc_gaussian(3, n_clients=n), algorithm, 20) for n in (2, 10))
    np.testing.assert_allclose(two.mean, ten.mean, rtol=1e-12)
    np.testing.assert_allclose(two.cov, ten.cov, rtol=1e-12, atol=1e-15)


def test_two_groups_are_the_problem_of_the_lower_bound():
    problem = papers.fa_hmc_two_groups(3, curvatures=(4.0, 0.5), minimizers=(3.0, 1.0), n_clients=6)
    groups = TwoGroups.of(problem)
    assert (groups.L, groups.mu, groups.theta_L, groups.theta_mu, groups.dim) == (4.0, 0.5, 3.0, 1.0, 3)
    np.testing.assert_allclose(problem.target().mean, groups.theta_star, rtol=1e-14)


def test_logistic_data():
    problem = papers.fa_hmc_logistic(10, 3, feature_norm=0.5, gradient_noise=10.0)
    assert (problem.n_clients, problem.dim, problem.gradient_noise) == (20, 10, 10.0)
    assert np.bincount(problem.clients).tolist() == [50] * 20
    np.testing.assert_allclose(np.linalg.norm(problem.features, axis=1), 0.5, rtol=1e-14)
    np.testing.assert_allclose(problem.weights, 1 / 20)
    for other in (papers.fa_hmc_logistic(10, 3), papers.fa_hmc_logistic(10, 3, coefficients="unit")):
        np.testing.assert_allclose(other.features, 2.0 * problem.features, rtol=1e-14)
        assert other.gradient_noise is None


def test_the_cited_law_has_the_curvature_of_its_rows():
    """f'' lies between the prior's 1 and 1 + 4/4, by Marchenko and Pastur with as many rows as dimensions."""
    problem = papers.fa_hmc_logistic(1000, 0, coefficients="unit")
    np.testing.assert_allclose(np.linalg.norm(problem.features, axis=1), 1.0, rtol=1e-15)
    least, *_, most = np.linalg.eigvalsh(problem.hessian(problem.mode()))
    assert least == pytest.approx(1.0, abs=1e-3)
    assert 1.9 < most < 2.0


@pytest.mark.parametrize("law", ["prior", "unit"])
def test_labels_follow_the_model(alarm, law):
    """Over many data sets, sum of (y - p(x'beta)) x'beta has mean zero; p is known from the same draws."""
    sums, variance = 0.0, 0.0
    for seed in range(200):
        problem = papers.fa_hmc_logistic(3, seed, n_data=60, prior_variance=4.0, coefficients=law)
        beta = 2.0 * np.random.default_rng(seed).standard_normal(3)
        if law == "unit":
            beta /= np.linalg.norm(beta)
        scores = problem.features @ beta
        p = 1.0 / (1.0 + np.exp(-scores))
        sums += ((problem.labels - p) * scores).sum()
        variance += (p * (1.0 - p) * scores**2).sum()
    alarm.assert_normal(np.array([sums / np.sqrt(variance)]), "labels")


@pytest.mark.parametrize(("call", "name"), [
    (lambda: papers.fa_hmc_gaussian(0), "dim"),
    (lambda: papers.fa_hmc_gaussian(2, variance=-1.0), "variance"),
    (lambda: papers.fa_hmc_gaussian(2, n_clients=3), "n_clients"),
    (lambda: papers.fa_hmc_two_groups(1, curvatures=(1.0, 0.0)), "curvatures"),
    (lambda: papers.fa_hmc_two_groups(1, minimizers=(1.0,)), "minimizers"),
    (lambda: papers.fa_hmc_logistic(10, n_data=30), "n_clients"),
    (lambda: papers.fa_hmc_logistic(10, feature_norm=0.0), "feature_norm"),
    (lambda: papers.fa_hmc_logistic(10, prior_variance=np.nan), "prior_variance"),
    (lambda: papers.fa_hmc_logistic(10, coefficients="one"), "coefficients='one'"),
    (lambda: papers.fa_hmc_logistic(10, -1), "seed")])
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()


# ---- what the figures stand on ----------------------------------------------------------------------


def a_posterior(noise=3.0, dim=3, n_data=80):
    """With a client's rows more (80 data) or fewer (40 data in 30 dimensions) than coordinates."""
    return surrogate.Posterior(papers.fa_hmc_logistic(
        dim, 1, n_data=n_data, n_clients=4, prior_variance=2.0, gradient_noise=noise, coefficients="unit"))


def test_surrogate_is_the_clients_expansion_at_the_mode():
    posterior = a_posterior()
    problem, model, mode = posterior.problem, expansions(posterior.problem), posterior.problem.mode()
    step = 1e-5
    for c in range(problem.n_clients):
        np.testing.assert_allclose(model.gradient(c, mode), problem.gradient(c, mode), atol=1e-9)
        slope = [(problem.gradient(c, mode + step * e) - problem.gradient(c, mode - step * e)) / (2 * step)
                 for e in np.eye(3)]
        np.testing.assert_allclose(model.hessians[c], slope, rtol=1e-6, atol=1e-6)
    laplace = problem.laplace()
    np.testing.assert_allclose(posterior.target.mean, laplace.mean, atol=1e-10)
    np.testing.assert_allclose(posterior.target.cov, laplace.cov, rtol=1e-10)


@pytest.mark.parametrize("diagonal", [False, True])
def test_chains_have_the_exact_law(alarm, diagonal):
    model = expansions(a_posterior().problem)
    if diagonal:
        rng = np.random.default_rng(0)
        model = fs.Quadratic(rng.uniform(0.5, 2.0, (4, 3)), rng.standard_normal((4, 3)), gradient_noise=2.0)
    algorithm = fs.FAHMC(0.1, 6, 3, 0.7)
    moved, pull, noise = surrogate.round_map(model, algorithm)
    point = np.array([1.0, -2.0, 0.5])
    law = theory.exact_law(model, algorithm, 4, start=point)
    np.testing.assert_allclose(moved @ point + pull, law.mean[1], atol=1e-12)
    np.testing.assert_allclose(noise, law.cov[1], atol=1e-12)
    chain = surrogate.Chain(surrogate.round_map(model, algorithm))
    stationary = theory.stationary_law(model, algorithm)
    np.testing.assert_allclose(chain.law.mean, stationary.mean, atol=1e-10)
    np.testing.assert_allclose(chain.law.cov, stationary.cov, atol=1e-10)
    last = chain.sample(4, 4000, np.random.default_rng(1), 1)[:, 0]
    law = theory.exact_law(model, algorithm, 4).at(4)
    alarm.assert_normal((last.mean(axis=0) - law.mean) / np.sqrt(law.variances / 4000), "mean of chains")
    spread = last.var(axis=0, ddof=1) / law.variances - 1.0
    alarm.assert_normal(spread / np.sqrt(2 / 3999), "variance of chains")


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_marginal_error_of_a_sample_is_exact(n):
    draws = np.random.default_rng(n).normal(1.0, 2.0, (n, 2))
    law = fs.Gaussian([0.5, -1.0], np.diag([2.0, 0.3]))
    expected = []
    for i in range(2):
        ordered, sd = np.sort(draws[:, i]), np.sqrt(law.variances[i])
        expected.append(sum(quad(lambda u, x=ordered[k], i=i, sd=sd: abs(x - norm.ppf(u, law.mean[i], sd)),
                                 k / n, (k + 1) / n, limit=200)[0] for k in range(n)))
    assert surrogate.error_of_sample(draws, law) == pytest.approx(np.mean(expected), rel=1e-6)


def test_marginal_error_of_many_draws_tends_to_that_of_the_laws():
    one, other = fs.Gaussian([0.3], [[2.0]]), fs.Gaussian([0.0], [[1.0]])
    levels = (np.arange(20000) + 0.5) / 20000
    quantiles = norm.ppf(levels, 0.3, np.sqrt(2.0))[:, None]
    assert surrogate.error_of_sample(quantiles, other) == pytest.approx(
        surrogate.error_of_law(one, other), rel=1e-3)


@pytest.mark.parametrize("noise", [None, 3.0])
@pytest.mark.parametrize("size", [{}, {"dim": 30, "n_data": 40}])
def test_rounds_by_the_clients_few_data_are_the_dense_ones(noise, size):
    posterior = a_posterior(noise, **size)
    dense = expansions(posterior.problem)
    np.testing.assert_allclose(posterior.precision, dense.mean_hessian, rtol=1e-12, atol=1e-12)
    for algorithm in (fs.FAHMC(0.1, 6, 5, 1.0), fs.FAHMC(0.001, 1, 10, 0.4), fs.FAHMC(0.01, 100, 70, 1.0)):
        expected = surrogate.round_map(dense, algorithm)
        for one, other in zip(posterior.round_map(algorithm), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_errors_are_means_over_the_first_coordinates(monkeypatch):
    posterior, algorithm = a_posterior(), fs.FAHMC(0.1, 6, 3, 1.0)
    whole = surrogate.Chain(posterior.round_map(algorithm))
    monkeypatch.setattr(surrogate, "COORDINATES", 2)
    first = surrogate.Chain(posterior.round_map(algorithm))
    np.testing.assert_allclose(first.law.mean, whole.law.mean[:2], rtol=1e-12)
    np.testing.assert_allclose(first.law.cov, whole.law.cov[:2, :2], rtol=1e-12)
    lags = np.arange(4)
    np.testing.assert_allclose(first.autocorrelation(lags), whole.autocorrelation(lags)[:, :2], atol=1e-12)
    target = a_posterior().target
    np.testing.assert_allclose(target.cov, posterior.target.cov[:2, :2], rtol=1e-12)


@pytest.mark.parametrize(("step", "leapfrogs", "count"), [(0.05, 1, 400), (0.05, 8, 400), (0.3, 2, 3000)])
def test_expected_error_of_a_chain_is_the_mean_over_chains(step, leapfrogs, count):
    """Few and many effective draws, and a bias that matters."""
    posterior = a_posterior()
    chain = surrogate.Chain(posterior.round_map(fs.FAHMC(step, leapfrogs, 3, 1.0)))
    paths = chain.sample(count + 2000, 300, np.random.default_rng(4), count)
    found = np.array([surrogate.error_of_sample(path, posterior.target) for path in paths])
    expected = surrogate.error_of_chain(chain, posterior.target, [count])[0]
    assert found.mean() == pytest.approx(expected, rel=0.05)


def test_first_within():
    counts, errors = np.array([1, 10, 100]), np.array([1.0, 0.1, 0.01])
    assert fig1c.first_within(counts, errors, 0.1) == pytest.approx(10.0)
    assert fig1c.first_within(counts, errors, np.sqrt(0.001)) == pytest.approx(10**1.5)
    assert fig1c.first_within(counts, errors, 2.0) == 1.0
    assert fig1c.first_within(counts, errors, 0.001) == np.inf


@pytest.mark.parametrize("kind", [fs.FAHMC, theory.exact.FAHMCFlow])
def test_scoreboard_draws_are_valid(kind):
    rng = np.random.default_rng(3)
    for _ in range(40):
        problem, algorithm, n_rounds, start = DRAWS[kind](rng)
        assert isinstance(algorithm, kind)
        assert np.isfinite(theory.exact_law(problem, algorithm, n_rounds, start=start).w2()).all()
