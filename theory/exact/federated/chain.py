"""A local step, declared once by every federated algorithm as a chain of parts, and what follows from it.

A client holds s = (theta, rest), p numbers for every coordinate; the rest is zero where a round begins.
A `Part` does the same to every coordinate, with A and b the client's Hessian and minimizer:

    s <- s + change s - kick g(theta) + noise xi,     g(theta) = A (theta - b) + gradient noise.

Gradients alone move theta from b: the first column of `change` is zero. Step sizes are a number, or an array
to be used elementwise. Along a direction of curvature a steps are s <- s + D(a) s + sum_i f_i(a) xi_i and
leave covariances between two directions, summed by doubling (in closed form where p = 1). Deviations D from
the identity keep their relative accuracy when a step hardly moves. `spectrum` goes on to matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from ..evolution import TOGETHER, composed, leap

BATCH = 1_000_000
"""Numbers held for local steps of different sizes at a time."""
ALL = np.s_[:, :]


def power_deviation(x: Array, n: int) -> Array:
    """(1 - x)^n - 1, accurate for tiny x.

    >>> float(theory.exact.federated.chain.power_deviation(np.float64(1e-20), 10))
    -1e-19
    """
    if x.max() < 1.0:  # as nearly always; powers are dear
        return np.expm1(n * np.log1p(-x))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x < 1.0, np.expm1(n * np.log1p(-np.minimum(x, 1.0))), (1.0 - x) ** n - 1.0)


def geometric(x: Array, n: int) -> Array:
    """sum_{j<n} (1 - x)^j = (1 - (1-x)^n) / x, and n at x = 0."""
    if x.min() > 0.0:
        return -power_deviation(x, n) / x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(x == 0.0, float(n), -power_deviation(x, n) / np.where(x == 0.0, 1.0, x))


class Motion(NamedTuple):
    """D (p, p, ...), and f (p, n, ...) of noise and (p, m, ...) of gradient noise, at curvatures (...)."""

    change: Array
    injected: Array
    kicked: Array

    def then(self, after: Motion) -> Motion:
        """This motion followed by another."""
        return Motion(self.change + after.change + times(after.change, self.change),
                      *(np.concatenate([old + times(after.change, old), new], axis=1) if old.size else new
                        for old, new in zip(self[1:], after[1:], strict=True)))


class Part(NamedTuple):
    """One step of the module's docstring: `change` (p, p), `kick` (p,) and `noise` (p,)."""

    change: Sequence[Sequence[Any]]
    kick: Sequence[Any] | None = None
    noise: Sequence[Any] | None = None

    def motion(self, values: Array, noisy: bool) -> Motion:
        """What it does along directions of these curvatures; `noisy`: with gradient noise."""
        tables = [_table(self.change, values.ndim), *(
            np.empty((len(self.change), 0, *values.shape)) if column is None
            else _table([[x] for x in column], values.ndim) for column in (self.noise, self.kick))]
        change, noise, kick = (x + np.zeros(np.broadcast_shapes(*(t.shape[2:] for t in tables), values.shape))
                               for x in tables)
        if self.kick is not None:
            change[:, :1] -= kick * values
        return Motion(change, noise, kick if noisy else kick[:, :0])


@dataclass(frozen=True)
class Repeat:
    """Parts that are made `count` times."""

    parts: Sequence[Any]
    count: int

    def motion(self, values: Array, noisy: bool) -> Motion:
        """See `Part`."""
        return leap([composed(part.motion(values, noisy) for part in self.parts)], self.count)


def unrolled(parts: Sequence[Any]) -> list[Any]:
    """One part after the other."""
    return [one for part in parts
            for one in (unrolled(part.parts) * part.count if isinstance(part, Repeat) else [part])]


def length(parts: Sequence[Any]) -> int:
    """How many `unrolled` makes, without making them."""
    return sum(length(part.parts) * part.count if isinstance(part, Repeat) else 1 for part in parts)


def local_step(parts: Sequence[Any], values: Array, noisy: bool) -> Motion:
    """A whole chain, on the rows that its first part does not forget: theta alone with a fresh momentum."""
    step, first = composed(part.motion(values, noisy) for part in parts), parts[0]
    rows = [j for j in range(len(step.change))
            if not isinstance(first, Part) or any(np.any(row[j] != -float(i == j))
                                                  for i, row in enumerate(first.change))]
    return step if len(rows) == len(step.change) else Motion(
        step.change[np.ix_(rows, rows)], step.injected[rows], step.kicked[rows])


