"""Regression clients for compiled code: sums over data rows, lane by lane.

A gradient of f_(c) is  scale_c sum_r X_r residual(x'X_r, y_r) + prior_c x  over the client's rows r. A
client that is a number reads the features as scalars. A client per lane, or a row of data per lane,
gathers them; the gathered features are kept, because they enter the sum a second time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import dispatched, inner
from ...vector.math import sigmoid, sigmoid_of, softplus
from ...vector.memory import aligned
from ...vector.per_lane import Gathered, entry, per_lane
from ..gradients import exact_gradient, exact_potential, noise_free
from .tile_sums import sums_room

GROUP = 8
"""Data rows taken together, so that the sum is read and written once for all of them."""


class Data(NamedTuple):
    """Features (d, n) and targets (n,); client c owns rows first[c], ..., first[c] + sizes[c] - 1."""

    columns: Array
    targets: Array
    first: Any
    sizes: Any


@noise_free
class LogisticModel(NamedTuple):
    """Labels 0 and 1. Factors (N,) of the sum over data and of the prior's gradient x; largest client.

    `mean` is a target's, from its score (`Reals`): the slope of a datum's loss is this minus the target.
    """

    data: Data
    scales: Array
    prior: Array
    longest: int

    @staticmethod
    def mean(score: Any) -> Any:
        """What a label is expected to be."""
        return sigmoid_of(score)


@noise_free
class LinearModel(NamedTuple):
    """Normal errors. The full gradients, those of `inner`, are of quadratic clients."""

    data: Data
    prior: Array
    inner: Any

    @staticmethod
    def mean(score: Any) -> Any:
        """What a target is expected to be."""
        return score


class RegressionScratch(NamedTuple):
    """Rows (.., B) that a gradient may overwrite: float64, normals, features (d, GROUP, B), data numbers.

    And the `tile` that a minibatch is summed in.
    """

    rows: Array
    normals: Any
    gathered: Array
    indices: Any
    tile: Array


def regression_scratch(dim: int, n_lanes: int, dtype: Any, batch_size: int) -> RegressionScratch:
    """Room for gradients; `batch_size` is 0 without minibatches."""
    drawn = max(GROUP, -(-batch_size // 4) * 4)  # a Philox call gives four numbers
    return RegressionScratch(aligned((max(dim, GROUP), n_lanes)), aligned((dim, n_lanes), dtype),
                             aligned((dim, GROUP, n_lanes)), aligned((drawn, n_lanes), np.uint32),
                             sums_room(dim if batch_size else 0))


@inner
def sigmoid_row(z):
    """z <- `sigmoid` of z, in every lane"""
    for b in range(z.shape[0]):
        z[b] = sigmoid(z[b])


@inner
def _less_target(z, target):
    for b in range(z.shape[0]):
        z[b] = z[b] - per_lane(target, b)


@inner
def _residual(z, target):
    """Replace scores z = x'X_r (B,) by the logistic loss's derivative, up to the factor in `scales`."""
    sigmoid_row(z)
    _less_target(z, target)  # apart: a gathered target would keep the sigmoid from vectorising


@inner
def _score(features, place, x, z):
    """z = sum_j features[j, place] x[j], these being scalars or rows."""
    dim = x.shape[0]
    done = 2 - dim % 2
    if done == 1:
        lanes.scale(z, features[0, place], x[0])
    else:
        lanes.scale_pair(z, features[0, place], x[0], features[1, place], x[1])
    for j in range(done, dim, 2):
        lanes.axpy_pair(z, features[j, place], x[j], features[j + 1, place], x[j + 1])


@inner
def _gather(row, column, index):
    """row = column[index]; alone, because a loop that gathers does not vectorise."""
    for b in range(row.shape[0]):
        row[b] = column[index[b]]


@inner
def gathered_residual(model, index, x, features, place, z):
    """Residuals (B,) of data row index[b] in lane b; features[:, place] (d, B) are then its features."""
    for j in range(x.shape[0]):
        _gather(features[j, place], model.data.columns[j], index)
    _score(features, place, x, z)
    _residual(z, Gathered(model.data.targets, index))


@inner
def add_products(features, first, count, z, out):
    """out += sum over `count` data rows from `first` on of features times residual"""
    for i in range(out.shape[0]):
        if count == GROUP:
            lanes.axpy_eight(out[i], features[i, first], z[0], features[i, first + 1], z[1],
                             features[i, first + 2], z[2], features[i, first + 3], z[3],
                             features[i, first + 4], z[4], features[i, first + 5], z[5],
                             features[i, first + 6], z[6], features[i, first + 7], z[7])
        else:
            for k in range(count):
                lanes.axpy(out[i], features[i, first + k], z[k])


@inner
def _row_number(index, first, size, place):
    """The client's row at this place, or its last one where it has fewer."""
    for b in range(index.shape[0]):
        last = per_lane(size, b) - 1
        index[b] = np.uint32(per_lane(first, b) + (place if place < last else last))


