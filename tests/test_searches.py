"""Searches of step sizes: laws made together find what step sizes tried one after the other do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.exact.families import family_of
from theory.recursions.catalogue import first_within, recursion
from theory.tuning import searching, telling
from theory.tuning.best import best_step_sizes
from theory.tuning.first_rounds_together import Crossings, goal_of
from theory.tuning.searching import Trial, with_step


def dense(n_clients, dim, seed, **rest):
    draws = np.random.default_rng(seed)
    roots = draws.standard_normal((n_clients, dim, dim))
    return fs.Quadratic(roots @ roots.swapaxes(1, 2) / dim + 0.5 * np.eye(dim),
                        draws.standard_normal((n_clients, dim)), **rest)


TILTED = np.array([[2.0, 1.0], [1.0, 1.0]])
UNLIKE = fs.Quadratic([[1.0, 4.0], [2.0, 3.0], [0.5, 1.0]], [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
TWO = fs.Quadratic([[1.0, 3.0], [1.5, 2.0]], [[0.0, 1.0], [1.0, 0.0]])
MATRICES = replace(UNLIKE, gradient_noise=np.array([TILTED, 2.0 * TILTED, TILTED]))
DENSE = dense(3, 2, 1, gradient_noise=0.5)
RING = fs.network.ring(3)
LINEAR = fs.LinearRegression(np.random.default_rng(2).standard_normal((12, 2)), np.arange(12.0) / 6.0,
                             np.arange(12) % 3, noise_std=2.0, prior_variance=2.0)
SWINGS = {"n_grid": 13, "smallest": 0.02, "start": [30.0, -20.0]}
"""So that W2 comes within eps in passing, beyond round 1,024: which rounds are seen depends on the limit."""
SETTINGS = {
    "FA-LD": (DENSE, fs.FALD(0.01, 5, shared_noise=0.25), 0.1, {}),
    "FA-LD, diagonal": (UNLIKE, fs.FALD(0.01, 5, temperature=2.0), 0.3, {"start": [2.0, 2.0]}),
    "FA-LD, late": (DENSE, fs.FALD(0.01, 10), 6e-3, {}),
    "FA-LD, never": (DENSE, fs.FALD(0.01, 3), 1e-5, {}),
    "FA-LD, cut": (DENSE, fs.FALD(0.01), 0.03, {"max_rounds": 1500}),
    "FA-LD, regression": (LINEAR, fs.FALD(0.01, 2), 0.2, {"smallest": 1e-3}),
    "FA-LD, drawn": (DENSE, fs.FALD(0.01, 2, participation=fs.Participation(2, True)), 0.8, {}),
    "FA-LD, drawn, diagonal": (UNLIKE, fs.FALD(0.01, 2, participation=fs.Participation(2, False)), 0.5, {}),
    "FA-LD, by chance": (UNLIKE, fs.FALD(0.01, participation=fs.IndependentParticipation(0.7)), 0.5, {}),
    "FA-LD, one set": (UNLIKE, fs.FALD(0.01, participation=fs.FixedParticipation([[0, 2]], True)), 0.9, {}),
    "FA-HMC": (MATRICES, fs.FAHMC(0.1, 3, 2, shared_noise=0.0), 0.2,
               {"start": fs.Gaussian([1.0, 0.0], TILTED)}),
    "FA-HMC, fresh": (DENSE, fs.FAHMC(0.1, 2, 3, debias="fresh"), 0.1, {}),
    "FA-HMC, stale": (DENSE, fs.FAHMC(0.1, 2, 2, debias="stale"), 0.1, {}),
    "FA-HMC, stale, drawn": (UNLIKE, fs.FAHMC(0.1, 2, 2, debias="stale", first_round="exact",
                                              participation=fs.Participation(2, True)), 0.5, {}),
    "DE-SGLD": (DENSE, fs.DESGLD(0.01, RING), 0.1, {"start": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}),
    "DE-SGLD, diagonal": (UNLIKE, fs.DESGLD(0.01, RING), 0.2, {"start": fs.Gaussian([1.0, 2.0], [0.5, 2.0])}),
    "DE-SGHMC": (MATRICES, fs.DESGHMC(0.1, 2.0, RING, start_velocity=[1.0, 2.0]), 0.4, {}),
    "DE-SGHMC, momentum": (UNLIKE, fs.DESGHMC(0.1, 2.0, RING), 0.3, {"keep_momentum": True}),
    "DE-SGHMC, slow": (DENSE, fs.DESGHMC(0.1, 0.2, RING), 0.02, {"max_rounds": 20_000}),
    "DE-SGHMC, swings": (TWO, fs.DESGHMC(0.01, 0.02, fs.network.complete(2)), 0.12, SWINGS),
    "stale SGLD": (DENSE, fs.StaleSGLD(0.01, 3), 0.1, {"start": fs.Gaussian([1.0, 2.0], TILTED)}),
    "stale SGLD, matrices": (MATRICES, fs.StaleSGLD(0.01, 1), 0.4, {}),
    "stale SGHMC": (UNLIKE, fs.StaleSGHMC(0.01, 1.0, 2), 0.2, {"start": [3.0, -3.0]}),
}


def one_by_one(problem, algorithm, eps, *, start=None, n_grid=25, n_refine=3, smallest=None, max_rounds=10**9,
               keep_momentum=False):
    """What is tried, in the order and by the function that a user would take: step size -> rounds."""
    limit = algorithm.stability(problem).max_step_size
    if keep_momentum:
        limit = np.sqrt(2.0 * fs.DESGLD(1.0, algorithm.mixing).stability(problem).max_step_size)
    low, high, tried, cutoff = smallest or 1e-6 * limit, limit * (1.0 - 1e-9), {}, max_rounds
    for _ in range(n_refine + 1):
        for step in np.geomspace(low, high, n_grid)[::-1].tolist():
            if step in tried:
                continue
            try:
                one = with_step(algorithm, step, keep_momentum)
                tried[step] = theory.tuning.rounds_to(problem, one, eps, start=start, max_rounds=cutoff)
                if theory.stationary_law(problem, one).w2(one.target(problem)) > eps:  # it does not stay
                    tried[step] = None
            except ValueError as refusal:
                assert "step_size" in str(refusal)
                tried[step] = None
            if tried[step] is not None:
                cutoff = min(cutoff, max(tried[step], 1))
        good = {step: n for step, n in tried.items() if n is not None}
        if not good:
            return tried
        best, order = min(good, key=lambda step: (good[step], step)), sorted(tried)
        place = order.index(best)
        low, high = order[max(place - 1, 0)], order[min(place + 1, len(order) - 1)]
    return tried


@pytest.mark.parametrize("name", SETTINGS)
def test_searches_find_what_step_sizes_one_by_one_do(name, monkeypatch):
    problem, algorithm, eps, options = SETTINGS[name]
    options = {"n_grid": 9, "n_refine": 1} | options
    expected = one_by_one(problem, algorithm, eps, **options)
    asked = []
    plain = searching.rounds_to
    monkeypatch.setattr(searching, "rounds_to", lambda *given, **rest: (asked.append(given[1]),
                                                                        plain(*given, **rest))[1])
    found = theory.tuning.best_step_size(problem, algorithm, eps, **options)
    assert not any(one.stability(problem).stable for one in asked)  # all by laws together
    good = {step: n for step, n in expected.items() if n is not None}
    if not good:
        assert found is None and name == "FA-LD, never"
        return
    assert dict(zip(found.step_sizes, found.rounds, strict=True)) == expected
    assert (found.n_rounds, found.step_size) == min((n, step) for step, n in good.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_whole_searches_find_what_step_sizes_one_by_one_do(name):
    problem, algorithm, eps, options = SETTINGS[name]
    expected = one_by_one(problem, algorithm, eps, **options)
    found = theory.tuning.best_step_size(problem, algorithm, eps, **options)
    if found is not None:
        assert dict(zip(found.step_sizes, found.rounds, strict=True)) == expected
    assert (found is None) == all(n is None for n in expected.values())


def test_accuracies_together_are_those_of_each():
    for problem, algorithm in ((DENSE, fs.FALD(0.01, 5)), (UNLIKE, fs.DESGHMC(0.1, 2.0, RING))):
        eps = [0.5, 0.1, 0.02, 1e-6, 3.0]
        found = best_step_sizes(problem, algorithm, eps, n_grid=9, n_refine=2, max_rounds=5000)
        assert found == [theory.tuning.best_step_size(problem, algorithm, one, n_grid=9, n_refine=2,
                                                      max_rounds=5000) for one in eps]
        assert found[3] is None and found[0] is not None


def test_which_rounds_are_seen_depends_on_how_far_one_looks(monkeypatch):
    """Without a second look where limits were others, what swings would be found elsewhere."""
    problem, algorithm, eps, options = SETTINGS["DE-SGHMC, swings"]
    found = theory.tuning.best_step_size(problem, algorithm, eps, n_refine=1, **options)
    monkeypatch.setattr(Crossings, "hold", lambda said, limits: np.ones(len(limits), bool))
    assert theory.tuning.best_step_size(problem, algorithm, eps, n_refine=1, **options) != found


def test_what_is_within_reach_and_not_stable_does_not_count():
    """Where the map contracts beyond the leapfrog's own limit, and where the start is within eps."""
    pair = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    one = Trial(pair, fs.FAHMC(0.1, 2), pair.target(), False)
    assert one._goal([fs.FAHMC(1.17, 2)])[1].all() and not fs.FAHMC(1.17, 2).stability(pair).stable
    assert one.first_rounds([(0.5, 100, [1.17, 0.5])]) == [[None, 0]]
    drawn = fs.FALD(0.1, participation=fs.Participation(1, True))
    limit = drawn.stability(UNLIKE).max_step_size
    one = Trial(UNLIKE, drawn, UNLIKE.target(), False)
    assert one.first_rounds([(5.0, 100, [1.2 * limit, 0.5 * limit])]) == [[None, 0]]


