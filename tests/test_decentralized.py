"""DE-SGLD and DE-SGHMC: limiting cases, what minibatches add, what is refused."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest
from cases.decentralized import LAWS, regression
from examples_of import NETWORKS
from problems import drawn_quadratic, quadratic
from scores import all_scores

import fedsim as fs
import theory
from fedsim import network


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


def test_minibatch_noise_shows(alarm):
    """The law with exact gradients is not that of minibatches, nor is replacement immaterial."""
    problem, algorithm, start = LAWS[fs.DESGLD]["without replacement"]
    run = fs.simulate(problem, algorithm, 8, 40_000, seed=52, start=start)
    assert not run.is_gaussian
    for other in (regression(3, True), regression(4, False)):
        law = theory.exact_law(other, algorithm, 8, start=start)
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
