"""A client's matrix times the rows of all lanes: out += size A (x - c).

Row functions as in `lanes` would read and write every row once for each entry of A. Here the sums of a
few rows of A stay in registers for `TILE` lanes at a time, which numba's loops cannot express, so the
loop over columns is written with `tiles`. Its operations and their order are those of `_lane`, in every
lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..settings.lazy_import import lazy
from .compile import dispatched, fused, inner, intrinsic
from .memory import TILE

cgutils, types = lazy("numba.core", "cgutils", "types")
INDEX, Tiles = lazy("fedsim.vector.tiles", "INDEX", "Tiles")



def _tile_product(n_rows: int) -> Any:
    @intrinsic
    def product(typingctx: Any, out: Any, size: Any, matrices: Any, client: Any, row: Any, x: Any,
                centres: Any, lane: Any) -> Any:
        """out[row + r] += size sum_j A[client, row + r, j] (x[j] - c[client, j]) for one tile of lanes."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            _, size, _, client, row, _, _, lane = args
            out, matrices, x, centres = (
                context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2, 5, 6))
            dim, width = cgutils.unpack_tuple(builder, x.shape)
            tiles = Tiles(builder, width, lane)
            sums = [tiles.zeros() for _ in range(n_rows)]
            with cgutils.for_range(builder, dim) as loop:
                j = loop.index
                gap = builder.fsub(tiles.load(x, j), tiles.spread(tiles.scalar(centres, client, dim, j)))
                for r in range(n_rows):
                    entry = tiles.scalar(matrices, client, dim, builder.add(row, INDEX(r)), dim, j)
                    builder.store(tiles.fma(tiles.spread(entry), gap, builder.load(sums[r])), sums[r])
            for r in range(n_rows):
                here = builder.add(row, INDEX(r))
                tiles.store(tiles.fma(tiles.spread(size), builder.load(sums[r]), tiles.load(out, here)), out,
                            here)
            return context.get_dummy_value()

        n = types.int64
        return types.void(out, types.float64, matrices, n, n, x, centres, n), build

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


@dispatched(by="client")
def add_product(out: Any, size: float, matrices: Any, client: Any, x: Any, centres: Any) -> None:
    """out += size A (x - c) with the client's A (d, d) of `matrices` and c (d,) of `centres`; x, out (d, B).

    `client` is a number, or one number per lane. `out` and `x` must not overlap.
    """


@add_product.otherwise
def _of_one_client(out, size, matrices, client, x, centres):
    dim, n_lanes = x.shape
    whole = n_lanes // TILE * TILE
    for lane in range(0, whole, TILE):
        for row in range(0, dim // 4 * 4, 4):
            _four_rows(out, size, matrices, client, row, x, centres, lane)
        if dim % 4 >= 2:
            _two_rows(out, size, matrices, client, dim // 4 * 4, x, centres, lane)
        if dim % 2:
            _one_row(out, size, matrices, client, dim - 1, x, centres, lane)
    for lane in range(whole, n_lanes):
        _lane(out, size, matrices, client, x, centres, lane)


@add_product.register(np.ndarray)
def _of_many_clients(out, size, matrices, client, x, centres):
    for lane in range(x.shape[1]):
        _lane(out, size, matrices, client[lane], x, centres, lane)

