"""The exact laws of DE-SGLD and DE-SGHMC against brute force, against each other and by hand."""

from __future__ import annotations

import dataclasses
import itertools
import time

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import brentq
from test_naive_parity import make_problem, spd

import fedsim as fs
import theory
from fedsim import network
from theory.exact import NoExactLaw, joint_law, sample_rounds
from theory.exact.batches import MinibatchNoise
from theory.exact.decentralized import family, general, minibatch, modes

NETWORKS = {"complete": network.complete, "ring": network.ring, "path": network.path, "star": network.star,
            "disconnected": network.disconnected}
HARMONIC = fs.schedules.Harmonic(6.0, 0.4)


def close(found, wanted, tol=1e-12):
    """Equal within `tol` of the largest entry."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tol * max(np.abs(wanted).max(), 1e-300)


def same_laws(one, other, tol):
    for first, second in zip((one, *one.clients), (other, *other.clients), strict=True):
        close(first.mean, second.mean, tol)
        if second.cov is not None:
            close(first.cov, second.cov, tol)


def gaussian_start(dim, diagonal=False):
    rng = np.random.default_rng(5)
    cov = rng.uniform(0.5, 2.0, dim) if diagonal else spd(rng, 1, dim)[0]
    return fs.Gaussian(rng.standard_normal(dim), cov)


def algorithms(mixing, problem, schedule=None):
    """Both algorithms; DE-SGHMC with and without velocities at the start."""
    rng = np.random.default_rng(8)
    yield fs.DESGLD(0.2 if schedule is None else schedule, mixing)
    eta = 0.3 if schedule is None else schedule
    yield fs.DESGHMC(eta, 2.0, mixing)
    yield fs.DESGHMC(eta, 3.3, mixing, rng.standard_normal(problem.dim))
    yield fs.DESGHMC(eta, 1.0, mixing, rng.standard_normal((problem.n_clients, problem.dim)))


def stacked(problem, algorithm, step):
    """M, v and Q of the stacked state (x, v) with full matrices, from the algorithms' definitions."""
    n_clients, dim, w = problem.n_clients, problem.dim, problem.weights
    curvature = block_diag(*(w[i] * problem.dense_hessians[i] for i in range(n_clients)))
    pull, unit = curvature @ problem.minimizers.ravel(), np.eye(n_clients * dim)
    noises = problem.noise_covariances
    noise = np.zeros_like(unit) if noises is None else block_diag(*(w[i] ** 2 * noises[i]
                                                                    for i in range(n_clients)))
    gossip, eta = np.kron(algorithm.mixing, np.eye(dim)), float(algorithm.schedule.at(step))
    if isinstance(algorithm, fs.DESGLD):
        return gossip - eta * curvature, eta * pull, 2 * eta * unit + eta**2 * noise
    beta = 1.0 - algorithm.friction * eta
    kick = 2 * algorithm.friction * eta * unit + eta**2 * noise
    return (np.block([[gossip - eta**2 * curvature, eta * beta * unit], [-eta * curvature, beta * unit]]),
            np.concatenate([eta**2 * pull, eta * pull]), np.kron([[eta**2, eta], [eta, 1.0]], kick))


def brute_force(problem, algorithm, n_steps, start=None):
    """Mean and covariance of the stacked state at every step."""
    n_clients, dim = problem.n_clients, problem.dim
    cov = np.zeros((dim, dim))
    if start is None:
        mean = np.zeros(n_clients * dim)
    elif isinstance(start, fs.Gaussian):
        mean, cov = np.tile(start.mean, n_clients), start.cov
    else:
        mean = np.broadcast_to(start, (n_clients, dim)).ravel()
    cov = np.kron(np.ones((n_clients, n_clients)), cov)
    if isinstance(algorithm, fs.DESGHMC):
        v = 0.0 if algorithm.start_velocity is None else algorithm.start_velocity
        mean = np.concatenate([mean, np.broadcast_to(v, (n_clients, dim)).ravel()])
        cov = block_diag(cov, np.zeros_like(cov))
    found = [(mean, cov)]
    for step in range(n_steps):
        matrix, shift, noise = stacked(problem, algorithm, step)
        mean, cov = matrix @ mean + shift, matrix @ cov @ matrix.T + noise
        found.append((mean, cov))
    return found


