"""A network with one hidden layer, as a problem that is not convex: potential, minibatches, loss.

It is `fs.Custom`: a row of data is a client, whose gradient is plain Python. A minibatch is the mean over
clients that every update and chain draws anew, which is what is compiled here besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

import fedsim as fs
from fedsim.problems.gradients import exact_gradient, stochastic_gradient
from fedsim.problems.pooled import Pooled
from fedsim.problems.regression.minibatch_rows import draw_tile
from fedsim.random.streams import MINIBATCH
from fedsim.settings.validation import whole
from fedsim.vector.memory import TILE, aligned


def row_gradient(row, x, out, features, labels, n_hidden, variance):
    """Of minus the log chance of a row's label, times the number of rows, and of the normal prior.

    A hidden unit has p weights, then each class has one for every unit and its bias. What `out` is not yet
    needed for holds the units' values (first places of theirs) and the classes' scores (at the biases).
    """
    n, p = features.shape
    first = n_hidden * p + n_hidden
    biases = range(first, len(x), n_hidden + 1)
    for j in range(n_hidden):
        total = 0.0
        for i in range(p):
            total += x[j * p + i] * features[row, i]
        out[j * p] = fs.math.tanh(total)
    greatest, total = -np.inf, 0.0
    for bias in biases:
        out[bias] = x[bias]
        for j in range(n_hidden):
            out[bias] += x[bias - n_hidden + j] * out[j * p]
        greatest = max(greatest, out[bias])
    for bias in biases:
        out[bias] = fs.math.exp(out[bias] - greatest)
        total += out[bias]
    for bias in biases:
        out[bias] *= n / total
    out[first + labels[row] * (n_hidden + 1)] -= n
    for j in range(n_hidden):
        value, pull = out[j * p], 0.0
        for bias in biases:
            k = bias - n_hidden + j
            pull += out[bias] * x[k]
            out[k] = out[bias] * value + x[k] / variance
        pull *= 1.0 - value * value
        for i in range(p):
            out[j * p + i] = pull * features[row, i] + x[j * p + i] / variance
    for bias in biases:
        out[bias] += x[bias] / variance


def losses(x: np.ndarray, features: np.ndarray, labels: np.ndarray, n_hidden: int) -> np.ndarray:
    """Minus the log chances (..., m) of the labels of rows (m, p) at points (..., d)."""
    at, top = x.shape[:-1], n_hidden * features.shape[1]
    values = np.tanh(x[..., :top].reshape(*at, n_hidden, -1) @ features.T)
    classes = x[..., top:].reshape(*at, -1, n_hidden + 1)
    scores = classes[..., :-1] @ values + classes[..., -1:]
    own = np.take_along_axis(scores, np.broadcast_to(labels, (*at, 1, len(labels))), -2)[..., 0, :]
    return np.asarray(logsumexp(scores, axis=-2) - own)


class Batch(NamedTuple):
    """Compiled form: the mean gradient of `size` of `n_clients`, drawn without replacement."""

    inner: Any
    n_clients: int
    size: int


class Room(NamedTuple):
    """Numbers of the drawn clients (.., B), and columns (d, 1): a lane's point, a gradient, their sum."""

    drawn: Any
    point: Any
    gradient: Any
    total: Any


@stochastic_gradient.register(Batch)
def _mean_of_drawn(batch, lane_set, client, step, draw, x, room, out):
    dim, n_lanes = x.shape
    for lane in range(0, n_lanes // TILE * TILE, TILE):
        draw_tile(room.drawn, batch.size, False, 0, batch.n_clients, lane_set.key0, lane_set.key1,
                  lane_set.replicas, client, np.uint64(step), np.uint64(MINIBATCH + draw), lane)
    for b in range(n_lanes):
        if b > 0 and lane_set.replicas[b] == lane_set.replicas[b - 1]:  # the last again, to fill the tile
            for i in range(dim):
                out[i, b] = out[i, b - 1]
            continue
        for i in range(dim):
            room.point[i, 0], room.total[i, 0] = x[i, b], 0.0
        for k in range(batch.size):
            exact_gradient(batch.inner, np.int64(room.drawn[k, b]), room.point, room, room.gradient)
            for i in range(dim):
                room.total[i, 0] += room.gradient[i, 0]
        for i in range(dim):
            out[i, b] = room.total[i, 0] / batch.size


@dataclass(frozen=True, eq=False, repr=False)
class Minibatches(Pooled):
    """f of clients of equal weight, with gradients estimated from `batch_size` of them, drawn anew."""

    batch_size: int
    has_minibatches = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("batch_size", self.batch_size, 1, self.problem.n_clients)
        if np.ptp(self.problem.weights) > 0.0 or self.problem.gradient_noise is not None:
            raise ValueError(f"problem={self.problem!r} must have equal weights and no gradient_noise")

    def _arrays(self) -> Batch:
        return Batch(self.problem._arrays(), self.problem.n_clients, self.batch_size)

    def _scratch(self, dim: int, n_lanes: int, dtype: Any) -> Room:
        drawn = -(-self.batch_size // 4) * 4  # a Philox call gives four numbers
        return Room(aligned((drawn, n_lanes), np.uint32), *(aligned((dim, 1)) for _ in range(3)))

    def __repr__(self) -> str:
        return f"Minibatches({self.problem!r}, batch_size={self.batch_size})"


def posterior(features: np.ndarray, labels: np.ndarray, n_hidden: int, variance: float) -> fs.Custom:
    """Of the weights of a network given rows (n, p), the last entry of which is 1; a client is a row."""
    return fs.Custom(row_gradient, n_clients=len(labels), dim=len(start(features, labels, n_hidden).mean),
                     data=(features, labels, n_hidden, variance))


def start(features: np.ndarray, labels: np.ndarray, n_hidden: int) -> fs.Gaussian:
    """Weights of variance 1 over how many a unit or class sums."""
    p, n_classes = features.shape[1], int(labels.max()) + 1
    parts = [np.full(n_hidden * p, 1.0 / p), np.full(n_classes * (n_hidden + 1), 1.0 / (n_hidden + 1))]
    variances = np.concatenate(parts)
    return fs.Gaussian(np.zeros(len(variances)), variances)
