"""Simulated FA-HMC that averages every T leapfrog steps, against exact laws and the slow twin."""

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from naive_stepwise import Twin
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from scipy import stats
from scipy.special import softmax

import fedsim as fs
import theory
from reproduce.fa_hmc import stepwise_sampler
from reproduce.fa_hmc.stepwise_sampler import StepwiseFAHMC

STEP, ROUNDS, CHAINS = 0.3, 6, 100_000
MEASURED = np.arange(ROUNDS)


def a_problem(noise=2.0):
    rng = np.random.default_rng(7)
    roots = rng.standard_normal((3, 2, 2))
    return fs.Quadratic(roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(2), 4.0 * rng.standard_normal((3, 2)),
                        [0.5, 0.3, 0.2], gradient_noise=noise)


def paths(k, every, problem=None):
    return StepwiseFAHMC(STEP, k, every).sample_path(problem or a_problem(), ROUNDS, 11, n_chains=CHAINS)


def scores(sample, means, cov):
    """Standard normal statistics of means and of covariances over all rounds and coordinates, by the law."""
    flat = sample.reshape(len(sample), -1) - means.ravel()
    sd, n = np.sqrt(np.diag(cov)), len(sample)
    found = flat.T @ flat / n
    spread = np.sqrt((cov**2 + np.outer(sd**2, sd**2)) / n)
    return np.concatenate([flat.mean(axis=0) / (sd / np.sqrt(n)), ((found - cov) / spread).ravel()])


@pytest.mark.parametrize(("k", "every"), [(4, 1), (4, 2), (5, 3), (3, 7), (2, 6)])
def test_averages_have_the_twins_joint_law(alarm, k, every):
    alarm.assert_normal(scores(paths(k, every), *Twin(a_problem(), STEP, k, every).run(np.zeros(2), ROUNDS)),
                        f"averages with K = {k}, T = {every}")


@pytest.mark.parametrize("fault", [{"momenta_too": True}, {"renew_on_averaging": True}, {"noise": 2.0**0.5}])
def test_wrong_samplers_are_caught(alarm, fault):
    noise = 2.0 * fault.pop("noise", 1.0)
    law = Twin(a_problem(noise), STEP, 4, 2, **fault).run(np.zeros(2), ROUNDS)
    alarm.must_fail(scores(paths(4, 2), *law))


def test_where_k_divides_t_the_law_is_algorithm_3s(alarm):
    problem, algorithm = a_problem(), stepwise_sampler.section_5(STEP, 2, 6)
    assert isinstance(algorithm, fs.FAHMC) and algorithm.local_steps == 3
    law, sample = theory.exact_law(problem, algorithm, ROUNDS), paths(2, 6)
    for n in MEASURED:
        alarm.assert_normal(scores(sample[:, n], law.mean[n + 1], law.cov[n + 1]), f"round {n + 1}")
    one = StepwiseFAHMC(STEP, 2, 6).costs(problem, 5)["gradient_evaluations"]
    assert one == algorithm.costs(problem, 5)["gradient_evaluations"]
    exact = a_problem(None)
    assert (StepwiseFAHMC(STEP, 2, 6).costs(exact, 5)["gradient_evaluations"]
            == algorithm.costs(exact, 5)["gradient_evaluations"])


def test_every_so_many_rounds_and_seeds():
    sampled = StepwiseFAHMC(STEP, 4, 3)
    whole = sampled.sample_path(a_problem(), 6, 1, n_chains=3)
    np.testing.assert_array_equal(sampled.sample_path(a_problem(), 6, 1, every=2, n_chains=3), whole[:, 1::2])
    assert not np.array_equal(sampled.sample_path(a_problem(), 6, 2, n_chains=3), whole)
    options = {"seed": 1, "n_chains": 3, "allow_unstable": True}
    np.testing.assert_array_equal(stepwise_sampler.sample_path(a_problem(), sampled, 6, **options), whole)


def test_divergence_is_told():
    with pytest.raises(fs.DivergedError, match="round"), np.errstate(all="ignore"):
        StepwiseFAHMC(1e3, 4, 3).sample_path(a_problem(), 200, 1)


def a_softmax(batch_size, replace):
    rng = np.random.default_rng(2)
    labels = np.r_[0, 1, 2, rng.integers(3, size=27)]
    return fs.SoftmaxRegression(rng.integers(0, 17, (30, 4)).astype(np.uint8), labels,
                                np.repeat([0, 1, 2], [6, 10, 14]), n_classes=3, feature_scale=1 / 16,
                                prior_variance=0.5, batch_size=batch_size, replace=replace)


@pytest.mark.parametrize("replace", [True, False])
def test_minibatch_gradients_have_the_right_mean_and_variance(alarm, replace):
    problem, n, b = a_softmax(4, replace), 20_000, 4
    x, rng = np.random.default_rng(3).standard_normal(12), np.random.default_rng(4)
    for client, count in enumerate((6, 10, 14)):
        drawn = stepwise_sampler.evaluations(problem)(client, np.tile(x, (n, 1)), rng)
        own = problem.clients == client
        each = [fs.SoftmaxRegression(problem.features[[r, *range(3)]], np.r_[problem.labels[r], 0, 1, 2],
                                     [0, 1, 1, 1], n_classes=3, feature_scale=1 / 16, prior_variance=1e9,
                                     weights=[0.5, 0.5]).gradient(0, x) / 2 for r in np.flatnonzero(own)]
        finite = 1.0 if replace else (count - b) / (count - 1)
        variance = (count / problem.weights[client]) ** 2 * np.var(each, axis=0) / b * finite
        gap = drawn.mean(axis=0) - problem.gradient(client, x)
        alarm.assert_normal(gap / np.sqrt(variance / n), "mean of minibatch gradients")
        excess = stats.kurtosis(drawn, axis=0)
        alarm.assert_normal((drawn.var(axis=0) / variance - 1.0) / np.sqrt((2.0 + excess) / n), "variance")


