"""Arrays that compiled code reads and writes in whole tiles of lanes, and how much memory they would take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array

TILE = 16
"""Lanes of a tile. Rows of replicas are a multiple of this; rows of coordinates may be of any length."""

_LINE = 64  # bytes of a cache line, and of the longest vector


def signals(count: int) -> np.ndarray:
    """A flag that stops all blocks, and counters of so many, each in a cache line of its own."""
    return np.zeros(_LINE // 8 * (count + 1), np.int64)


def signal_of(flags: np.ndarray, number: int) -> np.ndarray:
    """The flag and a counter (2,) of `signals`, as compiled code sees them; -1 is the last counter."""
    step = _LINE // 8
    place = step * (number % (len(flags) // step - 1) + 1)
    return flags[:place + 1:place]


class Scratch(NamedTuple):
    """Rows (d, B) that a gradient may overwrite: float64 ones, and ones for normals."""

    rows: Array
    normals: Any


class Tally:
    """Bytes that `aligned` was asked for while it gave none of them."""

    MOST = 2**60
    """Beyond this NumPy could not say the shape of an array."""

    def __init__(self) -> None:
        self.n_bytes = 0
        self._rooms: list[Array] = []

    def room(self, shape: tuple[int, ...], kind: Any) -> Array:
        """An array of this shape, all of whose entries are one place in memory."""
        self.n_bytes += math.prod(shape) * kind.itemsize
        if self.n_bytes > self.MOST:
            raise OverflowError(f"{self.n_bytes} bytes")
        self._rooms.append(np.zeros(1, kind))
        return np.lib.stride_tricks.as_strided(self._rooms[-1], shape, (0,) * len(shape))

    def has(self, values: Array) -> bool:
        """True for what lies in a `room`, and is counted."""
        return any(np.may_share_memory(values, room) for room in self._rooms)


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def tallied() -> Iterator[Tally]:
    """Within it `aligned` takes no memory and counts what it would take; `aligned_copy` copies nothing.

    Examples
    --------
    >>> from fedsim.vector.memory import aligned, tallied
    >>> with tallied() as tally:
    ...     shape = aligned((10**9, 10)).shape
    >>> shape, tally.n_bytes
    ((1000000000, 10), 80000000000)
    """
    tally = Tally()
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def aligned(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Zeros that begin at a cache line: a vector that straddles two of them takes twice as long."""
    kind, tally = np.dtype(dtype), _TALLY.get()
    sizes = tuple(int(n) for n in np.atleast_1d(shape))
    if tally is not None:
        return tally.room(sizes, kind)
    size = math.prod(sizes) * kind.itemsize
    memory = np.zeros(size + _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    return memory[first:first + size].view(kind).reshape(sizes)


def aligned_copy(values: Array) -> Array:
    """The same array, in order, in memory of `aligned`."""
    copy = aligned(values.shape, values.dtype)
    if _TALLY.get() is None:
        copy[...] = values
    return copy
