"""Points of the unit cube and the instances they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from ..facts.constants_of_problem import Constants, constants
from .classes import ProblemClass
from .cube import Cube
from .forms import Draft, Form
from .limits import StepLimits
from .values import Instance

SMALLEST_STEP = 1e-4
"""Of the largest step size."""
CORNERS = 6
"""Of so many coordinates all corners are tried before a search; of the others both ends together."""
AT_CORNERS = ("curvature", "step_size", "angle")
MOST_UNKNOWNS = 64


@dataclass
class Maker:
    """Instances of a class for a form; `limits` of a theorem, None for a quantity without one."""

    cls: ProblemClass
    form: Form
    limits: StepLimits | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        cube = Cube()
        draft = self.form.body(cube, self.cls)
        self._read(cube, draft)
        self.names = tuple(cube.names)
        if self.cls.step_size is None and draft.has_step and self.limits is None:
            raise ValueError("step_size=None of the problem class must be given for a quantity without a "
                             "theorem: no hypothesis limits it")
        if self.size > MOST_UNKNOWNS:
            raise ValueError(f"n_clients={self.cls.n_clients} in dim={self.cls.dim} make {self.size} "
                             f"unknowns; they must be at most {MOST_UNKNOWNS}: beyond, no search finds its "
                             "way")

    @property
    def size(self) -> int:
        """Unknowns."""
        return len(self.names)

    def _read(self, cube: Cube, draft: Draft) -> tuple[int, float]:
        """Rounds, and the step size or its share of the largest."""
        rounds = cube.pick("n_rounds", self.cls.n_rounds)
        if not draft.has_step:
            return rounds, 1.0
        low, high = (SMALLEST_STEP, 1.0) if self.cls.step_size is None else self.cls.step_size
        return rounds, cube.log("step_size", low, high)

    def __call__(self, point: Any, factor: float = 1.0) -> Instance:
        """The instance of a point (p,) of the cube, its step size times a factor."""
        cube = Cube(point)
        draft = self.form.body(cube, self.cls)
        rounds, size = self._read(cube, draft)
        known = None
        if self.limits is not None:
            found = constants(draft.problem, draft.make(draft.largest), draft.start)
            known = _of_class(self.cls, found)
            if draft.has_step and self.cls.step_size is None:
                size *= self.limits.largest(draft, found if known is None else known, 1)
        return Instance(draft.problem, draft.make(factor * size), draft.start, rounds, known)

    def corners(self) -> Iterator[Array]:
        """Points at which a class must be within hypotheses, and stable, if it is anywhere."""
        axes = [i for i, name in enumerate(self.names) if name in AT_CORNERS][:CORNERS]
        for ends in product((0.0, 1.0), repeat=len(axes)):
            for rest in (0.0, 0.5, 1.0):
                point = np.full(self.size, rest)
                point[axes] = ends
                yield point


def _of_class(cls: ProblemClass, found: Constants) -> Constants | None:
    """Constants with the curvatures of the class, where bounds are told these; else None."""
    if cls.constants == "instance":
        return None
    low, high = cls.curvatures
    return replace(found, strong_convexity=low, smoothness=high)


def told(cls: ProblemClass, problem: Any, algorithm: Any, start: Any) -> Constants | None:
    """What a bound is told on an instance of a class, where it is not what `theory.constants` finds."""
    return None if cls.constants == "instance" else _of_class(cls, constants(problem, algorithm, start))
