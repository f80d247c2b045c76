"""The exact side of a statement where there is no exact law, and the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import theory
from theory.declare.registry import named
from tools.search.judge import counts_against


@dataclass(frozen=True)
class Side:
    """What a statement is about, at all its rounds.

    value (n,), less than `slack` wrong; further arguments of the statement. `bend`: it may take a Lipschitz
    constant of f'' too. `rounds` are those of the run, where they are fewer.
    """

    theorem: str
    value: np.ndarray
    slack: float
    given: Mapping[str, Any] = field(default_factory=dict)
    bend: bool = False
    rounds: int | None = None


@dataclass(frozen=True)
class Found:
    """A variant of a statement, its largest ratio, and whether its hypotheses hold and it fails."""

    theorem: str
    variant: str
    within: bool
    fails: bool
    ratio: float


def compare(sides: Iterable[Side], constants: theory.Constants, algorithm: Any, rounds: int,
            bend: float | None = None) -> Iterator[Found]:
    """Every variant that is claimed; where it takes one, with the Lipschitz constant of f'' too."""
    for side in sides:
        entry = named(side.theorem)
        entry.require(algorithm)
        forms: list[dict[str, Any]] = [{}] + ([{"hessian_smoothness": bend}] if side.bend and bend else [])
        for variant in entry.variants:
            if not counts_against(entry, variant):
                continue
            for more in forms:
                bound = entry.function(constants, algorithm, n_rounds=side.rounds or rounds, variant=variant,
                                       **side.given, **more)
                value = side.value[len(side.value) - len(bound.value):]  # some begin at round 1
                verdict = theory.check(bound, np.maximum(value - side.slack, 0.0))
                yield Found(side.theorem, variant, verdict.hypotheses_met,
                            verdict.hypotheses_met and not verdict.holds, verdict.tightness)
