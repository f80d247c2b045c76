"""First rounds within an accuracy, of many settings of an algorithm together.

The rounds looked at are those of `rounds_to`, but few of them need the W2 of two matrices: with S the
target's covariance and any Y > 0, concavity of the root gives for every covariance C

    tr (S^(1/2) C S^(1/2))^(1/2) <= tr[Y^(-1) S^(1/2) C S^(1/2) + Y]/2,

with equality where Y is that root. So W2^2 is at least a function that is linear in C, and known at all
rounds at once; from a round where it is exact to the next one where it is not above eps^2 nothing is within
eps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.laws.moments import roots, w2_of
from fedsim.settings.validation import Array

DENSE = 1024
"""Every round is looked at up to here; beyond it on a grid that is refined around the crossing."""
GRID = 32
"""Rounds looked at per doubling beyond `DENSE`, and per refinement."""
WINDOWS = (64, 256, DENSE)
"""Where the rounds that are all looked at are cut, so that settings which are done leave early."""
FLATTEST = 1e-4
"""Y's least eigenvalue over its largest."""
ROUNDING = 1e-12
"""Of the sizes of what the function is a sum of."""


class Crossings(NamedTuple):
    """First rounds (S,), -1 where there is none, and the limits that each was last followed up to."""

    rounds: np.ndarray
    asked: np.ndarray

    def hold(self, limits: np.ndarray) -> np.ndarray:
        """Where the same is found up to other `limits`: beyond `DENSE` they decide which rounds are seen."""
        late = np.maximum(self.rounds, 1) / DENSE
        ends = DENSE * 8.0 ** np.maximum(np.ceil(np.log2(late) / 3.0 - 1e-12), 0.0)
        whole = (self.rounds >= 0) & (ends <= np.minimum(self.asked, limits))
        return (limits <= DENSE) | (self.asked == limits) | whole


class Goal(NamedTuple):
    """Laws, and the target's mean (S, d), covariance and its root as they are shown."""

    laws: Any
    mean: Any
    cov: Any
    root: Any

    def of(self, index: np.ndarray) -> Goal:
        """Some of the settings."""
        return Goal(self.laws.of(index), self.mean[index], self.cov[index], self.root[index])

    def first_within(self, rounds: np.ndarray, eps: Any) -> np.ndarray:
        """Places of the first of rounds (S, R) with W2 <= eps, -1 where there is none, (S,)."""
        return first_within(self, rounds, eps)

    def w2(self, rounds: np.ndarray) -> Array:
        """W2 to the target at rounds (S, R), (S, R)."""
        means, covs = self.laws.at(rounds)
        return w2_of(means, covs, self.mean[:, None], self.cov[:, None])

    def floor(self) -> Array:
        """W2 of the stationary laws, (S,)."""
        return w2_of(self.laws.means, self.laws.covs, self.mean, self.cov)


def goal_of(laws: Any, target: Gaussian) -> Goal:
    """Laws and a target for all of them."""
    mean, cov = laws.turned(target)
    return Goal(laws, mean, cov, np.sqrt(cov) if laws.thin else roots(cov))


Tighten = Callable[[np.ndarray], np.ndarray]


def crossings(goal: Any, eps: Any, max_rounds: Any, tighten: Tighten | None = None,
              windows: tuple[int, ...] = WINDOWS) -> Crossings:
    """The rounds that `theory.tuning.rounds_to` gives, of stable settings that stay within eps.

    Parameters
    ----------
    eps, max_rounds : numbers, or one for each setting
    tighten : given the rounds found so far, how far each setting is still to be followed, (S,)
    """
    size = len(goal.mean)
    eps, limits = np.broadcast_to(eps, size), np.broadcast_to(max_rounds, size)
    found, active, low, asked = np.full(size, -1), np.arange(size), -1, limits.copy()
    for high in chain(windows, (DENSE * 8**k for k in count(1))):
        active = active[limits[active] > low]
        if not len(active):
            break
        asked[active] = limits[active]
        some, rounds = goal.of(active), _rounds(low, high, limits[active])
        places = some.first_within(rounds, eps[active])
        hit = np.flatnonzero(places >= 0)
        inside = rounds[hit, places[hit]]
        if high > DENSE:
            before = rounds[hit, np.maximum(places[hit] - 1, 0)]
            inside = _refined(some.of(hit), before, inside, eps[active[hit]])
        found[active[hit]] = np.where(inside <= limits[active[hit]], inside, -1)
        active, low = np.delete(active, hit), high
        if tighten is not None:
            limits = tighten(found)
            active = active[limits[active] > low]
    return Crossings(found, asked)


