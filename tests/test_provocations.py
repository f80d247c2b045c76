"""What is said to the mistakes of `provocations`: argument, value, condition, and a remedy."""

from collections import Counter

import pytest
from fuzz.judge import nothing_runs
from provocations import PARTS, ROWS, message, unsaid

AT_LEAST = 196
SHARE = 0.9


@pytest.fixture(name="told", scope="module")
def _told():
    """Every message, by what was typed; nothing may be compiled or run for it."""
    with nothing_runs():
        return {row.typed: message(row) for row in ROWS}


def test_there_are_enough_of_them_and_no_two_alike():
    assert len(ROWS) == len({row.typed for row in ROWS}) >= AT_LEAST


def test_nine_of_ten_messages_say_all_that_is_wanted(told, capsys):
    lacking = {row.typed: unsaid(row, told[row.typed]) for row in ROWS}
    parts = Counter(part for missing in lacking.values() for part in missing)
    with capsys.disabled():
        print()
        for part in PARTS:
            asked = sum(getattr(row, part) is not None for row in ROWS)
            print(f"{part}: {asked - parts[part]} of {asked}")
        print(f"all: {sum(not missing for missing in lacking.values())} of {len(ROWS)}")
    short = {typed: (missing, told[typed]) for typed, missing in lacking.items() if missing}
    assert len(short) <= (1.0 - SHARE) * len(ROWS), "\n".join(f"{one}: {why}" for one, why in short.items())
