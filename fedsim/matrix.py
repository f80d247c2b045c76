"""A client's matrix times the rows of all lanes: out += size A (x - c).

Row functions as in `lanes` would read and write every row once for each entry of A. Here the sums of a
few rows of A stay in registers for `_TILE` lanes at a time, which numba's loops cannot express, so the
loop over columns is written in LLVM's vector instructions. Its operations and their order are those of
`_lane`, in every lane: the bits do not depend on where in a block a replica lies.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .compile import Gathered, coordinate, dispatched, fused, inner

_TILE = 16
_VECTOR = ir.VectorType(ir.DoubleType(), _TILE)
_INDEX = ir.IntType(64)


def _tile_product(n_rows: int) -> Any:
    @intrinsic
    def product(typingctx: Any, out: Any, size: Any, matrices: Any, client: Any, row: Any, x: Any,
                centres: Any, lane: Any) -> Any:
        """out[row + r] += size sum_j A[client, row + r, j] (x[j] - c[client, j]) for one tile of lanes."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            out, size, matrices, client, row, x, centres, lane = args
            arrays = [context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2, 5, 6)]
            out, matrices, x, centres = arrays
            dim = cgutils.unpack_tuple(builder, x.shape)[0]
            width = cgutils.unpack_tuple(builder, x.shape)[1]
            zero = ir.Constant(_VECTOR, [0.0] * _TILE)
            fma = builder.module.declare_intrinsic(f"llvm.fma.v{_TILE}f64", fnty=ir.FunctionType(
                _VECTOR, [_VECTOR] * 3))
            sums = [cgutils.alloca_once_value(builder, zero) for _ in range(n_rows)]

            def spread(scalar: Any) -> Any:
                one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, _INDEX(0))
                return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), _TILE),
                                                                   [0] * _TILE))

            def tile(array: Any, index: Any) -> Any:
                place = builder.add(builder.mul(index, width), lane)
                return builder.bitcast(builder.gep(array.data, [place]), _VECTOR.as_pointer())

            first = builder.add(builder.mul(client, dim), row)  # in units of rows of all matrices
            with cgutils.for_range(builder, dim) as loop:
                j = loop.index
                centre = builder.load(builder.gep(centres.data, [builder.add(builder.mul(client, dim), j)]))
                gap = builder.fsub(builder.load(tile(x, j), align=8), spread(centre))
                for r in range(n_rows):
                    place = builder.add(builder.mul(builder.add(first, _INDEX(r)), dim), j)
                    entry = builder.load(builder.gep(matrices.data, [place]))
                    builder.store(builder.call(fma, [spread(entry), gap, builder.load(sums[r])]), sums[r])
            for r in range(n_rows):
                place = tile(out, builder.add(row, _INDEX(r)))
                old = builder.load(place, align=8)
                new = builder.call(fma, [spread(size), builder.load(sums[r]), old])
                builder.store(new, place, align=8)
            return context.get_dummy_value()

        count = types.int64
        signature = types.void(out, types.float64, matrices, count, count, x, centres, count)
        return signature, build

    return product


_one_row, _two_rows, _four_rows = _tile_product(1), _tile_product(2), _tile_product(4)


@inner
def _lane(out, size, matrices, client, x, centres, lane):
    dim = x.shape[0]
    for i in range(dim):
        total = 0.0
        for j in range(dim):
            total = fused(matrices[client, i, j], x[j, lane] - centres[client, j], total)
        out[i, lane] = fused(size, total, out[i, lane])


@dispatched
def _add_product(kind: Any, out: Any, size: float, matrices: Any, client: Any, x: Any, centres: Any) -> None:
    """`add_product`, chosen by whether `client` is one number or one per lane."""


@_add_product.otherwise
def _of_one_client(kind, out, size, matrices, client, x, centres):
    dim, n_lanes = x.shape
    whole = n_lanes // _TILE * _TILE
    for lane in range(0, whole, _TILE):
        for row in range(0, dim // 4 * 4, 4):
            _four_rows(out, size, matrices, client, row, x, centres, lane)
        if dim % 4 >= 2:
            _two_rows(out, size, matrices, client, dim // 4 * 4, x, centres, lane)
        if dim % 2:
            _one_row(out, size, matrices, client, dim - 1, x, centres, lane)
    for lane in range(whole, n_lanes):
        _lane(out, size, matrices, client, x, centres, lane)


@_add_product.register(Gathered)
def _of_many_clients(kind, out, size, matrices, client, x, centres):
    for lane in range(x.shape[1]):
        _lane(out, size, matrices, client[lane], x, centres, lane)


@inner
def add_product(out, size, matrices, client, x, centres):
    """out += size A (x - c) with the client's A (d, d) of `matrices` and c (d,) of `centres`; x, out (d, B).

    `client` is a number, or one number per lane. `out` and `x` must not overlap.
    """
    _add_product(coordinate(centres, client, 0), out, size, matrices, client, x, centres)
