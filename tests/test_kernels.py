"""Kernels with a seed: what is found of them, in sentences and numbers, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from seeded import normals

import fedsim as fs
import theory
from theory.testing import UpdateRule, assert_samples, probe, report

H = np.array([[2.0, 0.5], [0.5, 1.0]])
B = np.array([0.3, -0.2])
PROBLEM = fs.Quadratic(H[None], B[None])


def g(x):
    return (x - B) @ H


def sgld(step_size, temperature=1.0):
    def kernel(seed, x):
        noise = np.random.default_rng(seed).normal(size=2)
        return x - step_size * g(x) + np.sqrt(2 * step_size * temperature) * noise
    return kernel


def near(alarm, interval, level, exact):
    """The exact value is as near as Student's interval of fifty leaves has it, or a wider one."""
    reach = stats.t.ppf(0.5 + 0.5 * level, 49)
    alarm.assert_student(2 * reach * (interval.value - exact) / (interval.high - interval.low), 49, "value")


def position_first(length):
    """Momenta drawn anew, whatever the temperature; positions move before they are kicked."""
    def make(step_size, temperature=1.0):
        def kernel(seed, x):
            v = np.random.default_rng(seed).normal(size=2)
            for _ in range(length):
                x = x + step_size * v
                v = v - step_size * g(x)
            return x
        return kernel
    return make


@pytest.mark.parametrize(("length", "size"), [(2, 0.05), (5, 0.02)])
def test_a_kernel_of_three_properties_is_reported_with_its_numbers(alarm, length, size):
    found = report(position_first(length), PROBLEM, step_size=size, n_draws=10_000)
    limit, share = found["limit"], found["temperature"]
    assert found.differs and limit.differs
    near(alarm, limit, 1.0 - 1e-5, length / (length - 1))
    assert limit.high - limit.low < 0.25
    assert share.differs and abs(share.value - 1.0) < 1e-12 and "does not enter" in share.causes[0]


def test_without_a_gradient_the_target_does_not_enter():
    found = report(position_first(1), PROBLEM, step_size=0.1, n_draws=1000)
    assert found["target"].differs and "The matrix is the identity" in found["target"].sentence
    assert found["target"].causes[0] == "the gradient is not used"
    assert not found["temperature"].differs  # there is no law that should follow it
    assert "variance of the noise is 1 times" in found["temperature"].sentence
    with pytest.raises(theory.NoExactLaw, match="radius of its matrix is 1"):
        probe(position_first(1)(0.1), PROBLEM, n_draws=100).stationary_law()


def test_two_per_cent_of_the_noise_are_seen():
    found = assert_samples(sgld(0.1), PROBLEM, like=fs.StaleSGLD(0.1, 0))
    assert not found.differs and found["matrix"].value < 1e-14

    def louder(seed, x):
        return x - 0.1 * g(x) + 1.02 * np.sqrt(0.2) * np.random.default_rng(seed).normal(size=2)

    with pytest.raises(AssertionError, match=r"(?s)noise +differs .* 1\.0\d+ \(1\.0\d+ to 1\.0\d+\)\s+times"):
        assert_samples(louder, PROBLEM, like=fs.StaleSGLD(0.1, 0))


def test_a_right_sampler_is_told_as_such_and_its_bias_has_an_order(alarm):
    found = report(sgld, PROBLEM, step_size=0.1, like=fs.StaleSGLD(0.1, 0), n_draws=5000)
    assert not found.differs and 0.9 < found["order"].value < 1.3
    exact, target = theory.stationary_law(PROBLEM, fs.StaleSGLD(0.1, 0)), PROBLEM.target()
    near(alarm, found["variance"], 0.95, np.trace(np.linalg.solve(target.cov, exact.cov)) / 2)
    assert found["w2"].low <= found["w2"].value <= found["w2"].high
    assert found["temperature"].value == pytest.approx(0.5, abs=1e-12)
    with pytest.raises(KeyError, match="there are findings about affine"):
        found["nothing"]


def test_a_report_is_json_html_and_words():
    found = report(position_first(1), PROBLEM, step_size=0.1, n_draws=1000)
    plain = json.loads(found.to_json())
    assert plain["differs"] and plain["findings"][1]["about"] == "target"
    assert plain["findings"][1]["causes"][0] == "the gradient is not used"
    html = found._repr_html_()
    assert html.startswith("<table>") and html.count("<tr>") == 1 + len(found.findings)
    assert "target       differs" in str(found)
    assert "Known to do so: the gradient is not used; or" in " ".join(str(found).split())
    assert "affine" in found and "noise" not in found


