"""A round of a sampler on quadratic clients: z' = M z + v + N(0, Q) for the stacked state z.

A value is linear in its sources: the parts of the state and the noises. Multiples of the identity are kept
apart, so that M - I keeps its digits for small step sizes. Tables have G groups of e coordinates that do not
mix (one of d, or d of one) and one of three forms: client by client (G, N, e, k), of all clients
(G, n, e, N, k), or of a source that all clients share (G, n, e, k); n is 1 for what all clients share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array
from .clients import Clients, Round
from .loops import Body
from .nodes import Chance, Each
from .trace import Past, evaluate

OWN, ALL, SHARED = "own", "all", "shared"


class Table(NamedTuple):
    """The part of a value that comes from one source, in one of the three forms."""

    form: str
    array: Array


@dataclass
class Value:
    """base: part of the state -> factor of the identity; tables: source -> table; shift (G, n, e)."""

    base: dict[Any, float]
    tables: dict[Any, Table]
    shift: Array
    n: int


class Blocks:
    """The domain of block matrices: `trace.evaluate` gives the new state in terms of the old one.

    Parameters
    ----------
    clients : Clients
    weights : (N,)
    kinds : part of the state -> True where all clients share it
    number : int
        That of the round, for coefficients and networks that change.
    silent : bool
        Without noise and pulls: the linear part alone.
    """

    def __init__(self, clients: Clients, weights: Array, kinds: dict[Any, bool], number: int = 0,
                 silent: bool = False) -> None:
        self.clients, self.weights, self.kinds, self.number = clients, weights, kinds, number
        self.silent = silent
        self.met: dict[int, tuple[Chance, Value]] = {}
        self.G, self.N, self.e = clients.hessians.shape[:3]
        self.metrics: dict[Any, Table] = {}

    def _zero(self, n: int = 1) -> Array:
        return np.zeros((self.G, n, self.e))

    def _unit(self, n: int) -> Array:
        return np.broadcast_to(np.eye(self.e), (self.G, n, self.e, self.e))

    def state(self, part: str | Past) -> Value:
        """A part of the state."""
        return Value({part: 1.0}, {}, self._zero(), 1 if self.kinds[part] else self.N)

    def noise(self, number: int, common: bool) -> Value:
        """Fresh normals."""
        n = 1 if common else self.N
        if self.silent:
            return Value({}, {}, self._zero(), n)
        table = Table(SHARED if common else OWN, self._unit(n))
        return Value({}, {("a", "noise", number): table}, self._zero(), n)

    def _full(self, table: Table) -> Array:
        """The table of all clients (G, n, e, N, k), or that of a shared source."""
        if table.form != OWN:
            return table.array
        out = np.zeros((self.G, self.N, self.e, self.N, table.array.shape[-1]))
        k = np.arange(self.N)
        out[:, k, :, k, :] = table.array.transpose(1, 0, 2, 3)
        return out

    def _add(self, tables: dict[Any, Table], source: Any, table: Table) -> None:
        one = tables.get(source)
        if one is None:
            tables[source] = table
        elif one.form == table.form:
            tables[source] = Table(one.form, one.array + table.array)
        else:
            tables[source] = Table(ALL, self._full(one) + self._full(table))

    def coefficient(self, c: Any) -> Any:
        """A number, or one a client (N,), of this round."""
        if not isinstance(c, np.ndarray):
            return c
        row = c[self.number if len(c) > 1 else 0]
        return float(row[0]) if len(row) == 1 else row

    def lin(self, terms: Sequence[tuple[Value, Any]]) -> Value:
        """A sum."""
        base: dict[Any, float] = {}
        tables: dict[Any, Table] = {}
        shift, n = self._zero(), 1
        for value, c in terms:
            c = self.coefficient(c)
            many = isinstance(c, np.ndarray)
            n = max(n, value.n, self.N if many else 1)
            if many:
                value = self.opened(value)
                shift = shift + c[None, :, None] * value.shift
            else:
                for source, factor in value.base.items():
                    base[source] = base.get(source, 0.0) + c * factor
                shift = shift + c * value.shift
            for source, (form, a) in value.tables.items():
                factor = c.reshape(1, -1, *[1] * (a.ndim - 2)) if many else c
                self._add(tables, source, Table(form, factor * a))
        return Value({source: k for source, k in base.items() if k != 0.0}, tables, shift, n)

    def opened(self, value: Value) -> Value:
        """The same without a base."""
        tables = dict(value.tables)
        for source, factor in value.base.items():
            shared = self.kinds[source]
            self._add(tables, source, Table(SHARED if shared else OWN,
                                            factor * self._unit(1 if shared else self.N)))
        return Value({}, tables, value.shift, value.n)

    def applied(self, matrices: Array, value: Value) -> Value:
        """Matrices (G, N, e, e) of the clients times a value, without its base."""
        tables = {}
        for source, (form, a) in value.tables.items():
            flat = a.reshape(*a.shape[:3], -1)
            tables[source] = Table(form, (matrices @ flat).reshape(self.G, self.N, self.e, *a.shape[3:]))
        return Value({}, tables, (matrices @ value.shift[..., None])[..., 0], self.N)

    def grad(self, number: int, at: Value) -> Value:
        """A_c (x - b_c), with gradient noise."""
        made = self.applied(self.clients.hessians, self.opened(at))
        if self.silent:
            return made
        made.shift = made.shift - self.clients.pulls
        if self.clients.roots is not None:
            made.tables["a", "gradient noise", number] = Table(OWN, self.clients.roots)
        return made

    def across(self, matrix: Array, value: Value, n: int) -> Value:
        """(matrix x I) of a value without a base, for a matrix (n, N)."""
        tables = {}
        for source, (form, a) in value.tables.items():
            if form == OWN:
                tables[source] = Table(ALL, np.einsum("ij,gjab->giajb", matrix, a))
            else:
                flat = np.broadcast_to(a, (self.G, self.N, *a.shape[2:])).reshape(self.G, self.N, -1)
                tables[source] = Table(form, (matrix @ flat).reshape(self.G, n, *a.shape[2:]))
        shift = matrix @ np.broadcast_to(value.shift, (self.G, self.N, self.e))
        return Value({}, tables, shift, n)

    def mix(self, matrices: Array, of: Value) -> Value:
        """W x = x + (W - I) x."""
        W = matrices[self.number % len(matrices)]
        made = self.across(W, Value({}, of.tables, of.shift, of.n), self.N)
        made.base = dict(of.base)
        change = W - np.eye(self.N)
        for source, factor in of.base.items():
            if self.kinds[source]:
                moved = Table(SHARED, factor * change.sum(axis=1)[None, :, None, None] * self._unit(self.N))
            else:
                moved = Table(ALL, np.einsum("ij,gab->giajb", factor * change, self._unit(1)[:, 0]))
            self._add(made.tables, source, moved)
        return made

    def mean(self, shares: Any, of: Value) -> Value:
        """One average for all clients."""
        row = shares[self.number % len(shares)]
        keeps = {source: k for source, k in of.base.items() if self.kinds[source]}
        if of.n == 1 and len(shares) == 1:
            return of
        rest = self.opened(Value({source: k for source, k in of.base.items() if source not in keeps},
                                 of.tables, of.shift, of.n))
        made = self.across(row[None], rest, 1)
        made.base = keeps
        return made

    def potential(self, number: int, at: Value) -> Value:
        """Refused: it is no linear function of the point."""
        raise ValueError("potential(x) is no matrix, so that a round is none")

    def each(self, number: int, function: Each, of: Sequence[Value]) -> Value:
        """Refused: a function need not be linear."""
        raise ValueError(f"each({function.name}, ...) is no matrix, so that a round is none")

    def random(self, number: int, chance: Chance, of: Value) -> Value:
        """The mean of an average or a product whose matrix is drawn at random."""
        self.met[number] = chance, of
        return self.mean(chance.mean, of) if len(chance.mean) == 1 else self.mix(chance.mean[None], of)

    # -------------------------------------------------------------------------------------- loops

    def loop(self, number: int, body: Body, begin: Sequence[Value | None]) -> list[Value]:
        """Powers of a turn's map on the values that are carried."""
        k = body.n_inputs
        turn = Blocks(self.clients, self.weights, {("turn", i): False for i in range(k)}, self.number,
                      self.silent)
        names = [("turn", i) for i in range(k)]
        made = evaluate(body.nodes, body.outputs, turn, [turn.state(one) for one in names])
        if all(table.form == OWN for value in made for table in value.tables.values()):
            return self._by_client(number, turn, made, names, body.turns, begin)
        after = turn.assembled(names, made).power(body.turns)
        return self._together(number, after, k, begin)

    def _begun(self, begin: Sequence[Value | None], j: int) -> Value:
        value = begin[j]
        if value is None:
            return Value({}, {}, self._zero(), 1)
        return value

    def _by_client(self, number: int, turn: Blocks, made: Sequence[Value], names: list[Any], count: int,
                   begin: Sequence[Value | None]) -> list[Value]:
        """Clients that do not meet in a turn: matrices (G, N, k e, k e)."""
        k, e, G, N = len(names), self.e, self.G, self.N
        D, Q = np.zeros((G, N, k, e, k, e)), np.zeros((G, N, k, e, k, e))
        v = np.zeros((G, N, k, e))
        noises: dict[Any, dict[int, Array]] = {}
        for o, value in enumerate(made):
            v[:, :, o] = value.shift
            for source, (_, a) in value.tables.items():
                if source in names:
                    D[:, :, o, :, names.index(source)] += a
                else:
                    noises.setdefault(source, {})[o] = a
            for source, factor in value.base.items():
                j = names.index(source)
                D[:, :, o, :, j] += (factor - (j == o)) * np.eye(e)
            if names[o] not in value.base:
                D[:, :, o, :, o] -= np.eye(e)
        for used in noises.values():
            for o, one in used.items():
                for p, other in used.items():
                    Q[:, :, o, :, p] += one @ np.swapaxes(other, -1, -2)
        size = k * e
        turned = Round(D.reshape(G, N, size, size), v.reshape(G, N, size), Q.reshape(G, N, size, size))
        after = turned.power(count)
        change, shift = after.deviation.reshape(G, N, k, e, k, e), after.shift.reshape(G, N, k, e)
        source = ("a", "loop", number)
        if not self.silent:
            self.metrics[source] = Table(OWN, after.noise)
        pick = np.eye(size).reshape(k, e, size)
        values = []
        for o in range(k):
            first = self._begun(begin, o)
            value = self.lin([(first, 1.0), *(
                (self.applied(change[:, :, o, :, j], self.opened(self._begun(begin, j))), 1.0)
                for j in range(k) if change[:, :, o, :, j].any())])
            if not self.silent:
                value.tables = {**value.tables, source: Table(OWN, np.broadcast_to(pick[o], (G, N, e, size)))}
            value.shift, value.n = value.shift + shift[:, :, o], N
            values.append(value)
        return values

    def _together(self, number: int, after: Round, k: int, begin: Sequence[Value | None]) -> list[Value]:
        """Clients that meet, or share noise, in a turn: matrices of all of them."""
        e, G, N = self.e, self.G, self.N
        change, shift = after.deviation.reshape(G, k, N, e, k, N, e), after.shift.reshape(G, k, N, e)
        source = ("a", "loop", number)
        if not self.silent:
            self.metrics[source] = Table(SHARED, after.noise)
        pick = np.eye(k * N * e).reshape(k, N, e, -1)
        values = []
        for o in range(k):
            value = self.lin([(self._begun(begin, o), 1.0)])
            for j in range(k):
                matrix = change[:, o, :, :, j]
                if not matrix.any():
                    continue
                given = self.opened(self._begun(begin, j))
                for name, table in given.tables.items():
                    whole = self._full(table)
                    whole = np.broadcast_to(whole, (G, N, *whole.shape[2:])).reshape(G, N * e, -1)
                    moved = (matrix.reshape(G, N * e, N * e) @ whole).reshape(
                        G, N, e, *self._full(table).shape[3:])
                    self._add(value.tables, name, Table(ALL if table.form == OWN else table.form, moved))
                at = np.broadcast_to(given.shift, (G, N, e)).reshape(G, N * e, 1)
                value.shift = value.shift + (matrix.reshape(G, N * e, N * e) @ at).reshape(G, N, e)
            if not self.silent:
                value.tables[source] = Table(SHARED, np.broadcast_to(pick[o], (G, N, e, k * N * e)))
            value.shift, value.n = value.shift + shift[:, o], N
            values.append(value)
        return values

    # -------------------------------------------------------------------------------------- the round

    def size(self, part: Any) -> int:
        """Numbers of a group that a part of the state has."""
        return (1 if self.kinds[part] else self.N) * self.e

    def rows(self, table: Table, rows: int) -> Array:
        """A table as matrices (G, rows e, k)."""
        a = self._full(table)
        return np.broadcast_to(a, (self.G, rows, *a.shape[2:])).reshape(self.G, rows * self.e, -1)

    def assembled(self, names: Sequence[Any], values: Sequence[Value], less: float = 1.0) -> Round:
        """The round as matrices of the stacked parts, `less` so many times the identity."""
        sizes = [self.size(part) for part in names]
        first = np.concatenate([[0], np.cumsum(sizes)])
        here = [slice(a, b) for a, b in pairwise(first.tolist())]
        n = int(first[-1])
        D, v, Q = np.zeros((self.G, n, n)), np.zeros((self.G, n)), np.zeros((self.G, n, n))
        sources: dict[Any, list[tuple[int, Table]]] = {}
        for o, (part, value) in enumerate(zip(names, values, strict=True)):
            rows = sizes[o] // self.e
            v[:, here[o]] = np.broadcast_to(value.shift, (self.G, rows, self.e)).reshape(self.G, -1)
            for source, table in value.tables.items():
                if source in names:
                    D[:, here[o], here[names.index(source)]] += self.rows(table, rows)
                else:
                    sources.setdefault(source, []).append((o, table))
            for source, factor in value.base.items():
                j = names.index(source)
                k = factor - less if j == o else factor
                D[:, here[o], here[j]] += k * (np.eye(sizes[o]) if sizes[j] == sizes[o]
                                               else np.tile(np.eye(self.e), (rows, 1)))
            if part not in value.base:
                D[:, here[o], here[o]] -= less * np.eye(sizes[o])
        for source, uses in sources.items():
            for o, one in uses:
                for p, other in uses:
                    if p <= o:
                        block = self._product(source, one, sizes[o], other, sizes[p])
                        Q[:, here[o], here[p]] += block
                        if p < o:
                            Q[:, here[p], here[o]] += np.swapaxes(block, 1, 2)
        return Round(D, v, Q)

    def _product(self, source: Any, one: Table, size: int, other: Table, width: int) -> Array:
        metric = self.metrics.get(source)
        if one.form == other.form == OWN:
            left = one.array if metric is None else one.array @ metric.array
            k, out = np.arange(self.N), np.zeros((self.G, self.N, self.e, self.N, self.e))
            out[:, k, :, k, :] = (left @ np.swapaxes(other.array, -1, -2)).transpose(1, 0, 2, 3)
            return out.reshape(self.G, size, width)
        left, right = self.rows(one, size // self.e), self.rows(other, width // self.e)
        if metric is not None and metric.form == OWN:
            columns = left.reshape(self.G, size, self.N, -1)
            left = np.einsum("gacx,gcxy->gacy", columns, metric.array).reshape(left.shape)
        elif metric is not None:
            left = left @ metric.array
        return left @ np.swapaxes(right, 1, 2)
