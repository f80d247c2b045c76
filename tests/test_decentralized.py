"""The simulated DE-SGLD and DE-SGHMC: their slow twins, their exact laws, what they refuse."""

from __future__ import annotations

import itertools
from functools import partial

import naive_decentralized
import networkx
import numpy as np
import pytest
from examples_of import NETWORKS, regression
from problems import drawn_quadratic, quadratic, spd
from scores import all_scores

import fedsim as fs
import theory
from fedsim import network

SEED = 0xD1B54A32D192ED03
LANES = (0, 63, 65)  # 64 replicas in one leaf, and two in the next, which may be laid out otherwise
FIRST_ROUNDS = 3
TWINS = {fs.DESGLD: naive_decentralized.de_sgld, fs.DESGHMC: naive_decentralized.de_sghmc}


def assert_parity(problem, algorithm, start=None, noise="double", tolerance=1e-12, lanes=LANES):
    """The average of a replica, and every client where it is alone in its run."""
    run = fs.simulate(problem, algorithm, FIRST_ROUNDS, max(lanes) + 1, seed=SEED, start=start,
                      keep_final=True, allow_unstable=True, noise=noise, threads=1)
    twin = TWINS[type(algorithm)]
    for replica in lanes:
        slow = twin(problem, algorithm, FIRST_ROUNDS, SEED, replica, start, noise == "single").mean(axis=1)
        error = np.abs(run.final[replica] - slow[-1]).max() / max(1.0, np.abs(slow).max())
        assert error <= tolerance, f"replica {replica}: {problem}, {algorithm}, start={start}: {error:g}"
    alone = fs.simulate(problem, algorithm, FIRST_ROUNDS, 1, seed=SEED, start=start, covariance="none",
                        allow_unstable=True, noise=noise, threads=1)
    slow = twin(problem, algorithm, FIRST_ROUNDS, SEED, 0, start, noise == "single")
    for client, law in enumerate(alone.clients):
        error = np.abs(law.mean - slow[:, client]).max() / max(1.0, np.abs(slow).max())
        assert error <= tolerance, f"client {client}: {problem}, {algorithm}, start={start}: {error:g}"


# one schedule for each class of problem that compiled code sees, so that there is less to compile
SCHEDULES = dict(zip(itertools.product((True, False), (None, "std", "cov")), (
    "constant", "listed", "harmonic", "harmonic", "constant", "listed"), strict=True))


def make_step_size(kind):
    if kind == "constant":
        return 0.21
    return fs.schedules.Harmonic(4.0, 0.3) if kind == "harmonic" else np.array([0.3, 0.05, 0.2])


def options(kind, structure, noise, graph):
    """Odd and even dimensions and numbers of clients; starts, weights and velocities vary along."""
    rng = np.random.default_rng([len(structure), len(graph)])
    step = make_step_size(SCHEDULES[structure == "dense", noise])
    for number, (n_clients, dim) in enumerate(itertools.product((1, 2, 3, 4), (1, 2, 3))):
        problem = drawn_quadratic(rng, structure, noise, n_clients, dim, weighted=number % 3 != 0,
                                  singular=number % 2 == 1)
        mixing = NETWORKS[graph](n_clients)
        velocity = (None, rng.standard_normal(dim), rng.standard_normal((n_clients, dim)))[number // 3 % 3]
        algorithm = fs.DESGLD(step, mixing) if kind is fs.DESGLD else fs.DESGHMC(step, 1.7, mixing, velocity)
        yield problem, algorithm, (None, rng.standard_normal(dim), rng.standard_normal((n_clients, dim)),
                                   fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim)[0]))[number % 4]


PARITY = [(kind, structure, noise, graph) for kind in TWINS for (structure, noise), graph in zip(
    itertools.product(("dense", "diagonal", "isotropic"), (None, "std", "cov")), itertools.cycle(NETWORKS))]


