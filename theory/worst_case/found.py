"""What a search found: a value, the instance that attains it, and whether the restarts agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..declare.registry import theorems
from ..facts.constants_of_problem import constants
from ..judge.examining import both_sides, examine
from ..judge.verdict import Verdict
from .classes import ProblemClass
from .values import Instance, Value, of_quantity, of_theorem

AGREE = 0.01
"""Restarts agree where the third best is so near the best."""
ENOUGH = 100
"""Evaluations per unknown, below which a search has not looked everywhere."""
SAME = 1e-9
"""Relative difference to which a value comes again."""


@dataclass(frozen=True, eq=False)
class Found:
    """The largest value that a search found, and the instance that attains it.

    Attributes
    ----------
    aim : str
        The theorem's id, or the quantity.
    variant, objective : str
        "" for quantities.
    value : float
    problem, algorithm, start, n_rounds
        The instance.
    known : Constants or None
        What the bound was told, where it is not what `theory.constants` finds.
    round : int or None
        At which round the value is attained; None for what is stationary.
    binding : str
        The bound's largest term there.
    problem_class : ProblemClass
    budget, evaluations, seed : int
    parts : tuple of (name, value)
        The best of DIRECT, and of each restart.
    lost : int
        Evaluations without a value: outside the hypotheses, or refused.
    interrupted : bool

    Examples
    --------
    >>> cls = theory.worst_case.ProblemClass(condition=10.0)
    >>> found = theory.worst_case.search("fa_hmc.divergence_bound", cls, budget=400)
    >>> round(found.value, 6), found.verify().holds, found.problem.n_clients
    (0.5, True, 2)
    """

    aim: str
    variant: str
    objective: str
    value: float
    problem: Any
    algorithm: Any
    start: Any
    n_rounds: int
    known: Any
    round: int | None
    binding: str
    problem_class: ProblemClass
    budget: int
    evaluations: int
    seed: int
    parts: tuple[tuple[str, float], ...]
    lost: int = 0
    interrupted: bool = False
    unknowns: int = 0

    @property
    def spread(self) -> tuple[float, ...]:
        """The best of every restart, which a reader compares."""
        return tuple(value for name, value in self.parts if name != "direct")

    @property
    def agreed(self) -> bool:
        """Whether three parts came within 1 percent of the best, with 100 evaluations per unknown.

        Even then it is found, not proved, that nothing in the class is worse; `certify` proves.
        """
        best = sorted((value for _, value in self.parts), reverse=True)
        near = len(best) >= 3 and best[2] >= self.value - AGREE * abs(self.value)
        return near and self.evaluations >= ENOUGH * self.unknowns and not self.interrupted

    def _rounding(self) -> float:
        """What rounding may do to the exact quantity here, relative to it: it differs between processors."""
        if not self.variant:
            return 0.0
        entry = next(one for one in theorems() if one.id == self.aim)
        facts = constants(self.problem, self.algorithm, self.start) if self.known is None else self.known
        _, measured = both_sides(entry, self.problem, self.algorithm, self.n_rounds, facts, start=self.start,
                                 variant=self.variant)
        size = float(np.abs(measured.value).max())
        return measured.rounding * max(measured.scale, size) / size if size > 0.0 else 0.0

    def verify(self) -> Verdict | float:
        """The instance again: the verdict of `theory.examine` on it, or the quantity.

        Raises
        ------
        ValueError
            Where another value comes out than was found, or the instance is outside the hypotheses.
        """
        again = evaluate(self.aim, self.variant, self.objective, Instance(
            self.problem, self.algorithm, self.start, self.n_rounds, self.known))
        if not again.inside:
            raise ValueError(f"aim={self.aim!r}: the instance is outside the hypotheses")
        same = max(SAME, self._rounding())
        if not abs(again.value - self.value) <= same * abs(self.value):
            raise ValueError(f"value={self.value!r} of {self.aim} comes out as {again.value!r}; it must be "
                             f"the same to {same:g}")
        if not self.variant:
            return again.value
        return examine(self.aim, self.problem, self.algorithm, self.n_rounds, start=self.start,
                       variant=self.variant, known=self.known)

    def __repr__(self) -> str:
        what = f"{self.aim} ({self.variant}, {self.objective})" if self.variant else self.aim
        state = ("interrupted" if self.interrupted else "the restarts agree" if self.agreed
                 else "the restarts do not agree, or were few")
        return (f"Found({what}: {self.value:.6g} in {self.evaluations} evaluations, {state}; "
                f"binding: {self.binding or '-'})")


def evaluate(aim: str, variant: str, objective: str, at: Instance) -> Value:
    """What an instance comes to."""
    if not variant:
        return of_quantity(aim.rpartition(".")[2], at)
    return of_theorem(next(entry for entry in theorems() if entry.id == aim), variant, objective, at)
