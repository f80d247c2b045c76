"""Leapfrog trajectories of a quadratic client in the coordinates of its curvature's eigen

With A_c = Q diag(a) Q', the coordinates z = Q' (x - c) do not mix: a leapfrog step costs d operations
instead of d^2, and all steps of a trajectory are made on numbers that stay in registers. Only the
velocity is turned in every trajectory; the positions stay in these coordinates for a whole round. The map
is the leapfrog's own, in exact arithmetic; the loops are written as those of `matrix`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..settings.lazy_import import lazy
from ..settings.validation import Array
from . import lanes
from .compile import Nothing, inner, intrinsic, spliced
from .memory import TILE

cgutils, types = lazy("numba.core", "cgutils", "types")
INDEX, Tiles, contiguous, minimum = lazy("fedsim.vector.tiles", "INDEX", "Tiles", "contiguous", "minimum")



class NoModes(Nothing):
    """Trajectories in the given coordinates."""


class Modes(NamedTuple):
    """Per client: curvatures a (N, d), eigenvectors Q and Q' (N, d, d), centres c and -Q' c (N, d)."""

    curvatures: Array
    vectors: Array
    transposed: Array
    centres: Array
    origins: Array


def modes_of(hessians: Array, centres: Array) -> Modes:
    """The modes of quadratic clients with dense A_c (N, d, d) and c_c (N, d)."""
    values, vectors = np.linalg.eigh(hessians)
    transposed = np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
    return Modes(values, np.ascontiguousarray(vectors), transposed, centres,
                 -np.einsum("cij,cj->ci", transposed, centres))


@intrinsic
def _move_two_rows(typingctx: Any, z: Any, size: Any, velocity: Any, first: Any, pace: Any, matrices: Any,
                   curvatures: Any, client: Any, row: Any, square: Any, n_steps: Any, lane: Any) -> Any:
    """`_leapfrogs` for coordinates row, row + 1 and one tile of lanes."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, size, _, first, pace, _, _, client, row, square, n_steps, lane = args
        z, matrices, curvatures = (
            contiguous(context, builder, signature.args[i], args[i], 64) for i in (0, 5, 6))
        velocity = contiguous(context, builder, signature.args[2], args[2], 32, 64)
        dim, width = cgutils.unpack_tuple(builder, z.shape)
        tiles = Tiles(builder, width, lane)
        velocities = Tiles(builder, width, lane, kind=context.get_value_type(signature.args[2].dtype))
        rows = _two_rows(builder, row, dim)
        speeds = [tiles.zeros() for _ in rows]
        with cgutils.for_range(builder, dim) as loop:
            source = builder.add(first, builder.mul(pace, loop.index))
            turned = tiles.double(velocities.load(velocity, source))
            for here, speed in zip(rows, speeds, strict=True):
                entry = tiles.spread(tiles.scalar(matrices, client, dim, here, dim, loop.index))
                builder.store(tiles.fma(entry, turned, builder.load(speed)), speed)
        pulls, places = [], []
        half = context.get_constant(types.float64, -0.5)
        for here, speed in zip(rows, speeds, strict=True):
            kick = builder.fmul(square, tiles.scalar(curvatures, client, dim, here))
            place, turned = tiles.load(z, here), builder.fmul(tiles.spread(size), builder.load(speed))
            moved = tiles.fma(tiles.spread(builder.fmul(half, kick)), place, turned)
            builder.store(moved, speed)
            places.append(cgutils.alloca_once_value(builder, builder.fadd(place, moved)))
            pulls.append(tiles.spread(builder.fneg(kick)))
        with cgutils.for_range(builder, builder.sub(n_steps, INDEX(1))):
            for pull, place, speed in zip(pulls, places, speeds, strict=True):
                at = builder.load(place)
                moved = tiles.fma(pull, at, builder.load(speed))
                builder.store(moved, speed)
                builder.store(builder.fadd(at, moved), place)
        for here, place in zip(rows, places, strict=True):
            tiles.store(builder.load(place), z, here)
        return context.get_dummy_value()

    n, real = types.int64, types.float64
    return types.void(z, real, velocity, n, n, matrices, curvatures, n, n, real, n, n), build


def _two_rows(builder: Any, row: Any, dim: Any) -> list[Any]:
    """Rows row and row + 1; the last one twice where it is odd, to be computed twice, and stored twice."""
    return [row, minimum(builder, builder.add(row, INDEX(1)), builder.sub(dim, INDEX(1)))]


@intrinsic
def _turn_two_rows(typingctx: Any, out: Any, matrices: Any, x: Any, starts: Any, client: Any, row: Any,
                   lane: Any) -> Any:
    """`_turn`, or without starts `turn`, for coordinates row, row + 1 and one tile of lanes."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, _, _, _, client, row, lane = args
        out, matrices, x = (contiguous(context, builder, signature.args[i], args[i], 64) for i in range(3))
        moved = not isinstance(signature.args[3], types.NoneType)
        starts = contiguous(context, builder, signature.args[3], args[3], 64) if moved else None
        dim, width = cgutils.unpack_tuple(builder, x.shape)
        tiles = Tiles(builder, width, lane)
        rows = _two_rows(builder, row, dim)
        sums = [tiles.zeros() for _ in rows]
        with cgutils.for_range(builder, dim) as loop:
            column = tiles.load(x, loop.index)
            for here, total in zip(rows, sums, strict=True):
                entry = tiles.spread(tiles.scalar(matrices, client, dim, here, dim, loop.index))
                builder.store(tiles.fma(entry, column, builder.load(total)), total)
        for here, total in zip(rows, sums, strict=True):
            value = builder.load(total)
            if starts is not None:
                value = builder.fadd(tiles.spread(tiles.scalar(starts, client, dim, here)), value)
            tiles.store(value, out, here)
        return context.get_dummy_value()

    n = types.int64
    return types.void(out, matrices, x, starts, n, n, n), build


@inner
def _turn(out, matrices, x, starts, client):
    """out (d, B) = start + M x, with the client's M (d, d) and start (d,)"""
    for lane in range(0, out.shape[1], TILE):
        for row in range(0, out.shape[0], 2):
            _turn_two_rows(out, matrices, x, starts, client, row, lane)


