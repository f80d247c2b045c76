"""DE-SGLD and DE-SGHMC: every kind of problem, network and start."""

from __future__ import annotations

import itertools
from functools import partial

import networkx
import numpy as np
from examples_of import NETWORKS, regression
from problems import drawn_quadratic, quadratic, spd

import fedsim as fs
from cases import ALONE, BOTH, SINGLE, Example, Group, with_starts
from fedsim import network

SCHEDULES = itertools.cycle(("constant", "listed", "harmonic"))
# (structure, noise): dimensions. Of the two algorithms one meets noise in two dimensions, the other diagonal
PROBLEMS = {
    fs.DESGLD: {("dense", None): (1, 2, 3), ("diagonal", None): (1, 2, 3), ("isotropic", None): (1, 2, 3),
                ("diagonal", "cov"): (1, 2, 3), ("isotropic", "cov"): (1, 2, 3)},
    fs.DESGHMC: {("dense", None): (1, 2, 3), ("diagonal", None): (1, 3), ("isotropic", None): (1, 3),
                 ("diagonal", "std"): (1, 2, 3), ("isotropic", "std"): (1, 2, 3), ("dense", "cov"): (2,)}}
"""With diagonal Hessians, no noise and an even dimension a lone replica would have coordinates as lanes."""


def step_size(kind):
    if kind == "constant":
        return 0.21
    return fs.schedules.Harmonic(4.0, 0.3) if kind == "harmonic" else np.array([0.3, 0.05, 0.2])


def options(kind, structure, noise, dims, schedule):
    """Odd and even dimensions and numbers of clients; networks, starts, weights, velocities vary along."""
    rng = np.random.default_rng([len(structure), len(str(noise))])
    eta, graphs = step_size(schedule), itertools.cycle(NETWORKS.values())
    for number, (n_clients, dim) in enumerate(itertools.product((1, 2, 3, 4), dims)):
        problem = drawn_quadratic(rng, structure, noise, n_clients, dim, weighted=number % 3 != 0,
                                  singular=number % 2 == 1)
        velocity = (None, rng.standard_normal(dim), rng.standard_normal((n_clients, dim)))[number // 3 % 3]
        for start in (None, rng.standard_normal(dim), rng.standard_normal((n_clients, dim)),
                      fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim)[0])):
            mixing = next(graphs)(n_clients)
            yield problem, fs.DESGLD(eta, mixing) if kind is fs.DESGLD else fs.DESGHMC(
                eta, 1.7, mixing, velocity), start


def algorithm(kind, **velocity):
    """On a grid of two by two clients."""
    return kind(0.1, *(() if kind is fs.DESGLD else (1.3,)), network.grid(2, 2), **velocity)


def dense(kind):
    """Products in groups of eight, from dimension 8 on."""
    rng = np.random.default_rng(3)
    for dim in (8, 9):
        yield drawn_quadratic(rng, "dense", None, 4, dim, weighted=True), algorithm(kind), None


def wide(kind):
    """Few replicas of many coordinates."""
    rng = np.random.default_rng(3)
    problem = drawn_quadratic(rng, "diagonal", None if kind is fs.DESGLD else "std", 4, 6, weighted=True)
    for start in (None, rng.standard_normal((4, 6)), fs.Gaussian(np.ones(6), spd(rng, 1, 6)[0])):
        yield problem, algorithm(kind), start
    if kind is fs.DESGHMC:
        yield problem, algorithm(kind, start_velocity=rng.standard_normal((4, 6))), None


GROUPS = {kind: {f"{structure}, {noise}": Group(partial(
    options, kind, structure, noise, dims, next(SCHEDULES)))
    for (structure, noise), dims in PROBLEMS[kind].items()} | {
    "single precision": Group(partial(options, kind, "dense", "std", (2,), "harmonic"), BOTH,
                              average="square"),
    **({"single precision, odd dimensions": Group(partial(
        options, kind, "diagonal", "cov", (1, 3), "listed"), SINGLE)} if kind is fs.DESGLD else {}),
    "groups of eight": Group(partial(dense, kind)),
    "coordinates as lanes": Group(partial(wide, kind), replicas=ALONE)}
    for kind in (fs.DESGLD, fs.DESGHMC)}

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
    "listed": (quadratic(4, noise="cov"), fs.DESGHMC(np.linspace(0.4, 0.1, 8), 2.0, network.path(4))),
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
ALL = with_starts(CASES, STARTS) | {
    name: Example(*pair, [3.0, -2.0]) for name, pair in MINIBATCHES.items()}
LAWS = {kind: {name: example for name, example in ALL.items() if type(example.algorithm) is kind}
        for kind in GROUPS}