def test_what_has_no_laws_together_is_tried_one_by_one():
    two = fs.FALD(0.01, participation=fs.FixedParticipation([[0, 1], [2]], cyclic=True))
    drawn = replace(LINEAR, batch_size=2)
    for problem, algorithm in ((UNLIKE, two), (drawn, fs.FALD(0.01)), (drawn, fs.DESGLD(0.01, RING))):
        assert family_of(algorithm).together(problem, [algorithm], None) is None
    options = {"n_grid": 5, "n_refine": 1, "max_rounds": 60, "smallest": 0.05}
    found = theory.tuning.best_step_size(drawn, fs.DESGLD(0.01, RING), 0.8, **options)
    assert dict(zip(found.step_sizes, found.rounds, strict=True)) == one_by_one(
        drawn, fs.DESGLD(0.01, RING), 0.8, **options)


@pytest.mark.parametrize("name", SETTINGS)
def test_laws_together_are_those_of_each(name):
    """Also after a run of rounds, and at rounds that are far apart; and their limits."""
    problem, algorithm, _, options = SETTINGS[name]
    limit, start = algorithm.stability(problem).max_step_size, options.get("start")
    made = [with_step(algorithm, share * limit) for share in (1e-4, 0.05, 0.5)]
    goal = goal_of(family_of(algorithm).together(problem, made, start), algorithm.target(problem))
    for rounds in (np.array([0, 1, 2, 30, 1000, 10**5]), np.arange(0, 40), np.arange(3, 90)):
        w2 = goal.w2(np.tile(rounds, (3, 1)))
        for one, found in zip(made, w2, strict=True):
            law = theory.exact_law(problem, one, int(rounds[-1]), start=start, record=rounds)
            np.testing.assert_allclose(found, law.w2()[law.rounds >= rounds[0]], rtol=1e-8)
    for one, floor in zip(made, goal.floor(), strict=True):
        assert floor == pytest.approx(theory.stationary_law(problem, one).w2(one.target(problem)), rel=1e-7)


