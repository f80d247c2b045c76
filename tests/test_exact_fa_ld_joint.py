"""FA-LD's joint law of all clients and its sampled rounds; where there is no law."""

from __future__ import annotations

import brute_force
import numpy as np
import pytest
from examples_of import SCHEME_I, SCHEME_II, close, gaussian_start, make_problem

from fedsim import schedules
from fedsim.algorithms.fa_ld import FALD
from fedsim.interfaces import AlgorithmParts
from fedsim.laws.law import Gaussian
from fedsim.problems.quadratic import Quadratic
from fedsim.settings import limits
from fedsim.settings.participation import Participation
from fedsim.settings.validation import UnstableStepSize
from theory.exact import (
    NoExactLaw,
    affine,
    evolution,
    exact_law,
    joint_law,
    sample_rounds,
    stationary_law,
)

DECREASING = schedules.Harmonic(offset=12.0, slope=0.3)


@pytest.mark.parametrize("participation", [None, SCHEME_I, SCHEME_II])
@pytest.mark.parametrize("step", [0.1, DECREASING])
def test_joint_law_equals_brute_force(participation, step):
    problem = make_problem(n_clients=3, dim=2, noise="covariances", uniform=participation is SCHEME_II)
    algorithm = FALD(step, 3, 0.5, 0.4, participation)
    start = gaussian_start(2)
    thetas, betas = brute_force.recursion(problem, algorithm, 10, start.mean, start.cov)
    law = joint_law(problem, algorithm, 10, start=start)
    close(law.mean.reshape(11, -1), [x for _, x, _ in thetas])
    close(law.cov, [c for _, _, c in thetas])
    assert law.sync_steps.tolist() == [k for k, _, _ in betas] == [3, 6, 9]
    close(law.before_mean.reshape(3, -1), [x for _, x, _ in betas])
    close(law.before_cov, [c for _, _, c in betas])
    assert law.is_gaussian == (participation is None)

    rounds = exact_law(problem, algorithm, 3, start=start)
    for i, k in enumerate([0, 3, 6, 9]):
        close(law.average(k).cov, rounds.cov[i])
        close(law.average(k).mean, rounds.mean[i])
    close(law.average_cov[[0, 3, 6, 9]], rounds.cov)
    close(law.average_mean[[0, 3, 6, 9]], rounds.mean)

    weights, point = np.array(problem.weights), np.array([0.3, -1.0])
    centre = np.kron(weights, np.eye(2))
    wanted_divergence, wanted_moment, wanted_gradient = [], [], []
    for _, x, c in thetas:
        second = c + np.outer(x, x)
        blocks = [np.kron(np.eye(3)[i], np.eye(2)) for i in range(3)]
        wanted_divergence.append(sum(w * np.trace((b - centre) @ second @ (b - centre).T)
                                     for w, b in zip(weights, blocks, strict=True)))
        wanted_moment.append([np.trace(b @ c @ b.T) + ((b @ x - point) ** 2).sum() for b in blocks])
        wanted_gradient.append([
            np.trace(a @ b @ c @ b.T @ a) + ((a @ (b @ x - m)) ** 2).sum() + np.trace(s)
            for a, b, m, s in zip(problem.hessians, blocks, problem.minimizers, problem.noise_covariances,
                                  strict=True)])
    close(law.divergence(), wanted_divergence, 1e-10)
    close(law.second_moment_about(point), wanted_moment)
    close(law.gradient_second_moment(), wanted_gradient)
    assert (law.divergence()[[0, 3, 6, 9]] == 0.0).all()
    assert (law.divergence()[[1, 2, 4, 5]] > 0.0).all()

    gaps = []  # E ||theta - beta||^2 by enumeration of the draws
    for _, x, c in betas:
        second = c + np.outer(x, x)
        gaps.append(sum(probability * np.trace(
            np.kron(shares - weights, np.eye(2)) @ second @ np.kron(shares - weights, np.eye(2)).T)
            for probability, shares in brute_force.outcomes(participation, weights)))
    assert np.abs(law.participation_gap() - gaps).max() <= 1e-10 * max(max(gaps), 1.0)
    assert (law.participation_gap() > 0.0).all() == (participation is not None)


