"""Which recursion is about an algorithm, and how many rounds it asks for."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from fedsim.hints import shown
from fedsim.interfaces import Algorithm

from ..facts import Constants, refuse_off_target
from .rounds import FIRST, LOOSE, Recursion, lifted, powers_of


@singledispatch
def recursion_of(algorithm: Algorithm, constants: Constants, hessian_smoothness: float | None) -> Any:
    """Make the recursion of W2 that is registered for the algorithm's class."""
    known = sorted(cls.__name__ for cls in recursion_of.registry if cls is not object)
    raise ValueError(f"algorithm={shown(algorithm)} has no recursion by rounds to plan with; there is one "
                     f"for {', '.join(known)}")


def recursion(constants: Constants, algorithm: Algorithm, hessian_smoothness: float | None = None) -> Any:
    """The recursion of W2 of the average; refused where the gradients are not those of the target."""
    refuse_off_target(constants, "the recursion of W2")
    return recursion_of(algorithm, constants, hessian_smoothness)


def first_within(one: Recursion, eps: float, most: int = 10**15, enough: float = math.inf,
                 singly: int = FIRST, loose: float = LOOSE,
                 for_good: bool = False) -> tuple[int, float] | None:
    """The first round at which the bound is at most eps, and the bound there; None beyond `most`.

    From above where tangents are taken: a bound that is below eps in passing only, and settles above it, may
    be leapt over. Where more than `enough` rounds are needed, a number of them is given that is more than
    enough. `singly` rounds are gone through one by one before tangents are taken, which are good while they
    are no more than `loose` off. `for_good`: not where momenta carry it above eps once more.
    """
    number, state, tried = 0, one.begin(), 0
    if (least := _fewest(one, eps)) > enough:
        return least, math.inf
    with np.errstate(over="ignore", invalid="ignore"):  # a bound that grows
        while number <= most and math.isfinite(state[0]):
            if number > enough or (_within(one, state, number, eps) and not (
                    for_good and _leaves(one, state, number, eps))):
                return number, _value(one, state, number)
            if number < singly:
                number, state = number + 1, one.ahead(state, one.given(number))
            else:
                number, state, tried = _leap(one, number, state, eps, most, tried, loose)
    return None


def _fewest(one: Recursion, eps: float) -> int:
    """Rounds that are needed where nothing is ever added to E."""
    share, kept = eps * eps / one.begin()[0], one.kept
    return int(math.log(share) / math.log(kept)) if 0.0 < kept < 1.0 and share < 1.0 else 0


def _within(one: Recursion, state: list[float], number: int, eps: float) -> bool:
    """Whether the bound, which is at least the root of E, is at most eps; its parts are not followed."""
    return state[0] <= eps * eps * (1.0 + 1e-9) and _value(one, state, number) <= eps


def _leaves(one: Recursion, state: list[float], number: int, eps: float) -> bool:
    """Whether the bound is above eps in the next rounds; once no part of the state rises it will not be."""
    for later in range(number, number + FIRST):
        before, state = state, one.ahead(state, one.given(later))
        if not _within(one, state, later + 1, eps):
            return True
        if all(new <= old for new, old in zip(state, before, strict=True)):
            break
    return False


def _value(one: Recursion, state: list[float], number: int) -> float:
    return float(sum(one.terms(state, {"initialization": state[0]}, number).values()))


def _leap(one: Recursion, number: int, state: list[float], eps: float, most: int, tried: int,
          loose: float) -> tuple[int, list[float], int]:
    """Rounds by one tangent, no more than lead to eps; and how often it could be doubled."""
    given, begin = one.given(most, number), lifted(state)
    powers = powers_of(one, begin, given, most + 1 - number, tried, loose)

    def after(count: int) -> tuple[int, list[float]]:
        moved = begin
        for bit, power in enumerate(powers):
            if count >> bit & 1:
                moved = moved + power.change(moved)
        return number + count, np.maximum(moved, 0.0).tolist()

    def above(count: int) -> bool:
        later, moved = after(count)
        return not _within(one, moved, later, eps)

    count, last = 0, len(powers) - 1
    if above(1 << last):
        return *after(1 << last), last
    for bit in reversed(range(last)):  # the most rounds that do not lead there
        if above(count | 1 << bit):
            count |= 1 << bit
    return *after(count + 1), last
