"""DE-SGLD and DE-SGHMC: the joint law of all clients, sampled rounds, a thousand clients, refusals."""

from __future__ import annotations

import time

import numpy as np
import pytest
from brute_force_decentralized import algorithms, brute_force, same_laws
from examples_of import close, gaussian_start
from problems import drawn_quadratic, spd
from scipy.linalg import block_diag

import fedsim as fs
import theory
from fedsim import network
from fedsim.settings import limits
from theory.exact import NoExactLaw, families, joint_law, sample_rounds

HARMONIC = fs.schedules.Harmonic(6.0, 0.4)


class TestJointLaw:
    """All clients at every iteration."""

    def test_brute_force(self):
        rng = np.random.default_rng(15)
        problem = drawn_quadratic(rng, "diagonal", "cov", 4, 2, weighted=True)
        for algorithm in algorithms(network.star(4), problem, HARMONIC):
            start = gaussian_start(2)
            law = joint_law(problem, algorithm, 9, start=start)
            wanted = brute_force(problem, algorithm, 9, start)
            assert law.steps.tolist() == list(range(10)) and not len(law.sync_steps) and law.is_gaussian
            curvature = block_diag(*(problem.weights[:, None, None] * problem.dense_hessians))
            pull = curvature @ problem.minimizers.ravel()
            mean_rows = np.kron(np.full((1, 4), 0.25), np.eye(2))
            apart = np.eye(8) - np.kron(np.full((4, 4), 0.25), np.eye(2))
            for k, (mean, cov) in enumerate(wanted):
                close(law.mean[k].ravel(), mean[:8])
                close(law.cov[k], cov[:8, :8])
                second = cov[:8, :8] + np.outer(mean[:8], mean[:8])
                scale = 1e-12 * np.trace(second)
                assert abs(law.divergence()[k] - np.trace(apart @ second @ apart.T) / 4) <= scale
                slopes = np.diagonal(curvature @ cov[:8, :8] @ curvature.T)
                slopes = slopes + (curvature @ mean[:8] - pull) ** 2
                close(law.exact_gradient_second_moment()[k], slopes.reshape(4, 2).sum(axis=1))
                rows = mean_rows @ curvature @ apart
                assert abs(law.gradient_error_second_moment()[k] - np.trace(rows @ second @ rows.T)) <= scale
                if isinstance(algorithm, fs.DESGHMC):
                    squares = (mean[8:] ** 2 + np.diagonal(cov)[8:]).reshape(4, 2).sum(axis=1)
                    close(law.velocity_second_moment[k], squares)
                else:
                    assert law.velocity_second_moment is None
            noise = np.trace(problem.weights[:, None, None] ** 2 * problem.gradient_noise, axis1=1, axis2=2)
            close(law.noise_second_moment, np.tile(noise, (10, 1)))
            close(law.gradient_second_moment() - law.exact_gradient_second_moment(), np.tile(noise, (10, 1)))

    def test_its_average_is_the_exact_law(self):
        problem = drawn_quadratic(np.random.default_rng(16), "dense", "std", 3, 2, weighted=True)
        for algorithm in algorithms(network.ring(3), problem):
            joint, law = joint_law(problem, algorithm, 12), theory.exact_law(problem, algorithm, 12)
            close(joint.average_mean, law.mean)
            close(joint.average_cov, law.cov)
            close(joint.client_cov[:, 1], law.clients[1].cov)


@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_sampled_rounds_follow_the_exact_law(structure, alarm):
    rng = np.random.default_rng(17)
    problem = drawn_quadratic(rng, structure, "cov" if structure == "dense" else "std", 3, 2, weighted=True)
    for number, algorithm in enumerate(algorithms(network.path(3), problem)):
        start = (gaussian_start(2), rng.standard_normal((3, 2)))[number % 2]
        law = theory.exact_law(problem, algorithm, 9, start=start, record=(2, 3))
        drawn = sample_rounds(problem, algorithm, 9, 30_000, 18 + number, start=start, record=(2, 3))
        assert drawn.shape == (30_000, 4, 2)
        for i in (1, 2, 3):
            gaps = drawn[:, i] - law.mean[i]
            alarm.assert_normal(gaps.mean(axis=0) / np.sqrt(np.diag(law.cov[i]) / len(drawn)), "mean")
            products = gaps[:, [0, 0, 1]] * gaps[:, [0, 1, 1]]
            error = products.std(axis=0, ddof=1) / np.sqrt(len(drawn))
            exact = law.cov[i][[0, 0, 1], [0, 1, 1]]
            alarm.assert_normal((products.mean(axis=0) - exact) / error, "covariance")
        crossed = (drawn[:, 1] - law.mean[1])[:, 0] * (drawn[:, 2] - law.mean[2])[:, 0]
        assert crossed.mean() > 0.1 * np.sqrt(law.cov[1, 0, 0] * law.cov[2, 0, 0])  # one path, not two draws


