"""Affine maps of many rounds whose step sizes differ, made together and composed where that is cheap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .affine import AffineMap

FEWEST = 4
"""Maps below which one by one is as fast as composing them."""
WIDEST = 24
"""Largest group of which maps are composed: products of matrices cost more than steps."""


class Stacked(NamedTuple):
    """The tables of `AffineMap`, each with a leading axis of rounds; those of the random part may be None."""

    deviation: Any
    shift: Any
    noise: Any
    spread: Any = None
    spread_shift: Any = None

    def taken(self, index: Any) -> AffineMap:
        """One map, or those of a slice with their axis."""
        tables: Any = (None if table is None else table[index] for table in self)
        return AffineMap(*tables)

    def merged(self, first: int, last: int) -> list[AffineMap]:
        """Maps which one after the other are those numbered first, ..., last - 1."""
        if last - first < FEWEST or self.spread is not None or self.shift.shape[-1] > WIDEST:
            return [self.taken(i) for i in range(first, last)]
        rest = Stacked(*(None if table is None else table[first:last] for table in self))
        while len(rest.shift) > 1:
            even = len(rest.shift) // 2 * 2
            pairs = rest.taken(np.s_[:even:2]).then(rest.taken(np.s_[1:even:2]))
            rest = Stacked(*(np.concatenate([table, old[even:]]) for table, old in zip(
                (pairs.deviation, pairs.shift, pairs.noise), rest, strict=False)))
        return [rest.taken(0)]
