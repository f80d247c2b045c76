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

from ...random.philox import philox
from ...random.streams import MINIBATCH
from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import compiled
from ...vector.per_lane import entry, per_lane
from ..gradients import stochastic_gradient
from .gradients import GROUP, add_products, finish, gathered_residual

MAX_DATA = 2**18
"""Data of a client that minibatches can be drawn from: 2^16 Philox calls of four numbers."""

_16, _32, _ONE, _ZERO = np.uint64(16), np.uint64(32), np.uint64(1), np.uint64(0)


class Minibatch(NamedTuple):
    """A model whose gradients are estimated from `size` data; `scales` (N,) multiply their sum."""

    inner: Any
    size: int
    replace: bool
    scales: Array


@compiled
def _four_numbers(row0, row1, row2, row3, key0, key1, replicas, client, step, quad, tag, size, less, growth):
    """Numbers below m, m + growth, m + 2 growth and m + 3 growth, where m = size - less."""
    for b in range(replicas.shape[0]):
        place = (np.uint64(per_lane(client, b)) << _16) | quad
        w0, w1, w2, w3 = philox(place, step, replicas[b], tag, key0, key1)
        m = np.uint64(per_lane(size, b)) - less
        row0[b] = np.uint32((w0 * m) >> _32)
        row1[b] = np.uint32((w1 * (m + growth)) >> _32)
        row2[b] = np.uint32((w2 * (m + growth + growth)) >> _32)
        row3[b] = np.uint32((w3 * (m + growth + growth + growth)) >> _32)


@compiled
def _mark(drawn, row, earlier, is_first):
    for b in range(drawn.shape[0]):
        drawn[b] = np.uint32(row[b] == earlier[b]) | (np.uint32(0) if is_first else drawn[b])


@compiled
def _replace_drawn(row, drawn, size, less):
    for b in range(row.shape[0]):
        row[b] = np.uint32(per_lane(size, b) - less) if drawn[b] else row[b]


@compiled
def _add_first(row, first):
    for b in range(row.shape[0]):
        row[b] += np.uint32(per_lane(first, b))


@compiled
def draw_indices(batch, lane_set, client, step, draw, indices):
    """Fill the first rows of `indices` (.., B) with the data of every lane, numbered within the problem."""
    data, size = batch.inner.data, batch.size
    first, sizes = entry(data.first, client), entry(data.sizes, client)
    growth = _ZERO if batch.replace else _ONE
    for quad in range((size + 3) // 4):
        k = 4 * quad
        less = _ZERO if batch.replace else np.uint64(size - 1 - k)
        _four_numbers(indices[k], indices[k + 1], indices[k + 2], indices[k + 3], lane_set.key0,
                      lane_set.key1, lane_set.replicas, client, np.uint64(step), np.uint64(quad),
                      np.uint64(MINIBATCH + draw), sizes, less, growth)
    if not batch.replace:
        drawn = indices[indices.shape[0] - 1]  # marks of the lanes that have drawn this number before
        for k in range(1, size):
            for earlier in range(k):
                _mark(drawn, indices[k], indices[earlier], earlier == 0)
            _replace_drawn(indices[k], drawn, sizes, size - k)
    for k in range(size):
        _add_first(indices[k], first)


@stochastic_gradient.register(Minibatch)
def _minibatch_gradient(batch, lane_set, client, step, draw, x, scratch, out):
    model = batch.inner
    draw_indices(batch, lane_set, client, step, draw, scratch.indices)
    for i in range(out.shape[0]):
        lanes.fill(out[i], 0.0)
    for begin in range(0, batch.size, GROUP):
        count = min(GROUP, batch.size - begin)
        for k in range(count):
            gathered_residual(model, scratch.indices[begin + k], x, scratch.gathered, k, scratch.rows[k])
        add_products(scratch.gathered, 0, count, scratch.rows, out)
    finish(out, entry(batch.scales, client), entry(model.prior, client), x)
