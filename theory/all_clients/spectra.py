"""Eigenvalues of a mixing matrix, each between two rational numbers that are proved in integers.

A matrix of doubles has rows whose sum is 1 only to rounding, and theorems on mixing need 1. So what is said
is said of the matrix nearby that is symmetric and has these sums exactly: off the diagonal the mean of both
entries, and on it what is missing from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, lcm
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

Rows = list[list[Fraction]]

NEAR = 1e-12
"""How far the exact matrix may be from the doubles."""
BITS = 60
"""Binary digits of the eigenvalues and eigenvectors that floats propose."""
SIMPLE = 1000
"""Largest denominator of a and b in a second matrix a I + b W."""


class Eigenvalue(NamedTuple):
    """`multiplicity` eigenvalues, each within `radius` of `centre`."""

    centre: Fraction
    radius: Fraction
    multiplicity: int


class NotProved(ValueError):
    """Nothing is proved here, and why; it says nothing against the sampler."""


def exact(matrix: Array) -> Rows:
    """The exact symmetric matrix with rows of sum 1 beside a matrix (N, N) of doubles."""
    given = [[Fraction(float(x)) for x in row] for row in matrix]
    n = len(given)
    rows = [[(given[i][j] + given[j][i]) / 2 if i != j else Fraction(0) for j in range(n)] for i in range(n)]
    for i in range(n):
        rows[i][i] = 1 - sum(rows[i], Fraction(0))
    gap, i, j = max((abs(rows[i][j] - given[i][j]), i, j) for i in range(n) for j in range(n))
    if gap > NEAR:
        raise NotProved(f"the mixing matrix must be symmetric with rows of sum 1, to {NEAR:g}: at entry "
                        f"({i}, {j}) it is {float(gap):.3g} away from one that is")
    return rows


def affine(matrix: Array, first: Rows) -> tuple[Fraction, Fraction]:
    """a and b of a second matrix a I + b W with rows of sum 1, where it is one."""
    other, n = exact(matrix), len(first)
    places = [(i, j) for i in range(n) for j in range(n) if i != j]
    i, j = max(places, key=lambda at: abs(first[at[0]][at[1]]), default=(0, 0))
    if i == j or not first[i][j]:
        b = Fraction(0)
    else:
        b = (other[i][j] / first[i][j]).limit_denominator(SIMPLE)
    gap = max((abs(other[i][j] - b * first[i][j]) for i, j in places), default=Fraction(0))
    if gap > NEAR:
        raise NotProved("the sampler mixes with two matrices that have no eigenvectors in common as far as "
                        f"is known: the second must be a I + b W of the first, and is {float(gap):.3g} away")
    return 1 - b, b


def components(rows: Sequence[Sequence[Fraction]]) -> int:
    """Groups of clients that ever meet."""
    left, groups = set(range(len(rows))), 0
    while left:
        groups += 1
        reached = [left.pop()]
        while reached:
            i = reached.pop()
            met = {j for j in left if rows[i][j]}
            left -= met
            reached += met
    return groups


def eigenvalues(rows: Sequence[Sequence[Fraction]]) -> list[Eigenvalue]:
    """Enclosures of all eigenvalues but the 1 of the vector of ones, from the largest on.

    With floats V and l for eigenvectors and eigenvalues, each eigenvalue of the matrix is within
    |W - V diag(l) V'| of one of V diag(l) V' (Weyl), which is within |l_i| |V'V - I| of l_i (Ostrowski).
    Whatever floats propose, the norms are those of integers.

    Parameters
    ----------
    rows : N rows of Fractions
        Symmetric, with rows of sum 1, of clients who all meet.

    Raises
    ------
    NotProved
        For clients who never meet, or an eigenvalue that cannot be told from 1.
    """
    n, groups = len(rows), components(rows)
    if groups > 1:
        raise NotProved(f"the network has {groups} groups of clients that never meet; certificates are for "
                        "connected networks")
    proposed, vectors = np.linalg.eigh(np.array([[float(x) for x in row] for row in rows]))
    V = _integers(vectors)
    values = _integers(proposed)
    scale = lcm(*(x.denominator for row in rows for x in row))
    whole = np.array([[int(x * scale) for x in row] for row in rows], dtype=object)
    # W - V diag(l) V' and V'V - I in units of 2^(-3 BITS) / scale and 2^(-2 BITS)
    apart = _norm(whole * 2 ** (3 * BITS) - (V * values[None, :]) @ V.T * scale)
    weyl = Fraction(apart, scale * 2 ** (3 * BITS))
    skew = Fraction(_norm(V.T @ V - 4**BITS * np.eye(n, dtype=int).astype(object)), 4**BITS)
    found = [Eigenvalue(Fraction(int(value), 2**BITS), weyl + abs(Fraction(int(value), 2**BITS)) * skew, 1)
             for value in values]
    ones = [one for one in found if abs(one.centre - 1) <= one.radius]
    if len(ones) != 1:
        raise NotProved(f"the network mixes so slowly that {len(ones)} of its eigenvalues cannot be told "
                        "from 1, as one must be")
    found.remove(ones[0])
    return _clusters(sorted(found, reverse=True))


def _integers(values: Any) -> np.ndarray:
    """Doubles in units of 2^-BITS, as Python's integers."""
    return np.array([int(Fraction(float(x)) * 2**BITS) for x in np.ravel(values)],
                    dtype=object).reshape(np.shape(values))


def _norm(table: np.ndarray) -> int:
    """An integer that is no less than the Frobenius norm."""
    return isqrt(int((table * table).sum())) + 1


def _clusters(found: Sequence[Eigenvalue]) -> list[Eigenvalue]:
    """Those that overlap are one, with the hull of all."""
    made: list[Eigenvalue] = []
    for one in found:
        low, high, count = one.centre - one.radius, one.centre + one.radius, one.multiplicity
        if made and high >= made[-1].centre - made[-1].radius:
            last = made.pop()
            low, high = min(low, last.centre - last.radius), max(high, last.centre + last.radius)
            count += last.multiplicity
        made.append(Eigenvalue((low + high) / 2, (high - low) / 2, count))
    return made
