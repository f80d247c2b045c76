"""A climb towards the largest ratio of one theorem: random points, then a (1+1) evolution with restarts.

What it reports is the largest ratio that was found, which need not be the largest there is.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .judge import Outcome, compare, kinds_for
from .numbers import SIZE, Numbers
from .settings import Setting, build
from .shared import Shared

FIRST = 40
"""Random points of every restart; the best of them is climbed from."""
PATIENCE = 150
"""Evaluations without a gain, after which it starts anew."""
STEPS = 60
"""Local steps of a run at most."""
SHARES = {"rounding": 1.0, "below": 1.0, "tie": 1.0, "violation": 1.0}
"""Grades whose ratio is climbed on."""


@dataclass(frozen=True)
class Found:
    """The best that a climb came to.

    Attributes
    ----------
    best : Outcome or None
        None where no setting was within the hypotheses.
    evaluations : int
    """

    best: Outcome | None
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
        self.score = -np.inf

    def evaluate(self, kind: str, values: np.ndarray) -> tuple[float, np.ndarray]:
        """The ratio after the start (-inf outside the hypotheses), and which numbers mattered."""
        numbers = Numbers(values)
        self.evaluations += 1
        setting = _short(build(kind, numbers))
        if not self.entry.applies(setting.algorithm):
            return -np.inf, numbers.used
        with Shared():
            found = compare(self.entry, self.variant, setting)
        inside = found.grade in SHARES and not np.isnan(found.later)
        score = found.later if inside else -np.inf
        if score > self.score or (self.best is not None and found.fails and not self.best.fails):
            self.score, self.best = score, found
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

    Parameters
    ----------
    entry : theory.Theorem
        It need not be in the catalogue.
    variant : str, optional
        The default by default.
    seed : int
    seconds, evaluations : float
        Whichever ends first ends it; the result depends on the seed and on nothing else when the second does.
    """
    rng = np.random.default_rng([seed, zlib.crc32(entry.id.encode())])
    chosen, kinds = _Climb(entry, variant or entry.variants[0]), kinds_for(entry)
    end = time.monotonic() + seconds

    def goes_on() -> bool:
        return chosen.evaluations < evaluations and time.monotonic() < end

    while kinds and goes_on():
        kind, at, score, used = kinds[0], rng.random(SIZE), -np.inf, np.ones(SIZE, dtype=bool)
        for _ in range(FIRST):
            if not goes_on():
                break
            other, point = kinds[int(rng.integers(len(kinds)))], rng.random(SIZE)
            value, mattered = chosen.evaluate(other, point)
            if value > score:
                kind, at, score, used = other, point, value, mattered
        idle = 0
        while score > -np.inf and idle < PATIENCE and goes_on():
            point = _moved(rng, at, used)
            value, mattered = chosen.evaluate(kind, point)
            idle = 0 if value > score * (1.0 + 1e-6) else idle + 1
            if value >= score:
                at, score, used = point, value, mattered
    return Found(chosen.best, chosen.evaluations)
