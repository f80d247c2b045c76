"""The notation of a sampler: vectors of all clients, coefficients, and the few operations between them.

A function of the notation is called once with vectors that stand for the state. Every operation writes a node
on the open tape; what has no node is refused where it is written, with the line. Shapes: N clients, R rounds.
"""

from __future__ import annotations

import linecache
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..hints import shown
from ..settings.participation import TakesPart
from ..settings.validation import Array

HERE = str(Path(__file__).parent)
KNOWN = "only + - * / by numbers, W @ x, grad, noise, mean, past, weights, sqrt and exp are known"
_OPEN: list[Tape] = []


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


class Node(NamedTuple):
    """What one operation gives: its kind, what belongs to it alone, and the terms (node, coefficient) of its
    argument."""

    kind: str
    payload: Any = None
    terms: tuple[tuple[int, Any], ...] = ()


@dataclass
class Tape:
    """Nodes in the order in which they were written, for so many clients."""

    n_clients: int
    weights: Array
    nodes: list[Node] = field(default_factory=list)

    def add(self, kind: str, payload: Any = None, terms: Sequence[tuple[int, Any]] = ()) -> Vector:
        """The vector of a new node."""
        self.nodes.append(Node(kind, payload, tuple(terms)))
        return Vector(self, len(self.nodes) - 1)


@contextmanager
def recording(tape: Tape) -> Iterator[None]:
    """Inside it, operations are written on this tape."""
    _OPEN.append(tape)
    try:
        yield
    finally:
        _OPEN.pop()


def _tape(what: str) -> Tape:
    if not _OPEN:
        raise NotationError(f"{what} is known only inside a function of fs.sampler, while it is traced")
    return _OPEN[-1]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


class Refusing:
    """What vectors and coefficients refuse alike."""

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
        refuse(f"np.{name}: " + (f"write {name}(...) of fedsim.samplers" if name in ("sqrt", "exp")
                                 and isinstance(self, Coefficient) else KNOWN))

    def __array_function__(self, function: Any, *rest: Any) -> Any:
        refuse(f"np.{function.__name__}: {KNOWN}")

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
            if not _number(other):
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

    def _term(self, factor: Any = 1.0) -> tuple[int, Any]:
        if not _OPEN or self.tape is not _OPEN[-1]:
            refuse("a vector of another call of a sampler was kept; each call has its own")
        return self.node, factor

    def __add__(self, other: Any) -> Vector:
        if _number(other) and other == 0:
            return self  # sum() begins with 0
        if not isinstance(other, Vector):
            refuse(f"+ {shown(other)}: only vectors of clients can be added to one")
        return self.tape.add("lin", None, (self._term(), other._term()))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector:
        if not isinstance(other, Vector):
            refuse(f"- {shown(other)}: only vectors of clients can be taken from one")
        return self.tape.add("lin", None, (self._term(), other._term(-1.0)))

    def __rsub__(self, other: Any) -> Vector:
        refuse(f"{shown(other)} -: only vectors of clients have differences with one")

    def __neg__(self) -> Vector:
        return self * -1.0

    def __mul__(self, factor: Any) -> Vector:
        if isinstance(factor, Vector):
            refuse("x * x: the product of two vectors is not linear")
        if isinstance(factor, Coefficient):
            return self.tape.add("lin", None, (self._term(factor.table),))
        if not _number(factor):
            refuse(f"* {shown(factor)}: a factor is a number, a parameter, or weights(); matrices act by "
                   "W @ x")
        if not np.isfinite(factor):
            refuse(f"* {factor}: a factor must be finite")
        return self.tape.add("lin", None, (self._term(float(factor)),))

    __rmul__ = __mul__

    def __truediv__(self, number: Any) -> Vector:
        if isinstance(number, Vector):
            refuse("/: the quotient of two vectors is not linear")
        if _number(number) and number == 0:
            refuse("/ 0")
        return self * (1.0 / number)

    def __matmul__(self, other: Any) -> Any:
        refuse("x @: matrices act from the left, as W @ x")

    def __rmatmul__(self, matrix: Any) -> Vector:
        if isinstance(matrix, (list, tuple)) and matrix and all(np.ndim(one) == 2 for one in matrix):
            refuse("a list of matrices takes turns as mix parameters do: pass it as a parameter")
        try:
            given = np.ascontiguousarray(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            refuse(f"{shown(matrix)} @: it must be a matrix of numbers")
        N = self.tape.n_clients
        if given.shape != (N, N):
            refuse(f"W @: W has shape {given.shape}; for {N} clients it must be {(N, N)}")
        if not np.isfinite(given).all():
            refuse("W @: W must be finite")
        return self.tape.add("mix", given[None], (self._term(),))


class Turns(Refusing):
    """Matrices (R, N, N) that take turns, round by round, as a parameter that is a list of them."""

    what = "a list of mixing matrices"
    __slots__ = ("matrices",)

    def __init__(self, matrices: Array) -> None:
        self.matrices = matrices

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, Vector):
            refuse("W @: a list of mixing matrices acts on vectors of clients alone")
        N = other.tape.n_clients
        if self.matrices.shape[1:] != (N, N):
            refuse(f"W @: W has shape {self.matrices.shape[1:]}; for {N} clients it must be {(N, N)}")
        return other.tape.add("mix", self.matrices, (other._term(),))


def _vector(what: str, x: Any) -> Vector:
    if not isinstance(x, Vector):
        refuse(f"{what} of {shown(x)}: it takes a vector of clients")
    return x


