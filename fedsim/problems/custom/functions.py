"""A user's function as it is now: a copy that nothing outside can change any more, and its fingerprint.

numba reads what a function names (globals, closures) when it compiles, which may be long after the problem
was made. So the copy names copies, and the fingerprint is of what they hold: two functions share compiled
code and checkpoints only where they compute the same. `bytecode` says what the code itself means.

Modules are no values here: code takes of them at once what is their own, which its name tells in every
process. All else that is reached is told by its type and bits, or refused.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...settings.validation import shown, unmasked
from .bytecode import Reached, Refused, catches, check_attribute, constant, meaning, reached

MODULES = frozenset({"math", "cmath", "operator", "numpy", "fedsim"})
"""Modules whose functions mean the same in every process."""
_CONSTANTS = {"pi", "e", "tau", "inf", "nan", "euler_gamma"}
"""Numbers of these modules that may be named: others may be anybody's."""
_BUILTINS = {"abs", "all", "any", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "filter",
             "float", "frozenset", "int", "isinstance", "iter", "len", "list", "map", "max", "min", "next",
             "ord", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple",
             "type", "zip"}
"""Of Python's own, with its exceptions: others reach what is not seen here, as getattr and globals do."""
_PLAIN = {bool, int, float, complex, str, bytes, type(None), type(...)}
Compile = Callable[[FunctionType], Any]
Told = tuple[Any, ...]


class Frozen(NamedTuple):
    """A function that names only copies; what it calls is in it.

    No function that computes something else has the same `text`, in which arrays stand by their SHA-256.
    `digest` is 32 digits of the text's.
    """

    function: FunctionType
    digest: str
    text: str


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


def frozen(name: str, value: Any, compiles: Compile | None = None,
           modules: frozenset[str] = MODULES, fields: bool = False) -> Frozen:
    """The function, which may name functions of these modules.

    `compiles` turns its callees into what compiled code may call; with None all stays in Python. With
    `fields` arguments may be NamedTuples.

    Raises
    ------
    ValueError
        Where it names what cannot be copied or told from others, calls itself, or names what is not there.
    """
    freezer, function = _Freezer(compiles, modules, fields), plain_function(name, value)
    try:
        copy, text = freezer.function(function)
    except Refused as error:
        raise ValueError(f"{name} {error}") from None
    except RecursionError:
        raise ValueError(f"{name}={shown(value)} names what is nested too deeply") from None
    return Frozen(copy if compiles or function is value else value, _hash(text)[:32],
                  "\n".join([text, *sorted(freezer.texts)]))


