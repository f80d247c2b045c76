"""The inequality of one mode of the network, in fractions: where a quadratic form of differences falls.

For z+ = A z + B g and points y = C z + D g, gradients of a function of the class satisfy
<g_i - m y_i, L y_i - g_i> >= 0, each for its own point alone. If with multipliers lam_i >= 0

    rho^2 z'P z - (A z + B g)'P (A z + B g) - sum_i lam_i <g_i - m y_i, L y_i - g_i> >= 0  for all z and g,

then z'P z falls by rho^2 in a round, summed over the modes, whose multipliers are the same. States with
conserved quantities u'z are looked at where these are 0, as they are at the start: there z = T a.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ..certificates import semidefinite
from .spectra import Eigenvalue, NotProved, Rows
from .tracing import System, Table, shifted

Matrix = Sequence[Sequence[Fraction]]
Sides = Sequence[tuple[Fraction, Fraction]]
"""m and L of the clients' potentials, for each gradient of the round."""

FLOOR = Fraction(1, 10**12)
"""By how much a form's diagonal may shrink, relatively, at least: it is positive definite."""


class ModeTables(NamedTuple):
    """A mode at eigenvalues w = centre + e with |e| <= radius: for each power of e the tables
    [A, B] (p, p + q) and [C, D] (q, p + q)."""

    step: list[Rows]
    points: list[Rows]
    radius: Fraction

    @property
    def n_states(self) -> int:
        """p"""
        return len(self.step[0])

    @property
    def n_gradients(self) -> int:
        """q"""
        return len(self.points[0])


class Kept(NamedTuple):
    """Conserved quantities, the rows u of `conserved`, and columns t of `basis` for where they are 0."""

    conserved: Rows
    basis: Rows


def mode_tables(system: System, at: Eigenvalue | None) -> ModeTables:
    """A system's tables at an eigenvalue; at None, where none is in them."""
    centre, radius = (Fraction(0), Fraction(0)) if at is None else (at.centre, at.radius)
    entries = [one for table in (system.step, system.points) for row in table for one in row]
    if at is None and any(len(one) > 1 for one in entries):
        raise NotProved("the round has powers of an eigenvalue where there is none")

    def powers(table: Table) -> list[Rows]:
        moved = [[shifted(one, centre) for one in row] for row in table]
        degree = max((len(one) for row in moved for one in row), default=1)
        return [[[one[k] if k < len(one) else Fraction(0) for one in row] for row in moved]
                for k in range(max(degree, 1))]

    return ModeTables(powers(system.step), powers(system.points), radius)


def kept(tables: ModeTables) -> Kept:
    """All quantities that are conserved at every eigenvalue in reach, and a basis of the rest."""
    conserved = _annihilators([_change(tables, k) for k in range(len(tables.step))], tables.n_states)
    return Kept(conserved, _orthogonal(_annihilators([_transposed(conserved)], tables.n_states)))


def refuse_between(tables: ModeTables) -> tuple[ModeTables, ModeTables]:
    """The tables at both ends of the eigenvalues in reach, where what holds there holds in between.

    It does where [A, B] is affine in w, [C, D] does not depend on it, and one form is meant: what is taken
    from the inequality, (A z + B g)'P (A z + B g), is convex in w then.

    Raises
    ------
    NotProved
        For other rounds.
    """
    if any(x for table in tables.step[2:] for row in table for x in row) or any(
            x for table in tables.points[1:] for row in table for x in row):
        raise NotProved(f"the round has products of {len(tables.step) - 1} mixing matrices, or gradients at "
                        "mixed points: what holds for two eigenvalues need not hold between them; certify "
                        "the network")

    def end(side: int) -> ModeTables:
        moved = side * tables.radius
        step = [[x + moved * y for x, y in zip(row, more, strict=True)]
                for row, more in zip(tables.step[0], tables.step[1], strict=True)] if len(
                    tables.step) > 1 else tables.step[0]
        return ModeTables([step], tables.points[:1], Fraction(0))

    return end(-1), end(1)


def _change(tables: ModeTables, power: int) -> Rows:
    """[A - I, B] at a power of e."""
    return [[x - (power == 0 and i == j) for j, x in enumerate(row)]
            for i, row in enumerate(tables.step[power])]