class Round(NamedTuple):
    """Motions (p, ., S, g, d) of S rounds, one after the other, so many times.

    Directions index curvatures (g, d); what is answered begins with S.
    """

    motions: Sequence[Motion]
    repeats: int

    def deviation(self) -> Array:
        """Factor by which the round multiplies the distance to the client's minimizer, minus one."""
        change = self.motions[0].change
        if len(change) == len(self.motions) == 1:
            return power_deviation(-change[0, 0], self.repeats)
        quiet = (Motion(motion.change, *(x[:, :0] for x in motion[1:])) for motion in self.motions)
        return leap([composed(quiet)], self.repeats).change[0, 0]

    def injected(self, one: Any = ALL, other: Any = ALL) -> Array:
        """Covariance left by unit noise that both directions receive."""
        return self._noise(1, one, other)

    def gradient(self, one: Any = ALL, other: Any = ALL) -> Array:
        """Covariance left by gradient noise of covariance one."""
        return self._noise(2, one, other)

    def _noise(self, kind: int, one: Any, other: Any) -> Array:
        pairs = [_Pair(motion.change[(..., *one)], motion.change[(..., *other)],
                       spread(motion[kind], one, other)) for motion in self.motions]
        first, second, noise = pairs[0]
        if len(first) == len(pairs) == 1:
            lost = -(first + second + first * second)
            return (noise if self.repeats == 1 else noise * geometric(lost, self.repeats))[0, 0]
        return leap([composed(pairs)], self.repeats).noise[0, 0]


class _Pair(NamedTuple):
    """D along two directions, and the covariance left between them."""

    first: Array
    second: Array
    noise: Array

    def then(self, after: _Pair) -> _Pair:
        noise = self.noise + times(after.first, self.noise)
        return _Pair(self.first + after.first + times(after.first, self.first),
                     self.second + after.second + times(after.second, self.second),
                     noise + times(noise, after.second.swapaxes(0, 1)) + after.noise)


def times(left: Array, right: Array) -> Array:
    """Products of matrices (p, q, ...) and (q, r, ...)."""
    total = left[:, :1] * right[:1]
    for j in range(1, len(right)):
        total = total + left[:, j:j + 1] * right[j:j + 1]
    return total


def spread(factors: Array, one: Any = ALL, other: Any = ALL) -> Array:
    """sum_i f_i f_i' of factors (p, n, ..., g, d) between two directions, (p, p, ...)."""
    return np.einsum("in...,jn...->ij...", factors[(..., *one)], factors[(..., *other)])


def _table(rows: Sequence[Sequence[Any]], axes: int) -> Array:
    """(p, q, ...) with so many more axes."""
    entries: Any = [entry for row in rows for entry in row]
    if any(isinstance(entry, np.ndarray) for entry in entries):
        entries = np.broadcast_arrays(*entries)
    table = np.array(entries, dtype=np.float64)
    return table.reshape(len(rows), len(rows[0]), *(table.shape[1:] or (1,) * axes))


class Steps:
    """The local steps of an algorithm along curvatures (g, d); `equal` where all of them are the same."""

    def __init__(self, family: Any, algorithm: Any, values: Array, noisy: bool) -> None:
        self.family, self.algorithm, self.values, self.noisy = family, algorithm, values, noisy
        self.every, parts = algorithm.local_steps, family.chain(algorithm, algorithm.schedule.largest)
        constant = algorithm.schedule.is_constant
        self.equal = local_step(parts, values, noisy) if constant else None
        self.room = 1 if constant else max(1, BATCH // (values.size * length(parts)))

    def motions(self, steps: np.ndarray) -> Motion:
        """Of local steps (S,), (p, ., S, g, d)."""
        known = self.algorithm.schedule.n_steps  # beyond its end nobody looks
        sizes = self.algorithm.schedule.at(steps if known is None else np.minimum(steps, known - 1))
        parts = self.family.chain(self.algorithm, sizes[:, None, None])
        values = np.broadcast_to(self.values, (len(steps), *self.values.shape))
        return local_step(parts, values, self.noisy)

    @property
    def together(self) -> int:
        """How many rounds are made at a time."""
        return min(max(1, self.room // self.every), TOGETHER)

    def rounds(self, numbers: np.ndarray) -> Round:
        """Of these numbers; of all of them where steps are `equal`."""
        if self.equal is not None:
            return Round([Motion(*(x[:, :, None] for x in self.equal))], self.every)
        pieces = []
        for start in range(0, self.every, self.room):
            steps = np.arange(start, min(self.every, start + self.room))
            motions = self.motions(np.add.outer(numbers * self.every, steps).ravel())
            pieces.append(_folded(motions, len(steps)))
        return Round(pieces, 1)


def _folded(steps: Motion, count: int) -> Motion:
    """Every `count` motions (p, ., S, g, d) as one, (p, ., S / count, g, d)."""
    after, columns = np.zeros_like(steps.change[:, :, ::count]), []
    for k in reversed(range(count)):
        change, *factors = (x[:, :, k::count] for x in steps)
        columns.append([x + times(after, x) for x in factors])
        after = after + change + times(after, change)
    return Motion(after, *(np.concatenate(x, axis=1) for x in zip(*columns, strict=True)))
