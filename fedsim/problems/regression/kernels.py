"""Regression clients for compiled code: sums over data rows, lane by lane.

A gradient of f_(c) is  scale_c sum_r X_r residual(x'X_r, y_r) + prior_c x  over the client's rows r. A
client that is a number reads the features as scalars. A client per lane, or a row of data per lane,
gathers them; the gathered features are kept, because they enter the sum a second time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...random.normals import normals
from ...random.streams import GRADIENT_NOISE
from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import (
    Gathered,
    bits_float64,
    compiled,
    dispatched,
    entry,
    float64_bits,
    inlined,
    per_lane,
)
from ...vector.tiles import aligned
from ..gradients import always, exact_gradient, is_exact, stochastic_gradient

GROUP = 8
"""Data rows taken together, so that the sum is read and written once for all of them."""

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
_1023, _52 = np.uint64(1023), np.uint64(52)
_LOG2E = float(np.log2(np.e))
_LN2_HIGH = int(np.log(2.0) * 2.0**40) / 2.0**40  # exact times any exponent
_LN2_LOW = 7.371002565167799e-13


class Data(NamedTuple):
    """Features (d, n) and targets (n,); client c owns rows first[c], ..., first[c] + sizes[c] - 1."""

    columns: Array
    targets: Array
    first: Any
    sizes: Any


class LogisticModel(NamedTuple):
    """Labels 0 and 1. Factors (N,) of the sum over data and of the prior's gradient x; largest client."""

    data: Data
    scales: Array
    prior: Array
    longest: int


class LinearModel(NamedTuple):
    """Normal errors. `exact` are the full gradients, which are those of quadratic clients."""

    data: Data
    prior: Array
    exact: Any


class NoisyGradients(NamedTuple):
    """A model with additional normal noise of this standard deviation in every evaluation."""

    model: Any
    noise_std: float


class RegressionScratch(NamedTuple):
    """Rows (.., B) that a gradient may overwrite: float64, normals, gathered features, data numbers."""

    rows: Array
    normals: Any
    gathered: Array
    indices: Any


