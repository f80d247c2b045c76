"""Tables that say the opposite, for every judge of every figure.

A module of this package defines ``OPPOSITES: dict[(figure, name), list[(verdict, change)]]``: `change`
takes the figure's tables (a copy; it may alter them in place) and returns tables from which the claim or
finding `name` must get `verdict`. Every judged claim and finding needs one that differs from its verdict
on the committed tables; where that one is NOT TESTABLE or OPEN, the words of both outcomes.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from reproduce.claims import Tables

Change = tuple[str, Callable[[Tables], Tables]]


def opposites() -> dict[tuple[str, str], list[Change]]:
    """All of them, by figure and name."""
    found: dict[tuple[str, str], list[Change]] = {}
    for info in pkgutil.iter_modules(__path__):
        more = importlib.import_module(f"{__name__}.{info.name}").OPPOSITES
        twice = found.keys() & more.keys()
        assert not twice, f"{info.name} repeats {sorted(twice)}"
        found |= more
    return found