@pytest.mark.parametrize("replace", [True, False])
def test_compiled_gradients_have_numpys_value(replace):
    """On the same rows; of steep scores too, of which all but one class is nearly nothing."""
    problem, size = a_softmax(4, replace), 4
    for client, count, scale in ((0, 6, 1.0), (1, 10, 30.0), (2, 14, 300.0)):
        x = scale * np.random.default_rng(3).standard_normal((5, 12))
        own, rng = np.flatnonzero(problem.clients == client), np.random.default_rng(4)
        drawn = own[rng.integers(count, size=(5, size)) if replace else
                    rng.random((5, count)).argsort(axis=1)[:, :size]]
        some, theta = problem.features[drawn] / 16, x.reshape(5, 3, 4)
        gap = softmax(some @ theta.swapaxes(1, 2), axis=2) - np.eye(3)[problem.labels[drawn]]
        fit = count / size * (gap.swapaxes(1, 2) @ some).reshape(5, 12)
        expected = (fit + x / (0.5 * 3)) / problem.weights[client]
        found = stepwise_sampler.evaluations(problem)(client, x, np.random.default_rng(4))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


OTHERS = {"an older BLAS": {"OPENBLAS_CORETYPE": "Haswell"}, "plain NumPy loops": {"NPY_DISABLE_CPU_FEATURES":
          " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))}}
CHAOTIC = """
import hashlib
from reproduce.fa_hmc.stepwise_sampler import StepwiseFAHMC
from test_stepwise_sampler import a_softmax
for size in (4, None):
    path = StepwiseFAHMC(0.5, 4, 3).sample_path(a_softmax(size, True), 200, 1, n_chains=2)
    print(hashlib.sha256(path.tobytes()).hexdigest(), abs(path).max())
"""


def test_long_steps_have_the_same_bits_on_other_processors():
    told = [subprocess.run([sys.executable, "-c", CHAOTIC], env=os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path)} | other, capture_output=True, text=True, check=True).stdout
        for other in ({}, *OTHERS.values())]
    assert len(set(told)) == 1


def test_a_whole_batch_is_the_exact_gradient():
    rng = np.random.default_rng(2)
    features, x = rng.random((12, 4)), rng.standard_normal((5, 12))
    for batch in ({"batch_size": 4, "replace": False}, {}):
        problem = fs.SoftmaxRegression(features, np.arange(12) % 3, np.repeat([0, 1, 2], 4),
                                       prior_variance=0.5, **batch)
        np.testing.assert_allclose(stepwise_sampler.evaluations(problem)(1, x, rng), problem.gradient(1, x),
                                   rtol=1e-12)


def test_noise_comes_on_top_of_minibatches(alarm):
    quiet = a_softmax(4, True)
    noisy, x = dataclasses.replace(quiet, gradient_noise=3.0), np.zeros((20_000, 12))
    one, other = (stepwise_sampler.evaluations(problem)(1, x, np.random.default_rng(5))
                  for problem in (quiet, noisy))
    assert np.unique(one, axis=0).shape[0] > 100
    alarm.assert_normal((other - one).mean() / (3.0 / np.sqrt(x.size)), "noise beside minibatches, mean")
    excess = (other - one).var() / 9.0 - 1.0
    alarm.assert_normal(excess / np.sqrt(2.0 / x.size), "noise beside minibatches, variance")


def test_minibatches_of_other_problems_are_refused():
    problem = fs.LogisticRegression(np.eye(4), [0, 1, 0, 1], [0, 0, 1, 1], prior_variance=1.0, batch_size=1)
    with pytest.raises(ValueError, match=r"problem=.* must be a softmax regression"):
        StepwiseFAHMC(0.1, 4, 3).sample_path(problem, 2, 1)


CLIENTS = np.random.default_rng(6).integers(0, 2, (24, 3))
LABELS, EVEN, UNEVEN = np.arange(24) % 3 == 0, np.arange(24) % 4, np.minimum(np.arange(24) % 5, 3)
SPREADS = np.random.default_rng(7).standard_normal((4, 3, 3))


@pytest.mark.parametrize("problem", [
    fs.LogisticRegression(CLIENTS, LABELS, EVEN, prior_variance=0.7, gradient_noise=2.0),
    fs.LogisticRegression(CLIENTS, LABELS, EVEN, prior_variance=0.7, weights=[0.1, 0.2, 0.3, 0.4]),
    fs.LogisticRegression(CLIENTS, LABELS, UNEVEN, prior_variance=0.7, gradient_noise=2.0),
    fs.Quadratic(SPREADS @ SPREADS.swapaxes(1, 2), SPREADS[0, [0, 1, 2, 0]], gradient_noise=2.0),
    fs.Quadratic([1.0, 2.0, 3.0, 4.0], SPREADS[0, [0, 1, 2, 0]]),
    a_softmax(4, True), dataclasses.replace(a_softmax(4, False), gradient_noise=1.0)])
def test_clients_together_have_the_gradients_of_each(problem):
    x = np.random.default_rng(8).standard_normal((problem.n_clients, 5, problem.dim))
    rng, one = np.random.default_rng(9), stepwise_sampler.evaluations(problem)
    expected = np.array([one(c, own, rng) for c, own in enumerate(x)])
    found = stepwise_sampler.evaluations_together(problem)(x, np.random.default_rng(9))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
