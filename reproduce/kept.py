"""What is finished of a long command, kept in a file so that an interrupted run can go on.

The file's first line says what its items depend on; with any other sources, arguments or versions of the
numerical libraries they are not used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import scipy

import fedsim
import theory


def _sources(modules: Sequence[ModuleType]) -> str:
    """Hash of fedsim, theory and these modules."""
    folders = [Path(str(package.__file__)).parent for package in (fedsim, theory)]
    paths = [Path(str(module.__file__)) for module in modules]
    paths += [path for folder in folders for path in folder.rglob("*.py")]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.parent.name}/{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


class Kept:
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
        self._head = json.dumps({**arguments, "sources": _sources(modules), "numpy": numpy.__version__,
                                 "scipy": scipy.__version__})

    def load(self) -> dict[str, Any]:
        """Items by key; begins the file anew where it is of something else."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        finished: dict[str, Any] = {}
        if lines[:1] == [self._head]:
            for line in lines[1:]:
                try:
                    key, item = json.loads(line)
                except json.JSONDecodeError:  # a run that was killed while it wrote
                    break
                finished[key] = item
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._head, *map(json.dumps, finished.items())]
        self.path.write_text("".join(f"{line}\n" for line in lines))
        return finished

    def add(self, key: str, item: Any) -> None:
        """Keep one more item."""
        with self.path.open("a") as file:
            file.write(json.dumps([key, item]) + "\n")

    def remove(self) -> None:
        """The result is written: nothing to go on with."""
        self.path.unlink(missing_ok=True)
