"""Faults that were thought of: each is a change of one line, and the tests that have to fail for it.

``python -m tools.mutate`` makes every change in a copy of the project and runs those tests there. The list
follows the code: `old` stands exactly once in its file, or the list is stale, which is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent


class Fault(NamedTuple):
    """A change of a file, and what has to see it.

    Attributes
    ----------
    name : what is wrong then, in a few words; `--only` chooses by a part of it
    file : path in the project
    old, new : what is replaced by what
    tests : arguments of pytest
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Write the fault into the copy of the project in `root`."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: old={self.old!r} must stand exactly once in {self.file}, "
                             f"not {text.count(self.old)} times; the list of faults is stale")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def faults() -> list[Fault]:
    """All of them."""
    from . import of_constants, of_recursions, of_runs, of_searches, of_streams, of_theory, of_worst_case

    return [*of_theory.FAULTS, *of_constants.FAULTS, *of_recursions.FAULTS, *of_searches.FAULTS,
            *of_worst_case.FAULTS, *of_streams.FAULTS, *of_runs.FAULTS]
