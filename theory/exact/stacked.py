"""Affine maps of many rounds together: composed where step sizes differ, powers where they are equal."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from .affine import AffineMap, Moments
from .tables import around, at, symmetrised

LONGEST = 64
"""Powers of a map that are held together."""
ROOM = 1_000_000
"""Numbers held at a time."""
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

    @classmethod
    def powers(cls, step: AffineMap) -> Stacked | None:
        """The first powers of a map, or None where they are few, or no cheaper than steps."""
        count = min(LONGEST, ROOM // step.noise.size)
        if step.spread is not None or step.width > WIDEST or count < FEWEST:
            return None
        rest = cls(step.deviation[None], step.shift[None], step.noise[None])
        while len(rest.shift) < count:
            later = rest.taken(np.s_[:]).then(rest.taken(np.s_[-1:]))
            rest = cls(*(np.concatenate([table, more])[:count] for table, more in zip(
                rest, (later.deviation, later.shift, later.noise), strict=False)))
        return rest

    def moments(self, mean: Array, cov: Array | None, count: int) -> list[Moments]:
        """Moments after the first `count` of these powers."""
        deviations = self.deviation[:count]
        means = mean + (at(deviations, mean) + self.shift[:count])
        if cov is None:
            return [(one, None) for one in means]
        covs = around(np.eye(mean.shape[-1]) + deviations, cov[None]) + self.noise[:count]
        return list(zip(means, covs if cov.ndim == 4 else symmetrised(covs), strict=True))
