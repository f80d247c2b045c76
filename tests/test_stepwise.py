"""FA-HMC that averages every T leapfrog steps, as section 5 has it: exact chains against slow twins."""

from functools import partial

import numpy as np
import pytest
from naive_stepwise import Twin

import fedsim as fs
from reproduce.fa_hmc import surrogate
from reproduce.fa_hmc.stepwise import StepwiseChain
from reproduce.quadratic_surrogate import surrogate as expansions

STEP, NOISE = 0.1, 0.7
CLOCKS = [(3, 1), (4, 2), (5, 3), (3, 7), (5, 5), (2, 6)]
"""K and T: T divides K, neither divides, equal, K divides T."""


def a_posterior(noise=NOISE, size="more rows"):
    """Three clients, each with more rows than coordinates, or with fewer."""
    dim, n_data = {"more rows": (2, 60), "fewer rows": (5, 9)}[size]
    return surrogate.Posterior(fs.papers.fa_hmc_logistic(
        dim, 1, n_data=n_data, n_clients=3, prior_variance=2.0, feature_norm=2.0, gradient_noise=noise,
        coefficients="unit"))


def the_twin(noise=NOISE, size="more rows", **options):
    return partial(Twin, expansions(a_posterior(noise, size).problem), STEP, **options)


def gap(chain, twin, mode):
    """Largest difference of the averages of a period, from some start."""
    start, rounds, d = np.linspace(1.0, -2.0, len(mode)), len(chain.maps), len(mode)
    means, cov = twin.run(mode + start, rounds)
    blocks = cov.reshape(rounds, d, rounds, d).swapaxes(1, 2)
    return max(np.abs(chain.maps @ start + chain.pulls + mode - means).max(),
               np.abs(chain.noise - blocks).max())


@pytest.mark.parametrize("size", ["more rows", "fewer rows"])
@pytest.mark.parametrize(("k", "every"), CLOCKS)
def test_a_period_is_that_of_the_twin(k, every, size):
    posterior = a_posterior(size=size)
    chain = StepwiseChain(posterior, STEP, k, every)
    assert len(chain.maps) == np.lcm(k, every) // every
    assert gap(chain, the_twin(size=size)(k, every), posterior.problem.mode()) < 1e-12


def test_the_twin_tells_other_algorithms():
    posterior = a_posterior()
    chain, mode = StepwiseChain(posterior, STEP, 4, 2), posterior.problem.mode()
    for twin in (the_twin(momenta_too=True), the_twin(renew_on_averaging=True), the_twin(1.4 * NOISE)):
        assert gap(chain, twin(4, 2), mode) > 1e-4


@pytest.mark.parametrize(("k", "local_steps"), [(5, 1), (2, 3), (1, 4)])
def test_where_k_divides_t_it_is_algorithm_3(k, local_steps):
    posterior = a_posterior()
    chain, mode = StepwiseChain(posterior, STEP, k, k * local_steps), posterior.problem.mode()
    moved, pull, noise = posterior.round_map(fs.FAHMC(STEP, k, local_steps, 1.0))
    np.testing.assert_allclose(chain.maps[-1], moved, atol=1e-12)
    np.testing.assert_allclose(chain.pulls[-1] + mode - moved @ mode, pull, atol=1e-12)
    np.testing.assert_allclose(chain.noise[-1, -1], noise, atol=1e-12)


@pytest.mark.parametrize(("k", "every"), CLOCKS)
def test_the_stationary_law_is_that_of_a_long_run(k, every):
    chain = StepwiseChain(a_posterior(), STEP, k, every)
    period = len(chain.maps)
    settle = 240 // every // period * period
    n_rounds = settle + 3 * period
    means, cov = the_twin()(k, every).run(np.zeros(2), n_rounds)
    cov, own = cov.reshape(n_rounds, 2, n_rounds, 2), slice(settle, settle + period)
    np.testing.assert_allclose(chain.law.mean, means[own].mean(axis=0), atol=1e-8)
    variances = np.einsum("iaia->ia", cov)[own].mean(axis=0) + means[own].var(axis=0)
    np.testing.assert_allclose(chain.law.variances, variances, atol=1e-8)
    for lag in range(2 * period):
        together = np.mean([np.diag(cov[i, :, i + lag]) for i in range(settle, settle + period)], axis=0)
        np.testing.assert_allclose(chain.autocorrelation(np.array([lag]))[0], together / variances, atol=1e-6)


def test_without_gradient_noise_and_beyond_the_known_lags():
    chain = StepwiseChain(a_posterior(None), STEP, 3, 2)
    other = StepwiseChain(a_posterior(1e-9), STEP, 3, 2)
    np.testing.assert_allclose(chain.law.variances, other.law.variances, rtol=1e-9)
    assert not chain.autocorrelation(np.array([10**6])).any()


def test_an_unstable_step_is_called_so():
    assert not StepwiseChain(a_posterior(), 3.0, 3, 2).stable


@pytest.mark.parametrize(("k", "every", "count"), [(4, 2, 300), (3, 7, 2000)])
def test_expected_error_of_a_chain_is_the_mean_over_chains(k, every, count):
    """Few effective draws, and a bias that matters."""
    posterior, rng = a_posterior(), np.random.default_rng(5)
    chain, target = StepwiseChain(posterior, STEP, k, every), posterior.target
    period, point, path = len(chain.maps), np.zeros((200, 2)), []
    root = np.linalg.cholesky(chain.noise.swapaxes(1, 2).reshape(2 * period, -1) + 1e-13 * np.eye(2 * period))
    for _ in range((count + 100) // period):
        noise = (rng.standard_normal((200, 2 * period)) @ root.T).reshape(200, period, 2)
        path.append(np.einsum("jab,rb->rja", chain.maps, point) + chain.pulls + noise)
        point = path[-1][:, -1]
    paths = np.concatenate(path, axis=1)[:, -count:] + posterior.problem.mode()
    found = [surrogate.error_of_sample(one, target) for one in paths]
    assert np.mean(found) == pytest.approx(surrogate.error_of_chain(chain, target, [count])[0], rel=0.05)
