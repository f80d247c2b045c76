"""Slow twins of the regression gradients: plain Python, one datum at a time.

Indices of minibatches come from `naive.Streams`, by the rule that
`fedsim.problems.regression.minibatch` documents.
"""

from __future__ import annotations

import math

import fedsim as fs
from fedsim.random.streams import GRADIENT_NOISE, MINIBATCH


def rows_of(problem, client):
    """The client's data, in the order in which they were given."""
    return [row for row, owner in enumerate(problem.clients) if owner == client]


def draw_rows(problem, streams, client, step, draw):
    """The minibatch of one gradient evaluation, as places among the client's data."""
    n, b = len(rows_of(problem, client)), problem.batch_size
    words = [word for place in range((b + 3) // 4) for word in streams.words(
        MINIBATCH + draw, step, client, place)][:b]
    if problem.replace:
        return [(word * n) >> 32 for word in words]
    chosen = []
    for k, word in enumerate(words):
        m = n - b + k + 1
        number = (word * m) >> 32
        chosen.append(m - 1 if number in chosen else number)
    return chosen


def slope(problem, row, x):
    """Derivative of a datum's loss in its score, times the score's gradient."""
    features = [float(entry) for entry in problem.features[row]]
    if isinstance(problem, fs.SoftmaxRegression):
        return softmax_slope(problem, [problem.feature_scale * entry for entry in features], row, x)
    score = sum(a * b for a, b in zip(features, x, strict=True))
    if hasattr(problem, "labels"):
        sigmoid = 1.0 / (1.0 + math.exp(-score)) if score > 0 else math.exp(score) / (1.0 + math.exp(score))
        factor = sigmoid - float(problem.labels[row])
    else:
        factor = (score - float(problem.targets[row])) / problem.noise_std**2
    return [factor * entry for entry in features]


def softmax_slope(problem, features, row, x):
    """The same with a label of several classes: (P(y = k) - 1{y = k}) X, class by class."""
    p = len(features)
    scores = [sum(a * b for a, b in zip(features, x[k * p:(k + 1) * p], strict=True))
              for k in range(problem.n_classes)]
    parts = [math.exp(score - max(scores)) for score in scores]
    return [(part / sum(parts) - (k == problem.labels[row])) * entry
            for k, part in enumerate(parts) for entry in features]


def gradient_from(problem, client, rows, scale, x):
    """Gradient of f_(c) with the likelihood's part from these rows, multiplied by `scale`."""
    weight, n_clients = float(problem.weights[client]), len(problem.weights)
    total = [0.0] * len(x)
    for row in rows:
        total = [t + s for t, s in zip(total, slope(problem, row, x), strict=True)]
    prior = 1.0 / (problem.prior_variance * n_clients)
    return [(scale * t + prior * value) / weight for t, value in zip(total, x, strict=True)]


def exact_gradient(problem, client, x):
    """Gradient of f_(c) from all data."""
    return gradient_from(problem, client, rows_of(problem, client), 1.0, x)


def stochastic_gradient(problem, streams, client, step, draw, x):
    """One evaluation: minibatch and additional noise, whatever the problem has."""
    if problem.batch_size is None:
        value = exact_gradient(problem, client, x)
    else:
        mine = rows_of(problem, client)
        rows = [mine[place] for place in draw_rows(problem, streams, client, step, draw)]
        scale = len(mine) / problem.batch_size if problem.grad_scale == "unbiased" else 1.0
        value = gradient_from(problem, client, rows, scale, x)
    noise = getattr(problem, "gradient_noise", None)
    if noise is None:
        return value
    z = streams.normals(GRADIENT_NOISE + draw, step, client, len(x))
    return [a + noise * b for a, b in zip(value, z, strict=True)]
