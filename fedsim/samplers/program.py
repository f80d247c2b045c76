"""A round of a sampler as a program for the machine: plain arrays, whatever the sampler.

Values live in registers, of one slot for each client or of one alone. A register that is read for the last
time is written over; what a loop or the round hands on changes places with what it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..settings.network import RandomMixing
from ..settings.participation import Participation
from ..settings.validation import Array
from . import operations as ops
from .leaps import TIMES, repeats, with_leaps
from .nodes import Each
from .operations import Program
from .stages import Layout, Loop, Part, Values, scaled, unit
from .trace import Trace


def program_of(trace: Trace, scale: Array, modes: bool = False) -> Program:
    """The program of a trace.

    Parameters
    ----------
    trace : Trace
    scale : (N,)
        Factors of the clients' gradients: their weights, for components.
    modes : bool
        Whether gradients may be taken along the eigenvectors of the clients' curvatures, where that is less
        work: with several gradients for each vector that is turned.
    """
    if modes:
        turned = Values(trace, modes=True)
        counts = turned.counts
        if counts["turn"] + counts["turn back"] < WORTH_A_TURN * counts["grad"]:
            return _Writer(trace, scale, turned).program
    return _Writer(trace, scale, Values(trace)).program


def functions_in(trace: Trace) -> list[Each]:
    """The functions of `each`, in the order in which a program numbers them."""
    return list(dict.fromkeys(node.payload for node, _ in trace.every() if node.kind == "each"))


WORTH_A_TURN = 0.7
"""Turns of a vector for each gradient up to which they are less work than gradients of other coordinates."""


class _Tables:
    """Numbers, matrices and draws of a program, each once."""

    def __init__(self, n_clients: int) -> None:
        self.n_clients = n_clients
        self.numbers: list[Array] = []
        self.coefficients: list[tuple[int, int, int, int]] = []
        self.matrices: list[tuple[int, int, int]] = []
        self.rows: list[tuple[np.ndarray, Array]] = []
        self.draws: list[tuple[int, int, int, int]] = []
        self._known: dict[Any, int] = {}
        self._values: list[Array] = []

    def number(self, values: Array) -> int:
        """Where these numbers begin."""
        self.numbers.append(np.ravel(values))
        return sum(map(len, self.numbers[:-1]))

    def coefficient(self, c: Any) -> int:
        """The place of a coefficient: (rounds, clients) numbers, or one for either."""
        table = np.atleast_2d(np.asarray(c, dtype=np.float64))
        key = table.shape, table.tobytes()
        if key not in self._known:
            rounds, clients = table.shape
            self._known[key] = len(self.coefficients)
            self.coefficients.append((self.number(table), rounds, clients, int(clients > 1)))
            self._values.append(table)
        return self._known[key]

    def values(self, coefficient: int) -> Array:
        """The (rounds, clients) numbers at the place of a coefficient."""
        return self._values[coefficient]

    def ratio(self, above: int, below: int) -> int | None:
        """The place of the coefficient that is one by the other; None where it is not finite."""
        top, bottom = self.values(above), self.values(below)
        if not bottom.all() or (len(top) - len(bottom) and 1 not in (len(top), len(bottom))):
            return None
        return self.coefficient(top / bottom)

    def matrix(self, matrices: Array) -> int:
        """The number of matrices (m, n, N) that take turns."""
        key = "matrix", matrices.shape, matrices.tobytes()
        if key not in self._known:
            self._known[key] = len(self.matrices)
            self.matrices.append((len(self.rows), matrices.shape[1], len(matrices)))
            for row in matrices.reshape(-1, self.n_clients):
                places = np.flatnonzero(row)
                self.rows.append((places, row[places]))
        return self._known[key]

    def draw(self, of: Any, weights: Array) -> int:
        """The number of what is drawn at random in a round."""
        N = self.n_clients
        if isinstance(of, RandomMixing):
            kind, active, first = ops.MATRICES, len(of.chances), self.number(np.cumsum(of.chances))
        elif isinstance(of, Participation):
            kind, active = ops.REPLACED if of.replace else ops.UNREPLACED, of._most_active(N)
            first = self.number(np.cumsum(weights))
        else:
            kind, active = ops.UNBIASED if of.unbiased else ops.ANSWERS, N
            first = self.number(np.concatenate([weights, of.of_clients(N)]))
        matrix = self.matrix(of.matrices) if kind == ops.MATRICES else 0
        self.draws.append((kind, active, first, matrix))
        return len(self.draws) - 1


class _Writer:
    """Writes the program, place by place of the layout."""

    def __init__(self, trace: Trace, scale: Array, values: Values) -> None:
        self.scale, self.N, self.weights = scale, trace.n_clients, trace.weights
        self.values = values
        self.layout = Layout(self.values)
        self.tables = _Tables(self.N)
        self.code: list[list[int]] = []
        self.steps: list[list[int]] = []
        self.functions = functions_in(trace)
        self.widths: list[int] = []
        self.where: dict[int, int] = {}
        """Registers of the values that are still read."""
        self.held: set[int] = set()
        """Registers that change places."""
        nodes = self.values.nodes
        self.stored = {n for n, node in enumerate(nodes) if node.kind == "grad" and any(
            user < 0 or nodes[user].kind != "lin" for user in self.values.users[n])}
        """Gradients that are read by other things than sums, where they are multiplied by their factor."""
        self._write()
        rows = self.tables.rows
        self.program = Program(
            _table(self.code, 10), _table(self.steps, 6), _table(self.tables.coefficients, 4),
            np.concatenate([np.zeros(0), *self.tables.numbers]), _table(self.tables.matrices, 3),
            np.cumsum([0, *(len(places) for places, _ in rows)]).astype(np.int64),
            np.concatenate([np.zeros(0), *(places for places, _ in rows)]).astype(np.int64),
            np.concatenate([np.zeros(0), *(weights for _, weights in rows)]),
            _table(self.tables.draws, 4), np.array(self.widths, dtype=np.int64),
            np.array([one.uniforms for one in self.functions], dtype=np.int64),
            np.array([*trace.noises, self.layout.marks, not self.values.shared[0], trace.calls_by_chance,
                      *self._starts(trace)], dtype=np.int64))

    def _starts(self, trace: Trace) -> list[int]:
        """Registers of the first part and of its past; at first a part's number is its register's."""
        first = trace.names[0]
        return [number for number, part in enumerate(trace.names)
                if first == (part if isinstance(part, str) else part[0])]

    def _write(self) -> None:
        values, layout = self.values, self.layout
        for state in values.states:
            self.where[state] = self._new(not values.shared[state])
        homes = [self.where[state] for state in values.states]
        for chance in values.draws:
            self.steps.append([ops.DRAW, self.tables.draw(chance.of, self.weights), 0, 0, 0, 0])
        loops: list[tuple[int, Loop, list[int]]] = []
        for one, end in zip(layout.line, layout.ends, strict=True):
            if isinstance(one, Part):
                self._part(one, end)
            elif one is not None:
                loops.append(self._begin(one, end))
            else:
                self._end(*loops.pop(), end)
        self._hand_on(homes, values.out)

    def _new(self, wide: bool) -> int:
        """A register that holds nothing."""
        used = {*self.where.values(), *self.held}
        for register, width in enumerate(self.widths):
            if width == wide and register not in used:
                return register
        self.widths.append(int(wide))
        return len(self.widths) - 1

    def _forget(self, place: int) -> None:
        """Let go of values that are read last at a place."""
        for n in [n for n in self.where if self.layout.last.get(n, 0) <= place]:
            del self.where[n]

    def _emit(self, op: int, out: int, *sources: int, factors: Sequence[Any] = (), extra: int = 0,
              number: int = 0) -> None:
        k, l, m = (self.tables.coefficient(c) for c in (*factors, 0.0, 0.0, 0.0)[:3])  # noqa: E741
        a, b, c = (*sources, 0, 0, 0)[:3]
        self.code.append([op, out, a, b, k, l, m, extra, number, c])

    def _copy(self, register: int, source: int) -> None:
        begin = len(self.code)
        self._emit(ops.SCALE, register, source, factors=(1.0,))
        self.steps.append([ops.CLIENTS, begin, begin + 1, 1 - self.widths[register], 0, 0])

    def _begin(self, loop: Loop, place: int) -> tuple[int, Loop, list[int]]:
        homes = []
        for value, begin in zip(loop.inputs, loop.begins, strict=True):
            self.where[value] = home = self._new(True)
            homes.append(home)
            if begin is not None:
                self._copy(home, self.where[begin])
        self._forget(place)
        self.steps.append([ops.LOOP, loop.turns, 0, 0, 0, 0])
        return len(self.steps), loop, homes

    def _end(self, begin: int, loop: Loop, homes: list[int], place: int) -> None:
        self._hand_on(homes, loop.outputs)
        size = len(self.code)
        if self.steps[begin:] == [[ops.CLIENTS, size - 1, size, 0, 0, 0]] and repeats(
                self.code[-1], loop.turns):
            del self.steps[begin - 1]
            self.code[-1][TIMES] *= loop.turns
        else:
            self.steps.append([ops.END, begin, 0, 0, 0, 0])
        self._forget(place)
        for value, home in zip(loop.results, homes, strict=True):
            if value in self.layout.last:
                self.where[value] = home

    def _hand_on(self, homes: list[int], outputs: Sequence[int]) -> None:
        """Make each register hold its value, by exchanges, and copies of what two of them want."""
        holds: list[int] = []
        self.held |= set(homes)
        for home, value in zip(homes, outputs, strict=True):
            place = self.where[value]
            if place in holds or self.widths[place] != self.widths[home]:
                place = self._new(bool(self.widths[home]))
                self._copy(place, self.where[value])
                self.held.add(place)
            holds.append(place)
        for i, home in enumerate(homes):
            place = holds[i]
            if place != home:
                self.steps.append([ops.EXCHANGE, home, place, 0, 0, 0])
                holds = [place if one == home else one for one in holds]
        self.held = set()

    def _part(self, part: Part, end: int) -> None:
        begin = len(self.code)
        for n in part.values:
            self._value(n, part, end)
        self.code[begin:] = with_leaps(self.code[begin:], self.widths, self.tables)
        own, shared = part.draws
        self.steps.append([ops.CLIENTS, begin, len(self.code), int(part.once), int(own), int(shared)])
        self._forget(end)

    def _value(self, n: int, part: Part, end: int) -> None:
        layout, (kind, payload, terms) = self.layout, self.values.nodes[n]
        place, number = layout.place[n], layout.numbers.get(n, 0)
        if n in layout.fused.values() or (kind == "noise" and n not in layout.stored):
            return
        wide = self._is_wide(n, part, end) or (kind == "mix" and self._begins_a_wide_sum(n, part, end))
        if kind == "lin":
            self._sum(n, wide, part)
        elif kind == "noise":
            out = self._new(wide)
            self._emit(ops.FILL, out)
            self._emit(ops.SHARED_NOISE if payload else ops.NOISE, out, factors=(1.0,))
            self.where[n] = out
        else:
            source = self.where[terms[0][0]]
            out = self._new(wide)
            if kind == "grad":
                op = ops.MODES_GRAD if self.values.modes else ops.GRAD
                self._emit(op, out, source, number=number)
                if n in self.stored:
                    self._emit(ops.SCALE, out, out, factors=(scaled(self.scale, 1.0),))
            elif kind == "mix":
                self._emit(ops.MIX, out, source, extra=self.tables.matrix(payload))
            elif kind in ("turn", "turn back"):
                self._emit(ops.TURN if kind == "turn" else ops.TURN_BACK, out, source)
            elif kind == "potential":
                self._emit(ops.POTENTIAL, out, source, factors=(scaled(self.scale, 1.0),))
            elif kind == "each":
                self._emit(ops.EACH, out, *(self.where[m] for m, _ in terms),
                           extra=self.functions.index(payload), number=number)
            elif kind == "mean":
                self._emit(ops.MEAN, out, source, factors=(payload,))
            else:
                self._emit(ops.RANDOM, out, source, extra=self.values.drawn[n])
            self.where[n] = out
        self._forget(place)

    def _is_wide(self, n: int, part: Part, end: int) -> bool:
        """Whether a value of each client is kept beyond its part."""
        return not part.once and self.layout.last.get(n, self.layout.place[n]) > end

    def _begins_a_wide_sum(self, n: int, part: Part, end: int) -> bool:
        """Whether one sum alone reads it, as its first mixed value: it is computed where the sum goes."""
        users, nodes = self.values.users[n], self.values.nodes
        if len(users) != 1 or users[0] not in part.values or nodes[users[0]].kind != "lin":
            return False
        first = next((m, c) for m, c in nodes[users[0]].terms if nodes[m].kind == "mix")
        return first[0] == n and unit(first[1]) and self._is_wide(users[0], part, end)

    def _factor(self, m: int, c: Any) -> Any:
        """The factor of a value as its register has it."""
        return scaled(self.scale, c) if self.values.nodes[m].kind == "grad" and m not in self.stored else c

    def _sum(self, n: int, wide: bool, part: Part) -> None:
        """out = the sum: what is there, mixed values first, then noise and gradient together."""
        values, layout, terms = self.values, self.layout, self.values.nodes[n].terms
        kinds = {m: values.nodes[m].kind for m, _ in terms}
        noises = [(m, c) for m, c in terms if m in part.noises]
        own, shared = ([(m, c) for m, c in noises if values.shared[m] == common] for common in (False, True))
        gradient = layout.fused.get(n)
        rest = [(m, self._factor(m, c)) for m, c in terms if m not in part.noises and m != gradient]
        rest.sort(key=lambda term: kinds[term[0]] != "mix")
        last = [term for term in rest if kinds[term[0]] == "grad"]
        kicked = len(last) == 1 and len(own) == 1 and len(rest) > 1
        if kicked:
            rest.remove(last[0])
        over, damped = self._overwritten(rest, wide, part, layout.place[n]), False
        if over is None:
            out = self._new(wide)
            first, rest = rest[:2], rest[2:]
            sources = [self.where[m] for m, _ in first]
            op = (ops.FILL, ops.SCALE, ops.PAIR)[len(first)]
            self._emit(op, out, *sources, factors=[c for _, c in first])
        else:
            out = self.where[over[0]]
            damped = kicked and rest == [over] and not shared and not unit(over[1])
            if not unit(over[1]) and not damped:
                self._emit(ops.SCALE, out, out, factors=(over[1],))
            rest.remove(over)
        for i in range(0, len(rest), 2):
            some = rest[i:i + 2]
            self._emit(ops.ADD_PAIR if len(some) == 2 else ops.ADD, out, *(self.where[m] for m, _ in some),
                       factors=[c for _, c in some])
        if gradient is not None:
            pull = self._factor(gradient, next(c for m, c in terms if m == gradient))
            self._emit(ops.STEP, out, factors=(-pull, own[0][1], shared[0][1] if shared else 0.0))
        elif kicked:
            m, pull = last[0]
            op = ops.DAMPED_KICK if damped else ops.SHARED_KICK if shared else ops.KICK
            further = over[1] if over and damped else shared[0][1] if shared else 0.0
            self._emit(op, out, self.where[m], factors=(-pull, own[0][1], further))
        else:
            for op, some in ((ops.NOISE, own), (ops.SHARED_NOISE, shared)):
                for _, c in some:
                    self._emit(op, out, factors=(c,))
        self.where[n] = out

    def _overwritten(self, rest: list[tuple[int, Any]], wide: bool, part: Part,
                     place: int) -> tuple[int, Any] | None:
        """The term whose register the sum may take: it is read for the last time here.

        Two terms with factors are added in one pass where they are not.
        """
        for exact in (True, False)[:1 + (len(rest) != 2)]:
            for m, c in rest:
                if (self.layout.last[m] == place and self.widths[self.where[m]] == wide
                        and self.values.shared[m] == part.once and unit(c) >= exact
                        and list(self.where.values()).count(self.where[m]) == 1):
                    return m, c
        return None


def _table(rows: Sequence[Sequence[int]], width: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, width)
