"""Vectors of all clients, coefficients, and the tape on which the operations between them are written.

A function of the notation is called once with vectors that stand for the state. Every operation writes a node
on the open tape; what has no node is refused where it is written, with the line. Shapes: N clients, R rounds.
"""

from __future__ import annotations

import functools
import linecache
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..hints import shown
from ..settings.network import RandomMixing
from ..settings.validation import Array
from .nodes import Chance, Node

F = TypeVar("F", bound=Callable[..., Any])
HERE = str(Path(__file__).parent)
KNOWN = "only + - * / by numbers, W @ x, grad, noise, mean, past, weights, sqrt and exp are known"
LONGEST = 2**18
"""Operations of a round, at most: more take minutes to read."""


class _Open(threading.local):
    """The tapes that this thread writes on, one within another."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []


_OPEN = _Open()


class NotationError(TypeError):
    """An operation that the notation of samplers does not have; the message says where and which.

    Examples
    --------
    >>> from fedsim.samplers import grad
    >>> @fs.sampler
    ... def squared(x, *, step_size):
    ...     return x * x - step_size * grad(x)
    >>> try:
    ...     fs.explain(fs.Quadratic([1.0], [[0.0]]), squared(step_size=0.1))
    ... except fs.samplers.NotationError as error:
    ...     print(str(error).partition(": ")[2])
    x * x: the product of two vectors is not linear
    """


def refuse(what: str) -> NoReturn:
    """Raise `NotationError` with the line of the user's function that runs now."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    where = ""
    if frame is not None:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        where = f"{frame.f_code.co_name}, line {frame.f_lineno}{f', `{line}`' if line else ''}: "
    raise NotationError(f"{where}{what}")


@dataclass
class Tape:
    """Nodes in the order in which they were written, for so many clients."""

    n_clients: int
    weights: Array
    nodes: list[Node] = field(default_factory=list)

    def add(self, kind: str, payload: Any = None, terms: Sequence[tuple[int, Any]] = ()) -> Vector:
        """The vector of a new node."""
        if len(self.nodes) >= LONGEST:
            refuse(f"a round of more than {LONGEST} operations; fs.FALD and fs.FAHMC have no such limit")
        self.nodes.append(Node(kind, payload, tuple(terms)))
        return Vector(self, len(self.nodes) - 1)


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Inside it, operations are written on this tape."""
    _OPEN.tapes.append(tape)
    try:
        yield
    finally:
        _OPEN.tapes.pop()


def open_tape(what: str) -> Tape:
    """The tape that is written on; `NotationError` where there is none."""
    if not _OPEN.tapes:
        raise NotationError(f"{what} is known only inside a function of fs.sampler, while it is traced")
    return _OPEN.tapes[-1]


def is_number(value: Any) -> bool:
    """A plain number, and no truth value."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class Refusing:
    """The refusals that vectors and coefficients share."""

    what = "this"

    def __bool__(self) -> bool:
        refuse(f"{self.what} is neither true nor false: a round may not depend on its values")

    def __iter__(self) -> Iterator[Any]:
        refuse(f"{self.what} has no parts to run over")

    def __len__(self) -> int:
        refuse(f"{self.what} has no length")

    def __getitem__(self, place: object) -> Any:
        refuse(f"[{shown(place)}]: {self.what} has no parts; all clients do the same")

    def __pow__(self, other: object) -> Any:
        refuse(f"**: {KNOWN}")

    def __lt__(self, other: object) -> bool:
        refuse(f"a comparison: {self.what} is neither larger nor smaller, and a round may not depend on it")

    __gt__ = __le__ = __ge__ = __lt__
    __rpow__ = __mod__ = __floordiv__ = __rtruediv__ = __pow__

    def __abs__(self) -> Any:
        refuse(f"abs(): {KNOWN}")

    def __float__(self) -> float:
        refuse(f"{self.what} is no single number: sqrt and exp of coefficients are those of fedsim.samplers, "
               "and a vector has neither")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy, numpy and inspect look for
            raise AttributeError(name)
        refuse(f".{name}: {self.what} has no such part; {KNOWN}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul,
                 np.true_divide: operator.truediv}.get(ufunc)
        if plain is not None and method == "__call__" and len(inputs) == 2 and not options:
            one, other = inputs
            if not any(isinstance(each, np.ndarray) for each in (one, other)):
                return plain(*(float(each) if isinstance(each, np.generic) else each
                               for each in (one, other)))
            refuse(f"an array of shape {next(np.shape(e) for e in inputs if isinstance(e, np.ndarray))}: a "
                   "factor is a number, a parameter, or weights(); matrices act by W @ x")
        if ufunc is np.matmul and method == "__call__" and isinstance(inputs[0], np.ndarray):
            return self.__rmatmul__(inputs[0])
        name = ufunc.__name__
        whole = f"np.{name}" if getattr(np, name, None) is ufunc else name
        refuse(f"{whole}: " + (f"write {name}(...) of fedsim.samplers" if name in ("sqrt", "exp")
                                 and isinstance(self, Coefficient) else KNOWN))

    def __array_function__(self, function: Any, *rest: Any) -> Any:
        place = function.__module__.replace("numpy", "np", 1)
        refuse(f"{place}.{function.__name__}: {KNOWN}")

    def __rmatmul__(self, matrix: Any) -> Any:
        refuse(f"@: matrices act on vectors of clients, and {self.what} is none")

    __matmul__ = __rmatmul__


