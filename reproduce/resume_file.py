"""What is finished of a long command, kept in a file so that an interrupted run can go on.

The file's first line says what its items depend on; with any other sources, arguments or versions of the
numerical libraries they are not used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import scipy

import fedsim
import theory
from fedsim.fingerprints import source_hash
from fedsim.laws.storage import write_atomically


class ResumeFile:
    """The file of finished items in a folder; ignored by git.

    Parameters
    ----------
    folder : where the result will be written
    name : of the command
    modules : what decides an item besides fedsim and theory
    arguments : what else does, by name
    """

    def __init__(self, folder: Path, name: str, modules: Sequence[ModuleType], **arguments: Any) -> None:
        self.path = folder / f".partial-{name}.jsonl"
        self._head = json.dumps({**arguments, "sources": source_hash(fedsim, theory, *modules),
                                 "numpy": numpy.__version__, "scipy": scipy.__version__})

    def load(self) -> dict[str, Any]:
        """Items by key; begins the file anew where it is of something else.

        Whatever stops it, the file is the old one or the new one.
        """
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        finished: dict[str, Any] = {}
        if lines[:1] == [self._head]:
            with suppress(json.JSONDecodeError):  # of a run that was killed while it wrote
                finished.update(map(json.loads, lines[1:]))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._head, *map(json.dumps, finished.items())]
        write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode())
        return finished

    def add(self, key: str, item: Any) -> None:
        """Keep one more item."""
        with self.path.open("a") as file:
            file.write(json.dumps([key, item]) + "\n")

    def remove(self) -> None:
        """The result is written: nothing to go on with."""
        self.path.unlink(missing_ok=True)
