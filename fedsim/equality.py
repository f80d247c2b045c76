"""Equality by value, for dataclasses that hold arrays."""

from __future__ import annotations

from html import escape
from reprlib import repr as short
from typing import Any

import numpy as np

from .fingerprints import KEPT, fields_of, fingerprint
from .hints import Named


class ByValue(Named):
    """Equal to what has the same class and the same fingerprint, with a hash to match.

    So a matrix equals its diagonal, and a number a constant schedule, as `fedsim.fingerprints` has it.
    What has no fingerprint equals itself alone. Subclasses are dataclasses with ``frozen=True, eq=False``.

    Examples
    --------
    >>> import fedsim as fs, numpy as np
    >>> fs.FALD(np.array([0.1, 0.2])) == fs.FALD([0.1, 0.2]) != fs.FALD([0.1, 0.3])
    True
    >>> len({fs.Quadratic([2.0], [[1.0]]), fs.Quadratic([[[2.0]]], [[1.0]])})
    1
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if other is self:
            return True
        mine = fingerprint(self)
        return mine is not None and mine == fingerprint(other)

    def __hash__(self) -> int:
        mine = fingerprint(self)
        return object.__hash__(self) if mine is None else hash(mine)

    def __getstate__(self) -> dict[str, Any]:
        """Without the fingerprint: another version may make another one."""
        return {name: value for name, value in vars(self).items() if name != KEPT}

    def _repr_html_(self) -> str:
        """A table of the fields, for notebooks; of large arrays their shapes."""
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(_shown(value))}</td></tr>"
                       for name, value in fields_of(self).items())
        return f"<table><tr><th>{escape(type(self).__name__)}</th><th></th></tr>{rows}</table>"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"{value.shape} array"
    return short(value.tolist() if isinstance(value, np.ndarray) else value)
