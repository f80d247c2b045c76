"""Repetitions of a round as loops: a body with inputs that are carried from turn to turn, and a count."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .nodes import Node

FEWEST_TURNS = 4
"""Turns from which on a repetition is a loop."""


class Body(NamedTuple):
    """A loop: `n_inputs` values, then nodes; after a turn input i is `outputs[i]`; so many `turns`."""

    n_inputs: int
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    turns: int


def key_of(value: Any) -> Any:
    """A key that equal payloads and coefficients share."""
    if isinstance(value, np.ndarray):
        return value.shape, hashlib.sha1(np.ascontiguousarray(value).tobytes()).digest()
    if isinstance(value, Body):
        return value.n_inputs, tuple(map(whole_key, value.nodes)), value.outputs, value.turns
    return value


def _key(node: Node) -> Any:
    """Kind, payload and coefficients: what nodes share that differ in where their terms come from."""
    return node.kind, key_of(node.payload), tuple(key_of(c) for _, c in node.terms)


def whole_key(node: Node) -> Any:
    """The same, with where its terms come from."""
    return *_key(node), tuple(m for m, _ in node.terms)


def rolled(nodes: list[Node], out: list[int]) -> tuple[list[Node], list[int]]:
    """The same with its repetitions as loops, the inner ones first."""
    while True:
        found = _repetition(nodes)
        if found is None:
            return nodes, out
        rolled = _roll(nodes, out, *found)
        if rolled is None:
            return nodes, out
        nodes, out = rolled


def _repetition(nodes: list[Node]) -> tuple[int, int, int] | None:
    """First node, length and number of turns of the repetition that covers most nodes."""
    numbers: dict[Any, int] = {}  # equal keys have one number; hashes of others may agree, as of -1 and -2
    keys = [numbers.setdefault(n if node.kind == "random" else _key(node), len(numbers))
            for n, node in enumerate(nodes)]
    last: dict[int, int] = {}
    periods: Counter[int] = Counter()
    for n, (node, key) in enumerate(zip(nodes, keys, strict=True)):
        if node.kind in ("grad", "noise", "loop", "mix"):
            if key in last:
                periods[n - last[key]] += 1
            last[key] = n
    best = None
    for period, often in periods.most_common(4):
        if often < FEWEST_TURNS - 1:
            continue
        same = np.array([keys[n] == keys[n + period] and all(
            b in (a, a + period) for a, b in _pairs(nodes, n, period))
            for n in range(len(nodes) - period)] + [False])
        ends = np.flatnonzero(~same)
        starts = np.concatenate([[0], ends[:-1] + 1])
        longest = int(np.argmax(ends - starts))
        turns = int(ends[longest] - starts[longest]) // period + 1
        if turns >= FEWEST_TURNS and (best is None or turns * period > best[1] * best[2]):
            best = int(starts[longest]), period, turns
    return best


def _pairs(nodes: Sequence[Node], n: int, period: int) -> list[tuple[int, int]]:
    """Where the terms of a node come from, and those of the node a period later."""
    return [(a, b) for (a, _), (b, _) in zip(nodes[n].terms, nodes[n + period].terms, strict=True)]


def _inputs(nodes: list[Node], start: int, period: int, turns: int) -> tuple[list[int], list[int]] | None:
    """Offsets within a turn of what is carried to the next, and nodes that every turn reads.

    None where a turn reaches further back than to the one before.
    """
    fixed: list[int] = []
    carried: list[int] = []
    for n in range(start, start + period):
        for a, b in _pairs(nodes, n, period):
            if (a == b and a >= start) or (a != b and a < start - period):
                return None
            if a == b:
                fixed += [a] if a not in fixed else []
            elif a < start:
                carried += [a - start + period] if a - start + period not in carried else []
    for n in range(start + period, start + (turns - 1) * period):  # it is one or the other in every turn
        if any((a == b) != (c == d) for (a, b), (c, d) in zip(
                _pairs(nodes, n - period, period), _pairs(nodes, n, period), strict=True)):
            return None
    return carried, fixed


def _roll(nodes: list[Node], out: list[int], start: int, period: int,
          turns: int) -> tuple[list[Node], list[int]] | None:
    """Nodes from `start` on, `period` of them `turns` times, as a loop; None where a turn reaches too far."""
    found = _inputs(nodes, start, period, turns)
    if found is None:
        return None
    carried, fixed = found
    later = {m for node in nodes[start + turns * period:] for m, _ in node.terms} | set(out)
    read = sorted(m for m in later if start <= m < start + turns * period)
    while read and read[0] < start + (turns - 1) * period:  # the last turns stay as they are
        turns -= 1
        later |= {m for node in nodes[start + turns * period:start + (turns + 1) * period]
                  for m, _ in node.terms}
        read = sorted(m for m in later if start <= m < start + turns * period)
    if turns < FEWEST_TURNS:
        return None
    first_of_last = start + (turns - 1) * period
    carried += [m - first_of_last for m in read if m - first_of_last not in carried]
    inputs = {("carried", offset): i for i, offset in enumerate(carried)} | {
        ("fixed", a): len(carried) + i for i, a in enumerate(fixed)}
    k = len(inputs)

    def local(n: int, m: int, again: int) -> int:
        if m == again:
            return inputs["fixed", m]
        return inputs["carried", m - start + period] if m < start else k + m - start

    body = [Node(nodes[n].kind, nodes[n].payload, tuple(
        (local(n, m, again), c) for (m, c), (again, _) in zip(nodes[n].terms, nodes[n + period].terms,
                                                             strict=True)))
            for n in range(start, start + period)]
    outputs = [k + offset for offset in carried] + list(range(len(carried), k))
    begin = [start - period + offset for offset in carried] + fixed
    used = {start - period + offset for offset in carried if any(
        inputs["carried", offset] in {m for m, _ in node.terms} for node in body)} | set(fixed)
    loop = Node("loop", Body(k, tuple(body), tuple(outputs), turns),
                tuple((m if m in used else -1, 1.0) for m in begin))
    made = [*nodes[:start], loop]
    moved = {n: n for n in range(start)}
    for m in read:
        moved[m] = len(made)
        made.append(Node("out", inputs["carried", m - first_of_last], ((start, 1.0),)))
    for n in range(start + turns * period, len(nodes)):
        moved[n] = len(made)
        made.append(nodes[n]._replace(terms=tuple((moved[m], c) for m, c in nodes[n].terms)))
    return made, [moved[n] for n in out]
