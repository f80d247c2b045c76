"""What is hardly meant is said, once and with what would mend it; right samplers are left alone."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import sampler_zoo as zoo
from test_samplers import NOT_SYMMETRIC, problem_of

import fedsim as fs
import theory
from fedsim.samplers import SamplerWarning, grad, mean, noise, sqrt, telling, weights
from fedsim.samplers.words import aim_of


@pytest.fixture(autouse=True)
def _nothing_was_told(monkeypatch):
    monkeypatch.setattr(telling, "_TOLD", set())
    monkeypatch.setattr(telling, "_LOOKED_AT", set())


@fs.sampler
def leimkuhler_matthews(x, old, *, step_size):
    new = noise()
    return x - step_size * grad(x) + sqrt(step_size / 2) * (new + old), new


@fs.sampler(follows="components")
def textbook_diging(x, y, g, *, step_size, W):
    """The gradient is that of the new position."""
    x = W @ x - step_size * y + sqrt(2 * step_size) * noise()
    new = grad(x)
    return x, W @ y + new - g, new


@fs.sampler
def cold(x, *, step_size):
    return x - step_size * grad(x) + sqrt(step_size) * noise()


@fs.sampler
def pulled(x, *, step_size):
    return 0.99 * x - step_size * grad(x) + sqrt(2 * step_size) * noise()


@fs.sampler
def uphill(x, *, step_size):
    return x + step_size * grad(x) + sqrt(2 * step_size) * noise()


@fs.sampler(follows="components")
def no_tracker(x, y, g, *, step_size, W):
    new = grad(x)
    return W @ x - step_size * (W @ y + new) + sqrt(2 * step_size) * noise(), W @ y + new, new


@fs.sampler
def light(x, *, step_size, W):
    return mean(x - step_size * weights() * grad(x)) + sqrt(2 * step_size) * noise(common=True)


@fs.sampler
def still(x, *, step_size):
    return mean(x - step_size * grad(x))


@fs.sampler
def apart(x, *, step_size):
    n = noise()
    return mean(x - step_size * grad(x) + 0.1 * (n - mean(n)))


@fs.sampler
def momentum(x, v, *, step_size, b):
    v = b * v - step_size * grad(x) + sqrt(2 * step_size * (1 - b)) * noise()
    return x + v, v


@fs.sampler
def langevin(x, *, step_size):
    return x - step_size * grad(x) + sqrt(2 * step_size) * noise()


PAIRED = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
ONE_CLIENT = ("cold", "pulled", "uphill", "momentum", "leimkuhler_matthews")
WARNED = [
    (cold(step_size=0.01), "cold aims at exp(-f/0.5): noise and gradients fit temperature 0.5, not 1; noise "
     "sqrt(2) = 1.41421 times as large would aim at it"),
    (pulled(step_size=0.01), "a round moves clients that agree, as if something pulled them to the origin"),
    (still(step_size=0.01), "still has no noise: it descends f, and samples no law"),
    (apart(step_size=0.01), "has noise that does not reach the average: it descends f"),
    (momentum(step_size=0.01, b=1.0), "gradients add up in another part of the state, v, which is kept for "
     "ever: a momentum has to fade"),
    (zoo.de_sghmc(step_size=0.01, friction=0.0, W=fs.network.ring(3)), "another part of the state, v, which"),
    (zoo.de_sgld(step_size=0.01, W=np.eye(3)), "de_sgld has clients that never meet, {0}, {1}, {2}: no "
     "product with a matrix and no average joins them, so that each group follows gradients of its own"),
    (zoo.de_sgld(step_size=0.01, W=PAIRED), "never meet, {0, 2}, {1}:"),
    (zoo.extra_sgld(step_size=0.01, W=PAIRED), "never meet, {0, 2}, {1}:"),
    (zoo.de_sgld(step_size=0.01, W=[PAIRED, np.eye(3)]), "never meet, {0, 2}, {1}:"),
    (zoo.random_pairs(step_size=0.01, W=fs.network.random([PAIRED, np.eye(3)])), "never meet, {0, 2}, {1}:"),
    (langevin(step_size=0.01), "never meet, {0}, {1}, {2}:"),
    (uphill(step_size=0.01), "does not move against the gradient"),
    (no_tracker(step_size=0.01, W=fs.network.ring(3)), "gradients add up in another part"),
    (light(step_size=0.01, W=fs.network.ring(3)), "follows other weights"),
    (zoo.de_sgld(step_size=0.01, W=0.99 * fs.network.ring(3)), "rows do not sum to one"),
    (zoo.de_sgld(step_size=0.01, W=np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.3, 0.2]])),
     "columns do not sum to one"),
]


@pytest.mark.parametrize(("algorithm", "words"), WARNED, ids=lambda one: getattr(one, "_state", one))
def test_what_is_hardly_meant_is_said(algorithm, words):
    N = 1 if type(algorithm).__name__ in ONE_CLIENT else 3
    with pytest.warns(SamplerWarning) as told:
        algorithm.check(problem_of(np.random.default_rng(0), N, 1))
    assert any(words in str(one.message) for one in told)


RIGHT = [
    zoo.de_sgld(step_size=0.02, W=NOT_SYMMETRIC), zoo.extra_sgld(step_size=0.02, W=fs.network.ring(3)),
    zoo.diging_sgld(step_size=0.02, W=fs.network.ring(3)), zoo.de_baoab(step_size=0.1, friction=3.0,
                                                                       W=fs.network.ring(3)),
    zoo.de_sghmc(step_size=0.1, friction=4.0, W=fs.network.ring(3)),
    zoo.scaffold_ld(step_size=0.02, local_steps=5),
    zoo.fa_ld(step_size=0.02, local_steps=3, shared_noise=0.2, temperature=2.0),
    zoo.fa_hmc(step_size=0.02, leapfrog_steps=3, local_steps=4, shared_noise=0.3),
    zoo.stale_sgld(step_size=0.02, age=3), zoo.stale_sghmc(step_size=0.02, friction=2.0, age=2),
    zoo.known_delays(step_size=0.02, sets=((0, 1), (2,))),
    textbook_diging(step_size=0.02, W=fs.network.ring(3)), leimkuhler_matthews(step_size=0.1)]


@pytest.mark.parametrize("algorithm", RIGHT, ids=lambda one: type(one).__name__)
def test_right_samplers_are_not_warned_of(algorithm):
    N = 1 if type(algorithm).__name__ == "leimkuhler_matthews" else 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        algorithm.check(problem_of(np.random.default_rng(1), N, 1))


@pytest.mark.parametrize("algorithm", [one for one in RIGHT if not isinstance(one, zoo.known_delays)],
                         ids=lambda one: type(one).__name__)  # whose sets take turns
def test_the_temperature_that_a_formula_aims_at(algorithm):
    """Momentum, old noise, trackers and new gradients do not change it."""
    N = 1 if type(algorithm).__name__ == "leimkuhler_matthews" else 3
    found = algorithm.trace(problem_of(np.random.default_rng(1), N, 1))
    aim = aim_of(found, algorithm.convention == "components")
    assert not aim.why and aim.temperature == pytest.approx(algorithm.temperature, rel=1e-9)


def told(algorithms, problem):
    """What is said of these, one after the other."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for one in algorithms:
            one.check(problem)
    return [str(one.message) for one in said]


