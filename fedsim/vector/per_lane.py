"""Values that are one for all lanes, or one for each: what row functions take for a coefficient.

A client is a number, or an array with one number per lane where clients are drawn anew in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..settings.lazy_import import lazy
from .compile import dispatched, intrinsic

cgutils, types = lazy("numba.core", "cgutils", "types")
arrays = lazy("numba.np.arrayobj")


class Gathered(NamedTuple):
    """A table with one row per client and the client of each lane: what `entry` gives for those."""

    table: Any
    clients: Any


@dispatched(by="client")
def entry(table: Any, client: Any) -> Any:
    """`table[client]` for a client number; a `Gathered` to be read lane by lane otherwise."""


@dispatched(by="client")
def coordinate(table: Any, client: Any, i: int) -> Any:
    """`entry` of column i of a table (N, d)."""


@dispatched(by="client")
def element(table: Any, client: Any, i: int, j: int) -> Any:
    """`entry` of place (i, j) of a table (N, d, d)."""


@dispatched
def per_lane(value: Any, lane: int) -> Any:
    """The value in this lane: of a scalar, an array over lanes, or a `Gathered`."""


def lane_vector(dim: int) -> Any:
    """Of rows (dim, B) and a lane: a view of the numbers of that lane, whose length the compiler knows.

    So loops over it are unrolled, and a loop over lanes around them vectorises.
    """
    @intrinsic
    def vector(typingctx: Any, rows: Any, lane: Any) -> Any:
        kind = types.Array(rows.dtype, 1, "A", readonly=not rows.mutable)

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            source = context.make_array(signature.args[0])(context, builder, args[0])
            view = context.make_array(kind)(context, builder)
            size = context.get_constant(types.intp, dim)
            arrays.populate_array(
                view, data=builder.gep(source.data, [args[1]]), shape=[size],
                strides=[cgutils.unpack_tuple(builder, source.strides)[0]],
                itemsize=source.itemsize, meminfo=None)
            return view._getvalue()

        return kind(rows, types.int64), build

    return vector


@intrinsic
def read_only(typingctx: Any, array: Any) -> Any:
    """The same array for who must not write: code that would is not compiled."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return array.copy(readonly=True)(array), build


# an element is read directly: a view of a column costs as much as eight lanes of arithmetic
entry.otherwise(lambda table, client: table[client])
coordinate.otherwise(lambda table, client, i: table[client, i])
element.otherwise(lambda table, client, i, j: table[client, i, j])
entry.register(np.ndarray)(lambda table, client: Gathered(table, client))
coordinate.register(np.ndarray)(lambda table, client, i: Gathered(table[:, i], client))
element.register(np.ndarray)(lambda table, client, i, j: Gathered(table[:, i, j], client))
per_lane.otherwise(lambda value, lane: value)
per_lane.register(np.ndarray)(lambda value, lane: value[lane])
per_lane.register(Gathered)(lambda value, lane: value.table[value.clients[lane]])
