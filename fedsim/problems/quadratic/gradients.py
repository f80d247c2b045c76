"""Quadratic clients for compiled code: what kernels see, and their gradients lane by lane."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...random.normals import normals
from ...random.slots import normal_row
from ...random.streams import GRADIENT_NOISE
from ...settings.validation import Array
from ...vector import lanes
from ...vector.compile import spliced
from ...vector.matrix import add_product
from ...vector.per_lane import coordinate, element
from ..gradients import (
    exact_gradient,
    exact_potential,
    kick,
    langevin,
    leapfrog,
    noise_free,
    stochastic_gradient,
)


@noise_free
class DenseQuadratic(NamedTuple):
    """Compiled form: gradient A_c (x - b_c), no gradient noise."""

    hessians: Array
    minimizers: Array


@noise_free
class PlaneQuadratic(NamedTuple):
    """The same in two dimensions."""

    hessians: Array
    minimizers: Array


@noise_free
class DiagonalQuadratic(NamedTuple):
    """Compiled form with diagonal Hessians (N, d), no gradient noise."""

    hessians: Array
    minimizers: Array


@noise_free
class CoordinateQuadratic(NamedTuple):
    """Compiled form with pairs of coordinates as lanes: tables (N, 2, lanes)."""

    hessians: Array
    minimizers: Array


class NoisyQuadratic(NamedTuple):
    """Compiled form: a quadratic and factors F_c (N, d, d) of its noise covariances F_c F_c'."""

    inner: Any
    factors: Array


@spliced
def _plane(problem, client):
    """A (row by row) and c of a client in two dimensions."""
    hessians, centres = problem.hessians, problem.minimizers
    return (element(hessians, client, 0, 0), element(hessians, client, 0, 1), element(hessians, client, 1, 0),
            element(hessians, client, 1, 1), coordinate(centres, client, 0), coordinate(centres, client, 1))


@exact_gradient.register(PlaneQuadratic)
def _plane_gradient(problem, client, x, scratch, out):
    a00, a01, a10, a11, c0, c1 = _plane(problem, client)
    lanes.affine_pair(out[0], a00, x[0], c0, a01, x[1], c1)
    lanes.affine_pair(out[1], a10, x[0], c0, a11, x[1], c1)


@langevin.register(PlaneQuadratic)
def _langevin_plane(problem, lane_set, client, step, x, scratch, gradient, eta, size, private, own,
                    shared_size, shared):
    plane, n0, n1 = _plane(problem, client), normal_row(own, 0), normal_row(own, 1)
    if shared_size > 0.0:
        lanes.langevin_plane_shared(x[0], x[1], eta, plane, size, private, n0, n1, shared_size,
                                    normal_row(shared, 0), normal_row(shared, 1))
    else:
        lanes.langevin_plane(x[0], x[1], eta, plane, size, private, n0, n1)


@leapfrog.register(PlaneQuadratic)
def _leapfrog_plane(problem, client, size, x, velocity, corrected, correction, slot, scratch, gradient):
    if corrected:
        for i in range(2):
            lanes.axpy(velocity[i], size, correction[slot, i])
    lanes.leapfrog_plane(x[0], x[1], velocity[0], velocity[1], size, _plane(problem, client))


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


@exact_potential.register(DenseQuadratic)
@exact_potential.register(PlaneQuadratic)
def _dense_potential(problem, client, x, scratch, out):
    hessian, centre = problem.hessians[client], problem.minimizers[client]
    lanes.fill(out, 0.0)
    for i in range(x.shape[0]):
        for j in range(i):
            lanes.add_form(out, hessian[i, j], x[i], centre[i], x[j], centre[j])
        lanes.add_form(out, 0.5 * hessian[i, i], x[i], centre[i], x[i], centre[i])


@exact_potential.register(DiagonalQuadratic)
def _diagonal_potential(problem, client, x, scratch, out):
    hessian, centre = problem.hessians[client], problem.minimizers[client]
    lanes.fill(out, 0.0)
    for i in range(x.shape[0]):
        lanes.add_form(out, 0.5 * hessian[i], x[i], centre[i], x[i], centre[i])


@stochastic_gradient.register(NoisyQuadratic)
def _noisy_gradient(problem, lane_set, client, step, draw, x, scratch, out):
    exact_gradient(problem.inner, client, x, scratch, out)
    normals(lane_set, GRADIENT_NOISE + draw, step, client, scratch.normals)
    for i in range(x.shape[0]):
        for j in range(i + 1):  # the factors are lower triangular
            lanes.axpy(out[i], element(problem.factors, client, i, j), scratch.normals[j])
