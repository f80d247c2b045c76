"""A round on differences, in one mode of the network: tables of polynomials in its eigenvalue.

Two chains with the same noise differ by z, which a round maps to A z + B g, where g are differences of
gradients at points whose differences are y = C z + D g. In coordinates along an eigenvector of W a product
with W is one with its eigenvalue w, and averages are seen in the mode of the vector of ones alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fedsim.samplers.loops import Body
from fedsim.samplers.trace import Trace, evaluate, shared_parts

from .spectra import NotProved, Rows, affine, exact

Polynomial = tuple[Fraction, ...]
"""Coefficients of 1, w, w^2, ..."""
Table = list[list[Polynomial]]
Value = dict[Any, Polynomial]

ONE: Polynomial = (Fraction(1),)
MOST_NUMBERS = 36
"""Numbers of a state and gradients of a round, together, for which an inequality is written: a minute."""


class System(NamedTuple):
    """Tables of polynomials: `step` (p, p + q) is [A, B] and `points` (q, p + q) is [C, D]; `parts` names
    the p numbers of the state, of which a mode other than that of ones has those of clients alone."""

    parts: tuple[str, ...]
    step: Table
    points: Table


class Traced(NamedTuple):
    """A round in the mode of ones, `consensus`, and in every other, `rest`; with W, `network`, if it has
    `n_matrices`, of which all others are a I + b W."""

    consensus: System
    rest: System | None
    network: Rows | None
    n_matrices: int = 0


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    """Their product."""
    made = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            made[i + j] += a * b
    return tuple(made)


def plus(one: Polynomial, other: Polynomial) -> Polynomial:
    """Their sum, without leading zeros."""
    size = max(len(one), len(other))
    made = [(one[k] if k < len(one) else 0) + (other[k] if k < len(other) else Fraction(0))
            for k in range(size)]
    while made and not made[-1]:
        made.pop()
    return tuple(Fraction(x) for x in made)


def shifted(of: Polynomial, centre: Fraction) -> Polynomial:
    """The same polynomial in w - centre."""
    made: Polynomial = ()
    for coefficient in reversed(of):
        made = plus(times(made, (centre, Fraction(1))) if made else (), (coefficient,))
    return made


class Refusing:
    """The operations that no domain of differences has: each is refused in words."""

    def __init__(self, found: Trace) -> None:
        self.found = found

    def one(self, matrices: np.ndarray) -> np.ndarray:
        """The one mixing matrix."""
        if len(matrices) > 1:
            raise NotProved(f"{len(matrices)} mixing matrices take turns; certificates are for one")
        return np.asarray(matrices[0])

    def refuse_many(self, gradients: int, clients: int = 1) -> None:
        """Refuse a round for which the solver would take long."""
        numbers = gradients + clients * len(self.found.names)
        if numbers > MOST_NUMBERS:
            raise NotProved(f"the round has {gradients} or more gradients, and with the state more than "
                            f"{MOST_NUMBERS} numbers; inequalities are written for fewer")

    def all_of_them(self, shares: Any) -> None:
        """Refuse averages over some clients."""
        if np.shape(shares)[0] > 1 or not np.array_equal(np.ravel(shares), self.found.weights):
            raise NotProved("averages are over some clients, or with other shares than the weights; "
                            "certificates are for averages over all of them")

    def random(self, number: int, chance: Any, of: Any) -> Any:
        """Refuse what is drawn."""
        raise NotProved(f"{chance.of!r} draws at random in each round; certificates are for rounds that do "
                        "not change")

    def each(self, number: int, function: Any, of: Any) -> Any:
        """Refuse functions of vectors."""
        raise NotProved(f"{function.name} is a function of each client's vectors; certificates are for sums "
                        "and gradients")

    def potential(self, number: int, at: Any) -> Any:
        """Refuse potentials."""
        raise NotProved("the round has potentials; certificates are for sums and gradients")


class _Mode(Refusing):
    """The domain of a mode: values are {part of the state, or number of a gradient: polynomial}."""

    def __init__(self, found: Trace, shared: dict[Any, bool], consensus: bool) -> None:
        super().__init__(found)
        self.shared, self.consensus = shared, consensus
        self.points: list[Value] = []
        self.network: Rows | None = None
        self.known: dict[bytes, Polynomial] = {}
        self.n_matrices = 0

    def state(self, part: Any) -> Value:
        return {part: ONE} if self.consensus or not self.shared[part] else {}

    def noise(self, number: int, common: bool) -> Value:
        return {}  # both chains have the same

    def lin(self, terms: Sequence[tuple[Value, Any]]) -> Value:
        total: Value = {}
        for value, c in terms:
            for source, polynomial in value.items():
                made = plus(total.get(source, ()), times((_number(c),), polynomial))
                total[source] = made
        return {source: polynomial for source, polynomial in total.items() if polynomial}

    def grad(self, number: int, at: Value) -> Value:
        self.refuse_many(len(self.points) + 1)
        self.points.append(at)
        return {len(self.points) - 1: ONE}

    def mix(self, matrices: np.ndarray, of: Value) -> Value:
        matrix = self.one(matrices)
        key = matrix.tobytes()
        if key not in self.known:
            self.n_matrices += 1
            if self.network is None:
                self.network, self.known[key] = exact(matrix), (Fraction(0), Fraction(1))
            else:
                self.known[key] = affine(matrix, self.network)
        if self.consensus:
            return of
        return {source: times(self.known[key], polynomial) for source, polynomial in of.items()}

    def mean(self, shares: Any, of: Value) -> Value:
        self.all_of_them(shares)
        return of if self.consensus else {}

    def loop(self, number: int, body: Body, begin: Sequence[Value | None]) -> list[Value]:
        values = [{} if one is None else one for one in begin]
        for _ in range(body.turns):
            values = evaluate(body.nodes, body.outputs, self, values)
        return values


def _number(c: Any) -> Fraction:
    """A coefficient that all clients share, as the double that it is."""
    if isinstance(c, np.ndarray):
        if not (c == c.flat[0]).all():
            raise NotProved("coefficients differ between clients; modes of the network are for equal ones")
        c = c.flat[0]
    return Fraction(float(c))


def traced(found: Trace) -> Traced:
    """The round of a trace on differences.

    Raises
    ------
    NotProved
        For what mixes the modes, changes from round to round, or is no sum of vectors and gradients.
    """
    shared = shared_parts(found)
    first, consensus = _system(found, shared, True)
    if found.n_clients == 1:
        return Traced(consensus, None, None)
    weights = found.weights
    if first.network is not None and np.ptp(weights) > 0.0:
        raise NotProved("clients' weights differ and they mix by a matrix; certificates are for equal "
                        "weights there")
    return Traced(consensus, _system(found, shared, False)[1], first.network, first.n_matrices)


def _system(found: Trace, shared: dict[Any, bool], consensus: bool) -> tuple[_Mode, System]:
    mode = _Mode(found, shared, consensus)
    out: list[Value] = evaluate(found.nodes, found.out, mode)
    kept = [number for number, part in enumerate(found.names) if consensus or not shared[part]]
    parts = [found.names[number] for number in kept]
    sources = [*parts, *range(len(mode.points))]

    def table(values: Sequence[Value]) -> Table:
        return [[value.get(source, ()) for source in sources] for value in values]

    return mode, System(tuple(map(named, parts)), table([out[number] for number in kept]),
                        table(mode.points))


def named(part: Any) -> str:
    """A part of the state, in words."""
    return part if isinstance(part, str) else f"{part[0]} {part[1]} round{'s' if part[1] > 1 else ''} ago"
