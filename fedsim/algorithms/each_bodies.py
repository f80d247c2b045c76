"""The functions of `each` as compiled code sees them: a class for each set of them, and its body."""

from __future__ import annotations

import collections
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..problems.custom.functions import frozen, plain_function
from ..problems.gradients import exact_potential
from ..random.philox import philox
from ..random.streams import EACH
from ..samplers.nodes import Each
from ..settings.lazy_import import lazy
from ..vector import lanes
from ..vector.compile import Nothing, checked, compiler_says, dispatched, inner
from ..vector.per_lane import read_only

types = lazy("numba.core", "types")
_named_tuple: Any = collections.namedtuple
_LOCK = threading.Lock()
_CLASSES: dict[str, Any] = {}


class NoFunctions(Nothing):
    """A sampler without any."""


@dispatched
def apply_each(functions: Any, number: int, rows: Any, a: int, b: int, c: int, uniforms: Any,
               out: int) -> None:
    """rows[out] = what the function of this number makes of rows a, b and c, lane by lane."""


@apply_each.register(NoFunctions)
def _apply_none(functions, number, rows, a, b, c, uniforms, out):
    pass


@dispatched
def read_potential(functions: Any, problem: Any, client: int, x: Any, scratch: Any, factor: float,
                   out: Any) -> None:
    """Every row of `out` (d, B) = factor f_(client)(x): compiled for samplers that read it alone."""


@read_potential.otherwise
def _read_nothing(functions, problem, client, x, scratch, factor, out):
    pass


def _read_potential(functions, problem, client, x, scratch, factor, out):  # type: ignore[no-untyped-def]
    exact_potential(problem, client, x, scratch, out[0])
    lanes.damp(out[0], factor)
    for i in range(1, out.shape[0]):
        lanes.copy(out[i], out[0])


@inner
def draw_uniforms(lane_set, position, client, uniforms):
    """Uniform numbers (n, B) in [0, 1) of a client."""
    for place in range(uniforms.shape[0]):
        for lane in range(uniforms.shape[1]):
            high, low, _, _ = philox((np.uint64(client) << np.uint64(16)) | np.uint64(place),
                                     np.uint64(position), lane_set.replicas[lane], np.uint64(EACH),
                                     lane_set.key0, lane_set.key1)
            uniforms[place, lane] = np.float64(((high << np.uint64(32)) | low) >> np.uint64(11)) * 2.0**-53


def functions_of(eachs: Sequence[Each], read_potentials: bool = False) -> Any:
    """The NamedTuple of these functions, in their order; whether they are given potentials."""
    if not eachs:
        return NoFunctions()
    told = "\n".join(f"{one.n_vectors} {one.uniforms} {one.text}" for one in eachs)
    told += "\npotentials" * read_potentials
    name = f"Each_{hashlib.sha256(told.encode()).hexdigest()[:32]}"
    with _LOCK:  # one class for each name, whoever asks
        if name not in _CLASSES:
            cls: Any = _named_tuple(name, ["unused"])
            cls.__module__, cls.made_at_run_time = __name__, True
            globals()[name] = cls  # the cache on disk finds it by its name in this module
            apply_each.register(cls)(_body(_chain([_lanes(one) for one in eachs], 0)))
            if read_potentials:
                read_potential.register(cls)(_read_potential)
            _CLASSES[name] = cls
    return _CLASSES[name](0)


def uncompilable(eachs: Sequence[Each], error: Exception) -> ValueError | None:
    """The error that names the function which cannot be compiled; None where all of them can."""
    for one in eachs:
        file = plain_function("each", one.function).__code__.co_filename
        if compiler_says(error, file) is None:  # it is no error of the compiler
            return None
        row = types.Array(types.float64, 1, "A")
        given = [row.copy(readonly=True)] * (one.n_vectors + (one.uniforms > 0))
        try:
            checked(frozen("each", one.function, checked).function).compile((*given, row))
        except Exception as own:
            said = compiler_says(own, file)
            if said is None:
                raise
            return ValueError(f"each({one.name}, ...): the function cannot be compiled: {said}")
    return None


def _body(chain: Any) -> Callable[..., None]:
    def apply(functions, number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        chain(number, rows, a, b, c, uniforms, out)

    return apply


def _chain(lanes: list[Any], place: int) -> Any:
    """Functions from a place on, chosen by number."""
    first = lanes[place]
    if place + 1 == len(lanes):
        return first
    rest = _chain(lanes, place + 1)

    @inner
    def chosen(number, rows, a, b, c, uniforms, out):
        if number == place:
            first(number, rows, a, b, c, uniforms, out)
        else:
            rest(number, rows, a, b, c, uniforms, out)

    return chosen


def _lanes(one: Each) -> Any:
    """A function in all lanes."""
    point = checked(frozen("each", one.function, checked).function)
    by_count = {1: (_of_one, _of_one_by_chance), 2: (_of_two, _of_two_by_chance),
                3: (_of_three, _of_three_by_chance)}
    return inner(by_count[one.n_vectors][one.uniforms > 0](point))


def _of_one(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), rows[out, :, lane])

    return apply


def _of_one_by_chance(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), read_only(uniforms[:, lane]), rows[out, :, lane])

    return apply


def _of_two(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), read_only(rows[b, :, lane]), rows[out, :, lane])

    return apply


def _of_two_by_chance(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), read_only(rows[b, :, lane]), read_only(uniforms[:, lane]),
                  rows[out, :, lane])

    return apply


def _of_three(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), read_only(rows[b, :, lane]), read_only(rows[c, :, lane]),
                  rows[out, :, lane])

    return apply


def _of_three_by_chance(point: Any) -> Callable[..., None]:
    def apply(number, rows, a, b, c, uniforms, out):  # type: ignore[no-untyped-def]
        for lane in range(rows.shape[2]):
            point(read_only(rows[a, :, lane]), read_only(rows[b, :, lane]), read_only(rows[c, :, lane]),
                  read_only(uniforms[:, lane]), rows[out, :, lane])

    return apply