def _rounds(low: int, high: int, limits: np.ndarray) -> np.ndarray:
    """Rounds after `low` that are looked at, up to `high` or each limit, (S, R); the last may come again."""
    if high <= DENSE:
        rounds = np.arange(low + 1, min(high, int(limits.max())) + 1)
        return np.broadcast_to(rounds, (len(limits), len(rounds)))
    grids = {last: np.unique(np.rint(np.geomspace(low, last, 1 + max(1, round(GRID * np.log2(last / low))))
                                     ).astype(np.int64)) for last in set(np.minimum(high, limits).tolist())}
    longest = max(map(len, grids.values()))
    table = {last: np.append(grid, np.full(longest - len(grid), last)) for last, grid in grids.items()}
    return np.stack([table[last] for last in np.minimum(high, limits).tolist()])


def _refined(goal: Any, before: np.ndarray, inside: np.ndarray, eps: Array) -> np.ndarray:
    """The first round within eps after `before`, which is not, up to `inside`, which is, (S,)."""
    before, inside = before.copy(), inside.copy()
    while True:
        wide = np.flatnonzero(inside - before > 1)
        if not len(wide):
            return inside
        grid = np.linspace(before[wide], inside[wide], GRID + 1, axis=1).astype(np.int64)
        places = goal.of(wide).first_within(grid, eps[wide])
        places[places < 0] = GRID  # known to be within
        rows = np.arange(len(wide))
        before[wide] = grid[rows, np.maximum(places - 1, 0)]
        inside[wide] = grid[rows, places]


def first_within(goal: Goal, rounds: np.ndarray, eps: Any) -> np.ndarray:
    """Places of the first of rounds (S, R) with W2 <= eps, -1 where there is none, (S,)."""
    eps, course = np.broadcast_to(eps, len(rounds)), goal.laws.along(rounds)
    if goal.laws.thin:
        inside = near_w2(course.means, course.covs, goal.mean[:, None], goal.cov[:, None]) <= eps[:, None]
        return np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
    found, active, place = np.full(len(rounds), -1), np.arange(len(rounds)), np.zeros(len(rounds), int)
    while len(active):
        here, rows, now = course.of(active), np.arange(len(active)), place[active]
        mean, cov, root = goal.mean[active], goal.cov[active], goal.root[active]
        means, covs = here.means, here.cov(now)
        room = _room(here, mean, cov, root, means, covs, eps[active])
        near = np.flatnonzero(room[rows, now])
        if len(near):
            value = near_w2(means[near, now[near]], covs[near], mean[near], cov[near])
            hit = near[value <= eps[active[near]]]
            found[active[hit]] = now[hit]
            room[hit] = False
        room &= np.arange(rounds.shape[1]) > now[:, None]
        place[active] = room.argmax(axis=1)
        active = active[room.any(axis=1)]
    return found


near_w2 = w2_of
"""Of rounds that may be within eps."""


def _room(course: Any, mean: Array, cov: Array, root: Array, means: Array, covs: Array,
          eps: Array) -> np.ndarray:
    """Where the function that is exact at covariances `covs` (S, d, d) leaves room for W2 <= eps, (S, R)."""
    values, vectors = np.linalg.eigh(root @ covs @ root)
    values = np.sqrt(np.maximum(values, FLATTEST**2 * np.maximum(values[:, -1:], np.finfo(float).tiny)))
    back = root @ vectors
    slopes = np.eye(mean.shape[1]) - (back / values[:, None, :]) @ np.swapaxes(back, 1, 2)
    against, sizes = course.against(slopes)
    trace = np.trace(cov, axis1=1, axis2=2)
    least = ((means - mean[:, None])**2).sum(axis=2) + against + (trace - values.sum(axis=1))[:, None]
    slack = ROUNDING * (sizes + trace + values.sum(axis=1)) + 1e-9 * eps**2
    return least <= (eps**2 + slack)[:, None]
