"""At which step sizes a bound says anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem
from fedsim.settings.validation import positive, whole

from ..declare.registry import TheoremLike, about
from ..facts import Constants, constants
from .best import with_step
from .fewest import SMALLEST, Promise, largest_step, refined, refuse_unknown_bend

CLOSE = 1e-12
"""To which the largest step size is found, relative to it."""


@dataclass(frozen=True)
class InformativeSteps:
    """Where the limit of a bound is below what was asked.

    Attributes
    ----------
    largest : float or None
        The largest such step size that was found; None where no step size tried has one.
    below : float
    step_sizes, floors : tuple of float
        Everything tried, rising; a floor is infinite where the bound has no limit or no value, and where a
        hypothesis fails.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.informative_steps("fa_ld.w2_recursion", problem, fs.FALD(0.01, local_steps=5))
    >>> round(found.largest, 3), round(found.below, 3), found.floors[0] < found.below
    (0.176, 1.031, True)
    """

    largest: float | None
    below: float
    step_sizes: tuple[float, ...] = field(repr=False)
    floors: tuple[float, ...] = field(repr=False)


def informative_steps(theorem: TheoremLike, problem: Problem | Constants, algorithm: Algorithm,
                      below: float | None = None, *, start: Any = None, n_grid: int = 85,
                      **given: Any) -> InformativeSteps:
    """The largest step size at which a bound's limit is below the distance at the start.

    Step sizes are tried on a logarithmic grid over seven decades, up to 1/smoothness (its root where there is
    a momentum, the trajectory's for FA-HMC), and the last one that holds is refined by bisection: that larger
    ones cannot hold again is not proved.

    Parameters
    ----------
    theorem : str, Theorem or callable
        As for `theory.examine`; with a limit (`Bound.floor`), e.g. "fa_ld.w2_recursion".
    problem : a problem, or its `Constants`
    algorithm : an algorithm
        Its step size is replaced; those that it or a hypothesis excludes count as without a limit.
    below : float, optional
        The distance at the start by default.
    start : optional
        As for `theory.constants`, where a problem is given.
    n_grid : int
    **given
        Further arguments of the theorem, as hessian_smoothness.

    Returns
    -------
    InformativeSteps

    Raises
    ------
    ValueError
        Naming argument, value and condition; for a theorem that has no limit.

    Source: none; a bound that is not below the distance at the start says nothing.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.tuning.informative_steps("fa_ld.w2_bound", problem, fs.FALD(0.01)).largest < 1e-4
    True
    """
    entry = about(theorem, algorithm)
    facts = problem if isinstance(problem, Constants) else constants(problem, algorithm, start)
    n_grid = whole("n_grid", n_grid, 5, 10_000)
    entry.require(algorithm)
    promise = Promise(entry, facts, lambda size: with_step(algorithm, size), given)
    first = promise.at(SMALLEST * largest_step(facts, algorithm))
    refuse_unknown_bend(first)
    if first.floor is None:
        raise ValueError(f"theorem={entry.id!r} has no limit (floor) to compare with")
    if below is None:
        below = first.start_distance
        if below is None:
            raise ValueError(f"below=None: {entry.id} has no distance at the start to compare with")
    limit = positive("below", below)
    tried: dict[float, float] = {}

    def floor_at(size: float) -> float:
        return tried.setdefault(size, promise.limit(size))

    high = largest_step(facts, algorithm)
    grid = np.geomspace(SMALLEST * high, high, n_grid).tolist()
    largest = max((size for size in grid if floor_at(size) < limit), default=None)
    if largest is not None and largest < grid[-1]:
        above = grid[grid.index(largest) + 1]
        largest, _ = refined(floor_at, limit, largest, (above, tried[above]), CLOSE)
    order = sorted(tried)
    return InformativeSteps(largest, limit, tuple(order), tuple(tried[size] for size in order))
