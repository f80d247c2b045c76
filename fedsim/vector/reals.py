"""Floats with the operators of numbers, while code is compiled: one for all lanes, or one in each."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from ..settings.lazy_import import lazy
from .memory import TILE

ir = lazy("llvmlite.ir")
types = lazy("numba.core", "types")
INDEX, Words = lazy("fedsim.vector.tiles", "INDEX", "Words")
contiguous, spread = lazy("fedsim.vector.tiles", "contiguous", "spread")


class Reals:
    """Floats of 64 bits, as `Words` are words: an equation is written once, for compiled code and for tiles.

    Operations are rounded one by one; with `fuses`, those of `times` together.
    """

    def __init__(self, builder: Any, value: Any, fuses: bool = False) -> None:
        self.builder, self.value, self._fuses = builder, value, fuses
        self._lanes = getattr(value.type, "count", None)

    def _kind(self, kind: Any) -> Any:
        return kind if self._lanes is None else ir.VectorType(kind, self._lanes)

    def _of(self, other: Any) -> Any:
        if isinstance(other, Reals):
            return other.value
        number = float(other)
        return ir.Constant(self.value.type, number if self._lanes is None else [number] * self._lanes)

    def _with(self, other: Any, operation: str, swapped: bool = False) -> Reals:
        both = (self._of(other), self.value) if swapped else (self.value, self._of(other))
        return self._new(getattr(self.builder, operation)(*both))

    def _new(self, value: Any) -> Reals:
        return Reals(self.builder, value, self._fuses)

    def _call(self, name: str, *args: Any) -> Reals:
        """LLVM's intrinsic of this name, of numbers or of vectors of them."""
        kind = self.value.type
        function = self.builder.module.declare_intrinsic(
            f"llvm.{name}." + ("f64" if self._lanes is None else f"v{self._lanes}f64"),
            fnty=ir.FunctionType(kind, [kind] * len(args)))
        return self._new(self.builder.call(function, args))

    __add__ = partialmethod(_with, operation="fadd")
    __radd__ = partialmethod(_with, operation="fadd", swapped=True)
    __sub__ = partialmethod(_with, operation="fsub")
    __rsub__ = partialmethod(_with, operation="fsub", swapped=True)
    __mul__ = partialmethod(_with, operation="fmul")
    __rmul__ = partialmethod(_with, operation="fmul", swapped=True)
    __truediv__ = partialmethod(_with, operation="fdiv")

    def __neg__(self) -> Reals:
        return self._new(self.builder.fneg(self.value))

    def __abs__(self) -> Reals:
        return self._call("fabs", self.value)

    def times(self, factor: Any, plus: Any) -> Reals:
        """self factor + plus"""
        return self._call("fma", self.value, self._of(factor), self._of(plus)) if self._fuses else (
            self * factor + plus)

    def choose(self, comparison: str, bound: float, one: Any, other: Any) -> Reals:
        """`one` where the comparison with `bound` holds; the other where it does not, as for a NaN."""
        holds = self.builder.fcmp_ordered(comparison, self.value, self._of(bound))
        return self._new(self.builder.select(holds, self._of(one), self._of(other)))

    def bits(self) -> Any:
        """The same bits as `Words`."""
        return Words(self.builder, self.builder.bitcast(self.value, self._kind(ir.IntType(64))))

    def from_bits(self, words: Any) -> Reals:
        """`Words`, as many as these floats, as floats."""
        return self._new(self.builder.bitcast(words.value, self.value.type))


def tile_reals(context: Any, builder: Any, kind: Any, value: Any, lane: Any) -> Reals:
    """`Reals` of a tile of lanes: of a number, or of what `entry` gave for a client in each lane."""
    if isinstance(kind, types.Float):
        return Reals(builder, spread(builder, value))
    table, rows = (contiguous(context, builder, kind[i], builder.extract_value(value, i), 64) for i in (0, 1))
    values = ir.Constant(ir.VectorType(ir.DoubleType(), TILE), ir.Undefined)
    for i in range(TILE):
        row = builder.load(builder.gep(rows.data, [builder.add(lane, INDEX(i))]))
        values = builder.insert_element(values, builder.load(builder.gep(table.data, [row])), INDEX(i))
    return Reals(builder, values)
