"""Softmax regression for compiled code: replica by replica, with rows of data as vector lanes.

A gradient of f_(c) is  scale_c sum_r (softmax(theta X_r) - e_y) X_r' + prior_c theta  over rows r, with
theta (C, p) row by row. A replica's minibatch shares nothing with the next one's, and its scores are many:
so the rows of a replica are taken `ROWS` at a time, and loops run over them, or over features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import fused, inner
from ...vector.math import exp
from ...vector.memory import aligned
from ...vector.per_lane import entry, per_lane
from ..gradients import exact_gradient, noise_free, stochastic_gradient
from .minibatch import draw_indices

ROWS = 64
"""Rows of data taken together: scores of all classes stay in the first cache."""
STRIP = 128
"""Features whose sums are grown together, for the same reason."""
STEP = 8
"""Products added in one pass over a row."""


class Rows(NamedTuple):
    """Features (n, p) in units of `unit`, labels (n,); client c owns `sizes[c]` rows from first[c] on."""

    features: Array
    labels: Array
    unit: float
    first: Any
    sizes: Any


@noise_free
class SoftmaxModel(NamedTuple):
    """Factors (N,) of the sum over data and of the prior's gradient theta; C classes."""

    data: Rows
    n_classes: int
    scales: Array
    prior: Array


class SoftmaxBatch(NamedTuple):
    """A `SoftmaxModel` whose gradients are estimated from `size` data; `scales` (N,) multiply their sum."""

    inner: Any
    size: int
    replace: bool
    scales: Array


class SoftmaxScratch(NamedTuple):
    """Rows (.., B) that a gradient may overwrite: normals, numbers of data. And a replica's room.

    Which data it takes (largest number,); theta and its sums (C, p), features (ROWS, p) and (p, ROWS),
    scores (C, ROWS), and two rows of ROWS.
    """

    normals: Any
    indices: Array
    chosen: Array
    theta: Array
    sums: Array
    taken: Array
    turned: Array
    scores: Array
    greatest: Array
    total: Array


def softmax_scratch(dim: int, n_lanes: int, dtype: Any, batch_size: int, longest: int,
                    n_classes: int) -> SoftmaxScratch:
    """Room for gradients; `batch_size` is 0 without minibatches, `longest` the most data of a sum."""
    n_features, drawn = dim // n_classes, -(-batch_size // 4) * 4  # a Philox call gives four numbers
    return SoftmaxScratch(
        aligned((dim, n_lanes), dtype), aligned((drawn, n_lanes), np.uint32), aligned((longest,), np.int64),
        aligned((n_classes, n_features)), aligned((n_classes, n_features)), aligned((ROWS, n_features)),
        aligned((n_features, ROWS)), aligned((n_classes, ROWS)), aligned(ROWS), aligned(ROWS))


@inner
def _take(data, chosen, first, count, taken):
    """Features of so many chosen rows, as numbers."""
    for k in range(count):
        row, out = data.features[chosen[first + k]], taken[k]
        for j in range(out.shape[0]):
            out[j] = row[j]


@inner
def _turn(taken, count, turned):
    """turned = taken', and zeros in the columns that are left."""
    for j in range(turned.shape[0]):
        out = turned[j]
        for k in range(count):
            out[k] = taken[k, j]
        for k in range(count, out.shape[0]):
            out[k] = 0.0


@inner
def add_eight(out, factors, i, j, rows, first, begin, end):
    """out[i] += sum over eight rows from `first` on of their factors[i, j + ...], in columns begin to end"""
    row = out[i]
    a0, a1, a2, a3 = factors[i, j], factors[i, j + 1], factors[i, j + 2], factors[i, j + 3]
    a4, a5, a6, a7 = factors[i, j + 4], factors[i, j + 5], factors[i, j + 6], factors[i, j + 7]
    x0, x1, x2, x3 = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    x4, x5, x6, x7 = rows[first + 4], rows[first + 5], rows[first + 6], rows[first + 7]
    for k in range(begin, end):
        low = fused(a0, x0[k], fused(a1, x1[k], fused(a2, x2[k], a3 * x3[k])))
        high = fused(a4, x4[k], fused(a5, x5[k], fused(a6, x6[k], fused(a7, x7[k], row[k]))))
        row[k] = low + high


@inner
def add_one(out, factors, i, j, rows, first, begin, end):
    """out[i] += factors[i, j] rows[first], in these columns"""
    row, a, x = out[i], factors[i, j], rows[first]
    for k in range(begin, end):
        row[k] = fused(a, x[k], row[k])