@intrinsic
def _leap_two_rows(typingctx: Any, x_out: Any, v_out: Any, x: Any, v: Any, first: Any, drift: Any, kick: Any,
                   curvatures: Any, origins: Any, client: Any, row: Any, n_steps: Any, lane: Any) -> Any:
    """`leaps` for coordinates row, row + 1 and one tile of lanes."""
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, _, _, _, first, drift, kick, _, _, client, row, n_steps, lane = args
        x_out, v_out, x, v, curvatures, origins = (
            contiguous(context, builder, signature.args[i], args[i], 64) for i in (0, 1, 2, 3, 7, 8))
        dim, width = cgutils.unpack_tuple(builder, x.shape)
        tiles = Tiles(builder, width, lane)
        rows, drifts, made = _two_rows(builder, row, dim), tiles.spread(drift), []
        for here in rows:
            curvature = tiles.scalar(curvatures, client, dim, here)
            origin = tiles.spread(tiles.scalar(origins, client, dim, here))
            at = builder.fadd(tiles.load(x, here), origin)
            moved = tiles.fma(tiles.spread(builder.fmul(first, curvature)), at, tiles.load(v, here))
            made.append((tiles.spread(builder.fmul(kick, curvature)), origin,
                         cgutils.alloca_once_value(builder, tiles.fma(drifts, moved, at)),
                         cgutils.alloca_once_value(builder, moved)))
        with cgutils.for_range(builder, builder.sub(n_steps, INDEX(1))):
            for pull, _, place, speed in made:
                at = builder.load(place)
                moved = tiles.fma(pull, at, builder.load(speed))
                builder.store(moved, speed)
                builder.store(tiles.fma(drifts, moved, at), place)
        for here, (_, origin, place, speed) in zip(rows, made, strict=True):
            tiles.store(builder.load(speed), v_out, here)  # first: it is lost where both go to one place
            tiles.store(builder.fsub(builder.load(place), origin), x_out, here)
        return context.get_dummy_value()

    n, real = types.int64, types.float64
    return types.void(x_out, v_out, x, v, real, real, real, curvatures, origins, n, n, n, n), build


@inner
def leaps(modes, client, first, drift, kick, n_steps, x_out, v_out, x, v):
    """v += kick a (x - Q' c), x += drift v, `n_steps` times, of x and v (d, B) in modes.

    The first kick is by `first`. v is lost where v_out is x_out.
    """
    for lane in range(0, x.shape[1], TILE):
        for row in range(0, x.shape[0], 2):
            _leap_two_rows(x_out, v_out, x, v, first, drift, kick, modes.curvatures, modes.origins, client,
                           row, n_steps, lane)


@inner
def gradient_in_modes(modes, client, x, out):
    """out = a (x - Q' c), of x (d, B) in modes"""
    for i in range(x.shape[0]):
        a = modes.curvatures[client, i]
        for b in range(x.shape[1]):
            out[i, b] = a * (x[i, b] + modes.origins[client, i])


@inner
def turn(out, matrices, x, client):
    """out (d, B) = M x, with the client's M (d, d)"""
    for lane in range(0, out.shape[1], TILE):
        for row in range(0, out.shape[0], 2):
            _turn_two_rows(out, matrices, x, None, client, row, lane)


@spliced
def to_modes(modes, client, z, x):
    """z (d, B) <- Q' (x - c)"""
    _turn(z, modes.transposed, x, modes.origins, client)


@spliced
def from_modes(modes, client, x, room):
    """x (d, B) <- c + Q x"""
    _turn(room, modes.vectors, x, modes.centres, client)
    for i in range(x.shape[0]):
        lanes.copy(x[i], room[i])


@inner
def _leapfrogs(modes, client, step_size, n_steps, z, size, velocity, first, pace):
    """u = size Q' velocity, and `n_steps` times u -= step_size^2 a z (half of it at first), z += u.

    Row j of the velocity is row first + pace j of `velocity`, of any number of dimensions.
    """
    square = step_size * step_size
    for lane in range(0, z.shape[1], TILE):
        for row in range(0, z.shape[0], 2):
            _move_two_rows(z, size, velocity, first, pace, modes.transposed, modes.curvatures, client, row,
                           square, n_steps, lane)


@spliced
def trajectory_in_modes(modes, client, step_size, n_steps, z, velocity):
    """`n_steps` leapfrog steps of z (d, B) from `velocity` (d, B): step_size p, in the given coordinates."""
    _leapfrogs(modes, client, step_size, n_steps, z, 1.0, velocity, 0, 1)


@inner
def trajectory_of_normals(modes, client, step_size, n_steps, z, size, normals):
    """As `trajectory_in_modes`, from `size` times a client's `Normals`, which need not be made a velocity."""
    values, pace = normals.values, normals.values.shape[1]
    _leapfrogs(modes, client, step_size, n_steps, z, size, values, normals.first * pace + normals.slot, pace)