# --- what is told


def test_nothing_long_is_silent(monkeypatch, capsys):
    theory.tuning.best_step_size(UNLIKE, fs.FALD(0.01), 0.3, n_grid=5)
    assert not capsys.readouterr().err
    monkeypatch.setattr(telling, "PATIENCE", -1.0)
    theory.tuning.best_step_size(UNLIKE, fs.FALD(0.01), 0.3, n_grid=5, n_refine=1)
    assert "step sizes of FALD: 2 of 2, grids" in capsys.readouterr().err
    theory.tuning.plan_by_recursion(UNLIKE, fs.FALD(0.01), 0.9, local_steps=(1, 2))
    assert "plan_by_recursion: 1 of 2, next local_steps=2" in capsys.readouterr().err
    theory.compare_algorithms(UNLIKE, [fs.FALD(0.01)], 0.3, n_grid=5, n_refine=0)
    assert "compare_algorithms: 1 of 1" in capsys.readouterr().err


# --- recursions


def test_a_round_in_one_piece_is_the_round():
    """Of FA-LD: changes bit by bit, also of complex states, and floats alone up to rounding."""
    draws, noisy = np.random.default_rng(4), dense(2, 2, 5, gradient_noise=0.4)
    for problem in (noisy, fs.Quadratic([1.0], [[0.0]])):
        for algorithm in (fs.FALD(0.01, 5, shared_noise=0.25), fs.FALD(0.2), fs.FALD(0.9, 2),
                          fs.FALD(1e-8, 3), fs.FALD(0.05, 4, participation=fs.Participation(1, True))):
            one = recursion(theory.constants(problem, algorithm, [3.0] * problem.dim), algorithm)
            given = one.given(0)
            for place in (0, 1, None) * 5:
                state = (10.0 ** draws.uniform(-4.0, 2.0, 2)).tolist()
                expected = [move.after for move in one.round(state, given)[0]]
                np.testing.assert_allclose(one.ahead(state, given), expected, rtol=1e-12)
                if place is not None:
                    state[place] = complex(state[place], 1e-30 * state[place])
                for move, same in zip(one.moves(state, given), one.round(state, given)[0], strict=True):
                    assert [complex(x) for x in move] == [complex(x) for x in same]


