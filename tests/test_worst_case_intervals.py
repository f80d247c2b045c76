"""Interval arithmetic and its gradients: against exact fractions."""

from __future__ import annotations

import copy
import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from theory.worst_case import Dual, Interval, sqrt

TREES, POINTS, BITS = 100, 1000, 20
SMALLEST, LARGEST = 5e-324, 1.7976931348623157e308
INFINITE = (-math.inf, math.inf)


def ends_of(interval):
    return interval.lo.tolist(), interval.hi.tolist()


def divided(x, y):
    """Exact x/y; where y is 0 any number will do: all that is said of it is that nothing is known."""
    return x / y if y else Fraction(7)


DIVIDED = np.frompyfunc(divided, 2, 1)
FRACTION = np.frompyfunc(Fraction, 1, 1)


def doubles(rng, n, exponents):
    """Random doubles of both signs."""
    return rng.choice([-1.0, 1.0], n) * np.ldexp(rng.uniform(0.5, 1.0, n), rng.integers(*exponents, n))


def leaf(rng):
    """An operand and an exact number in it at every point: doubles, ranges, or a plain exact number."""
    kind = rng.choice(["double", "range", "neighbours", "fraction", "whole"], p=[0.3, 0.4, 0.1, 0.1, 0.1])
    if kind == "whole":
        number = int(rng.integers(-9, 10))
        return number, FRACTION(np.full(POINTS, number))
    if kind == "fraction":
        number = Fraction(int(rng.integers(-50, 50)), int(rng.integers(1, 50)))
        return number, FRACTION(np.full(POINTS, number))
    exponents = [(-3, 4), (-60, 61), (-1070, 1024)][rng.choice(3, p=[0.5, 0.45, 0.05])]
    low = doubles(rng, POINTS, exponents)
    if kind == "double":
        return Interval.exact(low), FRACTION(low)
    high = np.nextafter(low, np.inf) if kind == "neighbours" else doubles(rng, POINTS, exponents)
    low, high = np.minimum(low, high), np.maximum(low, high)
    share = FRACTION(rng.integers(0, 2**BITS + 1, POINTS)) / 2**BITS
    return Interval(low, high), FRACTION(low) + (FRACTION(high) - FRACTION(low)) * share


def expression(rng, depth):
    """A random formula's value in intervals, and exactly."""
    if depth == 0 or rng.uniform() < 0.15:
        return leaf(rng)
    what = rng.choice(["+", "-", "*", "/", "**", "minus"], p=[0.22, 0.22, 0.22, 0.2, 0.1, 0.04])
    one, exact = expression(rng, depth - 1)
    if what == "minus":
        return -one, -exact
    if what == "**":
        n = int(rng.integers(0, 5))
        return one**n, exact**n
    other, right = expression(rng, depth - 1)
    if not isinstance(one, Interval) and not isinstance(other, Interval):
        one = Interval.rational(one)
    if what == "/":
        if not isinstance(one, Interval) or isinstance(other, Interval) or other != 0:
            return one / other, DIVIDED(exact, right)
        what = "*"
    chosen = {"+": operator.add, "-": operator.sub, "*": operator.mul}[what]
    return chosen(one, other), chosen(exact, right)