def followed(potential: Any) -> Frozen | None:
    """The same of a potential, which stays in Python; None where it names what cannot be told from others."""
    try:
        return frozen("potential", potential, modules=MODULES | {"scipy"})
    except ValueError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Freezer:
    """Of one function and all that it calls, whose texts are kept in `texts`."""

    def __init__(self, compiles: Compile | None, modules: frozenset[str], fields: bool) -> None:
        self.compiles, self.modules, self.fields = compiles, modules, fields
        self.texts: set[str] = set()
        self._open: list[FunctionType] = []
        self._done: dict[FunctionType, tuple[Any, Told]] = {}

    def function(self, function: FunctionType) -> tuple[FunctionType, str]:
        """A copy, and the text that tells it."""
        self._open.append(function)
        code = function.__code__
        if self.compiles and catches(code):
            raise Refused("catches errors by try, which compiled code raises elsewhere than Python; ask "
                          "before, by if")
        places = sorted(set(reached(code, fields=self.fields)))
        globals_, cells = _globals_of(function, places), _cells_of(function)
        if function.__kwdefaults__:
            raise Refused(f"must have no arguments that are given by name alone, as "
                          f"{next(iter(function.__kwdefaults__))!r}; pass them in data=")
        named = {word: self._root(word, value) for word, value in globals_.items()}
        closed = {word: self._root(word, value) for word, value in cells.items()}
        defaults, told = self.value("defaults", function.__defaults__ or ())
        followed = [(*place, self._followed(place, (cells if place.is_cell else globals_)[place.word]))
                    for place in places]
        text = repr((sys.implementation.cache_tag, meaning(code), told, followed,
                     *([(word, said) for word, (_, said) in of.items()] for of in (named, closed))))
        names = {"__builtins__": builtins} | {word: held for word, (held, _) in named.items()}
        copy = FunctionType(code, names, function.__name__, defaults,
                            tuple(CellType(held) for held, _ in closed.values()))
        # of this module: the compiler looks for one, and code that was executed may have none
        copy.__qualname__, copy.__module__ = function.__qualname__, __name__
        self._open.pop()
        return copy, text

    def _root(self, word: str, value: Any) -> tuple[Any, Told]:
        """What a name stands for in the copy, and what tells it; of a module `_followed` tells more."""
        return (value, ("module",)) if isinstance(value, ModuleType) else self.value(word, value)

    def _followed(self, place: Reached, value: Any) -> Told:
        """What tells that which the code takes at this place of the value that its name stands for."""
        path, rest, step = place.word, list(place.attributes), ""
        while isinstance(value, ModuleType):
            if not self._is_known(value.__name__) or sys.modules.get(value.__name__) is not value:
                raise Refused(f"uses {path}={shown(value)}, of type module, which may change or cannot be "
                              "compiled; only math, numpy and fedsim can be named; from others import "
                              "functions and numbers by name")
            if not rest:
                raise Refused(f"uses the module {path} as a value; take what is needed of it at once, as in "
                              "np.exp")
            step = rest.pop(0)
            path = f"{path}.{step}"
            if not hasattr(value, step):
                raise Refused(f"uses {path}, which is not defined")
            value = getattr(value, step)
        if callable(value) and rest:
            raise Refused(f"takes the attribute {rest[0]!r} of the function {path}, which cannot be followed")
        for attribute in rest:
            check_attribute(attribute, path)
        if not step:
            return ()  # `_root` tells it
        if (type(value) is float and step in _CONSTANTS) or (value is None and step == "newaxis"):
            return constant(value)
        if told := self._own(path, value):
            return told
        raise Refused(f"uses {path}={shown(value)}, which may change; import it by name, or pass it in data=")

    def value(self, word: str, value: Any) -> tuple[Any, Told]:
        """What the copy has for this value, and what tells it from all others."""
        if type(value) in _PLAIN:
            return value, constant(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biufc" and type(value) is value.dtype.type:
            return value, ("number", value.dtype.str, value.tobytes())
        if type(value) is tuple:
            parts = [self.value(word, part) for part in value]
            return tuple(part for part, _ in parts), ("tuple", *(told for _, told in parts))
        if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
            unmasked(word, value)
            kept = np.array(value, order="C")
            kept.setflags(write=False)
            return kept, ("array", type(value).__qualname__, kept.shape, kept.dtype.str,
                          hashlib.sha256(kept.data).hexdigest())
        if told := self._own(word, value):
            return value, told
        if self.fields and isinstance(value, type) and hasattr(value, "_field_defaults"):
            fields: Any = value
            defaults = self.value(word, tuple(fields._field_defaults.items()))[1]
            return value, ("fields", *_home(value), fields._fields, defaults)
        if isinstance(value, FunctionType) or _is_dispatcher(value):
            held, told = self._callee(word, plain_function(word, value))
            return (held if self.compiles or isinstance(value, FunctionType) else value), told
        if isinstance(value, ModuleType):
            raise Refused(f"uses the module {value.__name__} as a value, in {word}; take what is needed of "
                          "it at once, as in np.exp")
        raise Refused(f"uses {word}={shown(value)}, of type {type(value).__name__}, which may change or "
                      "cannot be compiled; pass it in data=, as numbers or arrays")

    def _is_known(self, module: str) -> bool:
        return module.partition(".")[0] in self.modules

    def _own(self, path: str, value: Any) -> Told:
        """The names by which every process finds a function or class of a module; () for anybody's."""
        module, name = _home(value)
        if not callable(value) or not (module == "builtins" or self._is_known(module)):
            return ()
        if module.startswith("numpy.random"):
            raise Refused(f"uses {path}; it must depend on its arguments alone, not on random numbers (see "
                          "gradient_noise)")
        found: Any = sys.modules.get(module)
        for step in name.split("."):
            found = getattr(found, step, None)
        if found is not value or not self._is_written_there(value):
            return ()
        is_error = isinstance(value, type) and issubclass(value, Exception)
        if module == "builtins" and name not in _BUILTINS and not is_error:
            raise Refused("prints, which it would do for every replica in every step" if name == "print" else
                          f"uses {name}, which reaches what cannot be followed")
        return "own", module, name

    def _is_written_there(self, value: Any) -> bool:
        """False for a function that somebody else has put into the module."""
        written = value if isinstance(value, FunctionType) else getattr(value, "py_func", None)
        return not isinstance(written, FunctionType) or self._is_known(str(
            written.__globals__.get("__name__")))

    def _callee(self, word: str, function: FunctionType) -> tuple[Any, Told]:
        if function in self._open:
            raise Refused(f"calls itself by {word!r}; write a loop")
        if function not in self._done:
            copy, text = self.function(function)
            self.texts.add(text)
            self._done[function] = self.compiles(copy) if self.compiles else copy, ("function", _hash(text))
        return self._done[function]


def _globals_of(function: FunctionType, places: list[Reached]) -> dict[str, Any]:
    """What its global names stand for, which may be Python's own."""
    own, python = function.__globals__, function.__builtins__  # type: ignore[attr-defined]
    found = {}
    for word in sorted({place.word for place in places if not place.is_cell}):
        if word not in own and word not in python:
            raise Refused(f"uses the name {word!r}, which is not defined")
        found[word] = own[word] if word in own else python[word]
    return found


def _cells_of(function: FunctionType) -> Mapping[str, Any]:
    """What the names of the function around it stand for."""
    found = {}
    for word, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[word] = cell.cell_contents
        except ValueError:
            raise Refused(f"uses the name {word!r}, which has no value yet") from None
    return found


def _home(value: Any) -> tuple[str, str]:
    """The module and name that a function or class says are its own."""
    name = str(getattr(value, "__qualname__", None) or getattr(value, "__name__", None))
    if isinstance(value, np.ufunc):  # it does not say whose it is
        return "numpy" if getattr(np, name, None) is value else "scipy.special", name
    module = str(getattr(value, "__module__", None))
    return "operator" if module == "_operator" else module, name