def test_more_rounds_than_enough_are_not_counted():
    one = recursion(theory.constants(UNLIKE, fs.FALD(1e-3)), fs.FALD(1e-3))
    needed = first_within(one, 0.5)[0]
    assert first_within(one, 0.5, enough=needed)[0] == needed
    for enough in (0, 10, 300, needed - 1):
        assert enough < first_within(one, 0.5, enough=enough)[0] <= needed


@pytest.mark.parametrize("algorithm", [
    fs.FALD(0.05, 3, shared_noise=0.25), fs.FALD(0.3, participation=fs.Participation(1, True)),
    fs.FAHMC(0.1, 1, 2), fs.FAHMC(0.1, 3, 2), fs.DESGLD(0.05, RING), fs.DESGHMC(0.1, 2.0, RING),
    fs.StaleSGLD(0.05, 0), fs.StaleSGLD(0.05, 2)], ids=lambda one: type(one).__name__)
def test_a_round_leaves_what_it_is_said_to_leave(algorithm):
    """Of E; and nearly no more, from very far."""
    draws, one = np.random.default_rng(6), recursion(theory.constants(UNLIKE, algorithm), algorithm)
    for _ in range(50):
        state = (10.0 ** draws.uniform(-6.0, 3.0, len(one.begin()))).tolist()
        assert one.ahead(state, one.given(0))[0] >= one.kept * state[0] * (1.0 - 1e-12)
    assert 0.5 < one.kept < 1.0


def test_sizes_that_cannot_be_best_are_not_followed():
    """What only shrinks needs so many rounds at least: no round is gone through."""
    one = recursion(theory.constants(UNLIKE, fs.FALD(1e-6)), fs.FALD(1e-6))
    assert first_within(one, 0.5, enough=1000)[0] > 1000 and first_within(one, 1e9, enough=0)[0] == 0
