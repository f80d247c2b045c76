"""Moments and draws along rounds: each stepped through, or many at once by powers of their map."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any

import numpy as np

from fedsim.settings.validation import Array

from .affine import AffineMap, Moments
from .stacked import FEWEST, Stacked

TOGETHER = 64
"""Rounds whose maps are made together where each has its own."""


def batched(make: Callable[[np.ndarray], Sequence[Any]], size: int) -> Callable[[int], Any]:
    """`make` for one number at a time, called for `size` of them together."""
    together = lru_cache(maxsize=1)(lambda batch: make(batch * size + np.arange(size)))
    return lambda number: together(number // size)[number % size]


class Batches:
    """The `Stacked` maps that `make` gives, `size` of them together: one at a time, or composed."""

    def __init__(self, make: Callable[[np.ndarray], Any], size: int) -> None:
        self.size = size
        self._batch = lru_cache(maxsize=1)(lambda batch: make(batch * size + np.arange(size)))

    def __call__(self, number: int) -> Any:
        """Of one number."""
        return self._batch(number // self.size).taken(number % self.size)

    def between(self, before: int, now: int) -> Iterator[Any]:
        """Maps which one after the other are those of the numbers before, ..., now - 1."""
        while before < now:
            batch, first = divmod(before, self.size)
            last = min(self.size, first + now - before)
            yield from self._batch(batch).merged(first, last)
            before += last - first


def composed(maps: Iterable[Any]) -> Any:
    """Maps without a random part, one after the other, as one."""
    return reduce(lambda total, step: total.then(step), maps)


def leap(powers: list[Any], count: int) -> Any:
    """The `count`-th power of powers[0]; powers[i] is its 2^i-th, made as needed and kept."""
    while len(powers) < count.bit_length():
        powers.append(powers[-1].then(powers[-1]))
    return composed(powers[bit] for bit in range(count.bit_length()) if count >> bit & 1)


def evolve(rounds: np.ndarray, mean: Array, cov: Array | None, maps: Any, head: Sequence[Any] = (),
           ) -> Iterator[Moments]:
    """Moments at increasing `rounds`, beginning at round 0.

    Parameters
    ----------
    rounds : (n,) int, increasing, first entry 0
    mean, cov : moments at round 0
    maps : one map for all rounds, whose powers are made by doubling as they are needed; or a function
        of the round r = 0, 1, ..., each of which is stepped through, or `Batches`. Maps `step` moments and
        are `squared`.
    head : maps of the first rounds, where they are others than `maps`
    """
    yield mean, cov
    if isinstance(maps, Batches):
        for before, now in pairwise(rounds.tolist()):
            for step in maps.between(before, now):
                mean, cov = step.step(mean, cov)
            yield mean, cov
        return
    stepped = not hasattr(maps, "step")
    powers, together, i = [maps], None, 1
    runs = _runs(rounds)
    while i < len(rounds):
        before, now = int(rounds[i - 1]), int(rounds[i])
        if runs[i] >= FEWEST and isinstance(maps, AffineMap) and before >= len(head):
            together = together or Stacked.powers(maps)
            if together is not None:  # every round of a run is recorded
                many = together.moments(mean, cov, min(int(runs[i]), len(together.shift)))
                yield from many
                mean, cov = many[-1]
                i += len(many)
                continue
        i += 1
        if not stepped and now == before + 1 > len(head):
            mean, cov = maps.step(mean, cov)
            yield mean, cov
            continue
        for number in range(before, now if stepped else min(now, len(head))):
            step = head[number] if number < len(head) else maps(number)
            mean, cov = step.step(mean, cov)
        gap = 0 if stepped else now - max(before, min(now, len(head)))
        for bit in range(gap.bit_length()):
            if len(powers) == bit:
                powers.append(powers[-1].squared())
            if gap >> bit & 1:
                mean, cov = powers[bit].step(mean, cov)
        yield mean, cov


def cycled(rounds: np.ndarray, mean: Array, cov: Array | None, maps: Callable[[int], AffineMap], period: int,
           head: int = 0) -> Iterator[Moments]:
    """`evolve` where maps of rounds from `head` on come again after a `period`: many periods are one step.

    The maps have no random part.
    """
    yield mean, cov
    powers: list[AffineMap] = []
    for before, now in pairwise(rounds.tolist()):
        number = before
        while number < now:
            times = (now - number) // period if number >= head and (number - head) % period == 0 else 0
            if times > 1 or (times and powers):
                powers = powers or [composed(maps(head + place) for place in range(period))]
                while len(powers) < times.bit_length():
                    powers.append(powers[-1].squared())
                for bit in range(times.bit_length()):
                    if times >> bit & 1:
                        mean, cov = powers[bit].step(mean, cov)
                number += times * period
            else:
                mean, cov = maps(number).step(mean, cov)
                number += 1
        yield mean, cov


def _runs(rounds: np.ndarray) -> np.ndarray:
    """How many rounds from the i-th on come one after the other, each after the one before it, (n,)."""
    jumps = np.append(np.flatnonzero(np.diff(rounds) != 1) + 1, len(rounds))
    places = np.arange(len(rounds))
    return np.asarray(jumps[np.searchsorted(jumps, places)] - places)


def drawn(rounds: np.ndarray, state: Array, maps: Callable[[int], AffineMap], constant: bool,
          generator: np.random.Generator, head: int = 0) -> Iterator[Array]:
    """States (R, g, m) drawn at increasing `rounds`, beginning at round 0.

    `maps` of the round are those of `head` from there on where `constant`: many rounds are one draw.
    """
    yield state
    powers = [maps(head)] if constant else None
    for before, now in pairwise(rounds.tolist()):
        steps = [maps(number) for number in range(before, now if powers is None else min(head, now))]
        rest = now - before - len(steps)
        total = composed([*steps, leap(powers, rest)] if powers and rest else steps)
        state = total.move(state) + correlated(generator, len(state), total.noise)
        yield state


def correlated(generator: np.random.Generator, size: int, cov: Array) -> Array:
    """Centred Gaussian draws (size, d) of covariance (d, d), or (d,) variances.

    Groups of m coordinates give (size, g, m), of covariances (g, m, m) or (g, g, m, m).
    """
    if cov.ndim == 4:
        groups, _, width, _ = cov.shape
        joint = cov.transpose(0, 2, 1, 3).reshape(groups * width, -1)
        return correlated(generator, size, joint).reshape(size, groups, width)
    draws = generator.standard_normal((size, *cov.shape[:max(1, cov.ndim - 1)]))
    if cov.ndim == 1:
        return draws * np.sqrt(cov)
    values, vectors = np.linalg.eigh(cov)
    roots = np.sqrt(np.clip(values, 0.0, None))
    return np.einsum("...ij,r...j->r...i", vectors, draws * roots, optimize=True)


def matrix_of(cov: Array) -> Array:
    """A covariance (d, d), from one or from variances (d,)."""
    return np.diag(cov) if cov.ndim == 1 else cov


def variances_of(cov: Array) -> Array:
    """Variances (d,), from them or from a covariance (d, d)."""
    return cov if cov.ndim == 1 else np.diagonal(cov)