@pytest.mark.parametrize(("kind", "structure", "noise", "graph"), PARITY)
def test_kernel_is_its_slow_twin(kind, structure, noise, graph):
    for problem, algorithm, start in options(kind, structure, noise, graph):
        assert_parity(problem, algorithm, start)


def test_single_precision_variates_too():
    for case in (PARITY[1], PARITY[11]):
        for problem, algorithm, start in options(*case):
            assert_parity(problem, algorithm, start, "single", 1e-5)


@pytest.mark.parametrize("kind", TWINS)
def test_products_in_groups_of_eight_and_coordinates_as_lanes(kind):
    """Dense dimensions from 8 on, and few replicas of many coordinates, are laid out otherwise."""
    rng = np.random.default_rng(3)
    mixing, extra = network.grid(2, 2), () if kind is fs.DESGLD else (1.3,)

    def algorithm(**options):
        return kind(0.1, *extra, mixing, **options)

    for dim in (8, 9):
        assert_parity(drawn_quadratic(rng, "dense", None, 4, dim, weighted=True), algorithm())
    wide = drawn_quadratic(rng, "diagonal", "std", 4, 6, weighted=True)
    for start in (None, rng.standard_normal((4, 6)), fs.Gaussian(np.ones(6), spd(rng, 1, 6)[0])):
        assert_parity(wide, algorithm(), start, lanes=(0, 2))
    if kind is fs.DESGHMC:
        assert_parity(wide, algorithm(start_velocity=rng.standard_normal((4, 6))), lanes=(0, 2))


@pytest.mark.parametrize("kind", TWINS)
def test_the_twins_are_not_the_same_code(kind):
    """A change of the slow twin is noticed: the comparison can fail."""
    problem = drawn_quadratic(np.random.default_rng(1), "dense", None, 3, 2, weighted=True)
    good, bad = (kind(s, *(() if kind is fs.DESGLD else (1.0,)), network.path(3)) for s in (0.2, 0.2 + 1e-9))
    run = fs.simulate(problem, good, FIRST_ROUNDS, 64, seed=SEED, keep_final=True)
    slow = TWINS[kind](problem, bad, FIRST_ROUNDS, SEED, 0).mean(axis=1)
    assert np.abs(run.final[0] - slow[-1]).max() > 1e-12


@pytest.mark.parametrize("noise", [None, "std", "cov"])
def test_friction_one_over_the_step_is_langevin(noise):
    """DE-SGHMC(eta, 1/eta) is DE-SGLD(eta^2) on the same noise: average and every client."""
    problem = drawn_quadratic(np.random.default_rng(2), "dense", noise, 4, 3, weighted=True)
    for graph, eta in itertools.product(NETWORKS.values(), (0.25, 0.4)):
        hmc, langevin = fs.DESGHMC(eta, 1.0 / eta, graph(4)), fs.DESGLD(eta**2, graph(4))
        one, other = (fs.simulate(problem, a, 20, 66, seed=3, keep_final=True) for a in (hmc, langevin))
        np.testing.assert_allclose(one.final, other.final, rtol=0, atol=1e-12 * np.abs(one.final).max())
        for first, second in zip(one.clients, other.clients, strict=True):
            np.testing.assert_allclose(first.mean, second.mean, rtol=0, atol=1e-12 * np.abs(first.mean).max())
            np.testing.assert_allclose(first.cov, second.cov, rtol=0, atol=1e-12 * np.abs(first.cov).max())


def test_one_client_is_langevin():
    """N = 1: DE-SGLD is FA-LD with one local step, on the same noise."""
    problem = drawn_quadratic(np.random.default_rng(4), "dense", "cov", 1, 3, weighted=False)
    one, other = (fs.simulate(problem, a, 10, 66, seed=5, keep_final=True).final
                  for a in (fs.DESGLD(0.1, [[1.0]]), fs.FALD(0.1)))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(one).max())


