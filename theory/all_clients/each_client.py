"""A round on differences, client by client: for matrices and coefficients that have no modes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fedsim.samplers.loops import Body
from fedsim.samplers.trace import Trace, evaluate, shared_parts

from .spectra import NEAR, NotProved
from .tracing import Refusing, System, Traced, named

Value = list[dict[Any, Fraction]]
"""{(part or number of a gradient, client): coefficient}, for each client."""


class _EachClient(Refusing):
    """The domain of differences of all clients: `points` has (client, value) of each gradient."""

    def __init__(self, found: Trace, shared: dict[Any, bool]) -> None:
        super().__init__(found)
        self.shared = shared
        self.points: list[dict[Any, Fraction]] = []
        total = sum(map(Fraction, found.weights.tolist()), Fraction(0))
        self.weights = [Fraction(w) / total for w in found.weights.tolist()]
        self.every = range(found.n_clients)

    def state(self, part: Any) -> Value:
        return [{(part, 0 if self.shared[part] else c): Fraction(1)} for c in self.every]

    def noise(self, number: int, common: bool) -> Value:
        return [{} for _ in self.every]

    def lin(self, terms: Sequence[tuple[Value, Any]]) -> Value:
        made: Value = []
        for c in self.every:
            made.append(_sum([(value[c], _of_client(factor, c)) for value, factor in terms]))
        return made

    def grad(self, number: int, at: Value) -> Value:
        self.refuse_many(len(self.points) + len(at), len(at))
        first = len(self.points) // len(at)
        self.points += at
        return [{(first, c): Fraction(1)} for c in self.every]

    def mix(self, matrices: np.ndarray, of: Value) -> Value:
        rows = _exact(self.one(matrices))
        return [_sum(list(zip(of, row, strict=True))) for row in rows]

    def mean(self, shares: Any, of: Value) -> Value:
        self.all_of_them(shares)
        return [_sum(list(zip(of, self.weights, strict=True)))] * len(of)

    def loop(self, number: int, body: Body, begin: Sequence[Value | None]) -> list[Value]:
        values: list[Value] = [[{} for _ in self.every] if one is None else one for one in begin]
        for _ in range(body.turns):
            values = evaluate(body.nodes, body.outputs, self, values)
        return values


def _of_client(factor: Any, client: int) -> Fraction:
    if isinstance(factor, np.ndarray):
        factor = factor[0, client % factor.shape[1]]
    return Fraction(float(factor))


def _sum(terms: Sequence[tuple[dict[Any, Fraction], Fraction]]) -> dict[Any, Fraction]:
    total: dict[Any, Fraction] = {}
    for value, factor in terms:
        for source, x in value.items() if factor else ():
            total[source] = total.get(source, Fraction(0)) + factor * x
    return {source: x for source, x in total.items() if x}


def _exact(matrix: np.ndarray) -> list[list[Fraction]]:
    """The matrix of doubles with a diagonal that makes rows of sum 1."""
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    for i, row in enumerate(rows):
        gap = 1 - sum(row, Fraction(0))
        if abs(gap) > NEAR:
            raise NotProved(f"row {i} of the mixing matrix has sum {1 - float(gap):.12g}, and must have 1")
        row[i] += gap
    return rows


def traced_by_client(found: Trace) -> Traced:
    """The round of a trace on differences of all clients: one mode, in which all of them are.

    Raises
    ------
    NotProved
        For what changes from round to round, or is no sum of vectors and gradients.
    """
    shared = shared_parts(found)
    domain = _EachClient(found, shared)
    out: list[Value] = evaluate(found.nodes, found.out, domain)
    places = [(part, c) for part in found.names for c in (range(1) if shared[part] else domain.every)]
    sources = [*places, *((k, c) for k in range(len(domain.points) // found.n_clients) for c in domain.every)]

    def table(values: Sequence[dict[Any, Fraction]]) -> list[list[tuple[Fraction, ...]]]:
        return [[(value[source],) if source in value else () for source in sources] for value in values]

    new = dict(zip(found.names, out, strict=True))
    told = tuple(named(part) if shared[part] else f"{named(part)} of client {c}" for part, c in places)
    return Traced(System(told, table([new[part][c] for part, c in places]), table(domain.points)), None, None)
