"""A user's function as it is now: a copy that nothing outside can change any more, and its fingerprint.

numba reads what a function names (globals, closures) when it compiles, which may be long after the problem
was made. So the copy names copies, and the fingerprint is of what they hold: two functions share compiled
code and checkpoints only where they compute the same.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...settings.validation import shown, unmasked

_MODULES = {"math", "cmath", "operator", "numpy", "fedsim"}
"""Modules whose functions mean the same in every process."""
_CONSTANTS = {"pi", "e", "tau", "inf", "nan", "euler_gamma"}
"""Numbers of these modules that may be named: others may be anybody's."""
_PLAIN = {bool, int, float, complex, str, bytes, type(None), type(...)}
_HAS_KEYWORDS = 0x08
_REFUSED = {"IMPORT_NAME": "imports a module; import it where the function is defined",
            "STORE_GLOBAL": "writes to a global name", "DELETE_GLOBAL": "deletes a global name"}
_PRINTS = "prints, which it would do for every replica in every step"
Compile = Callable[[FunctionType], Any]


class Frozen(NamedTuple):
    """A function that names only copies; what it calls is in it. `digest` is 16 digits of its hash."""

    function: FunctionType
    digest: str


def plain_function(name: str, value: Any) -> FunctionType:
    """A Python function, of a function that numba has compiled too."""
    function = value.py_func if _is_dispatcher(value) else value
    if not isinstance(function, FunctionType):
        raise ValueError(f"{name}={shown(value)} must be a function written in Python by def or lambda, not "
                         f"of type {type(value).__name__}")
    return function


def _is_dispatcher(value: Any) -> bool:
    """True for what numba's decorators make."""
    return isinstance(getattr(value, "py_func", None), FunctionType)


def frozen(name: str, value: Any, compiles: Compile) -> Frozen:
    """The function, whose callees `compiles` turns into what compiled code may call.

    Raises
    ------
    ValueError
        Where it names what cannot be copied or told from others, calls itself, or names what is not there.
    """
    return _Freezer(name, compiles).function(plain_function(name, value))


