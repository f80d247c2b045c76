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
from ...vector.compile import inner
from ...vector.math import exp, log
from ...vector.memory import aligned
from ...vector.per_lane import entry, per_lane
from ...vector.product import add_product, whole_vectors
from ..gradients import exact_gradient, exact_potential, noise_free, stochastic_gradient
from .minibatch import draw_indices

ROWS = 64
"""Rows of data taken together: they and their scores stay in the first caches."""


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

    Which data it takes (largest number,); theta' (p, C) and the sums (C, p), features (ROWS, p), scores
    (ROWS, C) and (C, ROWS), and two rows of ROWS. Columns are whole vectors: those beyond are zero.
    """

    normals: Any
    indices: Array
    chosen: Array
    theta: Array
    sums: Array
    taken: Array
    scores: Array
    by_class: Array
    greatest: Array
    total: Array


def softmax_scratch(dim: int, n_lanes: int, dtype: Any, batch_size: int, longest: int,
                    n_classes: int) -> SoftmaxScratch:
    """Room for gradients; `batch_size` is 0 without minibatches, `longest` the most data of a sum."""
    n_features, drawn = dim // n_classes, -(-batch_size // 4) * 4  # a Philox call gives four numbers
    wide, classes = whole_vectors(n_features), whole_vectors(n_classes)
    return SoftmaxScratch(
        aligned((dim, n_lanes), dtype), aligned((drawn, n_lanes), np.uint32), aligned((longest,), np.int64),
        aligned((n_features, classes)), aligned((n_classes, wide)), aligned((ROWS, wide)),
        aligned((ROWS, classes)), aligned((n_classes, ROWS)), aligned(ROWS), aligned(ROWS))


@inner
def _take(data, chosen, first, count, taken):
    """Features of so many chosen rows, as numbers."""
    for k in range(count):
        row, out = data.features[chosen[first + k]], taken[k]
        for j in range(row.shape[0]):
            out[j] = row[j]


@inner
def _turn(scores, count, by_class):
    """by_class = scores', of so many rows."""
    for c in range(by_class.shape[0]):
        out = by_class[c]
        for k in range(count):
            out[k] = scores[k, c]


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
def _scores_of_chosen(data, first, count, s):
    """s.by_class = theta X_r of so many chosen rows, whose features are in s.taken."""
    _take(data, s.chosen, first, count, s.taken)
    for k in range(count):
        lanes.fill(s.scores[k], 0.0)
    add_product(s.scores, s.taken, s.theta, count, s.theta.shape[0])
    _turn(s.scores, count, s.by_class)


@inner
def _sum_over_chosen(data, size, s):
    """s.sums = sum over the first `size` chosen rows of (softmax(theta X_r) - e_y) X_r'."""
    for c in range(s.sums.shape[0]):
        lanes.fill(s.sums[c], 0.0)
    for first in range(0, size, ROWS):
        count = min(ROWS, size - first)
        _scores_of_chosen(data, first, count, s)
        softmax_rows(s.by_class, s.greatest, s.total)
        for k in range(count):
            s.by_class[data.labels[s.chosen[first + k]], k] -= 1.0
        add_product(s.sums, s.by_class, s.taken, s.sums.shape[0], count)


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
def _set_theta(model, x, b, s):
    """s.theta = column b of x, as a table of features and classes, in units of the data."""
    n_classes, n_features = s.sums.shape[0], s.theta.shape[0]
    for c in range(n_classes):
        for j in range(n_features):
            s.theta[j, c] = model.data.unit * x[c * n_features + j, b]


@inner
def _one_replica(model, x, b, size, scale, prior, s, out):
    """Column b of the gradient, from `size` rows of s.chosen."""
    n_classes, n_features = s.sums.shape[0], s.theta.shape[0]
    _set_theta(model, x, b, s)
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


@inner
def _losses_of_chosen(data, n_rows, s):
    """Sum over the first `n_rows` chosen rows of log(sum_c exp(theta_c X_r)) - theta_y X_r."""
    total = 0.0
    for first in range(0, n_rows, ROWS):
        count = min(ROWS, n_rows - first)
        _scores_of_chosen(data, first, count, s)
        for k in range(count):
            total -= s.by_class[data.labels[s.chosen[first + k]], k]
        softmax_rows(s.by_class, s.greatest, s.total)
        for k in range(count):
            total += s.greatest[k] + log(s.total[k])
    return total


@exact_potential.register(SoftmaxModel)
def _exact_potential(model, client, x, scratch, out):
    first, size, prior = model.data.first[client], model.data.sizes[client], model.prior[client]
    for k in range(size):
        scratch.chosen[k] = first + k
    for b in range(x.shape[1]):
        _set_theta(model, x, b, scratch)
        out[b] = model.scales[client] * _losses_of_chosen(model.data, size, scratch)
    for i in range(x.shape[0]):
        lanes.add_form(out, 0.5 * prior, x[i], 0.0, x[i], 0.0)


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
