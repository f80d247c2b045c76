"""Every judge can come out otherwise, and its words follow what it found."""

import re

import pytest
from a_figure import made
from opposites import opposites

from reproduce import store
from reproduce.claims import Claim
from reproduce.discovery import figures
from reproduce.verdicts import ECHOED, FAIL, HOLDS, MISPRINT, NOT_TESTABLE, OPEN, OUTSIDE, PASS

FIGURES = figures()
OPPOSITES = opposites()
JUDGED = [(name, item.name) for name, one in made().items() for item in one.judged]
CLAIMS = [(name, item.name) for name, one in made().items() for item in one.judged if isinstance(item, Claim)]
UNDECIDED = (NOT_TESTABLE, OPEN)
FOR = {PASS, ECHOED, HOLDS}
AGAINST = {FAIL, MISPRINT, OUTSIDE}


def _judged(figure_id, name, tables):
    item = next(item for item in FIGURES[figure_id].judged if item.name == name)
    return item.judged(tables)


def _outcomes(figure_id, name):
    """What it says of the committed tables, and of each changed one with the verdict wanted."""
    stored = store.load_tables(store.FOLDER, figure_id)
    found = [(None, _judged(figure_id, name, stored))]
    for wanted, change in OPPOSITES[figure_id, name]:
        copy = {key: table.copy() for key, table in stored.items()}
        found.append((wanted, _judged(figure_id, name, change(copy))))
    return found


def sentences(text):
    """The parts of a reason, without their numbers."""
    return [re.sub(r"[-+]?\d[\d.,]*(e[-+]?\d+)?", "#", part.strip())
            for part in re.split(r"(?<=[.;])\s+", text) if part.strip()]


def test_every_judge_has_its_opposite():
    assert sorted(OPPOSITES) == sorted((name, item.name) for name, one in FIGURES.items()
                                       for item in one.judged)


@pytest.mark.parametrize(("figure_id", "name"), JUDGED)
def test_the_verdict_follows_the_tables(figure_id, name):
    (_, stored), *others = _outcomes(figure_id, name)
    assert others, "no opposite"
    verdicts = {stored["verdict"]}
    for wanted, found in others:
        assert found["verdict"] == wanted, found["why"]
        verdicts.add(wanted)
    assert len(verdicts) > 1
    if stored["verdict"] in UNDECIDED:  # both ways must be open
        assert verdicts & FOR, "evidence must be able to come out for the sentence"
    elif stored["verdict"] not in FOR:
        assert verdicts & FOR, "evidence must be able to come out for the authors"


@pytest.mark.parametrize(("figure_id", "name"), CLAIMS)
def test_what_could_not_have_failed_is_no_pass(figure_id, name):
    claim = next(item for item in FIGURES[figure_id].judged if item.name == name)
    verdicts = {found["verdict"] for _, found in _outcomes(figure_id, name)}
    if claim.echo:
        assert verdicts.isdisjoint({PASS, FAIL, MISPRINT})
    else:
        assert verdicts & AGAINST, "no tables speak against it: say why with echo="


@pytest.mark.parametrize(("figure_id", "name"), JUDGED)
def test_the_words_follow_the_verdict(figure_id, name):
    (_, stored), *others = _outcomes(figure_id, name)
    for _, found in others:
        if found["verdict"] == stored["verdict"]:
            continue
        both = set(sentences(stored["why"])) & set(sentences(found["why"]))
        same = [part for part in both if "#" not in part]
        assert not same, f"said of {stored['verdict']} and of {found['verdict']}: {same}; put it into context"
        assert found["why"] != stored["why"]