def regression_scratch(dim: int, n_lanes: int, dtype: Any, batch_size: int) -> RegressionScratch:
    """Room for gradients; `batch_size` is 0 without minibatches."""
    drawn = max(GROUP, -(-batch_size // 4) * 4)  # a Philox call gives four numbers
    return RegressionScratch(aligned((max(dim, GROUP), n_lanes)), aligned((dim, n_lanes), dtype),
                             aligned((GROUP * dim, n_lanes)), aligned((drawn + 1, n_lanes), np.uint32))


@inlined
def sigmoid(z):
    """1 / (1 + exp(-z)) from + * / and bits; for z below -708 the value at -708."""
    size = abs(z)
    size = 708.0 if size > 708.0 else size  # a NaN stays
    # exp(-size) = 2^k exp(r), |r| <= log(2)/2, with a Chebyshev interpolant of (exp(r) - 1 - r) / r^2
    shifted = _ROUND - size * _LOG2E
    k = shifted - _ROUND
    r = (-size - k * _LN2_HIGH) - k * _LN2_LOW
    series = 0.5000000000000001 + r * (0.16666666666666669 + r * (0.041666666666624164 + r * (
        0.008333333333330065 + r * (0.0013888888917196719 + r * (0.00019841269863040545 + r * (
            2.4801521322368692e-05 + r * (2.7557268480310024e-06 + r * (
                2.7620075879983494e-07 + r * 2.510037583256133e-08))))))))
    power = bits_float64((float64_bits(shifted) + _1023) << _52)
    e = power * (1.0 + (r + r * r * series))
    return (1.0 if z >= 0.0 else e) / (1.0 + e)


@compiled
def _sigmoid_row(z):
    for b in range(z.shape[0]):
        z[b] = sigmoid(z[b])


@compiled
def _less_target(z, target):
    for b in range(z.shape[0]):
        z[b] = z[b] - per_lane(target, b)


@dispatched
def residual(model: Any, z: Array, target: Any) -> None:
    """Replace scores z = x'X_r (B,) by the loss's derivative, up to the factor in `scales`."""


@residual.register(LogisticModel)
def _logistic_residual(model, z, target):
    _sigmoid_row(z)
    _less_target(z, target)  # apart: a gathered target would keep the sigmoid from vectorising


@residual.register(LinearModel)
def _linear_residual(model, z, target):
    _less_target(z, target)


@compiled
def _score(features, x, z):
    """z = sum_j features[j] x[j], features being scalars (d,) or rows (d, B)."""
    dim = x.shape[0]
    done = 2 - dim % 2
    if done == 1:
        lanes.scale(z, features[0], x[0])
    else:
        lanes.scale_pair(z, features[0], x[0], features[1], x[1])
    for j in range(done, dim, 2):
        lanes.axpy_pair(z, features[j], x[j], features[j + 1], x[j + 1])


@compiled
def _gather(kept, column, index):
    """kept = column[index]; alone, because a loop that gathers does not vectorise."""
    for b in range(kept.shape[0]):
        kept[b] = column[index[b]]


@compiled
def gathered_residual(model, index, x, kept, z):
    """Residuals (B,) of data row index[b] in lane b; its features are left in `kept` (d, B)."""
    for j in range(x.shape[0]):
        _gather(kept[j], model.data.columns[j], index)
    _score(kept, x, z)
    residual(model, z, Gathered(model.data.targets, index))


@compiled
def add_gathered(scratch, count, out):
    """out += sum over `count` gathered rows of features times residual"""
    dim, kept, z = out.shape[0], scratch.gathered, scratch.rows
    for i in range(dim):
        if count == GROUP:
            lanes.axpy_eight(out[i], kept[i], z[0], kept[dim + i], z[1], kept[2 * dim + i], z[2],
                             kept[3 * dim + i], z[3], kept[4 * dim + i], z[4], kept[5 * dim + i], z[5],
                             kept[6 * dim + i], z[6], kept[7 * dim + i], z[7])
        else:
            for k in range(count):
                lanes.axpy(out[i], kept[k * dim + i], z[k])


@compiled
def _add(columns, row, count, z, out):
    """out += sum over `count` data rows of features times residual"""
    for i in range(out.shape[0]):
        if count == GROUP:
            lanes.axpy_eight(out[i], columns[i, row], z[0], columns[i, row + 1], z[1],
                             columns[i, row + 2], z[2], columns[i, row + 3], z[3],
                             columns[i, row + 4], z[4], columns[i, row + 5], z[5],
                             columns[i, row + 6], z[6], columns[i, row + 7], z[7])
        else:
            for k in range(count):
                lanes.axpy(out[i], columns[i, row + k], z[k])


@compiled
def _row_number(index, first, size, place):
    """The client's row at this place, or its last one where it has fewer."""
    for b in range(index.shape[0]):
        index[b] = np.uint32(per_lane(first, b) + min(place, per_lane(size, b) - 1))


@compiled
def _only_if_present(z, size, place):
    """z = 0 where the client has no row at this place."""
    for b in range(z.shape[0]):
        z[b] = z[b] if place < per_lane(size, b) else 0.0


@dispatched
def _sum_over_data(first: Any, size: Any, model: Any, x: Array, scratch: Any, out: Array) -> None:
    """Sum of X_r residual(x'X_r, y_r) over the client's rows, chosen by the kind of `first`."""


@_sum_over_data.register(None)
def _sum_of_one_client(first, size, model, x, scratch, out):
    data, z = model.data, scratch.rows
    for i in range(out.shape[0]):
        lanes.fill(out[i], 0.0)
    for row in range(first, first + size, GROUP):
        count = min(GROUP, first + size - row)
        for k in range(count):
            _score(data.columns[:, row + k], x, z[k])
            residual(model, z[k], data.targets[row + k])
        _add(data.columns, row, count, z, out)


@_sum_over_data.register(Gathered)
def _sum_lane_by_lane(first, size, model, x, scratch, out):
    dim, index, z = out.shape[0], scratch.indices[0], scratch.rows
    for i in range(dim):
        lanes.fill(out[i], 0.0)
    for place in range(0, model.longest, GROUP):
        count = min(GROUP, model.longest - place)
        for k in range(count):
            _row_number(index, first, size, place + k)
            gathered_residual(model, index, x, scratch.gathered[k * dim:(k + 1) * dim], z[k])
            _only_if_present(z[k], size, place + k)
        add_gathered(scratch, count, out)


@compiled
def _finish_row(out, scale, prior, x):
    for b in range(out.shape[0]):
        out[b] = per_lane(scale, b) * out[b] + per_lane(prior, b) * x[b]


@compiled
def finish(out, scale, prior, x):
    """out = scale out + prior x: the sum over data becomes a gradient of f_(c)."""
    for i in range(out.shape[0]):
        _finish_row(out[i], scale, prior, x[i])


@exact_gradient.register(LogisticModel)
def _logistic_gradient(model, client, x, scratch, out):
    _sum_over_data(entry(model.data.first, client), entry(model.data.sizes, client), model, x, scratch, out)
    finish(out, entry(model.scales, client), entry(model.prior, client), x)


@exact_gradient.register(LinearModel)
def _linear_gradient(model, client, x, scratch, out):
    exact_gradient(model.exact, client, x, scratch, out)


@exact_gradient.register(NoisyGradients)
def _without_noise(problem, client, x, scratch, out):
    exact_gradient(problem.model, client, x, scratch, out)


@stochastic_gradient.register(LogisticModel)
@stochastic_gradient.register(LinearModel)
def _full_gradient(model, lane_set, client, step, draw, x, scratch, out):
    exact_gradient(model, client, x, scratch, out)


@stochastic_gradient.register(NoisyGradients)
def _with_noise(problem, lane_set, client, step, draw, x, scratch, out):
    stochastic_gradient(problem.model, lane_set, client, step, draw, x, scratch, out)
    normals(lane_set, GRADIENT_NOISE + draw, step, client, scratch.normals)
    for i in range(x.shape[0]):
        lanes.axpy(out[i], problem.noise_std, scratch.normals[i])


for _class in (LogisticModel, LinearModel):
    is_exact.register(_class)(always)
