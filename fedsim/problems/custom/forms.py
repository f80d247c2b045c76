"""What compiled code sees of a user's gradient: a class for every function, and the bodies of that class.

Bodies are chosen by class and kept on disk by the names of classes, so that each function has one, named by
its fingerprint: another function is another class, with compiled code and checkpoints of its own.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ...settings.validation import Array, shown
from ...vector.compile import checked, compiled, dispatched, guarded, inlined, inner
from ...vector.per_lane import lane_vector, per_lane, read_only
from ..failing import gradient_error
from ..gradients import exact_gradient, exact_potential, noise_free
from .functions import Frozen, frozen

_named_tuple: Any = collections.namedtuple
UNROLLED = 8
"""Up to this dimension the compiler is told how many coordinates there are."""
WITH = "_with_"
"""In the name of a class, between the fingerprints of its gradient and of a potential that is compiled."""
_LOCK = threading.Lock()
_CLASSES: dict[str, Any] = {}


@dispatched
def checked_gradient(problem: Any, client: int, x: Array, out: Array) -> None:
    """A client's gradient at `x` (R, d) into `out` (R, d), point by point, with its indices checked."""


@compiled
def evaluate_checked(problem, first, x, out):
    """`checked_gradient` of clients first, first + 1, ..., whose points and gradients are (n, R, d)."""
    for i in range(x.shape[0]):
        checked_gradient(problem, first + i, x[i], out[i])


@compiled
def evaluate(problem, client, x, scratch, out):
    """`exact_gradient` of lanes (d, B), for Python."""
    exact_gradient(problem, client, x, scratch, out)


@compiled
def evaluate_potential(problem, client, x, scratch, out):
    """`exact_potential` of lanes (d, B), for Python."""
    exact_potential(problem, client, x, scratch, out)


def checked_gradients(form: Any, client: int, points: Array) -> Array:
    """A client's gradients at points (R, d).

    Raises
    ------
    GradientError
        Naming the first point at which the function fails.
    """
    out = np.empty(points.shape)
    try:
        evaluate_checked(form, client, np.array(points[None], order="C"), out[None])
    except Exception as error:
        for point in points if len(points) > 1 else ():
            checked_gradients(form, client, point[None])
        raise gradient_error(error, client, points[0]) from None
    return out


def compilable(potential: Any) -> Frozen | str | None:
    """A potential whose callees are compiled; or why it cannot be, or None where there is none."""
    try:
        return None if potential is None else frozen("potential", potential, checked)
    except ValueError as error:
        return str(error)


def form_of(gradient: Any, dim: int, check_indices: bool = True, potential: Any = None) -> Any:
    """The NamedTuple class of problems with this gradient and potential, whose one field is their data.

    Raises
    ------
    ValueError
        Where the function cannot be frozen, see `functions`.
    """
    careful = frozen("gradient", gradient, checked)
    name = f"Custom_{careful.digest}_{dim if dim <= UNROLLED else 'many'}{'' if check_indices else '_fast'}"
    value, text = compilable(potential), careful.text
    if isinstance(value, Frozen):
        name, text = f"{name}{WITH}{value.digest}", f"{text}\n{value.text}"
    with _LOCK:  # one class for each name, whoever asks
        if name not in _CLASSES:
            cls: Any = _named_tuple(name, ["data"])
            # the cache on disk finds it by its name in this module, in a folder that belongs to it
            cls.__module__, cls.made_at_run_time, cls.told = __name__, True, text
            globals()[name] = cls
            point = (guarded(careful.function) if check_indices  # what it calls is not told its point
                     else inlined(frozen("gradient", gradient, inlined).function))
            _register(cls, point, dim)
            _register_checked(cls, checked(careful.function), dim)
            if isinstance(value, Frozen):
                _register_potential(cls, checked(value.function), dim)
            _CLASSES[name] = cls
    if _CLASSES[name].told != text:
        raise ValueError(f"gradient={shown(gradient)} has the fingerprint {careful.digest} of another "
                         "function; change one of them, as by the name of a variable")
    return _CLASSES[name]


def _register(cls: Any, point: Callable[..., Any], dim: int) -> None:
    """The body that runs: lane by lane, so that a function of numbers alone vectorises."""
    @inner
    def number_row(data, client, x, out):
        for b in range(x.shape[0]):
            out[b] = point(per_lane(client, b), x[b], *data)

    vector = lane_vector(dim)

    @inner
    def short_vectors(data, client, x, out):
        for b in range(x.shape[1]):
            point(per_lane(client, b), vector(read_only(x), b), vector(out, b), *data)

    @inner
    def long_vectors(data, client, x, out):
        for b in range(x.shape[1]):
            point(per_lane(client, b), read_only(x[:, b]), out[:, b], *data)

    vector_lanes = short_vectors if dim <= UNROLLED else long_vectors

    def number_gradient(problem, client, x, scratch, out):
        number_row(problem.data, client, x[0], out[0])

    def vector_gradient(problem, client, x, scratch, out):
        vector_lanes(problem.data, client, x, out)

    noise_free(cls)
    exact_gradient.register(cls)(number_gradient if dim == 1 else vector_gradient)


def _register_checked(cls: Any, point: Callable[..., Any], dim: int) -> None:
    def number_points(problem, client, x, out):
        for k in range(x.shape[0]):
            out[k, 0] = point(client, x[k, 0], *problem.data)

    def vector_points(problem, client, x, out):
        for k in range(x.shape[0]):
            point(client, read_only(x[k]), out[k], *problem.data)

    checked_gradient.register(cls)(number_points if dim == 1 else vector_points)


def _register_potential(cls: Any, value: Callable[..., Any], dim: int) -> None:
    def of_numbers(problem, client, x, scratch, out):  # type: ignore[no-untyped-def]
        for b in range(x.shape[1]):
            out[b] = value(client, x[0, b], *problem.data)

    def of_vectors(problem, client, x, scratch, out):  # type: ignore[no-untyped-def]
        for b in range(x.shape[1]):
            out[b] = value(client, read_only(x[:, b]), *problem.data)

    exact_potential.register(cls)(of_numbers if dim == 1 else of_vectors)
