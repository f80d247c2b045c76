"""Vector instructions: `TILE` lanes at a time, for loops that numba cannot express or LLVM cannot find.

`matrix`, `modes` and `philox` write the insides of such loops with `Tiles` and `Words`. The operations and
their order are the same in every lane: bits do not depend on where in a block a replica lies.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

TILE = 16
"""Lanes of a tile. Rows are a multiple of this, so that no loop over lanes has a scalar remainder."""

INDEX = ir.IntType(64)
_FLOAT = ir.DoubleType()
_TILE = ir.VectorType(_FLOAT, TILE)


def vector(kind: Any, n_lanes: int) -> Any:
    """The type of `n_lanes` numbers; one lane is a plain number."""
    return kind if n_lanes == 1 else ir.VectorType(kind, n_lanes)


def spread(builder: Any, scalar: Any, n_lanes: int) -> Any:
    """The same number in all lanes."""
    if n_lanes == 1:
        return scalar
    one = builder.insert_element(ir.Constant(vector(scalar.type, n_lanes), ir.Undefined), scalar, INDEX(0))
    return builder.shuffle_vector(one, one, ir.Constant(vector(ir.IntType(32), n_lanes), [0] * n_lanes))


class Tiles:
    """Instructions on one tile of lanes of row arrays (rows, `width`) of floats, or of 64-bit words."""

    def __init__(self, builder: Any, width: Any, lane: Any, n_lanes: int = TILE, kind: Any = _FLOAT) -> None:
        self.builder, self.width, self.lane, self.n_lanes = builder, width, lane, n_lanes
        self._type, self._align = vector(kind, n_lanes), 4 if kind == ir.FloatType() else 8
        self._fma = builder.module.declare_intrinsic(  # the builder's own is for plain numbers only
            f"llvm.fma.v{TILE}f64", fnty=ir.FunctionType(_TILE, [_TILE] * 3))

    def zeros(self) -> Any:
        """A variable, zero in all lanes."""
        return cgutils.alloca_once_value(self.builder, ir.Constant(self._type, [0.0] * self.n_lanes))

    def spread(self, scalar: Any) -> Any:
        """The same number in all lanes."""
        return spread(self.builder, scalar, self.n_lanes)

    def _place(self, array: Any, row: Any) -> Any:
        place = self.builder.add(self.builder.mul(row, self.width), self.lane)
        return self.builder.bitcast(self.builder.gep(array.data, [place]), self._type.as_pointer())

    def load(self, array: Any, row: Any) -> Any:
        """This tile of a row."""
        return self.builder.load(self._place(array, row), align=self._align)

    def store(self, value: Any, array: Any, row: Any) -> None:
        """Overwrite this tile of a row."""
        self.builder.store(value, self._place(array, row), align=self._align)

    def double(self, value: Any) -> Any:
        """Floats of 32 or 64 bits as those of 64."""
        wide = vector(_FLOAT, self.n_lanes)
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
    """Unsigned 64-bit words in all lanes, with the operators of integers: for an equation of words that is
    written once, for numbers, for compiled code and for tiles."""

    def __init__(self, builder: Any, value: Any, n_lanes: int) -> None:
        self.builder, self.value, self.n_lanes = builder, value, n_lanes

    def _with(self, other: Any, operation: str) -> Words:
        if not isinstance(other, Words):
            other = Words(self.builder, INDEX(other), 1)
        n_lanes = max(self.n_lanes, other.n_lanes)
        left, right = (word.value if word.n_lanes == n_lanes else spread(self.builder, word.value, n_lanes)
                       for word in (self, other))
        return Words(self.builder, getattr(self.builder, operation)(left, right), n_lanes)

    def __add__(self, other: Any) -> Words:
        return self._with(other, "add")

    def __mul__(self, other: Any) -> Words:
        return self._with(other, "mul")

    def __and__(self, other: Any) -> Words:
        return self._with(other, "and_")

    def __or__(self, other: Any) -> Words:
        return self._with(other, "or_")

    def __xor__(self, other: Any) -> Words:
        return self._with(other, "xor")

    def __lshift__(self, other: Any) -> Words:
        return self._with(other, "shl")

    def __rshift__(self, other: Any) -> Words:
        return self._with(other, "lshr")
