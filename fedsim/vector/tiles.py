"""Vector instructions: `TILE` lanes at a time, for loops that numba cannot express or LLVM cannot find.

`matrix`, `trajectories` and `philox` write the insides of such loops with `Tiles` and `Words`. The operations
and their order are the same in every lane: bits do not depend on where in a block a replica lies. This file
needs numba, so it is imported where something is compiled.
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError

from .memory import TILE

INDEX = ir.IntType(64)
_FLOAT = ir.DoubleType()


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

    def __init__(self, builder: Any, width: Any, lane: Any, last: Any = None, kind: Any = _FLOAT,
                 words: bool = False) -> None:
        self.builder, self.width, self.lane, self.last = builder, width, lane, last
        kind = INDEX if words else kind
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
