"""The exact laws of DE-SGLD and DE-SGHMC against brute force, against each other and by hand."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from brute_force_decentralized import algorithms, brute_force, same_laws, views
from examples_of import NETWORKS, close, gaussian_start
from problems import drawn_quadratic, spd
from scipy.optimize import brentq

import fedsim as fs
import theory
from fedsim import network
from theory.exact import families
from theory.exact.gossip import common_hessian, general, white

HARMONIC = fs.schedules.Harmonic(6.0, 0.4)


@pytest.mark.parametrize("graph", NETWORKS)
@pytest.mark.parametrize("structure", ["dense", "diagonal", "isotropic"])
def test_brute_force(graph, structure):
    rng = np.random.default_rng([len(graph), len(structure)])
    record, grid = (1, 2, 5, 11), itertools.product((1, 2, 3, 5), (1, 2, 3), (None, "std", "cov"))
    for number, (n_clients, dim, noise) in enumerate(grid):
        problem = drawn_quadratic(rng, structure, noise, n_clients, dim, weighted=number % 2 == 0)
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
        problem = drawn_quadratic(rng, structure, noise, n_clients, 2, weighted=True)
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


@pytest.mark.parametrize("numbers", [white.NUMBERS, 40])
def test_eigenvectors_are_many_steps(numbers, monkeypatch):
    """White noise by eigenvectors against stepping, in one piece and in many."""
    monkeypatch.setattr(white, "NUMBERS", numbers)
    rng = np.random.default_rng(5)
    for number, structure in enumerate(("dense", "diagonal", "dense", "diagonal")):
        problem = drawn_quadratic(rng, structure, (None, "std")[number // 2], 5, 2, weighted=number < 2)
        algorithm = fs.DESGLD(0.1, network.ring(5))
        for start in (gaussian_start(2, structure == "diagonal"), rng.standard_normal((5, 2))):
            used: list[bool] = []

            def of(cls, step, rounds, used=used, ours=white.WhiteLaw.of):
                used.append(ours(step, rounds) is not None)
                return ours(step, rounds)

            options = {"start": start, "covariance": "full" if structure == "dense" else "diagonal"}
            with monkeypatch.context() as patch:
                patch.setattr(white.WhiteLaw, "of", classmethod(of))
                fast = theory.exact_law(problem, algorithm, 60, **options)
            with monkeypatch.context() as patch:
                patch.setattr(white.WhiteLaw, "of", classmethod(lambda cls, step, rounds: None))
                stepped = theory.exact_law(problem, algorithm, 60, **options)
            assert used == [True]
            same_laws(fast, stepped, 1e-13)


def test_eigenvectors_whose_eigenvalues_are_nearly_equal(monkeypatch):
    """Clients that differ in the eleventh digit on a ring, whose waves come in pairs."""
    rng = np.random.default_rng(7)
    problem = fs.Quadratic(1.0 + 1e-11 * rng.random((12, 1)), rng.standard_normal((12, 1)))
    algorithm = fs.DESGLD(0.0028, network.ring(12))
    fast = theory.exact_law(problem, algorithm, 379)
    with monkeypatch.context() as patch:
        patch.setattr(white.WhiteLaw, "of", classmethod(lambda cls, step, rounds: None))
        same_laws(fast, theory.exact_law(problem, algorithm, 379), 1e-12)


def test_eigenvectors_only_where_they_hold():
    """Not for coloured noise, velocities, contraction that is slow from either side, nor for few steps."""
    rng, mixing = np.random.default_rng(6), network.ring(4)

    def found(problem, algorithm, n_rounds=100):
        step = general.GossipMap(general.Components(problem, mixing, True),
                                 families.family_of(algorithm).move(algorithm, algorithm.step_size))
        return white.WhiteLaw.of(step, np.array([0, n_rounds]))

    problem = fs.Quadratic(spd(rng, 4, 2), rng.standard_normal((4, 2)), None, 0.5)
    assert found(problem, fs.DESGLD(0.1, mixing)) is not None
    limit = fs.DESGLD(0.1, mixing).stability(problem).max_step_size
    assert found(problem, fs.DESGLD(0.1, mixing), 0) is None
    assert found(problem, fs.DESGHMC(0.1, 2.0, mixing)) is None
    for step_size in (1e-5, 0.99999 * limit, 1.1 * limit):
        assert found(problem, fs.DESGLD(step_size, mixing)) is None
    for weights, noise in ((None, spd(rng, 4, 2)), ([0.4, 0.3, 0.2, 0.1], 0.5)):
        coloured = fs.Quadratic(problem.hessians, problem.minimizers, weights, noise)
        assert found(coloured, fs.DESGLD(0.1, mixing)) is None


class TestSharedCurvature:
    """Modes of W (D4) against the general recursion."""

    @pytest.fixture
    def general(self, monkeypatch):
        """A function that computes a law without modes."""
        def law(*args, **options):
            with monkeypatch.context() as patch:
                patch.setattr(common_hessian, "common", lambda problem: None)
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
            assert common_hessian.common(problem) is not None
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
        assert common_hessian.common(fs.Quadratic(equal, minimizers, None, commuting)) is not None
        other = equal.copy()
        other[1, 0, 0] *= 1.0 + 1e-9
        for problem in (fs.Quadratic(equal, minimizers, None, spd(rng, 3, 2)),
                        fs.Quadratic(equal, minimizers, None, np.broadcast_to(spd(rng, 1, 2), (3, 2, 2))),
                        fs.Quadratic(equal, minimizers, [0.5, 0.3, 0.2]), fs.Quadratic(other, minimizers)):
            assert common_hessian.common(problem) is None

    def test_circulant_networks_are_seen(self):
        for matrix in (network.ring(9), network.complete(4), network.disconnected(5), network.ring(1)):
            assert common_hessian.Network(matrix).circulant
        for matrix in (network.path(4), network.star(4), network.grid(2, 3)):
            assert not common_hessian.Network(matrix).circulant

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
        problem = drawn_quadratic(rng, "dense", noise, 4, 2, weighted=True)
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
    problem = drawn_quadratic(np.random.default_rng(9), "dense", "cov", 1, 3, weighted=False)
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
    problem = drawn_quadratic(np.random.default_rng(11), "dense", "cov", 3, 2, weighted=True)
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
    problem = drawn_quadratic(np.random.default_rng(13), "dense", "std", 3, 2, weighted=True)
    other = fs.Quadratic(problem.hessians / 100, 10 * problem.minimizers, problem.weights, 0.07)
    for one, two in ((fs.DESGLD(0.2, network.ring(3)), fs.DESGLD(20.0, network.ring(3))),
                     (fs.DESGHMC(0.3, 2.0, network.ring(3)), fs.DESGHMC(3.0, 0.2, network.ring(3)))):
        law, scaled = theory.exact_law(problem, one, 20), theory.exact_law(other, two, 20)
        close(scaled.mean, 10 * law.mean)
        close(scaled.cov, 100 * law.cov)
        close(scaled.clients[1].cov, 100 * law.clients[1].cov)


def test_average_converges_faster_than_clients():
    """W2 of the average is of first order in the step size, that of a client of order one half."""
    problem = drawn_quadratic(np.random.default_rng(14), "dense", None, 5, 2, weighted=False)
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
