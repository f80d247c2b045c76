"""Quadratic clients for compiled code: what kernels see, and their gradients lane by lane."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...random.normals import normals
from ...random.slots import normal_row
from ...random.streams import GRADIENT_NOISE
from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import coordinate, element
from ...vector.matrix import add_product
from ..gradients import always, exact_gradient, is_exact, kick, langevin, leapfrog, stochastic_gradient


class DenseQuadratic(NamedTuple):
    """Compiled form: gradient A_c (x - b_c), no gradient noise."""

    hessians: Array
    minimizers: Array


class PlaneQuadratic(NamedTuple):
    """The same in two dimensions."""

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


@exact_gradient.register(PlaneQuadratic)
def _plane_gradient(problem, client, x, scratch, out):
    for i in range(2):
        lanes.affine_pair(out[i], element(problem.hessians, client, i, 0), x[0],
                          coordinate(problem.minimizers, client, 0),
                          element(problem.hessians, client, i, 1), x[1],
                          coordinate(problem.minimizers, client, 1))


@langevin.register(PlaneQuadratic)
def _langevin_plane(problem, lane_set, client, step, x, scratch, gradient, eta, size, private, own,
                    shared_size, shared):
    a00, a01 = element(problem.hessians, client, 0, 0), element(problem.hessians, client, 0, 1)
    a10, a11 = element(problem.hessians, client, 1, 0), element(problem.hessians, client, 1, 1)
    c0, c1 = coordinate(problem.minimizers, client, 0), coordinate(problem.minimizers, client, 1)
    n0, n1 = normal_row(own, 0), normal_row(own, 1)
    if shared_size > 0.0:
        lanes.langevin_plane_shared(x[0], x[1], eta, a00, a01, a10, a11, c0, c1, size, private, n0, n1,
                                    shared_size, normal_row(shared, 0), normal_row(shared, 1))
    else:
        lanes.langevin_plane(x[0], x[1], eta, a00, a01, a10, a11, c0, c1, size, private, n0, n1)


@leapfrog.register(PlaneQuadratic)
def _leapfrog_plane(problem, client, size, x, velocity, corrected, correction, slot, scratch, gradient):
    if corrected:
        for i in range(2):
            lanes.axpy(velocity[i], size, correction[slot, i])
    lanes.leapfrog_plane(
        x[0], x[1], velocity[0], velocity[1], size,
        element(problem.hessians, client, 0, 0), element(problem.hessians, client, 0, 1),
        element(problem.hessians, client, 1, 0), element(problem.hessians, client, 1, 1),
        coordinate(problem.minimizers, client, 0), coordinate(problem.minimizers, client, 1))


@kick.register(DenseQuadratic)
def _dense_kick(problem, client, size, x, velocity, scratch, gradient):
    add_product(velocity, size, problem.hessians, client, x, problem.minimizers)


@exact_gradient.register(DenseQuadratic)
def _dense_gradient(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        lanes.fill(out[i], 0.0)
    add_product(out, 1.0, problem.hessians, client, x, problem.minimizers)


@exact_gradient.register(DiagonalQuadratic)
def _diagonal_gradient(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        lanes.scaled_shift(out[i], coordinate(problem.hessians, client, i), x[i],
                           coordinate(problem.minimizers, client, i))


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
            lanes.axpy(out[i], element(problem.factors, client, i, j), scratch.normals[j])


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


for _class in (DenseQuadratic, PlaneQuadratic, DiagonalQuadratic, CoordinateQuadratic):
    stochastic_gradient.register(_class)(_noise_free)
    is_exact.register(_class)(always)
for _noisy in (NoisyQuadratic, IsotropicallyNoisyQuadratic):
    exact_gradient.register(_noisy)(_without_noise)