@inner
def _only_if_present(z, size, place):
    """z = 0 where the client has no row at this place."""
    for b in range(z.shape[0]):
        z[b] = z[b] if place < per_lane(size, b) else 0.0


@dispatched(by="client")
def _sum_over_data(model: Any, client: Any, x: Array, scratch: Any, out: Array) -> None:
    """Sum of X_r residual(x'X_r, y_r) over the client's rows; `client` is a number, or one per lane."""


@_sum_over_data.otherwise
def _sum_of_one_client(model, client, x, scratch, out):
    data, z, first = model.data, scratch.rows, model.data.first[client]
    last = first + data.sizes[client]
    for i in range(out.shape[0]):
        lanes.fill(out[i], 0.0)
    for row in range(first, last, GROUP):
        count = min(GROUP, last - row)
        for k in range(count):
            _score(data.columns, row + k, x, z[k])
            _residual(z[k], data.targets[row + k])
        add_products(data.columns, row, count, z, out)


@_sum_over_data.register(np.ndarray)
def _sum_lane_by_lane(model, client, x, scratch, out):
    index, z = scratch.indices[0], scratch.rows
    first, size = entry(model.data.first, client), entry(model.data.sizes, client)
    for i in range(out.shape[0]):
        lanes.fill(out[i], 0.0)
    for place in range(0, model.longest, GROUP):
        count = min(GROUP, model.longest - place)
        for k in range(count):
            _row_number(index, first, size, place + k)
            gathered_residual(model, index, x, scratch.gathered, k, z[k])
            _only_if_present(z[k], size, place + k)
        add_products(scratch.gathered, 0, count, z, out)


@inner
def _finish_row(out, scale, prior, x):
    for b in range(out.shape[0]):
        out[b] = per_lane(scale, b) * out[b] + per_lane(prior, b) * x[b]


@inner
def finish(out, scale, prior, x):
    """out = scale out + prior x: the sum over data becomes a gradient of f_(c)."""
    for i in range(out.shape[0]):
        _finish_row(out[i], scale, prior, x[i])


@exact_gradient.register(LogisticModel)
def _logistic_gradient(model, client, x, scratch, out):
    _sum_over_data(model, client, x, scratch, out)
    finish(out, entry(model.scales, client), entry(model.prior, client), x)


@inner
def _add_loss(out, sign, score):
    """out += log(1 + exp(sign score)), in every lane"""
    for b in range(out.shape[0]):
        out[b] += softplus(sign * score[b])


@exact_potential.register(LogisticModel)
def _logistic_potential(model, client, x, scratch, out):
    data, z, first = model.data, scratch.rows, model.data.first[client]
    lanes.fill(out, 0.0)
    for row in range(first, first + data.sizes[client]):
        _score(data.columns, row, x, z[0])
        _add_loss(out, 1.0 - 2.0 * data.targets[row], z[0])
    lanes.damp(out, model.scales[client])
    for i in range(x.shape[0]):
        lanes.add_form(out, 0.5 * model.prior[client], x[i], 0.0, x[i], 0.0)
