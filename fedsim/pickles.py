"""Pickles name public classes by a stable key, never by the module in which a class happens to stand.

`copyreg` lets `pickle`, `copy` and the executors that build on them ask `_reduced` how an object is made.
"""

from __future__ import annotations

import copyreg
import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

_PLACES: dict[str, Any] = {}
"""Key -> class, or function that makes an object."""
_KEYS: dict[type, str] = {}


def keep_names(module: str, names: Mapping[str, Any]) -> None:
    """Pickle the classes of our own among these public names by the key "module.name"; the first key counts.

    Errors and classes that reduce themselves are left as they are.
    """
    for name, kind in names.items():
        ours = isinstance(kind, type) and kind.__module__.split(".")[0] == module.split(".")[0]
        if name[0] == "_" or not ours or issubclass(kind, BaseException) or kind in _KEYS:
            continue
        if kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
            _PLACES[f"{module}.{name}"], _KEYS[kind] = kind, f"{module}.{name}"
            copyreg.pickle(kind, _reduced)  # type: ignore[arg-type]


def _reduced(value: Any) -> tuple[Any, ...]:
    """As `object.__reduce_ex__` has it, with the class by its key."""
    reduced: Any = object.__reduce_ex__(value, 4)
    make, args, *rest = reduced
    if make is not copyreg.__newobj__:  # type: ignore[attr-defined]
        return (make, args, *rest)
    return (made, (_KEYS[args[0]], *args[1:]), *rest)


def made(key: str, *args: Any) -> Any:
    """An object of the class with this key, before its state is set, or what the function makes of `args`."""
    if key not in _PLACES:  # a pickle that is read before its package is imported
        importlib.import_module(key.partition(".")[0])
    kind = _PLACES[key]
    return kind.__new__(kind, *args) if isinstance(kind, type) else kind(*args)


def keep_function(key: str) -> Callable[[Any], Any]:
    """Decorator: `(made, (key, *args))`, from a class's ``__reduce__``, is `function(*args)`."""
    def keep(function: Any) -> Any:
        _PLACES[key] = function
        return function

    return keep


def view(fields: dict[str, Any]) -> MappingProxyType[str, Any]:
    """The read-only mapping that a pickle holds as a dictionary."""
    return MappingProxyType(fields)


copyreg.pickle(MappingProxyType, lambda fields: (view, (dict(fields),)))  # which bounds have, for example
