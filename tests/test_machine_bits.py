"""The machine gives the bits of the kernels that come with fedsim, on every class of problems."""

from __future__ import annotations

import numpy as np
import own_gradients as own
import pytest
import sampler_zoo as zoo
from cases import POSTERIORS
from problems import quadratic

import fedsim as fs


def softmax():
    """Three classes, unequal clients, and minibatches without replacement."""
    rng = np.random.default_rng(8)
    return fs.SoftmaxRegression(rng.standard_normal((19, 2)), np.arange(19) % 3, np.arange(19) % 5 % 2,
                                prior_variance=4.0, batch_size=3, replace=False)


PROBLEMS = {
    "line": lambda: quadratic(5, 1),
    "plane": lambda: quadratic(5, 2),
    "dense": lambda: quadratic(5, 3),
    "diagonal": lambda: quadratic(5, 4, "diagonal"),
    "one client": lambda: quadratic(1, 3),
    "plane, noise": lambda: quadratic(5, 2, noise=0.5),
    "dense, noise": lambda: quadratic(5, 3, noise=0.5),
    "diagonal, noise": lambda: quadratic(5, 4, "diagonal", noise=0.5),
    "plane, covariances": lambda: quadratic(5, 2, noise="cov"),
    "diagonal, covariances": lambda: quadratic(5, 4, "diagonal", noise="cov"),
    "linear regression": lambda: POSTERIORS[9],
    "softmax regression": softmax,
    "own": lambda: fs.Custom(own.log_cosh, 2, data=np.array([0.0, 2.0]), curvature=1.0, weights=[0.25, 0.75]),
}


def pairs(problem):
    """Samplers of the zoo beside the algorithms that they write once more."""
    N, h = problem.n_clients, 0.05 / getattr(problem, "smoothness", 4.0)
    W, slow = fs.network.ring(N), h**0.5
    return {
        "FALD": (zoo.fa_ld(step_size=h, local_steps=3, temperature=0.7), fs.FALD(h, 3, 0.7)),
        "FALD, shared": (zoo.fa_ld(step_size=h, local_steps=2, shared_noise=0.3), fs.FALD(h, 2, 1.0, 0.3)),
        "DESGLD": (zoo.de_sgld(step_size=h, W=W), fs.DESGLD(h, W)),
        "DESGHMC": (zoo.de_sghmc(step_size=slow, friction=1.5, W=W), fs.DESGHMC(slow, 1.5, W)),
        "StaleSGLD": (zoo.stale_sgld(step_size=h, age=3), fs.StaleSGLD(h, 3)),
        "StaleSGHMC": (zoo.stale_sghmc(step_size=slow, friction=1.5, age=2), fs.StaleSGHMC(slow, 1.5, 2)),
    }


def numbers(problem, algorithm, **options):
    run = fs.simulate(problem, algorithm, 7, seed=31, record=[2, 5], keep_final=True, threads=1,
                      allow_unstable=True, **options)
    return [part for law in (run, *run.clients) for part in (law.mean, law.cov)] + [run.final]


RUNS = {"many": {"n_replicas": 130}, "few": {"n_replicas": 3}}  # few may have coordinates as lanes
QUICK = ("line", "plane", "dense", "diagonal", "one client", "plane, noise")
"""The others have kernels of their own to compile, in seconds each."""


def difference(problem, mine, shipped, **options):
    """The largest, in shares of the largest number; 0 for the same bits."""
    ours, theirs = (numbers(problem, one, **options) for one in (mine, shipped))
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(ours, theirs, strict=True))


def assert_the_same_bits(name, **options):
    problem = PROBLEMS[name]()
    found = {of: difference(problem, *pair, **options) for of, pair in pairs(problem).items()}
    assert found == dict.fromkeys(found, 0.0)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", QUICK)
def test_the_same_bits(name, run):
    assert_the_same_bits(name, **RUNS[run])


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in QUICK])
def test_the_same_bits_on_every_class_of_problems(name, run):
    assert_the_same_bits(name, **RUNS[run])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plane", "diagonal", "dense, noise"])
def test_the_same_bits_with_single_noise(name):
    for run in RUNS.values():
        assert_the_same_bits(name, **run, noise="single")


def test_noise_that_all_share_is_added_in_another_order():
    """The kernel takes the gradient from the noise and adds the rest, the machine adds both in turn."""
    problem = PROBLEMS["plane"]()
    mine = zoo.fa_ld(step_size=0.05, local_steps=1, shared_noise=1.0)
    assert difference(problem, mine, fs.FALD(0.05, 1, 1.0, 1.0), n_replicas=130) < 4e-16


@pytest.mark.slow
@pytest.mark.parametrize("shared_noise", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["line", "plane", "dense", "diagonal", "plane, noise"])
def test_the_kernel_of_fa_hmc_scales_its_velocities(name, shared_noise):
    """So that it rounds otherwise.

    The gradient that a later local update begins with is one of the update before for the machine, where
    points are evaluated twice because of noise: there one update is compared.
    """
    problem, updates = PROBLEMS[name](), 1 if "noise" in name else 2
    mine = zoo.fa_hmc(step_size=0.2, leapfrog_steps=3, local_steps=updates, shared_noise=shared_noise)
    assert difference(problem, mine, fs.FAHMC(0.2, 3, updates, shared_noise), n_replicas=130) < 1e-14
