"""Exact moments of FA-LD and FA-HMC with minibatches: every batch enumerated, and replicas."""

from __future__ import annotations

import brute_force
import numpy as np
import pytest
from brute_force_decentralized import batches
from examples_of import close, gaussian_start, regression
from scipy.optimize import brentq
from scores import scores

import fedsim as fs
import theory
from theory.exact import NoExactLaw, joint_law, sample_rounds

REPLICAS, ROUNDS = 40_000, 6
BATCHES = [(1, True, "unbiased"), (2, False, "unbiased"), (2, False, "batch_sum"), (2, True, "batch_sum")]


def spread(matrices, shifts, chances, mean, second):
    """Mean and second moment after a random affine map with these outcomes."""
    crossed = np.einsum("o,oij,j,ok->ik", chances, matrices, mean, shifts, optimize=True)
    after = np.einsum("o,oij,jk,olk->il", chances, matrices, second, matrices, optimize=True)
    return (np.einsum("o,oij,j->i", chances, matrices, mean) + chances @ shifts,
            after + crossed + crossed.T + np.einsum("o,oi,ok->ik", chances, shifts, shifts))


def evaluation(problem, drift, kick, mean, second):
    """s_c <- F s_c - k g_c(theta_c) for one client after the other, every minibatch enumerated."""
    width, dim = kick.shape
    for client, weight in enumerate(problem.weights):
        rows = slice(client * width, (client + 1) * width)
        matrices, shifts = [], []
        for hessian, pull in batches(problem, client):
            matrix, shift = np.eye(len(mean)), np.zeros(len(mean))
            own = drift.copy()
            own[:, :dim] -= kick @ hessian / weight
            matrix[rows, rows], shift[rows] = own, kick @ pull / weight
            matrices.append(matrix)
            shifts.append(shift)
        chances = np.full(len(shifts), 1.0 / len(shifts))
        mean, second = spread(np.array(matrices), np.array(shifts), chances, mean, second)
    return mean, second


def enumerated(problem, algorithm, n_rounds, start):
    """Mean and covariance of the server's value after every round."""
    dim, clients, w, s = problem.dim, problem.n_clients, problem.weights, algorithm.shared_noise
    unit, none = np.eye(dim), np.zeros((dim, dim))
    hmc = isinstance(algorithm, fs.FAHMC)
    width = 2 * dim if hmc else dim
    noise = np.kron(np.pad(s * np.ones((clients, clients)) + np.diag((1.0 - s) / w), (0, 1)), unit)
    everybody = np.eye(clients + 1)  # the last keeps the server's value
    position = np.kron(everybody, np.eye(width)[:dim])  # of the stacked state
    mean, second = start.mean, start.cov + np.outer(start.mean, start.mean)
    found = []
    for number in range(n_rounds):
        everyone = np.kron(np.ones((clients + 1, 1)), np.eye(width)[:, :dim])
        m, q = everyone @ mean, everyone @ second @ everyone.T
        for step in range(number * algorithm.local_steps, (number + 1) * algorithm.local_steps):
            eta = float(algorithm.schedule.at(step))
            if not hmc:
                m, q = evaluation(problem, unit, eta * unit, m, q)
                q = q + 2 * eta * algorithm.temperature * noise
                continue
            fresh = position.T @ position
            momentum = np.kron(everybody, np.eye(width)[dim:])
            m, q = fresh @ m, fresh @ q @ fresh + momentum.T @ noise @ momentum
            for _ in range(algorithm.leapfrog_steps):
                m, q = evaluation(problem, np.block([[unit, eta * unit], [none, unit]]),
                                  np.concatenate([0.5 * eta**2 * unit, 0.5 * eta * unit]), m, q)
                m, q = evaluation(problem, np.eye(width), np.concatenate([none, 0.5 * eta * unit]), m, q)
        chances, shares = zip(*brute_force.outcomes(algorithm.participation, w, number), strict=True)
        servers = np.array([np.kron(np.append(share, 1.0 - sum(share)), unit) @ position for share in shares])
        mean, second = spread(servers, np.zeros((len(shares), dim)), np.array(chances), m, q)
        found.append((mean, second - np.outer(mean, mean)))
    return found


@pytest.mark.parametrize(("batch_size", "replace", "grad_scale"), BATCHES)
@pytest.mark.parametrize("participation", [
    None, fs.Participation(2, True), fs.Participation(1, False),
    fs.FixedParticipation([0, 1, 1], cyclic=True),
    fs.IndependentParticipation([0.6, 0.9]), fs.IndependentParticipation([0.8, 0.5], unbiased=True)], ids=str)
def test_enumeration(batch_size, replace, grad_scale, participation):
    weights = [0.5, 0.5] if participation in (None, fs.Participation(1, False)) else None
    problem, start = regression(batch_size, replace, grad_scale, weights=weights), gaussian_start(2)
    for algorithm in (fs.FALD(0.006, 3, 0.5, 0.4, participation),
                      fs.FAHMC(0.05, 2, 2, 0.3, participation=participation),
                      fs.FALD(fs.schedules.Harmonic(120.0, 5.0), 2, participation=participation)):
        law = theory.exact_law(problem, algorithm, 4, start=start)
        assert not law.is_gaussian and not law.clients
        few, variances, means = (
            theory.exact_law(problem, algorithm, 4, start=start, record=(2,), covariance=kept)
            for kept in ("full", "diagonal", "none"))
        close(few.cov, law.cov[[0, 2, 4]], 0.0)
        close(variances.cov, np.diagonal(few.cov, axis1=1, axis2=2), 0.0)
        close(means.mean, few.mean, 1e-12)
        for k, (mean, cov) in enumerate(enumerated(problem, algorithm, 4, start), start=1):
            close(law.mean[k], mean, 1e-11)
            close(law.cov[k], cov, 1e-11)


