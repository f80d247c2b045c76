"""Nested arrays as one vector: dicts, dataclasses, tuples and lists of arrays, and what each is called."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, shown

MOST = 10_000_000
"""Numbers of a range that become an array."""


def _is_shape(value: Any) -> bool:
    whole = isinstance(value, tuple) and all(isinstance(n, (int, np.integer)) for n in value)
    return whole or (isinstance(value, (int, np.integer)) and not isinstance(value, bool))


def asked(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call somebody's program; a ValueError that says which one it was where it fails."""
    try:
        return function(*arguments)
    except Exception as error:  # theirs may be any, and is raised again with its name
        raise ValueError(f"{what} fails: {type(error).__name__}: {error}") from error


def zeros_of(name: str, shapes: Any) -> Any:
    """Nested arrays of zeros, from shapes: a tuple of integers, or one, is a shape, an array has its own."""
    if _is_shape(shapes):
        wanted = tuple(shapes) if isinstance(shapes, tuple) else (shapes,)
        if min(wanted, default=0) < 0:
            raise ValueError(f"{name}={shown(shapes)} must have sizes of zero or more")
        numbers = min(math.prod(map(int, wanted)), 1e300)
        refuse_bytes(8.0 * numbers, f"{name}={shown(shapes)}", "ask for less noise")
        return np.zeros(wanted)
    if isinstance(shapes, Mapping):
        return {key: zeros_of(f"{name}[{key!r}]", one) for key, one in shapes.items()}
    if isinstance(shapes, (tuple, list)):
        return [zeros_of(f"{name}[{i}]", one) for i, one in enumerate(shapes)]
    if shapes is None:
        return ()
    plain = isinstance(getattr(shapes, "shape", None), tuple) and not isinstance(shapes, np.generic)
    if not plain or np.ma.isMaskedArray(shapes):
        raise ValueError(f"{name}={shown(shapes)} must be a shape, an array of it, or dicts and lists of "
                         "those")
    return zeros_of(name, tuple(shapes.shape))


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(np.isscalar(one) or _is_list_of_numbers(one) for one in value)


def _attributes(value: Any) -> list[str]:
    """The fields of a dataclass; none of all else."""
    is_one = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return [field.name for field in dataclasses.fields(value) if field.init] if is_one else []


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Each array of nested ones, with what it is called; a list of numbers is an array."""
    if fields := _attributes(value):
        for field in fields:
            yield from leaves(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from leaves(f"{name}[{key!r}]", one)
    elif isinstance(value, tuple) or (isinstance(value, list) and not _is_list_of_numbers(value)):
        keys = getattr(value, "_fields", None)
        for i, one in enumerate(value):
            yield from leaves(f"{name}.{keys[i]}" if keys else f"{name}[{i}]", one)
    else:
        yield name, value


def _rebuilt(value: Any, fill: Callable[[Any], Any]) -> Any:
    """The same nesting with other arrays, in the order of `leaves`."""
    if fields := _attributes(value):
        new = {one: _rebuilt(getattr(value, one), fill) for one in fields}
        return asked(f"{type(value).__name__} of other numbers", lambda: dataclasses.replace(value, **new))
    if isinstance(value, Mapping):
        return {key: _rebuilt(one, fill) for key, one in value.items()}
    if isinstance(value, tuple) or (isinstance(value, list) and not _is_list_of_numbers(value)):
        parts = [_rebuilt(one, fill) for one in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return tuple(parts) if isinstance(value, tuple) else parts
    return fill(value)


def as_numbers(name: str, value: Any) -> Array:
    """An array of float64, of any library's array; a ValueError naming it where it has no numbers."""
    for part in ("detach", "cpu"):  # of a tensor that is recorded for gradients, or lies on a device
        if callable(change := getattr(value, part, None)):
            value = change()
    try:
        if np.ma.isMaskedArray(value) or (isinstance(value, range) and len(value) > MOST):
            raise ValueError("masked, or too many")
        if np.iscomplexobj(value):
            raise ValueError("complex")
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}={shown(value)} must be made of numbers: {error}") from None


class Nested:
    """A nesting of arrays, read from an example of it.

    Parameters
    ----------
    name : str
        What it is called in messages.
    example : nested arrays
    """

    def __init__(self, name: str, example: Any) -> None:
        self.name, self.example = name, example
        found = [(place, as_numbers(place, one)) for place, one in leaves(name, example)]
        self.places = [place for place, _ in found]
        self.shapes = [one.shape for _, one in found]
        self.sizes = [one.size for _, one in found]
        self.size = sum(self.sizes)
        self.values = np.concatenate([one.ravel() for _, one in found] or [np.zeros(0)])

    def tree(self, flat: Array) -> Any:
        """The nested arrays of a vector (size,): copies, which a program may write to."""
        parts = iter([one.reshape(shape).copy()[()] for one, shape in zip(
            np.split(flat, np.cumsum(self.sizes)[:-1]) if self.sizes else [], self.shapes, strict=True)])
        return _rebuilt(self.example, lambda _: next(parts))

    def flat(self, value: Any, stacked: bool = False) -> Array:
        """The vector (size,) of nested arrays of these shapes; (K, size) where each has K of them stacked.

        Raises
        ------
        ValueError
            For another nesting, or another shape, naming the place.
        """
        given = {place: as_numbers(place, one) for place, one in leaves(self.name, value)}
        if set(given) != set(self.places):  # dicts may come back in another order
            raise ValueError(f"the new {self.name} has the parts {', '.join(given) or 'none'}; it must have "
                             f"those it was given, {', '.join(self.places)}")
        found = [(place, given[place]) for place in self.places]
        for (place, one), wanted in zip(found, self.shapes, strict=True):
            if one.shape[stacked:] != wanted or (stacked and not one.ndim):
                wanted_shape = f"(number of seeds, *{wanted})" if stacked else f"{wanted}"
                raise ValueError(f"the new {place} has shape {one.shape}; it must be {wanted_shape}, as "
                                 "start has it")
        if stacked:
            return np.concatenate([one.reshape(len(one), -1) for _, one in found], axis=1)
        return np.concatenate([one.ravel() for _, one in found] or [np.zeros(0)])

    def place(self, index: int) -> str:
        """The name of entry `index` of the vector: state['x'][0, 1]."""
        for place, shape, size in zip(self.places, self.shapes, self.sizes, strict=True):
            if index < size:
                where = ", ".join(str(int(i)) for i in np.unravel_index(index, shape)) if shape else ""
                return f"{place}[{where}]" if where else place
            index -= size
        raise IndexError(index)

    def parts(self) -> Iterator[tuple[str, slice]]:
        """Each array's name, and its entries of the vector."""
        at = 0
        for place, size in zip(self.places, self.sizes, strict=True):
            yield place, slice(at, at + size)
            at += size
