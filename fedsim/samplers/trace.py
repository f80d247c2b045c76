"""A round of a sampler in few nodes: sums are merged, equal nodes are one, and loops are rolled.

Nodes stand in the order in which they are computed. `Trace.nodes` may hold loops: a body with inputs that are
carried from turn to turn, and a count; nodes of kind "out" read what a loop gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from .loops import Body, key_of, rolled, whole_key
from .nodes import Chance, Each, Node
from .tape import NotationError, Tape, Unread, Vector, recording

Past = tuple[str, int]
V = TypeVar("V")


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

    @property
    def noises(self) -> tuple[int, int]:
        """How many noises a round draws for each client, and for all together."""
        return tuple(sum(times for node, times in self.every()  # type: ignore[return-value]
                         if node.kind == "noise" and bool(node.payload) == common)
                     for common in (False, True))

    @property
    def calls_by_chance(self) -> int:
        """How often a round calls a function with uniform numbers."""
        return sum(times for node, times in self.every() if node.kind == "each" and node.payload.uniforms)

    def how_many(self, kind: str) -> int:
        """How often a round computes nodes of a kind."""
        return sum(times for node, times in self.every() if node.kind == kind)


def _every(nodes: Sequence[Node], times: int) -> Iterator[tuple[Node, int]]:
    for node in nodes:
        if node.kind == "loop":
            yield from _every(node.payload.nodes, times * node.payload.turns)
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
    tape, made = _written(name, function, state, parameters, n_clients, weights)
    again, others = _written(name, function, state, parameters, n_clients, weights)
    if made != others or list(map(_said, tape.nodes)) != list(map(_said, again.nodes)):
        raise NotationError(f"{name} is another round each time that it is called: a number that it draws, "
                            "as by np.random, is drawn once for all rounds; noise() is drawn anew in each")
    names, nodes, out = _with_past(list(state), list(tape.nodes), made)
    nodes, out = _merged(nodes, out, exact_gradients)
    nodes, out = rolled(nodes, out)
    lengths = {len(c) for node, _ in _every(nodes, 1) for _, c in node.terms
               if isinstance(c, np.ndarray) and len(c) > 1}
    if len(lengths) > 1:
        told = " and ".join(map(str, sorted(lengths)))
        raise NotationError(f"{name}: schedules of {told} rounds do not fit")
    turns = [len(node.payload) for node, _ in _every(nodes, 1) if isinstance(node.payload, np.ndarray)]
    return Trace(tuple(names), tuple(nodes), tuple(out), n_clients, tape.weights,
                 int(np.lcm.reduce(turns or [1])), next(iter(lengths), None))


def _written(name: str, function: Callable[..., Any], state: Sequence[str], parameters: Mapping[str, Any],
             n_clients: int, weights: np.ndarray) -> tuple[Tape, list[int]]:
    """The tape of a call of the function, and the nodes that it returns."""
    tape = Tape(n_clients, np.asarray(weights, dtype=np.float64))
    with recording(tape):
        given = [tape.add("state", part) for part in state]
        made = function(*given, **parameters)
        made = made if isinstance(made, tuple) else (made,)
        for one in made:
            if isinstance(one, Unread):
                raise NotationError(f"{name} returns what is no vector: {one.meant}")
        if len(made) != len(given) or not all(isinstance(one, Vector) for one in made):
            raise NotationError(
                f"{name} must return the new value of {', '.join(state)}, as "
                f"{'a vector' if len(state) == 1 else f'{len(state)} vectors'} of clients; it returns "
                f"{', '.join('a vector' if isinstance(one, Vector) else repr(one) for one in made)}")
        if any(one.tape is not tape for one in made):
            raise NotationError(f"{name} returns a vector of another call; each call has its own")
    return tape, [one.node for one in made]


def _said(node: Node) -> Any:
    """What a node is, but for objects that each call makes anew."""
    payload = node.payload
    told = (payload.mean.tobytes() if isinstance(payload, Chance) else
            payload[:2] + payload[3:] if isinstance(payload, Each) else key_of(payload))
    return node.kind, told, tuple((m, key_of(c)) for m, c in node.terms)


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
    for returned in out:
        uses[returned] += 2  # it is kept
    seen, stack = set(), list(out)
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            for m, c in nodes[n].terms:
                if np.any(c != 0.0):
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
        found = [inside.get(m, ((new.get(m, -1), 1.0),)) for m, _ in node.terms]
        terms = tuple(one[0] for one in found) if node.kind == "each" else _sum(
            [(k, c * e) for (_, c), one in zip(node.terms, found, strict=True) for k, e in one])
        if node.kind == "lin":
            if len(terms) == 1 and isinstance(terms[0][1], float) and terms[0][1] == 1.0:
                inside[n], new[n] = terms, terms[0][0]
                continue
            if uses[n] < 2:
                inside[n] = terms
                continue
        fresh = (node.kind in ("noise", "random") or (node.kind == "grad" and not exact)
                 or (node.kind == "each" and node.payload.uniforms > 0))
        whole = Node(node.kind, node.payload, terms)
        new[n] = written(whole, n if fresh else whole_key(whole))
    return made, [new[n] for n in out]


class Domain(Protocol[V]):
    """A meaning of the nodes of a trace."""

    def state(self, part: str | Past) -> V:
        """A part of the state, or of its past."""

    def noise(self, number: int, common: bool) -> V:
        """Fresh normals; `number` tells the noises of a round apart."""

    def lin(self, terms: Sequence[tuple[V, Any]]) -> V:
        """A sum with coefficients."""

    def grad(self, number: int, at: V) -> V:
        """Gradients."""

    def potential(self, number: int, at: V) -> V:
        """Potentials."""

    def mix(self, matrices: np.ndarray, of: V) -> V:
        """A product with the matrix of this round."""

    def mean(self, shares: Any, of: V) -> V:
        """An average with the shares of this round."""

    def random(self, number: int, chance: Chance, of: V) -> V:
        """An average or a product whose matrix is drawn at random."""

    def each(self, number: int, function: Each, of: Sequence[V]) -> V:
        """The image of vectors under a function."""

    def loop(self, number: int, body: Body, begin: Sequence[V | None]) -> Sequence[V]:
        """The inputs of a body after all its turns."""


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
        elif kind == "each":
            values.append(domain.each(number, payload, [values[m] for m, _ in terms]))
        else:
            at = domain.lin([(values[m], c) for m, c in terms])
            values.append(at if kind == "lin" else domain.grad(number, at) if kind == "grad"
                          else domain.potential(number, at) if kind == "potential"
                          else domain.mix(payload, at) if kind == "mix"
                          else domain.mean(payload, at) if kind == "mean"
                          else domain.random(number, payload, at))
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

    potential = grad

    def mix(self, matrices: np.ndarray, of: bool) -> bool:
        return False

    def mean(self, shares: Any, of: bool) -> bool:
        return True

    def random(self, number: int, chance: Chance, of: bool) -> bool:
        return len(chance.mean) == 1

    def each(self, number: int, function: Each, of: Sequence[bool]) -> bool:
        return all(of) and not function.uniforms

    def loop(self, number: int, body: Body, begin: Sequence[Any]) -> list[bool]:
        return [False] * body.n_inputs


def shared_nodes(nodes: Sequence[Node], parts: Mapping[Any, bool]) -> list[bool]:
    """Which nodes all clients share, where they share these parts of the state."""
    return evaluate(nodes, range(len(nodes)), _Sharing(parts))


def shared_parts(found: Trace) -> dict[Any, bool]:
    """Which parts of the state all clients share: assumed of all, until the round contradicts."""
    parts: dict[Any, bool] = dict.fromkeys(found.names, True)
    while True:
        after: list[bool] = evaluate(found.nodes, found.out, _Sharing(parts))
        new = {part: parts[part] and shared for part, shared in zip(found.names, after, strict=True)}
        if new == parts:
            return parts
        parts = new