ROUNDS, REPLICAS, RECORD = 8, 40_000, (1, 2, 4)
HARMONIC = fs.schedules.Harmonic(4.0, 0.3)
GRAPHS = {**NETWORKS, "grid": lambda n: network.grid(2, n // 2),
          "random": lambda n: network.metropolis(networkx.gnp_random_graph(n, 0.5, seed=2))}
CASES = {f"{name}, {graph}": (quadratic(6, 2, noise=noise), make(GRAPHS[graph](6)))
         for graph in GRAPHS for name, noise, make in (
             ("Langevin", 2.0, lambda w: fs.DESGLD(0.3, w)),
             ("Hamiltonian", "cov", lambda w: fs.DESGHMC(0.4, 1.5, w)))}
CASES |= {
    "one client": (quadratic(1), fs.DESGLD(0.2, [[1.0]])),
    "exact gradients": (quadratic(4, 3), fs.DESGLD(0.2, network.star(4))),
    "harmonic": (quadratic(4, noise=1.0), fs.DESGLD(HARMONIC, network.ring(4))),
    "listed": (quadratic(4, noise="cov"), fs.DESGHMC(np.linspace(0.4, 0.1, ROUNDS), 2.0, network.path(4))),
    "diagonal": (quadratic(4, 3, "diagonal", noise="cov"), fs.DESGLD(0.2, network.path(4))),
    "isotropic": (quadratic(5, 2, "isotropic", noise=1.0), fs.DESGHMC(0.3, 1.0, network.star(5))),
    "start velocities": (quadratic(3, 2), fs.DESGHMC(0.3, 1.0, network.path(3), [[3, 0], [0, -2], [1, 1]])),
    "a start each": (quadratic(3, 2), fs.DESGLD(0.3, network.path(3))),
    "a random start": (quadratic(3, 2), fs.DESGHMC(0.3, 1.0, network.path(3))),
    "one dimension": (quadratic(4, 1), fs.DESGHMC(0.3, 0.5, network.star(4), [2.0])),
    "equal clients": (fs.Quadratic(np.ones((5, 2)), np.arange(10.0).reshape(5, 2)),
                      fs.DESGLD(1.0, network.ring(5))),
}
STARTS = {"a start each": [[6.0, 0.0], [-6.0, 3.0], [0.0, -6.0]],  # the average is an exact number
          "a random start": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
          "equal clients": fs.Gaussian([3.0, -1.0], [2.0, 0.5])}


@pytest.mark.parametrize("name", CASES)
def test_replicas_follow_the_exact_law(name, alarm):
    problem, algorithm = CASES[name]
    start = STARTS.get(name)
    law = theory.exact_law(problem, algorithm, ROUNDS, start=start, record=RECORD)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=51, start=start, record=RECORD)
    alarm.assert_normal(all_scores(run, law), name)


regression = partial(regression, sizes=(6, 9, 12, 7), seed=6)
MINIBATCHES = {
    "with replacement": (regression(3, True), fs.DESGLD(0.012, network.ring(4))),
    "without replacement": (regression(3, False), fs.DESGLD(0.015, network.star(4))),
    "single data": (regression(1, True), fs.DESGLD(0.006, network.complete(4))),
    "sums": (regression(4, False, "batch_sum"), fs.DESGLD(0.03, network.path(4))),
    "Hamiltonian, with replacement": (regression(3, True, weights=[0.1, 0.2, 0.3, 0.4]),
                                      fs.DESGHMC(0.1, 2.0, network.ring(4))),
    "Hamiltonian, without replacement": (regression(5, False), fs.DESGHMC(0.12, 3.0, network.path(4))),
    "Hamiltonian, sums": (regression(2, True, "batch_sum"), fs.DESGHMC(0.15, 1.0, network.disconnected(4))),
}


@pytest.mark.parametrize("name", MINIBATCHES)
def test_replicas_with_minibatches_follow_their_moments(name, alarm):
    """Data-dependent noise, which is not Gaussian: standard errors from leaves."""
    problem, algorithm = MINIBATCHES[name]
    law = theory.exact_law(problem, algorithm, ROUNDS, start=[3.0, -2.0], record=RECORD)
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=52, start=[3.0, -2.0], record=RECORD)
    assert not law.is_gaussian
    alarm.assert_normal(all_scores(run, law), name)


