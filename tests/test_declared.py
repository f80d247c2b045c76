"""The shipped algorithms in the notation: their traced laws are those by hand, or they are refused."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pages
import pytest
from algorithms import ROWS
from sampler_zoo import diging_sgld
from test_samplers import agree, problem_of

import fedsim as fs
import theory
from fedsim.samplers import SamplerWarning, declared

ROUNDS = (1, 2, 3)


def cases(kind):
    """All that the table of algorithms compares with laws and twins: (problem, algorithm, start)."""
    row = ROWS[kind]
    for problem, algorithm, start, *_ in row.laws.values():
        yield problem, algorithm, start
    for group in row.groups.values():
        for problem, algorithm, start, *_ in group.options():
            yield problem, algorithm, start


def same_law(problem, algorithm, start, rounds=ROUNDS):
    """True where the traced law is the one by hand, None where either says that there is none."""
    options = {"n_rounds": rounds[-1], "record": rounds, "start": start, "allow_unstable": True}
    try:
        known = theory.exact_law(problem, algorithm, **options)
    except ValueError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        try:
            law = theory.exact_law(problem, declared(algorithm), **options)
        except ValueError:
            return None
    agree(law.mean, known.mean)
    agree(law.cov, known.cov)
    for client, other in zip(law.clients, known.clients, strict=True):
        agree(client.mean, other.mean)
        agree(client.cov, other.cov)
    return True


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_every_case_of_the_table_has_the_law_by_hand(kind):
    assert sum(same_law(*case) is True for case in cases(kind)) >= 5


DEBIASED = [("fresh", "none"), ("stale", "none"), ("stale", "exact"), ("stale", "printed")]
WHO = [None, fs.Participation(2, True), fs.FixedParticipation([[0], [1, 2]], cyclic=True)]


@pytest.mark.parametrize(("debias", "first"), DEBIASED)
@pytest.mark.parametrize("who", WHO, ids=repr)
def test_debiased_gradients_are_said(debias, first, who):
    problem = problem_of(np.random.default_rng(2), 3, 2)
    algorithm = fs.FAHMC(0.1, 3, 2, 0.3, debias, first, who)
    assert same_law(problem, algorithm, [0.5, -1.0])


@pytest.mark.parametrize("who", [*WHO, fs.Participation(2, False)], ids=repr)
def test_who_takes_part_is_said(who):
    problem = fs.Quadratic([1.0, 2.0, 4.0], [[0.0], [1.0], [3.0]], gradient_noise=0.2)
    assert same_law(problem, fs.FALD(0.05, 3, 2.0, 0.4, who), None)


REFUSED = [
    (fs.FALD(fs.schedules.Harmonic(10.0, 0.3), 2), "step_size=.* must be constant, or local_steps=1"),
    (fs.FAHMC([0.1, 0.2], 2, 2), "step_size=.* must be constant, or local_steps=1"),
    (fs.FALD(0.1, participation=[[0], [1]]), "participation=.* come again, as with cyclic=True"),
    (fs.FALD(0.1, participation=fs.IndependentParticipation(0.5)), "participation=.* where nobody answers"),
    (fs.DESGHMC(0.1, 2.0, fs.network.ring(3), [[1.0], [0.0], [0.0]]), "start_velocity=.* must be zero"),
    (fs.StaleSGLD(0.1, [0, 1, 1]), "staleness=.* must be one age"),
    (fs.StaleSGHMC(0.1, 2.0, fs.Workers(3)), "staleness=.* must be one age"),
    ("FALD", "algorithm='FALD' must be of a class that is declared in the notation: DESGHMC, DESGLD"),
    (fs.FALD, "must be of a class that is declared"),
]


@pytest.mark.parametrize(("algorithm", "words"), REFUSED, ids=lambda one: one if isinstance(one, str) else "")
def test_what_the_notation_cannot_say_is_named(algorithm, words):
    with pytest.raises(ValueError, match=words):
        declared(algorithm)


def test_what_says_the_same_is_not_refused():
    one = declared(fs.DESGHMC(0.1, 2.0, fs.network.ring(3), np.zeros((3, 1))))
    assert one == declared(fs.DESGHMC(0.1, 2.0, fs.network.ring(3)))
    assert declared(fs.StaleSGLD(0.1, 2)).age == 2
    assert declared(fs.FALD([0.1, 0.2])).schedule == fs.FALD([0.1, 0.2]).schedule


def test_gradients_of_anchors_have_no_noise():
    noisy = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]], gradient_noise=0.3)
    algorithm = fs.FAHMC(0.1, 2, debias="fresh")
    with pytest.raises(ValueError, match=r"must have exact gradients for fa_hmc_fresh"):
        theory.exact_law(noisy, declared(algorithm), 3)
    assert "must have exact gradients" in fs.explain(noisy, algorithm)["a round"]


OTHER = {"step_size": 0.07, "local_steps": 4, "temperature": 2.0, "shared_noise": 0.7, "leapfrog_steps": 4,
         "participation": fs.Participation(1, True), "debias": "fresh", "first_round": "exact",
         "friction": 0.9, "mixing": fs.network.complete(3), "staleness": 3,
         "start_velocity": [[1.0], [0.0], [0.0]]}
BASE = [fs.FALD(0.05, 2, shared_noise=0.2), fs.FAHMC(0.1, 2, 2, 0.2, "stale"),
        fs.DESGLD(0.05, fs.network.ring(3)), fs.DESGHMC(0.1, 2.0, fs.network.path(3)), fs.StaleSGLD(0.05, 1),
        fs.StaleSGHMC(0.1, 2.0, 1)]


@pytest.mark.parametrize("algorithm", BASE, ids=lambda one: type(one).__name__)
def test_no_argument_is_dropped(algorithm):
    """Another value of each gives another sampler, or is refused by name."""
    assert {type(one) for one in BASE} == set(ROWS)
    for field in dataclasses.fields(algorithm):
        if field.init:
            other = dataclasses.replace(algorithm, **{field.name: OTHER[field.name]})
            try:
                assert declared(other) != declared(algorithm), field.name
            except ValueError as refused:
                assert f"{field.name}=" in str(refused)


@pytest.mark.parametrize("algorithm", BASE, ids=lambda one: type(one).__name__)
def test_explain_shows_the_round(algorithm):
    problem = fs.Quadratic([1.0, 2.0, 3.0], [[0.0], [1.0], [2.0]])
    told = fs.explain(problem, algorithm)["a round"]
    assert [line.strip() for line in told.splitlines() if line.strip()] == [
        line.strip() for line in declared(algorithm).words(problem).splitlines()]


@pytest.mark.parametrize("algorithm", [one for one in BASE if not getattr(one, "debias", None)]
                         + [fs.FAHMC(0.1, 2)], ids=lambda one: type(one).__name__)
def test_the_guide_shows_the_equation_that_runs(algorithm):
    """The text of the function whose law is compared above."""
    text = declared(algorithm).source()
    assert text.startswith("@sampler") and "step_size" in text and "grad(" in text
    assert text in (pages.DOCS / "guide" / "equations.md").read_text(encoding="utf-8")


def test_explain_says_what_it_does_not_follow():
    problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    long = fs.explain(problem, fs.FAHMC(1e-6, 10**6, 10**3))["a round"]
    assert long == "not said: its 1000000000 steps are more than the 1000 that are followed here"
    assert "must be one age" in fs.explain(problem, fs.StaleSGLD(0.01, fs.Workers(3)))["a round"]


@pytest.mark.parametrize("algorithm", [*(one for one in BASE if not getattr(one, "debias", None)),
                                       fs.FAHMC(0.1, 3, 2)], ids=lambda one: type(one).__name__)
def test_it_costs_the_same(algorithm):
    problem = fs.Quadratic([[1.0, 2.0]] * 3, [[0.0, 0.0]] * 3)
    assert declared(algorithm).costs(problem, 7) == algorithm.costs(problem, 7)


def test_rounds_are_counted_whatever_they_send():
    """DIGing mixes twice in a round, and a chain of one client talks to nobody."""
    problem = fs.Quadratic.from_components([1.0, 2.0, 4.0], [[0.0], [1.0], [3.0]])
    algorithms = {"stale": declared(fs.StaleSGLD(0.01, 1)), "shipped": fs.StaleSGLD(0.01, 1),
                  "diging": diging_sgld(step_size=0.01, W=fs.network.ring(3))}
    table = theory.compare_algorithms(problem, algorithms, eps=0.1).set_index("algorithm")
    best = theory.tuning.best_step_size(problem, algorithms["diging"], 0.1)
    counts = table[["rounds", "gradients", "floats"]]
    assert (counts.loc["stale"] == counts.loc["shipped"]).all() and (counts > 0).all(axis=None)
    assert table.loc["diging", "rounds"] == best.n_rounds == table.loc["diging", "floats"] / 12


def test_noise_of_size_zero_is_none():
    problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    for shared in (0.0, 1.0):
        assert declared(fs.FALD(0.1, 3, shared_noise=shared)).trace(problem).how_many("noise") == 3
    assert declared(fs.FALD(0.1, 3, shared_noise=0.5)).trace(problem).how_many("noise") == 6
