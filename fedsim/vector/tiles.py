"""Vector instructions: `TILE` lanes at a time, for loops that numba cannot express or LLVM cannot find.

`matrix`, `trajectories` and `philox` write the insides of such loops with `Tiles` and `Words`. The operations
and their order are the same in every lane: bits do not depend on where in a block a replica lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partialmethod
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError

from ..settings.validation import Array

TILE = 16
"""Lanes of a tile. Rows of replicas are a multiple of this; rows of coordinates may be of any length."""

_LINE = 64  # bytes of a cache line, and of the longest vector

INDEX = ir.IntType(64)
_FLOAT = ir.DoubleType()


class Tally:
    """Bytes that `aligned` was asked for while it gave none of them."""

    MOST = 2**60
    """Beyond this NumPy could not say the shape of an array."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._rooms: list[Array] = []

    def room(self, shape: tuple[int, ...], kind: Any) -> Array:
        """An array of this shape, all of whose entries are one place in memory."""
        self.n_bytes += math.prod(shape) * kind.itemsize
        if self.n_bytes > self.MOST:
            raise OverflowError(f"{self.n_bytes} bytes")
        self._rooms.append(np.zeros(1, kind))
        return np.lib.stride_tricks.as_strided(self._rooms[-1], shape, (0,) * len(shape))

    def has(self, values: Array) -> bool:
        """True for what lies in a `room`, and is counted."""
        return any(np.may_share_memory(values, room) for room in self._rooms)


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def tallied() -> Iterator[Tally]:
    """Within it `aligned` takes no memory and counts what it would take; `aligned_copy` copies nothing.

    Examples
    --------
    >>> from fedsim.vector.tiles import aligned, tallied
    >>> with tallied() as tally:
    ...     shape = aligned((10**9, 10)).shape
    >>> shape, tally.n_bytes
    ((1000000000, 10), 80000000000)
    """
    tally = Tally()
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def aligned(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Zeros that begin at a cache line: a vector that straddles two of them takes twice as long."""
    kind, tally = np.dtype(dtype), _TALLY.get()
    sizes = tuple(int(n) for n in np.atleast_1d(shape))
    if tally is not None:
        return tally.room(sizes, kind)
    size = math.prod(sizes) * kind.itemsize
    memory = np.zeros(size + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    return memory[first:first + size].view(kind).reshape(sizes)


def aligned_copy(values: Array) -> Array:
    """The same array, in order, in memory of `aligned`."""
    copy = aligned(values.shape, values.dtype)
    if _TALLY.get() is None:
        copy[...] = values
    return copy


def _vector(kind: Any) -> Any:
    return ir.VectorType(kind, TILE)


def minimum(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of two signed integers."""
    return builder.select(builder.icmp_signed("<", a, b), a, b)


def spread(builder: Any, scalar: Any) -> Any:
    """The same number in all lanes."""
    one = builder.insert_element(ir.Constant(_vector(scalar.type), ir.Undefined), scalar, INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(_vector(ir.IntType(32)), [0] * TILE))


def contiguous(context: Any, builder: Any, kind: Any, value: Any, *bits: int) -> Any:
    """A numba array; TypingError unless it is in C order, with elements of one of these sizes."""
    if kind.layout != "C" or kind.dtype.bitwidth not in bits:
        raise TypingError("vector instructions need a contiguous array of "
                          f"{' or '.join(map(str, bits))} bits an element, not {kind}")
    return context.make_array(kind)(context, builder, value)


class Tiles:
    """Instructions on one tile of row arrays (rows, `width`) of floats, or of 64-bit words.

    The tile begins at `lane`. With `last`, lanes beyond that one stand for it: they load its number, and what
    they store, in its place, must be what it stores.
    """

    def __init__(self, builder: Any, width: Any, lane: Any, last: Any = None, kind: Any = _FLOAT) -> None:
        self.builder, self.width, self.lane, self.last = builder, width, lane, last
        self._type, self._align = _vector(kind), 4 if kind == ir.FloatType() else 8
        self._fma = builder.module.declare_intrinsic(  # the builder's own is for plain numbers only
            f"llvm.fma.v{TILE}f64", fnty=ir.FunctionType(_vector(_FLOAT), [_vector(_FLOAT)] * 3))

    def zeros(self) -> Any:
        """A variable, zero in all lanes."""
        return cgutils.alloca_once_value(self.builder, ir.Constant(self._type, [0.0] * TILE))

    def spread(self, scalar: Any) -> Any:
        """The same number in all lanes."""
        return spread(self.builder, scalar)

    def _place(self, array: Any, row: Any, lane: Any, kind: Any) -> Any:
        place = self.builder.add(self.builder.mul(row, self.width), lane)
        return self.builder.bitcast(self.builder.gep(array.data, [place]), kind.as_pointer())

    def _places(self, array: Any, row: Any) -> list[Any]:
        lanes = [minimum(self.builder, self.builder.add(self.lane, INDEX(i)), self.last) for i in range(TILE)]
        return [self._place(array, row, lane, self._type.element) for lane in lanes]

    def load(self, array: Any, row: Any) -> Any:
        """This tile of a row."""
        if self.last is None:
            return self.builder.load(self._place(array, row, self.lane, self._type), align=self._align)
        value = ir.Constant(self._type, ir.Undefined)
        for i, place in enumerate(self._places(array, row)):
            value = self.builder.insert_element(value, self.builder.load(place), INDEX(i))
        return value

    def store(self, value: Any, array: Any, row: Any) -> None:
        """Overwrite this tile of a row."""
        if self.last is None:
            self.builder.store(value, self._place(array, row, self.lane, self._type), align=self._align)
            return
        for i, place in enumerate(self._places(array, row)):
            self.builder.store(self.builder.extract_element(value, INDEX(i)), place)

    def double(self, value: Any) -> Any:
        """Floats of 32 or 64 bits as those of 64."""
        wide = _vector(_FLOAT)
        return value if value.type == wide else self.builder.fpext(value, wide)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """a b + c, rounded once."""
        return self.builder.call(self._fma, [a, b, c])

    def scalar(self, array: Any, *indices: Any) -> Any:
        """An entry of an array; indices and sizes alternate: i, n, j is entry i n + j."""
        place = indices[0]
        for size, index in zip(indices[1::2], indices[2::2], strict=True):
            place = self.builder.add(self.builder.mul(place, size), index)
        return self.builder.load(self.builder.gep(array.data, [place]))


class Words:
    """Unsigned 64-bit words, one for all lanes or one in each, with the operators of integers.

    So an equation of words is written once, for numbers, for compiled code and for tiles.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _with(self, other: Any, operation: str) -> Words:
        both = [self.value, other.value if isinstance(other, Words) else INDEX(other)]
        if both[0].type != both[1].type:
            both = [spread(self.builder, value) if value.type == INDEX else value for value in both]
        return Words(self.builder, getattr(self.builder, operation)(*both))

    __add__ = partialmethod(_with, operation="add")
    __mul__ = partialmethod(_with, operation="mul")
    __and__ = partialmethod(_with, operation="and_")
    __or__ = partialmethod(_with, operation="or_")
    __xor__ = partialmethod(_with, operation="xor")
    __lshift__ = partialmethod(_with, operation="shl")
    __rshift__ = partialmethod(_with, operation="lshr")