def test_no_sentence_says_that_anything_is_wrong():
    found = [report(position_first(2), PROBLEM, step_size=0.1, like=fs.StaleSGLD(0.1, 0), n_draws=1000),
             report(position_first(1), PROBLEM, step_size=0.1, n_draws=1000)]
    for one in found:
        assert one.differs and not {"wrong", "bug", "error", "broken"} & set(str(one).lower().split())


def minibatch(scale, alike):
    """SGLD of a Gaussian's mean by minibatches; features differ unless alike."""
    features = np.ones((20, 1)) if alike else np.linspace(0.5, 1.5, 20)[:, None]
    data = np.linspace(-1.0, 1.0, 20)

    def make(step_size, batch_size):
        def kernel(seed, x):
            rng = np.random.default_rng(seed)
            rows = rng.choice(20, batch_size, replace=False)
            force = features[rows].T @ (features[rows] @ x - data[rows])
            noise = np.sqrt(2 * step_size) * rng.normal(size=1)
            return x - step_size * scale(20 / batch_size) * force + noise
        return kernel
    return make, fs.Quadratic([[float((features**2).sum())]], [[0.0]])


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize(("scale", "cause"), [
    (lambda r: r, None), (lambda r: 1.0, "N/n is missing in the gradient"),
    (lambda r: 1 / r, "n/N stands for N/n in the gradient"), (lambda r: r * r, "N/n is there twice")])
def test_minibatches_of_several_sizes_have_one_gradient(scale, cause, alike):
    make, problem = minibatch(scale, alike)
    found = report(make, problem, step_size=0.01, batch_size=[5, 10, 20], n_draws=1000)
    batches = [one for one in found.findings if one.about == "batch_size"]
    assert len(batches) == 2 and all(one.differs == (cause is not None) for one in batches)
    assert all(cause is None or cause in one.causes for one in batches)
    assert "variance" in found


def test_a_matrix_that_depends_on_the_seed_has_the_moments_of_minibatches(alarm):
    """Those of linear regression with minibatches are exact: two features, correlated with the targets."""
    rng = np.random.default_rng(4)
    features, targets = rng.normal(size=(12, 2)), rng.normal(1.0, 1.0, 12)
    given = {"noise_std": 1.0, "prior_variance": 2.0}
    whole = fs.LinearRegression(features, targets, np.zeros(12, int), **given)
    parts = fs.LinearRegression(features, targets, np.zeros(12, int), **given, batch_size=3, replace=True)
    exact = theory.stationary_law(parts, fs.FALD(0.02))

    def kernel(seed, x):
        rng = np.random.default_rng(seed)
        rows = rng.integers(12, size=3)
        force = 4.0 * features[rows].T @ (features[rows] @ x - targets[rows]) + x / 2.0
        return x - 0.02 * force + np.sqrt(0.04) * rng.normal(size=2)

    found = probe(kernel, whole, n_draws=30_000)
    target = whole.target()
    ratio = np.trace(np.linalg.solve(target.cov, exact.cov)) / 2
    seen = found.variance_ratio(0.99)
    assert found.is_random and ratio > 1.2 and seen.high - seen.low < 0.1 * seen.value
    near(alarm, seen, 0.99, ratio)
    gaps = found.gaps_by_leaf() - np.linalg.solve(np.linalg.cholesky(target.cov), exact.mean - target.mean)
    alarm.assert_student(np.sqrt(50) * gaps.mean(axis=0) / gaps.std(axis=0, ddof=1), 49, "mean")
    w2 = found.w2_interval(0.99)
    assert w2.low < w2.value < w2.high < w2.value + 0.3 and abs(w2.value - exact.w2(target)) < 0.1
    with pytest.raises(theory.NoExactLaw, match="radius of its second moment"):
        probe(lambda seed, x: (1.0 + 2.0 * np.random.default_rng(seed).normal()) * 0.5 * x, whole,
              n_draws=500).stationary_law()
    with pytest.raises(theory.NoExactLaw, match="its state has 13 numbers"):
        probe(lambda seed, x: np.random.default_rng(seed).normal() * x, fs.Quadratic([1.0], [np.zeros(13)]),
              n_draws=500).stationary_law()


def test_a_matrix_that_depends_on_the_seed_differs_from_an_algorithm():
    make, problem = minibatch(lambda r: r, False)
    with pytest.raises(AssertionError, match="The matrix depends on the seed"):
        assert_samples(make(0.01, 5), problem, like=fs.StaleSGLD(0.01, 0), smallest=0.2)


