"""Gradients of one's own for the tests: affine ones, whose numbers are those of `Quadratic`, and others."""

from __future__ import annotations

import numpy as np
from problems import quadratic

import fedsim as fs


def line(client, x, curvatures, centres):
    """A slope in one dimension."""
    return curvatures[client] * (x - centres[client])


def diagonal(client, x, out, curvatures, centres):
    """Coordinates that do not mix."""
    for i in range(len(x)):
        out[i] = curvatures[client, i] * (x[i] - centres[client, i])


def dense(client, x, out, hessians, centres):
    """A full matrix."""
    for i in range(len(x)):
        out[i] = 0.0
        for j in range(len(x)):
            out[i] += hessians[client, i, j] * (x[j] - centres[client, j])


def log_cosh(client, x, centres):
    """A convex slope that is not affine."""
    return fs.math.tanh(x - centres[client])


def log_cosh_potential(client, x, centres):
    """What `log_cosh` is the slope of."""
    return float(np.logaddexp(x - centres[client], centres[client] - x))


def double_well(client, x, depth, pulls):
    """Two wells, and a pull of each client's own."""
    return depth * (x**3 - x) - pulls[client]


def double_well_potential(client, x, depth, pulls):
    """What `double_well` is the slope of."""
    return depth * (0.25 * x**4 - 0.5 * x**2) - pulls[client] * x


KINDS = {"line": ("diagonal", 1), "diagonal 2": ("diagonal", 2), "plane": ("dense", 2),
         "diagonal 5": ("diagonal", 5), "dense 5": ("dense", 5)}


def pair(kind, uniform=False, noise=None, n_clients=4):
    """A `Quadratic`, and the same as a `Custom`."""
    structure, dim = KINDS[kind]
    problem = quadratic(n_clients, dim, structure, "uniform" if uniform else "unequal", noise)
    function = line if kind == "line" else diagonal if structure == "diagonal" else dense
    hessians = problem.dense_hessians if structure == "dense" else problem.diagonal_hessians
    data = (hessians, problem.minimizers)
    if kind == "line":
        data = tuple(np.ascontiguousarray(part[:, 0]) for part in data)
    high = np.linalg.eigvalsh(problem.dense_hessians).max(axis=1)
    custom = fs.Custom(function, n_clients, dim, data=data, weights=problem.weights, curvature=high,
                       gradient_noise=problem.gradient_noise)
    return problem, custom