def test_it_is_said_once_whatever_the_step_size():
    one, three = (problem_of(np.random.default_rng(0), N, 1) for N in (1, 3))
    assert len(told([cold(step_size=h) for h in (0.01, 0.02, 0.01, [0.3, 0.2])], one)) == 1
    assert told([zoo.fa_ld(step_size=h) for h in (0.01, 0.02)], three) == []
    same = [zoo.de_sgld(step_size=h, W=PAIRED) for h in (0.01, 0.02)]
    other = [zoo.de_sgld(step_size=h, W=np.eye(3)) for h in (0.01, 0.02)]
    assert len(told([*same, *other, *same], three)) == 2
    assert len(told([momentum(step_size=0.01, b=b) for b in (1.0, 0.5, 1.0)], one)) == 1


def test_what_mends_the_noise_mends_it():
    """The factor that the warning names is the one that aims at the target."""
    @fs.sampler
    def loud(x, *, step_size, factor):
        return x - step_size * grad(x) + factor * sqrt(6 * step_size) * noise()

    problem = problem_of(np.random.default_rng(0), 1, 1)
    (words,) = told([loud(step_size=0.01, factor=1.0)], problem)
    factor = float(words.split(" = ")[1].split()[0])
    assert "aims at exp(-f/3)" in words and factor == pytest.approx(3**-0.5, rel=1e-5)
    assert told([loud(step_size=0.01, factor=3**-0.5)], problem) == []


def test_explain_says_who_meets_and_that_nothing_is_stable():
    problem = problem_of(np.random.default_rng(0), 3, 1)
    with pytest.warns(SamplerWarning):
        told_ = fs.explain(problem, zoo.de_sgld(step_size=0.02, W=PAIRED))
    assert told_["temperature"] == "none: there are 2 groups of clients that never meet"
    one = problem_of(np.random.default_rng(0), 1, 1)
    with pytest.warns(SamplerWarning):
        told_ = fs.explain(one, uphill(step_size=0.01))
    assert ", no step size is stable (" in told_["stability"]
    assert np.isnan(uphill(step_size=0.01).stability(one).max_step_size)
    with pytest.raises(fs.UnstableStepSize, match=r"step_size=0.01: no step size is stable"):
        theory.exact_law(one, uphill(step_size=0.01), 3)


def test_many_clients_are_judged_in_little_memory():
    """No matrix of clients by clients is made where the sampler has none."""
    tracemalloc.start()
    try:
        for count in (1_000, 50_000):
            problem = fs.Quadratic(np.ones((count, 1)), np.zeros((count, 1)))
            zoo.fa_ld(step_size=0.1).check(problem)
            assert tracemalloc.get_traced_memory()[1] < 5_000 * count + 1e7
        with pytest.warns(SamplerWarning, match=r"never meet, \{0\}, \{1\}, \{2\}, \{3\}, \.\.\.:"):
            langevin(step_size=0.01).check(problem)
        assert tracemalloc.get_traced_memory()[1] < 5_000 * count + 1e7
    finally:
        tracemalloc.stop()