@pytest.mark.parametrize("block", range(4))
def test_every_expression_contains_its_exact_value(block):
    """A hundred thousand values of random formulas, operands of all sizes and widths: none outside."""
    rng = np.random.default_rng([20, block])
    narrow = 0
    for _ in range(TREES // 4):
        found, exact = expression(rng, int(rng.integers(1, 5)))
        found = found if isinstance(found, Interval) else Interval.rational(found)
        low, high = (np.broadcast_to(end, POINTS) for end in (found.lo, found.hi))
        assert (low <= high).all()
        outside = [i for i in range(POINTS) if not float(low[i]) <= exact[i] <= float(high[i])]
        assert not outside, (low[outside[0]], exact[outside[0]], high[outside[0]])
        narrow += np.count_nonzero(0.5 * high - 0.5 * low <= 1e-9 * np.abs(low))
    assert narrow > 1000  # they are not all so wide that nothing could be missed


def test_one_operation_on_numbers_is_wide_by_three_doubles_at_most():
    """Containing all would be cheap: a single operation on doubles is as narrow as it can be."""
    rng = np.random.default_rng(21)
    x, y = (doubles(rng, POINTS, (-60, 61)) for _ in range(2))
    one, other = Interval.exact(x), Interval.exact(y)
    for found in (one + other, one - other, one * other, one / other, Interval.exact(x * x).sqrt()):
        assert (np.nextafter(np.nextafter(found.lo, np.inf), np.inf) >= found.hi).all()
    for found, exact in ((one + other, x + y), (one * other, x * y), (one / other, x / y)):
        assert (found.lo < exact).all() and (exact < found.hi).all()  # one step to both sides


@pytest.mark.parametrize("exponents", [(-3, 4), (-60, 61), (-1070, 1024)])
def test_square_roots_are_compared_by_their_squares(exponents):
    """Lower end squared <= exact number <= upper end squared, in fractions."""
    rng = np.random.default_rng(22)
    low, high = np.sort(np.abs([doubles(rng, POINTS, exponents), doubles(rng, POINTS, exponents)]), axis=0)
    low[:100] = high[:100]
    low[100:120] = high[110:120] = 0.0
    low[110:120] = -1.0
    share = FRACTION(rng.integers(0, 2**BITS + 1, POINTS)) / 2**BITS
    exact = FRACTION(low) + (FRACTION(high) - FRACTION(low)) * share
    root = sqrt(Interval(low, high))
    assert (root.lo >= 0.0).all()
    for below, value, above in zip(root.lo, exact, root.hi, strict=True):
        if value >= 0:
            assert Fraction(float(below)) ** 2 <= value <= Fraction(float(above)) ** 2
    assert ends_of(Interval(-2.0, -1.0).sqrt()) == INFINITE
    assert ends_of(Interval(4.0, np.inf).sqrt()) == (np.nextafter(2.0, 0.0), np.inf)


def test_division_by_what_contains_zero_knows_nothing():
    """Zero inside, at an end, with a sign, or alone; also under a Dual."""
    for low, high in ((-1.0, 2.0), (0.0, 1.0), (-1.0, 0.0), (0.0, 0.0), (-0.0, 1.0), (-1.0, -0.0)):
        for over in (Interval(3.0, 4.0), Interval(0.0, 0.0), 1, Fraction(1, 3)):
            assert ends_of(over / Interval(low, high)) == INFINITE
        x, = Dual.unknowns(Interval([[low]], [[high]]))
        assert ends_of((1 / x).gradient) == ([[-np.inf]], [[np.inf]])
    assert ends_of(Interval(1.0, 1.0) / Interval(SMALLEST, 1.0)) == (np.nextafter(1.0, 0.0), np.inf)


def test_infinite_ends():
    """0 times what is unbounded is 0, and no end is ever no number or the wrong infinity."""
    half_lines = [Interval(-np.inf, np.inf), Interval(2.0, np.inf), Interval(-np.inf, -2.0),
                  Interval(0.0, np.inf), Interval(-np.inf, 0.0), Interval(-1.0, np.inf)]
    for one in half_lines:
        nothing = one * Interval(0.0, 0.0)
        assert nothing.contains(0.0) and nothing.hi <= SMALLEST and nothing.lo >= -SMALLEST
        for other in [*half_lines, Interval(-1.0, 2.0), Interval(3.0, 4.0), Interval(0.0, 1.0)]:
            for found in (one + other, one - other, one * other, one / other, one**2, one**3, other.sqrt()):
                assert found.lo <= found.hi and found.lo < np.inf and found.hi > -np.inf
    assert ends_of(Interval(0.0, 1.0) * Interval(2.0, np.inf)) == (-SMALLEST, np.inf)
    assert (Interval(1.0, np.inf) / Interval(1.0, np.inf)).contains(np.array([1e-300, 1.0, 1e300])).all()
    assert ends_of(Interval(2.0, np.inf) ** 3)[1] == np.inf
    assert ends_of(Interval(-np.inf, -2.0) ** 3)[0] == -np.inf
    assert ends_of(Interval(-np.inf, 1.0) ** 2) == (0.0, np.inf)


def test_overflow_and_underflow_stay_on_the_safe_side():
    """What is beyond the doubles lies between the largest and infinity, what is below the smallest near 0."""
    huge, tiny = Interval.exact(1e200), Interval.exact(1e-200)
    for found in (huge * huge, huge**2, huge**7, Interval.rational(10**400), 1 / (tiny * tiny)):
        assert found.lo <= LARGEST and found.hi == np.inf
    for found in (-(huge * huge), -huge * huge, (-huge) ** 3, Interval.rational(-(10**400))):
        assert found.lo == -np.inf and found.hi >= -LARGEST
    for found in (tiny * tiny, tiny**2, tiny**3, Interval.rational(1, 10**400)):
        assert found.lo <= 0.0 and 0.0 < found.hi <= 2.0 * SMALLEST
    assert -2.0 * SMALLEST <= ((-tiny) ** 3).lo < 0.0
    assert (Interval.exact(SMALLEST) / 3).contains(Fraction(SMALLEST) / 3)
    assert (Interval.exact(1.0) * 10**400).contains(Fraction(10**400))


@pytest.mark.parametrize("n", [*range(8), 30, 1025])
def test_powers_of_intervals_across_zero(n):
    """Exactly the range of x^n but for rounding: even powers are at least 0, odd ones have both signs."""
    for low, high in itertools.combinations_with_replacement([-3.0, -1.5, -0.0, 0.0, 0.7, 2.0], 2):
        found = Interval(low, high) ** n
        for share in (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)):
            assert found.contains((Fraction(low) + (Fraction(high) - Fraction(low)) * share) ** n)
        if n % 2 == 0:
            assert found.lo >= 0.0
        if n <= 30:
            exact = [Fraction(end) ** n for end in (low, high)] + [Fraction(0)] * (low < 0.0 < high and n > 0)
            for end, near in ((found.lo, min(exact)), (found.hi, max(exact))):
                off = abs(Fraction(float(end)) - near)
                assert off <= n * (abs(near) / 2**50 + Fraction(SMALLEST))
    with pytest.raises(ValueError, match="n=-1 must be"):
        Interval(1.0, 2.0) ** -1
    with pytest.raises(ValueError, match=r"n=0\.5 must be"):
        Interval(1.0, 2.0) ** 0.5


