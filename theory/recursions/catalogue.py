"""Which recursion is about an algorithm, and how many rounds it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..facts import Constants, refuse_off_target
from .rounds import FIRST, Moving, Recursion, lifted, powers_of, shares, step

Maker = TypeVar("Maker", bound=Callable[..., Any])
_MAKERS: dict[type, Callable[..., Any]] = {}


def recursion_of(algorithm: type) -> Callable[[Maker], Maker]:
    """Decorator: this function makes the recursion of W2 for algorithms of this class."""
    def register(make: Maker) -> Maker:
        _MAKERS[algorithm] = make
        return make

    return register


def maker_of(algorithm: Any) -> Callable[..., Any]:
    """What makes its recursion, or a ValueError where there is none by rounds."""
    for cls in type(algorithm).__mro__:
        if cls in _MAKERS:
            return _MAKERS[cls]
    raise ValueError(f"algorithm={algorithm!r} has no recursion by rounds to plan with; there is one for "
                     f"{', '.join(sorted(c.__name__ for c in _MAKERS))}")


def recursion(constants: Constants, algorithm: Any, hessian_smoothness: float | None = None) -> Any:
    """The recursion of W2 of the average; refused where the gradients are not those of the target."""
    refuse_off_target(constants, "the recursion of W2")
    return maker_of(algorithm)(constants, algorithm, hessian_smoothness)


def first_round(one: Recursion, eps: float, most: int = 10**15) -> int | None:
    """The first round at which the bound is at most eps, from above where tangents are taken; None beyond.

    A bound that is below eps in passing only, and settles above it, may be leapt over.
    """
    start = one.begin()
    now = Moving(0, start, {**dict.fromkeys(one.names, 0.0), "initialization": start[0]})
    with np.errstate(over="ignore", invalid="ignore"):  # a bound that grows
        while now.number <= most and math.isfinite(now.state[0]):
            if _value(one, now.state, now.parts, now.number) <= eps:
                return now.number
            now = step(one, now) if now.number < FIRST else _leap(one, now, eps, most)
    return None


def _value(one: Recursion, state: list[float], parts: dict[str, float], number: int) -> float:
    return sum(one.terms(state, parts, number).values())


def _leap(one: Recursion, now: Moving, eps: float, most: int) -> Moving:
    """Rounds by one tangent, no more than lead to eps."""
    given, begin = one.given(most, now.number), lifted(now.state)
    powers = powers_of(one, begin, given, most + 1 - now.number)

    def after(count: int) -> Moving:
        state = begin
        for bit, power in enumerate(powers):
            if count >> bit & 1:
                state = state + power.change(state)
        state = np.maximum(state, 0.0)
        return Moving(now.number + count, state.tolist(), shares(one, now, given, count, float(state[0])))

    count, last = 0, len(powers) - 1
    far = after(1 << last)
    if _value(one, far.state, far.parts, far.number) > eps:
        return far
    for bit in reversed(range(last)):  # the most rounds that do not lead there
        tried = after(count | 1 << bit)
        if _value(one, tried.state, tried.parts, tried.number) > eps:
            count |= 1 << bit
    return after(count + 1)