def test_one_noise_for_all_coordinates_is_seen_alone():
    def make(step_size):
        def kernel(seed, x):
            return x - step_size * g(x) + np.sqrt(2 * step_size) * np.random.default_rng(seed).normal()
        return kernel

    found = report(make, PROBLEM, step_size=0.1, n_draws=1000)
    assert found["covariance"].differs and "are the same, up to their size" in found["coordinates"].sentence
    assert "one noise is drawn for several coordinates" in found["covariance"].causes


@pytest.mark.parametrize(("mean", "pull"), [(0.0, 0.0), (0.1, 0.0), (0.0, 1.0)])
def test_a_mean_that_is_not_the_targets_is_seen(mean, pull):
    def make(step_size):
        def kernel(seeds, x):
            z = mean + normals(seeds, 2)
            return x - step_size * (g(x) + pull * np.array([1.0, 0.0])) + np.sqrt(2 * step_size) * z
        return kernel

    found = report(make, PROBLEM, step_size=0.1, n_draws=20_000, batched=True)
    assert found["mean"].differs == found.differs == (mean + pull > 0.0)
    assert not found["mean"].differs or "the noise has a mean" in found["mean"].causes


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_noise_that_coordinates_share_in_part_is_seen_where_the_target_is_independent(share):
    plain = fs.Quadratic([[1.0, 2.0, 3.0]], [[0.0, 1.0, 2.0]])

    def make(step_size):
        def kernel(seeds, x):
            z = normals(seeds, 4)
            z = np.sqrt(1 - share) * z[:, :3] + np.sqrt(share) * z[:, 3:]
            return x - step_size * plain.gradient(0, x) + np.sqrt(2 * step_size) * z
        return kernel

    found = report(make, plain, step_size=0.1, n_draws=20_000, batched=True)
    assert found["covariance"].differs == found.differs == (share > 0.0)
    assert share == 0.0 or found["covariance"].low > 0.0 == found["covariance"].expected


@pytest.mark.parametrize(("factor", "cause"), [
    (lambda h: 1.0, "the noise does not fall with the step size as its root"),
    (lambda h: 2.0 * h, "the noise is multiplied by step_size, and not by its root"),
    (lambda h: np.sqrt(h), "the factor 2 under the root is missing"),
    (lambda h: 2.0 * np.sqrt(h), "a factor 2 too many under the root")])
def test_noise_that_does_not_fit_the_drift_is_seen_as_the_step_size_falls(factor, cause):
    def make(step_size):
        def kernel(seeds, x):
            return x - step_size * g(x) + factor(step_size) * normals(seeds, 2)
        return kernel

    found = report(make, PROBLEM, step_size=0.05, n_draws=20_000, batched=True)
    assert found["limit"].differs and cause in found["limit"].causes


def with_momentum(keep):
    def make(step_size):
        def kernel(seed, state):
            z = np.random.default_rng(seed).normal(size=2)
            v = (1 - step_size) * keep * state["v"] - step_size * g(state["x"]) + np.sqrt(2 * step_size) * z
            return {"v": v, "x": state["x"] + step_size * v, "n": state["n"] + 1}
        return kernel
    return make


def test_momentum_is_kept_or_not_and_counters_do_not_count():
    start = {"x": np.zeros(2), "v": np.zeros(2), "n": 0.0}
    like = fs.StaleSGHMC(0.1, 1.0, 0)
    found = report(with_momentum(1.0), PROBLEM, step_size=0.1, like=like, start=start, n_draws=4000)
    assert not found.differs and found["state"].sentence == "state['v'] is kept from one call to the next."
    found = report(with_momentum(0.0), PROBLEM, step_size=0.1, like=like, start=start, n_draws=2000)
    assert "drawn anew" in found["state"].sentence
    assert "state['v'] is forgotten at each call" in found["matrix"].causes


def test_other_coordinates_of_the_same_algorithm_are_the_same():
    """A momentum in other units, and positions in a tuple: what is read is alike."""
    def kernel(seed, state):
        x, moved = state
        z = np.random.default_rng(seed).normal(size=2)
        moved = 0.9 * moved - 0.01 * g(x) + 0.1 * np.sqrt(0.2) * z
        return x + moved, moved

    options = {"start": (np.zeros(2), np.zeros(2)), "like": fs.StaleSGHMC(0.1, 1.0, 0)}
    assert not assert_samples(kernel, PROBLEM, **options, smallest=0.05).differs

    def doubled(seed, state):
        return kernel(seed, (state[0], 2.0 * state[1]))

    with pytest.raises(AssertionError, match=r"(?s)differs .* of\s+its change, from state\[1\]\[0\] to"):
        assert_samples(doubled, PROBLEM, **options, smallest=0.05)


