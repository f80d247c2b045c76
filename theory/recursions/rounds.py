"""Rounds of a recursion one after the other, its parts, and bounds of very many rounds.

The state of a recursion is a list of squares, of which the first is E >= W2^2. A round takes x to F(x),
which is increasing and jointly concave: it is built from (sum_i sqrt(y_i))^2, minima and linear maps of the
squares. So F lies below its tangent T at any point x_0, and F(F(x)) <= F(T(x)) <= T(T(x)), and so on: powers
of the affine T bound many rounds at once. A new tangent is taken wherever the old one has become loose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from .langevin import Moved, Step

LARGEST_WORK = 500_000
"""Largest number of local steps that are followed one by one, which takes a few seconds."""
LONGEST = 5_000
"""Most local steps of a round."""
FIRST = 200
"""Rounds that are, before tangents are taken."""
LOOSE = 0.01
"""How much of what a round changes a tangent may be off before the next is taken."""
NOTHING = 1e-60
"""Of the largest entry or the scale of a state, for an entry that is 0."""
TINY = 1e-30
"""Imaginary part by which derivatives are taken, without loss of digits."""


class Recursion:
    """What the functions of this room ask for; a recursion says how it begins and what a round does."""

    names: tuple[str, ...] = ()
    """Parts of E, "initialization" first."""

    @property
    def work(self) -> int:
        """Local steps of a round."""
        return 1

    @property
    def constant(self) -> bool:
        """Whether all rounds are the same but for what `given` says."""
        return True

    @property
    def kept(self) -> float:
        """The least share of E that a round leaves."""
        return 1.0

    def begin(self) -> list[float]:
        """The state before round 0."""

    def given(self, number: int, since: int = 0) -> Any:
        """What round `number` depends on besides the state; with `since`, at least that of all from it on."""

    def round(self, state: Sequence[Any], given: Any) -> tuple[list[Moved], list[Step]]:
        """What becomes of the state in a round, and the steps that E has made."""

    def moves(self, state: Sequence[Any], given: Any) -> list[Moved]:
        """What becomes of the state in a round; there may be a quicker way than by `round`."""
        return self.round(state, given)[0]

    def ahead(self, state: list[float], given: Any) -> list[float]:
        """The state one round later; there may be a quicker way than by `round`."""
        return [one.after for one in self.round(state, given)[0]]

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """The bound's terms at communication `number`: parts of E over its root."""
        return over_root(parts)


def over_root(parts: dict[str, float]) -> dict[str, float]:
    """Each part over the root of their sum, to which the results add up."""
    whole = sum(parts.values()) ** 0.5
    return {name: part / whole if whole else 0.0 for name, part in parts.items()}


class Moving(NamedTuple):
    """State and parts of E after so many rounds."""

    number: int
    state: list[float]
    parts: dict[str, float]


def evaluate(recursion: Recursion, rounds: np.ndarray) -> dict[str, Array]:
    """The bound's terms at increasing recorded rounds, each (n,)."""
    last = int(rounds[-1])
    if recursion.work > LONGEST:
        raise ValueError(f"local_steps times leapfrog_steps={recursion.work} must be at most {LONGEST}: "
                         "every step of a round is evaluated")
    many = last * recursion.work > LARGEST_WORK
    if many and not recursion.constant:
        raise ValueError(f"n_rounds={last} of {recursion.work} local steps whose sizes change would be gone "
                         f"through one by one; they must be at most {LARGEST_WORK} in all")
    state = recursion.begin()
    now = Moving(0, state, {**dict.fromkeys(recursion.names, 0.0), "initialization": state[0]})
    found = [recursion.terms(now.state, now.parts, 0)] if rounds[0] == 0 else []
    for goal in (int(number) for number in rounds if number > 0):
        while now.number < goal:
            now = _band(recursion, now, goal) if many and now.number >= FIRST else step(recursion, now)
            if not np.isfinite(now.state).all():  # a bound that grows
                raise OverflowError(f"the recursion leaves the range of float64 by round {now.number}")
        found.append(recursion.terms(now.state, now.parts, goal))
    return {name: np.array([terms[name] for terms in found]) for name in found[0]}


