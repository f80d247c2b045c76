"""Mistakes that users make, each with what its message has to say.

A row is (what is typed, argument, value, condition, remedy): words that the message must have, as patterns,
whatever else it says; None where there is none: a forgotten argument has no value, and what was meant is not
always known. They are written from what a user needs to be told, not from what is told.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from . import of_algorithms, of_names, of_problems, of_runs, of_shell, of_theory, seen

PARTS = ("argument", "value", "condition", "remedy")


class Row(NamedTuple):
    """A mistake."""

    typed: str
    argument: str | None
    value: str | None
    condition: str | None
    remedy: str | None


ROWS = [Row(*row) for module in (of_algorithms, of_names, of_problems, of_runs, of_shell, of_theory)
        for row in module.ROWS]


def message(row: Row) -> str:
    """What is said to a mistake; an AssertionError where nothing is."""
    try:
        made = eval(row.typed, vars(seen))
    except seen.REFUSALS as error:
        return str(error)
    raise AssertionError(f"{row.typed} was accepted: {made!r}")


def unsaid(row: Row, told: str) -> list[str]:
    """The parts that a message lacks."""
    wanted: dict[str, Any] = {part: getattr(row, part) for part in PARTS}
    return [part for part, words in wanted.items() if words is not None and not re.search(words, told)]
