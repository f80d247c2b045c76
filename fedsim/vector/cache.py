"""The folder of compiled code: private to the user, or none; and the one warning when it is of no use.

Its files are pickles and machine code: who can write them runs code in this process. So the folder `fedsim`,
in NUMBA_CACHE_DIR or else in the user's cache, has to belong to the user and is made with mode 0700; one that
others could write to is closed, and what is in it thrown away. A link or folder of somebody else is not used.
Next comes a folder in the temporary folder, by the same rules and never through a link, and then none.

numba's disk cache looks for edits only in the file of the cached function itself; an edit in a callee
would silently run old code. The cache folder is therefore keyed by a hash of all sources that can change
compiled code (`COMPILED`, which a test compares with what compiled bodies name).
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..fingerprints import hash_of

_ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("vector", "random", "algorithms", "problems", "engine/rounds.py", "engine/state.py",
            "settings/schedules.py", "settings/staleness.py", "interfaces.py", "samplers/operations.py")
"""Where compiled bodies stand, and the classes and constants that they see."""
_NAME = "fedsim"
APART = "_of_"
"""In the names of folders of what was compiled for a user's function."""
_KEEP_SECONDS = 30 * 86400
_KEEP_PARTS_SECONDS = 86400


class CacheWarning(UserWarning):
    """Compiled code could not be read or kept: compiling it takes seconds, in this process and the next.

    It is warned of once in a process; the numbers are the same.

    Examples
    --------
    >>> import warnings
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", fs.CacheWarning)
    ...     run = fs.simulate(problem, fs.FALD(0.1), n_rounds=2, n_replicas=64, seed=1)
    """


class _NotPrivate(OSError):
    """A folder of somebody else, or a link that may lead to one."""


def make_private(folder: Path) -> None:
    """Make a folder of the user's alone, or an OSError; a link of the user's to one will do for `fedsim`."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    own, target = folder.lstat(), folder.stat()
    if not stat.S_ISDIR(target.st_mode) or (stat.S_ISLNK(own.st_mode) and folder.name != _NAME):
        raise _NotPrivate(f"{folder} is not a folder")
    if not hasattr(os, "getuid"):
        return
    if {own.st_uid, target.st_uid} != {os.getuid()}:
        raise _NotPrivate(f"{folder} belongs to another user")
    if target.st_mode & (stat.S_IWGRP | stat.S_IWOTH):  # others may write
        folder.chmod(0o700)
        for inside in folder.iterdir():  # it may be anybody's
            if inside.is_dir() and not inside.is_symlink():
                shutil.rmtree(inside)
            else:
                inside.unlink()


def make_folder(folder: Path) -> None:
    """Make the folder of a version, and that of all versions, private; or an OSError."""
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    make_private(folder.parent)
    make_private(folder)


def _candidates() -> Iterator[Path]:
    """Places for the folder, the best first."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen or os.path.isabs(home):
        yield Path(chosen or home).absolute() / _NAME
    with suppress(FileNotFoundError):  # there is no temporary folder, or no room in any
        yield Path(tempfile.gettempdir()) / f"{_NAME}-{os.getuid() if hasattr(os, 'getuid') else 0}"


def _prune(parent: Path, version: str) -> None:
    """Remove what was not used for a month, of other versions and of users' functions; and parts of files."""
    versions = [folder for folder in parent.glob("*") if folder.name != version and len(folder.name) == 16]
    for folder in [*versions, *(parent / version).glob(f"*{APART}*")]:
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
    for part in (parent / version).glob("*/*.tmp.*"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _KEEP_PARTS_SECONDS:
                part.unlink()


def private_folder(version: str) -> tuple[Path | None, str]:
    """The folder for a version of the sources, or None, and why better places were refused."""
    refused = []
    for parent in _candidates():
        folder = parent / version
        try:
            make_folder(folder)
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)
            _prune(parent, version)
        except OSError as error:
            refused.append(f"{parent}: {error}")
            continue
        return folder, "; ".join(refused)
    return None, "; ".join(refused)


class _Once:
    """Whether this process has warned."""

    done = False


def warn_once(what: str) -> None:
    """Say what is wrong with compiled code and what can be done, the first time in this process."""
    if not _Once.done:
        _Once.done = True
        warnings.warn(f"{what}. fedsim compiles in memory instead, which takes seconds in each process: make "
                      "room, remove the folder, or set NUMBA_CACHE_DIR to a folder of your own", CacheWarning,
                      stacklevel=2)


@functools.cache
def code_hash() -> str:
    """Hash of the source files that can change compiled code: its version."""
    return hash_of(*(_ROOT / part for part in COMPILED))


@functools.cache
def cache_place() -> tuple[Path | None, str]:
    """The folder for the code of this version, or None and why there is none."""
    return private_folder(code_hash())
