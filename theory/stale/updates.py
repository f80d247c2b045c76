"""One update of stale SGLD as a map of squares, and many of one age."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..recursions.federated import over_root
from ..recursions.langevin import Moved, Potential, Step, average_step, coupled_step, root

NAMES = ("initialization", "staleness", "discretization", "gradient_noise")


@dataclass(frozen=True)
class Updates:
    """One update of size h; the state is the square of e >= ||theta - Y||.

    As a recursion of `theory.recursions` its rounds are updates of the oldest age, which settle.
    """

    f: Potential
    h: float
    noise: float
    oldest: int
    start: float

    constant = True
    work = 1
    names = NAMES

    def wandering(self, age: int) -> float:
        """D, the change of the diffusion's gradient over the age, integrated over a step."""
        known = self._wandering.get(age)
        if known is None:
            f, h = self.f, self.h
            slope_sq = f.dim * f.smoothness**2
            known = self._wandering[age] = min(math.sqrt(2.0 * slope_sq * h**3 * (age + 1.0 / 3.0)),
                                               h * math.sqrt(2.0 * f.smoothness * f.dim))
        return known

    @cached_property
    def _wandering(self) -> dict[int, float]:
        return {}

    def after(self, e: Any, lag: Any, age: int) -> Step:
        """What an update makes of e^2; `lag` >= ||(theta - Y) now - (theta - Y) of the age||."""
        if age == 0:
            free = average_step if self.oldest == 0 else coupled_step  # then nothing compares two times
            step = free(e * e, 0.0, self.h, self.f, self.noise)
            return Step(step.change, step.factor, {"staleness": 0.0, **step.added})
        h, f, D = self.h, self.f, self.wandering(age)
        loss, late, noise = f.loss(self.h), h * f.smoothness * lag, h * h * self.noise
        rho, less = 1.0 + loss, loss * e + late + D
        A = rho * e + late
        return Step(less * (2.0 * e + less) + noise, rho * rho,
                    {"staleness": late * (A + rho * e), "discretization": D * (2.0 * A + D),
                     "gradient_noise": noise})

    def move(self, e_old: Any, age: int) -> Any:
        """How far an update moves theta - Y apart from its gradient noise."""
        return self.h * self.f.smoothness * e_old + self.wandering(age)

    def behind(self, moved: Any, age: int) -> Any:
        """The lag of an age over which the updates moved so far in all."""
        return moved + self.h * math.sqrt(self.noise * age)

    # as a recursion whose ages are all the oldest

    @property
    def scale(self) -> float:
        """A size that the state has in the long run."""
        return self.f.reach**2

    @property
    def kept(self) -> float:
        """The least share of e^2 that an update leaves."""
        return self.f.kept(self.h)

    def begin(self) -> list[float]:
        """The state before the first update."""
        return [self.start**2]

    def given(self, number: int, since: int = 0) -> None:
        """Nothing."""

    def round(self, state: Sequence[Any], given: None) -> tuple[list[Moved], list[Step]]:
        """An update after many of the same age, all with this e."""
        e = root(state[0])
        step = self.after(e, self.behind(self.oldest * self.move(e, self.oldest), self.oldest), self.oldest)
        return [step.of(state[0])], [step]

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """Parts of e^2 over their root."""
        return over_root(parts)


@dataclass(frozen=True)
class Window(Updates):
    """Updates whose ages are all the oldest, t; the state are the squares of e_l, ..., e_{l-2t}.

    Before the first update all of them are e_0: so the first t updates, whose gradients are all taken at the
    start, are bounded from above.
    """

    def begin(self) -> list[float]:
        """The state before the first update."""
        return [self.start**2] * (2 * self.oldest + 1)

    def round(self, state: Sequence[Any], given: None) -> tuple[list[Moved], list[Step]]:
        """One update."""
        lag = sum((self.move(root(x), self.oldest) for x in state[self.oldest + 1:]), 0.0)
        step = self.after(root(state[0]), self.behind(lag, self.oldest), self.oldest)
        older = [Moved(newer - x, newer) for newer, x in pairwise(state)]
        return [step.of(state[0]), *older], [step]


def squares(one: Updates, ages: np.ndarray) -> np.ndarray:
    """Parts of e^2 before every update and after the last, (L + 1, 4), for one schedule of ages."""
    e, moved = [one.start], [0.0]
    parts = [one.start**2, 0.0, 0.0, 0.0]
    found = [parts]
    for number, age in enumerate(ages.tolist()):
        old = number - age
        step = one.after(e[-1], one.behind(moved[number] - moved[old], age), age)
        moved.append(moved[-1] + one.move(e[old], age))
        parts = [step.factor * part + step.added.get(name, 0.0)
                 for name, part in zip(NAMES, parts, strict=True)]
        e.append(math.sqrt(sum(parts)))
        found.append(parts)
    return np.array(found)
