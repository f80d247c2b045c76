"""A gradient is tried when its problem is made: what is wrong with it is told then, and not in a run.

It is evaluated at a few points of every client, compiled and with its indices and integers checked. What
does not depend on the point is then known for all points, and a run checks the rest. Numbers are compared
with those of the interpreter for every client up to `IN_PYTHON`, and with slopes of the potential.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...settings.support import Support, within
from ...settings.validation import Array, shown
from ...vector.compile import compiler_says
from ...vector.memory import Scratch, aligned
from .forms import evaluate, evaluate_checked, evaluate_potential
from .functions import plain_function

N_POINTS = 5
IN_PYTHON = 1000
"""Clients, at most, of which the interpreter makes an evaluation too; of more so many, from first to last."""
FEW_CLIENTS = 10
"""So many have two points each."""
SLOPES = 1000
"""Slopes of the potential that are taken, about; each is five evaluations in Python."""
COORDINATES = 50
"""Of a point, at most, whose slopes are taken."""
TOGETHER = 4096
"""Numbers of gradients that are evaluated by one call, about."""
_FILLED = (1.25, -7.5)
"""What stands in `out` before: whoever leaves it there has not written."""
_TOLERANCE, _ROUNDING = 1e-6, 1e-9
"""Of slopes, and of the potential: sixty times what its rounding makes of a slope."""
_STEP = 6e-6
"""Between points whose values give a slope."""
ELSEWHERE = "; where it is defined in a part of the space alone, pass support=(lo, hi)"


def points_to_try(dim: int, support: Support | None) -> Array:
    """Points (N_POINTS, d) on the scale of one, within the support."""
    return within(support, np.random.default_rng(0).standard_normal((N_POINTS, dim)))


def try_gradient(gradient: Callable[..., Any], form: Any, n_clients: int, dim: int,
                 support: Support | None) -> None:
    """Raise ValueError unless this function is a finite gradient of every client.

    `form` is the compiled form, which holds the data.
    """
    points, advice = points_to_try(dim, support), "" if support is not None else ELSEWHERE
    _try_in_python(gradient, form.data, points[0], advice)
    function = plain_function("gradient", gradient)
    file, many = function.__code__.co_filename, max(1, TOGETHER // points.size)
    compared = set(_spread(n_clients, IN_PYTHON))
    for first in range(0, n_clients, many):
        clients = range(first, min(first + many, n_clients))
        found = [_evaluated(form, clients, points, fill, file) for fill in _FILLED]
        for client, one, other in zip(clients, *found, strict=True):
            _check_values([one, other], client, points, advice)
            if client in compared:
                tried = [client % N_POINTS, (client + 1) % N_POINTS][:2 if n_clients <= FEW_CLIENTS else 1]
                _compare(function, form.data, client, points[tried], one[tried])
    _try_lanes(form, points, file)


def _try_lanes(form: Any, points: Array, file: str) -> None:
    """Raise ValueError where the form that runs cannot be compiled: its points are columns of a table."""
    rows = np.ascontiguousarray(points.T)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, before it gives up
            evaluate(form, 0, rows, Scratch(aligned((0, 0)), aligned((0, 0))), np.empty(rows.shape))
    except Exception as error:
        raise ValueError(f"{failure(error, 0, file)}; x and out are columns of a table, whose entries do not "
                         "lie side by side") from None


def _spread(n_clients: int, count: int) -> list[int]:
    """So many clients, about, from the first to the last."""
    return np.unique(np.linspace(0, n_clients - 1, count).astype(np.int64)).tolist()


def _compare(function: Callable[..., Any], data: tuple[Any, ...], client: int, points: Array,
             compiled: Array) -> None:
    """Raise ValueError where the interpreter gives other numbers, as of integers beyond 64 bits."""
    for point, values in zip(points, compiled, strict=True):
        out = np.full(len(point), np.nan)
        try:
            with np.errstate(all="ignore"):
                if len(point) == 1:
                    out[0] = function(client, float(point[0]), *data)
                else:
                    function(client, point.copy(), out, *data)
        except Exception as error:
            raise ValueError(f"gradient of client {client} fails at x={shown(point)} in Python: "
                             f"{type(error).__name__}: {error}") from None
        allowed = 1e-9 * np.maximum(1e-3 * np.abs(out).max(), np.abs(out))
        for i in np.flatnonzero(~(np.abs(out - values) <= allowed)):
            raise ValueError(f"gradient of client {client} at x={shown(point)} has coordinate {i} = "
                             f"{values[i]:.8g} when it is compiled, and {out[i]:.8g} in Python; it must be "
                             "the same: compiled integers have 64 bits, and their powers are integers (write "
                             "2.0 for 2)")


def _try_in_python(gradient: Callable[..., Any], data: tuple[Any, ...], point: Array, advice: str) -> None:
    """What the interpreter can tell more plainly: arguments, and what is returned."""
    dim = len(point)
    names = ["client", "x", *(["out"] if dim > 1 else []), *(f"data[{i}]" for i in range(len(data)))]
    wanted, function = f"gradient({', '.join(names)})", plain_function("gradient", gradient)
    args = (0, float(point[0])) if dim == 1 else (0, point, np.full(dim, np.nan))
    try:
        inspect.signature(function).bind(*args, *data)
    except TypeError as error:
        raise ValueError(f"gradient={shown(function)} must take the arguments {wanted} in dimension {dim}: "
                         f"{error}") from None
    try:
        with np.errstate(all="ignore"):
            returned = function(*args, *data)
    except Exception as error:
        raise ValueError(f"gradient fails at client 0 and x={shown(args[1])}: {type(error).__name__}: "
                         f"{error}; it must be computed for every client and point, as {wanted}"
                         f"{advice if isinstance(error, (ValueError, ArithmeticError)) else ''}") from None
    if dim == 1 and (np.ndim(returned) or not isinstance(returned, (int, float, np.number, np.bool_))):
        raise ValueError(f"gradient returns {shown(returned)}, of type {type(returned).__name__}, at client "
                         f"0; in dimension 1 it must return a number: the slope at the number x")
    if dim > 1 and returned is not None:
        raise ValueError(f"gradient returns {shown(returned)}; in dimension {dim} it must write into out, "
                         f"{wanted}, and return nothing")


def _evaluated(form: Any, clients: range, points: Array, fill: float, file: str) -> Array:
    """The gradients (clients, R, d) at points, where `out` held `fill` before.

    `file` is that of the function.
    """
    x = np.repeat(points[None], len(clients), axis=0)
    out, client = np.full(x.shape, fill), clients[0]
    try:
        evaluate_checked(form, client, x, out)
    except Exception as error:
        if len(clients) > 1 and not compiler_says(error, file):  # which client is it?
            return np.concatenate([_evaluated(form, range(one, one + 1), points, fill, file)
                                   for one in clients])
        if not isinstance(error, IndexError):
            raise ValueError(failure(error, client, file)) from None
        raise ValueError(f"gradient of client {client} reads or writes out of range: an index must be at "
                         "least 0 and less than the length of its axis, in x, out and data") from None
    return out


def failure(error: Exception, client: int, file: str) -> str:
    """What to say of an error of compiled code, or of its compilation."""
    said = compiler_says(error, file)
    return (f"gradient of client {client} fails: {type(error).__name__}: {error}" if said is None
            else f"gradient cannot be compiled: {said}")


def _check_values(found: list[Array], client: int, points: Array, advice: str) -> None:
    """Raise ValueError unless both evaluations wrote the same finite numbers."""
    one, other = found
    for k, i in np.argwhere((one == _FILLED[0]) & (other == _FILLED[1])):
        raise ValueError(f"gradient of client {client} leaves out[{i}] as it is at x={shown(points[k])}; it "
                         "must write every coordinate, as out[i] = ... (out = ... would write none)")
    for k, i in np.argwhere(~np.isfinite(one) | ~np.isfinite(other)):
        raise ValueError(f"gradient of client {client} at x={shown(points[k])} has coordinate {i} = "
                         f"{one[k, i]}; it must be finite{advice}")
    for k, i in np.argwhere(one != other):
        raise ValueError(f"gradient of client {client} at x={shown(points[k])} has coordinate {i} = "
                         f"{one[k, i]:.8g}, and then {other[k, i]:.8g}; it must depend on its arguments "
                         "alone, not on random numbers (see gradient_noise) nor on what stood in out")


def try_potential(gradient: Callable[[int, Array], Array], potential: Callable[[int, Array], float],
                  n_clients: int, dim: int, support: Support | None) -> None:
    """Raise ValueError where a client's gradient is not the slope of its potential.

    Slopes are central differences of fourth order, with errors of about 1e-11 of the potential.
    """
    points, advice = points_to_try(dim, support), "" if support is not None else ELSEWHERE
    low, high = (np.full(dim, -np.inf), np.full(dim, np.inf)) if support is None else support
    coordinates = _spread(dim, COORDINATES)
    for client in _spread(n_clients, max(2, SLOPES // (N_POINTS * len(coordinates)))):
        for point, slopes in zip(points, gradient(client, points), strict=True):
            value = potential(client, point)
            if not np.isfinite(value):
                raise ValueError(f"potential of client {client} at x={shown(point)} is {value}; it must be "
                                 f"finite{advice}")
            for i in coordinates:
                room = float(min(point[i] - low[i], high[i] - point[i]))
                usual = _STEP * max(1.0, abs(float(point[i])))
                size = min(usual, 1e-3 * room)  # far from the edges, where the slope may be infinite
                slope = _slope(potential, client, point, i, size)
                rounding = _ROUNDING * abs(value) * (usual / size)
                if not abs(slope - slopes[i]) <= _TOLERANCE * max(1.0, abs(slope)) + rounding:
                    raise ValueError(
                        f"gradient of client {client} at x={shown(point)} has coordinate {i} = "
                        f"{slopes[i]:.8g}, and the potential's slope there is {slope:.8g}; gradient must be "
                        "that of potential")


def _slope(potential: Callable[[int, Array], float], client: int, point: Array, i: int,
           size: float) -> float:
    step = np.zeros(len(point))
    step[i] = size

    def at(count: int) -> float:
        return potential(client, point + count * step)

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * size)


def compiled_potential(form: Any, potential: Callable[[int, Array], float], n_clients: int, dim: int,
                       support: Support | None, given: Any) -> str:
    """Why a potential cannot be compiled, or has other values then; "" for one that is the same."""
    points, file = points_to_try(dim, support), plain_function("potential", given).__code__.co_filename
    rows, room = np.ascontiguousarray(points.T), Scratch(aligned((dim, N_POINTS)), aligned((0, 0)))
    for client in _spread(n_clients, FEW_CLIENTS):
        values = np.empty(N_POINTS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the compiler, before it gives up
                evaluate_potential(form, client, rows, room, values)
        except Exception as error:
            said = compiler_says(error, file)
            return (f"compiled, potential of client {client} fails: {type(error).__name__}: {error}"
                    if said is None else f"potential cannot be compiled: {said}")
        for point, value in zip(points, values, strict=True):
            expected = potential(client, point)
            if not abs(value - expected) <= 1e-9 * max(1.0, abs(expected)):
                return (f"potential of client {client} at x={shown(point)} is {value:.8g} when it is "
                        f"compiled, and {expected:.8g} in Python")
    return ""