CASES = {
    "FA-LD": (regression(2, True, sizes=(6, 9, 7)), fs.FALD(0.002, 3, shared_noise=0.5)),
    "FA-LD, without replacement": (regression(4, False, sizes=(6, 9, 7)), fs.FALD(0.003, 2)),
    "FA-LD, scheme I": (regression(3, False, sizes=(6, 9, 7)), fs.FALD(
        0.002, 3, participation=fs.Participation(2, True))),
    "FA-LD, independent answers": (regression(3, False, sizes=(6, 9, 7)), fs.FALD(
        0.002, 3, participation=fs.IndependentParticipation([0.7, 0.4, 0.8]))),
    "FA-HMC": (regression(2, True, sizes=(6, 9, 7)), fs.FAHMC(0.03, 3, 2, 0.5)),
    "FA-HMC, sums": (regression(3, False, "batch_sum", sizes=(6, 9, 7)), fs.FAHMC(0.06, 2, 2, 0.0)),
    "FA-HMC, scheme II": (regression(3, True, sizes=(6, 9, 7), weights=[1 / 3] * 3), fs.FAHMC(
        0.03, 2, 2, 1.0, participation=fs.Participation(2, False))),
}


@pytest.mark.parametrize("name", CASES)
def test_replicas_follow_the_moments(name, alarm):
    problem, algorithm = CASES[name]
    law = theory.exact_law(problem, algorithm, ROUNDS, start=[3.0, -2.0], record=(1, 3))
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=71, start=[3.0, -2.0], record=(1, 3))
    alarm.assert_normal(scores(run, law), name)


@pytest.mark.parametrize("name", CASES)
def test_stationary_moments_are_the_long_run(name):
    problem, algorithm = CASES[name]
    law = theory.exact_law(problem, algorithm, 700, record=())
    fixed = theory.stationary_law(problem, algorithm)
    close(law.mean[-1], fixed.mean, 1e-10)
    close(law.cov[-1], fixed.cov, 1e-10)


def test_full_batches_without_replacement_are_full_gradients():
    problem, full = regression(3, False, sizes=(3, 3)), regression(None, sizes=(3, 3))
    for algorithm in (fs.FALD(0.01, 3, 1.0, 0.3), fs.FAHMC(0.1, 2, 2, 0.3),
                      fs.FALD(0.01, 3, participation=fs.Participation(2, True))):
        one, other = (theory.exact_law(p, algorithm, 8) for p in (problem, full))
        close(one.mean, other.mean)
        close(one.cov, other.cov)


@pytest.mark.parametrize("make", [lambda step: fs.FALD(step, 2), lambda step: fs.FAHMC(step, 1, 2)])
def test_the_second_moment_has_a_stricter_limit(make):
    """The limit is where the part of an enumerated round that is linear in the covariance has radius one."""
    problem, zero = regression(1, sizes=(3, 4)), np.zeros(2)

    def radius(step):
        def covariance(start):
            return enumerated(problem, make(step), 1, fs.Gaussian(zero, start))[0][1]

        base = covariance(np.zeros((2, 2)))
        pairs = np.array([[[1.0, 0], [0, 0]], [[0, 0], [0, 1.0]], [[1.0, 1], [1, 1]]])
        images = [covariance(pair) - base for pair in pairs]
        # in coordinates (xx, yy, xy) of symmetric matrices
        columns = [[image[0, 0], image[1, 1], image[0, 1]] for image in images]
        table = np.array([columns[0], columns[1], np.array(columns[2]) - columns[0] - columns[1]]).T
        return np.abs(np.linalg.eigvals(table)).max()

    mean_limit = make(1e-3).stability(problem.as_quadratic()).max_step_size
    limit = brentq(lambda step: radius(step) - 1.0, 1e-3, mean_limit)
    assert limit < 0.9 * mean_limit
    theory.stationary_law(problem, make(0.99 * limit))
    for refused in (theory.stationary_law, lambda *a: theory.exact_law(*a, 5)):
        with pytest.raises(fs.UnstableStepSize, match="of the second moment") as caught:
            refused(problem, make(1.01 * limit))
        assert caught.value.limit == pytest.approx(limit, rel=1e-4)
    assert np.isfinite(theory.exact_law(problem, make(1.01 * limit), 5, allow_unstable=True).cov).all()


def test_what_is_not_known():
    problem = regression(2)
    with pytest.raises(NoExactLaw, match="debias='stale'"):
        theory.exact_law(problem, fs.FAHMC(0.02, 2, debias="stale"), 3)
    with pytest.raises(NoExactLaw, match="FAHMCFlow"):
        theory.exact_law(problem, theory.exact.FAHMCFlow(0.1), 3)
    for refused in (lambda a: joint_law(problem, a, 3), lambda a: sample_rounds(problem, a, 3, 10, 0)):
        with pytest.raises(NoExactLaw, match="with minibatches"):
            refused(fs.FALD(0.002, 2))
    with pytest.raises(NoExactLaw, match="gradient by gradient"):
        theory.exact_law(problem, fs.FALD(0.002, 2), 10**10, record=())
    with pytest.raises(NoExactLaw, match="changes from step to step"):
        theory.stationary_law(problem, fs.FALD(fs.schedules.Harmonic(500.0, 1.0), 2))