def _transposed(rows: Matrix) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


def dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    """Their inner product."""
    return sum((a * b for a, b in zip(one, other, strict=True) if a and b), Fraction(0))


def product(one: Matrix, other: Matrix) -> Rows:
    """Their product."""
    columns = _transposed(other)
    return [[dot(row, column) for column in columns] for row in one]


def _annihilators(tables: Sequence[Matrix], size: int) -> Rows:
    """A basis of the u (size,) with u'table = 0 for each of these tables with `size` rows."""
    equations = [column for table in tables if table for column in _transposed(table)]
    pivots: dict[int, list[Fraction]] = {}
    for row in equations:
        row = list(row)
        for place, other in pivots.items():
            if row[place]:
                factor = row[place]
                row = [x - factor * y for x, y in zip(row, other, strict=True)]
        first = next((j for j, x in enumerate(row) if x), None)
        if first is None:
            continue
        row = [x / row[first] for x in row]
        for place, other in pivots.items():
            if other[first]:
                factor = other[first]
                pivots[place] = [x - factor * y for x, y in zip(other, row, strict=True)]
        pivots[first] = row
    free = [j for j in range(size) if j not in pivots]
    return [[Fraction(int(i == j)) if i not in pivots else -pivots[i][j] for i in range(size)] for j in free]


def _orthogonal(rows: Rows) -> Rows:
    """Orthogonal vectors with the same span."""
    made: Rows = []
    for row in rows:
        for other in made:
            factor = dot(row, other) / dot(other, other)
            row = [x - factor * y for x, y in zip(row, other, strict=True)]
        made.append(row)
    return made


def refuse_kept(tables: ModeTables, found: Kept) -> None:
    """Raise NotProved unless a round changes no conserved quantity, and the basis is of where they are 0."""
    size = tables.n_states
    rest = len(_annihilators([_transposed(found.conserved)], size))
    if len(found.basis) != rest:
        raise NotProved(f"the basis has {len(found.basis)} directions, and where the {len(found.conserved)} "
                        f"conserved quantities are 0 there are {rest}")
    for power in range(len(tables.step)):
        for u, row in zip(found.conserved, product(found.conserved, _change(tables, power))
                          if found.conserved else [], strict=True):
            if any(row):
                raise NotProved(f"the quantity {_told(u)} is not conserved by the round: it changes by "
                                f"{float(max(map(abs, row))):.3g} times the state or a gradient")
    for i, t in enumerate(found.basis):
        if not any(t) or any(dot(t, other) for other in [*found.conserved, *found.basis[:i]]):
            raise NotProved(f"direction {i} of the basis is not orthogonal to the quantities that are "
                            "conserved, and to the other directions")


def _told(u: Sequence[Fraction]) -> str:
    return "(" + ", ".join(f"{float(x):.6g}" for x in u) + ")"


class Reduced(NamedTuple):
    """The tables in coordinates a of z = T a: for each power of e, [F, G] (r, r + q) and [C T, D]."""

    step: list[Rows]
    points: list[Rows]


def reduced(tables: ModeTables, found: Kept) -> Reduced:
    """The tables where the conserved quantities are 0."""
    p, basis = tables.n_states, found.basis
    columns = _transposed(basis) if basis else [[] for _ in range(p)]

    def inside(rows: Rows) -> Rows:
        left = [row[:p] for row in rows]
        moved = product(left, columns) if basis else [[] for _ in rows]
        return [a + row[p:] for a, row in zip(moved, rows, strict=True)]

    return Reduced([[[x / dot(t, t) for x in row] for t, row in zip(basis, product(basis, inside(one))
                                                                    if basis else [], strict=True)]
                    for one in tables.step], [inside(one) for one in tables.points])


def _sector(point: Sequence[Fraction], at: int | None, m: Fraction,
            L: Fraction) -> tuple[list[Fraction], list[Fraction]]:
    """g_i - m y_i and L y_i - g_i as rows, where y_i is `point`, and `at` the place of g_i, or None."""
    return [(k == at) - m * x for k, x in enumerate(point)], [L * x - (k == at) for k, x in enumerate(point)]


