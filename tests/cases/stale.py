"""Stale SGLD and SGHMC: every kind of problem and of ages."""

from __future__ import annotations

from functools import partial

import numpy as np
from examples_of.stale import mean_model
from problems import quadratic

import fedsim as fs
from cases import Example, Group

AGES = {"fresh": 0, "fixed": 3, "listed": [0, 1, 0, 3, 2, 5, 0], "workers": fs.Workers(3, seed=2)}
PROBLEMS = {"dense": quadratic(3, 3, noise="cov"), "diagonal": quadratic(2, 4, "diagonal", noise=0.7),
            "one": quadratic(2, 1, noise=0.5), "mean": mean_model(None), "batch": mean_model(5),
            "batch with replacement": mean_model(6, True),
            "sum of a batch": mean_model(2, False, "batch_sum")}


def options(kind, problem):
    """All kinds of ages, and a start."""
    h = 0.01 if hasattr(problem, "data") else 0.1
    for ages, start in zip(AGES.values(), (None, 1.0, 2.0, None), strict=True):
        algorithm = (fs.StaleSGLD(h, ages) if kind is fs.StaleSGLD
                     else fs.StaleSGHMC(np.linspace(h, 2 * h, 7), 3.0, ages))
        yield problem, algorithm, None if start is None else np.full(problem.dim, start)


def schedules_of_their_own():
    """Replica r has schedule r modulo m, in blocks of any size."""
    yield (quadratic(2, 4, "diagonal", noise=0.7),
           fs.StaleSGLD(0.1, fs.Workers(4, "lognormal", seed=2, schedules=3)), None)


GROUPS = {kind: {name: Group(partial(options, kind, problem), single=name == "one", n_rounds=7)
                 for name, problem in PROBLEMS.items()} for kind in (fs.StaleSGLD, fs.StaleSGHMC)}
GROUPS[fs.StaleSGLD] |= {
    "schedules": Group(schedules_of_their_own, replicas=(0, 1, 2, 69), n_rounds=9),
    "schedules, coordinates as lanes": Group(schedules_of_their_own, replicas=(0, 1, 2), n_rounds=9)}

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
