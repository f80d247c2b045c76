"""The arguments of `Custom` in the form in which they are kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sized
from typing import Any

import numpy as np

from ...settings.alignment import aligned
from ...settings.limits import refuse_bytes
from ...settings.validation import array, positive, shape, shown, unmasked


def data_of(given: Any) -> tuple[Any, ...]:
    """Arrays and numbers in the types that compiled code knows."""
    if not isinstance(given, tuple):
        return (_part("data", given),)
    named = [(f"data[{i}]", part) for i, part in enumerate(given)]
    parts = aligned(*((name, part, 0) for name, part in named), strict=False)
    return tuple(_part(name, part) for (name, _), part in zip(named, parts, strict=True))


def _part(name: str, given: Any) -> Any:
    unmasked(name, given)
    if isinstance(given, Sized) and not isinstance(given, np.ndarray):
        refuse_bytes(50.0 * len(given), f"{name}={shown(given)}", "pass a NumPy array")
    try:
        value = np.asarray(given)
    except (ValueError, TypeError, OverflowError):
        value = np.asarray(None)
    if value.dtype.kind not in "biuf":
        raise ValueError(f"{name}={shown(given)} has dtype {value.dtype}; it must be a rectangular array of "
                         "real numbers, or a number")
    if value.dtype.kind == "u" and value.size and value.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has the entry {value.max()}; integers must be less than 2^63")
    kept = np.array(value, dtype=np.float64 if value.dtype.kind == "f" else np.int64, order="C")
    if kept.ndim == 0:
        return kept.item() + 0  # -0 is 0, as fingerprints have it
    kept.setflags(write=False)
    return kept


def curvature_of(given: Any, n_clients: int) -> Any:
    """None, a positive number, or such a number for each client (N,)."""
    if given is None or not isinstance(given, (list, tuple, np.ndarray)):
        return given if given is None else positive("curvature", given)
    values = shape("curvature", array("curvature", given, 1), (n_clients,), " (a number, or one per client)")
    worst = int(np.argmin(values))
    positive(f"curvature[{worst}]", float(values[worst]))
    return values


def check_arguments(potential: Callable[..., Any], data: tuple[Any, ...]) -> None:
    """Raise ValueError unless a potential takes a client, a point and these data."""
    try:
        inspect.signature(potential).bind(0, 0.0, *data)
    except (TypeError, ValueError) as error:  # of a builtin nothing is known
        raise ValueError(f"potential={shown(potential)} must take the arguments potential(client, x"
                         f"{''.join(f', data[{i}]' for i in range(len(data)))}): {error}") from None
