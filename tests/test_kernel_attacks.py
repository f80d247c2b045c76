"""Right kernels of odd kinds are not accused, and faults that hide are seen or refused."""

import numpy as np
import pytest
from seeded import normals

import fedsim as fs
import theory
from theory.testing import assert_samples, probe, report

A, B = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2])
PROBLEM = fs.Quadratic(A[None], B[None])
PLAIN = fs.Quadratic([[2.0, 1.0]], [[0.0, 0.0]])


def asked(make, problem=PROBLEM, step_size=0.05, n_draws=5000, **options):
    return report(make, problem, step_size=step_size, n_draws=n_draws, batched=True, **options)


def langevin(factor=1.0, noise=((1.0, 0.0), (0.0, 1.0)), force=A, at=B):
    """SGLD with its force and noise multiplied by matrices."""
    def make(step_size, temperature=1.0):
        def kernel(seeds, x):
            z = normals(seeds, 2) @ np.asarray(noise).T
            return x - factor * step_size * force @ (x - at) + np.sqrt(2 * step_size * temperature) * z
        return kernel
    return make


def test_momenta_in_float32_are_as_good_at_a_stiff_target():
    """They are some thousand times larger than the positions that they change."""
    single, stiff = np.float32, fs.Quadratic([1e4], [[0.1]])

    def kernel(seeds, state):
        x, v = single(state["x"]), single(state["v"])
        z = single(normals(seeds, 1))
        v = single(0.9) * v - single(10.0) * (x - single(0.1)) + single(np.sqrt(0.2)) * z
        return {"x": x + single(1e-3) * v, "v": v}

    warmer = theory.testing.UpdateRule(
        lambda h: lambda state, z: {
            "v": (v := 0.9 * state["v"] - 10.0 * (state["x"] - 0.1) + np.sqrt(0.22) * z),
            "x": state["x"] + h * v},
        stiff, 1e-3, noise=1, start=lambda x: {"x": x, "v": np.zeros(1)})
    start = {"x": np.zeros(1, single), "v": np.zeros(1, single)}
    assert_samples(kernel, stiff, fs.StaleSGHMC(1e-3, 100.0, 0), start=start, batched=True)
    with pytest.raises(AssertionError, match=r"noise +differs"):
        assert_samples(kernel, stiff, warmer, start=start, batched=True)


@pytest.mark.parametrize("pull", [1.0, 0.0, -1.0])
def test_a_step_too_small_for_float32_is_refused_and_not_judged(pull):
    def make(step_size):
        def kernel(seeds, x):
            x, h = np.float32(x), np.float32(step_size)
            return x - h * np.float32(pull) * x + np.sqrt(2 * h) * np.float32(normals(seeds, 1))
        return kernel

    one = fs.Quadratic([1.0], [[0.0]])
    with pytest.raises(ValueError, match=r"state is in float32 or less, and a call changes the state by 1e-"):
        assert_samples(make(1e-5), one, fs.StaleSGLD(1e-5, 0), batched=True, smallest=0.1)
    found = asked(make, one, 1e-6, 1000)
    assert not found.differs or pull == 0.0


def test_momenta_that_are_drawn_anew_by_chance_are_a_matrix_by_chance():
    def make(step_size):
        def kernel(seeds, state):
            z, kept = normals(seeds, 4), normals(seeds, 1, stream=1) > -1.2815515655
            v = np.where(kept, state["v"], z[:, 2:])
            v = (1 - step_size) * v - step_size * (state["x"] - B) @ A + np.sqrt(2 * step_size) * z[:, :2]
            return {"x": state["x"] + step_size * v, "v": v}
        return kernel

    start = {"x": np.zeros(2), "v": np.zeros(2)}
    assert probe(make(0.1), PROBLEM, start=start, batched=True, n_draws=1000).is_random
    assert not asked(make, step_size=0.1, start=start).differs


def minibatch(step_size, temperature=1.0, batch_size=5):
    def kernel(seeds, x):
        rows = np.argsort(normals(seeds, 50, stream=2), axis=1)[:, :batch_size]
        data = np.linspace(-1.0, 1.0, 50)[rows].mean(axis=1, keepdims=True)
        return x - step_size * 50.0 * (x - data) + np.sqrt(2 * step_size * temperature) * normals(seeds, 1)
    return kernel


def test_noise_of_gradients_has_no_temperature():
    one = fs.Quadratic([50.0], [[0.0]])
    found = asked(minibatch, one, 1e-3, 20_000)
    assert "As the step size falls" in found["temperature"].sentence and not found.differs


@pytest.mark.parametrize("make, problem", [
    (langevin(1.0, np.linalg.cholesky([[1.0, 0.4], [0.4, 1.0]]), np.array([[1.0, 0.4], [0.4, 1.0]]) @ np.diag(
        [2.0, 1.0]), np.zeros(2)), PLAIN),
    (langevin(1e-13, np.sqrt(1e-13) * np.eye(2), 1e13 * A), fs.Quadratic(1e13 * A[None], B[None]))])
def test_noise_that_coordinates_share_is_right_where_the_covariance_is(make, problem):
    found = asked(make, problem)
    assert not found.differs and not found["covariance"].differs


def test_minibatches_with_a_row_that_is_rare_and_large_have_one_gradient():
    features = np.ones(1000)
    features[0] = 100.0
    whole = fs.Quadratic([float((features**2).sum())], [[0.0]])

    def make(step_size, batch_size):
        def kernel(seeds, x):
            rows = (normals(seeds, batch_size, stream=3) * 1e6).astype(int) % 1000
            force = 1000 / batch_size * (features[rows] ** 2).sum(axis=1, keepdims=True) * x
            return x - step_size * force + np.sqrt(2 * step_size) * normals(seeds, 1)
        return kernel

    found = asked(make, whole, 1e-6, 20_000, batch_size=[5, 10])
    assert not found["batch_size"].differs and found["batch_size"].high > 1.0