def refuse(tables: ModeTables, found: Kept, form: Matrix, multipliers: Sequence[Fraction], sides: Sides,
           square: Fraction) -> None:
    """Raise NotProved unless the inequality holds at every eigenvalue in reach.

    At w = centre + e it is M_0 + e M_1 + e^2 M_2 + ..., and the norms of what stands after M_0 are taken from
    its diagonal: no order in w is asked for.

    Parameters
    ----------
    tables, found : as of `mode_tables` and `kept`; they are checked
    form : P (r, r)
    multipliers : lam (q,)
    sides : (m, L) of each gradient (q,)
    square : rho^2
    """
    refuse_kept(tables, found)
    r, q = len(found.basis), tables.n_gradients
    if any(x < 0 for x in multipliers) or not len(multipliers) == len(sides) == q:
        raise NotProved(f"the multipliers must be {q} numbers of at least 0, and there are as many gradients")
    if len(form) != r or any(len(row) != r for row in form):
        raise NotProved(f"the form must be {r} x {r}, as the state is where the conserved quantities are 0")
    if any(form[i][j] != form[j][i] for i in range(r) for j in range(i)):
        raise NotProved("the form P is not symmetric")
    if r and not (all(form[i][i] > 0 for i in range(r)) and semidefinite(
            [[x - FLOOR * x * (i == j) for j, x in enumerate(row)] for i, row in enumerate(form)]).holds):
        raise NotProved("the form P is not positive definite")
    powers = _powers(reduced(tables, found), form, multipliers, sides, square)
    scaled = _scaled(powers)
    tail = sum((tables.radius**k * sum(abs(x) for row in scaled[k] for x in row)
                for k in range(1, len(scaled))), Fraction(0))
    if r + q and not semidefinite(_less(scaled[0], tail)).holds:
        raise NotProved("the inequality does not hold: its matrix, less what the eigenvalue's enclosure "
                        "takes, is not positive semidefinite")


def _scaled(powers: Sequence[Matrix]) -> list[Rows]:
    """S M S of each matrix, with powers of 2 in a diagonal S that bring the first one's diagonal near 1."""
    sizes = [_root(1 / row[i]) if row[i] > 0 else Fraction(1) for i, row in enumerate(powers[0])]
    return [[[a * x * b for b, x in zip(sizes, row, strict=True)] for a, row in zip(sizes, one, strict=True)]
            for one in powers]


def _root(x: Fraction) -> Fraction:
    """A power of 2 near its root."""
    exponent = (x.numerator.bit_length() - x.denominator.bit_length()) // 2
    return Fraction(2) ** exponent


def _less(matrix: Matrix, of: Fraction) -> Rows:
    """The matrix minus a multiple of the identity."""
    return [[x - of * (i == j) for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _powers(inside: Reduced, form: Matrix, multipliers: Sequence[Fraction], sides: Sides,
            square: Fraction) -> list[Rows]:
    """The matrix of the inequality at each power of e."""
    r, q = len(form), len(multipliers)
    n, steps, points = r + q, len(inside.step), len(inside.points)
    made = [[[Fraction(0)] * n for _ in range(n)] for _ in range(2 * max(steps, points) - 1)]
    for i in range(r):
        for j in range(r):
            made[0][i][j] += square * form[i][j]
    weighted = [product(form, one) if r else [] for one in inside.step]
    for a in range(steps if r else 0):
        for b in range(steps):
            for i, row in enumerate(product(_transposed(inside.step[a]), weighted[b])):
                for j, x in enumerate(row):
                    made[a + b][i][j] -= x
    none = [Fraction(0)] * n
    for i, weight in enumerate(multipliers):
        pairs = [_sector(table[i], None if k else r + i, *sides[i]) for k, table in enumerate(inside.points)]
        for a, (left, _) in enumerate(pairs):
            for b, (_, right) in enumerate(pairs):
                if left == none or right == none or not weight:
                    continue
                for k in range(n):
                    for j in range(n):
                        made[a + b][k][j] -= weight * (left[k] * right[j] + right[k] * left[j]) / 2
    return made
