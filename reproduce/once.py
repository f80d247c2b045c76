"""What several figures of one process have in common, worked out once.

A key has to name all that a result depends on. The oldest results are forgotten where all together are larger
than `MOST`; nothing is kept beyond the process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import TypeVar

import numpy as np

T = TypeVar("T", bound="np.ndarray | tuple[np.ndarray, ...]")

MOST = 2**29
"""Bytes of all results."""
_KNOWN: dict[Hashable, np.ndarray | tuple[np.ndarray, ...]] = {}
_ALONE = Lock()


def once(key: Hashable, make: Callable[[], T], good: Callable[[T], bool] = lambda _: True) -> T:
    """The result of `make`, or the one that is known under this key and `good`. Nobody may write into it."""
    with _ALONE:
        known = _KNOWN.get(key)
    if known is not None and good(known):  # type: ignore[arg-type]
        return known  # type: ignore[return-value]
    made = make()
    with _ALONE:
        _KNOWN.pop(key, None)
        _KNOWN[key] = made
        while len(_KNOWN) > 1 and sum(map(_bytes, _KNOWN.values())) > MOST:
            del _KNOWN[next(iter(_KNOWN))]
    return made


def _bytes(result: np.ndarray | tuple[np.ndarray, ...]) -> int:
    return sum(one.nbytes for one in (result if isinstance(result, tuple) else (result,)))
