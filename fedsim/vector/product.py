"""Products of small matrices: out += a b, with columns of b and out as vector lanes.

A block of four rows of `out` and up to twelve of its columns stays in registers while the sum over the rows
of b runs: each number that is read takes part in three or four products, where loops over rows read one for
each. An entry of `out` gets its products one by one in the order of the rows of b, rounded once each: its
bits depend neither on the block that it is in nor on the processor.
"""

from __future__ import annotations

from typing import Any

from ..settings.lazy_import import lazy
from .compile import inner, intrinsic

ir = lazy("llvmlite.ir")
cgutils, types = lazy("numba.core", "cgutils", "types")
INDEX, contiguous = lazy("fedsim.vector.tiles", "INDEX", "contiguous")

LANES = 4
"""Columns that widths have to be multiples of: doubles of a 256-bit vector."""
MOST = 3
"""Such vectors side by side; with four rows and what is read they fill sixteen registers."""
DEEP = 256
"""Rows of b that stay in the first cache while all rows of `out` go by."""


def whole_vectors(width: int) -> int:
    """The least multiple of `LANES` that is not less."""
    return -(-width // LANES) * LANES


def _block(n_rows: int, n_vectors: int) -> Any:
    @intrinsic
    def block(typingctx: Any, out: Any, a: Any, b: Any, row: Any, column: Any, begin: Any, end: Any) -> Any:
        """out[row + r, column + l] += sum over k from begin to end of a[row + r, k] b[k, column + l]."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.VectorType(ir.DoubleType(), LANES)
            fma = builder.module.declare_intrinsic(
                f"llvm.fma.v{LANES}f64", fnty=ir.FunctionType(kind, [kind] * 3))
            arrays = [contiguous(context, builder, signature.args[i], args[i], 64) for i in range(3)]
            widths = [cgutils.unpack_tuple(builder, array.shape)[1] for array in arrays]
            row, column, begin, end = args[3:]

            def place(which: int, i: Any, j: Any) -> Any:
                return builder.gep(arrays[which].data, [builder.add(builder.mul(i, widths[which]), j)])

            def vector(which: int, i: Any, v: int) -> Any:
                lanes = builder.add(column, INDEX(LANES * v))
                return builder.bitcast(place(which, i, lanes), kind.as_pointer())

            rows = [builder.add(row, INDEX(r)) for r in range(n_rows)]
            sums = [[cgutils.alloca_once_value(builder, builder.load(vector(0, i, v), align=8))
                     for v in range(n_vectors)] for i in rows]
            with cgutils.for_range_slice(builder, begin, end, INDEX(1)) as (k, _):
                loaded = [builder.load(vector(2, k, v), align=8) for v in range(n_vectors)]
                for i, own in zip(rows, sums, strict=True):
                    factor = builder.load(place(1, i, k))
                    one = builder.insert_element(ir.Constant(kind, ir.Undefined), factor, INDEX(0))
                    many = builder.shuffle_vector(one, one, ir.Constant(
                        ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
                    for total, value in zip(own, loaded, strict=True):
                        builder.store(builder.call(fma, [many, value, builder.load(total)]), total)
            for i, own in zip(rows, sums, strict=True):
                for v, total in enumerate(own):
                    builder.store(builder.load(total), vector(0, i, v), align=8)
            return context.get_dummy_value()

        n = types.int64
        return types.void(out, a, b, n, n, n, n), build

    return block


def _strip(n_vectors: int) -> Any:
    four, one = _block(4, n_vectors), _block(1, n_vectors)

    @inner
    def strip(out, a, b, n_rows, column, begin, end):
        done = n_rows // 4 * 4
        for row in range(0, done, 4):
            four(out, a, b, row, column, begin, end)
        for row in range(done, n_rows):
            one(out, a, b, row, column, begin, end)

    return strip


_narrow, _wide, _widest = _strip(1), _strip(2), _strip(MOST)


@inner
def add_product(out, a, b, n_rows, depth):
    """out[:n_rows] += a[:n_rows, :depth] b[:depth]; columns are whole vectors, as many in b as in out."""
    width = out.shape[1]
    for begin in range(0, depth, DEEP):
        end = min(depth, begin + DEEP)
        column = 0
        while column + MOST * LANES <= width:
            _widest(out, a, b, n_rows, column, begin, end)
            column += MOST * LANES
        if column + 2 * LANES <= width:
            _wide(out, a, b, n_rows, column, begin, end)
        elif column + LANES <= width:
            _narrow(out, a, b, n_rows, column, begin, end)
