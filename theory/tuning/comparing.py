"""A planned step size beside the best one, both by the exact law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.federated import Federated
from fedsim.interfaces import Algorithm, Problem
from fedsim.settings.validation import UnstableStepSize, shown

from ..declare.registry import named
from ..facts import Constants, constants
from .best import best_step_size, with_step
from .first_round import rounds_to
from .planning import Plan, plan, plan_by_recursion

Rule = Callable[[Constants, Any, float], Plan]
_PLANNERS: dict[type, Rule] = {}


def planner(algorithm: type) -> Callable[[Rule], Rule]:
    """Decorator for what plans by a paper's theorems: (constants, algorithm, eps) -> Plan."""
    def register(function: Rule) -> Rule:
        _PLANNERS[algorithm] = function
        return function

    return register


def _planned(by: Any, facts: Constants, algorithm: Algorithm, eps: float) -> Plan:
    """By the paper's theorems, the recursion, or one theorem; a constant step size, whatever there was."""
    one = with_step(algorithm, algorithm.schedule.largest)
    if by == "paper":
        for cls in type(algorithm).__mro__:
            if cls in _PLANNERS:
                return _PLANNERS[cls](facts, one, eps)
        raise ValueError(f"algorithm={shown(algorithm)} has no planning rule; there is one for "
                         f"{', '.join(sorted(c.__name__ for c in _PLANNERS))}; by='recursion' plans for "
                         "others")
    if by != "recursion":
        return plan(named(by, algorithm, "by"), facts, one, eps)
    found = plan_by_recursion(facts, one, eps, local_steps=one.local_steps if isinstance(
        one, Federated) else 1)
    if found is None:
        raise ValueError(f"eps={eps:g} is below the limit of the recursion at every step size tried")
    return found


@dataclass(frozen=True)
class Comparison:
    """A planned step size beside the best one.

    Attributes
    ----------
    eps : float
    planned_step_size : float
    predicted_rounds : int
        What the bound asks for.
    planned_rounds : int or None
        What that step size really needs; None beyond `max_rounds`, or where it is so small that a step
        cannot be told from standing still in float64.
    best_step_size : float or None
    best_rounds : int or None

    Examples
    --------
    >>> found = theory.tuning.Comparison(0.1, 1e-3, 9000, 300, 1e-2, 30)
    >>> found.prediction_ratio, found.cost, found.price
    (30.0, 10.0, 300.0)
    """

    eps: float
    planned_step_size: float
    predicted_rounds: int
    planned_rounds: int | None
    best_step_size: float | None
    best_rounds: int | None

    @property
    def prediction_ratio(self) -> float:
        """Predicted rounds over rounds really needed at the planned step size (NaN when not reached)."""
        if self.planned_rounds is None:
            return np.nan
        return self.predicted_rounds / max(self.planned_rounds, 1)

    @property
    def price(self) -> float:
        """Rounds that the bound asks for over the fewest by exact laws: what trusting it costs (NaN where
        those are not known)."""
        return np.nan if self.best_rounds is None else self.predicted_rounds / max(self.best_rounds, 1)

    @property
    def cost(self) -> float:
        """Rounds at the planned step size over rounds at the best one (NaN when not reached)."""
        if self.planned_rounds is None or self.best_rounds is None:
            return np.nan
        return max(self.planned_rounds, 1) / max(self.best_rounds, 1)


def compare(problem: Problem, algorithm: Algorithm, eps: float, *, by: str = "paper", start: Any = None,
            max_rounds: int = 2**53, **search: Any) -> Comparison:
    """A planned step size for W2 <= `eps` against the best, both by the exact law.

    Parameters
    ----------
    problem, algorithm, eps, start
        As for `best_step_size`.
    by : "paper", "recursion", or a theorem
        What is planned by: the paper's theorems (`theory.<paper>.plan`), the algorithm's recursion, or a
        bound on W2 as for `plan`.
    max_rounds : int
        For the planned step size, which may need very many.
    **search
        Passed to `best_step_size`.

    Returns
    -------
    Comparison

    Source: none; the plans name theirs.
    Raises: ValueError as for `best_step_size` and as the plan, or where there is none.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.tuning.compare(problem, fs.FALD(0.01), 0.2)
    >>> found.predicted_rounds > found.planned_rounds > found.best_rounds
    True
    """
    facts = constants(problem, algorithm, start)
    found = _planned(by, facts, algorithm, eps)
    try:
        planned = rounds_to(problem, found.algorithm, eps, start=start, max_rounds=max_rounds)
    except UnstableStepSize as error:
        if not found.step_size < error.limit:
            raise
        planned = None  # its contraction rounds to 1
    best = best_step_size(problem, algorithm, eps, start=start, **search)
    return Comparison(eps, found.step_size, found.n_rounds, planned, None if best is None else best.step_size,
                      None if best is None else best.n_rounds)
