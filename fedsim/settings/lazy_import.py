"""Imports at first use: `import fedsim` and `import theory` wait for nothing that they may not need.

SciPy and numba take five times as long to import as all that is written here. What `lazy` gives may be called
and asked for attributes; it is no class to derive from, to catch or to compare types with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

_LOCK = threading.RLock()


class Lazy:
    """What `make` gives, made when it is first called or asked for an attribute."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, None

    def _get(self) -> Any:
        if self._made is None:
            with _LOCK:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._get()(*args, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy, pickle and inspect look for
            raise AttributeError(name)
        return getattr(self._get(), name)


def lazy(module: str, *names: str) -> Any:
    """A module; or what has this name in it; or a list of what have these names.

    Examples
    --------
    >>> from fedsim.settings.lazy_import import lazy
    >>> ndtr, ndtri = lazy("scipy.special", "ndtr", "ndtri")
    >>> float(ndtr(0.0)), float(ndtri(0.5))
    (0.5, 0.0)
    """
    if not names:
        return Lazy(lambda: import_module(module))

    def member(name: str) -> Lazy:
        return Lazy(lambda: getattr(import_module(module), name))

    return member(*names) if len(names) == 1 else [member(name) for name in names]
