"""The nodes of a round in the order in which a machine computes them for all clients.

A stage first computes what all clients share, and then runs through the clients, one after the other. It
draws one noise of every client at most, and reads of other clients what earlier stages left. Values are
numbered over the whole round, in loops too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array
from .loops import Body
from .nodes import Chance, Node
from .trace import Past, Trace, shared_parts

MEETING = ("mix", "mean", "random")
"""Kinds of nodes that read all clients."""
_HANDED_ON = -1


class Loop(NamedTuple):
    """Entries, so many turns. `inputs` begin as `begins` (None: whatever), a turn makes them `outputs`, and
    what they are in the end are `results`."""

    entries: list[Any]
    inputs: list[int]
    begins: list[int | None]
    outputs: list[int]
    results: list[int]
    turns: int


class Stage(NamedTuple):
    """Values that are computed once, values of each client, and the noises that are drawn, if any."""

    shared: list[int]
    own: list[int]
    own_noise: int | None
    shared_noise: int | None


class Values:
    """The values of a trace: nodes with operands by number, and `entries`, which are values and loops.

    Parameters
    ----------
    trace : Trace
    modes : bool
        Whether gradients, and what is made of them, are along the eigenvectors of the client's curvature.

    Attributes
    ----------
    nodes : list of Node
        Gradients, mixings and averages have one operand, with factor one, that is no noise.
        The kinds "turn" and "turn back" lead to those eigenvectors and from them.
    shared : list of bool
        Whether all clients have the same value.
    users : list of list
        Values that read a value; -1 for what the round or a loop hands on.
    draws : list of Chance
        What is drawn at random, each object once in a round; `drawn` has their numbers, by value.
    states : list of int
        The parts of the state.
    entries : list of int or Loop
    out : list of int
        What the parts of the state become.
    """

    def __init__(self, trace: Trace, modes: bool = False) -> None:
        self.modes = modes
        self._in_modes: set[int] = set()
        self._homes: dict[int, tuple[list[Any], int]] = {}
        self._turned: dict[int, int] = {}
        self._times = 1
        self.counts = {"grad": 0, "turn": 0, "turn back": 0}
        """How often a round computes a value of these kinds, for each client."""
        self.nodes: list[Node] = []
        self.shared: list[bool] = []
        self.users: list[list[int]] = []
        self.draws: list[Chance] = []
        self.drawn: dict[int, int] = {}
        kinds = shared_parts(trace)
        self.states = [self._add(Node("state", part), kinds[part]) for part in trace.names]
        self._parts: dict[str | Past, int] = dict(zip(trace.names, self.states, strict=True))
        self.entries: list[Any] = []
        self._homes |= dict.fromkeys(self.states, (self.entries, 1))
        self.out = [self._in(False, n) for n in self._read(trace.nodes, [], trace.out, self.entries)]
        self._hand_on(self.out)

    def _add(self, node: Node, shared: bool) -> int:
        self.nodes.append(node)
        self.shared.append(shared)
        self.users.append([])
        for m, _ in node.terms:
            self.users[m].append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def _hand_on(self, values: Sequence[int | None]) -> None:
        for value in values:
            if value is not None:
                self.users[value].append(_HANDED_ON)

    def _in(self, modes: bool, value: int) -> int:
        """The same value in these coordinates, computed where it is."""
        if (value in self._in_modes) == modes:
            return value
        if value not in self._turned:
            entries, times = self._homes[value]
            kind, source = "turn" if modes else "turn back", ((self._kept(value, entries), 1.0),)
            self._turned[value] = self._append(Node(kind, None, source), False, entries, times)
            self._in_modes |= {self._turned[value]} if modes else set()
        return self._turned[value]

    def _append(self, node: Node, shared: bool, entries: list[Any], times: int) -> int:
        entries.append(self._add(node, shared))
        self._homes[entries[-1]] = entries, times
        if node.kind in self.counts:
            self.counts[node.kind] += times
        return len(self.nodes) - 1

    def _in_coordinates(self, node: Node, entries: list[Any]) -> tuple[Node, bool]:
        """The node with its operands in the coordinates of the result, and whether these are the modes."""
        inside = self.modes and (node.kind == "grad" or (
            node.kind == "lin" and any(m in self._in_modes for m, _ in node.terms)))
        terms = [(self._in(inside, m), c) for m, c in node.terms if self.nodes[m].kind != "noise"]
        noises = tuple((m, c) for m, c in node.terms if self.nodes[m].kind == "noise")
        if not inside:
            return node._replace(terms=(*terms, *noises)), False
        if noises:
            terms.append((self._in(True, self._computed(Node("lin", None, noises), entries)), 1.0))
        return node._replace(terms=tuple(terms)), True

    def _computed(self, node: Node, entries: list[Any]) -> int:
        node, inside = self._in_coordinates(node, entries) if self.modes else (node, False)
        if node.kind == "lin":
            shared = all(self.shared[m] and not (isinstance(c, np.ndarray) and c.shape[1] > 1)
                         for m, c in node.terms)
        elif node.kind == "each":
            shared = not node.payload.uniforms and all(self.shared[m] for m, _ in node.terms)
        else:
            shared = (bool(node.payload) if node.kind == "noise" else node.kind == "mean"
                      or (node.kind == "random" and len(node.payload.mean) == 1))
        if node.kind == "random":
            same = [k for k, chance in enumerate(self.draws) if chance.of is node.payload.of]
            self.drawn[len(self.nodes)] = same[0] if same else len(self.draws)
            self.draws += [] if same else [node.payload]
        value = self._append(node, shared, entries, self._times)
        self._in_modes |= {value} if inside else set()
        return value

    def _read(self, nodes: Sequence[Node], given: Sequence[Any], wanted: Sequence[int],
              entries: list[Any]) -> list[int]:
        """Append what computes the nodes; returns the values of the wanted ones."""
        known: list[Any] = list(given)
        for kind, payload, read in nodes:
            if kind in ("state", "past"):
                known.append(self._parts[payload])
            elif kind == "loop":
                known.append(self._looped(payload, [known[m] if m >= 0 else None for m, _ in read], entries))
            elif kind == "out":
                known.append(known[read[0][0]][payload])
            else:
                terms = tuple((known[m], c) for m, c in read)
                if kind == "each":
                    terms = tuple((self._kept(m, entries), c) for m, c in terms)
                    known.append(self._computed(Node(kind, payload, terms), entries))
                    continue
                plain = len(terms) == 1 and isinstance(terms[0][1], float) and terms[0][1] == 1.0
                if kind not in ("lin", "noise") and not (plain and self.nodes[terms[0][0]].kind != "noise"):
                    terms = ((self._computed(Node("lin", None, terms), entries), 1.0),)
                known.append(self._computed(Node(kind, payload, terms), entries))
        return [known[m] for m in wanted]

    def _kept(self, value: int, entries: list[Any]) -> int:
        """The same value where it can be read; a noise is written down."""
        return value if self.nodes[value].kind != "noise" else self._computed(
            Node("lin", None, ((value, 1.0),)), entries)

    def _looped(self, body: Body, begin: list[int | None], entries: list[Any]) -> list[int | None]:
        """Append a loop; returns what its inputs are after it."""
        carried = [i for i in range(body.n_inputs) if body.outputs[i] != i]
        inside: list[int | None] = list(begin)
        inputs = [self._add(Node("input"), False) for _ in carried]
        for i, value in zip(carried, inputs, strict=True):
            inside[i] = value
        within: list[Any] = []
        self._homes |= dict.fromkeys(inputs, (within, self._times * body.turns))
        self._in_modes |= set(inputs) if self.modes else set()
        self._times *= body.turns
        outputs = [self._in(self.modes, n) for n in
                   self._read(body.nodes, inside, [body.outputs[i] for i in carried], within)]
        self._times //= body.turns
        results = [self._add(Node("result"), False) for _ in carried]
        self._homes |= dict.fromkeys(results, (entries, self._times))
        self._in_modes |= set(results) if self.modes else set()
        begins = [None if one is None else self._in(self.modes, one) for one in (begin[i] for i in carried)]
        self._hand_on([*begins, *outputs])
        entries.append(Loop(within, inputs, begins, outputs, results, body.turns))
        after = list(begin)
        for i, value in zip(carried, results, strict=True):
            after[i] = value
        return after

    def stages(self, piece: Sequence[int]) -> Iterator[Stage]:
        """The values of a piece without loops, in stages."""
        stage: dict[int, int] = {}
        pinned, drawn = set[int](), {True: -1, False: -1}
        for n in piece:
            kind, payload, terms = self.nodes[n]
            if kind == "noise":
                stage[n] = drawn[bool(payload)] = drawn[bool(payload)] + 1
                continue
            inside = [m for m, _ in terms if m in stage]
            stage[n] = max((stage[m] + (kind in MEETING and not self.shared[m]) for m in inside), default=0)
            if any((self.nodes[m].kind == "noise" and not self.shared[m])
                   or (m in pinned and "turn" in (kind, self.nodes[m].kind)) for m in inside):
                pinned.add(n)  # a noise is used where it is drawn, also in modes
        for n in reversed(piece):  # as late as who reads them allows: what is read at once needs less room
            users = self.users[n]
            if (self.nodes[n].kind in ("lin", "grad", "turn") and not self.shared[n] and n not in pinned
                    and users and all(user in stage for user in users)):
                stage[n] = max(stage[n], min(stage[user] - (self.nodes[user].kind in MEETING)
                                             for user in users))
        for number in range(1 + max(stage.values(), default=-1)):
            here = [n for n in piece if stage[n] == number]
            noises = {self.shared[n]: n for n in here if self.nodes[n].kind == "noise"}
            yield Stage([n for n in here if self.shared[n]], [n for n in here if not self.shared[n]],
                        noises.get(False), noises.get(True))


class Part(NamedTuple):
    """Values of a stage that are computed one after the other, for each client or (`once`) for all.

    `noises` are those that can be read as they are drawn; `draws` are those that are drawn here.
    """

    values: list[int]
    once: bool
    noises: frozenset[int]
    draws: tuple[bool, bool]


class Layout:
    """A round in line: parts, loops and their ends; and when each value is read last.

    Attributes
    ----------
    line : list of Part, Loop or None
        None ends the last loop that began.
    place : dict
        Value -> its place in the line.
    last : dict
        Value -> the last place where it is read.
    numbers : dict
        Gradient, or function with uniform numbers -> its number among those of its part.
    fused : dict
        Sum -> the gradient that is taken in it, at the point that the sum moves.
    stored : set
        Noises that are read later than they are drawn.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.line: list[Part | Loop | None] = []
        self.ends: list[int] = []
        self.place: dict[int, int] = dict.fromkeys(values.states, 0)
        self.last: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.fused: dict[int, int] = {}
        self.stored: set[int] = set()
        self._depths: dict[int, tuple[int, ...]] = dict.fromkeys(values.states, ())
        self._reads: list[tuple[int, int, tuple[int, ...]]] = []
        self._loop_ends: list[int] = []
        own = any(node.kind == "noise" and not node.payload for node in values.nodes)
        self.marks = own
        """Whether gradients are numbered anew by noises of the clients, or else by shared ones."""
        self._clean = True
        self._begun = False
        self._now = 1
        self._entries(values.entries, ())
        self._now += 1
        for value in values.out:
            self._reads.append((value, self._now, ()))
        for value, at, loops in self._reads:
            outside = [end for end in loops if end not in self._depths[value]]
            at = self._loop_ends[outside[0]] if outside else at
            self.last[value] = max(self.last.get(value, 0), at)
        self.end = self._now

    def _entries(self, entries: Sequence[Any], loops: tuple[int, ...]) -> None:
        piece: list[int] = []
        for entry in [*entries, None]:
            if isinstance(entry, int):
                piece.append(entry)
                continue
            for stage in self.values.stages(piece):
                self._stage(stage, loops)
            piece = []
            if entry is not None:
                self._loop(entry, loops)

    def _loop(self, loop: Loop, loops: tuple[int, ...]) -> None:
        self._now += 1
        for value in loop.begins:
            if value is not None:
                self._reads.append((value, self._now, loops))
        within = (*loops, len(self._loop_ends))
        self._loop_ends.append(0)
        for value in loop.inputs:
            self.place[value], self._depths[value] = self._now, within
        self._append(loop)
        self._entries(loop.entries, within)
        self._now += 1
        self._reads += [(value, self._now, within) for value in loop.outputs]
        self._loop_ends[within[-1]] = self._now
        for value in loop.results:
            self.place[value], self._depths[value] = self._now, loops
        self._append(None)

    def _append(self, one: Part | Loop | None) -> None:
        self.line.append(one)
        self.ends.append(self._now)

    def _stage(self, stage: Stage, loops: tuple[int, ...]) -> None:
        mark = stage.own_noise if self.marks else stage.shared_noise
        noises = frozenset(n for n in (stage.own_noise, stage.shared_noise) if n is not None)
        if mark is None and not self._begun and any(
                self.values.nodes[n].kind == "grad" for n in stage.own):
            self._clean = False
        self._begun |= mark is not None
        here, waiting = {*stage.shared, *stage.own}, stage.shared_noise is not None
        self.stored |= {n for n in noises if not here.issuperset(self.values.users[n])}
        for once, part in ((True, stage.shared), (False, stage.own)):
            own = not once and stage.own_noise is not None
            if not part and not own:
                continue
            draws, waiting = (own, waiting), False
            self._part(Part(part, once, noises, draws), loops, mark is not None and self._clean)

    def _part(self, part: Part, loops: tuple[int, ...], may_fuse: bool) -> None:
        values, count, by_chance = self.values, 0, 0
        where = {n: self._now + 1 + i for i, n in enumerate(part.values)}
        end = self._now = self._now + len(part.values) + 1
        for n in part.values:
            kind, _, terms = values.nodes[n]
            self.place[n], self._depths[n] = where[n], loops
            if kind == "grad":
                self.numbers[n] = count
                mover = values.users[n][0] if len(values.users[n]) == 1 else _HANDED_ON
                if count == 0 and may_fuse and mover in where and self._moves(mover, n, part.noises):
                    self.fused[mover] = n
                    where[n] = where[mover]
                count += 1
            elif kind == "each" and values.nodes[n].payload.uniforms:
                self.numbers[n] = by_chance
                by_chance += 1
            for m, _ in terms:  # others still read what is shared, or what is read of other clients
                stays = not part.once and (values.shared[m] or kind in MEETING)
                self._reads.append((m, end if stays else where[n], loops))
        self._append(part)

    def _moves(self, n: int, gradient: int, noises: frozenset[int]) -> bool:
        """Whether a sum is its gradient's point, moved by the gradient and by noises that are drawn here."""
        nodes, (x, _) = self.values.nodes, self.values.nodes[gradient].terms[0]
        if nodes[n].kind != "lin":
            return False
        rest = [(m, c) for m, c in nodes[n].terms if m != gradient]
        drawn = [m for m, _ in rest if m in noises]
        points = [(m, c) for m, c in rest if m not in noises]
        return (len(points) == 1 and points[0][0] == x and isinstance(points[0][1], float)
                and points[0][1] == 1.0 and any(not nodes[m].payload for m in drawn))


def unit(c: Any) -> bool:
    """Whether a coefficient is one."""
    return isinstance(c, float) and c == 1.0


def scaled(scale: Array, c: Any) -> Any:
    """A coefficient of a gradient, times the factor of each client's gradient."""
    return c if np.all(scale == 1.0) else np.atleast_2d(np.asarray(c, dtype=np.float64)) * scale[None]
