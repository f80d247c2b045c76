"""Kernels with a Metropolis step: whether they leave the target as it is."""

from __future__ import annotations

import numpy as np
import pytest
from own_gradients import log_cosh, log_cosh_potential
from scipy import special, stats
from test_kernels import PROBLEM, g

import fedsim as fs
from theory.testing import exact_draws, invariance
from theory.testing.exact_draws import CONTENT, STAGES, Worst

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
    assert not found.differs and "After one call from " in found["invariance"].sentence
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


def with_law(cov):
    """A problem whose target has mean zero and this covariance."""
    return fs.Quadratic(np.linalg.inv(cov)[None], np.zeros((1, len(cov))))


def pair(rho, dim=2, i=0, j=1, first=1.0):
    """A covariance with one correlation, and of the first coordinate another standard deviation."""
    cov = np.eye(dim)
    cov[i, j] = cov[j, i] = rho
    scale = np.where(np.arange(dim) == 0, first, 1.0)
    return scale[:, None] * cov * scale


def drawing(cov):
    """A kernel that forgets its state, and draws of this covariance."""
    root = np.linalg.cholesky(cov)
    return lambda seed, x: root @ np.random.default_rng(seed).standard_normal(len(root))


def scaling(size, i):
    return lambda seed, x: np.where(np.arange(len(x)) == i, size * x, x)


def together(seed, x):
    """All coordinates have the first one's size; their signs are drawn."""
    return abs(x[0]) * np.random.default_rng(seed).choice([-1.0, 1.0], len(x))


def flat(seed, x):
    """A uniform number of the right mean and variance in place of one coordinate."""
    return np.append(x[:2], [np.random.default_rng(seed).uniform(-np.sqrt(3.0), np.sqrt(3.0)), *x[3:]])


STANDARD = with_law(np.eye(2))
NAMED = {
    "the difference of coordinates 0 and 1, 0.8": (drawing(pair(0.3)), np.eye(2)),
    "the sum of coordinates 0 and 1, 0.8": (drawing(pair(-0.3)), np.eye(2)),
    "the difference of coordinates 1 and 3, 0.8": (drawing(pair(0.3, 5, 1, 3)), np.eye(5)),
    "the sum of coordinates 0 and 4, 0.8": (drawing(pair(-0.3, 5, 0, 4, first=9.0)), pair(0.0, 5, first=9.0)),
    "coordinates 0 and 1 given those before, ": (drawing(np.eye(2)), pair(0.3)),
    "standard deviation of coordinate 4, 1.1": (scaling(1.1, 4), np.eye(10)),
    "standard deviation of coordinate 7, 0.": (scaling(0.9, 7), np.eye(10)),
    "standard deviation of coordinate 1 given those before, 1.": (scaling(1.1, 1), pair(0.2)),
    "(mean)": (lambda seed, x: x + 0.1, np.eye(3)), "(scale)": (lambda seed, x: 1.1 * x, np.eye(5)),
    "(distances)": (together, np.eye(2)), "(law of coordinate 2)": (flat, np.eye(5))}


@pytest.mark.parametrize("words", NAMED)
def test_a_fault_is_named(words):
    kernel, cov = NAMED[words]
    found = invariance(kernel, with_law(cov))["invariance"]
    assert found.differs and words in found.sentence, found.sentence


def test_what_passes():
    """Three signs of which two tell the third; the coordinates are normal, and independent in pairs."""
    def kernel(seed, x):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], 2)
        return np.abs(x) * np.append(signs, signs.prod())
    assert not invariance(kernel, with_law(np.eye(3))).differs


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_each_test_has_its_law(alarm, dim):
    """P-values are uniform, as are those of the smallest of independent ones; those of pairs are not."""
    cov = 0.5**np.abs(np.subtract.outer(np.arange(dim), np.arange(dim))) * np.arange(1.0, dim + 1.0)**2
    target = fs.Gaussian(np.arange(dim) - 1.0, (cov + cov.T) / 2.0)
    runs = [exact_draws.tested(target.sample(30, seed), target) for seed in range(200)]
    counts = [1, 1, 1, dim, dim, dim * (dim - 1)]
    assert [one.tests for one in runs[0]] == counts[:4 if dim == 1 else 6]
    assert sum(one.share for one in runs[0]) == 1.0
    for place, count in enumerate(one.tests for one in runs[0]):
        smallest = np.array([run[place].pvalue for run in runs])
        if place < 5 or dim == 2:
            alarm.assert_pvalue(stats.kstest(1.0 - (1.0 - smallest)**count, "uniform").pvalue, f"law {place}")
        else:
            accused = int((smallest * count <= 0.05).sum())
            alarm.assert_pvalue(stats.binom.sf(accused - 1, len(runs), 0.05), "pairs")
    chances = np.array([min(one.chance for one in run) for run in runs])
    alarm.assert_pvalue(stats.binom.sf((chances <= 0.05).sum() - 1, len(runs), 0.05), "all")


