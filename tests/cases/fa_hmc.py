"""FA-HMC: every kind of problem, debiasing and option."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from examples_of import posterior
from problems import contrasted, drawn_quadratic, quadratic, spd

import fedsim as fs
from cases import ALONE, BOTH, POSTERIORS, SINGLE, Group, scheme_one, scheme_two, with_starts
from cases.taking_part import FA_HMC_GROUPS, FA_HMC_LAWS

DEBIAS = [(None, "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed"), ("fresh", "none")]
SCHEDULES = ("constant", "listed", "harmonic")


def step_size(kind, local_steps):
    if kind == "constant":
        return 0.21
    if kind == "harmonic":
        return fs.schedules.Harmonic(4.0, 0.3)
    return 0.05 + 0.2 * np.random.default_rng(7).random(3 * local_steps)


def options(structure, noise, dims, schedule, sampled, most=4):
    """Every debiasing, leapfrog count and dimension; shared noise and the rest vary along, as for FA-LD."""
    rng = np.random.default_rng([len(structure), SCHEDULES.index(schedule), sampled])
    for number, ((debias, first), leaps, dim) in enumerate(itertools.product(DEBIAS, (1, 2, 5), dims)):
        n_clients, local_steps = (3, 2, most, 1)[number % 4], 1 + number // 2 % 3
        scheme_two = sampled and number % 3 == 1
        kind = "isotropic" if structure == "diagonal" and number % 5 == 2 else structure
        problem = drawn_quadratic(rng, kind, noise, n_clients, dim, weighted=not scheme_two,
                                  singular=number % 2 == 1)
        active = 1 + number % n_clients if scheme_two else 1 + number % 4 + most - 4
        participation = fs.Participation(active, not scheme_two) if sampled else None
        shared = (0.0, 0.5, 1.0)[(number + number // 9) % 3]
        algorithm = fs.FAHMC(step_size(schedule, local_steps), leaps, local_steps, shared, debias, first,
                             participation)
        start = (None, rng.standard_normal(dim),
                 fs.Gaussian(rng.standard_normal(dim), spd(rng, 1, dim)[0]))[number % 3]
        yield problem, algorithm, start


DIMS, PLANE = (1, 2, 3), (2,)
# (structure, noise, dimensions, sampled), as for FA-LD
GRID = [(structure, noise, dims, SCHEDULES[number % 3], sampled) for number, (
    structure, noise, dims, sampled) in enumerate((
        ("dense", None, DIMS, False), ("dense", None, DIMS, True), ("dense", "std", PLANE, False),
        ("dense", "std", PLANE, True), ("dense", "cov", PLANE, False), ("dense", "cov", PLANE, True),
        ("diagonal", None, DIMS, True), ("diagonal", None, DIMS, False), ("diagonal", "std", DIMS, False)))]


def dense(debias):
    """Products in groups of eight, from dimension 8 on."""
    problem = drawn_quadratic(np.random.default_rng(3), "dense", None, 3, 9, weighted=True)
    yield problem, fs.FAHMC(0.1, 3, 2, 0.3, debias), None


def wide(debias):
    """Few replicas of many coordinates."""
    problem = drawn_quadratic(np.random.default_rng(3), "diagonal", "std", 3, 6, weighted=True)
    yield problem, fs.FAHMC(0.1, 3, 2, 0.3, debias), None


GROUPS = {f"{structure}, {noise}, {schedule}, {'sampled' if sampled else 'all'}": Group(
    partial(options, structure, noise, dims, schedule, sampled))
    for structure, noise, dims, schedule, sampled in GRID}
GROUPS["single precision"] = Group(partial(options, "dense", None, PLANE, "constant", False, 9), BOTH,
                                   average="square")
GROUPS["single precision, sampled"] = Group(partial(options, "diagonal", "cov", DIMS, "listed", True, 9),
                                            SINGLE)
GROUPS |= {f"groups of eight, {debias}": Group(partial(dense, debias)) for debias in (None, "stale")}
GROUPS |= {f"coordinates as lanes, {debias}": Group(partial(wide, debias), replicas=ALONE)
           for debias in (None, "stale")}


def regression():
    """All 2K - 1 evaluations of a local update draw their own minibatch and noise."""
    problem = POSTERIORS[4]
    yield problem, fs.FAHMC(0.3 / np.sqrt(problem.smoothness), 3, 2, 0.4), None


def debiased_regression():
    """The corrections are full gradients, at an anchor, of the clients that take part."""
    problem = posterior("logistic", 3)
    for participation in (None, scheme_one(2)):
        yield problem, fs.FAHMC(0.2 / np.sqrt(problem.smoothness), 2, 2, 0.4, "fresh",
                                participation=participation), None


GROUPS["regression"] = Group(regression, n_rounds=2)
GROUPS["debiased regression"] = Group(debiased_regression)
GROUPS |= FA_HMC_GROUPS

HARMONIC = fs.schedules.Harmonic(4.0, 0.15)
NOISY = contrasted(3, [0.5, 0.3, 0.2])  # tenfold curvatures: without them debiasing hardly shows
STEEP = fs.Quadratic(NOISY.hessians, NOISY.minimizers, NOISY.weights)
LAWS = with_starts({
    "independent momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.0)),
    "partly shared momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.5)),
    "shared momenta": (quadratic(), fs.FAHMC(0.25, 3, 2, 1.0)),
    "one leapfrog step": (quadratic(), fs.FAHMC(0.4, 1, 4, 0.3)),
    "two leapfrog steps": (quadratic(3, 3), fs.FAHMC(0.3, 2, 3, 0.3)),
    "seven leapfrog steps": (quadratic(), fs.FAHMC(0.15, 7, 2, 0.3)),
    "one local update": (quadratic(), fs.FAHMC(0.25, 4, 1, 0.3)),
    "gradient noise": (quadratic(noise=1.5), fs.FAHMC(0.25, 3, 2, 0.0)),
    "gradient noise, half shared": (quadratic(noise="cov"), fs.FAHMC(0.25, 3, 2, 0.5)),
    "gradient noise, shared": (quadratic(noise="cov"), fs.FAHMC(0.25, 4, 2, 1.0)),
    "schedule": (quadratic(noise=1.0), fs.FAHMC(HARMONIC, 3, 3, 0.5)),
    "listed schedule": (quadratic(), fs.FAHMC(np.linspace(0.3, 0.05, 12), 3, 2, 0.5)),
    "one client": (quadratic(1), fs.FAHMC(0.25, 3, 2, 0.5)),
    "one dimension": (quadratic(4, 1), fs.FAHMC(0.25, 3, 2, 0.5)),
    "diagonal": (quadratic(structure="diagonal", noise=1.0), fs.FAHMC(0.3, 3, 2, 0.5)),
    "stale": (STEEP, fs.FAHMC(0.2, 3, 3, 0.0, "stale")),
    "stale, exact first round": (STEEP, fs.FAHMC(0.2, 3, 3, 0.5, "stale", "exact")),
    "stale, first round as printed": (STEEP, fs.FAHMC(0.2, 3, 3, 1.0, "stale", "printed")),
    "stale, gradient noise": (NOISY, fs.FAHMC(0.2, 3, 3, 0.5, "stale")),
    "stale, schedule": (STEEP, fs.FAHMC(fs.schedules.Harmonic(5.0, 0.1), 3, 3, 0.5, "stale")),
    "stale, diagonal": (quadratic(structure="diagonal"), fs.FAHMC(0.2, 3, 2, 0.5, "stale")),
    "fresh": (STEEP, fs.FAHMC(0.2, 3, 3, 0.0, "fresh")),
    "fresh, gradient noise": (NOISY, fs.FAHMC(0.2, 3, 3, 1.0, "fresh")),
    "scheme I": (quadratic(), fs.FAHMC(0.25, 3, 2, 0.0, participation=scheme_one(2))),
    "scheme I, gradient noise": (quadratic(noise="cov"), fs.FAHMC(
        0.25, 3, 2, 0.5, participation=scheme_one(2))),
    "scheme II": (quadratic(4, weights="equal"), fs.FAHMC(0.25, 3, 2, 1.0, participation=scheme_two(2))),
    "scheme II, gradient noise": (quadratic(4, weights="equal", noise=1.0), fs.FAHMC(
        0.25, 3, 2, 0.5, participation=scheme_two(3))),
    "stale, scheme I": (STEEP, fs.FAHMC(0.2, 3, 3, 0.5, "stale", participation=scheme_one(3))),
    "stale, scheme II": (quadratic(4, weights="equal", noise=1.0), fs.FAHMC(
        0.1, 3, 2, 0.0, "stale", "exact", participation=scheme_two(2))),
    "fresh, scheme I": (STEEP, fs.FAHMC(0.2, 3, 3, 1.0, "fresh", participation=scheme_one(2))),
}, {
    "partly shared momenta": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "stale": fs.Gaussian([3.0, -1.0], [[2.0, -1.2], [-1.2, 1.0]]),
    "stale, first round as printed": [4.0, -3.0],
    "fresh": [4.0, -3.0],
    "scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
    "stale, scheme I": fs.Gaussian([0.0, 5.0], [[0.5, 0.2], [0.2, 4.0]]),
}) | FA_HMC_LAWS