def test_equal_clients_never_diverge_under_fully_shared_noise():
    problem = Quadratic(np.full(4, 2.0), np.ones((4, 3)))
    law = joint_law(problem, FALD(0.1, 5, shared_noise=1.0, participation=Participation(1, True)), 12)
    assert law.divergence().max() <= 1e-15
    assert law.participation_gap().max() <= 1e-15


SAMPLED = [(structure, participation, step, shared)
           for structure in ("dense", "diagonal") for participation in (None, SCHEME_I, SCHEME_II)
           for step, shared in ((0.15, 0.4), (DECREASING, 0.0))]


@pytest.mark.parametrize(("structure", "participation", "step", "shared"), SAMPLED)
def test_sampled_rounds_have_the_exact_law(structure, participation, step, shared, alarm):
    noise = "covariances" if structure == "dense" else 0.4
    problem = make_problem(structure, n_clients=4, dim=2, noise=noise, uniform=participation is SCHEME_II)
    algorithm = FALD(step, 3, 0.7, shared, participation)
    start, replicas = gaussian_start(2), 20_000
    drawn = sample_rounds(problem, algorithm, 7, replicas, 11, start=start, record=[1, 3])
    law = exact_law(problem, algorithm, 7, start=start, record=[1, 3])
    assert drawn.shape == (replicas, 4, 2)
    for i in range(4):
        errors = drawn[:, i] - law.mean[i]
        alarm.assert_normal(errors.mean(axis=0) / np.sqrt(np.diagonal(law.cov[i]) / replicas), "mean")
        for a, b in ((0, 0), (0, 1), (1, 1)):
            products = errors[:, a] * errors[:, b]
            z = (products.mean() - law.cov[i, a, b]) / (products.std() / np.sqrt(replicas))
            alarm.assert_student(z, replicas - 1, "covariance")


def test_sampled_rounds_leap_and_repeat(alarm):
    problem = make_problem(n_clients=3, dim=2)
    algorithm = FALD(1e-3, 4, shared_noise=0.2)
    limit = stationary_law(problem, algorithm)
    drawn = sample_rounds(problem, algorithm, 10**9, 10_000, 3)
    assert drawn.shape == (10_000, 1, 2)
    alarm.assert_normal((drawn[:, 0].mean(axis=0) - limit.mean) / np.sqrt(np.diagonal(limit.cov) / 10_000))
    assert (drawn == sample_rounds(problem, algorithm, 10**9, 10_000, 3)).all()
    assert (drawn != sample_rounds(problem, algorithm, 10**9, 10_000, 4)).all()
    at_zero = sample_rounds(problem, algorithm, 0, 2, 3, start=[1.0, 2.0])
    assert at_zero.tolist() == [[[1.0, 2.0]]] * 2


def test_a_wrong_sampler_would_be_caught(alarm, monkeypatch):
    """Noise scaled by sqrt(2) gives a statistic far beyond the limit."""
    problem, algorithm = make_problem(n_clients=3), FALD(0.15, 3)
    right = evolution.correlated
    monkeypatch.setattr(evolution, "correlated", lambda *a: np.sqrt(2.0) * right(*a))
    drawn = sample_rounds(problem, algorithm, 5, 20_000, 1)[:, 0]
    law = exact_law(problem, algorithm, 5)
    squares = (drawn - law.mean[-1]) ** 2
    gaps = squares.mean(axis=0) - np.diagonal(law.cov[-1])
    alarm.must_fail(gaps / (squares.std(axis=0) / np.sqrt(20_000)))


def test_unstable_steps_are_refused_or_followed():
    problem = make_problem()
    limit = FALD(0.1, 4).stability(problem).max_step_size
    algorithm = FALD(1.05 * limit, 4)
    for call in (lambda: exact_law(problem, algorithm, 5), lambda: stationary_law(problem, algorithm),
                 lambda: joint_law(problem, algorithm, 5),
                 lambda: sample_rounds(problem, algorithm, 5, 2, 0)):
        with pytest.raises(UnstableStepSize, match="step_size"):
            call()
    mean, cov = brute_force.rounds(problem, algorithm, 6)
    law = exact_law(problem, algorithm, 6, allow_unstable=True)
    close(law.mean, mean, 1e-11)
    close(law.cov, cov, 1e-11)
    with pytest.raises(ValueError, match="range of float64 by round"):
        exact_law(problem, algorithm, 10**6, allow_unstable=True)
    # exactly at the limit of one client the mean has no fixed point, and the moments still exist
    single = Quadratic([2.0], [[1.0]])
    edge = exact_law(single, FALD(1.0, 2), 4, allow_unstable=True)
    assert edge.mean.tolist() == [[0.0]] * 5
    close(edge.cov[-1], [[16.0]])


