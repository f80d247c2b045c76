"""The random streams: counters, not states.

Every random number is a pure function of (seed, replica, step, client, place, tag), computed by
Philox4x32-10. Nothing is stored, so the same seed gives the same bits for any thread count, block
size, executor or resume point, and different algorithms can share random numbers.

Counter words (32 bits each):  client << 16 | pair,  step,  replica,  tag.  The key is the seed.

Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compile import inlined

# Tags: the kind of randomness. Noise of gradient evaluation j of a step has GRADIENT_NOISE + j.
OWN_NOISE = 0
SHARED_NOISE = 1
START = 2
PARTICIPATION = 3
MINIBATCH = 1 << 16
GRADIENT_NOISE = 1 << 24

MAX_STEPS = 2**32
MAX_CLIENTS = 2**16
MAX_PAIRS = 2**16
MAX_REPLICAS = 2**32

_MASK = np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_32 = np.uint64(32)


class LaneSet(NamedTuple):
    """The lanes of a block: the key words and the replica number of each lane, all uint64.

    `spare` is a row of floats for the second normal of a pair where only one is wanted.
    """

    key0: Any
    key1: Any
    replicas: Any
    spare: Any


class CoordinateLaneSet(NamedTuple):
    """Lanes that are pairs of coordinates of a few replicas: lane = pair * n_replicas + replica."""

    key0: Any
    key1: Any
    replicas: Any
    pairs: Any


VECTOR_LANES = 16
"""Rows are a multiple of this many lanes, so that no loop over lanes has a scalar remainder."""


def lane_set(seed: int, first: int, count: int, pad: bool = False) -> LaneSet:
    """Lanes of replicas first, ..., first + count - 1; padding repeats the last one."""
    n_lanes = -(-count // VECTOR_LANES) * VECTOR_LANES if pad else count
    replicas = np.minimum(np.arange(first, first + n_lanes), first + count - 1)
    return LaneSet(np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32), replicas.astype(np.uint64),
                   np.empty(n_lanes))


def by_coordinates(lanes: LaneSet, n_pairs: int) -> CoordinateLaneSet:
    """The same replicas with one lane for each pair of coordinates."""
    n_replicas = len(lanes.replicas)
    return CoordinateLaneSet(lanes.key0, lanes.key1, np.tile(lanes.replicas, n_pairs),
                             np.repeat(np.arange(n_pairs, dtype=np.uint64), n_replicas))


@inlined
def _philox_round(c0, c1, c2, c3, key0, key1):
    product0 = _M0 * c0
    product1 = _M1 * c2
    return ((product1 >> _32) ^ c1 ^ key0, product1 & _MASK,
            (product0 >> _32) ^ c3 ^ key1, product0 & _MASK)


@inlined
def _philox_two_rounds(c0, c1, c2, c3, key0, key1):
    c0, c1, c2, c3 = _philox_round(c0, c1, c2, c3, key0, key1)
    key0, key1 = (key0 + _W0) & _MASK, (key1 + _W1) & _MASK
    c0, c1, c2, c3 = _philox_round(c0, c1, c2, c3, key0, key1)
    return c0, c1, c2, c3, (key0 + _W0) & _MASK, (key1 + _W1) & _MASK


@inlined
def philox(c0, c1, c2, c3, key0, key1):
    """Philox4x32-10: four 32-bit words (held in uint64) from a counter and a key."""
    # says that products of 32 bits are enough
    c0, c1, c2, c3, key0, key1 = c0 & _MASK, c1 & _MASK, c2 & _MASK, c3 & _MASK, key0 & _MASK, key1 & _MASK
    # written out: a loop over rounds would keep the loop over lanes from vectorising
    c0, c1, c2, c3, key0, key1 = _philox_two_rounds(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3, key0, key1 = _philox_two_rounds(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3, key0, key1 = _philox_two_rounds(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3, key0, key1 = _philox_two_rounds(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3, key0, key1 = _philox_two_rounds(c0, c1, c2, c3, key0, key1)
    return c0, c1, c2, c3