def test_minibatch_noise_shows(alarm):
    """The law with exact gradients is not that of minibatches, nor is replacement immaterial."""
    problem, algorithm = MINIBATCHES["without replacement"]
    run = fs.simulate(problem, algorithm, ROUNDS, REPLICAS, seed=52, start=[3.0, -2.0])
    for other in (regression(3, True), regression(4, False)):
        law = theory.exact_law(other, algorithm, ROUNDS, start=[3.0, -2.0])
        alarm.must_fail(all_scores(run, law), "another minibatch")


def test_sparse_networks_are_run_sparsely():
    """A ring's kernel holds three weights a client, and a step costs by edges."""
    algorithm = fs.DESGLD(0.1, network.ring(1000))
    assert len(algorithm._gossip().columns) == len(algorithm._gossip().weights) == 3000
    problem = fs.Quadratic.from_components(np.ones(1000), np.zeros((1000, 1)))
    assert algorithm.costs(problem, 10) == {"communications": 10, "gradient_evaluations": 10_000,
                                            "floats_sent": 20_000}


def metropolis(graph, itself):
    """Metropolis weights where degrees count the node `itself` so many times."""
    links = networkx.to_numpy_array(graph)
    degree = links.sum(axis=1) + itself
    weights = links / np.maximum.outer(degree, degree)
    return weights + np.diag(1.0 - weights.sum(axis=1))


@pytest.mark.parametrize("graph", [networkx.cycle_graph(4), networkx.path_graph(3), networkx.star_graph(5)])
def test_degrees_without_the_node_itself_are_refused(graph):
    """Metropolis weights that forget the node itself leave the best connected ones no weight of their own."""
    right = network.check_mixing(network.metropolis(graph))
    np.testing.assert_allclose(metropolis(graph, 1), right, rtol=1e-14)
    with pytest.raises(ValueError, match="must be greater than 0"):
        network.check_mixing(metropolis(graph, 0))


BAD = {
    "step_size": (lambda w: fs.DESGLD(0.0, w), "step_size=0.0 must be greater than 0"),
    "step_size nan": (lambda w: fs.DESGHMC(np.nan, 1.0, w), "step_size=nan must be finite"),
    "friction": (lambda w: fs.DESGHMC(0.1, 0.0, w), "friction=0.0 must be greater than 0"),
    "too much friction": (lambda w: fs.DESGHMC(0.5, 3.0, w), "friction=3 must be at most 1/step_size=2"),
    "velocity": (lambda w: fs.DESGHMC(0.1, 1.0, w, [np.inf, 0.0]), r"start_velocity\[0\]=inf"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parameters_are_refused(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        make(network.ring(3))


def test_bad_starts_are_refused():
    problem, mixing = quadratic(3, 2), network.ring(3)
    for start in (np.zeros((2, 2)), np.zeros((3, 3)), np.zeros(3), np.zeros((1, 3, 2))):
        with pytest.raises(ValueError, match="start has shape"):
            fs.simulate(problem, fs.DESGLD(0.1, mixing), 2, 64, seed=0, start=start)
    for velocity in (np.zeros(3), np.zeros((2, 2)), np.zeros((3, 3))):
        with pytest.raises(ValueError, match="start_velocity has shape"):
            fs.simulate(problem, fs.DESGHMC(0.1, 1.0, mixing, velocity), 2, 64, seed=0)
    with pytest.raises(ValueError, match="start has shape"):
        fs.simulate(problem, fs.FALD(0.1), 2, 64, seed=0, start=np.zeros((3, 2)))
    with pytest.raises(fs.UnstableStepSize, match="DE-SGLD map of all clients"):
        fs.simulate(problem, fs.DESGLD(50.0, mixing), 2, 64, seed=0)