def step(recursion: Recursion, now: Moving) -> Moving:
    """One round."""
    moved, steps = recursion.round(now.state, recursion.given(now.number))
    parts = now.parts
    for one in steps:
        parts = {name: one.factor * part + one.added.get(name, 0.0) for name, part in parts.items()}
    return Moving(now.number + 1, [one.after for one in moved], parts)


class Tangent(NamedTuple):
    """x -> x + D (x - origin) + shift."""

    origin: Array
    deviation: Array
    shift: Array

    def twice(self) -> Tangent:
        """Applied two times."""
        return Tangent(self.origin, 2.0 * self.deviation + self.deviation @ self.deviation,
                       2.0 * self.shift + self.deviation @ self.shift)

    def change(self, state: Array) -> Array:
        """What it adds to a state."""
        return self.deviation @ (state - self.origin) + self.shift


def changes(recursion: Recursion, state: Array, given: Any) -> Array:
    """What a round adds to a state."""
    return np.array([one.change for one in recursion.moves(state.tolist(), given)])


def tangent(recursion: Recursion, state: Array, given: Any) -> Tangent:
    """That of a round at this state, with the digits of its changes."""
    columns = []
    for i, x in enumerate(state.tolist()):
        moved: list[Any] = state.tolist()
        moved[i] = complex(x, TINY * x)
        columns.append([complex(one.change).imag / (TINY * x) for one in recursion.moves(moved, given)])
    return Tangent(state, np.array(columns).T, changes(recursion, state, given))


def lifted(state: Any) -> Array:
    """The state without zeros, where roots have no tangents: larger, so that what is bounded stays so."""
    found = np.array(state)
    return np.maximum(found, NOTHING * found.max())


def powers_of(recursion: Recursion, start: Array, given: Any, most: int, tried: int = 0,
              loose: float = LOOSE) -> list[Tangent]:
    """The tangent at a state applied 1, 2, 4, ... times: as often as it is good for, at most `most`.

    What is good for `tried` doublings, or fewer where those are too many, is good for all below.
    """
    once = tangent(recursion, start, given)

    def good(twice: Tangent) -> bool:
        after = np.maximum(start + twice.change(start), 0.0)  # what vanishes may be rounded below
        asked, real = once.change(after), changes(recursion, after, given)
        # what follows others fast hardly changes: then its own rate says what an error comes to
        own = np.abs(once.deviation.diagonal()) * np.minimum(np.abs(after - start), after)
        rounding = 1e-14 * after + 1e-32 * after.max()  # the root of what is smaller is rounding too
        return bool((asked - real <= loose * np.maximum(np.abs(real), own) + rounding).all())

    powers = [once]
    while len(powers) <= tried and 2 << (len(powers) - 1) <= most:
        powers.append(powers[-1].twice())
    while len(powers) > 1 and not good(powers[-1]):
        powers.pop()
    while len(powers) > tried and 2 << (len(powers) - 1) <= most:
        twice = powers[-1].twice()
        if not good(twice):
            break
        powers.append(twice)
    return powers


def _band(recursion: Recursion, now: Moving, goal: int) -> Moving:
    """As many rounds as one tangent is good for, at most up to `goal`."""
    given, start = recursion.given(goal - 1, now.number), lifted(now.state)
    powers = powers_of(recursion, start, given, goal - now.number)
    count, state = 1 << (len(powers) - 1), np.maximum(start + powers[-1].change(start), 0.0).tolist()
    return Moving(now.number + count, state, shares(recursion, now, given, count, state[0]))


def shares(recursion: Recursion, now: Moving, given: Any, count: int, total: float) -> dict[str, float]:
    """Parts of `total` after so many equal rounds."""
    factor, added = 1.0, dict.fromkeys(recursion.names, 0.0)
    for one in recursion.round(now.state, given)[1]:
        factor *= one.factor
        added = {name: one.factor * part + one.added.get(name, 0.0) for name, part in added.items()}
    left = factor**count
    times = count if factor == 1.0 else (1.0 - left) / (1.0 - factor)
    parts = {name: left * now.parts[name] + times * added[name] for name in recursion.names}
    scale = total / sum(parts.values())
    return {name: scale * part for name, part in parts.items()}
