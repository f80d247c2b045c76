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
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic, overload

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
_INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # never called from Python: compiles faster
_KEEP_SECONDS = 30 * 86400


@functools.cache
def source_hash() -> str:
    """Hash of every fedsim source file: the version of the compiled code."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _prune(parent: Path, current: str) -> None:
    """Remove cache folders of other source versions that were not used for a month."""
    for folder in parent.glob("*"):
        try:
            old = time.time() - folder.stat().st_mtime > _KEEP_SECONDS
            if folder.name != current and len(folder.name) == 16 and old:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


@functools.cache
def cache_folder() -> Path:
    """Folder of compiled code: NUMBA_CACHE_DIR, the user's cache, or a temporary folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    user = os.getuid() if hasattr(os, "getuid") else 0
    parents = [Path(os.environ.get("NUMBA_CACHE_DIR") or home) / "fedsim",
               Path(tempfile.gettempdir()) / f"fedsim-{user}"]
    for parent in parents:
        if _writable(parent / source_hash()):
            os.utime(parent / source_hash())
            _prune(parent, source_hash())
            return parent / source_hash()
    return parents[-1] / source_hash()


def _is_own(kind: Any) -> bool:
    """True when a type names no class from outside fedsim."""
    cls = getattr(kind, "instance_class", None)
    if cls is not None and cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
        return False
    return all(_is_own(part) for part in getattr(kind, "types", ()))


class _OwnCache(FunctionCache):  # type: ignore[misc]
    """A disk cache that keeps only code for types of this package.

    A user's registered class is pickled by name into the shared index, which no process without the
    user's module could then read; nor would an edit of that module be noticed.
    """

    def save_overload(self, sig: Any, data: Any) -> None:
        if all(_is_own(kind) for kind in data.signature.args):
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel on first call (never at import), with the options explained above."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())  # read at decoration; put back for other packages
    try:
        kernel = numba.njit(**_OPTIONS)(function)
        kernel._cache = _OwnCache(function)  # what cache=True does, with our cache
        return kernel
    finally:
        numba.config.CACHE_DIR = before


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
