"""The step size with the fewest rounds to an accuracy under one bound, by what the bound says alone.

Larger steps forget the start faster and settle higher. So the largest step size is looked for that is within
the hypotheses and whose limit is below eps, and below it the one whose bound is first within eps for good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.algorithms.stale import StaleSGHMC
from fedsim.interfaces import Algorithm

from ..declare.bound import ROUNDING, Bound
from ..declare.registry import Theorem
from ..facts import NO_BEND, Constants
from ..recursions.catalogue import first_within, recursion

MOST = 2**52
"""Rounds that are counted."""
ROUNDS = np.unique(np.append(0, np.geomspace(1.0, MOST, 65).astype(np.int64)))
"""Looked at first; then as many between two of them."""
CLOSE = 1e-3
"""Ratio of rounds between which a bound is taken to fall geometrically, while step sizes are compared."""
BEYOND = 4.0
"""Times `largest_step`, from where step sizes are tried downwards."""
STRIDES = 10.0**-0.5, 0.95
"""From one step size tried to the next; the second where the first finds none, over `WINDOW`."""
WINDOW = 1e-4
SMALLEST = 1e-7
"""Share of the largest step size tried, for a recursion, whose limit needs digits."""
SMALLEST_SQUARE = 3e-4
"""The same where its square is the Langevin step, and velocities must keep digits."""
TINIEST = 1e-300
RATIO, POINTS = 0.75, 13
"""Step sizes among which the best is looked for before it is refined."""
GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))
SINGLY, SINGLE_STEPS, LOOSE = 5_000, 50_000, 1e-3
"""Rounds and local steps of a recursion that are counted one by one, and how tight tangents are beyond."""


class OutOfReach(ValueError):
    """No step size within the hypotheses has a limit below eps, or reaches it within 2^52 rounds."""


def largest_step(facts: Constants, algorithm: Algorithm) -> float:
    """A step size of the largest order: 1/L, or lengths whose square is of that size."""
    if isinstance(algorithm, FAHMC):
        return 2.0 / (math.sqrt(facts.smoothness) * algorithm.leapfrog_steps)
    root = isinstance(algorithm, (DESGHMC, StaleSGHMC))
    return float(facts.smoothness ** (-0.5 if root else -1.0))


def refuse_unknown_bend(bound: Bound) -> None:
    """Raise ValueError where a bound asks for a hessian_smoothness that nobody has told."""
    if any(NO_BEND in words for words in bound.violated):
        raise ValueError(f"hessian_smoothness=None: {NO_BEND}, and no step size is within the hypotheses of "
                         f"{bound.theorem}; pass hessian_smoothness=..., 0 for quadratics")


@dataclass
class Promise:
    """What a theorem promises about an algorithm, step size by step size.

    Attributes
    ----------
    chosen : callable(step_size) -> algorithm
    given : further arguments of the theorem
    refusal : the last reason why there was no promise at a step size
    """

    entry: Theorem
    facts: Constants
    chosen: Callable[[float], Any]
    given: dict[str, Any]
    refusal: ValueError | None = None

    @property
    def by_rounds(self) -> bool:
        """A recursion, which is followed by tangents: its bound goes through many rounds one by one."""
        return self.entry.id.endswith(".w2_recursion")

    def at(self, size: float, rounds: Any = (0,)) -> Bound:
        """The bound at rounds that rise, and at 0."""
        return self.entry.function(self.facts, self.chosen(size), n_rounds=int(rounds[-1]), record=rounds,
                                   **self.given)

    def asked(self, size: float, rounds: Any = (0,)) -> Bound | None:
        """The bound where all hypotheses hold and it has a value and a limit; else None, and a `refusal`."""
        try:
            bound = self.at(size, rounds)
        except ValueError as error:  # the algorithm excludes the step size, or the bound has no value there
            self.refusal = error
            return None
        refuse_unknown_bend(bound)
        if bound.violated:
            self.refusal = ValueError(f"{self.entry.id} has hypotheses that fail at every step size tried: "
                                      f"{'; '.join(bound.violated)}")
        elif bound.floor is None:
            self.refusal = ValueError(f"theorem={self.entry.id!r} has no limit (floor) to plan with")
        return None if bound.violated or bound.floor is None else bound

    def limit(self, size: float) -> float:
        """Limit of the bound; infinite where it promises nothing."""
        bound = self.asked(size)
        return math.inf if bound is None or bound.floor is None else bound.floor

    def rounds(self, size: float, eps: float, enough: float = math.inf) -> float:
        """From where on the bound is at most eps, as a number between rounds; infinite beyond 2^52.

        Where more than `enough` are needed, some number above it.
        """
        if self.by_rounds:
            found = self._followed(size, eps, enough=enough)
            return math.inf if found is None else found[0]
        before, after, high, low = self.bracket(size, eps, CLOSE)
        if not before < after < math.inf:
            return after
        return before + (after - before) * (math.log(high / eps) / math.log(high / low) if low > 0.0 else 1.0)

    def bracket(self, size: float, eps: float, close: float = 0.0) -> tuple[float, float, float, float]:
        """The last round above eps and the one after it, or rounds `close` to them, and the bound there."""
        rounds, before, after, high, low = ROUNDS, 0, MOST, math.inf, 0.0
        while after - before > max(1.0, close * before):
            bound = self.asked(size, rounds)
            if bound is None or bound.floor is None or not bound.floor < eps:
                return MOST, math.inf, math.inf, math.inf
            above = np.flatnonzero((bound.value > eps) & (bound.rounds >= before))
            if not len(above):
                return 0, 0, math.inf, float(bound.value[0])
            if (place := int(above[-1])) + 1 == len(bound.rounds):
                return MOST, math.inf, math.inf, math.inf
            before, after = bound.rounds[place:place + 2].tolist()
            high, low = bound.value[place:place + 2].tolist()
            rounds = np.unique(np.linspace(before, after, len(ROUNDS)).astype(np.int64))
        return before, after, high, low

    def counted(self, size: float, eps: float) -> tuple[int, float]:
        """The first round from which on the bound is at most eps, and the bound there."""
        if self.by_rounds:
            work = recursion(self.facts, self.chosen(size), self.given.get("hessian_smoothness")).work
            found = self._followed(size, (1.0 - 1e-12) * eps, singly=min(SINGLY, SINGLE_STEPS // work),
                                   loose=LOOSE, for_good=True)
            found = found and self._checked(size, eps, *found, work)
        else:
            _, after, _, low = self.bracket(size, eps)
            found = None if after == math.inf else (int(after), low)
        if found is None:
            raise OutOfReach(f"eps={eps!r} is too small: more than 2^52 rounds of {self.entry.id}")
        return found

    def _checked(self, size: float, eps: float, number: int, value: float, work: int) -> tuple[int, float]:
        """The same by the bound itself, which may be below its recursion (of stale gradients)."""
        above: Any = ()
        while 0 < number * work <= SINGLY and not len(above):
            begin = max(number - 2 - number // 100, 0)
            bound = self.at(size, np.arange(begin, number + 1))
            above = np.flatnonzero((bound.value > eps) & (bound.rounds >= begin))
            place = int(above[-1]) + 1 if len(above) else int(begin > 0)
            number, value = int(bound.rounds[place]), float(bound.value[place])
        return number, value

    def _followed(self, size: float, eps: float, **how: Any) -> tuple[int, float] | None:
        """The first round of a recursion within eps, and the bound there."""
        return first_within(recursion(self.facts, self.chosen(size), self.given.get("hessian_smoothness")),
                            eps, **how)


def largest_below(promise: Promise, eps: float, high: float, low: float) -> tuple[float, bool]:
    """The largest step size tried in [low, high] with a limit below eps, and whether hypotheses end there.

    Where they do not it is known to `CLOSE`; the limit is not taken to rise with the step size.

    Raises
    ------
    OutOfReach
        Naming eps and the least limit; another ValueError where the theorem has no limit at any step size.
    """
    least = math.inf
    for stride, end in zip(STRIDES, (low, max(low, WINDOW * high)), strict=True):
        size, bad = high, (math.inf, math.inf)
        while size >= end:
            if (found := promise.limit(size)) < eps:
                return refined(promise.limit, eps, size, bad)
            least, bad, size = min(least, found), (size, found), size * stride
    if least == math.inf:
        assert promise.refusal is not None
        raise promise.refusal
    raise OutOfReach(f"eps={eps!r} is too small: within the hypotheses of {promise.entry.id} the limit of "
                     f"the bound is at least {least:.4g} at every step size tried")


def refined(limit: Callable[[float], float], eps: float, good: float, bad: tuple[float, float],
            close: float = CLOSE) -> tuple[float, bool]:
    """The same between a step size whose limit is below eps and a larger one that is not, with its limit."""
    if bad[0] == math.inf:
        return good, True
    while good * (1.0 + close) < bad[0] or bad[1] == math.inf:
        middle = math.sqrt(good) * math.sqrt(bad[0])
        if not good < middle < bad[0]:  # neighbours; hypotheses may be overstepped by their rounding
            return (good / (1.0 + ROUNDING), True) if bad[1] == math.inf else (good, False)
        found = limit(middle)
        good, bad = (middle, bad) if found < eps else (good, (middle, found))
    return good, False


def fewest(promise: Promise, eps: float, high: float, low: float = TINIEST) -> tuple[float, float, bool]:
    """Step size, about how many rounds it needs, and whether it is the largest that the hypotheses allow.

    Raises
    ------
    ValueError
        As `largest_below`.
    """
    top, capped = largest_below(promise, eps, high, low)
    needed: dict[float, float] = {}
    sizes, best = [top, top * RATIO], top  # the second first: what is nearest to the limit takes longest
    while len(needed) < POINTS or (best == min(needed) and best >= low):
        size = sizes.pop() if sizes else min(needed) * RATIO
        needed[size] = promise.rounds(size, eps, min(needed.values(), default=math.inf))
        best = min(needed, key=lambda one: (needed[one], -one))
    least, most = best * RATIO, min(best / RATIO, top)
    while needed[best] > 0.0 and most > least * (1.0 + (2.0 if promise.by_rounds else 0.01) * CLOSE):
        end = most if most * least > best * best else least
        size = best * (end / best) ** GOLDEN
        needed[size] = promise.rounds(size, eps, needed[best])
        out, inner = (best, size) if needed[size] < needed[best] else (size, best)
        least, most = (least, out) if out > inner else (out, most)
        best = inner
    return best, needed[best], capped and best == top
