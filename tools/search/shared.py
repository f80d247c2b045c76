"""Exact laws of a setting are made once and serve every theorem about it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

COSTLY = (("theory.exact.asking", "exact_law"), ("theory.exact.asking", "joint_law"),
          ("theory.fa_hmc.coupling", "coupling_law"), ("theory.decentralized.schemes", "coupling"),
          ("theory.decentralized.sghmc.start_terms", "beginning"), ("theory.facts", "constants"))
"""Module and name of what is kept."""
UNSTABLE = ("exact_law", "joint_law")
"""Asked for beyond the stability limit too: a theorem must not be spared there."""
KEPT = 40
"""Results; the oldest ones go first."""


def _key(value: Any) -> Any:
    """By content for numbers and arrays, by identity for problems, algorithms and laws."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if value is None or isinstance(value, (bool, int, float, str)):
        return type(value), value
    return "id", id(value)


class Shared:
    """While it is entered, costly functions of `theory` remember what they returned.

    >>> import fedsim as fs, theory
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.FALD(0.1)
    >>> with Shared():
    ...     theory.exact_law(problem, algorithm, 3) is theory.exact_law(problem, algorithm, 3)
    True
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, Any]] = {}
        self._replaced: list[tuple[Any, str, Any]] = []

    def _remembering(self, function: Callable[..., Any], unstable: bool) -> Callable[..., Any]:
        @functools.wraps(function)
        def found(*arguments: Any, **named: Any) -> Any:
            if unstable:
                named["allow_unstable"] = True
            key = (function, *map(_key, arguments),
                   *((name, _key(value)) for name, value in sorted(named.items())))
            if key not in self._known:
                while len(self._known) >= KEPT:
                    del self._known[next(iter(self._known))]
                # the arguments are kept too: another object must not get the same id
                self._known[key] = function(*arguments, **named), (arguments, named)
            return self._known[key][0]

        return found

    def __enter__(self) -> Shared:
        modules = [module for name, module in sys.modules.items() if name.split(".")[0] == "theory"]
        for place, name in COSTLY:
            original = vars(sys.modules[place])[name]
            replacement = self._remembering(original, name in UNSTABLE)
            for module in modules:
                for mine, value in list(vars(module).items()):
                    if value is original:
                        self._replaced.append((module, mine, original))
                        setattr(module, mine, replacement)
        return self

    def __exit__(self, *error: object) -> None:
        for module, name, original in reversed(self._replaced):
            setattr(module, name, original)
        self._replaced.clear()
        self._known.clear()
