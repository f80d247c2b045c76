"""Step-size schedules, indexed by the local step k = 0, 1, 2, ...

A schedule is a frozen dataclass with `at(k)` for NumPy and `arrays()` for compiled code, where
`fedsim.algorithms.bodies.step_size_at` has a body for what `arrays()` returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..equality import ByValue
from ..hints import listed
from .validation import (
    Array,
    all_positive,
    array,
    as_array,
    is_listed,
    nonnegative,
    positive,
    set_fields,
    shown,
    unmasked,
)

__all__ = [
    "Constant", "Harmonic", "Listed", "Schedule", "as_schedule",
]


CONSTANT, HARMONIC, LISTED = 0, 1, 2


class StepSizes(NamedTuple):
    """Compiled form, one type for the three `kind`s: value, 1/(value + slope k) or values[k]."""

    kind: int
    value: float = 0.0
    slope: float = 0.0
    values: Array = np.empty(0)


class Schedule:
    """What all schedules share.

    Examples
    --------
    >>> schedule = fs.FALD([0.2, 0.1, 0.05]).schedule
    >>> schedule.is_constant, schedule.largest, schedule.n_steps
    (False, 0.2, 3)
    """

    is_constant = False
    n_steps: int | None = None
    """Number of steps the schedule is defined for; None when it never ends."""
    largest: float
    """Largest step size of the schedule."""

    def at(self, k: Any) -> Array:
        """Step sizes at local steps `k` (an int or an array of ints), from 0 and below `n_steps`."""
        raise NotImplementedError

    def _steps(self, k: Any) -> Any:
        """`k`, or a ValueError where there is no such local step."""
        if type(k) is int and 0 <= k < (self.n_steps or 2**63):  # as exact laws ask, step by step
            return k
        steps = as_array(unmasked("k", k))
        if steps.dtype.kind not in "iu" and steps.size:
            raise ValueError(f"k={shown(k)} must be an integer, or an array of integers")
        if steps.size and steps.min() < 0:
            raise ValueError(f"k contains {steps.min()}; local steps count from 0")
        if self.n_steps is not None and steps.size and steps.max() >= self.n_steps:
            raise ValueError(f"k contains {steps.max()}; step_size has {self.n_steps} entries, "
                             f"0 to {self.n_steps - 1}")
        return steps.astype(np.int64) if not steps.size else steps

    def total(self, n_steps: Array) -> Array:
        """Sums of the first so many step sizes; of infinite schedules with an error below the first."""
        raise NotImplementedError

    def arrays(self) -> Any:
        """The NamedTuple that compiled code sees."""
        raise NotImplementedError

StepSizeLike = float | Iterable[float] | np.ndarray | Schedule
"""A step size as an algorithm takes it."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same step size at every local step.

    Examples
    --------
    >>> fs.schedules.Constant(0.5).at(3).item()
    0.5
    """

    value: float
    is_constant = True

    def __post_init__(self) -> None:
        value = positive("step_size", self.value)
        set_fields(self, value=value, largest=value)

    def at(self, k: Any) -> Array:
        return np.full(np.shape(self._steps(k)), self.value)

    def total(self, n_steps: Array) -> Array:
        return self.value * n_steps

    def arrays(self) -> StepSizes:
        return StepSizes(CONSTANT, self.value)


@dataclass(frozen=True)
class Harmonic(Schedule):
    """eta_k = 1 / (offset + slope k), decreasing.

    FA-LD Theorem 4.8 takes offset = 2 smoothness and slope = strong_convexity / 12.

    Examples
    --------
    >>> fs.schedules.Harmonic.from_theorem(strong_convexity=1.0, smoothness=2.0).at(0).item()
    0.25
    """

    offset: float
    slope: float

    def __post_init__(self) -> None:
        offset = positive("offset", self.offset)
        set_fields(self, offset=offset, slope=nonnegative("slope", self.slope), largest=1.0 / offset)

    @classmethod
    def from_theorem(cls, *, strong_convexity: float, smoothness: float) -> Harmonic:
        """The rule of FA-LD Theorem 4.8: 1 / (2 L + (m / 12) k)."""
        m = positive("strong_convexity", strong_convexity)
        return cls(offset=2.0 * positive("smoothness", smoothness), slope=m / 12.0)

    def at(self, k: Any) -> Array:
        return np.asarray(1.0 / (self.offset + self.slope * np.asarray(self._steps(k), dtype=np.float64)))

    def total(self, n_steps: Array) -> Array:
        if self.slope == 0.0:
            return n_steps / self.offset
        # the integral, and the trapezoid rule's ends
        ends = 1.0 / self.offset - 1.0 / (self.offset + self.slope * n_steps)
        return np.log1p(self.slope / self.offset * n_steps) / self.slope + 0.5 * ends

    def arrays(self) -> StepSizes:
        return StepSizes(HARMONIC, self.offset, self.slope)


@dataclass(frozen=True, eq=False)
class Listed(ByValue, Schedule):
    """One step size per local step, given as an array (n_steps,).

    Examples
    --------
    >>> fs.schedules.Listed([0.2, 0.1]).at([0, 1]).tolist()
    [0.2, 0.1]
    """

    values: Array

    def __post_init__(self) -> None:
        values = all_positive("step_size", array("step_size", self.values, 1))
        set_fields(self, values=values, n_steps=len(values), largest=float(values.max()))

    def __repr__(self) -> str:
        return f"Listed({listed(self.values, 'step sizes')})"

    def at(self, k: Any) -> Array:
        return self.values[self._steps(k)]

    @cached_property
    def _sums(self) -> Array:
        return np.concatenate([[0.0], np.cumsum(self.values)])

    def total(self, n_steps: Array) -> Array:
        return self._sums[np.minimum(n_steps, len(self.values)).astype(np.int64)]

    def arrays(self) -> StepSizes:
        return StepSizes(LISTED, values=self.values)


def as_schedule(value: object) -> Schedule:
    """A number becomes `Constant`, an array or a pandas Series `Listed`, a schedule itself.

    Examples
    --------
    >>> fs.schedules.as_schedule(0.1).is_constant
    True
    """
    if isinstance(value, Schedule):
        return value
    if is_listed(value):
        return Listed(value)  # type: ignore[arg-type]
    if callable(value):
        raise ValueError(f"step_size={shown(value)} must be a number, an array of one step size per local "
                         "step, or a schedule of fs.schedules; of a function f make an array, "
                         "[f(k) for k in range(n_steps)]")
    return Constant(value)  # type: ignore[arg-type]
