"""Compiled code: the one decorator, compile-time dispatch, and the cache folder.

No other module names a numba option; `tiles` and the modules that use it write vector instructions. The
options of `compiled`, and why:

- ``nogil``: threads run blocks of replicas side by side.
- a disk cache: a second process starts in well under a second.
- ``error_model="numpy"``: Python's zero-division check keeps loops from vectorising.
- no ``fastmath``: strict arithmetic gives the same bits on every x86-64 machine.
- no ``parallel``: threads come from the engine, so that Ctrl-C and exact reproducibility work.

numba's disk cache looks for edits only in the file of the cached function itself; an edit in a callee
would silently run old code. The cache folder is therefore keyed by a hash of all fedsim sources.

The cache makes processes start sooner and is never needed. What is damaged (each file begins with a hash of
the rest), another function's or gone is compiled in memory and written again; where that fails, on a full
disk or in a folder that is not writable, every process compiles for itself. A process warns of it once.
`cache` says whose the folder has to be.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic, overload

from .cache import make_folder, make_private, private_folder, warn_once

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # never called from Python: compiles faster


@functools.cache
def source_hash() -> str:
    """Hash of every fedsim source file: the version of the compiled code."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _cache_place() -> tuple[Path | None, str]:
    return private_folder(source_hash())


def cache_folder() -> Path | None:
    """Folder of compiled code in NUMBA_CACHE_DIR, the user's cache or a temporary folder; None for none."""
    return _cache_place()[0]


def _is_own(kind: Any) -> bool:
    """True when a type names no class from outside fedsim."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None and cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return False
    return all(_is_own(part) for part in getattr(kind, "types", ()))


class _Place:
    """Where the files of a function are, for numba, whose own choice may be a folder beside the sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_file = inspect.getfile(function)
        self._line = function.__code__.co_firstlineno
        source = Path(self._py_file).absolute()
        beside = hashlib.sha256(str(source.parent).encode()).hexdigest()
        self._folder = (cache_folder() or Path()) / f"{source.parent.name}_{beside[:16]}"

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return source_hash()

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        make_folder(self._folder.parent)  # it may be gone
        make_private(self._folder)


class _Kept(CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of a compiled function, and under which name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Place(function)
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


class _OwnCache(FunctionCache):  # type: ignore[misc]
    """A disk cache that keeps only code for types of this package, and that may fail.

    A user's registered class is pickled by name into the shared index, which no process without the
    user's module could then read; nor would an edit of that module be noticed.
    """

    _impl_class = _Kept

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, source_hash())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self._or_none(super().load_overload, sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        if all(_is_own(kind) for kind in data.signature.args):
            self._or_none(super().save_overload, sig, data)

    def _or_none(self, use: Callable[..., Any], *args: Any) -> Any:
        folder, refused = _cache_place()
        if folder is None:
            warn_once(f"there is no folder for compiled code ({refused})")
            return None
        try:
            return use(*args)
        except Exception as error:  # the code can be compiled, whatever is wrong here
            warn_once(f"compiled code in {folder} cannot be used or kept ({type(error).__name__}: {error})")
            return None


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel on first call (never at import), with the options explained above."""
    kernel = numba.njit(**_OPTIONS)(function)
    kernel._cache = _OwnCache(function)  # what cache=True does, with our cache
    return kernel


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls; it is cached with its callers."""
    return numba.njit(**_OPTIONS, **_INNER)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function of scalars that is always inlined, so that the loop around it vectorises."""
    return numba.njit(forceinline=True, **_OPTIONS, **_INNER)(function)


def spliced(function: Callable[..., Any]) -> Any:
    """Copy a one-line function into its callers before types are known, so that it may return a view."""
    return numba.njit(inline="always", **_OPTIONS, **_INNER)(function)


class Nothing(NamedTuple):
    """What has no parameters derives from this: numba does not accept a tuple class without a field."""

    unused: int = 0


STUBS: list[Any] = []
"""Every dispatched function, in the order of their definition."""


def dispatched(stub: Callable[..., Any] | None = None, *, inline: bool = False, by: str = "") -> Any:
    """Make `stub` a compiled function whose body is chosen by the class of its first argument, or of `by`.

    ``@stub.register(SomeNamedTuple)`` adds a body (``np.ndarray``: for any array), ``@stub.otherwise`` one
    for all other classes. The choice is made while compiling and costs nothing at run time; unlike function
    arguments or closures it keeps the disk cache valid. `body_of` tells which body it is.

    ``@dispatched(inline=True)`` is for what is called in one place, many times: to pass a problem and a
    workspace to a function takes as long as the arithmetic of a hundred lanes.
    """
    if stub is None:
        return functools.partial(dispatched, inline=inline, by=by)
    names = list(inspect.signature(stub).parameters)
    function: Any = stub
    function.by, function.bodies = by or names[0], {}
    place = names.index(function.by)

    def choose(*args: Any) -> Callable[..., Any] | None:
        array = np.ndarray if isinstance(args[place], types.Array) else None
        return body_of(function, getattr(args[place], "instance_class", array))

    options = _OPTIONS | _INNER | ({"forceinline": True} if inline else {})
    overload(stub, jit_options=options, strict=False)(choose)

    def register(cls: type | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(body: Callable[..., Any]) -> Callable[..., Any]:
            function.bodies[cls] = body
            return body

        return add

    function.register, function.otherwise = register, register(None)
    STUBS.append(function)
    return function


def body_of(stub: Any, cls: type | None) -> Callable[..., Any] | None:
    """What a dispatched function runs for this class: its own body, or the general one if there is any."""
    body: Callable[..., Any] | None = stub.bodies.get(cls, stub.bodies.get(None))
    return body


def _bitcast(source: Any, target: Any, llvm: Any) -> Any:
    @intrinsic
    def cast(typingctx: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], llvm)

        return target(source), build

    return cast


@intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once: the same bits on every machine, and one instruction where there is one."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, b, c), build


float64_bits = _bitcast(types.float64, types.uint64, ir.IntType(64))
bits_float64 = _bitcast(types.uint64, types.float64, ir.DoubleType())
float32_bits = _bitcast(types.float32, types.uint32, ir.IntType(32))
bits_float32 = _bitcast(types.uint32, types.float32, ir.FloatType())
