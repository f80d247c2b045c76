"""What is decided without rounding: LDL' in fractions, enclosures by integers, threads without subnormals."""

from __future__ import annotations

import ctypes
import math
import platform
import sys
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest

import theory
from theory import worst_case
from theory.certificates import Enclosure, Undecided, decided, refuse_flushing, semidefinite, subnormals
from theory.worst_case import numbers

TINY = Fraction(1, 2**200)


def form(matrix, x):
    return sum(matrix[i][j] * x[i] * x[j] for i in range(len(x)) for j in range(len(x)))


def drawn(rng, n, rank):
    """B B' of rational columns, exactly of this rank, and one vector of its kernel where it is singular."""
    while True:
        B = [[Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 8))) for _ in range(rank)]
             for _ in range(n)]
        if np.linalg.matrix_rank(np.array(B, dtype=float).reshape(n, rank)) == rank:
            return [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in B] for x in B]


def test_grams_are_semidefinite_and_nothing_less():
    """Of every rank; less 2^-200 at a diagonal entry they hold exactly where that stays within the rank."""
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(60):
        n = int(rng.integers(1, 7))
        rank = int(rng.integers(0, n + 1))
        gram = drawn(rng, n, rank)
        order = rng.permutation(n)
        gram = [[gram[i][j] for j in order] for i in order]
        assert semidefinite(gram) == (True, None)
        place = int(rng.integers(n))
        gram[place][place] -= TINY
        found = semidefinite(gram)
        if rank == n:
            assert found.holds  # a least eigenvalue far above 2^-200
        if rank == 0:
            assert not found.holds
        if not found.holds:
            refused += 1
            assert form(gram, found.witness) < 0
        else:
            assert found.witness is None
        gram[place][place] += 2 * TINY
        assert semidefinite(gram).holds
    assert refused > 20


def test_a_form_that_is_negative_in_one_direction_alone():
    """Indefinite by 2^-200, in coordinates that hide it; a float of the least eigenvalue cannot tell."""
    rng = np.random.default_rng(6)
    for _ in range(40):
        n = int(rng.integers(2, 6))
        lower = [[Fraction(int(rng.integers(-9, 10))) if j < i else Fraction(int(i == j)) for j in range(n)]
                 for i in range(n)]
        for sign in (-1, 0, 1):
            values = [Fraction(1)] * n
            values[int(rng.integers(n))] = sign * TINY
            matrix = [[sum(lower[i][k] * values[k] * lower[j][k] for k in range(n)) for j in range(n)]
                      for i in range(n)]
            found = semidefinite(matrix)
            assert found.holds == (sign >= 0)
            if not found.holds:
                assert form(matrix, found.witness) < 0


@pytest.mark.parametrize(("matrix", "holds"), [
    ([[0]], True), ([[-1]], False), ([[TINY]], True), ([[-TINY]], False),
    ([[0, 0], [0, 1]], True), ([[0, 1], [1, 5]], False), ([[0, -TINY], [-TINY, 5]], False),
    ([[0, 0, 0], [0, 0, 1], [0, 1, 0]], False), ([[1, 1, 0], [1, 1, 0], [0, 0, 0]], True),
    ([[1, 1, 1], [1, 1, 2], [1, 2, 9]], False), ([[4, 2], [2, 1]], True), ([[4, 2], [2, 1 - TINY]], False)])
def test_pivots_of_zero(matrix, holds):
    found = semidefinite(matrix)
    assert found.holds == holds
    assert holds or form(matrix, found.witness) < 0


@pytest.mark.parametrize(("matrix", "words"), [
    ([], "matrix=.* must be n rows of n numbers"), (3, "must be n rows"), ([[1, 2]], "must be n rows"),
    ([1, 2], "must be n rows"), ([[1.0]], r"matrix\[0\]\[0\]=1.0 must be an int or a Fraction; of a double"),
    ([[True]], "must be an int or a Fraction"), ([[1, 2], [3, 4]], "the matrix must be symmetric")])
def test_what_is_no_matrix_of_fractions(matrix, words):
    with pytest.raises(ValueError, match=words):
        semidefinite(matrix)


def test_enclosures_contain_what_they_stand_for():
    """Random expressions against fractions, at few bits; signs are right or undecided, never wrong."""
    rng = np.random.default_rng(7)
    known = 0
    for _ in range(400):
        exact = [Fraction(int(rng.integers(-99, 100)), int(rng.integers(1, 99))) for _ in range(6)]
        held = [Enclosure.of(value, 20) for value in exact]
        for _ in range(6):
            i, j, what = rng.integers(6), rng.integers(6), rng.choice(["+", "-", "*", "/", "2-", "3*"])
            a, b, x, y = exact[i], exact[j], held[i], held[j]
            if what == "/" and y.lo <= 0 <= y.hi:
                with pytest.raises((Undecided, ZeroDivisionError)):
                    _ = x / y
                continue
            ways = {"+": (lambda p, q: p + q), "-": (lambda p, q: p - q), "*": (lambda p, q: p * q),
                    "/": (lambda p, q: p / q), "2-": (lambda p, q: 2 - p), "3*": (lambda p, q: 3 * p)}
            exact[i], held[i] = ways[what](a, b), ways[what](x, y)
            assert held[i].least <= exact[i] <= Fraction(held[i].hi, 2**20)
            if held[i].lo > 0 or held[i].hi < 0:
                known += 1
                assert held[i].sign == (exact[i] > 0) - (exact[i] < 0)
    assert known > 1000


