"""Leapfrog against the exact flow, and two groups of clients in closed form."""

from __future__ import annotations

import naive_fa_hmc
import numpy as np
import pytest
from examples_of import close, make_problem

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from theory.exact import FAHMCFlow, flow_law, stationary_law, two_group_law


def slope(x, y):
    """Log-log slope and the half width of its 99.9% interval."""
    (value, _), cov = np.polyfit(np.log(x), np.log(y), 1, cov=True)
    return value, 4.0 * np.sqrt(cov[0, 0]) + 1e-9


def test_the_leapfrog_is_of_second_order():
    """At a fixed trajectory length all laws approach the flow's with the square of the step size."""
    problem = make_problem(n_clients=4, dim=2)
    leaps = np.array([8, 12, 16, 24, 32, 48, 64])
    for count, shared in ((1, 1.0), (3, 0.3)):
        limit = stationary_law(problem, FAHMCFlow(0.8, count, shared))
        laws = [stationary_law(problem, FAHMC(0.8 / k, int(k), count, shared)) for k in leaps]
        for errors in ([np.linalg.norm(law.cov - limit.cov) for law in laws],
                       [np.linalg.norm(law.mean - limit.mean) for law in laws]):
            value, width = slope(leaps, errors)
            assert abs(value + 2.0) < width + 0.02 < 0.1
    steps = np.array([0.02, 0.01, 0.005, 0.0025])  # and of the target, at a fixed number of them
    for count in (1, 4):
        laws = [stationary_law(problem, FAHMC(step, 3, count, 0.5)) for step in steps]
        value, width = slope(steps, [np.linalg.norm(law.cov - problem.target().cov) for law in laws])
        assert abs(value - 2.0) < width + 0.02 < 0.1


@pytest.mark.parametrize("dim", [1, 3])
def test_the_leapfrog_is_reversible_and_keeps_volume(dim):
    """Of the slow twin, which the kernel equals; with an anharmonic force too."""
    rng = np.random.default_rng(dim)
    factor = rng.normal(size=(dim, dim))
    matrix = factor @ factor.T + 0.3 * np.eye(dim)
    for cubic in (0.0, 0.2):
        def force(x, draw, cubic=cubic):
            return [sum(matrix[i, j] * x[j] for j in range(dim)) + cubic * x[i] ** 3 for i in range(dim)]

        def flow(state, force=force):
            x, p = naive_fa_hmc.leapfrog(force, list(state[:dim]), list(state[dim:]), 0.2, 9)
            return np.array([*x, *p])

        start = rng.normal(size=2 * dim)
        end = flow(start)
        turned = flow(np.concatenate([end[:dim], -end[dim:]]))
        np.testing.assert_allclose(turned, np.concatenate([start[:dim], -start[dim:]]), rtol=0, atol=1e-13)
        h = 1e-5
        jacobian = np.array([(flow(start + e) - flow(start - e)) / (2.0 * h) for e in h * np.eye(2 * dim)])
        assert np.linalg.det(jacobian) == pytest.approx(1.0, abs=1e-8)
        assert np.linalg.norm(jacobian - np.eye(2 * dim)) > 1.0


def test_the_flow_samples_one_client_exactly():
    problem = make_problem(n_clients=1, dim=3)
    for length, count in ((0.3, 1), (1.1, 4)):
        law = stationary_law(problem, FAHMCFlow(length, count))
        close(law.cov, problem.target().cov, 1e-12)
        close(law.mean, problem.target().mean, 1e-12)


def two_groups(n_clients, dim, curvatures, minimizers):
    half = n_clients // 2
    return Quadratic(np.repeat(curvatures, half), np.repeat(minimizers, half)[:, None] * np.ones(dim))


@pytest.mark.parametrize("n_clients", [2, 6])
@pytest.mark.parametrize("shared", [0.0, 0.3, 1.0])
def test_two_groups_in_closed_form(n_clients, shared):
    """Theorem I.1 corrected, against the general law of the flow."""
    for curvatures, length, count in (
            ((1.0, 0.25), 0.1, 10), ((4.0, 0.25), 0.5, 10), ((100.0, 1.0), 0.1, 100), ((3.0, 3.0), 0.4, 7),
            ((2.0, 0.5), 2.7, 2), ((2.0, 0.5), 1e-6, 3)):
        problem = two_groups(n_clients, 2, curvatures, (2.0, 1.0))
        options = dict(local_steps=count, shared_noise=shared)
        law = flow_law(problem, length, 25, start=Gaussian([1.5, 1.5], [0.3, 0.3]), **options)
        closed = dict(curvatures=curvatures, minimizers=(2.0, 1.0), trajectory_length=length, **options)
        mean, variance = two_group_law(law.rounds, start_mean=1.5, start_variance=0.3, **closed)
        close(law.mean[:, 0], mean, 1e-11)
        close(law.cov[:, 1, 1], variance, 1e-11)
        limit = stationary_law(problem, FAHMCFlow(length, count, shared))
        mean, variance = two_group_law(np.inf, **closed)
        close(limit.mean, [mean, mean], 1e-9)
        close(np.diagonal(limit.cov), [variance, variance], 1e-9)


