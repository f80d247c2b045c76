"""Extreme numbers and sizes: flat and stiff clients, a leapfrog without an end, many dimensions."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
from problems import quadratic

import fedsim as fs
import theory
from fedsim.stability import search
from fedsim.stability.leapfrog import leapfrog_shift

RNG = np.random.default_rng(5)
WIDE = fs.Quadratic(RNG.uniform(0.5, 3.0, (10, 10_000)), RNG.standard_normal((10, 10_000)))
NETWORK = fs.network.ring(10)


# --- stability


@pytest.mark.parametrize("steps", [1, 2, 7, 1000, 10**6])
def test_leapfrog_steps_together_against_mpmath(steps):
    """Up to what rounding of eta sqrt(a)/2, by a few units, makes of the phase."""
    rng, unit = np.random.default_rng(steps), 1e-15
    for _ in range(200):
        eta = 10.0 ** rng.uniform(-3, 3)
        stiff = rng.choice([rng.uniform(0, 4), 10 ** rng.uniform(-20, 0.6), 4 - 10 ** rng.uniform(-12, 0),
                            4 + 10 ** rng.uniform(-12, -1) / steps**2])
        found = float(leapfrog_shift(eta, np.array([stiff / eta**2]), steps)[0])
        with mpmath.workdps(50):
            half = mpmath.mpf(eta) * mpmath.sqrt(mpmath.mpf(stiff / eta**2)) / 2
            apart = abs(1 - half**2)
            moved = 2 * steps * min(half * unit / mpmath.sqrt(apart), mpmath.sqrt(2 * unit))
            turn = 2 * mpmath.asin(half) if half <= 1 else 2 * mpmath.asinh(mpmath.sqrt(apart))
            if half <= 1:
                exact, slope = mpmath.cos(steps * turn) - 1, abs(mpmath.sin(steps * turn))
                scale = 2 * mpmath.sin(steps * turn / 2) ** 2
            else:
                exact = (-1) ** steps * mpmath.cosh(steps * turn) - 1
                slope = scale = mpmath.cosh(steps * turn)
            allowed = 4 * unit * scale + slope * moved + (1 + slope) * moved**2
            assert abs(found - exact) <= allowed


def test_a_tiny_turn_keeps_its_digits():
    a = np.array([1e-300, 1e-40, 1e-12])
    assert leapfrog_shift(1.0, a, 1000) == pytest.approx(-0.5e6 * a, rel=1e-6)


def test_leapfrog_steps_without_an_end_are_no_more_work():
    algorithm = fs.FAHMC(1e-20, leapfrog_steps=2**53)
    found = algorithm.stability(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]))
    assert found.stable and 0.0 < found.radius < 1.0


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kappa", [1e8, 1e12, 1e14])
def test_a_flat_direction_is_no_resonance(kappa, dense):
    values = np.array([8e12, 8e12 / kappa])
    problem = fs.Quadratic(np.diag(values)[None] if dense else values[None], [[1.0, 1.0]])
    edge = 2.0 / np.sqrt(8e12)
    for share in (0.1, 0.6, 0.999):
        algorithm = fs.FAHMC(share * edge, 1)
        found = algorithm.stability(problem)
        assert found.stable and found.max_step_size == pytest.approx(edge, rel=1e-10)
        exact = 1.0 / (values * (1.0 - (share * edge) ** 2 * values / 4.0))
        assert theory.stationary_law(problem, algorithm).variances == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("steps", [2, 3, 10])
@pytest.mark.parametrize("dense", [False, True])
def test_an_exact_resonance_is_refused(steps, dense):
    values = np.array([1.7, 0.9])
    problem = fs.Quadratic(np.diag(values)[None] if dense else values[None], [[1.0, 1.0]])
    for turns in range(1, steps):
        eta = 2.0 * np.sin(0.5 * np.pi * turns / steps) / np.sqrt(values[0])
        with pytest.raises(fs.UnstableStepSize, match="resonance"):
            fs.validate(problem, fs.FAHMC(eta, steps))
        flow = theory.exact.FAHMCFlow(np.pi * turns / np.sqrt(values[0]))
        with pytest.raises(fs.UnstableStepSize, match="trajectories return"):
            fs.validate(problem, flow)


@pytest.mark.parametrize("make", [
    lambda: fs.FALD(1e-3, 2), lambda: fs.FALD(1e-3, 2, participation=fs.Participation(1, True)),
    lambda: fs.FAHMC(1e-2, 2, participation=fs.Participation(1, True)),
    lambda: fs.FAHMC(1e-2, 2, debias="fresh"),
    lambda: fs.FAHMC(1e-2, 2, debias="stale"), lambda: fs.DESGLD(1e-3, fs.network.complete(2)),
    lambda: fs.DESGHMC(1e-2, 5.0, fs.network.complete(2)), lambda: fs.StaleSGLD(1e-3, 3),
    lambda: fs.StaleSGHMC(1e-2, 5.0, 3)])
@pytest.mark.parametrize("dense", [False, True])
def test_ill_conditioned_clients_are_not_refused_falsely(make, dense):
    values = np.array([[8.0, 8e-12], [5.0, 9e-12]])
    hessians = values[:, :, None] * np.eye(2) if dense else values
    found = make().stability(fs.Quadratic(hessians, np.ones((2, 2))))
    assert found.stable and found.max_step_size > 0.01


# --- decentralized algorithms in many dimensions


def test_decentralized_momentum_is_judged_by_coordinate():
    algorithm, few = fs.DESGHMC(0.1, 2.0, NETWORK), np.arange(40)
    tracemalloc.start()
    found = algorithm.stability(WIDE)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 300e6
    each = [algorithm.stability(fs.Quadratic(WIDE.hessians[:, few], WIDE.minimizers[:, few]))]
    assert found.stable and found.radius >= each[0].radius and found.max_step_size <= each[0].max_step_size


@pytest.mark.parametrize("structure", ["diagonal", "dense"])
@pytest.mark.parametrize("network", [fs.network.ring(5), fs.network.complete(5)])
def test_the_limit_of_decentralized_momentum_is_where_the_radius_is_one(structure, network):
    problem = quadratic(5, 3, structure)
    for friction in (0.05, 1.0, 5.0):
        limit = fs.DESGHMC(1e-3, friction, network).stability(problem).max_step_size
        curvature = problem.weights[:, None, None] * problem.dense_hessians

        def radius(eta, friction=friction, curvature=curvature):
            size, keep = 15, 1.0 - eta * friction
            gossip, pull = np.kron(network, np.eye(3)), np.zeros((5, 3, 5, 3))
            pull[range(5), :, range(5)] = curvature
            pull = pull.reshape(size, size)
            return np.abs(np.linalg.eigvals(np.block([
                [gossip - eta**2 * pull, eta * keep * np.eye(size)],
                [-eta * pull, keep * np.eye(size)]]))).max()

        assert radius(limit * (1 - 1e-8)) < 1.0 < radius(limit * (1 + 1e-8))


def test_krylov_iterations_that_do_not_converge(monkeypatch):
    def never(*arguments, **options):
        raise search.arpack.ArpackNoConvergence("no convergence", np.zeros(0), np.zeros(0))

    problem, dense = quadratic(3, 2, "dense"), fs.DESGHMC(0.1, 2.0, fs.network.complete(3))
    expected = dense.stability(problem).radius
    monkeypatch.setattr("scipy.sparse.linalg.eigs", never)
    monkeypatch.setattr(search, "DENSE_SIZE", 4)
    assert dense.stability(problem).radius == expected
    monkeypatch.setattr(search, "LARGEST_DENSE", 4)
    with pytest.raises(ValueError, match=r"state of 12 numbers .* do not converge.*fewer clients"):
        dense.stability(problem)


def test_a_client_of_hardly_any_weight():
    problem = fs.Quadratic([[1.0], [2.0]], [[0.0], [1.0]], [1.0 - 1e-300, 1e-300])
    network = fs.network.complete(2)
    assert fs.DESGLD(0.1, network).stability(problem).max_step_size == pytest.approx(4 / 3)
    assert fs.DESGHMC(0.1, 1.0, network).stability(problem).stable
