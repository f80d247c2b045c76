"""Reading the numbers of an instance from a point of the unit cube."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedsim.settings.validation import Array


class Cube:
    """Coordinates of a point of the unit cube, read in a fixed order.

    Without a point every coordinate is the middle, and what was asked for says how many there are: an order
    that depended on what is read would give a coordinate two meanings.

    Parameters
    ----------
    point : (p,) in [0, 1], optional

    Attributes
    ----------
    names : list of str
        What was read so far, in order.

    Examples
    --------
    >>> from theory.worst_case.cube import Cube
    >>> cube = Cube([0.5, 1.0])
    >>> cube.log("curvature", 1.0, 100.0), cube.pick("local_steps", (1, 2, 5)), cube.names
    (10.0, 5, ['curvature', 'local_steps'])
    """

    def __init__(self, point: Any = None) -> None:
        self._point = None if point is None else np.asarray(point, dtype=np.float64)
        self.names: list[str] = []

    def unit(self, name: str) -> float:
        """The next coordinate, in [0, 1]."""
        self.names.append(name)
        return 0.5 if self._point is None else float(self._point[len(self.names) - 1])

    def units(self, name: str, *shape: int) -> Array:
        """A table of coordinates."""
        return np.array([self.unit(name) for _ in range(int(np.prod(shape)))]).reshape(shape)

    def log(self, name: str, low: float, high: float) -> float:
        """From low to high, by equal factors; nothing is read where they agree."""
        if low == high:
            return low
        return float(min(high, low * (high / low) ** self.unit(name)))

    def with_ends(self, name: str, low: float, high: float) -> float:
        """From low to high, a twelfth of the coordinate at either end: suprema often sit there."""
        if low == high:
            return low
        return low + (high - low) * min(1.0, max(0.0, 1.2 * self.unit(name) - 0.1))

    def or_zero(self, name: str, largest: float, share: float) -> float:
        """Zero in a share of the coordinate, then by equal factors from 1e-3 or less up to the largest."""
        if largest == 0.0:
            return 0.0
        u, decades = self.unit(name), max(3.0, math.log10(largest / 1e-3))
        return 0.0 if u <= share else largest * 10.0 ** (decades * ((u - share) / (1.0 - share) - 1.0))

    def signed(self, name: str, largest: float, *shape: int) -> Array:
        """Of either sign up to the largest, by factors where they are large and through 0 in the middle."""
        if largest == 0.0:
            return np.zeros(shape)
        return np.sinh(math.asinh(largest) * (2.0 * self.units(name, *shape) - 1.0))

    def pick(self, name: str, options: Sequence[Any]) -> Any:
        """One of the options, by equal parts of the coordinate; nothing is read where there is one."""
        if len(options) == 1:
            return options[0]
        return options[min(int(self.unit(name) * len(options)), len(options) - 1)]
