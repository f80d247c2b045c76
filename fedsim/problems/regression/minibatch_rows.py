"""The numbers of the data in minibatches, drawn for a tile of lanes at a time: `minibatch` says the rule."""

from __future__ import annotations

from typing import Any

from ...random.philox import four_words, tile_numbers
from ...settings.lazy_import import lazy
from ...vector.compile import intrinsic
from ...vector.memory import TILE

cgutils, types = lazy("numba.core", "cgutils", "types")
ir = lazy("llvmlite.ir")
INDEX, Tiles, Words = lazy("fedsim.vector.tiles", "INDEX", "Tiles", "Words")
contiguous, spread = lazy("fedsim.vector.tiles", "contiguous", "spread")

_MASK = 0xFFFFFFFF


class _Rows:
    """Rows of numbers (.., B) of 32 bits: what this tile of lanes has drawn."""

    def __init__(self, builder: Any, array: Any, lane: Any) -> None:
        self.builder, self._array = builder, array
        _, n_lanes = cgutils.unpack_tuple(builder, array.shape)
        self._tiles = Tiles(builder, n_lanes, lane, kind=ir.IntType(32))

    def load(self, k: Any) -> Any:
        return self._tiles.load(self._array, k)

    def store(self, value: Any, k: Any) -> None:
        self._tiles.store(value, self._array, k)

    def store_words(self, words: Any, k: Any) -> None:
        self.store(self.narrow(words), k)

    def narrow(self, words: Any) -> Any:
        """The lower 32 bits, in all lanes."""
        value, kind = words.value, ir.VectorType(ir.IntType(32), TILE)
        each = value if isinstance(value.type, ir.VectorType) else spread(self.builder, value)
        return self.builder.trunc(each, kind)


def _replace_drawn(builder: Any, rows: _Rows, size: Any, last: Any) -> None:
    """Floyd's rule: what a lane drew before becomes the last of the numbers that could be drawn.

    These are `last` (`Words`) for row 0, last + 1 for row 1, ...
    """
    with cgutils.for_range_slice(builder, INDEX(1), size, INDEX(1)) as (k, _):
        row = rows.load(k)
        gap = cgutils.alloca_once_value(builder, ir.Constant(row.type, [_MASK] * TILE))
        with cgutils.for_range(builder, k) as earlier:  # zero where any of them is equal
            other, least = builder.xor(row, rows.load(earlier.index)), builder.load(gap)
            builder.store(builder.select(builder.icmp_unsigned("<", other, least), other, least), gap)
        is_new = builder.icmp_unsigned("!=", builder.load(gap), ir.Constant(row.type, None))
        rows.store(builder.select(is_new, row, rows.narrow(last + Words(builder, k))), k)


@intrinsic
def draw_tile(typingctx: Any, indices: Any, size: Any, replace: Any, first: Any, sizes: Any, key0: Any,
              key1: Any, replicas: Any, client: Any, step: Any, tag: Any, lane: Any) -> Any:
    """Fill `size` rows of `indices`, and up to three more, for the tile of lanes that begins at `lane`."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def numbers(i: int) -> Any:
            return tile_numbers(context, builder, signature.args[i], args[i], INDEX(0), lane, None)

        size, replace, lane = args[1], args[2], args[11]
        rows = _Rows(builder, contiguous(context, builder, signature.args[0], args[0], 32), lane)
        first, key = numbers(3), (numbers(5), numbers(6))
        replicas, step, tag = numbers(7), numbers(9), numbers(10)
        growth = builder.select(replace, INDEX(0), INDEX(1))  # of m from row to row
        least = numbers(4) + Words(builder, builder.mul(growth, builder.sub(INDEX(1), size)))
        client = numbers(8) << 16
        with cgutils.for_range(builder, builder.udiv(builder.add(size, INDEX(3)), INDEX(4))) as quad:
            words = four_words((client | Words(builder, quad.index), step, replicas, tag), key)
            for i, word in enumerate(words):
                k = builder.add(builder.mul(quad.index, INDEX(4)), INDEX(i))
                m = (least + Words(builder, builder.mul(growth, k))) & _MASK  # 32 bits: a quicker product
                rows.store_words(((word * m) >> 32) + first, k)
        with builder.if_then(builder.not_(replace)):
            _replace_drawn(builder, rows, size, least + first + -1)
        return context.get_dummy_value()

    n, word = types.int64, types.uint64
    return types.void(indices, n, types.boolean, first, sizes, word, word, replicas, client, word, word,
                      n), build
