"""Quadratic clients for compiled code: what kernels see, and their gradients lane by lane."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import lanes
from ...compile import entry
from ...gradients import exact_gradient, is_exact, stochastic_gradient
from ...noise import normals
from ...streams import GRADIENT_NOISE
from ...validation import Array


class DenseQuadratic(NamedTuple):
    """Compiled form: gradient A_c (x - b_c), no gradient noise."""

    hessians: Array
    minimizers: Array


class LargeDenseQuadratic(NamedTuple):
    """The same from dimension 8 on: columns are taken eight at a time."""

    hessians: Array
    minimizers: Array


class DiagonalQuadratic(NamedTuple):
    """Compiled form with diagonal Hessians (N, d), no gradient noise."""

    hessians: Array
    minimizers: Array


class CoordinateQuadratic(NamedTuple):
    """Compiled form with pairs of coordinates as lanes: tables (N, 2, lanes)."""

    hessians: Array
    minimizers: Array


class NoisyQuadratic(NamedTuple):
    """Compiled form: a quadratic and factors F_c (N, d, d) of its noise covariances F_c F_c'."""

    exact: Any
    factors: Array


class IsotropicallyNoisyQuadratic(NamedTuple):
    """Compiled form: a quadratic and the standard deviation per coordinate of its gradient noise."""

    exact: Any
    noise_std: float


@exact_gradient.register(DenseQuadratic)
def _dense_gradient(problem, client, x, scratch, out):
    dim = x.shape[0]
    odd = dim % 2
    for i in range(dim):
        if odd:
            lanes.scaled_shift(out[i], entry(problem.hessians[:, i, 0], client), x[0],
                               entry(problem.minimizers[:, 0], client))
        else:
            lanes.affine_pair(out[i], entry(problem.hessians[:, i, 0], client), x[0],
                              entry(problem.minimizers[:, 0], client),
                              entry(problem.hessians[:, i, 1], client), x[1],
                              entry(problem.minimizers[:, 1], client))
        for j in range(2 - odd, dim, 2):
            lanes.add_affine_pair(out[i], entry(problem.hessians[:, i, j], client), x[j],
                                  entry(problem.minimizers[:, j], client),
                                  entry(problem.hessians[:, i, j + 1], client), x[j + 1],
                                  entry(problem.minimizers[:, j + 1], client))


@exact_gradient.register(LargeDenseQuadratic)
def _large_dense_gradient(problem, client, x, scratch, out):
    dim, gap, hessians = x.shape[0], scratch.rows, problem.hessians
    for j in range(dim):
        lanes.shift(gap[j], x[j], entry(problem.minimizers[:, j], client))
    for i in range(dim):
        lanes.fill(out[i], 0.0)
        for j in range(0, dim // 8 * 8, 8):
            lanes.axpy_eight(
                out[i], entry(hessians[:, i, j], client), gap[j],
                entry(hessians[:, i, j + 1], client), gap[j + 1],
                entry(hessians[:, i, j + 2], client), gap[j + 2],
                entry(hessians[:, i, j + 3], client), gap[j + 3],
                entry(hessians[:, i, j + 4], client), gap[j + 4],
                entry(hessians[:, i, j + 5], client), gap[j + 5],
                entry(hessians[:, i, j + 6], client), gap[j + 6],
                entry(hessians[:, i, j + 7], client), gap[j + 7])
        for j in range(dim // 8 * 8, dim):
            lanes.axpy(out[i], entry(hessians[:, i, j], client), gap[j])


@exact_gradient.register(DiagonalQuadratic)
def _diagonal_gradient(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        lanes.scaled_shift(out[i], entry(problem.hessians[:, i], client), x[i],
                           entry(problem.minimizers[:, i], client))


@exact_gradient.register(CoordinateQuadratic)
def _coordinate_gradient(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        lanes.scaled_shift(out[i], problem.hessians[client, i], x[i], problem.minimizers[client, i])


@stochastic_gradient.register(NoisyQuadratic)
def _noisy_gradient(problem, lane_set, client, step, draw, x, scratch, out):
    exact_gradient(problem.exact, client, x, scratch, out)
    normals(lane_set, GRADIENT_NOISE + draw, step, client, scratch.normals)
    for i in range(x.shape[0]):
        for j in range(i + 1):  # the factors are lower triangular
            lanes.axpy(out[i], entry(problem.factors[:, i, j], client), scratch.normals[j])


@stochastic_gradient.register(IsotropicallyNoisyQuadratic)
def _isotropically_noisy_gradient(problem, lane_set, client, step, draw, x, scratch, out):
    exact_gradient(problem.exact, client, x, scratch, out)
    normals(lane_set, GRADIENT_NOISE + draw, step, client, scratch.normals)
    for i in range(x.shape[0]):
        lanes.axpy(out[i], problem.noise_std, scratch.normals[i])


def _noise_free(problem, lane_set, client, step, draw, x, scratch, out):
    exact_gradient(problem, client, x, scratch, out)


def _without_noise(problem, client, x, scratch, out):
    exact_gradient(problem.exact, client, x, scratch, out)


def _yes(problem):
    return True


def _no(problem):
    return False


for _class in (DenseQuadratic, LargeDenseQuadratic, DiagonalQuadratic, CoordinateQuadratic):
    stochastic_gradient.register(_class)(_noise_free)
    is_exact.register(_class)(_yes)
for _noisy in (NoisyQuadratic, IsotropicallyNoisyQuadratic):
    exact_gradient.register(_noisy)(_without_noise)
    is_exact.register(_noisy)(_no)
