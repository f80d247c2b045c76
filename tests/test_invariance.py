"""Kernels with a Metropolis step: whether they leave the target as it is."""

from __future__ import annotations

import numpy as np
import pytest
from own_gradients import log_cosh, log_cosh_potential
from scipy import stats
from test_kernels import PROBLEM, g

import fedsim as fs
from theory.testing import invariance

B = PROBLEM.target().mean


def f(x):
    return PROBLEM.potential(0, x)


def walk(seed, x):
    generator = np.random.default_rng(seed)
    y = x + generator.normal(size=2)
    return y if np.log(generator.uniform()) < f(x) - f(y) else x


def adjusted(h=0.6, corrected=True, gain=1.0, size=1.0, drift=1.0):
    """A Metropolis-adjusted Langevin step, and what may be forgotten in it."""
    def kernel(seed, x):
        generator = np.random.default_rng(seed)
        there = x - h * drift * g(x)
        y = there + size * np.sqrt(2 * h) * generator.normal(size=2)
        ratio = f(x) - f(y)
        if corrected:
            ratio += (((y - there)**2).sum() - ((x - y + h * drift * g(y))**2).sum()) / (4 * h * size**2)
        return y if np.log(generator.uniform()) < gain * ratio else x
    return kernel


def hamiltonian(turned=True, kept=0.6, fresh=0.8):
    """A momentum that is kept in part, and turned round where a trajectory is refused."""
    def kernel(seed, state):
        generator = np.random.default_rng(seed)
        p = kept * state["p"] + fresh * generator.normal(size=2)
        x, q = state["x"], p
        for _ in range(3):
            q = q - 0.35 * g(x)
            x = x + 0.7 * q
            q = q - 0.35 * g(x)
        gain = f(state["x"]) - f(x) + (p @ p - q @ q) / 2
        if np.log(generator.uniform()) < gain:
            return {"x": x, "p": q}
        return {"x": state["x"], "p": -p if turned else p}
    return kernel


def with_momentum(point, generator):
    return {"x": point, "p": generator.normal(size=2)}


RIGHT = {"a walk": (walk, {}), "Langevin": (adjusted(), {}),
         "another drift": (adjusted(drift=0.5), {}), "another size": (adjusted(size=0.7), {}),
         "Hamiltonian": (hamiltonian(), {"start": with_momentum, "calls": 2}),
         "nothing": (lambda seed, x: x, {})}
FAULTS = {"the proposal is not corrected": (adjusted(corrected=False), {}),
          "no Metropolis step": (adjusted(gain=0.0), {}), "the wrong way round": (adjusted(gain=-1.0), {}),
          "half the difference": (adjusted(gain=0.5), {}), "twice the difference": (adjusted(gain=2.0), {}),
          "too little momentum": (hamiltonian(fresh=0.6), {"start": with_momentum, "calls": 2}),
          "a mean": (lambda seed, x: x + 0.1, {}), "a scale": (lambda seed, x: B + 1.05 * (x - B), {}),
          "one coordinate": (lambda seed, x: np.array([x[0], B[1] + 1.1 * (x[1] - B[1])]), {})}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_not_accused(alarm, name):
    """Of 60 runs at one in ten, binomially; each looks several times."""
    kernel, options = RIGHT[name]
    accused = sum(invariance(kernel, PROBLEM, n_draws=20, false_alarm=0.1, seed=seed, **options).differs
                  for seed in range(60))
    alarm.assert_pvalue(stats.binom.sf(accused - 1, 60, 0.1), name)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_seen(name):
    kernel, options = FAULTS[name]
    found = invariance(kernel, PROBLEM, **options)
    assert found["invariance"].differs and found["invariance"].value < 1e-4
    assert "differs from it; p-value" in found["invariance"].sentence


def test_what_is_said():
    found = invariance(walk, PROBLEM)
    assert not found.differs and "After one call from 1000 exact draws" in found["invariance"].sentence
    assert "is not looked at" in found["reach"].sentence
    assert str(found) == str(invariance(walk, PROBLEM)) != str(invariance(walk, PROBLEM, seed=1))


def test_a_momentum_that_is_not_turned_leaves_the_target_unchanged_no_more():
    """It shows after more calls alone."""
    given = {"start": with_momentum, "calls": 12, "n_draws": 2000}
    straight = hamiltonian(turned=False, kept=0.95, fresh=np.sqrt(1 - 0.95**2))
    assert invariance(straight, PROBLEM, **given).differs


def test_refusals():
    data = fs.LogisticRegression(np.ones((3, 2)), [0, 1, 1], [0, 0, 0], prior_variance=1.0)
    line = fs.Custom(log_cosh, 1, data=np.array([0.0]), curvature=1.0, potential=log_cosh_potential)
    for options, words in (
            ({"kernel": 3}, "kernel=3 must be a function"), ({"start": 3}, "start=3 must be a function"),
            ({"problem": data}, "no closed form"), ({"problem": line}, "no closed form"),
            ({"calls": 0}, "calls=0"),
            ({"calls": 10_000, "n_draws": 100_000}, "needs 341000000000 seeds"),
            ({"false_alarm": 2.0}, "false_alarm=2"),
            ({"read": lambda x: x[0]}, r"read\(state\) has shape \(\); it must have the 2 numbers"),
            ({"kernel": lambda seed, x: x * np.nan}, "not finite"),
            ({"kernel": lambda seed, x: 1 / 0}, r"kernel\(seed, state\) fails: ZeroDivisionError")):
        with pytest.raises(ValueError, match=words):
            invariance(**{"kernel": walk, "problem": PROBLEM} | options)
