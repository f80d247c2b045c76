"""Rows of the scoreboard that are finished, kept in a file so that an interrupted run can go on.

The file's first line says what its rows depend on; with any other sources, number of problems or versions
of the numerical libraries they are not used.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy
import scipy

import fedsim
import theory

from .. import random_settings
from . import rows

Row = dict[str, Any]


@cache
def _sources() -> str:
    """Hash of every source that decides a row."""
    folders = [Path(str(package.__file__)).parent for package in (fedsim, theory)]
    paths = [Path(str(module.__file__)) for module in (rows, random_settings)]
    paths += [path for folder in folders for path in folder.rglob("*.py")]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.parent.name}/{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


class Kept:
    """The file of finished theorems in a folder; ignored by git.

    Parameters
    ----------
    folder : where the table will be written
    n_problems : random problems per theorem
    """

    def __init__(self, folder: Path, n_problems: int) -> None:
        self.path = folder / ".partial-scoreboard.jsonl"
        self._head = json.dumps({"problems": n_problems, "sources": _sources(), "numpy": numpy.__version__,
                                 "scipy": scipy.__version__})

    def load(self) -> dict[str, list[Row]]:
        """Rows by theorem; begins the file anew where it is of something else."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        finished: dict[str, list[Row]] = {}
        if lines[:1] == [self._head]:
            for line in lines[1:]:
                try:
                    rows = json.loads(line)
                except json.JSONDecodeError:  # a run that was killed while it wrote
                    break
                finished[rows[0]["theorem"]] = rows
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._head, *map(json.dumps, finished.values())]
        self.path.write_text("".join(f"{line}\n" for line in lines))
        return finished

    def add(self, rows: list[Row]) -> None:
        """Keep the rows of one more theorem."""
        with self.path.open("a") as file:
            file.write(json.dumps(rows) + "\n")

    def remove(self) -> None:
        """The table is written: nothing to go on with."""
        self.path.unlink(missing_ok=True)
