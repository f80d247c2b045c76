"""The random streams: counters, not states.

Every random number is a pure function of (seed, replica, step, client, place, tag), computed by
`philox`. Nothing is stored, so the same seed gives the same bits for any thread count, block
size, executor or resume point, and different algorithms can share random numbers.

Counter words (32 bits each):  client << 16 | pair,  position,  replica,  tag.  The key is the seed; the
position is a step, or the number of a group of steps that share a draw.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..vector.memory import TILE, aligned, aligned_copy


class Tags(NamedTuple):
    """The tags that one kind of randomness owns: `first`, ..., first + width - 1."""

    first: int
    width: int


TAGS = {"OWN_NOISE": Tags(0, 1), "SHARED_NOISE": Tags(1, 1), "START": Tags(2, 1), "PARTICIPATION": Tags(3, 1),
        "EACH": Tags(4, 1),
        "MINIBATCH": Tags(1 << 16, (1 << 24) - (1 << 16)),
        "GRADIENT_NOISE": Tags(1 << 24, (1 << 32) - (1 << 24))}
"""All kinds of randomness, disjoint; evaluation j of a step has tag j of its minibatch's and its noise's."""

OWN_NOISE = TAGS["OWN_NOISE"].first
SHARED_NOISE = TAGS["SHARED_NOISE"].first
START = TAGS["START"].first
PARTICIPATION = TAGS["PARTICIPATION"].first
EACH = TAGS["EACH"].first
MINIBATCH = TAGS["MINIBATCH"].first
GRADIENT_NOISE = TAGS["GRADIENT_NOISE"].first

MAX_STEPS = 2**32
MAX_CLIENTS = 2**16
MAX_PAIRS = 2**16
MAX_REPLICAS = 2**32
MAX_EVALUATIONS = min(TAGS["MINIBATCH"].width, TAGS["GRADIENT_NOISE"].width)
"""Gradients with noise or minibatches that a client may evaluate in one step."""

ROOM = 2048
"""Normals of one call of several slots, at most: they fit the first cache with room to spare."""


class LaneSet(NamedTuple):
    """The lanes of a block, in whole tiles: the key words and the replica number of each lane, all uint64.

    `spare` is a row (1, at least B) of floats for the second normal of a pair where only one is wanted. The
    first two coordinates are pair `first_pair` of the problem's.
    """

    key0: Any
    key1: Any
    replicas: Any
    spare: Any
    first_pair: Any


class CoordinateLaneSet(NamedTuple):
    """Lanes that are pairs of coordinates of a few replicas: lane = pair * n_replicas + replica.

    Their number need not make whole tiles.
    """

    key0: Any
    key1: Any
    replicas: Any
    pairs: Any


def lane_set(seed: int, first: int, count: int, first_pair: int = 0) -> LaneSet:
    """Lanes of replicas first, ..., first + count - 1, and of the last one again until tiles are full."""
    n_lanes = -(-count // TILE) * TILE
    replicas = np.minimum(np.arange(first, first + n_lanes), first + count - 1)
    return LaneSet(np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32),
                   aligned_copy(replicas.astype(np.uint64)), aligned((1, max(n_lanes, ROOM))),
                   np.uint64(first_pair))


def by_coordinates(lanes: LaneSet, count: int, n_pairs: int) -> CoordinateLaneSet:
    """The first `count` lanes, with one lane for each pair of coordinates."""
    return CoordinateLaneSet(lanes.key0, lanes.key1, aligned_copy(np.tile(lanes.replicas[:count], n_pairs)),
                             aligned_copy(np.repeat(np.arange(n_pairs, dtype=np.uint64) + lanes.first_pair,
                                                    count)))