def test_a_mean_to_rounding_is_no_difference():
    def make(step_size):
        def kernel(seeds, x):
            sign = np.where(np.asarray(seeds) % 2, 1.0, -1.0)[:, None]
            return x - step_size * (x - 0.1) + np.sqrt(2 * step_size) * sign * np.ones((1, 1))
        return kernel

    assert not asked(make, fs.Quadratic([1.0], [[0.1]]))["mean"].differs
    quiet = asked(langevin(noise=np.zeros((2, 2))))
    assert quiet["limit"].differs and quiet["limit"].causes == ("no noise is added",)
    assert not quiet["mean"].differs and "coordinates" not in quiet


@pytest.mark.parametrize("make, told", [
    (langevin(noise=np.diag(np.sqrt([1.9, 0.1]))), "variance of coordinate"),
    (langevin(noise=np.linalg.cholesky([[1.0, 0.9], [0.9, 1.0]])), "covariance of coordinates 0 and 1"),
    (langevin(force=np.diag(np.diag(A))), "coordinate")])
def test_a_covariance_whose_average_is_right_is_seen(make, told):
    found = asked(make)
    assert found.differs and (found["limit"].differs or told in found["covariance"].sentence)


def test_a_key_in_the_state_hides_no_force():
    def kernel(seeds, state):
        x = state["x"]
        z = normals(seeds, 2)
        x = x - 0.05 * A @ (x - B) + 0.3 * np.sin(x - B) + np.sqrt(0.1) * z
        return {"x": x, "key": np.broadcast_to(state["key"], (len(seeds), 2))}

    for key in (4e9, 1e12):
        with pytest.raises(ValueError, match=r"not affine in its state: off by .* at state\['x'\]"):
            assert_samples(kernel, PROBLEM, fs.StaleSGLD(0.05, 0), batched=True,
                           start={"x": B, "key": np.array([key, 17.0])})


def test_what_is_rare_or_remembered_is_seen():
    def rare(seeds, x):
        dropped = normals(seeds, 1, stream=4) > 1.6448536
        return x - np.where(dropped, 0.0, 0.05) * (A @ (x - B)) + np.sqrt(0.1) * normals(seeds, 2)

    with pytest.raises(AssertionError, match="The matrix depends on the seed"):
        assert_samples(rare, PROBLEM, fs.StaleSGLD(0.05, 0), batched=True, smallest=0.1)
    calls = []

    def tired(seed, x):
        calls.append(seed)
        size = 0.05 if len(calls) < 1500 else 0.025
        return x - size * A @ (x - B) + np.sqrt(0.1) * normals([seed], 2)[0]

    with pytest.raises(ValueError, match="two answers for one seed and state"):
        assert_samples(tired, PROBLEM, fs.StaleSGLD(0.05, 0), smallest=0.1)


def scaled(pull):
    return langevin(pull)


@pytest.mark.parametrize("make, cause", [
    (scaled(0.5), "half the gradient is used"), (scaled(2.0), "the gradient is used twice"),
    (langevin(noise=np.sqrt(2.0) * np.eye(2)), "a factor 2 too many under the root"),
    (lambda step_size: langevin()(0.3), "step_size is not used")])
def test_the_first_cause_is_one_that_the_matrix_fits(make, cause):
    found = asked(make, n_draws=20_000)
    assert found["limit"].differs and found["limit"].causes[0] == cause


def test_what_is_read_is_said_and_must_be_something():
    def kernel(seeds, state):
        v = 0.9 * state["v"] - 0.1 * (state["x"] - B) @ A + np.sqrt(0.2) * normals(seeds, 2)
        return {"v": v, "x": state["x"] + 0.1 * v}

    found = asked(lambda step_size: kernel, start={"v": np.zeros(2), "x": np.zeros(2)}, step_size=0.1)
    assert "Compared with the target is state['v'], the first part" in found["affine"].sentence
    with pytest.raises(ValueError, match=r"read=.* must give what depends on the state"):
        probe(langevin()(0.1), PROBLEM, batched=True, read=lambda x: np.zeros(2))
    large = fs.Quadratic([1.0], [np.zeros(120)])
    with pytest.raises(ValueError, match="state of 120 numbers; reports are for at most 100"):
        asked(lambda step_size: lambda seeds, x: 0.9 * x + normals(seeds, 120), large, 0.1, 1000)


def test_seeds_of_a_report_are_far_apart():
    """So that a kernel may give its clients seed, seed + 1, ..."""
    seeds = np.sort(theory.testing.black_box.seeds_from(3, 30_000))
    assert len(set(seeds.tolist())) == 30_000 and np.diff(seeds).min() > 100 and seeds.max() <= 2**30


def test_many_seeds_at_once_may_round_otherwise():
    """As compiled kernels do, which add up differently for 4 seeds and for 20,000."""
    def kernel(seeds, x):
        new = x - 0.05 * A @ (x - B) + np.sqrt(0.1) * normals(seeds, 2)
        return new * (1.0 + 2.0**-52 * (len(seeds) > 100))

    assert not assert_samples(kernel, PROBLEM, fs.StaleSGLD(0.05, 0), batched=True, smallest=0.1).differs
    with pytest.raises(ValueError, match="two answers for one seed and state"):
        probe(lambda seeds, x: kernel(seeds, x) + 1e-6 * (len(seeds) > 1000), PROBLEM, batched=True,
              n_draws=2000)
