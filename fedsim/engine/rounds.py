"""The loop over rounds of one block of lanes, and what is recorded of them: moments and test functions."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..algorithms.bodies import advance, observe
from ..settings.validation import Array
from ..vector import lanes
from ..vector.compile import Nothing, compiled, dispatched, inner, spliced

LEAF = 64
"""Replicas per leaf: the unit in which moments are gathered and merged."""


class Record(NamedTuple):
    """Moments of one block: `rounds` (n,), mean (leaves, views, n, d), square (leaves, views, n, ...).

    `square` holds centred sums of products (d, d) or of squares (d), or is empty; `sums` (B,) adds
    up the test function over rounds 1, 2, ... `outside` (views, n) counts replicas outside the `support`
    (2, d), if there is one.
    """

    rounds: Any
    mean: Any
    square: Any
    sums: Any
    function: Any
    support: Array
    outside: Any


class Bounds(NamedTuple):
    """Beyond `radius`, or further than `reach` (rounds,) from `home` (d, B), a lane is looked at.

    `reach` is of the rounds that are run; with no rows in `home` nothing is known of it.
    """

    radius: float
    home: Array
    reach: Array


class Path(NamedTuple):
    """What a view shows after each `every`-th round, in `values` (n, d, B); with n = 0 nothing is kept."""

    values: Any
    every: int
    view_number: int


class NoFunction(Nothing):
    """No test function."""


class SumOfCoordinates(Nothing):
    """The sum of the coordinates."""


class SumOfSquares(Nothing):
    """The sum of the squared coordinates."""


TEST_FUNCTIONS: dict[str, Any] = {"identity": SumOfCoordinates(), "square": SumOfSquares()}


@dispatched
def accumulate(function: Any, work: Any, observed: Any, unfolded: Any, sums: Any) -> None:
    """Add the test function at the average iterate to `sums`."""


@accumulate.register(NoFunction)
def _accumulate_nothing(function, work, observed, unfolded, sums):
    pass


@accumulate.register(SumOfCoordinates)
def _accumulate_coordinates(function, work, observed, unfolded, sums):
    observe_unfolded(work, 0, observed, unfolded)
    for i in range(unfolded.shape[0]):
        lanes.axpy(sums, 1.0, unfolded[i])


@accumulate.register(SumOfSquares)
def _accumulate_squares(function, work, observed, unfolded, sums):
    observe_unfolded(work, 0, observed, unfolded)
    for i in range(unfolded.shape[0]):
        lanes.add_squares(sums, unfolded[i])


@inner
def _leaf_moments(x, first, last, mean, square, centred):
    """Mean (d,) and centred sums of products of lanes first..last-1 of x (d, B)."""
    dim, count = x.shape[0], last - first
    for i in range(dim):
        mean[i] = lanes.total(x[i], first, last) / count
    if square.shape[0] == 0:
        return
    full = square.shape[0] == dim * dim
    for i in range(dim):
        lanes.shift(centred[i if full else 0], x[i], mean[i])
        for j in range(i + 1 if full else 1):
            product = lanes.dot(centred[i if full else 0], centred[j], first, last)
            square[i * dim + j if full else i] = product
            square[j * dim + i if full else i] = product


@dispatched
def observe_unfolded(work: Any, view: int, observed: Any, unfolded: Any) -> None:
    """Copy what `view` shows to `observed`, as it lies in the lanes, and to `unfolded`, as rows (d, B).

    Rows (2, pairs * B) of coordinate lanes are unfolded; nothing is to do where both are the same.
    """


@observe_unfolded.otherwise
def _observe_unfolded(work, view, observed, unfolded):
    observe(work, view, observed)
    n_lanes, rows = unfolded.shape[1], observed.shape[0]
    if unfolded.shape[0] == rows:
        return
    for i in range(unfolded.shape[0]):
        offset = i // rows * n_lanes
        lanes.copy(unfolded[i], observed[i % rows, offset:offset + n_lanes])


@spliced
def _record_moments(record, view, index, unfolded, centred):
    """Fill entry `index` of the record with what is observed of a view."""
    for leaf in range(record.mean.shape[0]):
        first = leaf * LEAF
        last = first + LEAF if first + LEAF < record.sums.shape[0] else record.sums.shape[0]
        _leaf_moments(unfolded, first, last, record.mean[leaf, view, index],
                      record.square[leaf, view, index], centred)
    if record.support.shape[1] > 0:
        for b in range(record.sums.shape[0]):
            inside = True
            for i in range(unfolded.shape[0]):
                inside &= record.support[0, i] <= unfolded[i, b] <= record.support[1, i]
            record.outside[view, index] += not inside


@spliced
def _out_of_bounds(unfolded, bounds, place):
    bad = 0
    for i in range(unfolded.shape[0]):
        bad += lanes.count_beyond(unfolded[i], bounds.radius)
    for i in range(bounds.home.shape[0]):
        for b in range(unfolded.shape[1]):
            bad += not (abs(unfolded[i, b] - bounds.home[i, b]) < bounds.reach[place])
    return bad > 0


@compiled
def run_rounds(kernel, problem, lane_set, work, observed, unfolded, record, centred, path, first, last, index,
               bounds, every):
    """Rounds first..last-1, recording those in `record.rounds` from entry `index` on, and keeping a `Path`.

    `observed` is room for an iterate as it lies in the lanes and `unfolded` for it as (d, B): the same array
    unless coordinates are lanes. At the end the average is in them.

    The start is entry 0, recorded when `index` is 0. Returns the next entry to fill, and the first round
    of those looked at after which a lane is out of `bounds` (-1 if none), where it stops and may go on;
    looked at are the multiples of `every` and the recorded rounds, whatever the segments.
    """
    for round in range(first - (index == 0), last):  # the pass before the first round records the start
        recorded = index < record.rounds.shape[0] and record.rounds[index] == round + 1
        looked = kept = False
        if round >= first:
            advance(kernel, problem, lane_set, work, round)
            accumulate(record.function, work, observed, unfolded, record.sums)
            looked = recorded or (round + 1) % every == 0
            kept = path.values.shape[0] > 0 and (round + 1) % path.every == 0
        if not (recorded or looked or kept or round + 1 == last):
            continue
        n_views = record.mean.shape[1] if recorded else 1
        for place in range(n_views - 1 + kept, -1, -1):  # the path's, then the recorded, average last
            view = path.view_number if place == n_views else place
            observe_unfolded(work, view, observed, unfolded)
            if recorded and place < n_views:
                _record_moments(record, view, index, unfolded, centred)
            elif place == n_views:
                for i in range(unfolded.shape[0]):
                    lanes.copy(path.values[(round + 1) // path.every - 1, i], unfolded[i])
        index += recorded
        if looked and _out_of_bounds(unfolded, bounds, round - first):
            return index, round + 1
    return index, -1
