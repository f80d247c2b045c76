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
from .first_rounds_together import DENSE, crossings


class _One:
    """A setting by itself, read off its exact law; `crossings` asks the same of a `Goal`."""

    mean = (None,)

    def __init__(self, problem: Problem, algorithm: Algorithm, start: Any) -> None:
        self.setting, self.start = (problem, algorithm), start
        diagonal = isinstance(problem, Quadratic) and keeps_apart(
            problem, algorithm, start_of(problem, algorithm, start)[1])
        self.covariance = "diagonal" if diagonal else "full"

    def of(self, index: Any) -> _One:
        """It is the only one."""
        return self

    def first_within(self, rounds: np.ndarray, eps: Any) -> np.ndarray:
        """As `first_rounds_together.first_within`, at rounds (1, R); the W2 there stay known."""
        asked = np.unique(rounds)
        law: Law = exact_law(*self.setting, int(asked[-1]), start=self.start, record=asked,
                             covariance=self.covariance)
        self.last, self.w2 = int(asked[-1]), law.w2()[law.rounds >= asked[0]]
        inside = asked[self.w2 <= eps]
        return np.searchsorted(rounds[0], inside[:1]) if len(inside) else np.array([-1])

    def settles(self, floor: float, eps: float) -> bool:
        """Whether the second half of what was read only moves towards a limit that is above eps."""
        gaps = np.abs(self.w2[len(self.w2) // 2:] - floor)
        return floor > eps and gaps[-1] <= 0.5 * (floor - eps) and bool(
            (np.diff(gaps) <= 1e-12 * max(floor, float(gaps[0]))).all())


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
    one, floors = _One(problem, algorithm, start), list[float]()

    def tighten(found: np.ndarray) -> np.ndarray:
        if found[0] >= 0 or one.last >= limit:
            return np.array([limit])
        if not floors:
            floors.append(stationary_law(problem, algorithm).w2(algorithm.target(problem)))
        return np.array([-1 if one.settles(floors[0], eps) else limit])

    found = int(crossings(one, eps, limit, tighten, (DENSE,)).rounds[0])
    return None if found < 0 else found