def views(problem, mean, cov):
    """Average first, then every client: means and covariances of positions."""
    n_clients, dim = problem.n_clients, problem.dim
    average = np.kron(np.ones((1, n_clients)) / n_clients, np.eye(dim))
    size = n_clients * dim
    rows = [average, *np.split(np.eye(size), n_clients)]
    return [(row @ mean[:size], row @ cov[:size, :size] @ row.T) for row in rows]


@pytest.mark.parametrize("graph", NETWORKS)
@pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
def test_brute_force(graph, structure):
    rng = np.random.default_rng([len(graph), len(structure)])
    record, grid = (1, 2, 5, 11), itertools.product((1, 2, 3, 5), (1, 2, 3), (None, "std", "cov"))
    for number, (n_clients, dim, noise) in enumerate(grid):
        problem = make_problem(rng, structure, noise, n_clients, dim, weighted=number % 2 == 0)
        start = (None, rng.standard_normal(dim), rng.standard_normal((n_clients, dim)), gaussian_start(dim),
                 gaussian_start(dim, diagonal=True))[number % 5]
        schedule = (None, HARMONIC, np.linspace(0.25, 0.05, 11))[number // 2 % 3]
        each = list(algorithms(NETWORKS[graph](n_clients), problem, schedule))
        for algorithm in (each[0], each[1 + number % 3]):
            law, variances, means = (
                theory.exact_law(problem, algorithm, 11, start=start, record=record, covariance=kept)
                for kept in ("full", "diagonal", "none"))
            wanted = brute_force(problem, algorithm, 11, start)
            assert law.is_gaussian and len(law.clients) == n_clients and means.cov is None
            for i, k in enumerate((0, *record)):
                scale = np.abs(wanted[k][0]).max() + np.abs(wanted[k][1]).max()
                for view, (mean, cov) in enumerate(views(problem, *wanted[k])):
                    one, two, three = ((found, *found.clients)[view] for found in (law, variances, means))
                    for found in (one, two, three):
                        assert np.abs(found.mean[i] - mean).max() <= 1e-12 * max(scale, 1.0)
                    assert np.abs(one.cov[i] - cov).max() <= 1e-12 * max(scale, 1.0)
                    assert np.abs(two.cov[i] - np.diagonal(cov)).max() <= 1e-12 * max(scale, 1.0)


@pytest.mark.parametrize("graph", NETWORKS)
def test_stationary_laws_are_the_long_run(graph):
    rng = np.random.default_rng(1)
    for structure, noise, n_clients in itertools.product(("dense", "isotropic"), (None, "cov"), (1, 4)):
        problem = make_problem(rng, structure, noise, n_clients, 2, weighted=True)
        for algorithm in algorithms(NETWORKS[graph](n_clients), problem):
            law = theory.exact_law(problem, algorithm, 10**9, record=(), start=gaussian_start(2))
            for client, found in zip((None, *range(n_clients)), (law, *law.clients), strict=True):
                fixed = theory.stationary_law(problem, algorithm, client=client)
                close(found.mean[-1], fixed.mean, 1e-11)
                close(found.cov[-1], fixed.cov, 1e-11)


@pytest.mark.parametrize("same", [True, False])
def test_powers_are_many_steps(same):
    """Doubling against stepping, for modes and for matrices; schedules of equal steps are stepped."""
    rng = np.random.default_rng(2)
    given = spd(rng, 1 if same else 4, 2)
    problem = fs.Quadratic(np.broadcast_to(given, (4, 2, 2)), rng.standard_normal((4, 2)), None, 0.5)
    for algorithm in algorithms(network.path(4), problem):
        every = theory.exact_law(problem, algorithm, 777, start=[1.0, 2.0])
        few = theory.exact_law(problem, algorithm, 777, start=[1.0, 2.0], record=(1, 30, 100))
        listed = dataclasses.replace(algorithm, step_size=np.full(777, algorithm.step_size))
        same_laws(theory.exact_law(problem, listed, 777, start=[1.0, 2.0]), every, 1e-12)
        for one, other in zip((few, *few.clients), (every, *every.clients), strict=True):
            close(one.mean, other.mean[few.rounds], 1e-12)
            close(one.cov, other.cov[few.rounds], 1e-12)


class TestSharedCurvature:
    """Modes of W (D4) against the general recursion."""

    @pytest.fixture
    def general(self, monkeypatch):
        """A function that computes a law without modes."""
        def law(*args, **options):
            with monkeypatch.context() as patch:
                patch.setattr(modes, "common", lambda problem: None)
                return theory.exact_law(*args, **options)

        return law

    @pytest.mark.parametrize("graph", NETWORKS)
    @pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
    def test_it_is_the_general_law(self, graph, structure, general):
        rng = np.random.default_rng([3, len(graph)])
        for number, n_clients in enumerate((1, 2, 3, 4, 5, 8)):
            dim = 1 + number % 3
            given = {"dense": spd(rng, 1, dim), "diagonal": rng.uniform(0.5, 3.0, (1, dim)),
                     "isotropic": rng.uniform(0.5, 3.0, 1)}[structure]
            problem = fs.Quadratic(np.broadcast_to(given, (n_clients, *given.shape[1:])),
                                   rng.standard_normal((n_clients, dim)), None, (None, 0.8)[number % 2])
            assert modes.common(problem) is not None
            mixing, schedule = NETWORKS[graph](n_clients), (None, HARMONIC)[number // 2 % 2]
            own = rng.standard_normal((n_clients, dim))
            for start in (gaussian_start(dim), gaussian_start(dim, True), own):
                for algorithm in algorithms(mixing, problem, schedule):
                    for kept in ("full", "diagonal", "none"):
                        options = {"start": start, "covariance": kept}
                        fast = theory.exact_law(problem, algorithm, 12, **options)
                        same_laws(fast, general(problem, algorithm, 12, **options), 1e-12)

    def test_only_where_it_holds(self):
        rng = np.random.default_rng(4)
        equal, minimizers = np.broadcast_to(spd(rng, 1, 2), (3, 2, 2)), rng.standard_normal((3, 2))
        commuting = np.broadcast_to(equal[0] @ equal[0], (3, 2, 2))
        assert modes.common(fs.Quadratic(equal, minimizers, None, commuting)) is not None
        other = equal.copy()
        other[1, 0, 0] *= 1.0 + 1e-9
        for problem in (fs.Quadratic(equal, minimizers, None, spd(rng, 3, 2)),
                        fs.Quadratic(equal, minimizers, None, np.broadcast_to(spd(rng, 1, 2), (3, 2, 2))),
                        fs.Quadratic(equal, minimizers, [0.5, 0.3, 0.2]), fs.Quadratic(other, minimizers)):
            assert modes.common(problem) is None

    def test_circulant_networks_are_seen(self):
        for matrix in (network.ring(9), network.complete(4), network.disconnected(5), network.ring(1)):
            assert modes.Network(matrix).circulant
        for matrix in (network.path(4), network.star(4), network.grid(2, 3)):
            assert not modes.Network(matrix).circulant

    def test_closed_form_of_the_stationary_law(self):
        """Mode (j, r): 2 eta / (1 - (lambda_j - eta theta_r)^2); the average's mean is the posterior's."""
        rng, eta, theta = np.random.default_rng(6), 0.15, np.array([0.7, 2.0])
        for mixing in (network.ring(6), network.star(6)):
            problem = fs.Quadratic.from_components(np.tile(theta, (6, 1)), rng.standard_normal((6, 2)))
            algorithm = fs.DESGLD(eta, mixing)
            values, vectors = np.linalg.eigh(mixing)
            spread = 2 * eta / (1.0 - (values[:, None] - eta * theta) ** 2)
            law = theory.stationary_law(problem, algorithm)
            close(law.mean, problem.target().mean)
            close(np.diag(law.cov), 1.0 / (6 * theta) / (1.0 - eta * theta / 2))
            for client in range(6):
                own = theory.stationary_law(problem, algorithm, client=client)
                close(np.diag(own.cov), vectors[client] ** 2 @ spread)


@pytest.mark.parametrize("graph", NETWORKS)
def test_stability_limits(graph):
    """eta L < 1 + lambda_N and eta^2 L < (1 + lambda_N)(1 + beta), for the mean of equal curvatures."""
    mixing, largest = NETWORKS[graph](5), 3.0
    problem = fs.Quadratic.from_components(np.tile([1.0, largest], (5, 1)), np.ones((5, 2)))
    room = 1.0 + network.smallest_eigenvalue(mixing)
    limits = [(lambda eta: fs.DESGLD(eta, mixing), room / largest)]
    for friction in (0.1, 0.5):
        def excess(eta, friction=friction):
            return eta**2 * largest - room * (2.0 - friction * eta)

        limits.append((lambda eta, friction=friction: fs.DESGHMC(eta, friction, mixing),
                       brentq(excess, 0.0, 1.0 / friction)))
    for make, limit in limits:
        theory.stationary_law(problem, make(0.999 * limit))
        with pytest.raises(fs.UnstableStepSize, match="must be less than the stability limit") as caught:
            theory.exact_law(problem, make(1.001 * limit), 3)
        assert caught.value.limit == pytest.approx(limit, rel=1e-6)
        with pytest.raises(fs.UnstableStepSize):
            theory.stationary_law(problem, make(1.001 * limit))
        grown = theory.exact_law(problem, make(1.05 * limit), 400, record=(200,), allow_unstable=True)
        early, late = (sum(np.trace(client.cov[k]) for client in grown.clients) for k in (1, 2))
        assert late > 100.0 * early


@pytest.mark.parametrize("noise", [None, "std", "cov"])
def test_friction_one_over_the_step_is_langevin(noise):
    """DE-SGHMC(eta, 1/eta) is DE-SGLD(eta^2): the laws of average and clients, and both stationary ones."""
    rng = np.random.default_rng(7)
    for graph, eta in itertools.product(NETWORKS, (0.25, 0.4)):
        problem = make_problem(rng, "dense", noise, 4, 2, weighted=True)
        mixing = NETWORKS[graph](4)
        hmc = fs.DESGHMC(eta, 1.0 / eta, mixing)
        langevin = fs.DESGLD(eta**2, mixing)
        start = gaussian_start(2)
        same_laws(*(theory.exact_law(problem, a, 40, start=start) for a in (hmc, langevin)), 1e-12)
        one, other = (theory.stationary_law(problem, a, client=2) for a in (hmc, langevin))
        close(one.mean, other.mean, 1e-11)
        close(one.cov, other.cov, 1e-11)


def test_one_client_is_langevin():
    """N = 1: DE-SGLD is FA-LD with one local step."""
    problem = make_problem(np.random.default_rng(9), "dense", "cov", 1, 3, weighted=False)
    law = theory.exact_law(problem, fs.DESGLD(0.1, [[1.0]]), 20)
    langevin = theory.exact_law(problem, fs.FALD(0.1), 20)
    close(law.mean, langevin.mean)
    close(law.cov, langevin.cov)
    close(law.clients[0].cov, langevin.cov)


def test_the_average_of_a_complete_graph():
    """Equal curvatures: the average is SGLD with step eta/N on f, whatever the network."""
    rng = np.random.default_rng(10)
    hessians = np.broadcast_to(spd(rng, 1, 2), (5, 2, 2))
    problem = fs.Quadratic.from_components(hessians, rng.standard_normal((5, 2)), 0.6)
    langevin = theory.exact_law(problem.pooled(), fs.FALD(0.1 / 5), 20)
    for graph in NETWORKS.values():
        law = theory.exact_law(problem, fs.DESGLD(0.1, graph(5)), 20)
        close(law.mean, langevin.mean)
        close(law.cov, langevin.cov)


def test_clients_that_never_talk_are_alone():
    problem = make_problem(np.random.default_rng(11), "dense", "cov", 3, 2, weighted=True)
    for make in (lambda w: fs.DESGLD(0.2, w), lambda w: fs.DESGHMC(0.3, 2.0, w)):
        law = theory.exact_law(problem, make(network.disconnected(3)), 15)
        for i in range(3):
            w = problem.weights[i]
            alone = fs.Quadratic(w * problem.hessians[i:i + 1], problem.minimizers[i:i + 1], None,
                                 w**2 * problem.gradient_noise[i:i + 1])
            own = theory.exact_law(alone, make(network.disconnected(1)), 15)
            close(law.clients[i].mean, own.mean)
            close(law.clients[i].cov, own.cov)
        close(law.cov[-1], sum(client.cov[-1] for client in law.clients) / 9)


def test_vanishing_gradient_noise():
    rng = np.random.default_rng(12)
    hessians, minimizers = spd(rng, 3, 2), rng.standard_normal((3, 2))
    for algorithm in algorithms(network.path(3), fs.Quadratic(hessians, minimizers)):
        exact, noisy, none = (theory.exact_law(fs.Quadratic(hessians, minimizers, None, noise), algorithm, 20)
                              for noise in (None, 1e-7, np.zeros((3, 2, 2))))
        same_laws(noisy, exact, 1e-12)
        same_laws(none, exact, 1e-15)


def test_other_units():
    """x in other units: step sizes are in units of 1/Hessian, everything else follows."""
    problem = make_problem(np.random.default_rng(13), "dense", "std", 3, 2, weighted=True)
    other = fs.Quadratic(problem.hessians / 100, 10 * problem.minimizers, problem.weights, 0.07)
    for one, two in ((fs.DESGLD(0.2, network.ring(3)), fs.DESGLD(20.0, network.ring(3))),
                     (fs.DESGHMC(0.3, 2.0, network.ring(3)), fs.DESGHMC(3.0, 0.2, network.ring(3)))):
        law, scaled = theory.exact_law(problem, one, 20), theory.exact_law(other, two, 20)
        close(scaled.mean, 10 * law.mean)
        close(scaled.cov, 100 * law.cov)
        close(scaled.clients[1].cov, 100 * law.clients[1].cov)


def test_average_converges_faster_than_clients():
    """W2 of the average is of first order in the step size, that of a client of order one half."""
    problem = make_problem(np.random.default_rng(14), "dense", None, 5, 2, weighted=False)
    target, mixing = problem.target(), network.ring(5)
    steps = (4e-4, 1e-4)
    average, client = ([theory.stationary_law(problem, fs.DESGLD(s, mixing), client=c).w2(target)
                        for s in steps] for c in (None, 2))
    assert np.log2(average[0] / average[1]) / 2 == pytest.approx(1.0, abs=0.02)
    shifted = [theory.stationary_law(problem, fs.DESGLD(s, mixing), client=2).cov for s in steps]
    extra = [np.trace(cov - theory.stationary_law(problem, fs.DESGLD(s, mixing)).cov)
             for cov, s in zip(shifted, steps, strict=True)]
    assert np.log2(extra[0] / extra[1]) / 4 == pytest.approx(0.5, abs=0.02)
    assert client[1] > average[1]


class TestJointLaw:
    """All clients at every iteration."""

    def test_brute_force(self):
        rng = np.random.default_rng(15)
        problem = make_problem(rng, "diagonal", "cov", 4, 2, weighted=True)
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
            close(law.gradient_second_moment() - law.exact_gradient_second_moment(), np.tile(noise, (10, 1)))

    def test_its_average_is_the_exact_law(self):
        problem = make_problem(np.random.default_rng(16), "dense", "std", 3, 2, weighted=True)
        for algorithm in algorithms(network.ring(3), problem):
            joint, law = joint_law(problem, algorithm, 12), theory.exact_law(problem, algorithm, 12)
            close(joint.average_mean, law.mean)
            close(joint.average_cov, law.cov)
            close(joint.client_cov[:, 1], law.clients[1].cov)


@pytest.mark.parametrize("structure", ["dense", "diagonal"])
def test_sampled_rounds_follow_the_exact_law(structure, alarm):
    rng = np.random.default_rng(17)
    problem = make_problem(rng, structure, "cov" if structure == "dense" else "std", 3, 2, weighted=True)
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


def regression(batch_size, replace=True, grad_scale="unbiased", sizes=(3, 4), dim=2, weights=None):
    rng = np.random.default_rng(20)
    features = rng.standard_normal((sum(sizes), dim))
    return fs.LinearRegression(features, features @ np.ones(dim) + rng.standard_normal(sum(sizes)),
                               np.repeat(np.arange(len(sizes)), sizes), noise_std=0.8, prior_variance=2.0,
                               batch_size=batch_size, replace=replace, grad_scale=grad_scale, weights=weights)


def batches(problem, client):
    """[(Hessian, pull)] of every equally likely minibatch gradient of the component."""
    mine = problem.clients == client
    features, targets, size = problem.features[mine], problem.targets[mine], int(mine.sum())
    draw = itertools.product(range(size), repeat=problem.batch_size) if problem.replace else (
        itertools.combinations(range(size), problem.batch_size))
    scale = (size / problem.batch_size if problem.grad_scale == "unbiased" else 1.0) / problem.noise_std**2
    prior = np.eye(problem.dim) / (problem.prior_variance * problem.n_clients)
    return [(scale * features[list(rows)].T @ features[list(rows)] + prior,
             scale * features[list(rows)].T @ targets[list(rows)]) for rows in draw]


def outcomes(problem, algorithm):
    """(M, v) of the stacked state for every combination of minibatches, and the injected noise."""
    found = []
    for chosen in itertools.product(*(batches(problem, client) for client in range(problem.n_clients))):
        hessians, pulls = zip(*chosen, strict=True)
        curvature, pull = block_diag(*hessians), np.concatenate(pulls)
        gossip, eta = np.kron(algorithm.mixing, np.eye(problem.dim)), algorithm.step_size
        unit = np.eye(len(pull))
        if isinstance(algorithm, fs.DESGLD):
            found.append((gossip - eta * curvature, eta * pull))
            heat = 2 * eta * unit
        else:
            beta = 1.0 - algorithm.friction * eta
            found.append((np.block([[gossip - eta**2 * curvature, eta * beta * unit],
                                    [-eta * curvature, beta * unit]]),
                          np.concatenate([eta**2 * pull, eta * pull])))
            heat = np.kron([[eta**2, eta], [eta, 1.0]], 2 * algorithm.friction * eta * unit)
    return np.array([m for m, _ in found]), np.array([v for _, v in found]), heat


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
            for k in range(1, 7):
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
        table = np.stack([step.response[1](row.reshape(12, 2, 2)).ravel() for row in np.eye(size)], axis=1)
        assert size > minibatch.DENSE_UNKNOWNS
        assert step.radius() == pytest.approx(np.abs(np.linalg.eigvals(table)).max(), rel=1e-7)
        assert step.contracts() == (step.radius() < 1.0)

    def test_rounds_cannot_be_sampled(self):
        with pytest.raises(NoExactLaw, match="minibatches"):
            sample_rounds(regression(2), fs.DESGLD(0.02, network.ring(2)), 3, 10, 0)
        with pytest.raises(NoExactLaw, match="one by one"):
            theory.exact_law(regression(2), fs.DESGLD(0.02, network.ring(2)), 10**13, record=())


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

    def test_too_large_a_covariance_is_refused_before_it_is_made(self):
        for algorithm in (fs.DESGLD(0.1, network.ring(1000)), fs.DESGHMC(0.2, 2.0, network.ring(1000))):
            for refused in (lambda a: theory.exact_law(self.problem(False), a, 60),
                            lambda a: theory.stationary_law(self.problem(False), a),
                            lambda a: joint_law(self.problem(False), a, 2)):
                with pytest.raises(ValueError, match=r"would take [\d.]+ GB.*1000 clients|1000 clients.*GB"):
                    refused(algorithm)


def test_refusals():
    problem = make_problem(np.random.default_rng(23), "dense", None, 3, 2, weighted=True)
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
    assert family.check_steps(fs.DESGLD(HARMONIC, mixing), 10**9) is None


def test_saved_laws_keep_their_clients(tmp_path):
    problem = make_problem(np.random.default_rng(24), "dense", None, 3, 2, weighted=True)
    law = theory.exact_law(problem, fs.DESGLD(0.1, network.ring(3)), 5)
    law.save(tmp_path / "law.npz")
    same_laws(fs.load(tmp_path / "law.npz"), law, 0.0)
