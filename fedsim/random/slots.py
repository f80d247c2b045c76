"""Normals of several clients, or of several steps, drawn by one call and laid side by side.

A short row costs nearly as much as one twice as long, so a call fills rows of several slots, B lanes
each. Which numbers a slot gets does not depend on how many are drawn together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..vector.compile import spliced
from ..vector.memory import aligned
from .streams import ROOM


class Numbers(NamedTuple):
    """Consecutive numbers, of clients or of positions: one for each slot."""

    first: Any


class Listed(NamedTuple):
    """Rows of a table from `first` on, with one number per lane: one row for each slot, or the last row."""

    table: Any
    first: Any


class NormalRoom(NamedTuple):
    """Room for normals: `rows` (groups, r, m B) and `slots` (groups, r, m, B) are the same memory."""

    rows: Any
    slots: Any


def normal_room(count: int, rows: int, n_lanes: int, dtype: Any, keep: bool = False) -> NormalRoom:
    """Zeros for `count` slots of `rows` rows: one group, used over and over, or (`keep`) all of them."""
    most = max(1, min(count, ROOM // (rows * n_lanes)))
    # a call costs about as much as 16 lanes; drawing for slots beyond the last is a waste
    together = min(range(1, most + 1), key=lambda m: -(-count // m) * (16 + m * n_lanes))
    groups = -(-count // together) if keep else 1
    slots = aligned((groups, rows, together, n_lanes), dtype)
    return NormalRoom(slots.reshape(groups, rows, -1), slots)


class Normals(NamedTuple):
    """The normals of one client in one step: rows `first`, ... of one slot of `values` (r, m, B)."""

    values: Any
    slot: Any
    first: Any


@spliced
def normal_row(normals, i):
    """Row i (B,) of a client's normals."""
    return normals.values[normals.first + i, normals.slot]
