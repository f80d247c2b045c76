"""Values that are one for all lanes, or one for each: what row functions take for a coefficient.

A client is a number, or an array with one number per lane where clients are drawn anew in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compile import dispatched


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
