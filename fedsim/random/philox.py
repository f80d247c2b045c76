"""Philox4x32-10, the generator of all random words: its equation, and the compiled forms of it.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..settings.lazy_import import lazy
from ..vector.compile import inner, intrinsic
from ..vector.memory import TILE
from ..vector.per_lane import Gathered
from .slots import Listed, Numbers

cgutils, types = lazy("numba.core", "cgutils", "types")
TypingError = lazy("numba.core.errors", "TypingError")
INDEX, Tiles, Words = lazy("fedsim.vector.tiles", "INDEX", "Tiles", "Words")
contiguous, minimum = lazy("fedsim.vector.tiles", "contiguous", "minimum")


_MASK = 0xFFFFFFFF
_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85


def rounds(c0: Any, c1: Any, c2: Any, c3: Any, key0: Any, key1: Any) -> tuple[Any, Any, Any, Any]:
    """Four 32-bit words from a counter and a key, all of them integers or `Words` below 2^32."""
    for _ in range(10):
        product0, product1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = ((product1 >> 32) ^ c1 ^ key0, product1 & _MASK,
                          (product0 >> 32) ^ c3 ^ key1, product0 & _MASK)
        key0, key1 = (key0 + _W0) & _MASK, (key1 + _W1) & _MASK
    return c0, c1, c2, c3


def four_words(counter: Sequence[Any], key: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """`rounds` of the lower 32 bits of four `Words` and a key of two."""
    return rounds(*(word & _MASK for word in (*counter, *key)))


@intrinsic
def philox(typingctx: Any, c0: Any, c1: Any, c2: Any, c3: Any, key0: Any, key1: Any) -> Any:
    """`rounds` of the lower 32 bits of unsigned 64-bit integers."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # the mask says that products of 32 bits are enough
        counter_and_key = [Words(builder, arg) for arg in args]
        words = four_words(counter_and_key[:4], counter_and_key[4:])
        return context.make_tuple(builder, signature.return_type, [word.value for word in words])

    word = types.uint64
    return types.containers.UniTuple(word, 4)(word, word, word, word, word, word), build


def tile_numbers(context: Any, builder: Any, kind: Any, value: Any, slot: Any, lane: Any, last: Any) -> Any:
    """`Words` of a tile of lanes: of a number, an array over lanes, `Gathered`, `Numbers` or `Listed`."""
    def words(kind: Any, array: Any, row: Any) -> Any:
        if not isinstance(kind.dtype, types.Integer):
            raise TypingError(f"numbers of lanes must be integers, not {kind}")
        array = contiguous(context, builder, kind, array, 64)
        shape = cgutils.unpack_tuple(builder, array.shape)
        # a row beyond the last is asked for when the last group of slots is not full
        row = INDEX(0) if row is None else minimum(builder, row, builder.sub(shape[0], INDEX(1)))
        return Words(builder, Tiles(builder, shape[-1], lane, last, words=True).load(array, row))

    form = getattr(kind, "instance_class", None)
    if isinstance(kind, types.Array):
        return words(kind, value, None)
    if form is Gathered:
        table = contiguous(context, builder, kind[0], builder.extract_value(value, 0), 64)
        row = gathered = words(kind[1], builder.extract_value(value, 1), None).value
        for i in range(TILE):
            place = builder.gep(table.data, [builder.extract_element(row, INDEX(i))])
            gathered = builder.insert_element(gathered, builder.load(place), INDEX(i))
        return Words(builder, gathered)
    if form is Listed:
        table, first = (builder.extract_value(value, i) for i in range(2))
        return words(kind[0], table, builder.add(first, slot))
    if form is Numbers:
        first = context.cast(builder, builder.extract_value(value, 0), kind[0], types.uint64)
        return Words(builder, builder.add(first, slot))
    return Words(builder, context.cast(builder, value, kind, types.uint64))


def _tile_words(partial: bool) -> Any:
    @intrinsic
    def words(typingctx: Any, out0: Any, row0: Any, out1: Any, row1: Any, slot: Any, lane: Any, key0: Any,
              key1: Any, replicas: Any, client: Any, position: Any, first: Any, pair: Any, tag: Any) -> Any:
        """Words of the tile of lanes from `lane` on, of one slot; see `word_rows`."""
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def array(i: int) -> Any:
                return contiguous(context, builder, signature.args[i], args[i], 64)

            def numbers(i: int) -> Any:
                return tile_numbers(context, builder, signature.args[i], args[i], slot, lane, last)

            slot, lane = args[4:6]
            n_lanes, = cgutils.unpack_tuple(builder, array(8).shape)
            last = builder.sub(n_lanes, INDEX(1)) if partial else None
            counter = ((numbers(9) << 16) | (numbers(11) + numbers(12)), numbers(10), numbers(8), numbers(13))
            w0, w1, w2, w3 = four_words(counter, (numbers(6), numbers(7)))
            before = builder.mul(slot, n_lanes)
            lane, last = (i if i is None else builder.add(before, i) for i in (lane, last))
            for i, word in ((0, (w0 << 32) | w1), (2, (w2 << 32) | w3)):
                tiles = Tiles(builder, builder.extract_value(array(i).shape, 1), lane, last, words=True)
                tiles.store(word.value, array(i), args[i + 1])
            return context.get_dummy_value()

        n = types.int64
        numbers_of = (key0, key1, replicas, client, position, first, n, tag)
        return types.void(out0, n, out1, n, n, n, *numbers_of), build

    return words


_tile, _partial_tile = _tile_words(partial=False), _tile_words(partial=True)


@inner
def word_rows(out, spare, n_slots, key0, key1, replicas, client, position, first, tag):
    """Fill rows of floats (r, n_slots B) with words: 64 random bits each, two rows from one Philox call.

    The counter is client << 16 | first + i, position, replica, tag for rows 2 i and 2 i + 1. Each of the
    first three numbers is one for all, or an array with one for each lane; client and position may also
    differ by slot. Rows may be longer. The second row of the last pair is row 0 of `spare` where `out` has
    no room for it. Only whole tiles are filled.
    """
    rows = out.shape[0]
    for pair in range((rows + 1) // 2):
        second, row = (out, 2 * pair + 1) if 2 * pair + 1 < rows else (spare, 0)
        for slot in range(n_slots):
            for lane in range(0, replicas.shape[0] // TILE * TILE, TILE):
                _tile(out, 2 * pair, second, row, slot, lane, key0, key1, replicas, client, position,
                      first, pair, tag)


@inner
def last_words(out, n_slots, key0, key1, replicas, client, position, first, tag):
    """The lanes beyond the last whole tile, in two rows: see `word_rows`."""
    whole = replicas.shape[0] // TILE * TILE
    for slot in range(n_slots if whole < replicas.shape[0] else 0):
        _partial_tile(out, 0, out, 1, slot, whole, key0, key1, replicas, client, position, first, 0, tag)