@inner
def add_product(out, factors, rows, count, begin, end):
    """out += factors[:, :count] rows[:count], in columns begin to end; all of `out` for eight `rows`."""
    for j in range(0, count // STEP * STEP, STEP):
        for i in range(out.shape[0]):
            add_eight(out, factors, i, j, rows, j, begin, end)
    for j in range(count // STEP * STEP, count):
        for i in range(out.shape[0]):
            add_one(out, factors, i, j, rows, j, begin, end)


@inner
def _raise_to(greatest, z):
    for k in range(z.shape[0]):
        greatest[k] = z[k] if z[k] > greatest[k] else greatest[k]


@inner
def _exponentials(z, greatest, total):
    """z <- exp(z - greatest), which is added to the total"""
    for k in range(z.shape[0]):
        z[k] = exp(z[k] - greatest[k])
        total[k] += z[k]


@inner
def _shares(z, total):
    for k in range(z.shape[0]):
        z[k] /= total[k]


@inner
def softmax_rows(scores, greatest, total):
    """Replace scores (C, B) by softmax over the classes, column by column."""
    lanes.copy(greatest, scores[0])
    lanes.fill(total, 0.0)
    for c in range(1, scores.shape[0]):
        _raise_to(greatest, scores[c])
    for c in range(scores.shape[0]):
        _exponentials(scores[c], greatest, total)
    for c in range(scores.shape[0]):
        _shares(scores[c], total)


@inner
def _sum_over_chosen(data, size, s):
    """s.sums = sum over the first `size` chosen rows of (softmax(theta X_r) - e_y) X_r'."""
    n_features = s.sums.shape[1]
    for c in range(s.sums.shape[0]):
        lanes.fill(s.sums[c], 0.0)
    for first in range(0, size, ROWS):
        count = min(ROWS, size - first)
        width = min(ROWS, -(-count // STEP) * STEP)
        _take(data, s.chosen, first, count, s.taken)
        _turn(s.taken, count, s.turned)
        for c in range(s.scores.shape[0]):
            lanes.fill(s.scores[c], 0.0)
        add_product(s.scores, s.theta, s.turned, n_features, 0, width)
        softmax_rows(s.scores, s.greatest, s.total)
        for k in range(count):
            s.scores[data.labels[s.chosen[first + k]], k] -= 1.0
        for begin in range(0, n_features, STRIP):
            add_product(s.sums, s.scores, s.taken, count, begin, min(begin + STRIP, n_features))


@inner
def _is_repeated(x, b):
    """Does this column equal the one before, as the last replica's do that fill a tile?"""
    for i in range(x.shape[0]):
        if x[i, b] != x[i, b - 1]:
            return False
    return True


@inner
def _repeat(out, b):
    for i in range(out.shape[0]):
        out[i, b] = out[i, b - 1]


@inner
def _one_replica(model, x, b, size, scale, prior, s, out):
    """Column b of the gradient, from `size` rows of s.chosen."""
    n_classes, n_features = s.theta.shape
    for c in range(n_classes):
        for j in range(n_features):
            s.theta[c, j] = model.data.unit * x[c * n_features + j, b]
    _sum_over_chosen(model.data, size, s)
    scale = scale * model.data.unit
    for c in range(n_classes):
        for j in range(n_features):
            i = c * n_features + j
            out[i, b] = scale * s.sums[c, j] + prior * x[i, b]


@exact_gradient.register(SoftmaxModel)
def _exact_gradient(model, client, x, scratch, out):
    first, sizes = entry(model.data.first, client), entry(model.data.sizes, client)
    scales, prior = entry(model.scales, client), entry(model.prior, client)
    for b in range(x.shape[1]):
        begin, size = per_lane(first, b), per_lane(sizes, b)
        if b > 0 and begin == per_lane(first, b - 1) and _is_repeated(x, b):
            _repeat(out, b)
            continue
        for k in range(size):
            scratch.chosen[k] = begin + k
        _one_replica(model, x, b, size, per_lane(scales, b), per_lane(prior, b), scratch, out)


@stochastic_gradient.register(SoftmaxBatch)
def _minibatch_gradient(batch, lane_set, client, step, draw, x, scratch, out):
    model = batch.inner
    scales, prior = entry(batch.scales, client), entry(model.prior, client)
    draw_indices(batch, lane_set, client, step, draw, scratch.indices)
    for b in range(x.shape[1]):
        if b > 0 and lane_set.replicas[b] == lane_set.replicas[b - 1]:
            _repeat(out, b)
            continue
        for k in range(batch.size):
            scratch.chosen[k] = scratch.indices[k, b]
        _one_replica(model, x, b, batch.size, per_lane(scales, b), per_lane(prior, b), scratch, out)
