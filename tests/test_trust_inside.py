"""What a function of the house made is not checked again by the next: how few files a call enters.

Trusted constructors (`_of`) give what the checking ones give, to the last bit; what is not sound goes to
those, which refuse it by name.
"""

from __future__ import annotations

import sys
from typing import ClassVar

import numpy as np
import pytest
from layout import ROOT

import fedsim as fs
import theory
from fedsim.laws.law import Gaussian
from reproduce.scoreboard import rows
from theory.declare.bound import Bound
from theory.facts import Constants
from theory.facts.potentials_of_problem import Potentials, potentials
from theory.judge.examining import bound_of

ALGORITHM = fs.FALD(0.02, 5, shared_noise=0.25)
PROBLEM = fs.Quadratic([[1.0, 3.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
DENSE = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]] * 2, [[0.0, 1.0], [1.0, 0.0]])


def entered(call):
    """Files of fedsim and theory that a call enters, after it was called once."""
    call()
    files = set()

    def note(frame, event, arg):
        if event == "call":
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {name for name in files if name.startswith((f"{ROOT}/fedsim/", f"{ROOT}/theory/"))}


@pytest.mark.parametrize("problem", [PROBLEM, DENSE], ids=["diagonal", "dense"])
def test_check_enters_six_files(problem):
    bound = theory.fa_ld.w2_bound(theory.constants(problem, ALGORITHM), ALGORITHM, n_rounds=50)
    law = theory.exact_law(problem, ALGORITHM, 50)
    assert 3 <= len(files := entered(lambda: theory.check(bound, law))) <= 6, files


def test_constants_and_a_bound_enter_eighteen_files():
    bound = theory.fa_ld.w2_bound
    files = entered(lambda: bound(theory.constants(PROBLEM, ALGORITHM), ALGORITHM, n_rounds=50))
    assert 9 <= len(files) <= 18, files


# --- the same to the last bit


def parts(value):
    """What can be told of it: types, bits, and what may be written to."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.flags.writeable, value.flags.c_contiguous, value.tobytes()
    if isinstance(value, (Gaussian, Constants, Bound)):
        return type(value), {name: parts(part) for name, part in sorted(vars(value).items())}
    if hasattr(value, "items"):
        return type(value), [(name, parts(part)) for name, part in value.items()]
    return type(value), repr(value)


def checking(monkeypatch):
    """From now on every trusted constructor is the checking one."""
    for cls, maker in ((Gaussian, Gaussian), (Constants, Constants), (Bound, Bound.from_terms)):
        monkeypatch.setattr(cls, "_of", maker)


def settings(n_problems):
    for entry in theory.theorems():
        for drawn in rows.draws(entry, n_problems):
            yield entry, *drawn


def made(entry, problem, algorithm, n_rounds, start):
    """Constants, target and bound; what is made by hand where constants are not found."""
    known = rows.known(problem, algorithm, n_rounds, start) or theory.constants(problem, algorithm, start)
    return parts(known), parts(bound_of(entry, problem, algorithm, n_rounds, known, start=start))


def test_of_random_settings_all_is_as_if_it_were_checked(monkeypatch):
    drawn = list(settings(1))
    trusted = [made(*one) for one in drawn]
    checking(monkeypatch)
    for one, (entry, *_), expected in zip(trusted, drawn, [made(*one) for one in drawn], strict=True):
        assert one == expected, entry.id
    assert len(drawn) > 60


def dense_or_not(rng):
    """A quadratic problem, an algorithm and a start of any kind."""
    n_clients, dim = rng.integers(1, 5, 2)
    kind = rng.integers(3)
    tables = rng.uniform(0.5, 3.0, (n_clients, dim)[:max(kind, 1)])
    if kind == 0:
        root = rng.standard_normal((n_clients, dim, dim))
        tables = root @ np.swapaxes(root, 1, 2) + np.eye(dim)
    weights = None if rng.random() < 0.5 else rng.dirichlet(np.full(n_clients, 3.0))
    noise = [None, 0.5][rng.integers(2)]
    problem = fs.Quadratic(tables, rng.standard_normal((n_clients, dim)), weights, noise)
    algorithm = [fs.FALD(0.01, 3, temperature=rng.uniform(0.1, 2.0)), fs.StaleSGLD(0.01, 2),
                 fs.DESGLD(0.01, np.eye(n_clients))][rng.integers(3)]
    mean = rng.standard_normal(dim)
    start = [None, mean, fs.Gaussian(mean, rng.uniform(0.0, 1.0, dim)), fs.Gaussian(mean, np.eye(dim))]
    return problem, algorithm, start[rng.integers(4)]


def test_of_random_quadratic_problems_constants_and_targets_are_as_if_they_were_checked(monkeypatch):
    def both(problem, algorithm, start):
        known = theory.constants(problem, algorithm, start)
        return parts(known), parts(algorithm.target(problem)), repr(known.of)

    rng = np.random.default_rng(5)
    drawn = [dense_or_not(rng) for _ in range(100)]
    trusted = [both(*one) for one in drawn]
    checking(monkeypatch)
    assert trusted == [both(*one) for one in drawn]


# --- what is not sound is refused by name


class Registered(fs.Quadratic):
    """A user's problem, whose potentials a user registered."""

    facts: ClassVar[dict[str, np.ndarray]] = {}


