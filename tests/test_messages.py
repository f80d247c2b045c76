"""Messages are short, whatever they show, and plain where there is no choice.

Schedules, tables and texts are given to every public callable.
"""

import re
import warnings

import numpy as np
import pytest
from fuzz.doors import doors
from fuzz.judge import Ran, TooLong, limits, nothing_runs

import fedsim as fs
import theory
from fedsim.hints import choice, shown

MOST = 400
"""Characters of a message."""
MANY = 60
SIZES = np.linspace(0.1, 0.01, MANY)
AGES = np.arange(MANY)
LARGE = fs.Quadratic(1.0 + SIZES, np.outer(SIZES, np.ones(3)), gradient_noise=0.1)
NETWORK = 0.5 * np.eye(MANY) + 0.5 / MANY
ALGORITHMS = {
    "FALD": fs.FALD(SIZES), "FAHMC": fs.FAHMC(SIZES, 3), "DESGLD of 2": fs.DESGLD(SIZES, fs.network.ring(2)),
    "DESGLD": fs.DESGLD(SIZES, NETWORK), "DESGHMC": fs.DESGHMC(0.1, 1.0, NETWORK, np.ones((MANY, 3))),
    "StaleSGLD": fs.StaleSGLD(SIZES, AGES), "StaleSGHMC": fs.StaleSGHMC(0.1, 1.0, AGES),
    "sets": fs.FALD(SIZES, participation=fs.FixedParticipation([[i % 2] for i in AGES])),
    "chances": fs.FALD(SIZES, participation=fs.IndependentParticipation(SIZES))}
VALUES = {
    "list": SIZES.tolist(), "array": -SIZES, "matrix": np.outer(SIZES, SIZES), "text": "x" * 2000,
    "texts": [f"name {i}" for i in AGES], "integer": 10**3000, "mapping": {f"k{i}": i for i in range(1000)},
    "integers": AGES.tolist(), "schedule": fs.schedules.Listed(SIZES), "problem": LARGE,
    "constants": theory.constants(LARGE, fs.FALD(0.1)), "Gaussian": fs.Gaussian(SIZES, np.diag(SIZES))}
PATH = re.compile("path|folder|images|labels|checkpoint")
"""Arguments that may be a path, which is shown whole however long it is."""


def message(door, argument, value):
    """The refusal of a door that is given this value for an argument; "" where it is accepted."""
    with warnings.catch_warnings(), limits():
        warnings.simplefilter("ignore")
        try:
            door.call(**door.arguments | {argument: value})
        except (Ran, TooLong):
            return ""
        except Exception as error:
            return str(error)
    return ""


def asked(door):
    """Arguments of a door, with the values that are long for each."""
    for argument in (*door.arguments, *door.optional):
        for what, value in (VALUES | ALGORITHMS).items():
            if not (what == "text" and PATH.search(argument)):
                yield argument, what, value


def too_long(calls):
    """The calls whose message is too long; `calls` has doors with argument, name of the value, and value."""
    found, refused = [], 0
    with nothing_runs():
        for door, (argument, what, value) in calls:
            words = message(door, argument, value)
            refused += words != ""
            if len(words) >= MOST:
                found.append(f"{door.name}({argument}: {what}), {len(words)} characters: {words[:160]}")
    assert refused > 0.3 * len(calls)
    return found


def every_call():
    return [(door, one) for door in doors().values() if door is not None for one in asked(door)]


def test_long_algorithms_and_some_other_long_values_are_shown_shortly():
    """Every algorithm wherever one is asked for; of the rest every seventeenth call."""
    calls = every_call()
    quick = [call for call in calls if call[1][0] == "algorithm" and call[1][1] in ALGORITHMS]
    assert not too_long(quick + calls[::17])


@pytest.mark.slow
def test_every_long_value_is_shown_shortly_in_every_message():
    assert not too_long(every_call())


def test_parts_of_messages_are_short():
    for value in (*VALUES.values(), *ALGORITHMS.values()):
        assert len(shown(value)) < 130
    for value in ALGORITHMS.values():
        assert len(repr(value.schedule)) < 60 and len(repr(getattr(value, "staleness", None))) < 60
    assert len(choice("nothing like it", [f"{i} of many" for i in range(1000)])) < 80
    assert repr(fs.schedules.Listed([0.2, 0.1])) == "Listed([0.2, 0.1])"
    assert repr(fs.StaleSGLD(0.1, [0, 1, 1]).staleness) == "Sequence([0, 1, 1])"


SINGLE = re.compile(r"one of '[^']*'(?! *,)|from (\S+) to \1\b|\[(\d+), \2\]")
"""A choice or a range of one."""


def unplain(refuse):
    """Whether a refusal offers a choice of one."""
    with pytest.raises(ValueError) as caught:
        refuse()
    return SINGLE.search(str(caught.value)) and str(caught.value)


def test_where_one_value_is_allowed_the_message_is_that_it_must_be_it():
    alone = [entry for entry in theory.theorems() if len(entry.variants) == 1 and entry.kind != "rate"]
    assert len(alone) > 20
    for entry in alone:
        assert not unplain(lambda entry=entry: theory.declare.registry.named_variant(
            "other", tuple(entry.variants), entry.id)), entry.id
    one = fs.Quadratic([1.0], [[0.0]])
    average = theory.stale.average_law(one, fs.StaleSGLD(0.1, 1), 5)
    for refuse in (lambda: fs.Gaussian([0.0], [[1.0]]).marginal([1]), lambda: average.at(3).at(4),
                   lambda: fs.StaleSGLD(0.1, [1, 0]), lambda: fs.settings.validation.one_of("x", 1, ("a",))):
        assert not unplain(refuse)
