"""The identity of a sampler's function, and how it is sent to other processes.

It is made of its text, without comments, decorators and documentation, and of what it reads from outside:
numbers and arrays by value, functions by what they say and read in turn. Where Python has kept no text, the
bytecode takes its place, which is another one in another version of Python.

A function of a module is sent by its name. One of a notebook, of `__main__`, or that was made inside another
function has none that another process finds, so its code is sent with the values that it reads: to the same
version of Python alone. Reading such a file runs its code, as with any pickle.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import inspect
import marshal
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..fingerprints import feed
from ..problems.custom.bytecode import Reached, meaning, reached
from .tape import Word

MAINS = ("__main__", "__mp_main__")
_MISSING = object()
KINDS: WeakValueDictionary[Any, type] = WeakValueDictionary()
"""Classes that other processes find by no name, by their functions."""
_TEXTS: dict[tuple[CodeType, str], str] = {}
"""Texts as they were when first asked for, or that travelled with the code: by code and file."""


def text_of(code: CodeType) -> str:
    """The text of a function as it was when first asked for; "" where Python has not kept it."""
    key = code, code.co_filename
    if key not in _TEXTS:
        try:
            _TEXTS[key] = textwrap.dedent(inspect.getsource(code))
        except (OSError, TypeError):
            _TEXTS[key] = ""
    return _TEXTS[key]


@lru_cache(maxsize=256)
def said(code: CodeType, text: str) -> Any:
    """The statements of a function with this code and text, as plain data."""
    try:
        node = ast.parse(text).body[0]
    except (SyntaxError, IndexError):  # a part of a line, or no text
        return meaning(code)
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return meaning(code)
    node.decorator_list = []
    if ast.get_docstring(node) is not None:
        node.body = node.body[1:]
    return ast.unparse(node)


@lru_cache(maxsize=256)
def _words(code: CodeType) -> tuple[Reached, ...]:
    return tuple(dict.fromkeys(reached(code, fields=True)))


def _read(function: FunctionType) -> Iterator[tuple[Reached, Any]]:
    """Values that a function reads from outside, as they are now; of modules the attribute."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for one in _words(function.__code__):
        if one.is_cell:
            value = _inside(cells[one.word])
        else:
            value = function.__globals__.get(one.word, vars(builtins).get(one.word, _MISSING))
        for attribute in one.attributes:
            if isinstance(value, ModuleType):
                value = getattr(value, attribute, _MISSING)
        yield one, value


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is not set yet
        return _MISSING


def _told(function: FunctionType, inside: tuple[CodeType, ...]) -> Any:
    """A function as plain data, as far as `feed` takes what it reads."""
    code = function.__code__
    if code in inside:
        return "itself", inside.index(code)
    read = [(*one, _as_data(value, (*inside, code))) for one, value in _read(function)]
    read.sort(key=lambda row: row[:3])
    return said(code, text_of(code)), read, function.__defaults__, function.__kwdefaults__


def _as_data(value: Any, inside: tuple[CodeType, ...]) -> Any:
    if isinstance(value, Word):
        return "word", value.function.__name__
    if isinstance(value, FunctionType):
        return _told(value, inside)
    if isinstance(value, ModuleType):
        return "module", value.__name__
    if value is _MISSING:
        return "nothing"
    of_numpy = callable(value) and type(value).__module__.split(".")[0] == "numpy"
    if of_numpy or isinstance(value, (type, BuiltinFunctionType)):
        return "named", str(value.__module__), getattr(value, "__qualname__", value.__name__)
    return value


def digest_of(function: Any) -> str | None:
    """Hash of what a function says and reads now; None where it reads what no hash tells from another."""
    digest = hashlib.sha256()
    try:
        feed(digest, _told(function, ()))
    except (TypeError, ValueError):  # no plain data, or what only the interpreter can follow
        return None
    return digest.hexdigest()[:32]


def has_name(kind: type) -> bool:
    """Whether another process finds a class by its module and name."""
    if kind.__module__ in MAINS or "<locals>" in kind.__qualname__:
        return False
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


class Packed(NamedTuple):
    """A function that travels: version of the bytecode, code, and what it reads."""

    magic: bytes
    code: bytes
    text: str
    module: str
    name: str
    reads: dict[str, Any]
    cells: tuple[Any, ...]
    defaults: Any
    keywords: Any


class PackedModule(NamedTuple):
    """A module, by its name."""

    name: str


def packed(function: Any, inside: tuple[CodeType, ...] = ()) -> Packed:
    """A function as data for `unpacked`.

    Raises
    ------
    ValueError
        Where it calls itself, or has what only the interpreter can follow.
    """
    code = function.__code__
    if code in inside:
        raise ValueError(f"{code.co_name} calls itself, so that it cannot be sent to another process; put it "
                         "into a module")

    def data(value: Any) -> Any:
        if isinstance(value, ModuleType):
            return PackedModule(value.__name__)
        if isinstance(value, FunctionType) and (
                value.__module__ in MAINS or "<locals>" in value.__qualname__
                or getattr(sys.modules.get(value.__module__), value.__qualname__, None) is not value):
            return packed(value, (*inside, code))
        return value

    words = {one.word for one in _words(code) if not one.is_cell} & function.__globals__.keys()
    return Packed(importlib.util.MAGIC_NUMBER, marshal.dumps(code), text_of(code), function.__module__,
                  function.__qualname__, {word: data(function.__globals__[word]) for word in sorted(words)},
                  tuple(data(_inside(cell)) for cell in function.__closure__ or ()), function.__defaults__,
                  function.__kwdefaults__)


def unpacked(given: Packed) -> Callable[..., Any]:
    """The function again.

    Raises
    ------
    ValueError
        In another version of Python than the one that wrote it.
    """
    if given.magic != importlib.util.MAGIC_NUMBER:
        raise ValueError(f"{given.name} was saved by another version of Python, whose code is another one; "
                         "put the function into a module, whose samplers are saved by name")

    def value(data: Any) -> Any:
        if isinstance(data, PackedModule):
            return importlib.import_module(data.name)
        return unpacked(data) if isinstance(data, Packed) else data

    code = marshal.loads(given.code)
    _TEXTS[code, code.co_filename] = given.text
    names = {"__builtins__": builtins, "__name__": given.module,
             **{word: value(data) for word, data in given.reads.items()}}
    function = FunctionType(code, names, given.name.rpartition(".")[2], given.defaults,
                            tuple(CellType(value(data)) for data in given.cells))
    function.__qualname__, function.__kwdefaults__ = given.name, given.keywords
    return function
