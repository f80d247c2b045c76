"""Whether a symmetric matrix of fractions is positive semidefinite: LDL' without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from fedsim.settings.validation import shown

Vector = tuple[Fraction, ...]


class Semidefinite(NamedTuple):
    """What is decided of a matrix A.

    Attributes
    ----------
    holds : bool
        Whether x'Ax >= 0 for all x.
    witness : tuple of Fraction, or None
        An x with x'Ax < 0, where it does not hold.

    Examples
    --------
    >>> theory.certificates.semidefinite([[1, 1], [1, 1]])
    Semidefinite(holds=True, witness=None)
    """

    holds: bool
    witness: Vector | None


def semidefinite(matrix: Sequence[Sequence[int | Fraction]]) -> Semidefinite:
    """Decide it exactly; a proof in both cases.

    Pivots are taken in order. A positive one is eliminated; a negative one is a direction in which the form
    is negative; a pivot of 0 must have a row of 0, for with a = A_ij != 0 the form
    2 t a + A_jj of t e_i + e_j has both signs. What holds for what is left holds for A, and a witness of what
    is left becomes one of A by the steps backward.

    Parameters
    ----------
    matrix : n rows of n numbers, int or Fraction
        Symmetric, n >= 1. Of a double say ``Fraction(x)``, which is exactly the double.

    Returns
    -------
    Semidefinite

    Raises
    ------
    ValueError
        For a matrix that is not square or not symmetric, and for entries that are no fractions.

    Source: R. A. Horn and C. R. Johnson, Matrix Analysis, section 7.1 (a zero pivot); derived here (the
    witness).

    Examples
    --------
    >>> holds, x = theory.certificates.semidefinite([[2, 3], [3, 4]])
    >>> holds, x, 2 * x[0] ** 2 + 6 * x[0] * x[1] + 4 * x[1] ** 2
    (False, (Fraction(-3, 2), Fraction(1, 1)), Fraction(-1, 2))
    """
    left = _checked(matrix)
    n = len(left)
    columns: dict[int, list[Fraction]] = {}
    for i in range(n):
        pivot, column = left[i][i], [left[j][i] for j in range(n)]
        if pivot < 0:
            return Semidefinite(False, _back(columns, {i: Fraction(1)}, n))
        other = next((j for j in range(i + 1, n) if column[j] != 0), None)
        if pivot == 0:
            if other is None:
                continue
            step = -(left[other][other] + 1) / (2 * column[other])
            return Semidefinite(False, _back(columns, {i: step, other: Fraction(1)}, n))
        columns[i] = column
        for j in range(i + 1, n):
            if column[j]:
                factor = column[j] / pivot
                for k in range(i + 1, j + 1):
                    left[j][k] -= factor * column[k]
    return Semidefinite(True, None)


def _back(columns: dict[int, list[Fraction]], known: dict[int, Fraction], n: int) -> Vector:
    """The vector with these entries, 0 where nothing was eliminated, and the best where something was."""
    x = [known.get(j, Fraction(0)) for j in range(n)]
    for i in reversed(columns):
        column = columns[i]
        x[i] = -sum((column[j] * x[j] for j in range(i + 1, n)), Fraction(0)) / column[i]
    return tuple(x)


def _checked(matrix: Any) -> list[list[Fraction]]:
    """A copy in fractions, of which the lower triangle is used."""
    rows = [list(row) for row in matrix] if _is_sequence(matrix) and all(map(_is_sequence, matrix)) else []
    if not rows or any(len(row) != len(rows) for row in rows):
        raise ValueError(f"matrix={shown(matrix)} must be n rows of n numbers, n >= 1")
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if isinstance(entry, bool) or not isinstance(entry, (int, Fraction)):
                raise ValueError(f"matrix[{i}][{j}]={shown(entry)} must be an int or a Fraction; of a double "
                                 "say Fraction(x), which is exact")
            if entry != rows[j][i]:
                raise ValueError(f"matrix[{i}][{j}]={shown(entry)} must be equal to matrix[{j}][{i}]="
                                 f"{shown(rows[j][i])}: the matrix must be symmetric")
    return [[Fraction(entry) for entry in row] for row in rows]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))