def test_where_there_is_no_law():
    problem = make_problem()
    with pytest.raises(NoExactLaw, match="changes from step to step"):
        stationary_law(problem, FALD(DECREASING, 2))

    class Other(FALD):
        """A derived algorithm inherits the law."""

    close(exact_law(problem, Other(0.1), 3).mean, exact_law(problem, FALD(0.1), 3).mean)

    class Unknown(AlgorithmParts):
        """An algorithm without a file in theory.exact."""

        step_size = 0.1

        def costs(self, problem, n_rounds):
            """Nothing."""
            return {}

        def _radius(self, problem):
            return self.stability(problem).radius

        def stability(self, problem):
            """As FA-LD."""
            return FALD(0.1).stability(problem)

    with pytest.raises(NoExactLaw, match="Unknown"):
        exact_law(problem, Unknown(), 3)
    large = make_problem(n_clients=3, dim=affine.LIFT_DIM + 1)
    with pytest.raises(NoExactLaw, match="stepped through one by one"):
        exact_law(large, FALD(0.1, 2, participation=SCHEME_I), 10**9)
    assert issubclass(NoExactLaw, ValueError)


BAD = [
    (dict(n_rounds=-1), "n_rounds"), (dict(n_rounds=2.5), "n_rounds"),
    (dict(covariance="half"), "covariance"),
    (dict(record=[9]), "record"), (dict(start=[1.0]), "start"), (dict(start=[np.nan, 0.0]), "start"),
    (dict(start=Gaussian([0.0], [[1.0]])), "start"), (dict(allow_unstable=2), "allow_unstable"),
    (dict(problem=3), "problem"), (dict(algorithm=FALD), "algorithm"),
    (dict(algorithm=FALD(np.full(7, 0.1), 4)), "step_size has 7"),
    (dict(algorithm=FALD(0.1, participation=Participation(9, False))), "n_active"),
    (dict(algorithm=FALD(0.1, participation=Participation(2, False))), "weights"),
]


@pytest.mark.parametrize(("changed", "named"), BAD)
def test_bad_input_is_named(changed, named):
    arguments = dict(problem=make_problem(), algorithm=FALD(0.1, 4), n_rounds=5) | changed
    with pytest.raises(ValueError, match=named):
        exact_law(**arguments)


def test_bad_input_of_the_others_is_named():
    problem, algorithm = make_problem(), FALD(0.1, 4)
    for client in (-1, 3, 1.5):
        with pytest.raises(ValueError, match="client"):
            stationary_law(problem, algorithm, client=client)
    for n_steps in (-1, 1.5):
        with pytest.raises(ValueError, match="n_steps"):
            joint_law(problem, algorithm, n_steps)
    with pytest.raises(ValueError, match="n_replicas"):
        sample_rounds(problem, algorithm, 5, 0, 1)
    with pytest.raises(ValueError, match="seed"):
        sample_rounds(problem, algorithm, 5, 3, -1)
    with pytest.raises(ValueError, match="point"):
        joint_law(problem, algorithm, 2).second_moment_about([1.0])
    with pytest.raises(ValueError, match="k=9"):
        joint_law(problem, algorithm, 2).average(9)
    with pytest.raises(ValueError, match="step_size has 3"):
        joint_law(problem, FALD([0.1, 0.1, 0.1], 2), 4)


def test_memory_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(limits, "memory_limit", lambda: 2.0**31)
    wide = Quadratic(np.ones(2), np.zeros((2, 3000)))
    with pytest.raises(ValueError, match=r"covariance='diagonal'"):
        exact_law(wide, FALD(0.1), 1000)
    assert exact_law(wide, FALD(0.1), 1000, covariance="diagonal").cov.shape == (1001, 3000)
    with pytest.raises(ValueError, match="n_steps=100"):
        joint_law(wide, FALD(0.1), 100)
    with pytest.raises(ValueError, match="n_replicas"):
        sample_rounds(wide, FALD(0.1), 5, 10**7, 0)