def test_one_draw_by_hand():
    """Of two coordinates half the square of the distance is exponential, and one number's law is erf."""
    a, b = 0.3, -1.7
    far = np.exp(-(a**2 + b**2) / 2)
    single = {place: special.erfc(abs(x) / np.sqrt(2)) for place, x in {
        "coordinate 0": a, "coordinate 1": b, "the sum": (a + b) / np.sqrt(2),
        "the difference": (a - b) / np.sqrt(2)}.items()}
    two_sided = {place: 2 * min(chance, 1 - chance) for place, chance in single.items()}
    found = exact_draws.tested(np.array([[a, 3.0 * b]]), with_law(np.diag([1.0, 9.0])).target())
    assert [one.place.split(",")[0] for one in found] == [
        "mean", "scale", "distances", "law of coordinate 1", "standard deviation of coordinate 1",
        "standard deviation of the difference of coordinates 0 and 1"]
    wanted = [far, 2 * min(far, 1 - far), 2 * min(far, 1 - far), single["coordinate 1"],
              min(two_sided["coordinate 0"], two_sided["coordinate 1"]),
              min(two_sided["the sum"], two_sided["the difference"])]
    np.testing.assert_allclose([one.pvalue for one in found], wanted, rtol=1e-12)


@pytest.mark.parametrize("size", [0.8, 1.25])
def test_too_small_and_too_large_is_seen_by_each_test_of_a_size(size):
    draws = np.random.default_rng(5).normal(size=(2000, 2))
    found = exact_draws.tested(size * draws, STANDARD.target())
    of_size = [one.pvalue for one in found if "deviation" in one.place or one.place == "scale"]
    assert len(of_size) == 3 and max(of_size) < 1e-20


def test_right_kernels_are_accused_as_often_as_is_allowed(alarm):
    """Of 200 runs at one in twenty, over all tests and looks, of a target with correlations."""
    root = np.linalg.cholesky(pair(0.8, 4, 1, 3))
    problem = with_law(root @ root.T)

    def kernel(seed, x):
        return 0.6 * x + 0.8 * root @ np.random.default_rng(seed).normal(size=4)
    accused = sum(invariance(kernel, problem, n_draws=20, false_alarm=0.05, seed=seed).differs
                  for seed in range(200))
    alarm.assert_pvalue(stats.binom.sf(accused - 1, 200, 0.05))


def looks(monkeypatch, chances, level=1e-2):
    """The finding, and draws of each look, where the looks have these p-values."""
    sizes = []

    def scripted(draws, target):
        sizes.append(len(draws))
        return [Worst("other", 1.0, 1, 0.5), Worst("this", chances[len(sizes) - 1] / 8.0, 4, 0.5)]
    monkeypatch.setattr(exact_draws, "tested", scripted)
    found = invariance(lambda seed, x: x, STANDARD, n_draws=20, false_alarm=level)["invariance"]
    return found, sizes


@pytest.mark.parametrize("before", range(STAGES))
def test_looks_share_the_level(monkeypatch, before):
    """Each look accuses from its part of the level on, 1/2, 1/4, 1/8, 1/16 and 1/16, and asks below 0.2."""
    part = [0.5, 0.25, 0.125, 0.0625, 0.0625][before]
    sizes = [20, 80, 320, 1280, 5120]
    open_ = [0.19, 0.021, 0.006, 0.19][:before]
    found, seen = looks(monkeypatch, [*open_, 0.99 * part * 1e-2])
    assert found.differs and seen == sizes[:before + 1] and "(this)" in found.sentence
    assert np.isclose(found.value, 0.99 * part * 1e-2)
    found, seen = looks(monkeypatch, [*open_, 1.01 * part * 1e-2, 0.21])
    assert not found.differs and seen == sizes[:before + 2]
    found, seen = looks(monkeypatch, [*open_, 0.21])
    assert looks(monkeypatch, [*open_, 7.0])[0].value == 1.0
    assert not found.differs and seen == sizes[:before + 1] and CONTENT == 0.2


def test_seeds_and_draws_are_new_in_each_look_and_other_ones_for_another_seed(monkeypatch):
    monkeypatch.setattr(exact_draws, "tested", lambda draws, target: [Worst("this", 0.1, 1, 1.0)])
    seeds, points = [], []

    def kernel(seed, x):
        seeds.append(seed)
        points.append(tuple(x))
        return x
    for seed in (0, 1):
        invariance(kernel, STANDARD, n_draws=20, seed=seed)
    assert len(seeds) == 2 * 20 * (1 + 4 + 16 + 64 + 256) == len(set(seeds)) == len(set(points))


def test_draws_have_the_temperature():
    hot = drawing(3.0 * np.eye(2))
    assert not invariance(hot, STANDARD, temperature=3.0).differs and invariance(hot, STANDARD).differs
    seen = []
    invariance(lambda seed, x: seen.append(x) or x, STANDARD, temperature=3.0)
    assert min(one.chance for one in exact_draws.tested(np.array(seen), STANDARD.target(3.0))) > 1e-4
