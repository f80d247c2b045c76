"""What an attacker found in samplers of one's own: each a test that failed before it was mended."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sampler_brute import law_of

import fedsim as fs
import theory
from fedsim.samplers import NotationError, SamplerWarning, each, grad, mean, noise, past, sqrt, weights

PROBLEM = fs.Quadratic([[1.0], [3.0]], [[0.0], [2.0]])
PAIR = fs.network.complete(2)
FACTORS = (1.0, 2.0, 1.0, 2.0, 2.0, 1.0, 1.0)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        yield


@fs.sampler
def uneven_factors(x, v, *, step_size):
    """In Python -1.0 and -2.0 have one hash."""
    y = x
    for k in FACTORS:
        y = y - k * v
        v = v * 0.5 + step_size * grad(y)
    return y, v


def test_a_loop_has_equal_turns():
    algorithm = uneven_factors(step_size=0.01)
    law = theory.exact_law(PROBLEM, algorithm, 3, start=[1.0], allow_unstable=True)
    by_hand = law_of(algorithm, PROBLEM, 3, np.array([1.0]))[0]
    assert np.abs(law.mean[-1] - by_hand).max() < 1e-12


@fs.sampler
def weighted(x, *, step_size):
    w = weights()
    for _ in range(20):
        x = x - step_size * grad(x) / 20
    return mean(x + sqrt(2 * step_size) * noise() / sqrt(w))


def test_threads_trace_on_tapes_of_their_own():
    problems = [fs.Quadratic(np.full((n, 1), 1.0), np.zeros((n, 1))) for n in (1, 2, 3)]
    tasks = [(problems[i % 3], 0.1 + 1e-5 * i) for i in range(60)]

    def variance(task):
        return float(theory.exact_law(task[0], weighted(step_size=task[1]), 5).cov[-1, 0, 0])

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(variance, tasks))
    finally:
        sys.setswitchinterval(before)
    alone = [variance((problem, step * (1.0 + 1e-15))) for problem, step in tasks]
    assert np.abs(np.array(together) - alone).max() < 1e-12


def first_alone(x, out):
    out[0] = x[0]


@fs.sampler
def unwritten(x, *, step_size):
    return each(first_alone, x - step_size * grad(x))


@pytest.mark.parametrize("compiled", [True, False])
def test_what_a_function_does_not_write_is_no_number(compiled):
    problem = fs.Quadratic([1.0], [[0.0, 1.0]])
    with pytest.raises(fs.DivergedError, match="not finite"):
        fs.simulate(problem, unwritten(step_size=0.1), 2, 64, seed=1, compiled=compiled)


def test_names_of_the_state_are_any():
    @fs.sampler
    def plain(x, v, *, step_size):
        for _ in range(5):
            x = x - step_size * grad(x) + 0.1 * past(v, 5) + sqrt(2 * step_size) * noise()
        return x, 0.5 * v + 0.1 * x

    @fs.sampler
    def named(x, loop, *, step_size):
        for _ in range(5):
            x = x - step_size * grad(x) + 0.1 * past(loop, 5) + sqrt(2 * step_size) * noise()
        return x, 0.5 * loop + 0.1 * x

    one, other = (theory.exact_law(PROBLEM, kind(step_size=0.1), 12) for kind in (plain, named))
    assert np.array_equal(one.cov, other.cov) and np.array_equal(one.mean, other.mean)


def test_a_law_that_remembers_its_start_is_not_stationary():
    @fs.sampler
    def halfway(x, v, *, step_size):
        return x - 0.3 * (x - v), v + 0.3 * (x - v)

    with pytest.raises(theory.exact.NoExactLaw, match="halfway conserves a sum by which the law at the end"):
        theory.stationary_law(PROBLEM, halfway(step_size=0.1))

    @fs.sampler(follows="components")
    def extra(x, s, *, step_size, W):
        return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2

    theory.stationary_law(PROBLEM, extra(step_size=0.1, W=fs.network.complete(2)))  # its sum begins at zero


def test_one_client_with_a_random_network_has_costs():
    @fs.sampler(follows="components")
    def alone(x, *, step_size, W):
        return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()

    problem = fs.Quadratic([[1.0]], [[0.0]])
    algorithm = alone(step_size=0.1, W=fs.network.random([np.eye(1)]))
    assert algorithm.costs(problem, 3)["floats_sent"] == 0.0
    assert fs.simulate(problem, algorithm, 3, 64, seed=1).n_replicas == 64


def test_what_moves_nothing_has_a_radius():
    @fs.sampler
    def still(x, v, *, step_size):
        return x, v

    data = fs.LinearRegression(np.arange(6.0)[:, None], np.ones(6), clients=np.arange(6) % 3, batch_size=1,
                               noise_std=1.0, prior_variance=1.0)
    assert still(step_size=0.1).stability(data).radius == 0.0

    @fs.sampler(follows="components")
    def drawn(x, *, step_size, R):
        return x + 0 * grad(R @ x) + R @ x - R @ x

    R = fs.network.random_pairs(fs.network.ring(3))
    assert drawn(step_size=0.1, R=R).stability(fs.Quadratic(np.ones((3, 1)), np.zeros((3, 1)))).radius == 0.0


def test_a_number_that_is_drawn_in_the_function_is_refused():
    rng = np.random.default_rng(1)

    @fs.sampler
    def frozen(x, *, step_size):
        return x - step_size * grad(x) + float(rng.normal()) * noise()

    with pytest.raises(NotationError, match="frozen is another round each time that it is called"):
        theory.exact_law(PROBLEM, frozen(step_size=0.1), 3)


def test_a_default_may_be_an_array_or_a_list():
    @fs.sampler(follows="components")
    def gossip(x, *, step_size, W=PAIR, sets=[[0], [1]]):  # noqa: B006 (as users write it)
        x = 0.9 * W @ x + 0.1 * mean(x, of=sets)
        return x - step_size * grad(x) + sqrt(2 * step_size) * noise()

    assert gossip(step_size=0.1).W.shape == (2, 2)
    assert theory.exact_law(PROBLEM, gossip(step_size=0.01), 3).mean.shape == (4, 1)


WRONG = {
    "mean(x, of=5)": "there must be a set of clients", "mean(x, of=[])": "there must be a set of clients",
    "mean(x, of=[['a']])": "each must be a set of clients 0 to 1",
    "mean(x, of=[[10**30]])": "each must be a set of clients", "mean(x, of=[[0.5]])": "each must be a set",
    "mean(x, of=[[True, False]])": "each must be a set of clients",
    "(np.eye(2) * 1j) @ x": "W must be real", "1 / (weights() - 0.5) * x": "must be finite",
    "(weights() - 1) ** 0.5 * x": "factors must be finite"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("text", WRONG)
def test_the_line_says_what_is_wrong(text):
    line = eval(f"lambda x: {text}", {"mean": mean, "weights": weights, "np": np})

    @fs.sampler
    def made(x, *, step_size):
        return line(x)

    with pytest.raises(NotationError, match=WRONG[text]):
        made(step_size=0.1).trace(PROBLEM)


def test_a_parameter_that_is_not_finite_is_named():
    @fs.sampler
    def made(x, *, step_size, W):
        return W @ x

    with pytest.raises(ValueError, match=r"W=.* must be finite"):
        made(step_size=0.1, W=np.full((2, 2), np.nan))


def test_a_past_without_end_is_refused():
    """And told by `explain` of a shipped algorithm."""
    @fs.sampler(follows="global")
    def stale(x, *, step_size, age):
        return x - step_size * grad(past(x, age)) + sqrt(2 * step_size) * noise()

    with pytest.raises(NotationError, match=r"past\(age=1000000000\): at most 10000 rounds are kept"):
        stale(step_size=1e-11, age=10**9).trace(PROBLEM)
    told = fs.explain(PROBLEM, fs.StaleSGLD(1e-11, 10**9))["a round"]
    assert told == "not said: its 1000000000 rounds back are more than the 1000 that are followed here"
