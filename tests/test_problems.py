"""Quadratic: its three forms agree, conventions, targets, gradients and the factors of its noise."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from problems import spd

import fedsim as fs


def random_problem(seed, n_clients=3, dim=2, **options):
    rng = np.random.default_rng(seed)
    return fs.Quadratic(spd(rng, n_clients, dim, 0.3), rng.standard_normal((n_clients, dim)),
                        rng.dirichlet(np.ones(n_clients) * 4), **options)


def energy(problem, x):
    """f(x) = sum_c w_c (x-b_c)'A_c(x-b_c)/2, from the definition."""
    gaps = x - problem.minimizers
    return sum(0.5 * problem.weights[c] * gaps[c] @ problem.dense_hessians[c] @ gaps[c]
               for c in range(problem.n_clients))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 4))
def test_the_target_is_the_gibbs_law(seed, n_clients, dim):
    """f(x) - f(m) = (x-m)' S^-1 (x-m) / 2 with the target's mean m and covariance tau S."""
    problem = random_problem(seed, n_clients, dim)
    target = problem.target(temperature=0.25)
    x = np.random.default_rng(seed).standard_normal(dim) + target.mean
    gap = x - target.mean
    expected = 0.25 * 0.5 * gap @ np.linalg.solve(target.cov, gap)
    assert energy(problem, x) - energy(problem, target.mean) == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(problem.minimizer, target.mean, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
def test_gradients_are_those_of_the_energy(seed, n_clients, dim):
    problem = random_problem(seed, n_clients, dim)
    rng = np.random.default_rng(seed)
    x, direction = rng.standard_normal((2, dim))
    total = sum(w * problem.gradient(c, x) for c, w in enumerate(problem.weights))
    step = 1e-4
    slope = (energy(problem, x + step * direction) - energy(problem, x - step * direction)) / (2 * step)
    assert total @ direction == pytest.approx(slope, rel=1e-6, abs=1e-8)
    assert problem.gradient(0, np.zeros((5, dim))).shape == (5, dim)
    np.testing.assert_allclose(problem.gradient(0, problem.minimizers[0]), 0.0, atol=1e-15)


def test_the_three_forms_are_one_problem():
    rng = np.random.default_rng(1)
    minimizers, curvature = rng.standard_normal((3, 4)), rng.uniform(0.5, 2.0, 3)
    forms = [fs.Quadratic(curvature, minimizers),
             fs.Quadratic(np.repeat(curvature[:, None], 4, 1), minimizers),
             fs.Quadratic(curvature[:, None, None] * np.eye(4), minimizers)]
    assert [form.structure for form in forms] == ["isotropic", "diagonal", "dense"]
    x = rng.standard_normal((6, 4))
    for form in forms:
        np.testing.assert_allclose(form.target().mean, forms[0].target().mean, rtol=1e-12)
        np.testing.assert_allclose(form.target().cov, forms[0].target().cov, atol=1e-15)
        np.testing.assert_array_equal(form.dense_hessians, forms[2].dense_hessians)
        np.testing.assert_allclose(form.gradient(1, x), forms[0].gradient(1, x), rtol=1e-12)
        assert (form.n_clients, form.dim) == (3, 4) and form.structure in repr(form)
    finals = [fs.simulate(form, fs.FALD(0.2, 3, 1.0, 0.3), 5, 70, seed=3, keep_final=True).final
              for form in forms]
    np.testing.assert_allclose(finals[1], finals[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(finals[2], finals[0], rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="hessians are dense"):
        _ = forms[2].diagonal_hessians


def test_noise_may_be_a_number_or_covariances():
    rng = np.random.default_rng(2)
    hessians, minimizers = spd(rng, 2, 3, 0.3), rng.standard_normal((2, 3))
    number = fs.Quadratic(hessians, minimizers, None, 0.5)
    matrix = fs.Quadratic(hessians, minimizers, None, np.broadcast_to(0.25 * np.eye(3), (2, 3, 3)))
    np.testing.assert_array_equal(number.noise_covariances, matrix.noise_covariances)
    assert fs.Quadratic(hessians, minimizers, None, 0.0).gradient_noise is None
    assert fs.Quadratic(hessians, minimizers).noise_covariances is None


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_factors_of_the_noise(rank):
    """Lower triangular, and F F' is the covariance, singular ones included."""
    factor = np.random.default_rng(3).standard_normal((4, 3, rank)) if rank else np.zeros((4, 3, 1))
    covariances = factor @ np.swapaxes(factor, 1, 2)
    problem = fs.Quadratic(np.ones(4), np.zeros((4, 3)), None, covariances)
    found = problem._arrays().factors
    np.testing.assert_allclose(found @ np.swapaxes(found, 1, 2), covariances, atol=1e-13)
    assert not np.triu(found, 1).any()


def test_components_are_the_other_convention():
    """f = sum_i f_i: the target is that of the sum, and w_i grad f_(i) is grad f_i."""
    rng = np.random.default_rng(4)
    hessians, minimizers = spd(rng, 3, 2, 0.3), rng.standard_normal((3, 2))
    noise = spd(rng, 3, 2, 0.3)
    problem = fs.Quadratic.from_components(hessians, minimizers, noise)
    np.testing.assert_allclose(problem.weights, 1 / 3)
    total = hessians.sum(axis=0)
    np.testing.assert_allclose(np.linalg.inv(problem.target().cov), total, rtol=1e-12)
    np.testing.assert_allclose(problem.target().mean, np.linalg.solve(
        total, np.einsum("cij,cj->i", hessians, minimizers)), rtol=1e-12)
    np.testing.assert_allclose(problem.weights[0] ** 2 * problem.noise_covariances[0], noise[0], rtol=1e-12)
    number = fs.Quadratic.from_components(np.ones(3), minimizers, 0.5)
    assert number.gradient_noise == 1.5 and number.structure == "isotropic"
    assert fs.Quadratic.from_components(np.ones((3, 2)), minimizers).structure == "diagonal"


def test_weights_are_normalised_once():
    problem = fs.Quadratic([1.0, 1.0, 1.0], np.zeros((3, 1)), [1 / 3 + 1e-11, 1 / 3, 1 / 3])
    assert problem.weights.sum() == pytest.approx(1.0, abs=1e-16)
    np.testing.assert_array_equal(fs.Quadratic([1.0] * 3, np.zeros((3, 1))).weights, np.full(3, 1 / 3))


def test_integers_and_other_orders_are_accepted():
    hessians = np.asfortranarray(np.array([[[2, 1], [1, 2]], [[1, 0], [0, 1]]]))
    problem = fs.Quadratic(hessians, [[0, 1], [2, 3]])
    for array in (problem.hessians, problem.minimizers, problem.weights):
        assert array.dtype == np.float64 and array.flags.c_contiguous


def test_rounding_is_not_asymmetry():
    rng = np.random.default_rng(5)
    hessian = spd(rng, 1, 6, 0.3)
    tilted = hessian * (1 + 1e-13 * rng.standard_normal(hessian.shape))
    problem = fs.Quadratic(tilted, np.zeros((1, 6)))
    np.testing.assert_array_equal(problem.hessians, np.swapaxes(problem.hessians, 1, 2))


def test_stability_limit_of_equal_clients_is_two_over_curvature():
    for n_clients in (1, 3):
        problem = fs.Quadratic(np.full(n_clients, 4.0), np.arange(2.0 * n_clients).reshape(n_clients, 2))
        for steps in (1, 5):
            assert fs.FALD(0.1, steps).stability(problem).max_step_size == pytest.approx(0.5, rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_radius_is_the_growth_of_moments(seed, steps, drawn):
    """The radius of the round map against a long product, its second moment with participation."""
    problem = random_problem(seed, 3, 2)
    algorithm = fs.FALD(0.3, steps, participation=fs.Participation(2, True) if drawn else None)
    maps = np.array([np.linalg.matrix_power(np.eye(2) - 0.3 * h, steps) for h in problem.hessians])
    mean = np.tensordot(problem.weights, maps, 1)
    # E[X (x) X] of the random round map X = (G_a + G_b) / 2 of two clients drawn by weight
    second = np.kron(mean, mean)
    if drawn:
        pairs = sum(w * np.kron(g, g) for w, g in zip(problem.weights, maps, strict=True))
        second = 0.5 * pairs + 0.5 * second
    expected = np.sqrt(np.abs(np.linalg.eigvals(second)).max())
    assert algorithm.stability(problem).radius == pytest.approx(expected, rel=1e-9)
    assert algorithm._radius(problem) == pytest.approx(expected, rel=1e-9)
