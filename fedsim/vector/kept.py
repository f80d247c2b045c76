"""The disk cache of compiled code: what numba is told of where it is, and what is done when it fails.

It makes processes start sooner and is never needed. What is damaged (each file begins with a hash of the
rest), another function's or gone is compiled in memory and written again; where that fails, on a full disk or
in a folder that is not writable, every process compiles for itself. A process warns of it once. `cache` says
whose the folder has to be. This file needs numba, so it is imported where something is compiled.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from . import cache
from .cache import code_hash, make_folder, make_private, warn_once

try:
    import fcntl
except ImportError:  # not on Windows: there processes that start together compile the same
    fcntl = None  # type: ignore[assignment]

PATIENCE = 120.0
"""Seconds that a process waits for another one to compile what it needs too."""
_BYTES = 2**30


def _is_own(kind: Any) -> bool:
    """True when a type names no class from outside fedsim."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None and cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return False
    return all(_is_own(part) for part in getattr(kind, "types", ()))


def _made_at_run_time(kinds: Any) -> str:
    """The name of the class made at run time that is among these types, or in them; "" for none."""
    for kind in kinds:
        cls = getattr(kind, "instance_class", None)
        if cls is not None and getattr(cls, "made_at_run_time", False):
            return str(cls.__name__)
        if inside := _made_at_run_time(getattr(kind, "types", ())):
            return inside
    return ""


class _Place:
    """Where the files of a function are, for numba, whose own choice may be a folder beside the sources.

    `owner` is the name of the class made at run time whose folder it is, "" for everybody's.
    """

    def __init__(self, function: Callable[..., Any], owner: str) -> None:
        self._py_file = inspect.getfile(function)
        self._line = function.__code__.co_firstlineno
        source = Path(self._py_file).absolute()
        beside = hashlib.sha256(str(source.parent).encode()).hexdigest()
        name = f"{source.parent.name}_{beside[:16]}{owner and cache.APART + owner}"
        self._folder = (cache.cache_place()[0] or Path()) / name

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return code_hash()

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        make_folder(self._folder.parent)  # it may be gone
        make_private(self._folder)
        os.utime(self._folder)


class _Kept(CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of a compiled function, and under which name."""

    owner = ""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function, self.owner)
        name = f"{Path(self._locator._py_file).stem}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Index and code of a function, each after a hash of it and whose it is; else it is as if not there."""

    def _hash(self, data: bytes) -> bytes:
        owner = f"{self._source_stamp} {Path(self._index_path).parent.name} {self._index_name} "
        return hashlib.sha256(owner.encode() + data).digest()

    def load(self, key: Any) -> Any:
        entry = super().load(key)
        # two processes that begin an index at once may give one name to two signatures
        return entry[1] if entry is not None and entry[0] == key else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def _load_index(self) -> Any:
        return self._read(self._index_path) or {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(self._hash(data) + data)

    def _read(self, path: str) -> Any:
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            return None
        if self._hash(data[32:]) != data[:32]:
            warn_once(f"compiled code in {path} is damaged and will be replaced")
            return None
        return pickle.loads(data[32:])


class _OneFolder(FunctionCache):  # type: ignore[misc]
    """numba's disk cache of a function, in the folder of `owner`."""

    def __init__(self, function: Callable[..., Any], owner: str) -> None:
        self._impl_class = type("_Kept", (_Kept,), {"owner": owner})
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, code_hash())


class Turn:
    """The right to compile a kernel for a signature, which one process has at a time.

    It is a lock on one byte of a file, which the system gives back when a process ends. There is one turn in
    a process, as numba compiles one kernel at a time.
    """

    _file: Any = None

    @classmethod
    def take(cls, folder: Path, what: str) -> bool:
        """Wait for the turn to compile `what`; False after `PATIENCE`, or where files have no locks."""
        cls.leave()
        if fcntl is None:
            return False
        byte = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big") % _BYTES
        until = time.monotonic() + PATIENCE
        with suppress(OSError, MemoryError):
            cls._file = open(folder / "turns", "ab")
            while time.monotonic() < until:
                with suppress(BlockingIOError):
                    fcntl.lockf(cls._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                    return True
                time.sleep(0.02)
        return False

    @classmethod
    def leave(cls) -> None:
        """Let others compile."""
        if cls._file is not None:
            cls._file.close()
            cls._file = None


class OwnCache(_OneFolder):
    """A disk cache that keeps only code for types of this package, and that may fail.

    A user's registered class is pickled by name into the shared index, which no process without the
    user's module could then read; nor would an edit of that module be noticed. The classes that are made
    at run time, one for each function of a user's, have folders of their own, which nobody reads who has not
    made the class.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, "")
        self._apart: dict[str, _OneFolder] = {}

    def _folder_of(self, kinds: Any) -> Any:
        """numba's cache in the folder for these types."""
        owner = _made_at_run_time(kinds)
        if not owner:
            return super()
        if owner not in self._apart:
            self._apart[owner] = _OneFolder(self._py_func, owner)
        return self._apart[owner]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for a signature; where nothing is, this process may compile it, and others wait."""
        load, (folder, _) = self._folder_of(sig).load_overload, cache.cache_place()
        found = self._or_none(load, sig, target_context)
        if found is None and folder is not None and all(_is_own(kind) for kind in sig):
            Turn.take(folder, f"{self._py_func.__module__}.{self._py_func.__qualname__} {sig}")
            found = self._or_none(load, sig, target_context)  # another one may have compiled it meanwhile
            if found is not None:
                Turn.leave()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if all(_is_own(kind) for kind in data.signature.args):
            self._or_none(self._folder_of(sig).save_overload, sig, data)
        Turn.leave()

    def _or_none(self, use: Callable[..., Any], *args: Any) -> Any:
        folder, refused = cache.cache_place()
        if folder is None:
            warn_once(f"there is no folder for compiled code ({refused})")
            return None
        try:
            return use(*args)
        except Exception as error:  # the code can be compiled, whatever is wrong here
            warn_once(f"compiled code in {folder} cannot be used or kept ({type(error).__name__}: {error})")
            return None
