"""The first round at which the exact W2 is within an accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem, start_of, validate_sizes
from fedsim.laws.law import Law
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import positive, whole

from ..exact import exact_law, stationary_law
from ..exact.families import keeps_apart

DENSE = 1024
"""Every round is looked at up to here; beyond it on a grid that is refined around the crossing."""
GRID = 32
"""Rounds looked at per doubling beyond `DENSE`, and per refinement."""


def _distances(problem: Problem, algorithm: Algorithm, rounds: np.ndarray,
               start: Any) -> tuple[np.ndarray, np.ndarray]:
    """These rounds (the law has round 0 besides), and W2 there."""
    diagonal = isinstance(problem, Quadratic) and keeps_apart(
        problem, algorithm, start_of(problem, algorithm, start)[1])
    law: Law = exact_law(problem, algorithm, int(rounds[-1]), start=start, record=rounds,
                         covariance="diagonal" if diagonal else "full")
    asked = law.rounds >= rounds[0]
    return law.rounds[asked], law.w2()[asked]


def rounds_to(problem: Problem, algorithm: Algorithm, eps: float, *, start: Any = None,
              max_rounds: int = 10**9) -> int | None:
    """First round at which the exact W2 is at most `eps`.

    Parameters
    ----------
    problem, algorithm, start
        As for `theory.exact_law`; a constant step size.
    eps : float
        In the problem's units.
    max_rounds : int
        Look no further.

    Returns
    -------
    int, or None when W2 stays above `eps` up to `max_rounds` or for good.

    Every round up to 1,024 is looked at, and beyond it 32 rounds per doubling, refined to single rounds
    around the first of them within `eps`. A dip below `eps` between two of those is not seen.

    Raises
    ------
    ValueError
        Naming argument, value and condition; `UnstableStepSize` beyond stability.

    Source: none; the exact side of the papers' numbers of rounds.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.tuning.rounds_to(problem, fs.FALD(0.01, local_steps=5), 0.05)
    29
    """
    eps = positive("eps", eps)
    limit = whole("max_rounds", max_rounds, 0, 2**53)
    validate_sizes(problem, algorithm, start)
    low = 0
    high = min(DENSE, limit)
    grid = np.arange(high + 1)
    floor: float | None = None
    while True:
        rounds, w2 = _distances(problem, algorithm, grid, start)
        inside = np.flatnonzero(w2 <= eps)
        if len(inside):
            return _refine(problem, algorithm, eps, start, rounds, int(inside[0]))
        if high >= limit:
            return None
        if floor is None:
            floor = stationary_law(problem, algorithm).w2(algorithm.target(problem))
        if floor > eps and abs(w2[-1] - floor) <= 0.5 * (floor - eps) and _settled(w2, floor):
            return None
        low, high = high, min(8 * high, limit)
        spaced = np.geomspace(low, high, 1 + max(1, round(GRID * np.log2(high / low))))
        grid = np.unique(np.rint(spaced).astype(np.int64))


def _settled(w2: np.ndarray, floor: float) -> bool:
    """The second half of these distances only moves towards the stationary one."""
    gaps = np.abs(w2[len(w2) // 2:] - floor)
    return bool((np.diff(gaps) <= 1e-12 * max(floor, float(gaps[0]))).all())


def _refine(problem: Problem, algorithm: Algorithm, eps: float, start: Any, rounds: np.ndarray,
            first: int) -> int:
    """The first round within eps between the grid round before `first` and it."""
    if first == 0:
        return int(rounds[0])
    before, inside = int(rounds[first - 1]), int(rounds[first])
    while inside - before > 1:
        grid = np.unique(np.linspace(before, inside, GRID + 1).astype(np.int64))
        rounds, w2 = _distances(problem, algorithm, grid, start)
        places = np.flatnonzero(w2 <= eps)  # the last one is, but for rounding that differs between laws
        place = int(places[0]) if len(places) else len(rounds) - 1
        if place == 0:
            return before
        before, inside = int(rounds[place - 1]), int(rounds[place])
    return inside
