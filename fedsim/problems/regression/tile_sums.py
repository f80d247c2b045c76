"""Sums over minibatches, a tile of lanes at a time: a datum is read, scored and added in one pass.

Each lane of a tile has drawn another datum. So target and features of a datum lie side by side in a `packed`
table: `BLOCK` numbers of the data of all lanes are read at once, and turned into as many vectors over lanes.
Where the table has one block, that is for up to three features, everything stays in registers; otherwise a
few kilobytes of room hold it. The operations and their order are the same in both, and in every lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...settings.lazy_import import lazy
from ...settings.limits import refuse_bytes
from ...settings.validation import Array
from ...vector.compile import intrinsic
from ...vector.memory import TILE, aligned
from ...vector.reals import Reals, tile_reals

cgutils, types = lazy("numba.core", "cgutils", "types")
ir = lazy("llvmlite.ir")
INDEX, Tiles = lazy("fedsim.vector.tiles", "INDEX", "Tiles")
contiguous, minimum = lazy("fedsim.vector.tiles", "contiguous", "minimum")

BLOCK = 4
"""Numbers of a datum that are read together."""


def table_width(dim: int) -> int:
    """Columns of a `packed` table of data with so many features."""
    return -(-(dim + 1) // BLOCK) * BLOCK


def packed(columns: Array, targets: Array) -> Array:
    """A row for each datum: target, features, zeros to whole blocks; from features (d, n), targets (n,)."""
    dim, n_data = columns.shape
    width = table_width(dim)
    refuse_bytes(8.0 * n_data * width, f"batch_size with {n_data} data of {dim} features: a table of them",
                 "use fewer data, or batch_size=None")
    table = aligned((n_data, width))
    table[:, 0], table[:, 1:dim + 1] = targets, columns.T
    return table


def sums_room(dim: int) -> Array:
    """Room for what a tile needs: points, features and sums, of each column."""
    return aligned((3 * table_width(dim), TILE))


def _each(builder: Any, count: Any) -> Iterator[Any]:
    """0, ..., count - 1: unrolled where this number is known, otherwise a loop of the compiled program."""
    if isinstance(count, int):
        yield from (INDEX(i) for i in range(count))
        return
    with cgutils.for_range(builder, count) as loop:
        yield loop.index


def _shuffled(builder: Any, one: Any, other: Any, places: Iterable[int]) -> Any:
    mask = list(places)
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(mask)), mask))


_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
_LOW, _HIGH = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)


def _turned(builder: Any, rows: list[Any]) -> list[Any]:
    """Four vectors of eight numbers from eight vectors of four."""
    both = [_shuffled(builder, rows[i], rows[i + 4], range(8)) for i in range(4)]
    even, odd = ([_shuffled(builder, both[i], both[i + 1], places) for i in (0, 2)]
                 for places in (_EVEN, _ODD))
    return [_shuffled(builder, one, other, places) for places in (_LOW, _HIGH) for one, other in (even, odd)]


def _block(builder: Any, table: Any, indices: Any, column: Any) -> list[Any]:
    """Numbers column, ..., column + 3 of the data that 16 `indices` name, over the lanes of a tile."""
    kind, rows = ir.VectorType(ir.DoubleType(), BLOCK), []
    _, width = cgutils.unpack_tuple(builder, table.shape)
    for i in range(TILE):
        datum = builder.zext(builder.load(builder.gep(indices, [INDEX(i)])), ir.IntType(64))
        place = builder.gep(table.data, [builder.add(builder.mul(datum, width), column)])
        rows.append(builder.load(builder.bitcast(place, kind.as_pointer()), align=8))
    halves = (_turned(builder, rows[i:i + TILE // 2]) for i in (0, TILE // 2))
    return [_shuffled(builder, low, high, range(TILE)) for low, high in zip(*halves, strict=True)]


class _Kept:
    """Tiles that are kept while a sum grows: of each sort, one for each column of the table."""

    POINT, FEATURE, SUM = range(3)

    def __init__(self, builder: Any, place: Any, columns: Any) -> None:
        self.builder, self._place, self._columns = builder, place, columns

    def _at(self, sort: int, column: Any) -> Any:
        before = self.builder.mul(INDEX(sort), self._columns)
        return self.builder.gep(self._place, [self.builder.add(before, column)])

    def load(self, sort: int, column: Any) -> Any:
        return self.builder.load(self._at(sort, column), align=64)

    def store(self, value: Any, sort: int, column: Any) -> None:
        self.builder.store(value, self._at(sort, column), align=64)


def _tile_sums(blocks: int | None) -> Any:
    """For tables of so many blocks; None for any number, which then work in `room`."""
    @intrinsic
    def tile(typingctx: Any, model: Any, table: Any, indices: Any, size: Any, scale: Any, prior: Any, x: Any,
             room: Any, out: Any, lane: Any) -> Any:
        """out = scale sum + prior x in one tile: over `size` rows of `indices`, of features times slope."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            table, x, room, out = (
                contiguous(context, builder, signature.args[i], args[i], 64) for i in (1, 6, 7, 8))
            indices = contiguous(context, builder, signature.args[2], args[2], 32)
            size, lane = args[3], args[9]
            scale, prior = (tile_reals(context, builder, signature.args[i], args[i], lane) for i in (4, 5))
            dim, n_lanes = cgutils.unpack_tuple(builder, x.shape)
            tiles = Tiles(builder, n_lanes, lane)
            zero = tiles.spread(context.get_constant(types.float64, 0.0))
            if blocks is None:
                n_blocks = builder.udiv(cgutils.unpack_tuple(builder, table.shape)[1], INDEX(BLOCK))
                features, columns = dim, builder.mul(n_blocks, INDEX(BLOCK))
                kept = _Kept(builder, builder.bitcast(room.data, zero.type.as_pointer()), columns)
            else:
                n_blocks, features, columns = blocks, blocks * BLOCK - 1, INDEX(blocks * BLOCK)
                kept = _Kept(builder, cgutils.alloca_once(builder, zero.type, 3 * blocks * BLOCK), columns)
            one = INDEX(1)
            kept.store(zero, kept.POINT, INDEX(0))  # the target's column, as those beyond the last feature
            for j in _each(builder, features):
                value = tiles.load(x, minimum(builder, j, builder.sub(dim, one)))
                value = builder.select(builder.icmp_signed("<", j, dim), value, zero)
                kept.store(value, kept.POINT, builder.add(j, one))
                kept.store(zero, kept.SUM, j)
            for k in _each(builder, size):
                drawn = builder.gep(indices.data, [builder.add(builder.mul(k, n_lanes), lane)])
                score = tiles.zeros()
                for b in _each(builder, n_blocks):
                    first = builder.mul(b, INDEX(BLOCK))
                    for i, values in enumerate(_block(builder, table, drawn, first)):
                        column = builder.add(first, INDEX(i))
                        kept.store(values, kept.FEATURE, column)
                        point = kept.load(kept.POINT, column)
                        builder.store(tiles.fma(values, point, builder.load(score)), score)
                mean_of = Reals(builder, builder.load(score), fuses=True)
                target = Reals(builder, kept.load(kept.FEATURE, INDEX(0)))
                slope = (model.instance_class.mean(mean_of) - target).value
                for j in _each(builder, features):
                    feature = kept.load(kept.FEATURE, builder.add(j, one))
                    kept.store(tiles.fma(feature, slope, kept.load(kept.SUM, j)), kept.SUM, j)
            for j in _each(builder, features):
                with builder.if_then(builder.icmp_signed("<", j, dim)):
                    total, at = (Reals(builder, kept.load(sort, column)) for sort, column in (
                        (kept.SUM, j), (kept.POINT, builder.add(j, one))))
                    tiles.store((scale * total + prior * at).value, out, j)
            return context.get_dummy_value()

        n = types.int64
        return types.void(model, table, indices, n, scale, prior, x, room, out, n), build

    return tile


sum_one_block, sum_blocks = _tile_sums(1), _tile_sums(None)
