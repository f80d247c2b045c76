"""Stale SGLD and SGHMC: every kind of problem and of ages."""

from __future__ import annotations

from functools import partial

import numpy as np
from examples_of.stale import mean_model
from problems import quadratic

import fedsim as fs
from cases import BOTH, SINGLE, Example, Group

AGES = {"fresh": 0, "fixed": 3, "listed": [0, 1, 0, 3, 2, 5, 0], "workers": fs.Workers(3, seed=2)}
FIXED, LISTED = ("fresh", "fixed"), ("listed", "workers")
PROBLEMS = {"dense": quadratic(3, 2, noise="cov"), "dense, one noise": quadratic(3, 2, noise=0.7),
            "diagonal": quadratic(2, 4, "diagonal"), "one": quadratic(2, 1, noise=0.5),
            "mean": mean_model(None), "batch": mean_model(5), "batch with replacement": mean_model(6, True),
            "sum of a batch": mean_model(2, False, "batch_sum")}
# a gradient is that of an old point, whatever is known of its age: not every problem meets every kind
AGES_OF = {fs.StaleSGLD: {"dense": FIXED, "dense, one noise": LISTED, "one": FIXED},
           fs.StaleSGHMC: {"dense": FIXED, "one": LISTED, "diagonal": LISTED, "mean": LISTED}}


def options(kind, problem, names):
    """These kinds of ages, and a start."""
    h = 0.01 if hasattr(problem, "data") else 0.1
    for name, start in zip(AGES, (None, 1.0, 2.0, None), strict=True):
        if name not in names:
            continue
        ages = AGES[name]
        algorithm = (fs.StaleSGLD(h, ages) if kind is fs.StaleSGLD
                     else fs.StaleSGHMC(np.linspace(h, 2 * h, 7), 3.0, ages))
        yield problem, algorithm, None if start is None else np.full(problem.dim, start)


def schedules_of_their_own(problem):
    """Replica r has schedule r modulo m, in blocks of any size."""
    yield problem, fs.StaleSGLD(0.1, fs.Workers(4, "lognormal", seed=2, schedules=3)), None


GROUPS = {kind: {
    name: Group(partial(options, kind, problem, AGES_OF[kind].get(name, tuple(AGES))), n_rounds=7)
    for name, problem in PROBLEMS.items() if kind is fs.StaleSGLD or name != "dense, one noise"} | {
    "single precision": Group(partial(options, kind, PROBLEMS["dense, one noise"], FIXED), BOTH, n_rounds=7,
                              average="square")}
    for kind in (fs.StaleSGLD, fs.StaleSGHMC)}
GROUPS[fs.StaleSGLD] |= {
    "single precision, one": Group(partial(options, fs.StaleSGLD, PROBLEMS["one"], FIXED), SINGLE,
                                   n_rounds=7),
    "schedules": Group(partial(schedules_of_their_own, PROBLEMS["dense, one noise"]),
                       replicas=(0, 1, 2, 69), n_rounds=9),
    "schedules, coordinates as lanes": Group(partial(
        schedules_of_their_own, quadratic(2, 4, "diagonal", noise=0.7)), replicas=(0, 1, 2), n_rounds=9)}

WORKERS = fs.Workers(4, "exponential", seed=7)
CASES = {
    "fresh": (quadratic(), fs.StaleSGLD(0.2), None),
    "fixed": (quadratic(noise="cov"), fs.StaleSGLD(0.1, 3), [3.0, -1.0]),
    "fixed, one dimension": (quadratic(3, 1, noise=1.0), fs.StaleSGLD(0.15, 2), fs.Gaussian([2.0], [[0.5]])),
    "listed": (quadratic(noise=1.0), fs.StaleSGLD(0.1, [0, 1, 0, 2, 4, 1, 6, 3, 2, 0, 5, 11]), None),
    "workers": (quadratic(noise=1.0), fs.StaleSGLD(0.05, WORKERS), [3.0, 3.0]),
    "workers with a cap": (quadratic(structure="diagonal"), fs.StaleSGLD(0.1, fs.Workers(
        6, "pareto", cap=5, seed=1)), None),
    "schedule": (quadratic(3, 3), fs.StaleSGLD(np.linspace(0.2, 0.02, 12), 2), None),
    "momentum": (quadratic(noise="cov"), fs.StaleSGHMC(0.2, 2.0, 2), fs.Gaussian([1.0, 2.0], [0.25, 4.0])),
    "momentum, workers": (quadratic(3, 3, noise=0.5), fs.StaleSGHMC(0.15, 3.0, WORKERS), None),
    "minibatches": (mean_model(3), fs.StaleSGLD(0.008, 2), [1.0]),
    "minibatches with replacement": (mean_model(1, True), fs.StaleSGLD(0.008, WORKERS), None),
    "minibatches, workers": (mean_model(3), fs.StaleSGLD(0.008, WORKERS), [1.0]),
    "minibatches, momentum": (mean_model(3), fs.StaleSGHMC(0.05, 4.0, WORKERS), [1.0]),
    "a schedule for each": (quadratic(2, 2, noise=1.0), fs.StaleSGLD(0.05, fs.Workers(
        4, seed=3, schedules=5)), [3.0, 1.0]),
    "many schedules": (mean_model(3), fs.StaleSGHMC(0.05, 4.0, fs.Workers(3, seed=1, schedules=64)), [1.0]),
    "sum of a minibatch": (mean_model(4, False, "batch_sum"), fs.StaleSGHMC(0.08, 4.0, 1), None),
}
LAWS = {kind: {name: Example(*given) for name, given in CASES.items() if type(given[1]) is kind}
        for kind in GROUPS}
