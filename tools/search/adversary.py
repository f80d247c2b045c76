"""A climb towards the largest ratio of one theorem: random points, then a (1+1) evolution with restarts.

Far starts make a ratio of almost one in the first round, by the start alone. So it is climbed three times:
from any start, from the target, and with the ratio at the last round alone. What is reported is the largest
ratio that was found, which need not be the largest there is.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .judge import Outcome, compare, kinds_for
from .numbers import FIRST, SIZE, Numbers
from .settings import Setting, build
from .shared import Shared

DRAWN = 40
"""Random points of every restart; the best of them is climbed from."""
PATIENCE = 150
"""Evaluations without a gain, after which it starts anew."""
STEPS = 60
"""Local steps of a run at most."""
INSIDE = ("below", "rounding", "tie", "violation")
"""Grades of settings within the hypotheses."""
AIMS = ("any start", "from the target", "last round")
AT_TARGET = 0.25
"""The number that makes the target the start."""


@dataclass(frozen=True)
class Found:
    """The best that a climb came to.

    Attributes
    ----------
    best : Outcome or None
        None where no setting was within the hypotheses; a violation comes before any larger ratio.
    ratios : dict
        The largest ratio of every aim.
    evaluations : int
    """

    best: Outcome | None
    ratios: dict[str, float]
    evaluations: int


def _short(setting: Setting) -> Setting:
    """The same setting with fewer rounds: a climb needs many evaluations."""
    steps = int(getattr(setting.algorithm, "local_steps", 1))
    rounds = max(1, min(setting.n_rounds, STEPS // steps))
    return replace(setting, n_rounds=rounds, long_rounds=max(rounds, setting.long_rounds))


class _Climb:
    def __init__(self, entry: Any, variant: str) -> None:
        self.entry, self.variant, self.evaluations = entry, variant, 0
        self.best: Outcome | None = None
        self.ratios = dict.fromkeys(AIMS, -np.inf)

    def evaluate(self, kind: str, values: np.ndarray, aim: str) -> tuple[float, np.ndarray]:
        """The ratio aimed at (-inf outside the hypotheses), and which numbers mattered."""
        numbers = Numbers(values)
        if aim == "from the target":
            numbers.values[FIRST["start_kind"]] = AT_TARGET
        self.evaluations += 1
        setting = _short(build(kind, numbers))
        if not self.entry.applies(setting.algorithm, setting.problem):
            return -np.inf, numbers.used
        with Shared():
            found = compare(self.entry, self.variant, setting)
        score = found.last if aim == "last round" else found.later
        if found.grade not in INSIDE or np.isnan(score):
            return -np.inf, numbers.used
        self.ratios[aim] = max(self.ratios[aim], score)
        if self.best is None or (found.fails, found.later) > (self.best.fails, self.best.later):
            self.best = found
        return score, numbers.used


def _moved(rng: np.random.Generator, values: np.ndarray, used: np.ndarray) -> np.ndarray:
    """A few of the numbers that matter, moved by steps of any size, reflected into the cube."""
    places = np.flatnonzero(used)
    share = 1.0 if rng.random() < 0.15 else 10.0 ** rng.uniform(-1.5, -0.3)
    chosen = places[rng.random(len(places)) < share]
    if not len(chosen):
        chosen = rng.choice(places, 1)
    moved = values.copy()
    if rng.random() < 0.1:
        moved[chosen[:2]] = rng.random(len(chosen[:2]))
    else:
        moved[chosen] += 10.0 ** rng.uniform(-4.0, -0.3) * rng.standard_normal(len(chosen))
    folded = np.mod(moved, 2.0)
    return np.where(folded > 1.0, 2.0 - folded, folded)


def climb(entry: Any, variant: str | None = None, *, seed: int = 0, seconds: float = np.inf,
          evaluations: float = np.inf) -> Found:
    """Search for a large ratio of a theorem within its hypotheses, in rounds after the start.

    It ends at the first violation.

    Parameters
    ----------
    entry : theory.Theorem
        It need not be in the catalogue.
    variant : str, optional
        The default by default.
    seed : int
    seconds : float
        Of this process, whatever else the machine does.
    evaluations : float
        Where these end it, the result depends on the seed and on nothing else.
    """
    found, kinds, began = _Climb(entry, variant or entry.variants[0]), kinds_for(entry), time.process_time()
    for turn, aim in enumerate(AIMS, start=1):
        share, rng = turn / len(AIMS), np.random.default_rng([seed, turn, zlib.crc32(entry.id.encode())])

        def goes_on(share: float = share) -> bool:
            return (found.evaluations < share * evaluations and time.process_time() < began + share * seconds
                    and not (found.best is not None and found.best.fails))

        while kinds and goes_on():
            _once(found, kinds, aim, rng, goes_on)
    return Found(found.best, found.ratios, found.evaluations)


def _once(found: _Climb, kinds: list[str], aim: str, rng: np.random.Generator,
          goes_on: Callable[[], bool]) -> None:
    """One restart: the best of some random points, moved until nothing is gained any more."""
    kind, at, score, used = kinds[0], rng.random(SIZE), -np.inf, np.ones(SIZE, dtype=bool)
    for _ in range(DRAWN):
        if not goes_on():
            return
        other, point = kinds[int(rng.integers(len(kinds)))], rng.random(SIZE)
        value, mattered = found.evaluate(other, point, aim)
        if value > score:
            kind, at, score, used = other, point, value, mattered
    idle = 0
    while score > -np.inf and idle < PATIENCE and goes_on():
        point = _moved(rng, at, used)
        value, mattered = found.evaluate(kind, point, aim)
        idle = 0 if value > score * (1.0 + 1e-6) else idle + 1
        if value >= score:
            at, score, used = point, value, mattered
