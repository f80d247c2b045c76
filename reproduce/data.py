"""`--data`: files of data that are not part of the project, and which figure reads which of them.

A figure that can read data defines ``DATA``, a tuple of the files' usual names, and
``compute(scale, files)``: `files` maps those names to paths, as far as they were given. Without them it
uses a stand-in and says so in tables and picture.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from .figure import BadInput, Figure

Files = dict[str, Path]
Read = TypeVar("Read")


def chosen_files(given: Sequence[str | os.PathLike[str]], figures: Iterable[Figure]) -> Files:
    """What `--data` names, by the usual names of the figures' files.

    Parameters
    ----------
    given : paths
        Files, or folders that hold files under their usual names. A file of another name is taken for
        the one that the figures read, where there is only one.
    figures : figures to be made

    Raises
    ------
    BadInput
        Naming the path: where it does not exist, or is or holds nothing that these figures read.
    """
    names = list(dict.fromkeys(name for figure in figures for name in figure.data))
    if given and not names:
        raise BadInput("--data was given, but none of the chosen figures reads data")
    files: Files = {}
    for path in map(Path, given):
        here = _in_folder(path, names) if path.is_dir() else _one_file(path, names)
        for name in here:
            if name in files:
                raise BadInput(f"--data: {name} was given twice, as {files[name]} and {here[name]}")
        files |= here
    return files


def _in_folder(folder: Path, names: list[str]) -> Files:
    here = {name: folder / name for name in names if (folder / name).is_file()}
    if not here:
        raise BadInput(f"--data {folder}: the folder must hold at least one of {', '.join(names)}")
    return here


def _one_file(path: Path, names: list[str]) -> Files:
    if not path.is_file():
        raise BadInput(f"--data {path}: there is no such file or folder")
    if path.name not in names and len(names) > 1:
        raise BadInput(f"--data {path}: the chosen figures read {', '.join(names)}; give the file one of "
                       "these names, or choose figures that read one file only")
    return {path.name if path.name in names else names[0]: path}


def read(reader: Callable[[Path], Read], path: Path) -> Read:
    """Read a file; what the reader has against it becomes `BadInput`, for the command line to print."""
    try:
        return reader(path)
    except ValueError as error:
        raise BadInput(str(error)) from None
