"""Compiled code: the one decorator, and compile-time dispatch.

No other module names a numba option; `tiles` and the modules that use it write vector instructions. numba is
imported when something is first compiled, so all that is decorated here is a `Lazy`. The options of
`compiled`, and why:

- ``nogil``: threads run blocks of replicas side by side.
- a disk cache: a second process starts in well under a second.
- ``error_model="numpy"``: Python's zero-division check keeps loops from vectorising.
- no ``fastmath``: strict arithmetic gives the same bits on every x86-64 machine.
- no ``parallel``: threads come from the engine, so that Ctrl-C and exact reproducibility work.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..settings.lazy_import import Lazy, lazy

ir = lazy("llvmlite.ir")
types = lazy("numba.core", "types")

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}

_PENDING: list[Callable[[], None]] = []
"""Dispatched functions that numba has not been told of."""


def _numba() -> Any:
    """numba, with all dispatched functions told to it; imported when something is first compiled."""
    try:
        import numba.extending
    except ImportError as error:
        raise ImportError("to simulate needs numba, which is not installed: pip install numba") from error
    while _PENDING:
        _PENDING.pop(0)()
    return numba


def _made_by(make: Callable[[], Any], function: Callable[..., Any]) -> Any:
    return functools.update_wrapper(Lazy(make), function)


def _inner(kind: str = "Inner") -> dict[str, Any]:
    """Options of a function that Python never calls, which is compiled with its kernel."""
    from . import pipelines

    return _OPTIONS | {"no_cpython_wrapper": True, "pipeline_class": getattr(pipelines, f"{kind}Compiler")}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel on first call (never at import), with the options explained above."""
    def make() -> Any:
        numba = _numba()
        from .kept import OwnCache
        from .pipelines import KernelCompiler

        kernel = numba.njit(**_OPTIONS, pipeline_class=KernelCompiler)(function)
        kernel._cache = OwnCache(function)  # what cache=True does, with our cache
        return kernel

    return _made_by(make, function)


def compiler_says(error: Exception, file: str) -> str | None:
    """Why a function of this file cannot be compiled, in a line; None for an error that says something else.

    The compiler tells of each of the functions that call one another, the innermost first.
    """
    from numba.core.errors import NumbaError

    if not isinstance(error, NumbaError):
        return None
    told = str(error)
    if "NRT required" in told or "Only accept returning of array" in told:
        reason = "it makes an array, a list or a set, which it cannot: write a loop over entries"
    elif "Cannot modify readonly array" in told:
        reason = "it writes into x or data; it must write into out alone"
    else:
        lines = [line.strip() for line in told.splitlines()]
        reason = next((line for line in lines if line and not line.startswith(_FRAMES)
                       and "Failed in nopython" not in line), told[:200])
        asked = next((line[4:] for line in lines if line.startswith(">>> ")), "")
        if reason.startswith("No match") and asked:
            reason = f"there is no {asked} for these types"
    places = [int(line) for path, line in re.findall(r" at (.+?) \((\d+)\)", told) if path == file]
    source = linecache.getline(file, places[0]).strip() if places else ""
    return reason + (f", in line {places[0]}: {source}" if places else "")


_FRAMES = ("During:", "File ", "- ", ">>>", "There are", "Overload", "Rejected", "With argument", "^",
           "raised", "No implementation", "Enable logging", "<source", "def ")


def compiled_here() -> Sequence[tuple[str, float]]:
    """Kernels that this process has compiled, rather than read from the disk cache, and their CPU seconds."""
    if "numba" not in sys.modules:
        return ()
    from .pipelines import KernelCompiler

    return KernelCompiler.made


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls; it is cached with its callers."""
    return _made_by(lambda: _numba().njit(**_inner())(function), function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function of scalars that is always inlined, so that the loop around it vectorises."""
    return _made_by(lambda: _numba().njit(**_inner("Inlined"))(function), function)


def checked(function: Callable[..., Any]) -> Any:
    """The same, slowly: every index and integer is checked, as `guards` says."""
    return _made_by(lambda: _numba().njit(**_inner("Strict"))(function), function)


def guarded(function: Callable[..., Any]) -> Any:
    """The same of a gradient (client, x, [out,] ...): what depends on the point is checked, and no more."""
    return _made_by(lambda: _numba().njit(**_inner("Gradient"))(function), function)


def spliced(function: Callable[..., Any]) -> Any:
    """Copy a one-line function into its callers before types are known, so that it may return a view."""
    return _made_by(lambda: _numba().njit(**_OPTIONS, inline="always")(function), function)


class _Intrinsic(Lazy):
    """Of numba's intrinsics, unlike its compiled functions, only its typing context knows the type.

    Python calls `python`, if there is one.
    """

    def __init__(self, make: Callable[[], Any], python: Callable[..., Any] | None) -> None:
        super().__init__(make)
        self._python = python

    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args) if self._python is None else self._python(*args)

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        made = self._get()
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


def intrinsic(define: Callable[..., Any], python: Callable[..., Any] | None = None) -> Any:
    """What numba calls so: a function of compiled code whose instructions are written by hand.

    `python` does the same for who calls it from Python.
    """
    return functools.update_wrapper(_Intrinsic(lambda: _numba().extending.intrinsic(define), python), define)


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

    kind = "Inlined" if inline else "Inner"
    _PENDING.append(
        lambda: _numba().extending.overload(stub, jit_options=_inner(kind), strict=False)(choose))

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
    return stub.bodies.get(cls, stub.bodies.get(None))


def _bitcast(source: str, target: str, made: Callable[[], Any]) -> Any:
    @intrinsic
    def cast(typingctx: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], made())

        return getattr(types, target)(getattr(types, source)), build

    return cast


@intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once: the same bits on every machine, and one instruction where there is one."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, b, c), build


float64_bits = _bitcast("float64", "uint64", lambda: ir.IntType(64))
bits_float64 = _bitcast("uint64", "float64", lambda: ir.DoubleType())
float32_bits = _bitcast("float32", "uint32", lambda: ir.IntType(32))
bits_float32 = _bitcast("uint32", "float32", lambda: ir.FloatType())
