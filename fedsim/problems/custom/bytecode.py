"""What the bytecode of a function means, and what it reaches outside of itself.

What a code object computes follows from `meaning` and from what it reaches: global names, cells of the
function around it, and attributes. So an instruction with a name is one of the few that are followed here, or
it is refused: what a later Python adds is refused by its name too.
"""

from __future__ import annotations

import dis
import struct
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

_HAS_KEYWORDS = 0x08
_GLOBAL, _CELL, _ATTRIBUTE = "LOAD_GLOBAL", "LOAD_DEREF", ("LOAD_ATTR", "LOAD_METHOD")
_GOES_ON = {*_ATTRIBUTE, "CACHE", "EXTENDED_ARG"}
_REFUSED = {"IMPORT_NAME": "imports a module; import it where the function is defined",
            "STORE_GLOBAL": "writes to a global name", "DELETE_GLOBAL": "deletes a global name",
            "STORE_ATTR": "sets an attribute", "DELETE_ATTR": "deletes an attribute",
            "LOAD_NAME": "defines a class", "STORE_NAME": "defines a class"}
_WRITES_CELL = {"STORE_DEREF", "DELETE_DEREF"}
_HANDS_CELL_ON = {"LOAD_CLOSURE", "MAKE_CELL", "COPY_FREE_VARS"}
ATTRIBUTES = {name for kind in (np.ndarray, np.float64, complex, int, str, tuple, list, np.dtype, range)
              for name in dir(kind) if not name.startswith("_")} | {"eps", "tiny", "resolution"}
"""Of numbers, arrays, their kinds and limits, texts and tuples: other values have none that is followed."""


class Refused(ValueError):
    """A function does what cannot be followed; the text goes on after its name."""


class Reached(NamedTuple):
    """A global name, or one of the function around (`is_cell`), and the attributes taken of it at once."""

    word: str
    is_cell: bool
    attributes: tuple[str, ...]


def meaning(code: CodeType) -> tuple[Any, ...]:
    """All of the code that decides what it computes, and how its arguments bind.

    Not where it stands, nor its own name. Its documentation and the names of local variables are in it.
    """
    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
            code.co_exceptiontable, tuple(constant(part) for part in code.co_consts))


def constant(value: Any) -> tuple[Any, ...]:
    """A constant's type and bits, of which `repr` gives a text that no other constant has."""
    kind = type(value).__name__
    if type(value) is float:
        return kind, struct.pack("<d", value)  # NaNs have signs
    if type(value) is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if type(value) is int:
        return kind, hex(value)  # decimal digits have a limit
    if type(value) in (bool, str, bytes, type(None), type(...)):
        return kind, value
    if type(value) is tuple:
        return kind, *(constant(part) for part in value)
    if type(value) is frozenset:
        return kind, *sorted((constant(part) for part in value), key=repr)
    if type(value) is slice:
        return kind, *(constant(part) for part in (value.start, value.stop, value.step))
    if type(value) is CodeType:
        return kind, meaning(value)
    raise Refused(f"has a constant of type {kind}, which cannot be told from others")


def reached(code: CodeType, cells: tuple[str, ...] | None = None, fields: bool = False) -> Iterator[Reached]:
    """What the code, and those of functions written inside it, take from outside.

    `cells` are the names that come from outside of the whole function: those of `code` itself. With `fields`
    values may have any attributes: arguments are NamedTuples.

    Raises
    ------
    Refused
        For what only the interpreter can do, or what would reach further than can be seen.
    """
    if cells is None:
        cells = code.co_freevars
        if code.co_flags & _HAS_KEYWORDS:
            raise Refused("must have no argument by **; name all of them")
    root: Reached | None = None
    for step in dis.get_instructions(code):
        name, word = step.opname, step.argval
        if root and (step.is_jump_target or name not in _GOES_ON):
            yield root  # what follows may be taken of something else too
            root = None
        if name in _REFUSED:
            raise Refused(f"{_REFUSED[name]} ({word!r})")
        outside = step.opcode in dis.hasfree and word in cells
        if outside and name in _WRITES_CELL:
            raise Refused(f"writes to a name of the function around it ({word!r})")
        if name in _ATTRIBUTE:
            if root:
                root = root._replace(attributes=(*root.attributes, word))
            elif not fields:
                check_attribute(word, "what it computes")
        elif name == _GLOBAL or (outside and name == _CELL):
            root = Reached(word, name == _CELL, ())
        elif step.opcode in dis.hasname or (outside and name not in _HANDS_CELL_ON):
            raise Refused(f"has the instruction {name} ({word!r}), which cannot be followed")
    for part in code.co_consts:
        if isinstance(part, CodeType):
            inner = tuple(word for word in part.co_freevars if word in cells)
            yield from reached(part, inner, fields)


def catches(code: CodeType) -> bool:
    """Whether the code, or that of a function written inside it, has a try or a with."""
    return any(step.opname == "PUSH_EXC_INFO" for step in dis.get_instructions(code)) or any(
        catches(part) for part in code.co_consts if isinstance(part, CodeType))


def check_attribute(word: str, of: str) -> None:
    """Raise Refused unless it is an attribute that numbers and arrays have."""
    if word not in ATTRIBUTES:
        raise Refused(f"takes the attribute {word!r} of {of}, which numbers and arrays do not have; of a "
                      "module take it at once, as in np.exp")
