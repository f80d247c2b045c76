"""Minibatches: which data a lane draws, and the gradient estimated from them.

Every gradient evaluation draws its own rows of the client's data, from the stream with tag
MINIBATCH + draw at (step, client, replica). Word number k of the stream, 32 bits, gives the number
floor(word m / 2^32) below m: with replacement m is the client's number of data n and this is row k of the
minibatch; without replacement m = n - b + k + 1 and Floyd's rule takes m - 1 instead where the number was
drawn before. The probability of each row is off by a factor of 1 +- n / 2^32 at most.

Source: DE-SGLD section 5.1 and appendix D (with replacement); FA-LD appendix G (without).
R. W. Floyd in Bentley and Floyd, A sample of brilliance, Communications of the ACM 30 (1987).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...random.streams import MINIBATCH
from ...settings.validation import Array
from ...vector.compile import inner
from ...vector.memory import TILE
from ...vector.per_lane import entry
from ..gradients import stochastic_gradient
from .minibatch_rows import draw_tile
from .tile_sums import BLOCK, sum_blocks, sum_one_block

MAX_DATA = 2**18
"""Data of a client that minibatches can be drawn from: 2^16 Philox calls of four numbers."""


class Minibatch(NamedTuple):
    """A model whose gradients are estimated from `size` data; `scales` (N,) multiply their sum.

    `table` has the `packed` data.
    """

    inner: Any
    table: Array
    size: int
    replace: bool
    scales: Array


@inner
def draw_indices(batch, lane_set, client, step, draw, indices):
    """Fill the first rows of `indices` (.., B) with the data of every lane, numbered within the problem.

    Only whole tiles are filled.
    """
    first, sizes = entry(batch.inner.data.first, client), entry(batch.inner.data.sizes, client)
    for lane in range(0, lane_set.replicas.shape[0] // TILE * TILE, TILE):
        draw_tile(indices, batch.size, batch.replace, first, sizes, lane_set.key0, lane_set.key1,
                  lane_set.replicas, client, np.uint64(step), np.uint64(MINIBATCH + draw), lane)


@stochastic_gradient.register(Minibatch)
def _minibatch_gradient(batch, lane_set, client, step, draw, x, scratch, out):
    model, table, indices, room = batch.inner, batch.table, scratch.indices, scratch.tile
    scale, prior = entry(batch.scales, client), entry(model.prior, client)
    draw_indices(batch, lane_set, client, step, draw, indices)
    for lane in range(0, x.shape[1] // TILE * TILE, TILE):
        if table.shape[1] == BLOCK:
            sum_one_block(model, table, indices, batch.size, scale, prior, x, room, out, lane)
        else:
            sum_blocks(model, table, indices, batch.size, scale, prior, x, room, out, lane)