@pytest.mark.parametrize(("large", "small", "length", "count", "ratio"), [
    (1.0, 0.25, 0.1, 10, 1.0000), (1.0, 0.25, 0.5, 10, 1.017), (4.0, 0.25, 0.5, 10, 1.166),
    (100.0, 1.0, 0.1, 100, 1.18), (4.0, 0.25, 0.5, 1, None), (2.0, 2.0, 0.5, 10, None)])
def test_the_printed_variance_of_two_groups(large, small, length, count, ratio):
    """The proof's one Gaussian for two sums: too large, unless T = 1 or L = m."""
    c = np.cos(np.sqrt([large, small]) * length)
    gone = (1.0 - c ** (2 * count)) / [large, small]
    printed = 0.25 * (gone.sum() + 2.0 * np.sqrt(gone.prod())) / (1.0 - (0.5 * (c**count).sum()) ** 2)
    _, variance = two_group_law(np.inf, curvatures=(large, small), minimizers=(2.0, 1.0),
                                trajectory_length=length, local_steps=count)
    if ratio is None:
        assert printed / variance == pytest.approx(1.0, abs=1e-12)
    else:
        assert printed / variance == pytest.approx(ratio, abs=6e-3)
        assert printed > variance


def test_leading_term_of_the_bias_of_two_groups():
    """-(T/4 - 1/6) x^2 L m (L - m)(b_L - b_m)/(L + m)^2, with an error of order x^2 (1.0017 at x = 0.1)."""
    large, small, count = 1.0, 0.25, 10
    target = (2.0 * large + small) / (large + small)
    ratios = []
    for length in (0.1, 0.05, 0.025):
        mean, _ = two_group_law(np.inf, curvatures=(large, small), minimizers=(2.0, 1.0),
                                trajectory_length=length, local_steps=count)
        wanted = -(count / 4 - 1 / 6) * length**2 * large * small * (large - small) / (large + small) ** 2
        ratios.append((mean - target) / wanted)
    assert ratios[0] == pytest.approx(1.0017, abs=1e-4)
    assert (ratios[0] - 1) / (ratios[1] - 1) == pytest.approx(4.0, rel=0.05)
    assert (ratios[1] - 1) / (ratios[2] - 1) == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize(("changed", "named"), [
    (dict(trajectory_length=0.0), "trajectory_length"), (dict(trajectory_length="x"), "trajectory_length"),
    (dict(local_steps=0), "local_steps"), (dict(shared_noise=1.1), "shared_noise"),
    (dict(participation=3), "participation")])
def test_bad_input_of_the_flow(changed, named):
    with pytest.raises(ValueError, match=named):
        FAHMCFlow(**(dict(trajectory_length=0.5) | changed))


@pytest.mark.parametrize(("changed", "named"), [
    (dict(rounds=-1), "rounds"), (dict(rounds=np.nan), "rounds"), (dict(curvatures=(1.0,)), "curvatures"),
    (dict(curvatures=(1.0, 0.0)), "curvatures"), (dict(minimizers=(1.0, 2.0, 3.0)), "minimizers"),
    (dict(trajectory_length=-1.0), "trajectory_length"), (dict(local_steps=1.5), "local_steps"),
    (dict(shared_noise=-0.1), "shared_noise"), (dict(start_variance=-1.0), "start_variance"),
    (dict(start_mean=np.inf), "start_mean"), (dict(trajectory_length=2.0 * np.pi), "trajectory_length")])
def test_bad_input_of_two_groups(changed, named):
    arguments = dict(rounds=3, curvatures=(1.0, 4.0), minimizers=(0.0, 1.0), trajectory_length=0.5,
                     local_steps=2)
    with pytest.raises(ValueError, match=named):
        two_group_law(**(arguments | changed))
