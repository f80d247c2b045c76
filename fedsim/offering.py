"""Whether an object offers all that an interface lists."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from .settings.validation import shown

_MISSING = object()
_OFFERED: WeakKeyDictionary[type, dict[type, tuple[frozenset[str], frozenset[str]]]] = WeakKeyDictionary()
"""What is known of classes that offered an interface: the methods, which an instance may have of its own, and
the parts that each instance must have, because the class has them not. Laws ask thousands of times."""


def offers(name: str, value: object, interface: type) -> None:
    """Raise ValueError unless `value` has every part of `interface`, and its methods can be called."""
    if isinstance(value, type):
        raise ValueError(f"{name}={shown(value)} must be a fedsim {name}, an instance and not the class")
    fields = getattr(value, "__dict__", {})
    known = _OFFERED.setdefault(type(value), {})
    methods, own_parts = known.get(interface, (None, frozenset[str]()))
    if methods is not None and own_parts <= fields.keys() and methods.isdisjoint(fields):
        return
    members = _members(interface)
    for part, (declared, is_stub) in members.items():
        method = inspect.isfunction(declared)
        own = getattr(type(value), part, _MISSING)  # of the class: no property is computed
        if own is _MISSING or (method and part in fields):
            own = fields.get(part, _MISSING)
        missing = own is _MISSING or (is_stub and own is declared)
        if missing or (method and not callable(getattr(value, part))):
            what = f"no method {part}()" if method else f"no {part}"
            raise ValueError(f"{name}={shown(value)} must be a fedsim {name}: {type(value).__name__} has "
                             f"{what}: {inspect.getdoc(declared)}")
    known[interface] = (
        frozenset(part for part, (declared, _) in members.items() if inspect.isfunction(declared)),
        frozenset(part for part in members if getattr(type(value), part, _MISSING) is _MISSING))


@cache
def _members(interface: type) -> dict[str, tuple[Any, bool]]:
    """Declaration of each part by name, those first that a class must offer: theirs do nothing.

    What it may offer is in `ProblemParts` and `AlgorithmParts`, with defaults.
    """
    parts: dict[str, tuple[Any, bool]] = {}
    for cls in interface.__mro__:
        for name, part in vars(cls).items():
            if not name.startswith("__") and (isinstance(part, property) or inspect.isfunction(part)):
                parts.setdefault(name, (part, not cls.__name__.endswith("Parts")))
    return parts
