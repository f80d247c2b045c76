"""Rounds of a trace on quadratic clients as matrices, and what they conserve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..settings.validation import Array
from .blocks import Blocks, Value
from .clients import Clients, Round
from .trace import Trace, evaluate, shared_parts

CONSERVED = 1e-10
"""Relative size below which a change counts as none."""


@dataclass(frozen=True)
class Rounds:
    """The rounds of a trace on quadratic clients.

    Attributes
    ----------
    trace : Trace
    clients : Clients
    kinds : part of the state -> True where all clients share it
    """

    trace: Trace
    clients: Clients
    kinds: dict[Any, bool]

    @classmethod
    def of(cls, trace: Trace, clients: Clients) -> Rounds:
        """The rounds of a trace on these clients."""
        return cls(trace, clients, shared_parts(trace))

    def _values(self, number: int) -> tuple[Blocks, list[Value]]:
        blocks = Blocks(self.clients, self.trace.weights, self.kinds, number)
        return blocks, evaluate(self.trace.nodes, self.trace.out, blocks)

    def round(self, number: int = 0) -> Round:
        """The round of this number."""
        blocks, values = self._values(number)
        whole, names = blocks.assembled(self.trace.names, values), self.trace.names
        parts = []
        for apart in aparts(blocks):
            parts.append(apart.assembled(names, evaluate(self.trace.nodes, self.trace.out, apart), 0.0))
        if not parts:
            return whole
        return Round(whole.deviation, whole.shift, whole.noise + np.sum([one.noise for one in parts], axis=0),
                     np.stack([one.deviation for one in parts]), np.stack([one.shift for one in parts]))

    def sizes(self) -> list[int]:
        """Numbers of a group, of each part."""
        e, N = self.clients.hessians.shape[-1], self.trace.n_clients
        return [(1 if self.kinds[part] else N) * e for part in self.trace.names]


class Apart(Blocks):
    """The linear part of a round that follows one value of each node of one draw, and nothing else."""

    def __init__(self, blocks: Blocks, values: dict[int, Value]) -> None:
        super().__init__(blocks.clients, blocks.weights, blocks.kinds, blocks.number, True)
        self.values, self.metrics = values, blocks.metrics

    def state(self, part: Any) -> Value:
        one = super().state(part)
        return Value({}, {}, one.shift, one.n)

    def random(self, number: int, chance: Any, of: Value) -> Value:
        if of.tables:
            raise ValueError(f"{chance.of!r}: what is drawn at random is drawn from again in the same round, "
                             "and moments are not known there; draw once in a round")
        return self.values[number] if number in self.values else super().random(number, chance, of)


def aparts(blocks: Blocks) -> Iterator[Apart]:
    """One for each root of each draw: whatever is drawn by one object is drawn once in a round."""
    draws: dict[int, dict[int, tuple[Any, Value]]] = {}
    for node, (chance, of) in blocks.met.items():
        draws.setdefault(id(chance.of), {})[node] = chance, blocks.opened(of)
    for used in draws.values():
        for k in range(len(next(iter(used.values()))[0].roots)):
            yield Apart(blocks, {node: blocks.across(chance.roots[k], of, len(chance.roots[k]))
                                 for node, (chance, of) in used.items()})


def conserved(whole: Round) -> Array:
    """Orthonormal columns (n, k) whose products with the state no round changes, in any group."""
    def flat(table: Array) -> Array:
        return table.transpose(1, 0, 2).reshape(table.shape[1], -1)

    size = max(1.0, float(np.abs(whole.deviation).max(initial=0.0)))
    found = np.eye(whole.deviation.shape[-1])
    for number, changes in enumerate(whole.deviation):
        found = found @ _unmoved(found.T @ changes if number else changes, size)
        if not found.shape[1]:
            return found
    moved = np.concatenate([flat(whole.noise), whole.shift.T], axis=1)
    if whole.spread is not None and whole.spread_shift is not None:
        moved = np.concatenate([moved, *map(flat, whole.spread), *(u.T for u in whole.spread_shift)], axis=1)
    return found @ _unmoved(found.T @ moved, max(1e-300, float(np.abs(moved).max(initial=0.0))))


def _unmoved(rows: Array, size: float) -> Array:
    """Orthonormal columns u of u'rows = 0, for no fewer columns than rows."""
    largest = float(np.abs(rows).max(initial=0.0)) or 1.0
    scaled = rows / largest
    squares = np.linalg.eigvalsh(scaled @ scaled.T)  # cheaper, and enough where there are none
    low, high = np.sqrt(np.clip(squares[[0, -1]], 0.0, None))
    if low > 1e-6 * high and low > 10.0 * CONSERVED * (size / largest):
        return np.zeros((len(rows), 0))
    U, values, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(U[:, values <= CONSERVED * size])


def kept(whole: Round) -> tuple[Round, Array]:
    """The round on the complement of what it conserves, and an orthonormal basis (n, m) of that."""
    fixed = conserved(whole)
    if not fixed.shape[1]:
        return whole, np.eye(whole.deviation.shape[-1])
    T = np.linalg.svd(fixed, full_matrices=True)[0][:, fixed.shape[1]:]
    spread, shift = whole.spread, whole.spread_shift
    return Round(T.T @ whole.deviation @ T, whole.shift @ T, T.T @ whole.noise @ T,
                 None if spread is None else T.T @ spread @ T, None if shift is None else shift @ T), T
