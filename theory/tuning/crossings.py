"""First rounds within an accuracy, of many settings of a federated algorithm together.

The rounds looked at are those of `rounds_to`, but few of them need the W2 of two matrices: with S the
target's covariance and any Y > 0, concavity of the root gives for every covariance C

    tr (S^(1/2) C S^(1/2))^(1/2) <= tr[Y^(-1) S^(1/2) C S^(1/2) + Y]/2,

with equality where Y is that root. So W2^2 is at least a function that is linear in C, and known at all
rounds at once; from a round where it is exact to the next one where it is not above eps^2 nothing is within
eps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.laws.moments import roots, w2_of
from fedsim.settings.validation import Array

from ..crossing import DENSE, GRID
from ..exact.federated.together import Together, powers

WINDOWS = (0, 64, 256, DENSE)
"""Where the rounds that are all looked at are cut, so that settings which are done leave early."""
FLATTEST = 1e-4
"""Y's least eigenvalue over its largest."""
ROUNDING = 1e-12
"""Of the sizes of what the function is a sum of."""


class Crossings(NamedTuple):
    """First rounds (S,), -1 where there is none; and where W2 stays above eps for good, (S,) bool."""

    rounds: np.ndarray
    never: np.ndarray


class Goal(NamedTuple):
    """Laws, and the target's mean (S, d), covariance and its root in their bases."""

    laws: Together
    mean: Array
    cov: Array
    root: Array

    def of(self, index: np.ndarray) -> Goal:
        """Some of the settings."""
        return Goal(self.laws.of(index), self.mean[index], self.cov[index], self.root[index])

    def w2(self, rounds: np.ndarray) -> Array:
        """W2 to the target at rounds (S, R), (S, R)."""
        return w2_of(*self.laws.at(rounds), self.mean[:, None], self.cov[:, None])

    def floor(self) -> Array:
        """W2 of the stationary laws, (S,)."""
        return w2_of(self.laws.means, self.laws.covs, self.mean, self.cov)

    def left(self, rounds: np.ndarray) -> Array:
        """W2 to the stationary laws at rounds (S,): it only falls, because the map is a contraction."""
        mean, cov = self.laws.at(rounds[:, None])
        return w2_of(mean[:, 0], cov[:, 0], self.laws.means, self.laws.covs)


def goal_of(laws: Together, target: Gaussian) -> Goal:
    """Laws and a target for all of them."""
    mean, cov = laws.turned(target)
    return Goal(laws, mean, cov, np.sqrt(cov) if laws.bases is None else roots(cov))


def crossings(goal: Goal, eps: float, max_rounds: int) -> Crossings:
    """The rounds that `theory.tuning.rounds_to` gives, of stable settings."""
    count = len(goal.mean)
    found, never = np.full(count, -1), np.zeros(count, bool)
    floor, active, low = goal.floor(), np.arange(count), -1
    for high in (*WINDOWS, *_beyond(max_rounds)):
        last = min(high, max_rounds)
        if not len(active) or last <= low:  # done, or `max_rounds` is
            break
        grid = (np.arange(low + 1, last + 1) if high <= DENSE else
                np.unique(np.rint(np.geomspace(low, last, 1 + max(1, round(GRID * np.log2(last / low))))
                                  ).astype(np.int64)))
        rounds = np.broadcast_to(grid, (len(active), len(grid)))
        places = first_within(goal.of(active), rounds, eps)
        hit = places >= 0
        before = grid[np.maximum(places[hit] - 1, 0)] if high > DENSE else grid[places[hit]]
        found[active[hit]] = _refined(goal.of(active[hit]), before, grid[places[hit]], eps)
        active, low = active[~hit], last
        above = active[floor[active] > eps]
        if len(above):
            left = goal.of(above).left(np.full(len(above), last))
            never[above[left < floor[above] - eps]] = True
            active = active[~never[active]]
    return Crossings(found, never)


def _beyond(max_rounds: int) -> list[int]:
    """Ends of the grids beyond `DENSE`."""
    ends, high = [], DENSE
    while high < max_rounds:
        high *= 8
        ends.append(high)
    return ends


def _refined(goal: Goal, before: np.ndarray, inside: np.ndarray, eps: float) -> np.ndarray:
    """The first round within eps after `before`, which is not, up to `inside`, which is, (S,)."""
    before, inside = before.copy(), inside.copy()
    while True:
        wide = np.flatnonzero(inside - before > 1)
        if not len(wide):
            return inside
        grid = np.linspace(before[wide], inside[wide], GRID + 1, axis=1).astype(np.int64)
        places = first_within(goal.of(wide), grid, eps)
        places[places < 0] = GRID  # known to be within
        rows = np.arange(len(wide))
        before[wide] = grid[rows, np.maximum(places - 1, 0)]
        inside[wide] = grid[rows, places]


def first_within(goal: Goal, rounds: np.ndarray, eps: float) -> np.ndarray:
    """Places of the first of rounds (S, R) with W2 <= eps, -1 where there is none, (S,)."""
    if goal.laws.bases is None:
        inside = goal.w2(rounds) <= eps
        return np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
    found, active, place = np.full(len(rounds), -1), np.arange(len(rounds)), np.zeros(len(rounds), int)
    kept = powers(goal.laws.changes[:, None], rounds[:, :, None])
    while len(active):
        some = goal.of(active)
        room = _room(some, rounds[active, place[active]][:, None], kept[active], eps)
        near = np.flatnonzero(room[np.arange(len(active)), place[active]])
        if len(near):
            value = goal.of(active[near]).w2(rounds[active[near], place[active[near]]][:, None])[:, 0]
            hit = near[value <= eps]
            found[active[hit]] = place[active[hit]]
            room[hit] = False
        room &= np.arange(rounds.shape[1]) > place[active][:, None]
        place[active] = room.argmax(axis=1)
        active = active[room.any(axis=1)]
    return found


def _room(goal: Goal, here: np.ndarray, kept: Array, eps: float) -> np.ndarray:
    """Where the function that is exact at `here` (S, 1) leaves room for W2 <= eps, (S, R)."""
    laws, cov = goal.laws, goal.laws.at(here)[1][:, 0]
    values, vectors = np.linalg.eigh(goal.root @ cov @ goal.root)
    values = np.sqrt(np.maximum(values, FLATTEST**2 * np.maximum(values[:, -1:], np.finfo(float).tiny)))
    back = goal.root @ vectors
    slope = np.eye(goal.mean.shape[1]) - (back / values[:, None, :]) @ np.swapaxes(back, 1, 2)
    still, moving = slope * laws.covs, slope * (laws.start_covs - laws.covs)
    fixed = (np.trace(goal.cov, axis1=1, axis2=2) - values.sum(axis=1) + still.sum(axis=(1, 2)))[:, None]
    away = (laws.means - goal.mean)[:, None] + kept * (laws.start_means - laws.means)[:, None]
    least = (away**2).sum(axis=2) + ((kept @ moving) * kept).sum(axis=2) + fixed
    sizes = (np.abs(still) + np.abs(moving)).sum(axis=(1, 2)) + np.trace(goal.cov, axis1=1, axis2=2)
    slack = ROUNDING * (sizes + values.sum(axis=1))[:, None] + 1e-9 * eps**2
    return least <= eps**2 + slack
