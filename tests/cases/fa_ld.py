"""FA-LD: every kind of problem and option."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from problems import drawn_quadratic, quadratic, spd

import fedsim as fs
from cases import BOTH, POSTERIORS, SINGLE, Group, scheme_one, scheme_two, with_starts
from cases.taking_part import FA_LD_GROUPS, FA_LD_LAWS

SCHEDULES = ("constant", "listed", "harmonic")
DIMS, PLANE = (1, 2, 3, 5), (2,)
# (structure, noise, dimensions, sampled): each class of problem that compiled code sees, with a number for a
# client and with a client per lane. Noise is drawn alike for all structures: in two dimensions, and diagonal
GRID = [(structure, noise, dims, SCHEDULES[number % 3], sampled) for number, (
    structure, noise, dims, sampled) in enumerate((
        ("dense", None, DIMS, False), ("dense", None, DIMS, True), ("dense", "std", DIMS, False),
        ("dense", "std", PLANE, True), ("dense", "cov", PLANE, False), ("dense", "cov", PLANE, True),
        ("diagonal", None, DIMS, True), ("diagonal", None, DIMS, False), ("diagonal", "cov", DIMS, True),
        ("diagonal", "cov", DIMS, False), ("diagonal", "std", DIMS, False)))]


def step_size(kind, local_steps):
    if kind == "constant":
        return 0.11
    if kind == "harmonic":
        return fs.schedules.Harmonic(8.0, 0.9)
    return 0.02 + 0.1 * np.random.default_rng(7).random(3 * local_steps)


def options(structure, noise, dims, schedule, sampled, most=4):
    """Every dimension, number of local steps and amount of shared noise; the rest varies along.

    Of more than a few clients the normals are drawn in several groups.
    """
    rng = np.random.default_rng([len(structure), SCHEDULES.index(schedule), sampled])
    grid = itertools.product(dims, (1, 2, 3), (0.0, 0.3, 1.0))
    for number, (dim, local_steps, shared) in enumerate(grid):
        n_clients = (3, 1, most, 2)[number % 4]
        scheme_two = sampled and number % 3 == 1
        kind = "isotropic" if structure == "diagonal" and number % 5 == 2 else structure
        problem = drawn_quadratic(rng, kind, noise, n_clients, dim, weighted=not scheme_two,
                                  singular=number % 2 == 1)
        active = 1 + number % n_clients if scheme_two else 1 + number % 5 + most - 4
        participation = fs.Participation(active, not scheme_two) if sampled else None
        algorithm = fs.FALD(step_size(schedule, local_steps), local_steps, (1.0, 0.3)[number % 2],
                            shared, participation)
        yield problem, algorithm, (None, rng.standard_normal(dim), fs.Gaussian(
            rng.standard_normal(dim), spd(rng, 1, dim)[0]))[number % 3]


def rows_of_the_hessian():
    """Dense dimensions from 3 on take four, two or one row of the Hessian at a time."""
    rng = np.random.default_rng(3)
    for dim in (3, 4, 5, 6, 7, 8, 19):
        for participation in (None, fs.Participation(2, True)):
            problem = drawn_quadratic(rng, "dense", None, 3, dim, weighted=True)
            yield problem, fs.FALD(0.05, 2, 1.0, 0.3, participation), None


GROUPS = {f"{structure}, {noise}, {schedule}, {'sampled' if sampled else 'all'}": Group(
    partial(options, structure, noise, dims, schedule, sampled))
    for structure, noise, dims, schedule, sampled in GRID}
GROUPS["single precision"] = Group(partial(options, "dense", None, PLANE, "constant", False, 9), BOTH,
                                   average="square")
GROUPS["single precision, sampled"] = Group(partial(options, "diagonal", "cov", DIMS, "listed", True, 9),
                                            SINGLE)
GROUPS["rows of the Hessian"] = Group(rows_of_the_hessian)


def regression(numbers, participation=None):
    """Regressions, also with minibatches."""
    for problem in (POSTERIORS[number] for number in numbers):
        yield problem, fs.FALD(0.3 / problem.smoothness, 2, 0.8, 0.3, participation), None


GROUPS["regression"] = Group(partial(regression, (0, 1, 2, 3, 5, 6, 7, 8, 9)))
GROUPS["regression, a client per lane"] = Group(partial(regression, (0, 1, 2, 3, 5), scheme_one(2)))
GROUPS["regression, single precision"] = Group(partial(regression, (3,)), SINGLE)
GROUPS |= FA_LD_GROUPS

HARMONIC = fs.schedules.Harmonic(6.0, 0.5)
LAWS = with_starts({
    "independent noise": (quadratic(), fs.FALD(0.15, 3)),
    "partly shared noise": (quadratic(), fs.FALD(0.15, 3, shared_noise=0.4)),
    "fully shared noise": (quadratic(), fs.FALD(0.15, 3, shared_noise=1.0)),
    "one local step": (quadratic(), fs.FALD(0.2, 1, shared_noise=0.3)),
    "five local steps": (quadratic(), fs.FALD(0.1, 5, shared_noise=0.3)),
    "temperature": (quadratic(), fs.FALD(0.15, 3, 0.05, 0.3)),
    "high temperature": (quadratic(), fs.FALD(0.15, 2, 7.0)),
    "gradient noise": (quadratic(noise=1.5), fs.FALD(0.15, 3, 0.3, 0.5)),
    "gradient noise covariances": (quadratic(noise="cov"), fs.FALD(0.15, 3, 0.3)),
    "harmonic schedule": (quadratic(), fs.FALD(HARMONIC, 3, shared_noise=0.3)),
    "listed schedule": (quadratic(), fs.FALD(np.linspace(0.25, 0.01, 24), 3)),
    "one client": (quadratic(1, 2), fs.FALD(0.2, 2, shared_noise=0.5)),
    "two clients": (quadratic(2, 2), fs.FALD(0.2, 2)),
    "eight clients": (quadratic(8, 2), fs.FALD(0.15, 2, shared_noise=0.2)),
    "one dimension": (quadratic(3, 1), fs.FALD(0.15, 3, shared_noise=0.4)),
    "three dimensions": (quadratic(3, 3), fs.FALD(0.1, 3, shared_noise=0.4)),
    "five dimensions": (quadratic(2, 5, noise=0.5), fs.FALD(0.1, 2, shared_noise=0.4)),
    "nine dimensions": (quadratic(2, 9), fs.FALD(0.1, 2, shared_noise=0.4)),
    "diagonal": (quadratic(structure="diagonal"), fs.FALD(0.15, 3, shared_noise=0.4)),
    "diagonal, noise": (quadratic(structure="diagonal", noise=1.0), fs.FALD(0.15, 3)),
    "diagonal, covariances": (quadratic(structure="diagonal", noise="cov"), fs.FALD(0.15, 3)),
    "isotropic": (quadratic(structure="isotropic"), fs.FALD(0.15, 2, shared_noise=1.0)),
    "scheme I": (quadratic(), fs.FALD(0.15, 3, participation=scheme_one(2))),
    "scheme I, one client": (quadratic(), fs.FALD(0.15, 3, shared_noise=0.5, participation=scheme_one(1))),
    "scheme I, more than N": (quadratic(2), fs.FALD(0.15, 2, shared_noise=1.0, participation=scheme_one(5))),
    "scheme I, noise": (quadratic(noise=1.0), fs.FALD(HARMONIC, 2, 0.5, participation=scheme_one(3))),
    "scheme I, a lone client": (quadratic(1), fs.FALD(0.15, 3, participation=scheme_one(3))),
    "scheme II": (quadratic(4, weights="equal"), fs.FALD(0.15, 3, participation=scheme_two(2))),
    "scheme II, shared": (quadratic(4, weights="equal"), fs.FALD(0.15, 3, 0.5, 1.0, scheme_two(3))),
    "scheme II, one client": (quadratic(3, 1, weights="equal"), fs.FALD(
        0.15, 2, participation=scheme_two(1))),
    "scheme II, all clients": (quadratic(3, weights="equal"), fs.FALD(0.15, 2, 1.0, 0.3, scheme_two(3))),
    "scheme II, covariances": (quadratic(3, 3, "diagonal", "equal", "cov"), fs.FALD(
        np.linspace(0.2, 0.1, 16), 2, participation=scheme_two(2))),
}, {
    "one dimension": fs.Gaussian([3.0], [[2.0]]),
    "partly shared noise": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "diagonal": fs.Gaussian([1.0, 2.0], [0.25, 9.0]),
    "three dimensions": [5.0, -5.0, 0.0],
}) | FA_LD_LAWS
