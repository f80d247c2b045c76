"""Garbage for every public callable: a sound answer, or a refusal that names the argument.

A failure is printed as a line that repeats it: ``again(...)`` of `fuzz.judge`.
"""

import inspect
import warnings

import numpy as np
import pytest
from fuzz import known
from fuzz.doors import Door, callables, checks, doors
from fuzz.judge import again, answer, fuzz, nothing_runs, valid
from test_examples import public

import theory

SEED = 7


def verdict(n_calls, seed):
    counts, failures = fuzz(n_calls, seed)
    assert counts["accepted"] + counts["refused"] == n_calls, "\n".join(
        [f"seed {seed}: {dict(counts)}", *failures])
    assert counts["accepted"] >= 0.02 * n_calls  # or the calls would never come so far


def test_garbage_is_accepted_soundly_or_refused_by_name():
    verdict(2_000, SEED)


@pytest.mark.slow
def test_much_garbage_is_accepted_soundly_or_refused_by_name():
    verdict(20_000, SEED + 1)


def test_no_rounds_are_examined_or_refused():
    """A statement about steps has none in common with a law of no rounds, and says so."""
    for entry in theory.theorems():
        arguments = known.examined(entry)
        if arguments is None:
            continue
        try:
            assert theory.examine(entry, **arguments | {"n_rounds": 0}).n_compared > 0, entry.id
        except ValueError as error:
            assert "rounds" in str(error), f"{entry.id}: {error}"


def test_every_public_callable_has_a_door():
    """New ones are found by themselves: a public name is a door, a record, an exception, or left out."""
    everything = doors()
    assert not [name for name, door in everything.items() if door is None and not name.startswith(
        "theory.examine[")]
    for name, member in public().items():
        if isinstance(member, type):
            assert name in everything or not checks(member) or known.INTERNAL.search(name) or (
                issubclass(member, Exception)), name
        else:
            assert name in everything or known.INTERNAL.search(name) or not (
                inspect.signature(member).parameters), name
    examined = {entry.id for entry in theory.theorems() if everything[f"theory.examine[{entry.id}]"]}
    assert examined == {entry.id for entry in theory.theorems() if entry.kind != "rate"}
    assert set(public()) < set(callables())


def test_every_valid_call_is_accepted():
    with nothing_runs(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for door in doors().values():
            if door is not None:
                valid(door)


def test_a_call_that_was_written_down_is_repeated():
    found = again("fedsim.FALD", {"step_size": "nan"})
    assert found.kind == "refused" and "step_size=nan" in found.words


ONE = 1.0


def silent(size=1.0):
    return np.array([np.nan])


def attribute(size=1.0):
    return size.dim


def unnamed(size=1.0):
    raise ValueError("the number must be positive")


def loud(size=1.0):
    with np.errstate(all="warn"):
        return float(np.exp(np.float64(1e3))) and 1.0


def late(size=1.0):
    while True:
        pass


def named(size=1.0):
    raise ValueError(f"size={size!r} must be positive")


@pytest.mark.parametrize("planted, kind", [(silent, "silent"), (attribute, "other"), (unnamed, "unnamed"),
                                           (loud, "warned"), (late, "late"), (named, "refused")])
def test_what_is_planted_is_seen(planted, kind, monkeypatch):
    monkeypatch.setattr("fuzz.judge.SECONDS", 0.2)
    door = Door(f"planted {kind}", lambda size=ONE: 1.0 if size is ONE else planted(size), {"size": ONE})
    found = answer(door, {"size": "7"})
    assert found.kind == kind
    assert found.sound == (kind == "refused")
    counts, failures = fuzz(12, 1, [door])
    assert len(failures) == sum(counts[one] for one in ("silent", "other", "unnamed", "warned", "late"))
