"""What is said against the papers' text: graded, reasoned, and able to come out for the authors."""

from __future__ import annotations

import json

import numpy as np
import pytest
from evidence import TABLE

import theory
from theory.declare.corrections import CONSEQUENCES, ERRATA, EVIDENCE_KINDS, REMARKS, erratum

ENTRIES = [*theory.errata(), *theory.remarks()]
COMPUTED = [entry for entry in ENTRIES if entry.kind == "numerical"]
PAPERS = ("FA-LD", "FA-HMC", "DE-SGLD", "DE-SGHMC", "Stale gradients")


def test_errata_and_remarks_are_apart():
    assert {entry.grade for entry in theory.errata()} == set(ERRATA)
    assert {entry.grade for entry in theory.remarks()} == set(REMARKS)
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES)
    for paper in PAPERS:
        assert theory.errata(paper) == [entry for entry in theory.errata() if entry.paper == paper] != []
    with pytest.raises(ValueError, match="paper='none'"):
        theory.errata("none")
    with pytest.raises(ValueError, match="paper='none'"):
        theory.remarks("none")


def test_what_touches_a_theorem():
    for entry in ENTRIES:
        listed = theory.errata if entry.grade in ERRATA else theory.remarks
        for theorem in entry.theorems:
            assert entry in listed(theorem=theorem)
    assert [entry.id for entry in theory.errata("FA-LD", theorem="fa_ld.w2_bound_decreasing")] == [
        "fa_ld.halved_step_size"]
    assert list(theory.errata_frame(theorem="fa_ld.w2_bound_decreasing")["grade"]) == ["proof"]
    assert theory.errata("FA-HMC", theorem="fa_ld.w2_bound_decreasing") == []
    with pytest.raises(ValueError, match=r"theorem='Theorem 48'"):
        theory.errata(theorem="Theorem 48")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_entry_says_what_where_and_why(entry):
    known = {one.id for one in theory.theorems()}
    assert set(entry.theorems) <= known, set(entry.theorems) - known
    assert entry.consequence in CONSEQUENCES and entry.kind in EVIDENCE_KINDS
    assert entry.where and entry.printed and entry.corrected and entry.printed != entry.corrected
    assert 40 <= len(entry.derivation) <= 1500, len(entry.derivation)
    if entry.grade in REMARKS:  # a true statement, or one that our text does not show: nothing can fall
        assert entry.consequence == "nothing"
    assert entry.harmless == (entry.consequence in ("nothing", "constant"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_is_kept_only_while_its_evidence_speaks_for_it(entry):
    found = entry.evidence()
    assert found.kind == entry.kind and found.text
    assert all(np.isfinite(value) for value in found.numbers.values())
    if entry.kind == "numerical":
        assert found.numbers and found.speaks_for == "the entry"
    else:
        assert not found.demonstrated and found.speaks_for == "neither"


@pytest.mark.parametrize("entry", COMPUTED, ids=lambda entry: entry.id)
def test_the_numbers_of_evidence_are_those_that_were_read(entry):
    """`python -m tests.evidence` writes them again: a parameter of the evidence changed, or a law."""
    kept = json.loads(TABLE.read_text(encoding="utf-8"))[entry.id]
    assert entry.evidence().numbers == pytest.approx(kept, rel=1e-6, abs=1e-10)  # a deviation is rounding


def test_no_evidence_is_kept_that_is_not_there():
    assert set(json.loads(TABLE.read_text(encoding="utf-8"))) == {entry.id for entry in COMPUTED}


def test_tables_are_clean_json():
    table = theory.errata_frame()
    assert list(table) == ["id", "paper", "grade", "consequence", "where", "printed", "corrected", "theorems",
                           "derivation", "kind"]
    assert len(table) == len(theory.errata()) and set(table["paper"]) == set(PAPERS)
    rows = table.to_dict("records") + theory.remarks_frame().to_dict("records")
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    with_numbers = theory.errata_frame("DE-SGHMC", evidence=True)
    assert with_numbers["demonstrated"].map(type).eq(bool).all()
    text = json.dumps(with_numbers.to_dict("records"), allow_nan=False)
    assert json.loads(text)[0]["speaks_for"] in ("the entry", "the authors", "neither")


def test_an_entry_must_be_graded():
    whole = {"id": "none.such", "paper": "FA-LD", "where": "here", "printed": "a", "corrected": "b",
             "grade": "error", "consequence": "nothing", "derivation": "because"}
    with pytest.raises(TypeError, match="grade"):
        erratum(**{key: value for key, value in whole.items() if key != "grade"})
    with pytest.raises(ValueError, match=r"derivation='' of 'none\.such' must be given, or be the docstring"):
        erratum(**whole | {"derivation": ""})(lambda: theory.Evidence(False))
    with pytest.raises(ValueError, match="consequence=None must be one of"):
        erratum(**{key: value for key, value in whole.items() if key != "consequence"})
    for name, value in (("grade", "wrong"), ("consequence", "all"), ("kind", "told")):
        with pytest.raises(ValueError, match=f"{name}='{value}' must be one of"):
            erratum(**whole | {name: value})
    with pytest.raises(ValueError, match="is registered already"):
        erratum(**whole | {"id": ENTRIES[0].id})(lambda: theory.Evidence(False))
