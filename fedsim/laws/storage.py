"""Files: the old one or the whole new one for every reader, and arrays that are parsed, never trusted.

What is written goes into a part beside its place, `.fedsim-<machine>-<process>-<random>.part`, and from there
by one rename. A part is removed when its writing fails, and by `sweep` when its process died. Archives hold
arrays without pickle; nothing is expanded or allocated before its size is known and allowed.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import math
import os
import platform
import stat
import struct
import time
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..settings.limits import refuse_bytes
from ..settings.validation import shown, whole

DAMAGED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, OSError, EOFError,
           SyntaxError, RuntimeError, MemoryError, struct.error, tokenize.TokenError, zipfile.BadZipFile,
           zlib.error)
"""What reading a damaged or foreign file raises."""
ABANDONED_SECONDS = 86400
"""Age of a part that nobody is still writing, where its process cannot be asked for."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # file systems that know of none


@functools.cache
def _machine() -> str:
    """Digits for the machine, and for the container in which a process has its number."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        space = 0
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def _sync(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder outlast a power cut."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            _sync(handle)
        finally:
            os.close(handle)


def write_part(path: Path, data: bytes | Mapping[str, Any]) -> Path:
    """The whole new content of `path` in a part beside it; its mode is that of the old file, or the umask's.

    Parameters
    ----------
    path : Path
    data : bytes, or arrays by name
    """
    part = path.parent / f".fedsim-{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
    try:
        with open(part, "xb") as file:
            if isinstance(data, bytes):
                file.write(data)
            else:
                np.savez(file, **data)
            file.flush()
            if path.is_file() and (mode := path.stat().st_mode) != part.stat().st_mode:
                os.chmod(part, stat.S_IMODE(mode))
            _sync(file.fileno())
    except BaseException:
        remove(part)
        raise
    return part


def remove(part: Path) -> None:
    """Remove a part, without complaint where that cannot be done."""
    with suppress(OSError):
        part.unlink()


def put(part: Path, path: Path, *, new: bool = False) -> None:
    """Put a part into its place; FileExistsError where it has to be `new` and is not."""
    if new:
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.replace(part, path)
        else:
            os.unlink(part)
    else:
        os.replace(part, path)


def write_atomically(path: Path, data: bytes | Mapping[str, Any], *, new: bool = False,
                     lasting: bool = True) -> None:
    """Write bytes, or arrays by name, so that a reader sees the old file or the whole new one.

    A link stays, and its target is replaced. A `lasting` file outlasts a power cut; of one that is not, at
    worst the old state comes back.
    """
    path = Path(os.path.realpath(path))
    part = write_part(path, data)
    try:
        put(part, path, new=new)
    except BaseException:
        remove(part)
        raise
    if lasting:
        _sync_folder(path.parent)


def _abandoned(part: Path) -> bool:
    """True when the process that wrote a part is gone, or the part too old where that cannot be known."""
    try:
        machine, process = part.name.split("-")[1:3]
        if machine == _machine() and os.name == "posix":
            try:
                os.kill(int(process), 0)
            except ProcessLookupError:
                return True
            except PermissionError:  # it lives, and belongs to somebody else
                pass
        return time.time() - part.stat().st_mtime > ABANDONED_SECONDS
    except (ValueError, OSError, OverflowError):
        return False


def sweep(folder: Path) -> None:
    """Remove the parts of dead processes; never one that is being written."""
    for part in folder.glob(".fedsim-*.part"):
        if _abandoned(part):
            remove(part)


def file_path(path: object) -> Path:
    """A path that can name a file, or a ValueError with the argument `path`."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ValueError(f"path={shown(path)} must be a file's path")
    if "\0" in os.fspath(path):
        raise ValueError(f"path={shown(path)} must be a file's path, without a null character")
    return Path(path)


def save_arrays(path: object, data: Mapping[str, Any]) -> None:
    """Write a user's file, with messages that name the argument `path`."""
    target = file_path(path)
    if target.is_dir():
        raise ValueError(f"path={str(path)!r} is a folder; it must name a file")
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: the folder {str(target.parent)!r} does not exist; "
                                "make it first")
    sweep(folder)
    write_atomically(target, data)


class _Archive:
    """Arrays of a .npz file, each read when it is asked for."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._asked = 0
        self.size = len(archive.namelist())

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._archive.NameToInfo

    def __getitem__(self, name: str) -> np.ndarray:
        """An array that is exactly as large as its header says, and not too large together with others."""
        member = self._archive.getinfo(f"{name}.npy")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed by an unknown method")
        self._asked += member.file_size
        refuse_bytes(self._asked, f"{name}, with what is read before it,", "no such file was saved here")
        with self._archive.open(member) as stream:
            shape, _, kind = _HEADERS[np.lib.format.read_magic(stream)](stream)
            n_bytes = math.prod(shape) * kind.itemsize
            if (kind.kind not in "biuf" or min(shape, default=0) < 0
                    or n_bytes != member.file_size - stream.tell()):
                raise ValueError(f"{name} is not the array of numbers that its header promises")
        with self._archive.open(member) as stream:
            value: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read(1)  # compares the check sum, if that was not done
        return value


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a pipe would wait for ever
        raise ValueError("it is not a regular file")
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        yield _Archive(archive)


def read_arrays(path: Path, names: Iterable[str]) -> dict[str, Any]:
    """The arrays of a file that have these names; one of `DAMAGED` where it is not sound."""
    with _opened(path) as archive:
        return {name: archive[name] for name in names if name in archive}


def read_payload(path: Path, arrays: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays of these names, and of clients, and meta data of a saved law; raises as `read_arrays`."""
    with _opened(path) as archive:
        meta = json.loads(archive["meta"].tobytes().decode())
        if meta["version"] != 1 or meta["kind"] not in ("Law", "Run"):
            raise KeyError("version or kind")
        n_clients = whole("n_clients", meta["n_clients"], 0, archive.size)
        clients = (f"client{i}_{name}" for i in range(n_clients) for name in ("mean", "cov", "outside"))
        known = [name for name in (*arrays, *clients) if name in archive]
        if archive.size != len(known) + 1:  # e.g. an array that lost its name
            raise ValueError("it holds what is no part of a law")
        return {name: archive[name] for name in known}, meta
