"""FA-HMC that averages every T leapfrog steps, as section 5 has it: exact chains against slow twins."""

from functools import partial

import numpy as np
import pytest

import fedsim as fs
from reproduce.fa_hmc import surrogate
from reproduce.fa_hmc.stepwise import StepwiseChain
from reproduce.surrogate import surrogate as expansions

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
    return partial(Twin, expansions(a_posterior(noise, size).problem), **options)


class Twin:
    """All positions and momenta in one vector, leapfrog step by leapfrog step, and all averages so far."""

    def __init__(self, problem, k, every, momenta_too=False, renew_on_averaging=False):
        self.n, self.d = problem.n_clients, problem.dim
        size, self.k, self.every = self.n * self.d, k, every
        hessian, still = np.zeros((size, size)), problem.minimizers.ravel()
        for c in range(self.n):
            own = slice(c * self.d, (c + 1) * self.d)
            hessian[own, own] = problem.hessians[c]
        eye, null, noise = np.eye(size), np.zeros((size, size)), problem.gradient_noise
        move = np.block([[eye - 0.5 * STEP**2 * hessian, STEP * eye], [null, eye]])
        first = np.block([[eye, null], [-0.5 * STEP * hessian, eye]])  # half a kick, then the other one
        drift = np.block([[eye, STEP * eye], [null, eye]])
        self.step = first @ drift @ first
        np.testing.assert_allclose(self.step[:size], move[:size], atol=1e-12)
        kick = np.concatenate([null, -0.5 * STEP * noise * eye])
        self.noise = (first @ drift @ kick) @ (first @ drift @ kick).T + kick @ kick.T
        self.pull = np.concatenate([still, 0 * still]) - self.step @ np.concatenate([still, 0 * still])
        mean = np.kron(np.ones((self.n, 1)) * problem.weights, np.eye(self.d))
        self.average = np.block([[mean, null], [null, mean if momenta_too else eye]])
        self.forget = np.block([[eye, null], [null, null]])
        fresh = np.concatenate([np.zeros((size, self.d)), np.kron(np.ones((self.n, 1)), np.eye(self.d))])
        self.fresh, self.renew_on_averaging = fresh @ fresh.T, renew_on_averaging

    def run(self, start, n_rounds):
        """Means (n_rounds, d) of the averages and their joint covariance, from all clients at `start`."""
        size = 2 * self.n * self.d
        mean = np.concatenate([np.tile(start, self.n), np.zeros(size // 2)])
        cov, means = np.zeros((size, size)), []
        for s in range(n_rounds * self.every):
            if s % (self.every if self.renew_on_averaging else self.k) == 0:
                mean, cov = self._apply(self.forget, mean, cov)
                cov[:size, :size] += self.fresh
            mean, cov = self._apply(self.step, mean, cov)
            mean[:size] += self.pull
            cov[:size, :size] += self.noise
            if (s + 1) % self.every == 0:
                mean, cov = self._apply(self.average, mean, cov)
                own = np.r_[:len(mean), :self.d]  # the average, once more
                mean, cov = mean[own], cov[np.ix_(own, own)]
                means.append(mean[:self.d].copy())
        return np.array(means), cov[size:, size:]

    def _apply(self, matrix, mean, cov):
        own = slice(len(matrix))
        mean[own], cov[own] = matrix @ mean[own], matrix @ cov[own]
        cov[:, own] = cov[:, own] @ matrix.T
        return mean, cov


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
