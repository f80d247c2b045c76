"""The papers' test problems: their printed numbers, and those that follow from them."""

import numpy as np
import pytest

import fedsim as fs
from fedsim.problems import papers

SIGMA = np.array([[5.0, -2.0], [-2.0, 1.0]])


def squared_heterogeneity(problem):
    """max_c |grad f_c|^2 at the global minimizer."""
    return max(float((problem.gradient(c, problem.minimizer) ** 2).sum()) for c in range(problem.n_clients))


def test_fa_ld_simulation_is_the_printed_problem():
    problem = fs.papers.fa_ld_simulation(alpha=10.0, seed=4)
    assert (problem.n_clients, problem.dim) == (50, 2)
    np.testing.assert_allclose(problem.weights, 1 / 50, rtol=1e-15)
    np.testing.assert_allclose(problem.hessians, np.broadcast_to(5e4 * np.linalg.inv(SIGMA), (50, 2, 2)))
    assert problem.gradient_noise is None
    target = problem.target()
    np.testing.assert_allclose(target.cov, SIGMA / 5e4, rtol=1e-12)
    np.testing.assert_allclose(target.mean, problem.minimizers.mean(axis=0), rtol=1e-12)


def test_its_curvature_numbers():
    smallest, largest = np.linalg.eigvalsh(fs.papers.fa_ld_simulation().hessians[0])
    assert smallest == pytest.approx(8578.6, abs=0.05)
    assert largest == pytest.approx(291421, abs=1)
    assert largest / smallest == pytest.approx(33.97, abs=0.005)
    assert 1e-7 * largest == pytest.approx(0.029, abs=2e-4)
    deviations = np.sqrt(np.linalg.eigvalsh(fs.papers.fa_ld_simulation().target().cov))
    np.testing.assert_allclose(deviations, [0.00185, 0.0108], atol=5e-5)


@pytest.mark.parametrize(("alpha", "median", "quoted"), [
    (0.0, 9.0e7, 1e8), (1.0, 4.9e11, 4e11), (10.0, 4.9e12, 4e12), (100.0, 4.9e13, 4e13),
    (1000.0, 4.9e14, 4e14)])
def test_the_quoted_gamma_is_a_square(alpha, median, quoted):
    found = np.median([squared_heterogeneity(fs.papers.fa_ld_simulation(alpha, seed)) for seed in range(200)])
    assert found == pytest.approx(median, rel=0.06)
    assert 0.5 < found / quoted < 1.5  # the paper quotes one digit; it must be gamma^2, not gamma
    assert np.sqrt(found) < 0.01 * quoted


def test_client_means_have_the_law_of_averaged_data(alarm):
    """A mean drawn from its exact law against averages of simulated observations."""
    n_data, n_clients = 20, 40_000
    means = fs.papers.fa_ld_simulation(0.5, 1, n_clients=n_clients, n_data=n_data).minimizers
    expected = 0.5 * np.eye(2) + SIGMA / n_data
    rng = np.random.default_rng(2)
    data = rng.multivariate_normal([0, 0], SIGMA, (n_clients, n_data)).mean(axis=1)
    data += np.sqrt(0.5) * rng.standard_normal((n_clients, 2))
    for name, sample in (("drawn", means), ("averaged", data)):
        error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n_clients)
        alarm.assert_normal(((np.cov(sample.T) - expected) / error)[np.triu_indices(2)], f"{name} covariance")
        alarm.assert_normal(sample.mean(axis=0) / np.sqrt(np.diag(expected) / n_clients), f"{name} mean")


def test_alpha_and_spread_share_their_random_numbers():
    base = fs.papers.fa_ld_simulation(0.0, 7).minimizers
    one = fs.papers.fa_ld_simulation(1.0, 7).minimizers - base
    np.testing.assert_allclose(fs.papers.fa_ld_simulation(9.0, 7).minimizers - base, 3 * one, atol=1e-12)
    equal = fs.papers.fa_ld_unequal_curvature(1.0, 7, spread=0.0)
    plain = fs.papers.fa_ld_simulation(1.0, 7)
    np.testing.assert_allclose(equal.minimizers, plain.minimizers, rtol=1e-15)
    np.testing.assert_allclose(equal.hessians, plain.hessians, rtol=1e-14)


def test_same_seed_same_problem_other_seed_other_problem():
    a, b, c = (fs.papers.fa_ld_unequal_curvature(1.0, seed).minimizers for seed in (3, 3, 4))
    assert (a == b).all() and (a != c).any()


@pytest.mark.parametrize("spread", [0.05, 0.3])
def test_unequal_curvature_has_the_stated_spread_and_the_posterior_as_target(spread):
    problem = fs.papers.fa_ld_unequal_curvature(1.0, 5, spread=spread, n_clients=4000)
    sizes = problem.hessians[:, 0, 0] / np.linalg.inv(SIGMA)[0, 0] / 4000
    np.testing.assert_allclose(sizes, np.rint(sizes), atol=1e-6)
    assert sizes.std() / 1000 == pytest.approx(spread, rel=0.05)
    assert sizes.mean() == pytest.approx(1000, rel=0.03)
    np.testing.assert_allclose(problem.target().cov, SIGMA / sizes.sum(), rtol=1e-9)
    pooled = sizes @ problem.minimizers / sizes.sum()
    np.testing.assert_allclose(problem.target().mean, pooled, rtol=1e-9)
    np.testing.assert_allclose(problem.weights, 1 / 4000)


@pytest.mark.parametrize(("name", "bad"), [
    ("alpha", -1.0), ("alpha", float("nan")), ("alpha", "1"), ("seed", -1), ("seed", 1.5),
    ("n_clients", 0), ("n_data", 0), ("n_data", 10.5), ("covariance", [[1.0, 2.0], [2.0, 1.0]]),
    ("covariance", [[1.0, 0.5], [0.0, 1.0]]), ("covariance", [[1.0, 0.0]])])
@pytest.mark.parametrize("function", [papers.fa_ld_simulation, papers.fa_ld_unequal_curvature])
def test_bad_input_names_the_argument(function, name, bad):
    with pytest.raises(ValueError, match=name):
        function(**{name: bad})


@pytest.mark.parametrize("bad", [-0.1, 0.6, float("inf"), None])
def test_bad_spread(bad):
    with pytest.raises(ValueError, match="spread"):
        papers.fa_ld_unequal_curvature(spread=bad)
