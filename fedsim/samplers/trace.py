"""A round of a sampler in few nodes: sums are merged, equal nodes are one, and loops are rolled.

Nodes stand in the order in which they are computed. `Trace.nodes` may hold loops: a body with inputs that are
carried from turn to turn, and a count; nodes of kind "out" read what a loop gives.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .notation import Node, NotationError, Tape, Vector, recording, refuse

Past = tuple[str, int]
FEWEST_TURNS = 4
"""Turns from which on a repetition is a loop."""
V = TypeVar("V")


class Body(NamedTuple):
    """A loop: `n_inputs` values, then nodes; after a turn input i is `outputs[i]`; `count` turns."""

    n_inputs: int
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    count: int


def key_of(value: Any) -> Any:
    """What equal payloads and coefficients have in common."""
    if isinstance(value, np.ndarray):
        return value.shape, hashlib.sha1(np.ascontiguousarray(value).tobytes()).digest()
    if isinstance(value, Body):
        return value.n_inputs, tuple(map(_whole_key, value.nodes)), value.outputs, value.count
    return value


def _key(node: Node) -> Any:
    """Kind, payload and coefficients: what nodes share that differ in where their terms come from."""
    return node.kind, key_of(node.payload), tuple(key_of(c) for _, c in node.terms)


def _whole_key(node: Node) -> Any:
    return *_key(node), tuple(m for m, _ in node.terms)


@dataclass(frozen=True)
class Trace:
    """A round.

    Attributes
    ----------
    names : tuple of str or (str, int)
        The parts of the state; past values of a part are (name, age).
    nodes : tuple of Node
    out : tuple of int
        The node of each part's new value.
    n_clients : int
    weights : (N,)
    period : int
        Rounds after which mixing matrices and sets of clients come again.
    n_rounds : int or None
        Rounds of the schedules in the coefficients; None where no coefficient changes.
    """

    names: tuple[str | Past, ...]
    nodes: tuple[Node, ...]
    out: tuple[int, ...]
    n_clients: int
    weights: np.ndarray
    period: int
    n_rounds: int | None

    def every(self) -> Iterator[tuple[Node, int]]:
        """Every node, in loops too, with how often it is computed in a round."""
        yield from _every(self.nodes, 1)

    def count(self, kind: str) -> int:
        """How often a round computes nodes of a kind."""
        return sum(times for node, times in self.every() if node.kind == kind)


def _every(nodes: Sequence[Node], times: int) -> Iterator[tuple[Node, int]]:
    for node in nodes:
        if node.kind == "loop":
            yield from _every(node.payload.nodes, times * node.payload.count)
        else:
            yield node, times


def trace(name: str, function: Callable[..., Any], state: Sequence[str], parameters: Mapping[str, Any],
          n_clients: int, weights: np.ndarray, exact_gradients: bool = True) -> Trace:
    """The round that a function of the notation describes.

    Parameters
    ----------
    name : str
        The sampler's, for messages.
    function : callable
    state : names of its state
    parameters : its keyword arguments, as the notation knows them
    n_clients : int
    weights : (N,)
    exact_gradients : bool
        Equal points have equal gradients.

    Returns
    -------
    Trace

    Raises
    ------
    NotationError
        For anything that the notation does not have.
    """
    tape = Tape(n_clients, np.asarray(weights, dtype=np.float64))
    with recording(tape):
        given = [tape.add("state", part) for part in state]
        made = function(*given, **parameters)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(given) or not all(isinstance(one, Vector) for one in made):
            raise NotationError(
                f"{name} must return the new value of {', '.join(state)}, as "
                f"{'a vector' if len(state) == 1 else f'{len(state)} vectors'} of clients; it returns "
                f"{', '.join('a vector' if isinstance(one, Vector) else repr(one) for one in made)}")
        if any(one.tape is not tape for one in made):
            refuse(f"{name} returns a vector of another call; each call has its own")
    names, nodes, out = _with_past(list(state), list(tape.nodes), [one.node for one in made])
    nodes, out = _merged(nodes, out, exact_gradients)
    nodes, out = _rolled(nodes, out)
    lengths = {len(c) for node, _ in _every(nodes, 1) for _, c in node.terms
               if isinstance(c, np.ndarray) and len(c) > 1}
    if len(lengths) > 1:
        told = " and ".join(map(str, sorted(lengths)))
        raise NotationError(f"{name}: schedules of {told} rounds do not fit")
    turns = [len(node.payload) for node, _ in _every(nodes, 1) if isinstance(node.payload, np.ndarray)]
    return Trace(tuple(names), tuple(nodes), tuple(out), n_clients, tape.weights,
                 int(np.lcm.reduce(turns or [1])), next(iter(lengths), None))


def _with_past(names: list[Any], nodes: list[Node],
               out: list[int]) -> tuple[list[Any], list[Node], list[int]]:
    """The state with its past: (name, 1) becomes what `name` was, (name, k) what (name, k - 1) was."""
    oldest: dict[str, int] = {}
    for node in nodes:
        if node.kind == "past":
            oldest[node.payload[0]] = max(oldest.get(node.payload[0], 0), node.payload[1])
    place = {part: number for number, part in enumerate(names)}
    for part, age in oldest.items():
        for k in range(1, age + 1):
            names.append((part, k))
            if k == 1:
                out.append(place[part])
            else:
                nodes.append(Node("past", (part, k - 1)))
                out.append(len(nodes) - 1)
    return names, nodes, out


def _sum(terms: Sequence[tuple[int, Any]]) -> tuple[tuple[int, Any], ...]:
    """Terms with one coefficient for each node, without zeros."""
    total: dict[int, Any] = {}
    for node, c in terms:
        total[node] = total[node] + c if node in total else c
    return tuple((node, c) for node, c in total.items() if np.any(c != 0.0))


def _merged(nodes: list[Node], out: list[int], exact: bool) -> tuple[list[Node], list[int]]:
    """Used nodes alone; a sum that one other sum uses is part of it; equal nodes are one."""
    uses: Counter[int] = Counter()
    for node in out:
        uses[node] += 2  # what is returned is kept
    seen, stack = set(), list(out)
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            for m, _ in nodes[n].terms:
                uses[m] += 1 if nodes[n].kind == "lin" else 2
                stack.append(m)
    made: list[Node] = []
    new: dict[int, int] = {}
    known: dict[Any, int] = {}
    inside: dict[int, tuple[tuple[int, Any], ...]] = {}

    def written(node: Node, key: Any) -> int:
        if key not in known:
            known[key] = len(made)
            made.append(node)
        return known[key]

    for n, node in enumerate(nodes):
        if n not in seen and node.kind != "state":
            continue
        terms = _sum([(k, c * e) for m, c in node.terms for k, e in inside.get(m, ((new.get(m, -1), 1.0),))])
        if node.kind == "lin":
            if len(terms) == 1 and isinstance(terms[0][1], float) and terms[0][1] == 1.0:
                inside[n], new[n] = terms, terms[0][0]
                continue
            if uses[n] < 2:
                inside[n] = terms
                continue
        fresh = node.kind == "noise" or (node.kind == "grad" and not exact) or _is_drawn(node)
        whole = Node(node.kind, node.payload, terms)
        new[n] = written(whole, n if fresh else _whole_key(whole))
    return made, [new[n] for n in out]


def _is_drawn(node: Node) -> bool:
    return node.kind == "mean" and not isinstance(node.payload, np.ndarray)


# ------------------------------------------------------------------------------------------ loops

def _rolled(nodes: list[Node], out: list[int]) -> tuple[list[Node], list[int]]:
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
    keys = [hash(_key(node)) for node in nodes]
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
    """Offsets within a turn of what is carried to the next, and nodes that every turn reads; None where a turn
    reaches further back than to the one before."""
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


# ------------------------------------------------------------------------------------------ meaning

class Domain(Protocol[V]):
    """What the nodes of a trace mean."""

    def state(self, part: str | Past) -> V:
        """A part of the state, or of its past."""

    def noise(self, number: int, common: bool) -> V:
        """Fresh normals; `number` tells the noises of a round apart."""

    def lin(self, terms: Sequence[tuple[V, Any]]) -> V:
        """A sum with coefficients."""

    def grad(self, number: int, at: V) -> V:
        """Gradients."""

    def mix(self, matrices: np.ndarray, of: V) -> V:
        """A product with the matrix of this round."""

    def mean(self, shares: Any, of: V) -> V:
        """An average with the shares of this round."""

    def loop(self, number: int, body: Body, begin: Sequence[V | None]) -> Sequence[V]:
        """What the inputs of a body are after its turns."""


def evaluate(nodes: Sequence[Node], wanted: Sequence[int], domain: Any, given: Sequence[V] = ()) -> list[V]:
    """Values of the wanted nodes in a domain; the first ones are given."""
    values: list[Any] = list(given)
    for number, (kind, payload, terms) in enumerate(nodes, len(values)):
        if kind in ("state", "past"):
            values.append(domain.state(payload))
        elif kind == "noise":
            values.append(domain.noise(number, payload))
        elif kind == "loop":
            values.append(domain.loop(number, payload, [values[m] if m >= 0 else None for m, _ in terms]))
        elif kind == "out":
            values.append(values[terms[0][0]][payload])
        else:
            at = domain.lin([(values[m], c) for m, c in terms])
            values.append(at if kind == "lin" else domain.grad(number, at) if kind == "grad"
                          else domain.mix(payload, at) if kind == "mix" else domain.mean(payload, at))
    return [values[m] for m in wanted]


class _Sharing:
    """The domain of what all clients share: True or False."""

    def __init__(self, parts: Mapping[Any, bool]) -> None:
        self.parts = parts

    def state(self, part: Any) -> bool:
        return self.parts[part]

    def noise(self, number: int, common: bool) -> bool:
        return common

    def lin(self, terms: Sequence[tuple[bool, Any]]) -> bool:
        return all(shared and not (isinstance(c, np.ndarray) and c.shape[1] > 1) for shared, c in terms)

    def grad(self, number: int, at: bool) -> bool:
        return False

    def mix(self, matrices: np.ndarray, of: bool) -> bool:
        return False

    def mean(self, shares: Any, of: bool) -> bool:
        return True

    def loop(self, number: int, body: Body, begin: Sequence[Any]) -> list[bool]:
        return [False] * body.n_inputs


def shared_parts(found: Trace) -> dict[Any, bool]:
    """Which parts of the state all clients share: assumed of all, until the round contradicts."""
    parts: dict[Any, bool] = dict.fromkeys(found.names, True)
    while True:
        after = evaluate(found.nodes, found.out, _Sharing(parts))
        new = {part: parts[part] and shared for part, shared in zip(found.names, after, strict=True)}
        if new == parts:
            return parts
        parts = new