def test_a_program_and_a_sampler_are_what_a_kernel_may_say_it_is():
    rule = UpdateRule(lambda h: lambda x, z: x - h * g(x) + np.sqrt(2 * h) * z, PROBLEM, 0.1, noise=2)
    assert not assert_samples(sgld(0.1), PROBLEM, like=rule, smallest=0.1).differs
    traced = fs.samplers.declared(fs.StaleSGLD(0.1, 0))
    assert not assert_samples(sgld(0.1), PROBLEM, like=traced, smallest=0.1).differs


def test_float32_is_known_and_told():
    def kernel(seed, x):
        return np.float32(sgld(0.1)(seed, np.float32(x)))

    found = probe(kernel, PROBLEM, n_draws=200)
    assert found.rounding == 3e-5 and np.abs(found.matrix - (np.eye(2) - 0.1 * H)).max() < 1e-6
    told = report(lambda step_size: kernel, PROBLEM, step_size=0.1, like=fs.StaleSGLD(0.1, 0), n_draws=2000)
    assert "float32 (state is)" in told["affine"].sentence and not told["matrix"].differs


def metropolis(seed, x):
    rng = np.random.default_rng(seed)
    new = x + rng.normal(size=2)
    return new if np.log(rng.random()) < 0.5 * (g(x) @ (x - B) - g(new) @ (new - B)) else x


GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(("kernel", "words"), [
    (metropolis, r"not affine in its state: off by .* at state\[[01]\]"),
    (lambda seed, x: np.clip(sgld(0.1)(seed, x), -20, 20), "accepts or rejects, or clips"),
    (lambda seed, x: x + GENERATOR.normal(size=2), "two answers for one seed"),
    (lambda seed, x: x * np.nan, "must give a finite state"),
    (lambda seed, x: 1 / 0, "kernel.* fails: ZeroDivisionError"),
    (lambda seed, x: (x, x), r"has the parts state\[0\], state\[1\]"),
    (lambda seed: seed, "kernel.* fails: TypeError"),
    (3.0, "kernel=3.0 must be a function"),
])
def test_what_is_no_affine_kernel_is_refused(kernel, words):
    with pytest.raises(ValueError, match=words):
        probe(kernel, PROBLEM, n_draws=100)


@pytest.mark.parametrize(("changes", "words"), [
    ({"n_draws": 3}, "n_draws=3"), ({"seed": -1}, "seed=-1"), ({"temperature": -1.0}, "temperature=-1.0"),
    ({"problem": 3}, "problem=3"), ({"read": 3}, "read=3"), ({"start": "text"}, "start gives no state"),
    ({"start": [np.inf, 0.0]}, "must give a state of finite numbers"), ({"batched": 3}, "batched=3"),
    ({"n_draws": 10**8}, "n_draws=10"), ({"read": lambda x: x[0]}, r"read\(state\) has shape"),
])
def test_arguments_of_a_probe_that_do_not_fit_are_named(changes, words):
    given = {"kernel": sgld(0.1), "problem": PROBLEM} | changes
    with pytest.raises(ValueError, match=words):
        probe(given.pop("kernel"), given.pop("problem"), **given)


@pytest.mark.parametrize(("changes", "words"), [
    ({"false_alarm": 2.0}, "false_alarm=2"), ({"step_size": 0.0}, "step_size=0"), ({"make": 3}, "make=3"),
    ({"batch_size": [5, 10]}, "must be a parameter of make"), ({"like": 3}, "algorithm=3"),
    ({"like": fs.FALD(0.1, participation=fs.Participation(1, True))}, "must do the same in each round"),
    ({"like": fs.FALD([0.1, 0.2])}, "must do the same in each round"),
])
def test_arguments_of_a_report_that_do_not_fit_are_named(changes, words):
    given = {"make": sgld, "problem": PROBLEM, "step_size": 0.1, "n_draws": 1000} | changes
    with pytest.raises(ValueError, match=words):
        report(given.pop("make"), given.pop("problem"), **given)


@pytest.mark.parametrize(("changes", "words"), [
    ({"smallest": 0.0}, "smallest=0"), ({"false_alarm": 1.0}, "false_alarm=1"), ({"missed": 2.0}, "missed=2"),
    ({"batch_fraction": 2.0}, "batch_fraction=2"), ({"smallest": 1e-6}, "smallest=1e-06"),
])
def test_arguments_of_a_test_that_do_not_fit_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        assert_samples(sgld(0.1), PROBLEM, like=fs.StaleSGLD(0.1, 0), **changes)
