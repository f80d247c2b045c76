"""Assumption: one hypothesis of a theorem, judged in one setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.settings.validation import instance, positive, real, shown

ROUNDING = 1e-12
"""Relative slack of a hypothesis: a step size of exactly 1/(2L) must count as within it."""


def number_or_infinite(name: str, value: Any) -> float:
    """A real number, which may be infinite."""
    infinite = isinstance(value, (float, np.floating)) and np.isinf(value)
    return float(value) if infinite else real(name, value)


@dataclass(frozen=True)
class Assumption:
    """One hypothesis of a theorem, judged in one setting.

    Attributes
    ----------
    name : str
        The condition, e.g. ``"step_size <= 1/(2 smoothness)"``.
    holds : bool
    margin : float
        At least 0 exactly when it holds. For a limit it is the relative room (limit - value) / limit,
        so that 1 is far inside and -1 is twice the limit; for a yes-or-no condition it is 1 or -1.

    Examples
    --------
    >>> name, holds, margin = theory.Assumption('step_size <= 2', True, 0.75)
    >>> holds, margin
    (True, 0.75)
    """

    name: str
    holds: bool
    margin: float

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        if not isinstance(self.holds, (bool, np.bool_)):
            raise ValueError(f"holds={shown(self.holds)} must be True or False")
        margin = real("margin", self.margin)
        if bool(self.holds) != (margin >= 0.0):
            raise ValueError(f"holds={self.holds!r} contradicts margin={margin:g} in {self.name!r}; "
                             "an assumption holds exactly when its margin is at least 0")
        object.__setattr__(self, "margin", margin)
        object.__setattr__(self, "holds", margin >= 0.0)

    def __iter__(self) -> Iterator[str | bool | float]:
        """So that ``name, holds, margin = assumption`` works."""
        return iter((self.name, self.holds, self.margin))

    @classmethod
    def at_most(cls, name: str, value: float, limit: float) -> Assumption:
        """``value <= limit`` for a positive limit, with margin (limit - value) / limit.

        Examples
        --------
        >>> theory.Assumption.at_most('step_size <= 1/(2 smoothness)', 0.25, 0.5)
        Assumption(name='step_size <= 1/(2 smoothness)', holds=True, margin=0.5)
        """
        limit, value = positive("limit", limit), number_or_infinite("value", value)
        margin = (limit - value) / limit
        if abs(margin) <= ROUNDING:
            margin = 0.0
        return cls(name, margin >= 0.0, float(np.clip(margin, -1e300, 1e300)))

    @classmethod
    def yes(cls, name: str, holds: bool) -> Assumption:
        """A condition that holds or not: margin 1 or -1."""
        return cls(name, holds, 1.0 if isinstance(holds, (bool, np.bool_)) and holds else -1.0)
