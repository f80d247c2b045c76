"""Forms and multipliers for a rate, by a solver of semidefinite programs; what it says is checked later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from .inequality import Reduced, Sides
from .spectra import NotProved

CLOSE = 1e-7
"""Width of the interval of rates at which bisection stops."""
CLEAR = 1e-9
"""Least slack of a feasible inequality, whose forms have trace 1."""


class Tables(NamedTuple):
    """A mode in doubles: [F, G] (r, r + q), and of each gradient the sector's table (q, r + q, r + q)."""

    step: Array
    sectors: Array


class Solution(NamedTuple):
    """Forms P (r, r) of each mode, multipliers (q,), and the slack of all inequalities."""

    forms: list[Array]
    multipliers: Array
    slack: float


def units_of(inside: Reduced, sides: Sides, unit: float) -> Array:
    """Powers of 2 (r,) in which the numbers of a state are of one size, where gradients have this unit."""
    from scipy.linalg import matrix_balance

    whole = np.concatenate(_tables(inside, len(sides), unit))
    r = len(inside.step[0])
    if not 0 < r < len(whole):
        return np.ones(r)
    sizes = np.log2(matrix_balance(whole, permute=False, separate=True)[1][0])
    return np.asarray(2.0 ** np.round(sizes[:r] - sizes[r:].mean()))


def _tables(inside: Reduced, q: int, unit: float) -> tuple[Array, Array]:
    """[F, G] (r, r + q) and [C T, D] (q, r + q) in doubles, with gradients in units of `unit`."""
    r = len(inside.step[0])
    step = np.array([[float(x) for x in row] for row in inside.step[0]]).reshape(r, r + q)
    points = np.array([[float(x) for x in row] for row in inside.points[0]]).reshape(q, r + q)
    step[:, r:] *= unit
    points[:, r:] *= unit
    return step, points


def in_doubles(inside: Reduced, sides: Sides, unit: float, units: Array) -> Tables:
    """The tables of a mode at the centre of its eigenvalue, with gradients in units of `unit` and the state
    in `units` (r,), so that numbers are of one size; `sides` has (m, L) of each gradient."""
    step, points = _tables(inside, len(sides), unit)
    r, q = len(step), len(points)
    n = r + q
    if not n:
        raise NotProved("no round changes anything, and there is nothing that could come together")
    step = step / units[:, None]
    step[:, :r] *= units
    points[:, :r] *= units
    tables = []
    for i in range(q):
        gradient = np.zeros(n)
        gradient[n - q + i] = 1.0
        m, L = (float(side) / unit for side in sides[i])
        form = np.outer(gradient - m * points[i], L * points[i] - gradient)
        tables.append(0.5 * (form + form.T))
    return Tables(step, np.array(tables).reshape(q, n, n))


def solved(modes: Sequence[Sequence[Tables]], rate: float) -> Solution | None:
    """Forms and multipliers with the largest slack t of all inequalities and forms, each of which has trace 1
    at most; None where the solver gives none. A mode has one form for one table, or for several.

    Raises
    ------
    ImportError
        Without the solver, naming the extra.
    """
    try:
        import clarabel
    except ImportError:
        raise ImportError("certificates are looked for by a solver that is not installed: pip install "
                          "'fedsim-theory[sdp]'; those that are stored are verified without it") from None
    from scipy import sparse

    program = _Program(modes, rate)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-11)
    cones = [clarabel.PSDTriangleConeT(size) if size else clarabel.NonnegativeConeT(rows)
             for size, rows in program.cones]
    n = program.n_unknowns
    goal = np.zeros(n)
    goal[-1] = -1.0
    found = clarabel.DefaultSolver(sparse.csc_matrix((n, n)), goal, program.matrix(), program.right(), cones,
                                   settings).solve()
    x = np.array(found.x)
    return program.read(x) if np.isfinite(x).all() else None