class Slope:
    """A number of two unknowns and its two derivatives, in fractions."""

    def __init__(self, value, *slopes):
        self.value, self.slopes = Fraction(value), tuple(map(Fraction, slopes or (0, 0)))

    def _with(self, other, value, mine, its):
        return Slope(value, *(mine * a + its * b for a, b in zip(self.slopes, other.slopes, strict=True)))

    def __add__(self, b):
        return self._with(b, self.value + b.value, 1, 1)

    def __sub__(self, b):
        return self._with(b, self.value - b.value, 1, -1)

    def __mul__(self, b):
        return self._with(b, self.value * b.value, b.value, self.value)

    def __truediv__(self, b):
        return self._with(b, self.value / b.value, 1 / b.value, -self.value / b.value**2)

    def __pow__(self, n):
        return self._with(self, self.value**n, n * self.value ** (n - 1) if n > 1 else 1, 0)


def formula(rng, depth):
    """A random rational function of two unknowns; constants, which are exact, on either side."""
    if depth == 0:
        i = int(rng.integers(0, 2))
        return lambda x, constant: x[i]
    left, right = formula(rng, depth - 1), formula(rng, int(rng.integers(0, depth)))
    number = Fraction(int(rng.integers(-9, 10)), int(rng.choice([1, 1, 7])))
    operation = [operator.add, operator.sub, operator.mul, operator.truediv][rng.integers(0, 4)]
    n = int(rng.integers(1, 6))
    return [lambda x, constant: operation(left(x, constant), right(x, constant)),
            lambda x, constant: operation(constant(number), left(x, constant)),
            lambda x, constant: operation(left(x, constant), constant(number or Fraction(3))),
            lambda x, constant: left(x, constant) ** n][rng.choice(4, p=[0.5, 0.2, 0.2, 0.1])]


def test_gradients_contain_the_exact_ones():
    """Of random rational functions on random boxes, at random points of these; by a chain rule of our own."""
    rng, n, seen = np.random.default_rng(23), 8, 0
    for _ in range(400):
        low = doubles(rng, 2 * n, (-2, 3)).reshape(2, n)
        high = low + np.abs(doubles(rng, 2 * n, (-30, 1)).reshape(2, n)) * (rng.uniform(size=(2, n)) < 0.8)
        function = formula(rng, int(rng.integers(1, 5)))
        share = rng.integers(0, 2**BITS + 1, (2, n))
        found = function(Dual.unknowns(Interval(low, high)), lambda number: number)
        for i in range(n):
            at = [Fraction(below) + (Fraction(above) - Fraction(below)) * int(part) / 2**BITS
                  for below, above, part in zip(low[:, i], high[:, i], share[:, i], strict=True)]
            try:
                exact = function([Slope(at[0], 1, 0), Slope(at[1], 0, 1)], Slope)
            except ZeroDivisionError:  # there is no function, and no derivative
                continue
            assert float(found.value.lo[i]) <= exact.value <= float(found.value.hi[i])
            for j in range(2):
                assert float(found.gradient.lo[j, i]) <= exact.slopes[j] <= float(found.gradient.hi[j, i])
            seen += bool(np.isfinite(found.gradient.lo[:, i]).all())
    assert seen > 1000


