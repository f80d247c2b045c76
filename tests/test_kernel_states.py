"""Kernels whose state holds more than it needs, or numbers in float32: said to be what they are."""

import numpy as np
import pytest

import fedsim as fs
import theory
from fedsim.samplers import exp, grad, noise, sqrt

A, B, H = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([0.3, -0.2]), 0.1
PROBLEM = fs.Quadratic(A[None], B[None])
START = {"x": np.zeros(2), "v": np.zeros(2), "g": np.zeros(2)}


@fs.sampler(follows="global")
def baoab(x, v, *, step_size, friction):
    c = exp(-friction * step_size)
    v = v - step_size / 2 * grad(x)
    x = x + step_size / 2 * v
    v = c * v + sqrt(1 - c * c) * noise()
    x = x + step_size / 2 * v
    return x, v - step_size / 2 * grad(x)


def cached(factor=1.0, drift=0.0):
    """BAOAB whose gradient is the one of the last call, kept in the state."""
    def kernel(seed, state):
        c, normals = np.exp(-H), np.random.default_rng(seed).normal(size=2)
        v = state["v"] - H / 2 * state["g"]
        x = state["x"] + H / 2 * v
        v = c * v + factor * np.sqrt(1 - c * c) * normals
        x = x + H / 2 * v + drift
        g = A @ (x - B)
        return {"x": x, "v": v - H / 2 * g, "g": g}
    return kernel


def langevin(factor=1.0, power=1.0):
    def kernel(seed, state):
        x, g = state
        x = x - power * H * g + factor * np.sqrt(2 * H) * np.random.default_rng(seed).normal(size=2)
        return x, A @ (x - B)
    return kernel


def same(kernel, like, start, **options):
    theory.testing.assert_samples(kernel, PROBLEM, like, start=start, **options)


def test_a_gradient_that_is_kept_is_no_difference():
    """From a start that it does not fit it makes another first step; no state that the kernel gives does."""
    same(langevin(), fs.StaleSGLD(H, 0), (np.zeros(2), np.zeros(2)))
    same(langevin(), fs.StaleSGLD(H, 0), (np.ones(2), np.full(2, 7.0)))
    same(cached(), baoab(step_size=H, friction=1.0), START)


@pytest.mark.parametrize("kernel, told", [
    (cached(1.02), r"times\s+the standard deviation"), (cached(drift=0.01), r"another\s+mean"),
    (langevin(0.98), r"times\s+the standard deviation"), (langevin(power=1.01), r"matrix +differs")])
def test_and_hides_none(kernel, told):
    like, start = ((baoab(step_size=H, friction=1.0), START) if "cached" in kernel.__qualname__ else
                   (fs.StaleSGLD(H, 0), (np.zeros(2), np.zeros(2))))
    with pytest.raises(AssertionError, match=told):
        same(kernel, like, start)


def with_number(number):
    """BAOAB with another number for exp(-h)."""
    def kernel(seed, state):
        normals = np.random.default_rng(seed).normal(size=2)
        v = state["v"] - H / 2 * A @ (state["x"] - B)
        x = state["x"] + H / 2 * v
        v = number * v + np.sqrt(1 - number**2) * normals
        x = x + H / 2 * v
        return {"x": x, "v": v - H / 2 * A @ (x - B)}
    return kernel


def test_a_number_in_float32_is_no_difference():
    like, start = baoab(step_size=H, friction=1.0), {"x": np.zeros(2), "v": np.zeros(2)}
    exact = float(np.exp(-H))
    single = float(np.float32(exact))
    assert 1e-9 < abs(single - exact) / exact < 1e-7
    for number in (single, exact * (1 + 1e-7)):
        same(with_number(number), like, start, smallest=0.1)
    with pytest.raises(AssertionError, match=r"matrix +differs") as failure:
        same(with_number(exact * (1 + 1e-4)), like, start, smallest=0.1)
    assert "old velocity" not in str(failure.value) and "last kick" not in str(failure.value)


def maker(digits, share=1.0):
    def make(step_size, temperature=1.0):
        size = np.sqrt(2 * step_size * temperature**share)
        size = float(np.float32(size)) if digits == 32 else size

        def kernel(seed, x):
            return x - step_size * A @ (x - B) + size * np.random.default_rng(seed).normal(size=2)
        return kernel
    return make


def test_the_temperature_is_compared_to_float32():
    assert not theory.testing.report(maker(32), PROBLEM, step_size=H, n_draws=1000).differs
    found = theory.testing.report(maker(64, 1.0001), PROBLEM, step_size=H, n_draws=1000)
    assert found["temperature"].differs and not found["limit"].differs


def test_a_kernel_that_never_moves_has_no_stationary_law():
    found = theory.testing.report(lambda step_size: lambda seed, x: x, PROBLEM, step_size=H, n_draws=1000)
    assert found["target"].differs and found["target"].value == 1.0
    assert theory.testing.probe(lambda seed, x: x, PROBLEM, n_draws=200).radius == 1.0


def test_lists_may_hold_arrays_of_all_shapes():
    def kernel(seeds, state):
        normals = np.stack([np.random.default_rng(seed).normal(size=2) for seed in seeds])
        return [state[0] - H * A @ (state[0] - B) + normals, np.full(len(seeds), state[1] + 1.0)]

    found = theory.testing.probe(kernel, PROBLEM, start=[np.zeros(2), 0.0], batched=True, n_draws=200)
    assert np.abs(found.matrix[:2, :2] - (np.eye(2) - H * A)).max() < 1e-12 and found.matrix[2, 2] == 1.0