class _Program:
    """max t over unknowns (P_1, ..., lam, t): rows of right - matrix x are in cones (size of a matrix, or 0
    for numbers of at least 0; rows)."""

    def __init__(self, modes: Sequence[Sequence[Tables]], rate: float) -> None:
        self.sizes = [len(one[0].step) for one in modes]
        self.q = len(modes[0][0].sectors)
        lengths = [r * (r + 1) // 2 for r in self.sizes]
        self.begin = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        self.n_unknowns = int(self.begin[-1]) + self.q + 1
        self.blocks: list[Array] = []
        self.values: list[Array] = []
        self.cones: list[tuple[int, int]] = []
        for number, several in enumerate(modes):
            for one in several:
                self._add_mode(number, one, rate)
            self._add_form(number)
        signs = np.zeros((self.q + 1, self.n_unknowns))  # lam >= 0, and t <= 1
        signs[:self.q, self.begin[-1]:-1] = -np.eye(self.q)
        signs[self.q, -1] = 1.0
        self._add(signs, np.append(np.zeros(self.q), 1.0), 0)

    def matrix(self) -> Any:
        from scipy import sparse

        return sparse.csc_matrix(np.concatenate(self.blocks))

    def right(self) -> Array:
        return np.concatenate(self.values)

    def _add(self, block: Array, value: Array, size: int) -> None:
        self.blocks.append(block)
        self.values.append(value)
        self.cones.append((size, len(block)))

    def _add_mode(self, number: int, one: Tables, rate: float) -> None:
        r, n, first = len(one.step), one.sectors.shape[1], int(self.begin[number])
        block = np.zeros((n * (n + 1) // 2, self.n_unknowns))
        for at, unit in enumerate(_units(r)):
            moved = -one.step.T @ unit @ one.step
            moved[:r, :r] += rate**2 * unit
            block[:, first + at] = -_triangle(moved)
        for at, table in enumerate(one.sectors):
            block[:, int(self.begin[-1]) + at] = _triangle(table)
        block[:, -1] = _triangle(np.eye(n))
        self._add(block, np.zeros(len(block)), n)

    def _add_form(self, number: int) -> None:
        r, first = self.sizes[number], int(self.begin[number])
        if r:
            form = np.zeros((r * (r + 1) // 2, self.n_unknowns))
            trace = np.zeros((1, self.n_unknowns))
            for at, unit in enumerate(_units(r)):
                form[:, first + at] = -_triangle(unit)
                trace[0, first + at] = np.trace(unit)
            form[:, -1] = _triangle(np.eye(r))
            self._add(form, np.zeros(len(form)), r)
            self._add(trace, np.ones(1), 0)

    def read(self, x: Array) -> Solution:
        forms = []
        for first, r in zip(self.begin, self.sizes, strict=False):
            units = _units(r)
            forms.append(sum((x[first + at] * unit for at, unit in enumerate(units)), np.zeros((r, r))))
        return Solution(forms, x[self.begin[-1]:-1], float(x[-1]))


def _units(r: int) -> list[Array]:
    """The symmetric matrices with one pair of ones."""
    made = []
    for j in range(r):
        for i in range(j + 1):
            unit = np.zeros((r, r))
            unit[i, j] = unit[j, i] = 1.0
            made.append(unit)
    return made


def _triangle(matrix: Array) -> Array:
    """The upper triangle by columns, with sqrt(2) off the diagonal, as the solver wants it."""
    return np.concatenate([np.append(np.sqrt(2.0) * matrix[:j, j], matrix[j, j]) for j in range(len(matrix))])


def smallest_rate(modes: Sequence[Sequence[Tables]], low: float) -> float:
    """The smallest rate of at least `low` at which the inequalities have a solution with a slack.

    Raises
    ------
    NotProved
        Where there is none below 1.
    """
    high = 1.0 - CLOSE
    best = solved(modes, high)
    if best is None or best.slack < CLEAR:
        raise NotProved("no quadratic form was found that falls in every round; the sampler may contract "
                        "nevertheless")
    while high - low > CLOSE:
        middle = 0.5 * (low + high)
        found = solved(modes, middle)
        if found is not None and found.slack >= CLEAR:
            high = middle
        else:
            low = middle
    return high