class Coefficient(Refusing):
    """A number for each round and client: table (R or 1, N or 1).

    Written by the notation for parameters that are schedules or have one number a client, and for weights().
    """

    what = "a coefficient of several numbers"
    __slots__ = ("table",)

    def __init__(self, table: Array) -> None:
        self.table = table

    def _with(self, other: Any, how: Callable[[Any, Any], Any], sign: str) -> Any:
        if isinstance(other, Vector):
            return NotImplemented
        if not isinstance(other, Coefficient):
            if not is_number(other):
                refuse(f"{sign} {shown(other)}: a coefficient goes with numbers and other coefficients")
            return Coefficient(np.asarray(how(self.table, float(other)), dtype=np.float64))
        try:
            table = how(self.table, other.table)
        except ValueError:
            refuse(f"{sign}: schedules of {len(self.table)} and of {len(other.table)} rounds do not fit")
        return Coefficient(table)

    def __add__(self, other: Any) -> Any:
        return self._with(other, operator.add, "+")

    def __mul__(self, other: Any) -> Any:
        return self._with(other, operator.mul, "*")

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Any:
        return self._with(other, operator.sub, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda mine, theirs: theirs - mine, "-")

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, operator.truediv, "/")

    def __rtruediv__(self, other: Any) -> Any:  # type: ignore[override]
        return self._with(other, lambda mine, theirs: theirs / mine, "/")

    def __pow__(self, other: Any) -> Any:
        return self._with(other, operator.pow, "**")

    def __neg__(self) -> Coefficient:
        return Coefficient(-self.table)