def test_the_gradient_of_a_root():
    """1/(2 sqrt x), by its square; of nothing is known at 0."""
    x, = Dual.unknowns(Interval([[0.5, 2.0, 0.0]], [[0.7, 2.0, 1.0]]))
    root = sqrt(x)
    for i, exact in ((0, Fraction(0.6)), (1, Fraction(2))):
        low, high = (Fraction(float(end[0, i])) for end in (root.gradient.lo, root.gradient.hi))
        assert 0 < low and low**2 <= 1 / (4 * exact) <= high**2
    assert high - low < Fraction(1, 10**15)
    assert root.gradient.lo[0, 2] == -np.inf and root.gradient.hi[0, 2] == np.inf


REFUSED = [0.5, np.float64(0.5), np.array([1.0, 2.0]), "1", None, True, 1j, [1], np.int64(3)]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_what_is_not_exact_is_refused_beside_an_interval(value):
    """Floats, arrays and all else, on both sides of every operation, of a Dual too."""
    number = Interval([1.0, 2.0], [2.0, 3.0])
    x, = Dual.unknowns(Interval([[1.0]], [[2.0]]))
    for one in (number, x):
        for operation in (operator.add, operator.sub, operator.mul, operator.truediv):
            for pair in ((one, value), (value, one)):
                with pytest.raises(TypeError, match=r"must be exact: say Interval\.exact|not support ufuncs"):
                    operation(*pair)


def test_no_float_and_no_order():
    """To become a float, an array or a truth, and to be compared, is refused, and says what to read."""
    one, (x,) = Interval(1.0, 2.0), Dual.unknowns(Interval([[1.0]], [[2.0]]))
    for number, name in ((one, "Interval"), (x, "Dual")):
        for attempt in (float, int, bool, np.asarray, math.floor, math.sqrt, complex, operator.index,
                        lambda v: v < 1, lambda v: 1 <= v, lambda v: v > v, lambda v: v >= 0,
                        lambda v: v == v, lambda v: v != 1, lambda v: max(v, v), lambda v: v in [1, v]):
            with pytest.raises(TypeError, match=f"no {name} is a float, or has an order: .* read its ends"):
                attempt(number)
        for attempt in (hash, np.sqrt, np.exp, abs, lambda v: 2**v, lambda v: v // 2):
            with pytest.raises(TypeError):
                attempt(number)
    assert repr(one) == "Interval(1.0, 2.0)" and repr(x).startswith("Dual(Interval([1.0], [2.0]), ")


@pytest.mark.parametrize(("lo", "hi"), [
    (math.nan, 1.0), (0.0, math.nan), (2.0, 1.0), ([0.0, 3.0], [1.0, 2.0]), (math.inf, math.inf),
    (-math.inf, -math.inf), (Fraction(1, 3), 1.0), (0.0, Fraction(1, 3)), ("1", 2.0), (True, 2.0),
    (2**53 + 1, 2.0**60), (0.0, 2**53 + 1), (0.0, 10**400), (np.longdouble(1) / 3, 1.0), (None, 1.0)])
def test_ends_that_are_no_doubles_or_in_no_order_are_refused(lo, hi):
    """Nothing is rounded on its way in."""
    with pytest.raises(ValueError, match=r"^(lo|hi)=.*must"):
        Interval(lo, hi)


@pytest.mark.parametrize("value", [math.nan, [1.0, -math.inf], 2**53 + 1, Fraction(1, 3), "1", True])
def test_exact_takes_finite_doubles(value):
    """And nothing that would have to be rounded."""
    with pytest.raises(ValueError, match=r"^value"):
        Interval.exact(value)


def test_entries():
    """Decimal fractions lie between neighbours, doubles are what they are, and arrays are not shared."""
    tenth = Interval.rational(1, 10)
    assert tenth.contains(Fraction(1, 10)) and tenth.lo < tenth.hi
    assert ends_of(Interval.rational(3, 8)) == (0.375, 0.375) == ends_of(Interval.exact(0.375))
    assert not Interval.exact(0.1).contains(Fraction(1, 10))
    assert (Interval.rational(1, 3) * 3).contains(1.0)
    assert ends_of(Interval(2**53, 2**60)) == (2.0**53, 2.0**60)
    given = np.array([1.0, 2.0])
    kept = Interval(given, given)
    given[:] = 0.0
    assert kept.lo.tolist() == [1.0, 2.0] == copy.deepcopy(kept).hi.tolist()
    assert Interval([0.0, 1.0], [1.0, 2.0]).contains(np.array([0.5, 0.5])).tolist() == [True, False]
    assert Interval([0.0, 1.0], [1.0, 2.0]).contains(Fraction(1, 2)).tolist() == [True, False]
    assert sqrt(4.0) == 2.0