def grad(x: Vector) -> Vector:
    """Every client's gradient at its own point; each call draws anew where gradients are noisy.

    Parameters
    ----------
    x : vector of clients

    Returns
    -------
    vector of clients
        Of f_(c), of its component w_c f_(c), or of f, as the sampler ``follows``.

    Raises
    ------
    NotationError

    Examples
    --------
    >>> from fedsim.samplers import grad
    >>> @fs.sampler
    ... def descent(x, *, step_size):
    ...     return x - step_size * grad(x)
    >>> theory.exact_law(fs.Quadratic([1.0], [[1.0]]), descent(step_size=0.5), 3).mean[:, 0].tolist()
    [0.0, 0.5, 0.75, 0.875]
    """
    return _tape("grad()").add("grad", None, (_vector("grad", x)._term(),))


def noise(*, common: bool = False) -> Vector:
    """Standard normals drawn anew at each call, for each client its own or common to all.

    Examples
    --------
    >>> from fedsim.samplers import noise
    >>> @fs.sampler
    ... def walk(x, *, step_size):
    ...     return x + step_size * noise(common=True)
    >>> law = theory.exact_law(fs.Quadratic([1.0], [[1.0]]), walk(step_size=0.5), 4, allow_unstable=True)
    >>> float(law.cov[-1, 0, 0])
    1.0
    """
    tape = _tape("noise()")
    if not isinstance(common, bool):
        refuse(f"noise(common={shown(common)}): it must be True or False")
    return tape.add("noise", common)


def mean(x: Vector, *, of: Sequence[Sequence[int]] | None = None, drawn: TakesPart | None = None) -> Vector:
    """sum_c w_c x_c, which all clients get; or an average over some of them.

    Parameters
    ----------
    x : vector of clients
    of : sequence of sets of clients, optional
        One for each round, over and over: the average, by their weights, over those of its turn.
    drawn : fedsim.Participation and the like, optional
        The average over clients drawn at random. Only replicas know it.

    Examples
    --------
    >>> from fedsim.samplers import mean
    >>> @fs.sampler
    ... def average(x, *, step_size):
    ...     return mean(x)
    >>> print(average(step_size=1.0))
    average(step_size=1.0)
    """
    tape, x = _tape("mean()"), _vector("mean", x)
    if drawn is not None:
        if of is not None or not isinstance(drawn, TakesPart):
            refuse(f"mean(drawn={shown(drawn)}): it must be a participation, as fs.Participation, and no "
                   "`of` beside it")
        return tape.add("mean", drawn, (x._term(),))
    if of is None:
        return tape.add("mean", tape.weights[None], (x._term(),))
    shares = np.zeros((len(of), tape.n_clients))
    for row, members in zip(shares, of, strict=True):
        chosen = np.unique(np.asarray(list(members), dtype=np.int64))
        if not len(chosen) or chosen[0] < 0 or chosen[-1] >= tape.n_clients:
            refuse(f"mean(of={shown(of)}): each must be a set of clients 0 to {tape.n_clients - 1}")
        row[chosen] = tape.weights[chosen] / tape.weights[chosen].sum()
    if not len(shares):
        refuse("mean(of=[]): there must be a set at least")
    return tape.add("mean", shares, (x._term(),))


def past(x: Vector, age: int) -> Vector:
    """A vector of the state as it was `age` rounds ago; before the start, as it was at the start.

    Examples
    --------
    >>> from fedsim.samplers import grad, past
    >>> @fs.sampler
    ... def stale(x, *, step_size, age):
    ...     return x - step_size * grad(past(x, age))
    >>> theory.exact_law(fs.Quadratic([1.0], [[1.0]]), stale(step_size=0.5, age=1), 3).mean[:, 0].tolist()
    [0.0, 0.5, 1.0, 1.25]
    """
    tape, x = _tape("past()"), _vector("past", x)
    node = tape.nodes[x._term()[0]]
    if node.kind != "state":
        refuse("past(): it takes one of the state's own vectors, and no other")
    if isinstance(age, bool) or not isinstance(age, (int, np.integer)) or age < 0:
        refuse(f"past(age={shown(age)}): the age must be a whole number of rounds, at least 0")
    return x if age == 0 else tape.add("past", (node.payload, int(age)))


def weights() -> Coefficient:
    """The clients' weights w_c, one number a client.

    Examples
    --------
    >>> from fedsim.samplers import noise, sqrt, weights
    >>> @fs.sampler
    ... def heat(x, *, step_size):
    ...     return x + sqrt(step_size / weights()) * noise()
    >>> heat(step_size=0.1).step_size
    0.1
    """
    return Coefficient(_tape("weights()").weights[None].copy())


def _of_coefficient(name: str, function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, Vector):
        refuse(f"{name} of a vector: {KNOWN}")
    with np.errstate(invalid="ignore", over="ignore"):
        if isinstance(value, Coefficient):
            result: Any = function(value.table)
        elif _number(value):
            result = float(function(float(value)))
        else:
            refuse(f"{name} of {shown(value)}: it takes a coefficient")
    if not np.isfinite(result).all():
        refuse(f"{name} of {shown(value if _number(value) else value.table.tolist())} is not finite")
    return Coefficient(result) if isinstance(value, Coefficient) else result


def sqrt(value: Any) -> Any:
    """Root of a coefficient: a number, a schedule, or one number a client.

    Examples
    --------
    >>> from fedsim.samplers import sqrt
    >>> sqrt(4.0)
    2.0
    """
    return _of_coefficient("sqrt", np.sqrt, value)


def exp(value: Any) -> Any:
    """Exponential of a coefficient, as `sqrt`.

    Examples
    --------
    >>> from fedsim.samplers import exp
    >>> exp(0.0)
    1.0
    """
    return _of_coefficient("exp", np.exp, value)
