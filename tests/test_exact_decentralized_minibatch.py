"""Exact moments of DE-SGLD and DE-SGHMC with minibatches of linear regression."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force_decentralized import outcomes, same_laws, views
from examples_of import close, gaussian_start, regression
from scipy.linalg import block_diag
from scipy.optimize import brentq

import fedsim as fs
import theory
from fedsim import network
from theory.exact import NoExactLaw, joint_law, sample_rounds
from theory.exact.batches import MinibatchNoise
from theory.exact.gossip import general, minibatch

MINIBATCHES = [(1, True, "unbiased"), (2, True, "unbiased"), (2, False, "unbiased"), (2, False, "batch_sum"),
               (2, True, "batch_sum"), (3, False, "unbiased")]


class TestMinibatches:
    """Real minibatches of linear regression: every combination of them is enumerated."""

    @pytest.mark.parametrize(("batch_size", "replace", "grad_scale"), MINIBATCHES)
    def test_enumeration(self, batch_size, replace, grad_scale):
        problem = regression(batch_size, replace, grad_scale, weights=[0.3, 0.7])
        velocities = np.array([[1.0, -1.0], [0.5, 2.0]])
        start = gaussian_start(2)
        for algorithm in (fs.DESGLD(0.04, network.complete(2)),
                          fs.DESGHMC(0.2, 1.0, network.ring(2), velocities)):
            matrices, shifts, heat = outcomes(problem, algorithm)
            law = theory.exact_law(problem, algorithm, 6, start=start)
            joint = joint_law(problem, algorithm, 6, start=start)
            assert not law.is_gaussian and not joint.is_gaussian
            mean, cov = np.tile(start.mean, 2), np.kron(np.ones((2, 2)), start.cov)
            if len(heat) == 8:
                mean, cov = np.concatenate([mean, velocities.ravel()]), block_diag(cov, np.zeros((4, 4)))
            second = cov + np.outer(mean, mean)
            eta = float(algorithm.schedule.largest)
            factor = (eta if isinstance(algorithm, fs.DESGLD) else eta**2) ** 2  # of a gradient in a position
            apart, shaken = matrices - matrices.mean(axis=0), shifts - shifts.mean(axis=0)
            for k in range(1, 7):
                noise = (np.einsum("oij,jk,oik->oi", apart, second, apart, optimize=True) + shaken**2
                         + 2.0 * (apart @ mean) * shaken).mean(axis=0)[:4].reshape(2, 2).sum(axis=1)
                close(joint.noise_second_moment[k - 1], noise / factor, 1e-10)
                slopes = joint.exact_gradient_second_moment()[k - 1]
                close(joint.gradient_second_moment()[k - 1], slopes + noise / factor, 1e-10)
                moved = matrices @ mean + shifts
                crossed = np.einsum("oij,j,ok->ik", matrices, mean, shifts) / len(shifts)
                second = (np.einsum("oij,jk,olk->il", matrices, second, matrices, optimize=True) / len(shifts)
                          + crossed + crossed.T + shifts.T @ shifts / len(shifts) + heat)
                mean = moved.mean(axis=0)
                cov = second - np.outer(mean, mean)
                close(joint.mean[k].ravel(), mean[:4], 1e-11)
                close(joint.cov[k], cov[:4, :4], 1e-11)
                for view, (centre, spread) in enumerate(views(problem, mean, cov)):
                    close((law, *law.clients)[view].mean[k], centre, 1e-11)
                    close((law, *law.clients)[view].cov[k], spread, 1e-11)

    @pytest.mark.parametrize(("batch_size", "replace", "grad_scale"), MINIBATCHES)
    def test_stationary_law_is_the_long_run(self, batch_size, replace, grad_scale):
        problem = regression(batch_size, replace, grad_scale, sizes=(9, 12, 7))
        for algorithm in (fs.DESGLD(0.012, network.path(3)), fs.DESGHMC(0.1, 3.0, network.path(3))):
            law = theory.exact_law(problem, algorithm, 1500, record=())
            for client, found in zip((None, 0, 1, 2), (law, *law.clients), strict=True):
                fixed = theory.stationary_law(problem, algorithm, client=client)
                close(found.mean[-1], fixed.mean, 1e-10)
                close(found.cov[-1], fixed.cov, 1e-10)

    def test_all_data_without_replacement_is_the_full_gradient(self):
        problem, full = regression(3, False, sizes=(3, 3)), regression(None, sizes=(3, 3))
        for algorithm in (fs.DESGLD(0.04, network.ring(2)), fs.DESGHMC(0.2, 1.0, network.ring(2))):
            same_laws(theory.exact_law(problem, algorithm, 10), theory.exact_law(full, algorithm, 10), 1e-12)
            same_laws(theory.exact_law(full, algorithm, 10),
                      theory.exact_law(full.as_quadratic(), algorithm, 10), 1e-15)
        one_each = regression(1, True, sizes=(1, 1), dim=1)
        alone = regression(None, True, sizes=(1, 1), dim=1)
        algorithm = fs.DESGLD(0.04, network.ring(2))
        same_laws(*(theory.exact_law(p, algorithm, 10) for p in (one_each, alone)), 1e-12)

    def test_full_gradients_of_regression_have_laws_for_every_algorithm(self):
        full = regression(None)
        for algorithm in (fs.FALD(0.01, 2), fs.FAHMC(0.1, 2)):
            same_laws(*(theory.exact_law(p, algorithm, 5) for p in (full, full.as_quadratic())), 0.0)

    @pytest.mark.parametrize("kind", [fs.DESGLD, fs.DESGHMC])
    def test_the_second_moment_has_a_stricter_limit(self, kind):
        """The limit is where the enumerated second-moment map has radius one."""
        problem = regression(1, sizes=(3, 4))
        mixing = network.complete(2)

        def make(step):
            return kind(step, mixing) if kind is fs.DESGLD else kind(step, 1.0, mixing)

        def radius(step):
            matrices, _, _ = outcomes(problem, make(step))
            return np.abs(np.linalg.eigvals(sum(np.kron(m, m) for m in matrices) / len(matrices))).max()

        mean_limit = make(1e-3).stability(problem.as_quadratic()).max_step_size
        limit = brentq(lambda step: radius(step) - 1.0, 1e-3, mean_limit)
        assert limit < 0.9 * mean_limit
        theory.stationary_law(problem, make(0.99 * limit))
        theory.exact_law(problem, make(0.99 * limit), 5)
        for refused in (theory.stationary_law, lambda *a: theory.exact_law(*a, 5),
                        lambda *a: joint_law(*a, 5)):
            with pytest.raises(fs.UnstableStepSize, match="of the second moment") as caught:
                refused(problem, make(1.01 * limit))
            assert caught.value.limit == pytest.approx(limit, rel=1e-4)
        grown = theory.exact_law(problem, make(1.05 * limit), 2000, allow_unstable=True, record=(1000,))
        assert np.trace(grown.clients[0].cov[-1]) > 10 * np.trace(grown.clients[0].cov[1])
        means = theory.exact_law(problem, make(1.05 * limit), 2000, allow_unstable=True, covariance="none")
        close(means.mean[[1000, 2000]], grown.mean[1:], 1e-11)

    def test_radius_of_many_clients(self):
        """Krylov iterations against the dense radius."""
        rng = np.random.default_rng(21)
        features = rng.standard_normal((60, 2))
        problem = fs.LinearRegression(features, rng.standard_normal(60), np.repeat(np.arange(12), 5),
                                      noise_std=1.0, prior_variance=1.0, batch_size=2)
        components = general.Components(problem.curvature_problem(), network.ring(12), True)
        data, size = MinibatchNoise(problem), 48
        step = minibatch.MinibatchMap(components, general.Move(0.05, None, 0.1), data)
        table = np.stack([step.react(row.reshape(12, 2, 2)).ravel() for row in np.eye(size)], axis=1)
        assert size > minibatch.DENSE_UNKNOWNS
        assert step.radius() == pytest.approx(np.abs(np.linalg.eigvals(table)).max(), rel=1e-7)
        assert step.contracts() == (step.radius() < 1.0)

    @pytest.mark.parametrize("keep", [None, 0.9])
    def test_own_blocks_are_those_of_the_whole_solution(self, keep):
        """With their own eigenvectors, and by doubling where there are velocities."""
        problem = regression(2)
        components = general.Components(problem.curvature_problem(), network.ring(2), True)
        step = minibatch.MinibatchMap(components, general.Move(0.02, keep, 0.04), MinibatchNoise(problem))
        root = np.random.default_rng(3).standard_normal((2, components.width, components.width))
        blocks, source = root @ root.swapaxes(1, 2), np.zeros((1, step.size, step.size))
        step.add_noise(source, 0.02**2 * step.data.linear(blocks)[None])
        close(step.react(blocks), components.own(step.solve(source))[0], 1e-12)

    @pytest.mark.parametrize("share", [0.5, 0.99, 1.01, 1.05])
    def test_contraction_is_told_on_both_sides_of_the_limit(self, share):
        problem = regression(2)
        components = general.Components(problem.curvature_problem(), network.ring(2), True)
        mean_limit = fs.DESGLD(0.02, network.ring(2)).stability(problem.as_quadratic()).max_step_size
        with pytest.raises(fs.UnstableStepSize) as caught:
            theory.stationary_law(problem, fs.DESGLD(0.999 * mean_limit, network.ring(2)))
        move = general.Move(share * caught.value.limit, None, 2.0 * share * caught.value.limit)
        step = minibatch.MinibatchMap(components, move, MinibatchNoise(problem))
        assert step.contracts() == (step.radius() < 1.0) == (share < 1.0)

    def test_rounds_cannot_be_sampled(self):
        with pytest.raises(NoExactLaw, match="minibatches"):
            sample_rounds(regression(2), fs.DESGLD(0.02, network.ring(2)), 3, 10, 0)
        with pytest.raises(NoExactLaw, match="one by one"):
            theory.exact_law(regression(2), fs.DESGLD(0.02, network.ring(2)), 10**13, record=())
