"""`--data`: files of data, and which figure reads which of them; and the data that come with the project.

A figure that can read data defines ``DATA``, a tuple of the files' usual names, and
``compute(scale, files)``: `files` maps those names to paths, as far as they were given. Without them it
takes the data in ``reproduce/data`` or uses a stand-in, and says which in tables and picture.

Where data sets have files of the same names, a usual name has a folder before it, as in
``fashion/train-images-idx3-ubyte.gz``. Such a file is known by the folder it is in or, whatever that is
called, by its MD5; it may be unpacked, without the .gz.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from .figure import BadInput, Figure

Files = dict[str, Path]
Read = TypeVar("Read")

CHECKSUMS = {
    "mnist/train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "mnist/train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "mnist/t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "mnist/t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    "fashion/train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "fashion/train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "fashion/t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "fashion/t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    "kmnist/train-images-idx3-ubyte.gz": "bdb82020997e1d708af4cf47b453dcf7",
    "kmnist/train-labels-idx1-ubyte.gz": "e144d726b3acfaa3e44228e80efcd344",
    "kmnist/t10k-images-idx3-ubyte.gz": "5c965bf0a639b31b8f53240b1b52f4d7",
    "kmnist/t10k-labels-idx1-ubyte.gz": "7320c461ea6c1c855c0b718fb2a4b134",
}
"""MD5 of files as their makers offer them, packed, by usual name."""
PACKED = ".gz"
SHIPPED = {"magic04.data": "bb3888bd588c4b15b24351218f74491e",
           "adult.csv": "12a771ed3acf0dc9371f856dde970c4e",
           "adult.test.csv": "9228191debca2717ca32e5e605a47f1d"}
"""MD5, unpacked, of the data in ``reproduce/data``, whose NOTICE.md names their authors and licence."""
NOT_THE_PAPERS = "NOT THE PAPER'S DATA"


def shipped(name: str) -> Path:
    """The xz file of one of `SHIPPED`."""
    return Path(__file__).parent / "data" / f"{name}.xz"


def own_rows(n_rows: str) -> str:
    """What rows in the format of a paper's data that are not those data are called."""
    return f"{n_rows} rows of --data, {NOT_THE_PAPERS}"


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
        Naming the path: where it does not exist, is or holds nothing that these figures read, or is a file
        of another data set by its MD5.
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


def listed(names: Iterable[str]) -> str:
    """Usual names in words, those of a folder together."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, base = name.rpartition("/")
        folders.setdefault(folder, []).append(base)
    return ", ".join(f"{folder}/ with {', '.join(bases)}" if folder else ", ".join(bases)
                     for folder, bases in folders.items())


def recognised(path: Path) -> str | None:
    """The usual name of a file by its MD5, where it has that of `CHECKSUMS`."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    return next((name for name, md5 in CHECKSUMS.items() if md5 == found), None)


def _bases(name: str) -> tuple[str, ...]:
    """How a file may be called in its folder, packed first."""
    folder, _, base = name.rpartition("/")
    return (base, base.removesuffix(PACKED)) if folder and base.endswith(PACKED) else (base,)


def _is(name: str, file: Path) -> bool:
    """Is this file, which exists, the one of a usual name?"""
    if file.name not in _bases(name):
        return False
    folder, known = name.rpartition("/")[0], None
    if name in CHECKSUMS:
        known = recognised(file)
    at_home = not folder or Path(os.path.abspath(file)).parent.name == folder
    if at_home and known not in (None, name):
        raise BadInput(f"--data {file}: by its MD5 this is {known}; give it in a folder of that name")
    return at_home or known == name


def _in_folder(folder: Path, names: list[str]) -> Files:
    here: Files = {}
    for name in names:
        inside = [folder / base for base in _bases(name)]
        inside += [folder / name.rpartition("/")[0] / base for base in _bases(name)]
        for file in inside:
            if file.is_file() and _is(name, file):
                here[name] = file
                break
    if not here:
        raise BadInput(f"--data {folder}: the folder must hold at least one of {listed(names)}")
    return here


def _one_file(path: Path, names: list[str]) -> Files:
    if not path.is_file():
        raise BadInput(f"--data {path}: there is no such file or folder")
    name = next((name for name in names if _is(name, path)), names[0] if len(names) == 1 else None)
    if name is None:
        raise BadInput(f"--data {path}: the chosen figures read {listed(names)}; give the file one of "
                       "these names, or choose figures that read one file only")
    return {name: path}


def read(reader: Callable[[Path], Read], path: Path) -> Read:
    """Read a file; what the reader has against it becomes `BadInput`, for the command line to print."""
    try:
        return reader(path)
    except ValueError as error:
        raise BadInput(str(error)) from None