class TestLargeProblems:
    """A thousand clients in ten dimensions on a ring."""

    @staticmethod
    def problem(same):
        rng = np.random.default_rng(22)
        hessians = np.broadcast_to(spd(rng, 1, 10), (1000, 10, 10)) if same else spd(rng, 1000, 10)
        return fs.Quadratic.from_components(hessians, rng.standard_normal((1000, 10)))

    def test_all_clients_where_curvature_is_shared(self):
        problem = self.problem(True)
        for algorithm in (fs.DESGLD(0.1, network.ring(1000)), fs.DESGHMC(0.2, 2.0, network.ring(1000))):
            before = time.process_time()
            law = theory.exact_law(problem, algorithm, 60, record=(10, 20))
            assert time.process_time() - before < 5.0
            assert len(law.clients) == 1000 and law.clients[999].cov.shape == (4, 10, 10)
            close(law.clients[999].cov, law.clients[0].cov)
            fixed = theory.stationary_law(problem, algorithm, client=500)
            long = theory.exact_law(problem, algorithm, 10**6, record=(), covariance="diagonal")
            close(long.clients[500].cov[-1], np.diag(fixed.cov), 1e-9)

    def test_means_where_it_is_not(self):
        problem, algorithm = self.problem(False), fs.DESGLD(0.1, network.ring(1000))
        before = time.process_time()
        law = theory.exact_law(problem, algorithm, 60, covariance="none")
        assert time.process_time() - before < 10.0
        assert law.cov is None and len(law.clients) == 1000

    def test_too_large_a_covariance_is_refused_before_it_is_made(self, monkeypatch):
        monkeypatch.setattr(limits, "memory_limit", lambda: 2.0**31)
        for algorithm in (fs.DESGLD(0.1, network.ring(1000)), fs.DESGHMC(0.2, 2.0, network.ring(1000))):
            for refused in (lambda a: theory.exact_law(self.problem(False), a, 60),
                            lambda a: theory.stationary_law(self.problem(False), a),
                            lambda a: joint_law(self.problem(False), a, 2)):
                with pytest.raises(ValueError, match=r"1000 clients.* needs about [\d.]+ GB"):
                    refused(algorithm)


def test_refusals():
    problem = drawn_quadratic(np.random.default_rng(23), "dense", None, 3, 2, weighted=True)
    mixing = network.ring(3)
    with pytest.raises(NoExactLaw, match="changes from step to step"):
        theory.stationary_law(problem, fs.DESGLD(HARMONIC, mixing))
    for call in (theory.exact_law, joint_law, lambda *a: sample_rounds(*a, 5, 0)):
        with pytest.raises(ValueError, match="step_size has 3 entries; n_rounds=4"):
            call(problem, fs.DESGLD([0.1, 0.1, 0.1], mixing), 4)
    with pytest.raises(ValueError, match=r"start has shape \(2, 2\); it must be \(3, 2\)"):
        theory.exact_law(problem, fs.DESGLD(0.1, mixing), 4, start=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="start_velocity has shape"):
        theory.exact_law(problem, fs.DESGHMC(0.1, 1.0, mixing, np.zeros(3)), 4)
    with pytest.raises(ValueError, match="client=3"):
        theory.stationary_law(problem, fs.DESGLD(0.1, mixing), client=3)
    labels = fs.LogisticRegression(np.ones((6, 1)), [0, 1] * 3, [0, 0, 1, 1, 2, 2], prior_variance=1.0)
    with pytest.raises(NoExactLaw, match="affine"):
        theory.exact_law(labels, fs.DESGLD(0.1, mixing), 4)
    assert families.require_steps(fs.DESGLD(HARMONIC, mixing), 10**9) is None


def test_saved_laws_keep_their_clients(tmp_path):
    problem = drawn_quadratic(np.random.default_rng(24), "dense", None, 3, 2, weighted=True)
    law = theory.exact_law(problem, fs.DESGLD(0.1, network.ring(3)), 5)
    law.save(tmp_path / "law.npz")
    same_laws(fs.load(tmp_path / "law.npz"), law, 0.0)
