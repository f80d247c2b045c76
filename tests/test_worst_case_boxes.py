"""Branch and bound over boxes: true ends always, known maxima, and what is refused."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from theory.worst_case import Dual, Interval, boxes, maximise, sqrt

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def hills(x):
    """Two hills of equal height 1, at (-1, 0) and (1, 0)."""
    return 1 / (1 + (x[0] ** 2 - 1) ** 2 + x[1] ** 2)


KNOWN = {  # function, box, maximum, where: all exact
    "inside": (lambda x: x[0] * (1 - x[0]) - (x[1] - HALF) ** 2, [(0.0, 0.9), (0.0, 1.1)], 0.25,
               [(0.5, 0.5)]),
    "at a corner": (lambda x: x[0] - 2 * x[1] + x[0] * x[1] / 2, [(0.0, 1.5), (-1.0, 2.0)], 2.75,
                    [(1.5, -1.0)]),
    "at the other corner": (lambda x: x[1] - x[0], [(0.25, 1.5), (-1.0, 2.0)], 1.75, [(0.25, 2.0)]),
    "on a face": (lambda x: x[0] - (x[1] - 1) ** 2, [(0.0, 3.0), (-2.0, 3.0)], 3.0, [(3.0, 1.0)]),
    "on a low face": (lambda x: 1 / x[0] - (x[1] - 1) ** 2, [(0.5, 3.0), (-2.0, 3.0)], 2.0, [(0.5, 1.0)]),
    "twice": (hills, [(-2.0, 2.3), (-1.0, 1.1)], 1.0, [(-1.0, 0.0), (1.0, 0.0)]),
    "below zero": (lambda x: -2 - (x[0] - THIRD) ** 2, [(0.0, 1.0)], -2.0, [(1 / 3,)]),
    "a valley": (lambda x: -((1 - x[0]) ** 2) - 10 * (x[1] - x[0] ** 2) ** 2 - 1, [(-2.0, 2.5), (-1.2, 3.1)],
                 -1.0, [(1.0, 1.0)]),
    "a root": (lambda x: sqrt(1 - x[0] ** 2) + x[0] / 2, [(-0.9, 0.9)], math.sqrt(1.25),
               [(1 / math.sqrt(5),)]),
    "three": (lambda x: x[0] * x[1] * x[2] - x[0] ** 2 - x[1] ** 2 - x[2] ** 2, [(-1.0, 3.0)] * 3, 0.0,
              [(0.0, 0.0, 0.0), (3.0, 3.0, 3.0)]),
    "at the end of a slope": (lambda x: x[0] - 64 * x[0] ** 7 / 7, [(-0.5, 0.5625)], 3 / 7, [(0.5,)]),
    "of one unknown of two": (lambda x: 1 - x[1] ** 2, [(0.0, 1.0), (-1.0, 2.0)], 1.0, None),
}


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
@pytest.mark.parametrize("name", KNOWN)
def test_known_maxima(name, tolerance):
    """Between the ends, which are as near as was asked for, and at the point where it is."""
    function, box, exact, where = KNOWN[name]
    found = maximise(function, box, tolerance=tolerance, most_boxes=200_000)
    assert found.lower <= exact * (1.0 + 1e-15 * np.sign(exact)) and found.upper >= exact
    at = function([Interval.exact(x) for x in found.point])
    assert found.lower <= at.hi
    assert all(low <= x <= high for x, (low, high) in zip(found.point, box, strict=True))
    if exact:  # 0 cannot be met to a relative width
        assert found.closed and found.upper - found.lower <= 1.0000001 * tolerance * abs(found.lower)
        near = 3.0 * math.sqrt(tolerance)
        assert where is None or min(math.dist(found.point, one) for one in where) <= near
    assert not found.interrupted


@pytest.mark.parametrize(("function", "value"), [
    (lambda x: 3, 3.0), (lambda x: Interval.exact(-0.5), -0.5), (lambda x: Fraction(7, 4), 1.75),
    (lambda x: 0 * x[0] + 2, 2.0), (lambda x: 0, 0.0), (lambda x: 0 * x[0], 0.0),
    (lambda x: x[0] - x[0], 0.0)])
def test_what_does_not_depend_on_the_unknowns(function, value):
    """A constant, 0 too, is met at once or as nearly as doubles can say."""
    found = maximise(function, [(1.0, 2.0)], most_boxes=5000)
    assert found.lower <= value <= found.upper and found.upper - found.lower < 1e-12
    if value:
        assert found.closed and found.boxes < 5


@pytest.mark.parametrize("most", [1, 2, 3, 10, 101])
@pytest.mark.parametrize("name", ["inside", "twice", "a valley", "at a corner", "at the end of a slope"])
def test_out_of_boxes_it_is_still_true(name, most):
    """A wider interval, which says that it is not closed, from never more boxes than were allowed."""
    function, box, exact, _ = KNOWN[name]
    found = maximise(function, box, tolerance=1e-12, most_boxes=most)
    assert found.boxes <= most and found.lower <= exact + 1e-15 * abs(exact) and exact <= found.upper
    assert found.closed == (found.upper <= found.lower + 1e-12 * abs(found.lower) + boxes.SMALLEST)
    assert name == "at a corner" or most > 10 or not found.closed


def test_more_boxes_never_widen():
    """The ends only move towards each other."""
    function, box, _, _ = KNOWN["a valley"]
    found = [maximise(function, box, tolerance=1e-9, most_boxes=most) for most in (1, 5, 50, 500, 5000)]
    for before, after in itertools.pairwise(found):
        assert before.lower <= after.lower <= after.upper <= before.upper


@pytest.mark.parametrize("call", [3, 4, 7, 8, 21])
@pytest.mark.parametrize("name", ["twice", "a valley"])
def test_ctrl_c_leaves_a_proof(name, call, monkeypatch):
    """In the midst of any evaluation: what was proved until then comes back, and says so."""
    function, box, exact, _ = KNOWN[name]
    monkeypatch.setattr(boxes, "BATCH", 8)
    calls = itertools.count(1)

    def stopped(x):
        if next(calls) == call:
            raise KeyboardInterrupt
        return function(x)

    found = maximise(stopped, box, tolerance=1e-9)
    assert found.interrupted and not found.closed and found.boxes >= 1
    assert found.lower <= exact <= found.upper and found.point


def test_where_nothing_is_known_at_first():
    """0/0 in the middle of the box: the search goes on, and proves what can be."""
    found = maximise(lambda x: (x[0] - HALF) ** 2 / (x[0] - HALF), [(0.0, 1.0)], most_boxes=2000)
    assert not found.closed and 0.4999 < found.lower <= 0.5 and found.upper == np.inf
    found = maximise(lambda x: -1 / x[0] ** 2, [(-1.0, 1.0)], most_boxes=2000)
    assert -1.0001 < found.lower <= -1.0 and found.upper >= -1.0
    found = maximise(lambda x: sqrt(x[0] - 2), [(0.0, 1.0)], most_boxes=20)  # no number anywhere
    assert not found.closed and found.lower == -np.inf and found.upper == np.inf


def test_the_mean_value_form_is_what_closes():
    """Of x - x^2 with x twice: natural values alone would take thousands of boxes."""
    found = maximise(lambda x: (x[0] + 1) / (x[0] ** 2 + 3), [(0.0, 5.0)], tolerance=1e-9)
    assert found.closed and found.boxes < 200 and found.lower <= 0.5 <= found.upper


def test_faces():
    """The upper one where the gradient is at least 0, the lower where at most, else the whole box."""
    gradient = Interval([[0.0, 1.0, -2.0, -1.0, -np.inf, 0.0]], [[2.0, 3.0, -1.0, 1.0, np.inf, 0.0]])
    lo, hi = boxes.faces(np.full((1, 6), 3.0), np.full((1, 6), 4.0), gradient)
    assert lo.tolist() == [[4.0, 4.0, 3.0, 3.0, 3.0, 4.0]]
    assert hi.tolist() == [[4.0, 4.0, 3.0, 4.0, 4.0, 4.0]]


def test_random_polynomials_against_their_largest_value_on_a_grid():
    """In two unknowns: no value of a grid is above the upper end, and the lower end is nearly reached."""
    rng = np.random.default_rng(31)
    grid = np.meshgrid(np.linspace(-1.0, 1.0, 201), np.linspace(0.0, 2.0, 201))
    for _ in range(40):
        c = [Fraction(int(k), 8) for k in rng.integers(-40, 41, 7)]

        def function(x, c=c, number=lambda k: k):
            c = [number(k) for k in c]
            return (c[0] + c[1] * x[0] + c[2] * x[1] + c[3] * x[0] * x[1] + c[4] * x[0] ** 3
                    + c[5] * x[0] * x[1] ** 2) / (3 + x[0] * x[1] + x[1] ** 2) + c[6]

        found = maximise(function, [(-1.0, 1.0), (0.0, 2.0)], tolerance=1e-5, most_boxes=100_000)
        best = function(grid, number=float).max()
        assert found.upper >= best - 1e-12 and found.lower <= best + 0.05
        at = function([Fraction(x) for x in found.point])  # exactly there
        assert float(found.lower) <= at <= found.upper


@pytest.mark.parametrize("broken", ["half", "no second term", "sign"])
def test_wrong_gradients_would_be_seen(broken, monkeypatch):
    """A gradient that is too short, or not all of it: the proved upper end falls below the maximum."""
    right = Dual.__mul__

    def wrong(self, other):
        found = right(self, other)
        if broken == "half":
            return Dual(found.value, found.gradient * Fraction(1, 2))
        if broken == "sign":
            return Dual(found.value, -found.gradient)
        return Dual(found.value, self.gradient * (other.value if isinstance(other, Dual) else other))

    def function(x):
        return x[0] * x[1] * (4 - x[0] * x[1]) + x[1] / 8 + x[0] * x[0] * x[1]

    box = [(0.1, 2.3), (0.2, 3.1)]
    true = maximise(function, box)
    assert true.closed
    monkeypatch.setattr(Dual, "__mul__", wrong)
    assert maximise(function, box).upper < true.lower or maximise(hills, KNOWN["twice"][1]).upper < 1.0


@pytest.mark.parametrize(("box", "words"), [
    ([], "list of pairs"), (None, "list of pairs"), (3.0, "list of pairs"), (np.array([[0.0, 1.0]]), "list"),
    ([(0.0, 1.0, 2.0)], r"box\[0\].*must be a pair"), ([(0.0, 1.0, 2.0), (3.0, 4.0, 5.0)], "must be a pair"),
    ([0.0, 1.0], r"box\[0\]=0.0 must be a pair"), ([(1.0, 1.0)], r"box\[0\]=\(1.0, 1.0\) must be"),
    ([(0.0, 1.0), (2.0, 1.0)], r"box\[1\]=\(2.0, 1.0\) must be"), ([(0.0, math.inf)], r"box\[0\]\[1\]=inf"),
    ([(math.nan, 1.0)], r"box\[0\]\[0\]=nan"), ([("0", "1")], "a real number"), ([(False, True)], "real"),
    ([(Fraction(1, 3), 1.0)], "must be a real number"), ([(-1.7e308, 1.7e308)], "finite range")])
def test_bad_boxes_are_refused(box, words):
    """Naming the side and what is wrong with it, before the function is called."""
    with pytest.raises(ValueError, match=words):
        maximise(pytest.fail, box)


@pytest.mark.parametrize(("given", "words"), [
    ({"tolerance": 0.0}, "tolerance=0.0 must be"), ({"tolerance": math.nan}, "tolerance=nan must be"),
    ({"tolerance": "1"}, "tolerance='1' must be"), ({"most_boxes": 0}, "most_boxes=0 must be"),
    ({"most_boxes": 2.5}, "most_boxes=2.5 must be"), ({"most_boxes": 10**15}, "most_boxes=1000000000000000"),
    ({"progress": "yes"}, "progress='yes' must be"), ({"function": 3}, "function")])
def test_bad_arguments_are_refused(given, words):
    """Naming argument, value and condition, before the function is called."""
    with pytest.raises(ValueError, match=words):
        maximise(**{"function": pytest.fail, "box": [(0.0, 1.0)], **given})


def test_functions_of_floats_are_refused():
    """Neither a float beside an unknown nor a float for a value is a proof."""
    for function in (lambda x: 0.5 * x[0], lambda x: 0.5, lambda x: np.exp(x[0]), lambda x: float(x[0])):
        with pytest.raises(TypeError):
            maximise(function, [(0.0, 1.0)])


def test_progress_prints_now_and_then(monkeypatch, capsys):
    """Lines with both ends, which contain the maximum; none when nobody asks."""
    monkeypatch.setattr(boxes, "SECONDS", 0.0)
    monkeypatch.setattr(boxes, "BATCH", 16)
    maximise(*KNOWN["twice"][:2], tolerance=1e-6)
    assert capsys.readouterr().out == ""
    maximise(*KNOWN["twice"][:2], tolerance=1e-6, progress=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    for line in lines:
        low, high = (float(end) for end in line[line.index("[") + 1:line.index("]")].split(","))
        assert low <= 1.0 <= high and line.endswith("open") and "boxes" in line
