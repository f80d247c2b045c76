"""Equality by value of what a user makes: problems, algorithms, schedules, lists of ages."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

import fedsim as fs
from fedsim import fingerprints, network
from fedsim.equality import ByValue
from fedsim.settings.staleness import Several

ROWS = np.array([[1.0, 0.5], [2.0, -1.0], [0.0, 1.0]])
LABELS, CLIENTS = np.array([1, 0, 1]), np.array([0, 1, 1])
REGRESSION = {"noise_std": 1.0, "prior_variance": 2.0}

# (make, its arguments, one keyword and a value of it that makes another thing)
THINGS = [
    (fs.Quadratic, ([[1.0, 4.0], [2.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]]), "weights", [0.25, 0.75]),
    (fs.Quadratic, (np.ones(2), np.zeros((2, 3))), "gradient_noise", 0.5),
    (fs.LinearRegression, (ROWS, LABELS * 2.0, CLIENTS), "batch_size", 1),
    (fs.LogisticRegression, (ROWS, LABELS, CLIENTS), "prior_variance", 2.5),
    (fs.SoftmaxRegression, (ROWS, LABELS, CLIENTS), "feature_scale", 2.0),
    (fs.GaussianMean, ([1.0, 2.0, 3.0],), "batch_size", 2),
    (fs.FALD, (0.1,), "local_steps", 2),
    (fs.FALD, ([0.1, 0.2, 0.3],), "participation", fs.Participation(1, True)),
    (fs.FAHMC, ([0.1, 0.2], 3), "shared_noise", 0.5),
    (fs.DESGLD, (0.1, network.ring(5)), "mixing", network.path(5)),
    (fs.DESGHMC, (0.1, 2.0, network.ring(5)), "start_velocity", [1.0]),
    (fs.StaleSGLD, (0.1, [0, 1, 2]), "staleness", [0, 1, 1]),
    (fs.StaleSGHMC, (0.1, 1.0, fs.Workers(3, seed=1)), "staleness", fs.Workers(3, seed=2)),
    (fs.schedules.Listed, ([0.1, 0.2],), "values", [0.1, 0.3]),
    (Several, ([[0, 1], [0, 0]],), "values", [[0, 0], [0, 1]]),
]


def made(make, arguments):
    more = REGRESSION if make is fs.LinearRegression else {"prior_variance": 2.0} if (
        make in (fs.LogisticRegression, fs.SoftmaxRegression)) else {}
    return make(*(np.array(part) if isinstance(part, list) else part for part in arguments), **more)


@pytest.mark.parametrize("make, arguments, name, value", THINGS,
                         ids=[f"{row[0].__name__}-{row[2]}" for row in THINGS])
def test_equal_and_different(make, arguments, name, value):
    one, other = made(make, arguments), made(make, arguments)
    changed = dataclasses.replace(one, **{name: value})
    assert one == other and not one != other and hash(one) == hash(other)
    assert one != changed and {one, other, changed} == {changed, one} and len({one, other, changed}) == 2
    assert one != object() and one.__eq__(3) is NotImplemented and one not in (None, "text", 0.1)
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert again == one and hash(again) == hash(one) and again != changed
    assert isinstance(one, ByValue)


def test_every_dataclass_of_a_user_is_compared_by_value():
    """Those whose fields may be arrays by this class, the others field by field."""
    offered = [value for value in vars(fs).values() if dataclasses.is_dataclass(value)]
    compared = {cls for cls in offered if not issubclass(cls, fs.Law)}
    assert {fs.Quadratic, fs.FALD, fs.LogisticRegression} <= compared
    for cls in compared:
        by_field = "__eq__" in vars(cls)
        assert by_field != issubclass(cls, ByValue), cls
        assert not by_field or all("Array" not in str(field.type) for field in dataclasses.fields(cls)), cls


def test_other_forms_of_the_same_are_equal():
    assert fs.Quadratic([2.0], [[1.0]]) == fs.Quadratic([[[2.0]]], [[1.0]], weights=[1.0])
    assert fs.FALD(0.1) == fs.FALD(fs.schedules.Constant(0.1)) != fs.FAHMC(0.1, 1)
    assert fs.DESGLD(0.1, network.complete(2)) == fs.DESGLD(0.1, [[0.5, 0.5], [0.5, 0.5]])


def test_the_fingerprint_is_made_once_and_not_stored(monkeypatch):
    one, other = (fs.Quadratic([1.0, 2.0], [[0.0], [1.0]]) for _ in range(2))
    assert one == other
    monkeypatch.setattr(fingerprints, "feed", None)  # it would fail
    assert one == other and hash(one) == hash(other)
    assert fingerprints.KEPT.encode() not in pickle.dumps(one)


@dataclass(frozen=True, eq=False)
class WithFunction(fs.FALD):
    rule: object = abs


def test_without_a_fingerprint_a_thing_equals_itself_alone():
    one, other = WithFunction(0.1), WithFunction(0.1)
    assert one == one and one != other and len({one, other}) == 2


sizes = st.floats(0.01, 10.0)
arrays = st.lists(sizes, min_size=1, max_size=3)


@given(one=arrays, other=arrays)
def test_equality_is_that_of_the_arrays(one, other):
    same = one == other
    assert (fs.schedules.Listed(np.array(one)) == fs.schedules.Listed(other)) is same
    problems = [fs.Quadratic(values, np.zeros((len(values), 2))) for values in (one, other)]
    assert (problems[0] == problems[1]) is same
    assert not same or hash(problems[0]) == hash(problems[1])
