"""The coupling of FA-HMC with its oracle, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of.fa_hmc import draw_case
from scipy.linalg import expm

import fedsim as fs
import theory
from theory import fa_hmc

SEED = 20240711


def noises(problem, algorithm, n_steps):
    """Names of the independent standard Gaussian vectors of n_steps updates."""
    K = algorithm.leapfrog_steps
    clients = range(problem.n_clients)
    return ([("start",), ("oracle",)] + [("shared", t) for t in range(n_steps)]
            + [("own", t, c) for t in range(n_steps) for c in clients]
            + [("gradient", t, c, i) for t in range(n_steps) for c in clients for i in range(2 * K - 1)])


def run_once(problem, algorithm, n_steps, mean, root, roots, tie, value):
    """Clients and oracle by plain loops; `value(name)` is the noise vector of that name.

    The oracle's flow is the exponential of its Hamiltonian matrix, its start the target's, tied to the
    clients' by the map `tie`. Returns the averages minus the oracle, and the clients, at 0..n_steps.
    """
    N, d, w = problem.n_clients, problem.dim, problem.weights
    K, T, eta, s = (algorithm.leapfrog_steps, algorithm.local_steps, float(algorithm.schedule.largest),
                    algorithm.shared_noise)
    hessians, target = problem.dense_hessians, problem.target()
    overall = np.einsum("c,cij->ij", w, hessians)
    zero = np.zeros((d, d))
    flow = expm(K * eta * np.block([[zero, np.eye(d)], [-overall, zero]]))
    oracle = target.mean + np.linalg.cholesky(target.cov) @ value(("oracle",))
    x = np.repeat((mean + root @ value(("start",)) + tie @ (oracle - target.mean))[None], N, axis=0)
    gaps, clients = [w @ x - oracle], [x.copy()]

    def slope(c, point, name):
        return hessians[c] @ (point - problem.minimizers[c]) + roots[c] @ value(name)

    for t in range(n_steps):
        momenta = [np.sqrt(s) * value(("shared", t)) + np.sqrt((1 - s) / w[c]) * value(("own", t, c))
                   for c in range(N)]
        state = np.concatenate([oracle - target.mean, w @ np.array(momenta)])
        oracle = target.mean + (flow @ state)[:d]
        for c in range(N):
            q, p, draw = x[c], momenta[c], 0
            first = slope(c, q, ("gradient", t, c, draw))
            for k in range(K):
                q = q + eta * p - 0.5 * eta**2 * first
                if k + 1 < K:
                    second = slope(c, q, ("gradient", t, c, draw + 1))
                    p = p - 0.5 * eta * (first + second)
                    first, draw = slope(c, q, ("gradient", t, c, draw + 2)), draw + 2
            x[c] = q
        if (t + 1) % T == 0:
            x[:] = w @ x
        gaps.append(w @ x - oracle)
        clients.append(x.copy())
    return np.array(gaps), np.array(clients)


@pytest.mark.parametrize("kind", ["point", "gaussian"])
def test_the_coupling_against_plain_loops(kind):
    """E_t and gradients from the responses to every single noise vector."""
    rng = np.random.default_rng(SEED)
    frames = rng.standard_normal((3, 2, 2))
    noise = rng.standard_normal((3, 2, 2))
    noise = noise @ np.swapaxes(noise, 1, 2)
    problem = fs.Quadratic(np.eye(2) + frames @ np.swapaxes(frames, 1, 2), rng.standard_normal((3, 2)),
                           [0.1, 0.3, 0.6], noise)
    algorithm, n_steps, d = fs.FAHMC(0.1, 3, 2, 0.3), 5, 2
    mean, target = np.array([1.0, -2.0]), problem.target()
    root, tie, start = np.zeros((d, d)), np.zeros((d, d)), mean
    if kind == "gaussian":  # commuting with the target, so that the optimal map is a multiple
        start, tie = fs.Gaussian(mean, 4.0 * target.cov), 2.0 * np.eye(d)
    law = fa_hmc.coupling_law(problem, algorithm, n_steps, start=start)
    roots = np.linalg.cholesky(noise)

    def run(active=None, i=0):
        def value(name):
            return np.eye(d)[i] if name == active else np.zeros(d)

        return run_once(problem, algorithm, n_steps, mean, root, roots, tie, value)

    gap, centre = run()
    distance = (gap**2).sum(axis=1)
    slopes = problem.dense_hessians
    pull = np.einsum("cij,tcj->tci", slopes, centre - problem.minimizers)
    gradients = (pull**2).sum(axis=2)
    for name in noises(problem, algorithm, n_steps):
        for i in range(d):
            moved, clients = run(name, i)
            distance += ((moved - gap) ** 2).sum(axis=1)
            gradients += (np.einsum("cij,tcj->tci", slopes, clients - centre) ** 2).sum(axis=2)
    np.testing.assert_allclose(law.distance_sq, distance, rtol=1e-11)
    np.testing.assert_allclose(law.gradient_moments, gradients, rtol=1e-11)
    assert law.distance_sq[0] == pytest.approx(theory.constants(problem, algorithm, start).initial_w2**2)


def test_the_coupling_agrees_with_the_joint_law():
    rng = np.random.default_rng([SEED, 1])
    for _ in range(20):
        problem, algorithm, start, rounds = draw_case(rng)
        steps = rounds * algorithm.local_steps
        law = fa_hmc.coupling_law(problem, algorithm, steps, start=start)
        joint = theory.exact.joint_law(problem, algorithm, steps, start=start)
        for c in range(problem.n_clients):
            np.testing.assert_allclose(law.gradient_moments[:, c],
                                       fa_hmc.quantities.gradient_moments(joint, c), rtol=1e-7)
        w2 = theory.exact_law(problem, algorithm, rounds, start=start).w2()
        every = law.distance_sq[::algorithm.local_steps]
        assert (w2**2 <= every + 1e-10 * law.scale).all() and every[0] == pytest.approx(
            w2[0] ** 2, abs=1e-10 * law.scale)


def test_the_main_part_by_hand():
    """One client, curvature a: (I) = (1 - a X^2/2)(theta - theta^pi) + (a X^3/6)/K^2 p."""
    a, K, X = 2.0, 4, 0.3
    problem, algorithm = fs.Quadratic([a], [[1.0]]), fs.FAHMC(X / K, K)
    law = fa_hmc.coupling_law(problem, algorithm, 3, start=[3.0])
    left = X**3 * a / 6 - (K**3 - K) * (X / K) ** 3 * a / 6
    np.testing.assert_allclose(law.main_part, (1 - a * X**2 / 2) ** 2 * law.distance_sq[:-1] + left**2,
                               rtol=1e-12)