def test_the_precision_grows_until_signs_are_known():
    asked = []

    def question(x):
        asked.append(x.bits)
        return (x * x - 2).sign

    root = Fraction(math.isqrt(2 * 4**3000), 2**3000)
    assert decided(question, root) == -1 and asked == [128, 512, 2048, 8192]
    assert decided(question, root + Fraction(1, 2**3000)) == 1
    assert decided(lambda x: (x / 3 * 3 - 1).sign, Fraction(1)) is None


# --- threads that lose subnormal numbers


def _environment():
    """(library, place of the control word in its fenv_t, bits that flush): of what a test can set itself."""
    known = {("linux", "x86_64"): (28, 0x8040), ("linux", "aarch64"): (0, 1 << 24)}
    return known.get((sys.platform, platform.machine()))


@contextmanager
def set_by_the_processor(monkeypatch):
    """As a library of -ffast-math leaves it."""
    place, bits = _environment()
    lib = ctypes.CDLL("libm.so.6")
    before, after = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    assert lib.fegetenv(before) == lib.fegetenv(after) == 0
    word = ctypes.c_uint32.from_buffer(after, place)
    word.value |= bits
    assert lib.fesetenv(after) == 0
    try:
        yield
    finally:
        assert lib.fesetenv(before) == 0


@contextmanager
def results_flushed(monkeypatch):
    """A processor that loses results only (FTZ); the comparison with 0 is Python's."""
    with monkeypatch.context() as patch:
        patch.setattr(subnormals, "product", lambda a, b: 0.0 if a * b < 2.0**-1022 and b < 1.0 else a * b)
        yield


@contextmanager
def operands_flushed(monkeypatch):
    """And one that takes operands for zero (DAZ)."""
    with monkeypatch.context() as patch:
        patch.setattr(subnormals, "product", lambda a, b: 0.0 if min(a, b) < 2.0**-1022 else a * b)
        yield


WAYS = [results_flushed, operands_flushed] + ([set_by_the_processor] if _environment() else [])


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def flushing(request, monkeypatch):
    return lambda: request.param(monkeypatch)


def doors():
    """Everything that proves by floats, or takes doubles for fractions."""
    one, both = worst_case.Interval.exact(0.5), worst_case.Interval(1.0, 2.0)
    dual = worst_case.Dual.unknowns(worst_case.Interval([[1.0]], [[2.0]]))[0]
    scalar = {"curvatures": (1.0, 3.0), "step_size": 0.1, "distance": 1.0}
    found = worst_case.certify("fa_ld.stationary_w2", most_boxes=9, **scalar)
    contraction = theory.fa_hmc.Contraction(0.1, 1.0, 0.3, 3)
    assert contraction.certified
    return {
        "certify": lambda: worst_case.certify("fa_ld.stationary_w2", **scalar), "verify": found.verify,
        "maximise": lambda: worst_case.maximise(lambda x: x[0], [(0.0, 1.0)]),
        "commuting": lambda: worst_case.commuting_supremum(2, "fa_ld.stationary_w2", curvatures=(1.0, 3.0),
                                                           step_size=0.1, heterogeneity=1.0),
        "clients": lambda: worst_case.enough_clients(curvatures=(1.0, 3.0), step_size=0.1, local_steps=3),
        "exact": lambda: worst_case.Interval.exact(0.5), "ends": lambda: worst_case.Interval(1.0, 2.0),
        "rational": lambda: worst_case.Interval.rational(1, 3), "+": lambda: one + both,
        "-": lambda: one - both, "*": lambda: one * both, "/": lambda: one / both, "**": lambda: one**3,
        "sqrt": one.sqrt, "root": lambda: worst_case.sqrt(both), "dual": lambda: dual * dual,
        "contraction": lambda: theory.fa_hmc.Contraction(0.1, 1.0, 0.3, 3).certified,
        "contraction again": lambda: contraction.certified,
        "matrix": lambda: theory.fa_hmc.Contraction(0.1, 1.0, 0.3, 3).matrix, "itself": refuse_flushing}


def test_nothing_is_proved_where_subnormals_are_lost(flushing):
    for name, door in doors().items():
        door()
        with flushing(), pytest.raises(RuntimeError, match="flushes subnormal numbers to zero"):
            door()
            print(f"{name} says nothing")  # shown where the refusal is missing
        door()


COMPUTES_NOTHING = {"_of", "beside", "contains", "__neg__", "__repr__", "__module__", "__doc__", "__slots__",
                    "__annotations__", "hi", "lo"}


def test_every_operation_of_intervals_is_among_the_doors():
    """One that is added later has to be added there."""
    said = {"__init__": "ends", "__add__": "+", "__radd__": "+", "__sub__": "-", "__rsub__": "-",
            "__mul__": "*", "__rmul__": "*", "__truediv__": "/", "__rtruediv__": "/", "__pow__": "**",
            "sqrt": "sqrt", "exact": "exact", "rational": "rational"}
    own = {name for name in vars(worst_case.Interval) if name[:2] != "__" or name in dir(float)}
    assert own - COMPUTES_NOTHING - set(said) - set(dir(object)) == set()
    assert set(said.values()) <= set(doors())


def test_why_they_are_refused(monkeypatch):
    """The interval of a product does not contain it: what would be proved without the check."""
    a, b = (worst_case.Interval.exact(2.0**-n) for n in (600, 450))
    true = Fraction(2) ** -1050
    assert (a * b).contains(true)
    if _environment():
        monkeypatch.setattr(numbers, "refuse_flushing", lambda: None)
        with set_by_the_processor(monkeypatch):
            found = a * b
        assert not found.contains(true)
