"""Step size and local steps that a recursion asks for, and what trusting it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Problem
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.validation import one_of, positive, whole, whole_numbers

from ..facts.constants_of_problem import Constants, constants
from ..recursions.bounds import floor
from ..recursions.catalogue import first_round, recursion
from .best import best_step_size, with_step
from .informative import BISECTIONS, SMALLEST, largest_step
from .telling import Teller

COSTS = {"rounds": "communications", "gradients": "gradient_evaluations", "floats": "floats_sent"}
SMALLEST_SQUARE = 3e-4
"""Of the largest step size tried where its square is the Langevin step, and velocities must keep digits."""
STAGES, POINTS = 3, 11
"""How often, and at how many step sizes, the effort is worked out, each time about the best so far."""
NEAR = 0.05
"""How far from where the limit is expected to be eps, towards the middle, it is looked at instead."""
SHARES = (0.05, 0.98)
"""Of the largest step size whose limit is below eps: between these the best one is looked for."""


@dataclass(frozen=True)
class RecursionPlan:
    """What a recursion asks for, to reach an accuracy with the least of a cost.

    Attributes
    ----------
    algorithm : the algorithm with step size and local steps chosen
    n_rounds : int
    eps : float
    minimise : "rounds", "gradients" or "floats"
    effort : int
        Of `minimise`, in one run.
    tried : tuple of (local_steps, step_size, n_rounds)
        The best of each number of local steps that reaches eps.
    exact_effort : int or None
        The least effort by exact laws over the same local steps and all step sizes; None where the problem
        is not known.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.plan_by_recursion(problem, fs.FALD(0.01), 0.2, local_steps=(1, 2))
    >>> found.price == found.effort / found.exact_effort
    True
    """

    algorithm: Any
    n_rounds: int
    eps: float
    minimise: str
    effort: int
    tried: tuple[tuple[int, float, int], ...]
    exact_effort: int | None = None

    @property
    def price(self) -> float:
        """Effort that the bound asks for over the least one by exact laws (NaN where that is not known)."""
        return np.nan if self.exact_effort is None else self.effort / max(self.exact_effort, 1)


def plan_by_recursion(problem: Problem | Constants, algorithm: Any, eps: float, *, minimise: str = "rounds",
                      local_steps: int | Sequence[int] = (1, 2, 3, 5, 10, 20, 50), start: Any = None,
                      hessian_smoothness: float | None = None,
                      progress: bool = False) -> RecursionPlan | None:
    """The step size, and for federated algorithms the local steps, that a recursion asks for.

    For each number of local steps the largest step size whose limit is below `eps` is found, and between
    .05 and .98 of it the one with the least effort: 11 of them are tried, and twice 11 between the neighbours
    of the best. A plan holds for every problem with these constants, quadratic or not.

    Parameters
    ----------
    problem : a problem, or its `Constants`
        With a problem that has exact laws, `price` says what trusting the bound costs.
    algorithm : fedsim.FALD, FAHMC, DESGLD, DESGHMC or StaleSGLD
        Its step size is replaced, of federated algorithms also the local steps. DE-SGHMC keeps its momentum
        1 - friction step_size: at a fixed friction no step size, however small, makes its bound small.
    eps : float
        W2 to be reached.
    minimise : "rounds", "gradients" or "floats"
    local_steps : int, or sequence of them
    start : optional
        As for `theory.constants`, where a problem is given.
    hessian_smoothness : float, optional
        As for the recursions.
    progress : bool
        A line for every number of local steps, on the error stream; without it where there was none for
        some seconds.

    Returns
    -------
    RecursionPlan, or None where no step size tried has a limit below eps.

    Raises
    ------
    ValueError
        Naming argument, value and condition; for an algorithm that has no recursion.

    Source: derived here; the papers' rules are `theory.<paper>.plan`.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.plan_by_recursion(problem, fs.FALD(0.01), 0.2, local_steps=(1, 2))
    >>> found.algorithm.local_steps, found.n_rounds, found.exact_effort
    (2, 115, 2)
    """
    eps, cost = positive("eps", eps), COSTS[one_of("minimise", minimise, tuple(COSTS))]
    facts = problem if isinstance(problem, Constants) else constants(problem, algorithm, start)
    stand_in: Any = problem if problem is not facts else Quadratic(
        np.ones(facts.n_clients or 1), np.zeros((facts.n_clients or 1, facts.dim)), facts.weights)
    smallest = with_step(algorithm, _range(facts, algorithm)[0], True)
    recursion(facts, smallest, hessian_smoothness)  # what is wrong with the arguments is said here
    federated = isinstance(algorithm, Federated)
    counts = _counts(local_steps) if federated else [1]
    best: RecursionPlan | None = None
    teller, tried = Teller("plan_by_recursion", len(counts), one_of("progress", progress, (True, False))), []
    for done, count in enumerate(counts):
        one = with_local_steps(algorithm, count)
        teller.tell(done, f"next local_steps={count}")
        found = _fewest(facts, one, eps, hessian_smoothness)
        if found is None:
            continue
        size, rounds = found
        tried.append((count, size, rounds))
        chosen = with_step(one, size, True)
        effort = chosen.costs(stand_in, rounds)[cost]
        if best is None or effort < best.effort:
            best = RecursionPlan(chosen, rounds, eps, minimise, effort, ())
    if best is None:
        return None
    exact = None if problem is facts else _least(problem, algorithm, counts, eps, start, cost)
    return replace(best, tried=tuple(tried), exact_effort=exact)


def with_local_steps(algorithm: Any, count: int) -> Any:
    """The algorithm with another number of local steps, where it has one."""
    changed: Any = algorithm
    return replace(changed, local_steps=count) if isinstance(algorithm, Federated) else algorithm


def _counts(local_steps: Any) -> list[int]:
    """Numbers of local steps to try, at least one."""
    counts = [whole("local_steps", one, 1) for one in whole_numbers("local_steps", local_steps).tolist()]
    if not counts:
        raise ValueError(f"local_steps={local_steps!r} must have at least one number to try")
    return counts


def _range(facts: Constants, algorithm: Any) -> tuple[float, float]:
    """The smallest and the largest step size tried."""
    largest = largest_step(facts, algorithm)
    return (SMALLEST_SQUARE if isinstance(algorithm, DESGHMC) else SMALLEST) * largest, largest


def _fewest(facts: Constants, algorithm: Any, eps: float, M: float | None) -> tuple[float, int] | None:
    """The step size with the fewest rounds to eps, and those."""
    def limit(size: float) -> float:
        try:
            found = floor(recursion(facts, with_step(algorithm, size, True), M))
        except ValueError:  # the algorithm excludes the step size, or the bound has no value there
            return np.inf
        return np.inf if found is None else found

    first, last = _range(facts, algorithm)
    if limit(first) >= eps:
        return None
    largest = math.exp(_bisected(limit, math.log(first), math.log(last), eps))
    rounds: dict[float, int] = {}  # of those that need more than the best, fewer than they need
    first, last = (share * largest for share in SHARES)
    for _ in range(STAGES):
        for size in np.linspace(first, last, POINTS)[::-1].tolist():
            if size in rounds:
                continue
            needed = first_round(recursion(facts, with_step(algorithm, size, True), M), eps,
                                 enough=min(rounds.values(), default=math.inf))
            if needed is not None:
                rounds[size] = needed
        if not rounds:
            return None
        best, order = min(rounds, key=lambda size: (rounds[size], -size)), sorted(rounds)
        place = order.index(best)
        first, last = order[max(place - 1, 0)], order[min(place + 1, len(order) - 1)]
    return best, rounds[best]


def _bisected(limit: Callable[[float], float], low: float, high: float, eps: float) -> float:
    """The logarithm of the largest step size with a limit below eps, by `BISECTIONS` of [low, high].

    Limits rise with the step size, so that what secants find first decides most of the bisections.
    """
    good, bad = (low, limit(math.exp(low))), (high, limit(math.exp(high)))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        for share in (NEAR, 1.0):
            if not good[0] < middle < bad[0]:
                break
            tried = middle
            if share < 1.0 and 0.0 < good[1] < eps < bad[1] < math.inf:
                line = math.log(eps / good[1]) / math.log(bad[1] / good[1])
                guess = good[0] + line * (bad[0] - good[0])
                tried = guess + share * (middle - guess)
            value = limit(math.exp(tried))
            good, bad = ((tried, value), bad) if value < eps else (good, (tried, value))
        below = middle <= good[0] or bad[1] < eps
        low, high = (middle, high) if below else (low, middle)
    return low


def _least(problem: Any, algorithm: Any, counts: Sequence[int], eps: float, start: Any,
           cost: str) -> int | None:
    """The least effort to eps by exact laws, over local steps and step sizes; None where there is none."""
    efforts = []
    for count in counts:
        one = with_local_steps(algorithm, count)
        try:
            found = best_step_size(problem, one, eps, start=start, keep_momentum=True)
        except ValueError:  # no exact law
            continue
        if found is not None:
            efforts.append(int(with_step(one, found.step_size, True).costs(problem, found.n_rounds)[cost]))
    return min(efforts, default=None)
