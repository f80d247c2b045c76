"""The searches of `best_step_size`, for several accuracies in step: laws of step sizes are made together.

A step size is followed up to the fewest rounds of the larger ones tried before it. Which those are is known
only when all are done, so that settings are followed as far as is known to be enough, and again where beyond
round 1,024 that was not what it should have been: the first that is wrong is right the next time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.interfaces import Algorithm, Problem
from fedsim.settings.validation import UnstableStepSize
from fedsim.stability.federated import FederatedStability, curvatures

from ..exact import stationary_law
from ..exact.families import family_of
from .first_round import rounds_to
from .first_rounds_together import Crossings, Goal, crossings, goal_of

FAR = 2**62
"""More rounds than anyone asks for."""
TOGETHER = 100
"""Step sizes treated at a time."""
SMALL = 24
"""Numbers of all clients' points up to which those of several grids are."""


def with_step(algorithm: Any, step: Any, keep_momentum: bool = False) -> Any:
    """The algorithm with another step size: algorithms are dataclasses."""
    if keep_momentum and isinstance(algorithm, DESGHMC):
        lost = algorithm.friction * algorithm.schedule.largest
        return replace(algorithm, step_size=step, friction=lost / step)
    return replace(algorithm, step_size=step)


@dataclass(frozen=True)
class TunedStep:
    """The step size with the fewest exact rounds to an accuracy, within which W2 stays.

    Attributes
    ----------
    step_size : float
    n_rounds : int
    eps : float
    step_sizes, rounds : tuple
        Everything tried, with None where the accuracy is not reached.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> best = theory.tuning.best_step_size(problem, fs.FALD(0.01, local_steps=5), 0.05)
    >>> round(best.step_size, 3), best.n_rounds, len(best.step_sizes)
    (0.036, 11, 92)
    """

    step_size: float
    n_rounds: int
    eps: float
    step_sizes: tuple[float, ...] = field(repr=False)
    rounds: tuple[int | None, ...] = field(repr=False)


@dataclass
class Search:
    """The step sizes tried for one accuracy, with None where it is not reached."""

    eps: float
    low: float
    high: float
    cutoff: int
    tried: dict[float, int | None] = field(default_factory=dict)
    best: float | None = None
    done: bool = False

    def steps(self, n_grid: int) -> list[float]:
        """Those of the next grid, the largest first."""
        return [step for step in np.geomspace(self.low, self.high, n_grid)[::-1].tolist()
                if step not in self.tried]

    def take(self, found: dict[float, int | None]) -> None:
        """What the grid has said; the next one lies about the best."""
        self.tried.update(found)
        good = {step: n for step, n in self.tried.items() if n is not None}
        if not good or not found:  # between neighbours among floats there is nothing to refine
            self.done = True
            return
        self.cutoff = min(self.cutoff, *(max(n, 1) for n in good.values()))
        self.best = min(good, key=lambda step: (good[step], step))
        steps = sorted(self.tried)
        place = steps.index(self.best)
        self.low, self.high = steps[max(place - 1, 0)], steps[min(place + 1, len(steps) - 1)]

    @property
    def result(self) -> TunedStep | None:
        """The best step size and all that were tried; None where none reaches eps."""
        rounds = None if self.best is None else self.tried[self.best]
        if self.best is None or rounds is None:
            return None
        steps = sorted(self.tried)
        return TunedStep(self.best, rounds, self.eps, tuple(steps), tuple(map(self.tried.get, steps)))


