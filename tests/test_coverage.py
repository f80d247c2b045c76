"""Every numbered figure of the papers is drawn or accounted for, in the table, the README and the gallery."""

import re
from pathlib import Path

import pytest

from reproduce import gallery, readme, store
from reproduce.coverage import NOT_REPRODUCED, NUMBERED, drawn_by
from reproduce.discovery import figures

HERE = drawn_by()
WHOLLY = {number for row in NOT_REPRODUCED if not row.part for number in row.numbers}
IN_PART = {number for row in NOT_REPRODUCED if row.part for number in row.numbers}


def test_the_papers_have_49_numbered_figures():
    assert sum(map(len, NUMBERED.values())) == len(HERE) == 49


@pytest.mark.parametrize("number", HERE)
def test_each_is_drawn_or_accounted_for(number):
    assert bool(HERE[number]) != (number in WHOLLY), "drawn, or wholly missing with a reason, not both"
    assert number not in IN_PART or HERE[number], "a missing part needs the rest to be drawn"


def test_a_figure_reproduces_what_its_headline_says():
    for one in figures().values():
        for number in one.reproduces:
            digits = re.match(r"\d+", number.split()[-1].lstrip("S"))[0]
            told = [int(text) for text in re.findall(r"\d+", one.paper)]
            assert int(digits) in told or min(told) <= int(digits) <= max(told), (one.id, number)
            letter = re.search(r"\(\w\)", number)
            assert letter is None or letter[0] in one.paper or "(a9a)" in one.paper, (one.id, number)


def test_the_list_names_known_figures_once():
    numbers = [number for row in NOT_REPRODUCED for number in row.numbers]
    assert set(numbers) <= set(HERE) and len(numbers) == len(set(numbers))
    assert all(row.shows and row.why and row.needs for row in NOT_REPRODUCED)
    reasons = [row.why for row in NOT_REPRODUCED]
    assert len(reasons) == len(set(reasons)), "figures that are missing for one reason are one row"


def test_a_part_that_is_drawn_alone_is_told():
    alone = [one for one in figures().values() if "alone)" in one.paper]
    assert len(alone) == 3 and all(set(one.reproduces) <= IN_PART for one in alone)


def test_docs_and_gallery_show_the_list():
    text = (Path(store.FOLDER).parent / "docs" / "figures.md").read_text(encoding="utf-8")
    page = gallery.pages(store.FOLDER, "quick")["missing.html"]
    for row in NOT_REPRODUCED:
        assert f"| {row.number} |" in text
        assert f"<h2>{row.number}: " in page
    assert readme.missing_table() in text
