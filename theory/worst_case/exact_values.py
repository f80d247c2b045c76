"""What is made as large as possible: a theorem's exact quantity over its bound, or a quantity itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.interfaces import Algorithm, Problem
from fedsim.laws.law import Gaussian

from ..declare.bound import Bound
from ..declare.registry import Theorem
from ..exact import exact_law, stationary_law
from ..facts.constants_of_problem import Constants, constants
from ..judge.checking import Measured
from ..judge.examining import both_sides

OBJECTIVES = ("ratio", "excess", "stationary")
NEGLIGIBLE = 1e-9
"""Of the quantity's scale: a bound below this is rounding, and has no ratio."""
START = "initialization"
"""The term of a bound that the start decides."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem of a class with all that is run on it.

    `known` where a bound is told other constants; a start of one number is a point of one dimension.
    """

    problem: Any
    algorithm: Any
    start: Any
    n_rounds: int = 1
    known: Constants | None = None

    @property
    def facts(self) -> Constants:
        """The constants that bounds are told."""
        return constants(self.problem, self.algorithm, self.start) if self.known is None else self.known

    def sides(self, entry: Theorem, variant: str) -> tuple[Bound, Measured]:
        """A theorem's bound here, and the exact quantity it is about."""
        return both_sides(entry, self.problem, self.algorithm, self.n_rounds, self.facts, start=self.start,
                          variant=variant)


@dataclass(frozen=True)
class Value:
    """What an instance comes to.

    Attributes
    ----------
    value : float
        -inf where there is none.
    inside : bool
        Whether every hypothesis holds.
    round : int or None
        Where it is attained; None for what is stationary.
    binding : str
        The largest term of the bound there, "" where there is no bound.
    """

    value: float
    inside: bool = True
    round: int | None = None
    binding: str = ""


def of_theorem(entry: Theorem, variant: str, objective: str, instance: Instance) -> Value:
    """Exact over bound: at its largest, beyond the start's term, or of the limits (see `search`)."""
    if objective == "stationary":
        problem, algorithm = instance.problem, instance.algorithm
        bound = entry.function(instance.facts, algorithm, n_rounds=0, variant=variant)
        floor, w2 = bound.floor, stationary_w2(problem, algorithm)
        has_ratio = floor is not None and floor > NEGLIGIBLE * w2
        return Value(w2 / floor if has_ratio and floor is not None else -np.inf, bound.hypotheses_hold)
    (bound, measured), beyond_start = instance.sides(entry, variant), objective == "excess"
    _, mine, theirs = np.intersect1d(bound.rounds, measured.rounds, return_indices=True)
    limit, exact = bound.value[mine], measured.value[theirs]
    if beyond_start:
        alone = bound.alone(START)[mine]
        limit, exact = limit - alone, exact - alone
    top, bottom = (exact, limit) if bound.kind == "upper" else (limit, exact)
    scale = max(measured.scale, float(np.abs(measured.value).max()))
    told = bottom > NEGLIGIBLE * scale
    if not told.any():
        return Value(-np.inf, bound.hypotheses_hold)
    ratio = np.where(told, top, -np.inf) / np.where(told, bottom, 1.0)
    worst = int(np.argmax(ratio))
    terms = {name: part[mine][worst] for name, part in bound.terms.items()
             if not (beyond_start and name == START)}
    return Value(float(ratio[worst]), bound.hypotheses_hold, int(bound.rounds[mine][worst]),
                 max(terms, key=lambda name: terms[name]))


def _stationary(problem: Problem, algorithm: Algorithm) -> tuple[Gaussian, Gaussian]:
    return stationary_law(problem, algorithm), algorithm.target(problem)


def stationary_w2(problem: Problem, algorithm: Algorithm) -> float:
    """W2 of the stationary law to the target."""
    law, target = _stationary(problem, algorithm)
    return law.w2(target)


def stationary_bias(problem: Problem, algorithm: Algorithm) -> float:
    """Distance of the stationary mean from the target's."""
    law, target = _stationary(problem, algorithm)
    return float(np.linalg.norm(law.mean - target.mean))


def variance_ratio(problem: Problem, algorithm: Algorithm) -> float:
    """Largest variance of the stationary law over the target's, of all directions."""
    law, target = _stationary(problem, algorithm)
    root = np.linalg.inv(np.linalg.cholesky(np.asarray(target.cov)))
    return float(np.linalg.eigvalsh(root @ law.cov @ root.T)[-1])


STATIONARY: dict[str, Callable[[Any, Any], float]] = {
    "stationary_w2": stationary_w2, "stationary_bias": stationary_bias, "variance_ratio": variance_ratio}
"""Quantities without a theorem, after the name of a form; beside them "w2", at a round from a start."""


def of_quantity(name: str, instance: Instance) -> Value:
    """The quantity itself."""
    if name == "w2":
        last = instance.n_rounds
        start = np.array([instance.start]) if isinstance(instance.start, float) else instance.start
        law = exact_law(instance.problem, instance.algorithm, last, start=start, record=[last])
        return Value(float(law.w2()[-1]), round=last)
    return Value(STATIONARY[name](instance.problem, instance.algorithm))