class Vector(Refusing):
    """A node: one vector for each client, or one that all share."""

    what = "a vector of clients"
    __slots__ = ("node", "tape")

    def __init__(self, tape: Tape, node: int) -> None:
        self.tape, self.node = tape, node

    def term(self, factor: Any = 1.0) -> tuple[int, Any]:
        """This node times a coefficient; refused for a vector of another tape."""
        if not _OPEN.tapes or self.tape is not _OPEN.tapes[-1]:
            refuse("a vector of another call of a sampler was kept; each call has its own")
        return self.node, factor

    def __add__(self, other: Any) -> Vector:
        if is_number(other) and other == 0:
            return self  # sum() begins with 0
        if not isinstance(other, Vector):
            refuse(f"+ {shown(other)}: only vectors of clients can be added to one")
        return self.tape.add("lin", None, (self.term(), other.term()))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector:
        if not isinstance(other, Vector):
            refuse(f"- {shown(other)}: only vectors of clients can be taken from one")
        return self.tape.add("lin", None, (self.term(), other.term(-1.0)))

    def __rsub__(self, other: Any) -> Vector:
        refuse(f"{shown(other)} -: only vectors of clients have differences with one")

    def __neg__(self) -> Vector:
        return self * -1.0

    def __mul__(self, factor: Any) -> Vector:
        if isinstance(factor, Vector):
            refuse("x * x: the product of two vectors is not linear")
        if isinstance(factor, Coefficient):
            if not np.isfinite(factor.table).all():
                refuse(f"* {shown(factor.table.ravel().tolist())}: factors must be finite")
            return self.tape.add("lin", None, (self.term(factor.table),))
        if not is_number(factor):
            refuse(f"* {shown(factor)}: a factor is a number, a parameter, or weights(); matrices act by "
                   "W @ x")
        if not np.isfinite(factor):
            refuse(f"* {factor}: a factor must be finite")
        return self.tape.add("lin", None, (self.term(float(factor)),))

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Vector:
        if isinstance(number, Vector):
            refuse("/: the quotient of two vectors is not linear")
        if is_number(number) and number == 0:
            refuse("/ 0")
        return self * (1.0 / number)

    def __matmul__(self, other: Any) -> Any:
        refuse("x @: matrices act from the left, as W @ x")

    def __rmatmul__(self, matrix: Any) -> Vector:
        if isinstance(matrix, (list, tuple)) and matrix and all(np.ndim(one) == 2 for one in matrix):
            refuse("a list of matrices takes turns as mix parameters do: pass it as a parameter")
        if isinstance(matrix, RandomMixing):
            if matrix.matrices.shape[1] != self.tape.n_clients:
                refuse(f"W @: W has shape {matrix.matrices.shape[1:]}; for {self.tape.n_clients} clients it "
                       f"must be {(self.tape.n_clients,) * 2}")
            centre = np.tensordot(matrix.chances, matrix.matrices, axes=1)
            roots = np.sqrt(matrix.chances)[:, None, None] * (matrix.matrices - centre)
            return self.tape.add("random", Chance(centre, roots, matrix), (self.term(),))
        if np.iscomplexobj(matrix):
            refuse("W @: W must be real")
        try:
            given = np.ascontiguousarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            refuse(f"{shown(matrix)} @: it must be a matrix of numbers")
        N = self.tape.n_clients
        if given.shape != (N, N):
            refuse(f"W @: W has shape {given.shape}; for {N} clients it must be {(N, N)}")
        if not np.isfinite(given).all():
            refuse("W @: W must be finite")
        return self.tape.add("mix", given[None], (self.term(),))


class Unread(Vector):
    """What is no vector and stands where one should: every operation refuses it, and says what is `meant`.

    It is a `Vector` for the sake of the operators: those of the right operand come first then.
    """

    meant = ""

    def refused(self, *operands: object, **options: object) -> NoReturn:
        """The refusal of all that is asked of it."""
        refuse(self.meant)

    def term(self, factor: Any = 1.0) -> tuple[int, Any]:
        self.refused()


for _name in ("add radd sub rsub mul rmul truediv rtruediv matmul rmatmul neg pow rpow mod floordiv abs "
              "lt gt le ge getitem iter len float int index complex array_ufunc array_function").split():
    setattr(Unread, f"__{_name}__", Unread.refused)


class Word(Unread):
    """A function of the notation, which is refused where it stands without its parentheses."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.function(*args, **options)

    @property
    def meant(self) -> str:  # type: ignore[override]
        """Why it is refused."""
        name = self.function.__name__
        given = "" if name in ("noise", "weights") else "x"
        return f"{name} is a function: write {name}({given})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.function.__name__} has no {name}")

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<function {self.function.__qualname__}>"

    def __reduce__(self) -> str:
        return self.function.__qualname__


def word(function: F) -> F:
    """Decorator: a function of the notation, told apart from its value where the parentheses are missing."""
    return Word(function)  # type: ignore[return-value]


class Turns(Refusing):
    """Matrices (R, N, N) that take turns, round by round, as a parameter that is a list of them."""

    what = "a list of mixing matrices"
    __slots__ = ("matrices",)

    def __init__(self, matrices: Array) -> None:
        self.matrices = matrices

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Vector):
            refuse("W @: a list of mixing matrices acts on vectors of clients alone")
        term, N = other.term(), other.tape.n_clients
        if self.matrices.shape[1:] != (N, N):
            refuse(f"W @: W has shape {self.matrices.shape[1:]}; for {N} clients it must be {(N, N)}")
        return other.tape.add("mix", self.matrices, (term,))