class Trial:
    """What step sizes of an algorithm need."""

    def __init__(self, problem: Problem, algorithm: Algorithm, start: Any, keep_momentum: bool) -> None:
        self.problem, self.algorithm, self.start, self.keep = problem, algorithm, start, keep_momentum
        self.modes: Any = None
        if isinstance(algorithm, FederatedStability):
            judged = problem.curvature_problem()
            self.modes = judged, curvatures(judged)

    def first_rounds(self, grids: list[tuple[float, int, list[float]]]) -> list[list[int | None]]:
        """Of grids, each an accuracy, how far to look and step sizes: the first rounds, in their order."""
        small, parts = self.problem.n_clients * self.problem.dim <= SMALL, list[list[tuple[int, float]]]()
        for grid, (_, _, steps) in enumerate(grids):
            some = [(grid, step) for step in steps]
            if small and parts and len(parts[-1]) + len(some) <= TOGETHER:
                parts[-1] += some
            else:
                parts.append(some)
        found: list[list[int | None]] = [[] for _ in grids]
        for part in parts:
            made = [self._made(step) for _, step in part]
            index = [place for place, one in enumerate(made) if one is not None]
            owners = np.array([part[place][0] for place in index], dtype=np.int64)
            rounds = dict(zip(index, self._together(
                [made[place] for place in index], np.array([grids[grid][0] for grid in owners]),
                np.array([grids[grid][1] for grid in owners], dtype=np.int64), owners), strict=True))
            for place, (grid, _) in enumerate(part):
                number = rounds.get(place, -1)
                found[grid].append(None if number < 0 else number)
        return found

    def _made(self, step: float) -> Any:
        """The algorithm with this step size; None where it is none of this algorithm."""
        try:
            return with_step(self.algorithm, step, self.keep)
        except ValueError:  # the algorithm's own check of its parameters
            return None

    def _goal(self, algorithms: list[Any]) -> tuple[Goal | None, np.ndarray]:
        """Laws of all, and of which they can be read; None where there are none."""
        none = None, np.zeros(len(algorithms), bool)
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                family = family_of(self.algorithm)
                laws = family.together(self.problem, algorithms, self.start) if algorithms else None
                if laws is None:
                    return none
                good = laws.contracts.copy()
                for table in (laws.means, laws.covs, laws.start_means, laws.start_covs):
                    good &= np.isfinite(table).reshape(len(good), -1).all(axis=1)
                return goal_of(laws, self.algorithm.target(self.problem)), good
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):  # each has its own words for it
            return none

    def _together(self, algorithms: list[Any], eps: np.ndarray, cutoffs: np.ndarray, owners: np.ndarray,
                  ) -> list[int]:
        """First rounds, -1 where there are none, of algorithms whose search is numbered by `owners`."""
        rounds, never = np.full(len(algorithms), -1), np.zeros(len(algorithms), bool)
        goal, good = self._goal(algorithms)
        index = np.flatnonzero(good)

        def limits() -> np.ndarray:
            return followed(rounds, cutoffs, owners)

        def tighten(found: np.ndarray) -> np.ndarray:
            new = index[(found >= 0) & (rounds[index] < 0) & ~never[index]]
            rounds[index] = np.where(never[index], -1, found)
            for place in new.tolist():
                if not self._is_stable(algorithms[place]):
                    rounds[place], never[place] = -1, True
            return np.where(never[index], -1, limits()[index])

        said = Crossings(np.empty(0, np.int64), np.empty(0, np.int64))
        if goal is not None and len(index):
            stays = goal.of(index).floor() <= eps[index]
            never[index[~stays]] = True
            index = index[stays]
        if goal is not None and len(index):
            goal = goal.of(index)
            said = crossings(goal, eps[index], cutoffs[index], tighten)
        asked = np.full(len(algorithms), -1)
        while True:
            now = limits()
            again = np.flatnonzero(~said.hold(now[index]) & ~never[index])
            alone = np.flatnonzero(~good & (asked != now) & ~never)
            if not len(again) and not len(alone):
                return [int(n) if n <= most else -1 for n, most in zip(rounds, now, strict=True)]
            if len(again) and goal is not None:
                more = crossings(goal.of(again), eps[index[again]], now[index[again]])
                for table, new in zip(said, more, strict=True):
                    table[again] = new
                rounds[index[again]] = more.rounds
            for place in alone[:1].tolist():  # what it needs decides how far the next ones are followed
                asked[place] = now[place]
                rounds[place], never[place] = self._alone(algorithms[place], float(eps[place]),
                                                          int(now[place]))

    def _is_stable(self, algorithm: Any) -> bool:
        """Of a law that contracts: whether the algorithm's own judgement is the same."""
        if self.modes is None:
            return True
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # infinite: not stable
            return bool(algorithm._radius_at(*self.modes, algorithm.schedule.largest) < 1.0)

    def _alone(self, algorithm: Algorithm, eps: float, limit: int) -> tuple[int, bool]:
        """`rounds_to`, and whether there is none, however far it is followed: W2 does not stay within eps."""
        try:
            if stationary_law(self.problem, algorithm).w2(algorithm.target(self.problem)) > eps:
                return -1, True
            found = rounds_to(self.problem, algorithm, eps, start=self.start, max_rounds=limit)
        except UnstableStepSize:  # a window of instability below the limit
            return -1, True
        return -1 if found is None else found, False


def followed(rounds: np.ndarray, cutoffs: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """How far each is followed: no further than its search's cutoff, and the rounds of those before it."""
    needed, found = np.where(rounds >= 0, np.maximum(rounds, 1), FAR), np.empty(len(rounds), np.int64)
    for owner in np.unique(owners):
        own = np.flatnonzero(owners == owner)
        found[own] = np.minimum.accumulate(np.concatenate([cutoffs[own[:1]], needed[own[:-1]]]))
    return found
