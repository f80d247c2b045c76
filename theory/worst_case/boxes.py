"""The largest value of a function on a box, between two proved ends.

Best first: the boxes with the largest upper bounds are halved across the widest side (relative to the first
box). On each half the function is at most the smaller of its natural interval value and the mean-value form
f(c) + sum_i (df/dx_i)(box) (x_i - c_i). Where a component of the gradient keeps its sign the maximum lies
on one face, and only that face is kept. Values at the points c are the lower bound. At any moment the
maximum lies between the two, so that a search that is stopped still gives a proof, of a wider interval.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, instance, one_of, positive, real, shown, whole

from ..certificates import refuse_flushing
from .numbers import Dual, Interval

BATCH = 2048
"""Boxes that are evaluated at once."""
SMALLEST = 1e-290
"""Added to what is allowed relative to the maximum: a maximum of 0 would never be reached."""
LARGEST = float(np.finfo(np.float64).max)
"""An upper end beyond says nothing, whatever the tolerance."""
SECONDS = 1.0
"""Between two lines of progress."""


@dataclass(frozen=True)
class Maximum:
    """What is proved of a largest value.

    Attributes
    ----------
    lower, upper : float
        The largest value is at least the one and at most the other.
    at_point : float
        The value at `point` is at most this.
    point : tuple of float, or dict name -> float
        Where the value is at least `lower`; exactly these doubles.
    boxes : int
        How many were evaluated.
    closed : bool
        Whether the ends are as near as was asked for.
    interrupted : bool
        Whether Ctrl-C ended it; what is said is true nevertheless.

    Examples
    --------
    >>> found = theory.worst_case.maximise(lambda x: x[0] * (1 - x[0]), [(0.0, 1.0)], tolerance=1e-6)
    >>> found.point, found.closed, bool(found.lower <= 0.25 <= found.upper)
    ((0.5,), True, True)
    """

    lower: float
    upper: float
    at_point: float
    point: Any
    boxes: int
    closed: bool
    interrupted: bool = field(default=False, kw_only=True)


class _State(NamedTuple):
    """Boxes that are still open, and the numbers known of all others. Replaced in one piece."""

    boxes: Array
    """(2p + 1, n): lower ends, upper ends, and a number that no value in the box exceeds."""
    shut: float
    lower: float
    at_point: float
    point: tuple[float, ...]
    judged: int

    @property
    def ceiling(self) -> float:
        """No value of the function is above."""
        return max(self.shut, float(self.boxes[-1].max(initial=-np.inf)))


def allowed(lower: float, tolerance: float) -> float:
    """How far above the lower end the upper one may stay; only decides when to stop, proves nothing."""
    if lower == -math.inf:  # nothing is known yet, so that nothing is near enough
        return lower
    return min(lower + tolerance * abs(lower) + SMALLEST, LARGEST)


def _dual(value: Any, p: int, n: int) -> Dual:
    """A function that does not depend on the unknowns comes back as an Interval, or as a number."""
    if isinstance(value, Dual):
        return value
    value = Interval.beside(value)
    shaped = Interval(np.broadcast_to(value.lo, n), np.broadcast_to(value.hi, n))
    return Dual(shaped, Interval(np.zeros((p, n)), np.zeros((p, n))))


def faces(lo: Array, hi: Array, gradient: Interval) -> tuple[Array, Array]:
    """The boxes (p, n) without what cannot be their maximum: one face where the gradient keeps its sign."""
    rises, falls = gradient.lo >= 0.0, gradient.hi <= 0.0
    return np.where(rises, hi, lo), np.where(falls & ~rises, lo, hi)


def _judged(function: Callable[[list[Any]], Any], lo: Array, hi: Array, state: _State) -> _State:
    """The state in which these boxes have been evaluated, and are open."""
    p, n = lo.shape
    whole_box = _dual(function(list(Dual.unknowns(Interval(lo, hi)))), p, n)
    lo, hi = faces(lo, hi, whole_box.gradient)
    middle = np.clip(lo + 0.5 * (hi - lo), lo, hi)
    at_middle = _dual(function([Interval.exact(x) for x in middle]), p, n).value
    slope = whole_box.gradient * (Interval(lo, hi) - Interval.exact(middle))
    bound = at_middle
    for i in range(p):
        fixed = lo[i] == hi[i]  # there the difference is 0, and rounding would not say so
        part = Interval(np.where(fixed, 0.0, slope.lo[i]), np.where(fixed, 0.0, slope.hi[i]))
        bound = bound + part
    upper = np.minimum(whole_box.value.hi, bound.hi)
    best = int(np.argmax(at_middle.lo))
    lower, at_point, point = state.lower, state.at_point, state.point
    if not point or at_middle.lo[best] > lower:
        lower, at_point = float(at_middle.lo[best]), float(at_middle.hi[best])
        point = tuple(float(x) for x in middle[:, best])
    return _State(np.hstack([state.boxes, np.vstack([lo, hi, upper])]), state.shut, lower, at_point, point,
                  state.judged + n)


def _without(state: _State, dropped: np.ndarray) -> _State:
    """The state in which these of its boxes are shut."""
    shut = max(state.shut, float(state.boxes[-1, dropped].max(initial=-np.inf)))
    return state._replace(boxes=state.boxes[:, ~dropped], shut=shut) if dropped.any() else state


def _halved(state: _State, widths: Array, most: int) -> tuple[_State, Array, Array]:
    """The state without its most promising boxes, and the halves of these; shut where there is no half."""
    p, count = len(widths), min(state.boxes.shape[1], most // 2)
    first = np.argpartition(-state.boxes[-1], count - 1)[:count]
    lo, hi = state.boxes[:p, first], state.boxes[p:-1, first]
    side, each = np.argmax((hi - lo) / widths[:, None], axis=0), np.arange(count)
    middle = lo[side, each] + 0.5 * (hi[side, each] - lo[side, each])
    halves = (lo[side, each] < middle) & (middle < hi[side, each])
    shut = max(state.shut, float(state.boxes[-1, first[~halves]].max(initial=-np.inf)))
    rest = state._replace(boxes=np.delete(state.boxes, first, axis=1), shut=shut)
    lo, hi, side, middle = lo[:, halves], hi[:, halves], side[halves], middle[halves]
    each, left, right = np.arange(middle.size), hi.copy(), lo.copy()
    left[side, each], right[side, each] = middle, middle
    return rest, np.concatenate([lo, right], axis=1), np.concatenate([left, hi], axis=1)


def _box(box: Any, most_boxes: int) -> tuple[Array, Array]:
    """The first box as two columns, checked."""
    if not isinstance(box, (list, tuple)) or not len(box):
        raise ValueError(f"box={shown(box)} must be a list of pairs (low, high), one per unknown")
    for i, side in enumerate(box):
        if not isinstance(side, (list, tuple)) or len(side) != 2:
            raise ValueError(f"box[{i}]={shown(side)} must be a pair (low, high)")
        low, high = (real(f"box[{i}][{j}]", end) for j, end in enumerate(side))
        if not (low < high and math.isfinite(high - low)):
            raise ValueError(f"box[{i}]={(low, high)} must be a finite range with low < high")
    sides = np.array(box, dtype=np.float64)
    refuse_bytes(8.0 * most_boxes * 4 * (2 * len(sides) + 1), f"most_boxes={most_boxes}", "use fewer")
    return sides[:, :1].copy(), sides[:, 1:].copy()


def maximise(function: Callable[[list[Any]], Any], box: Any, *, tolerance: float = 1e-4,
             most_boxes: int = 1_000_000, progress: bool = False) -> Maximum:
    """The largest value of a function on a box, between two proved ends.

    Parameters
    ----------
    function : callable(list of p numbers) -> number
        Written with + - * / ** and `sqrt` of `theory.worst_case`, so that it takes intervals and duals.
        It has to be differentiable where it is finite.
    box : p pairs (low, high)
    tolerance : float
        Relative distance of the ends at which to stop.
    most_boxes : int
        How many to evaluate at most. The interval is wider then, `closed` is False, and all is still proved.
    progress : bool
        Print a line now and then.

    Returns
    -------
    Maximum
        After Ctrl-C too: then `interrupted` is True, and the ends are what was proved until then.

    Raises
    ------
    ValueError
        For a box without room, a tolerance that is not positive, or more boxes than there is memory for.
    RuntimeError
        Where the thread flushes subnormal numbers to zero.

    Source: R. E. Moore, Interval Analysis (1966): mean-value form; branch and bound as usual.

    Examples
    --------
    >>> found = theory.worst_case.maximise(lambda x: x[0] / (1 + x[0] ** 2) - x[1], [(0.5, 3.0), (1.0, 2.0)])
    >>> round(found.lower, 4), [round(x, 2) for x in found.point], found.closed
    (-0.5, [1.0, 1.0], True)
    """
    refuse_flushing()
    most = whole("most_boxes", most_boxes, 1)
    tolerance = positive("tolerance", tolerance)
    one_of("progress", progress, (True, False))
    if not callable(function):
        instance("function", function, Callable)  # type: ignore[arg-type]
    lo, hi = _box(box, most)
    widths, said, interrupted = (hi - lo)[:, 0], time.monotonic(), False
    nothing = _State(np.empty((2 * len(lo) + 1, 0)), -np.inf, -np.inf, np.inf, (), 0)
    state = _judged(function, lo, hi, nothing)
    try:
        while True:
            # boxes that cannot matter are shut: their upper bounds are allowed already
            state = _without(state, ~(state.boxes[-1] > allowed(state.lower, tolerance)))
            room = min(BATCH, most - state.judged)
            if not state.boxes.size or room < 2:
                break
            rest, lo, hi = _halved(state, widths, room)
            state = _judged(function, lo, hi, rest) if lo.size else rest
            if progress and time.monotonic() - said > SECONDS:
                said = time.monotonic()
                print(f"{state.judged} boxes: [{state.lower:.8g}, {state.ceiling:.8g}], "
                      f"{state.boxes.shape[1]} open", flush=True)
    except KeyboardInterrupt:  # the last whole state stands
        interrupted = True
    return Maximum(state.lower, state.ceiling, state.at_point, state.point, state.judged,
                   state.ceiling <= allowed(state.lower, tolerance), interrupted=interrupted)
