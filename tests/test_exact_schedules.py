"""Rounds whose step sizes differ: made many at a time and composed, against one by one."""

from __future__ import annotations

import numpy as np
import pytest
from examples_of import gaussian_start, make_problem

import fedsim as fs
import theory
from theory.exact.federated import chain, rounds
from theory.exact.gossip import stepped

N_ROUNDS = 150
HARMONIC = fs.schedules.Harmonic(offset=6.0, slope=0.3)
LISTED = np.linspace(0.04, 0.005, 2 * N_ROUNDS)
FEW = fs.Participation(2, True)
ALGORITHMS = {
    "fa-ld": lambda size, n: fs.FALD(size, local_steps=2, shared_noise=0.4),
    "drawn": lambda size, n: fs.FALD(size, local_steps=2, participation=FEW),
    "fa-hmc": lambda size, n: fs.FAHMC(size, 2, 2, shared_noise=0.4),
    "debiased": lambda size, n: fs.FAHMC(size, 1, 1, debias="stale", first_round="none"),
    "de-sgld": lambda size, n: fs.DESGLD(size, fs.network.ring(n)),
    "de-sghmc": lambda size, n: fs.DESGHMC(size, 2.0, fs.network.ring(n)),
}


def laws(problem, algorithm, record, start):
    """Tables of the average's law and of the clients'."""
    law = theory.exact_law(problem, algorithm, N_ROUNDS, start=start, record=record)
    return [table for one in (law, *law.clients) for table in (one.mean, one.cov)]


def one_at_a_time(monkeypatch):
    for room in (chain, stepped):
        monkeypatch.setattr(room, "TOGETHER", 1)
    monkeypatch.setattr(stepped, "FEWEST", 1)


@pytest.mark.parametrize("noise", [None, 0.7, "covariances"])
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_batches_and_compositions(name, structure, noise, monkeypatch):
    """Wherever a batch ends and whichever rounds are recorded: no two steps are equal."""
    problem, start = make_problem(structure, noise=noise), gaussian_start(2)
    for size in (HARMONIC, LISTED):
        algorithm = ALGORITHMS[name](size, problem.n_clients)
        with monkeypatch.context() as context:
            one_at_a_time(context)
            every = laws(problem, algorithm, range(1, N_ROUNDS + 1), start)
        record = [1, 2, 7, 63, 64, 65, 129, N_ROUNDS]
        for together in (2, 7, 64):
            with monkeypatch.context() as context:
                for room in (chain, stepped):
                    context.setattr(room, "TOGETHER", together)
                context.setattr(stepped, "FEWEST", 1)
                for found, wanted in zip(laws(problem, algorithm, record, start), every, strict=True):
                    scale = max(1.0, np.abs(wanted).max())
                    np.testing.assert_allclose(found, wanted[[0, *record]], rtol=0, atol=1e-13 * scale)


def test_little_room(monkeypatch):
    """Rounds and their local steps that do not fit together are made in pieces."""
    problem, start = make_problem("dense"), gaussian_start(2)
    algorithm = fs.FALD(HARMONIC, local_steps=5, shared_noise=0.4)
    wanted = laws(problem, algorithm, [3, N_ROUNDS], start)
    for room in (1, 30, 200):
        with monkeypatch.context() as context:
            context.setattr(chain, "BATCH", room)
            context.setattr(rounds, "BATCH", room)
            for one, other in zip(laws(problem, algorithm, [3, N_ROUNDS], start), wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("noise", [None, "covariances"])
@pytest.mark.parametrize("structure", ["dense", "diagonal"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_round_recorded(name, structure, noise):
    """Powers held together where rounds follow each other, against single powers, wherever a run begins."""
    problem, start = make_problem(structure, noise=noise), gaussian_start(2)
    algorithm = ALGORITHMS[name](0.03, problem.n_clients)
    every = laws(problem, algorithm, range(1, N_ROUNDS + 1), start)
    for record in ([40], [1, 2, *range(20, 25), 30, *range(60, N_ROUNDS)], range(5, 80)):
        recorded = sorted({0, N_ROUNDS, *record})
        for found, wanted in zip(laws(problem, algorithm, record, start), every, strict=True):
            np.testing.assert_allclose(found, wanted[recorded], rtol=0,
                                       atol=1e-13 * max(1.0, np.abs(wanted).max()))
