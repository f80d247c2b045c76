"""Code of a user's function that raises where compiled code would read other memory or compute nonsense.

- An index below zero or beyond its axis: IndexError. One that is negative counts as out of range, though
  Python counts it from the end, but for a constant as in ``x[-1]``.
- An integer of more than 64 bits, by an operator or from a float: OverflowError.
- An integer divided by zero: ZeroDivisionError.

numba's own check of bounds is switched on index by index. Which operations are guarded is said by two
classes; see `moving`. This file needs numba, so it is imported where something is compiled.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.lowering import Lower

from ..settings.lazy_import import lazy
from .moving import Moving

types = lazy("numba.core", "types")
_TOO_LARGE = "an integer of more than 64 bits; write 2.0 for 2"
_NO_INTEGER = "a number beyond 64 bits, or NaN, is made an integer"
_OVERFLOW = {operator.add: "add", operator.sub: "sub", operator.mul: "mul"}
_BY_NAME = {np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, pow: operator.pow,
            np.power: operator.pow, np.left_shift: operator.lshift, np.right_shift: operator.rshift,
            np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.fmod: operator.mod,
            divmod: operator.floordiv, np.divmod: operator.floordiv}
"""Functions, and the operators that they are."""


def _is_narrower(taken: Any, given: Any) -> bool:
    """Whether a function takes an integer as one of fewer bits."""
    return (isinstance(taken, types.Integer) and isinstance(given, types.Integer)
            and taken.bitwidth < given.bitwidth)


class StrictLower(Lower):  # type: ignore[misc]
    """Guards every operation."""

    def _moves(self, *values: Any, array: Any = None) -> bool:
        """Whether to guard an operation on these values, or on places of this array."""
        return True

    def _raise_where(self, condition: Any, error: type[Exception], message: str) -> None:
        with cgutils.if_unlikely(self.builder, condition):
            self.return_exception(error, (message,), loc=self.loc)

    # -- indices

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Reading an entry."""
        with self._bounded(value, index):
            return super().lower_getitem(resty, expr, value, index, signature)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> Any:
        """Writing one."""
        with self._bounded(target, index):
            return super().lower_setitem(target, index, value, signature)

    @contextmanager
    def _bounded(self, array: Any, index: Any) -> Iterator[None]:
        if not self._moves(index, array=array):
            yield
            return
        if isinstance(self.typeof(array.name), types.NumpyFlatType):
            raise TypingError("it reads or writes an entry of .flat, which is not checked: index the array",
                              loc=self.loc)
        self._not_negative(self.loadvar(index.name), self.typeof(index.name))
        before, self.context.enable_boundscheck = self.context.enable_boundscheck, True
        try:
            yield
        finally:
            self.context.enable_boundscheck = before

    def _not_negative(self, value: Any, kind: Any) -> None:
        if isinstance(kind, types.BaseTuple):
            for i, part in enumerate(kind):
                self._not_negative(self.builder.extract_value(value, i), part)
        elif isinstance(kind, types.Integer) and kind.signed and not isinstance(kind, types.IntegerLiteral):
            self._raise_where(self.builder.icmp_signed("<", value, value.type(0)), IndexError,
                              "index is negative")

    # -- integers

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """An operator."""
        self._check_operator(op, (expr.lhs, expr.rhs), self.fndesc.calltypes[expr])
        return super().lower_binop(resty, expr, op)

    def lower_call(self, resty: Any, expr: Any) -> Any:
        """A function that is an operator, or makes an integer."""
        key = getattr(self.typeof(expr.func.name), "typing_key", None)
        args, kind = tuple(expr.args), types.unliteral(resty)
        signature = self.fndesc.calltypes[expr]
        if key in _BY_NAME or key in _BY_NAME.values():
            self._check_operator(_BY_NAME.get(key, key), args, signature)
        elif isinstance(kind, types.Integer) and len(args) == 1 and self._moves(*args):
            self._check_conversion(args[0], kind)
            if key in (abs, np.abs):
                self._check_sign_change(args[0])
        for arg, taken in zip(args, signature.args, strict=False):
            if _is_narrower(taken, self.typeof(arg.name)) and self._moves(arg):
                self._check_conversion(arg, taken)
        return super().lower_call(resty, expr)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """An expression: a minus is one."""
        if expr.op == "unary" and expr.fn is operator.neg and self._moves(expr.value):
            self._check_sign_change(expr.value)
        return super().lower_expr(resty, expr)

    def _check_sign_change(self, arg: Any) -> None:
        """The least integer has no opposite."""
        kind, value = types.unliteral(self.typeof(arg.name)), self.loadvar(arg.name)
        if isinstance(kind, types.Integer) and kind.signed:
            self._too_large(self._is_least(value))

    def _is_least(self, value: Any) -> Any:
        return self.builder.icmp_signed("==", value, value.type(-(2 ** (value.type.width - 1))))

    def _check_operator(self, op: Any, args: Any, signature: Any) -> None:
        """Of two integers; the signature has the types as which they are operated on."""
        kinds = signature.args
        if len(kinds) != 2 or not all(isinstance(kind, types.Integer) for kind in kinds) or not self._moves(
                *args):
            return
        build, signed = self.builder, kinds[0].signed
        a, b = (self.context.cast(build, self.loadvar(arg.name), self.typeof(arg.name), kind)
                for arg, kind in zip(args, kinds, strict=True))
        minus = self._sign(b, kinds[1])
        if op in _OVERFLOW:
            name = f"{'s' if signed else 'u'}{_OVERFLOW[op]}_with_overflow"
            self._too_large(build.extract_value(getattr(build, name)(a, b), 1))
        elif op is operator.pow:
            self._raise_where(minus, ValueError, "a negative power of an integer; write 2.0 for 2")
            self._too_large(self._power_is_large(a, b, kinds))
        elif op in (operator.lshift, operator.rshift):
            a = self.context.cast(build, a, kinds[0], signature.return_type)  # where bits are shifted
            self._too_large(build.icmp_unsigned(">=", b, b.type(64)))
            if op is operator.lshift:
                back = build.ashr if signed else build.lshr
                self._too_large(build.icmp_unsigned("!=", back(build.shl(a, b), b), a))
        elif op in (operator.floordiv, operator.mod):
            self._raise_where(build.icmp_unsigned("==", b, b.type(0)), ZeroDivisionError, "division by zero")
            if signed:
                self._too_large(build.and_(self._is_least(a), build.icmp_signed("==", b, b.type(-1))))

    def _too_large(self, condition: Any) -> None:
        self._raise_where(condition, OverflowError, _TOO_LARGE)

    def _power_is_large(self, a: Any, b: Any, kinds: Any) -> Any:
        """Whether a^b is beyond 64 bits, as floats have it; no power is so near that they are mistaken."""
        build, kind = self.builder, llvm.DoubleType()
        base, exponent = (self.context.cast(build, value, one, types.float64)
                          for value, one in zip((a, b), kinds, strict=True))
        power = build.call(build.module.declare_intrinsic("llvm.pow", [kind]), [base, exponent])
        size = build.call(build.module.declare_intrinsic("llvm.fabs", [kind]), [power])
        return build.fcmp_unordered(">=", size, kind(2.0 ** (63 if kinds[0].signed else 64)))

    def _check_conversion(self, arg: Any, to: Any) -> None:
        """From a float, or from an integer of another type."""
        build, kind = self.builder, types.unliteral(self.typeof(arg.name))
        value = self.loadvar(arg.name)
        if isinstance(kind, types.Float):
            high = 2.0 ** (to.bitwidth - to.signed)
            low = -high if to.signed else -1.0
            inside = build.and_(build.fcmp_ordered(">", value, value.type(low)),
                                build.fcmp_ordered("<", value, value.type(high)))
            self._raise_where(build.not_(inside), OverflowError, _NO_INTEGER)
        elif isinstance(kind, types.Integer) and kind != to:
            made = self.context.cast(build, value, kind, to)
            back = self.context.cast(build, made, to, kind)
            self._too_large(build.or_(build.icmp_unsigned("!=", back, value),
                                      build.icmp_unsigned("!=", self._sign(made, to),
                                                          self._sign(value, kind))))

    def _sign(self, value: Any, kind: Any) -> Any:
        return (self.builder.icmp_signed("<", value, value.type(0)) if kind.signed
                else llvm.IntType(1)(0))


class GradientLower(StrictLower):
    """Guards what depends on the point, which is a gradient's second argument: (client, x, [out,] ...)."""

    def lower_function_body(self) -> Any:
        """The whole function, of which it has to be known what moves."""
        self._moving = Moving(self.blocks, self.typeof, self._points())
        return super().lower_function_body()

    def _points(self) -> set[int]:
        """Which arguments are the point and what is written; all where they come as ``*args``."""
        kinds = self.fndesc.argtypes
        if len(kinds) > 1 and isinstance(kinds[1], types.Float):
            return {1}
        named = len(kinds) > 2 and all(isinstance(kind, types.Array) for kind in kinds[1:3])
        return {1, 2} if named else set(range(len(kinds)))

    def lower_block(self, block: Any) -> None:
        """A block, which perhaps some points alone reach."""
        self._for_some = any(self.blocks[label] is block for label in self._moving.blocks)
        super().lower_block(block)

    def _moves(self, *values: Any, array: Any = None) -> bool:
        moving = self._moving
        return (self._for_some or any(var.name in moving.values for var in values)
                or (array is not None and array.name in moving.shapes))