class _Freezer:
    def __init__(self, name: str, compiles: Compile) -> None:
        self.name, self.compiles = name, compiles
        self._open: list[FunctionType] = []
        self._done: dict[FunctionType, tuple[Any, str]] = {}

    def function(self, function: FunctionType) -> Frozen:
        code, digest = function.__code__, hashlib.sha256(str(sys.implementation.cache_tag).encode())
        self._open.append(function)
        self._refuse(code)
        digest.update(_of_code(code).encode())
        named: dict[str, Any] = {"__builtins__": builtins}
        globals_, chains = _names_of(code)
        for word in sorted(globals_):
            if word not in function.__globals__ and not hasattr(builtins, word):
                raise ValueError(f"{self.name} uses the name {word!r}, which is not defined")
            if word not in function.__globals__ and word == "print":
                raise ValueError(f"{self.name} {_PRINTS}")
            if word in function.__globals__:  # else a builtin, which its name tells
                named[word], told = self.value(word, function.__globals__[word])
                digest.update(f"global {word} {told};".encode())
        for chain in sorted(chains):
            if isinstance(function.__globals__.get(chain[0]), ModuleType):
                digest.update(f"{'.'.join(chain)} {self._attribute(function.__globals__, chain)};".encode())
        cells = []
        for word, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                raise ValueError(f"{self.name} uses the name {word!r}, which has no value yet") from None
            held, told = self.value(word, content)
            cells.append(CellType(held))
            digest.update(f"closure {told};".encode())
        defaults, told = self.value("defaults", function.__defaults__ or ())
        digest.update(f"defaults {told};".encode())
        if function.__kwdefaults__:
            raise ValueError(f"{self.name} must have no arguments that are given by name alone, as "
                             f"{next(iter(function.__kwdefaults__))!r}; pass them in data=")
        copy = FunctionType(code, named, function.__name__, defaults, tuple(cells))
        # of this module: the compiler looks for one, and code that was executed may have none
        copy.__qualname__, copy.__module__ = function.__qualname__, __name__
        self._open.pop()
        return Frozen(copy, digest.hexdigest()[:16])

    def _refuse(self, code: CodeType) -> None:
        """Raise ValueError for what only the interpreter can do."""
        if code.co_flags & _HAS_KEYWORDS:
            raise ValueError(f"{self.name} must have no argument by **; name all of them")
        for part in _codes(code):
            for step in dis.get_instructions(part):
                if step.opname in _REFUSED:
                    raise ValueError(f"{self.name} {_REFUSED[step.opname]} ({step.argval!r})")

    def _attribute(self, names: dict[str, Any], chain: tuple[str, ...]) -> str:
        """Text that tells what a module's attribute is; only what no one but the module has set."""
        path, value = chain[0], names[chain[0]]
        for step in chain[1:]:
            if not isinstance(value, ModuleType):  # an attribute of something that is told below
                break
            path = f"{path}.{step}"
            if not hasattr(value, step):
                raise ValueError(f"{self.name} uses {path}, which is not defined")
            value = getattr(value, step)
            if isinstance(value, (float, int)) and step in _CONSTANTS:
                return repr(value)
        if isinstance(value, (*_PLAIN, np.generic, np.ndarray, tuple)):
            raise ValueError(f"{self.name} uses {path}={shown(value)}, which may change; import it by name, "
                             "or pass it in data=")
        return self.value(path, value)[1]

    def value(self, word: str, value: Any) -> tuple[Any, str]:
        """What the copy has for this value, and text that tells it from all others."""
        if type(value) in _PLAIN:
            return value, f"{type(value).__name__} {value!r}"
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return value, f"{value.dtype.str} {value.tobytes().hex()}"
        if type(value) is tuple:
            parts = [self.value(word, part) for part in value]
            return tuple(part for part, _ in parts), f"({', '.join(told for _, told in parts)})"
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            unmasked(word, value)
            kept = np.array(value, order="C")
            kept.setflags(write=False)
            return kept, f"array {kept.shape} {kept.dtype.str} {hashlib.sha256(kept.tobytes()).hexdigest()}"
        module = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "")
        if callable(value) and module.partition(".")[0] in {*_MODULES, "builtins"}:
            return value, f"{module}.{getattr(value, '__qualname__', None) or value.__name__}"
        if isinstance(value, FunctionType) or _is_dispatcher(value):
            return self._callee(word, plain_function(word, value))
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _MODULES:
            return value, f"module {value.__name__}"
        remedy = ("only math, numpy and fedsim can be named; from others import functions and numbers by name"
                  if isinstance(value, ModuleType) else "pass it in data=, as numbers or arrays")
        raise ValueError(f"{self.name} uses {word}={shown(value)}, of type {type(value).__name__}, which may "
                         f"change or cannot be compiled; {remedy}")

    def _callee(self, word: str, function: FunctionType) -> tuple[Any, str]:
        if function in self._open:
            raise ValueError(f"{self.name} calls itself by {word!r}; write a loop")
        if function not in self._done:
            copy, digest = self.function(function)
            self._done[function] = self.compiles(copy), f"function {digest}"
        return self._done[function]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and that of functions written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names_of(code: CodeType) -> tuple[set[str], set[tuple[str, ...]]]:
    """Global names, and those that are followed by attributes, with these."""
    names, chains = set(), set()
    for part in _codes(code):
        chain: tuple[str, ...] = ()
        for step in dis.get_instructions(part):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(step.argval)
                chain = (step.argval,)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain = (*chain, step.argval)
            elif step.opname not in ("CACHE", "EXTENDED_ARG", "PUSH_NULL"):
                chains.add(chain)
                chain = ()
    return names, {chain for chain in chains if len(chain) > 1}


def _of_code(code: CodeType) -> str:
    """What the code does, without where it stands; the documentation is one of the constants."""
    constants = [_of_code(part) if isinstance(part, CodeType) else _of_constant(part)
                 for part in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_argcount, code.co_posonlyargcount,
                 code.co_kwonlyargcount, code.co_flags, code.co_exceptiontable, constants))


def _of_constant(value: Any) -> str:
    parts = sorted(map(repr, value)) if isinstance(value, frozenset) else value
    return f"{type(value).__name__} {parts!r}"