@potentials.register
def _of_registered(problem: Registered) -> Potentials:
    sound = {"curvature": np.array([[1.0, 3.0]] * 2), "global_curvature": np.array([1.0, 3.0]),
             "minimizer": np.zeros(2), "gradients": np.ones((2, 2)), "noise_traces": np.ones(2),
             "gaps_at_origin": np.ones(2), "hessian_smoothness": np.zeros(2)}
    return Potentials(**sound | Registered.facts)


@pytest.mark.parametrize(("facts", "words"), [
    ({"gaps_at_origin": np.array([1.0, -1.0])}, "gaps_at_origin has a negative entry -1"),
    ({"gaps_at_origin": np.array([1.0, np.nan])}, r"gaps_at_origin\[1\]=nan must be finite"),
    ({"gaps_at_origin": np.ones(3)}, r"gaps_at_origin has shape \(3,\); it must be \(2,\)"),
    ({"noise_traces": np.array([1.0, -1.0])}, "gradient_noise_traces has a negative entry -1"),
    ({"gradients": np.ones((3, 2))}, r"gradient_at_minimizer has shape \(3, 2\); it must be \(2, 2\)"),
    ({"gradients": np.full((2, 2), 1.7e308)}, "norm of gradient_at_minimizer=inf must be finite"),
    ({"minimizer": np.zeros(1)}, r"minimizer has shape \(1,\); it must be \(2,\)"),
    ({"curvature": np.array([[3.0, 1.0]] * 2)}, "strong_convexity=3 must be at most smoothness=1"),
    ({"hessian_smoothness": np.array([0.0, np.inf])}, "hessian_smoothness=inf must be finite"),
    ({"hessian_smoothness": np.array([-1.0, -1.0])}, "hessian_smoothness=-1.* must be at least 0")])
def test_what_a_user_registered_is_checked(facts, words, monkeypatch):
    monkeypatch.setattr(Registered, "facts", facts)
    problem = Registered(PROBLEM.hessians, PROBLEM.minimizers)
    with pytest.raises(ValueError, match=words):
        theory.constants(problem, ALGORITHM)


def test_integers_that_a_user_registered_become_floats(monkeypatch):
    monkeypatch.setattr(Registered, "facts", {"gradients": np.ones((2, 2), dtype=int)})
    found = theory.constants(Registered(PROBLEM.hessians, PROBLEM.minimizers), ALGORITHM)
    assert found.gradient_at_minimizer.dtype == np.float64 and not found.weights.flags.writeable


ROUNDS = np.arange(3)
REST = {"assumptions": (), "quantity": "w2", "kind": "upper", "source": "here", "inputs": {},
        "start_distance": None, "floor": None}


@pytest.mark.parametrize(("terms", "rest", "words"), [
    ({"a": -1.0}, {}, "value has a negative entry -1"), ({}, {}, r"value has shape \(\)"),
    ({"a": np.array([1.0, np.nan, 1.0])}, {}, r"value\[1\]=nan must be finite"),
    ({"a": 1.7e308, "b": 1.7e308}, {}, r"value\[0\]=inf must be finite"),
    ({"a": 1.0}, {"start_distance": -1.0}, "start_distance=-1.0 must be at least 0"),
    ({"a": 1.0}, {"start_distance": np.nan}, "start_distance=nan must be finite"),
    ({"a": 1.0}, {"start_distance": np.inf}, "start_distance=inf must be finite"),
    ({"a": 1.0}, {"floor": -1.0}, "floor=-1.0 must be at least 0"),
    ({"a": 1.0}, {"floor": np.nan}, "floor=nan must be finite")])
def test_what_a_formula_gives_is_checked(terms, rest, words):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=words):
        Bound._of(terms, ROUNDS, **REST | rest)


def test_a_minimizer_that_float64_cannot_hold_is_refused():
    problem = fs.Quadratic([[1e-300, 1e300]], [[1.0, 1.0]])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"mean\[0\]=nan must be finite"):
        problem.target(1e-5)


def test_targets_that_differ_are_told():
    bound = theory.fa_ld.w2_bound(theory.constants(PROBLEM, ALGORITHM), ALGORITHM, n_rounds=5)
    for mean, cov in ((bound.target.mean + 1e-3, bound.target.variances),
                      (bound.target.mean, 2.0 * bound.target.variances)):
        law = fs.Law(ROUNDS, np.zeros((3, 2)), np.ones((3, 2)), fs.Gaussian(mean, cov))
        with pytest.raises(ValueError, match="target of the law differs from that of the bound"):
            theory.check(bound, law)
