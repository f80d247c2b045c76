"""A sampler's replicas in NumPy: the values of a round one after the other, for all clients and replicas.

It has no registers and no operations, and draws the numbers that the machine draws.
"""

from __future__ import annotations

import numpy as np

from ..interfaces import Problem
from ..random.plain import PlainStreams
from ..random.streams import EACH, GRADIENT_NOISE, OWN_NOISE, SHARED_NOISE
from ..settings.network import RandomMixing
from ..settings.participation import Participation
from ..settings.validation import Array
from .nodes import Chance, Each
from .stages import Layout, Part, Values
from .trace import Trace


class Twin:
    """Replicas of a sampler, round by round.

    Parameters
    ----------
    trace : Trace
    problem : e.g. fedsim.Quadratic
        Without minibatches.
    scale : (N,)
        Factors of the clients' gradients.
    streams : PlainStreams
    start : (R, d) or (N, R, d)
    """

    def __init__(self, trace: Trace, problem: Problem, scale: Array, streams: PlainStreams,
                 start: Array) -> None:
        if problem.has_minibatches:
            raise ValueError(f"problem={problem!r} has minibatches, which only compiled replicas draw; leave "
                             "out compiled=False")
        self.trace, self.problem, self.scale, self.streams = trace, problem, scale, streams
        self.values = Values(trace)
        self.layout = Layout(self.values)
        own, shared = trace.noises
        self.noises = max(own, 1), max(shared, 1)
        self.chances = trace.calls_by_chance
        self.state: dict[int, Array] = {}
        for value, part in zip(self.values.states, trace.names, strict=True):
            root = part[0] if isinstance(part, tuple) else part
            shape = 1 if self.values.shared[value] else trace.n_clients, *start.shape[-2:]
            self.state[value] = np.broadcast_to(start if root == trace.names[0] else 0.0, shape)

    def view(self, number: int) -> Array:
        """(R, d) of the average, or of client `number` - 1."""
        first = self.state[self.values.states[0]]
        return first.mean(axis=0) if number == 0 else first[number - 1]

    def round(self, number: int) -> None:
        """A round of all replicas."""
        self.now = dict(self.state)
        self.number = number
        self.own = self.shared = -1
        self.evaluated = self.calls = 0
        draws = self.values.draws
        self.drawn = [self._shares(chance, number * len(draws) + k) for k, chance in enumerate(draws)]
        self._line(0, len(self.layout.line))
        self.state = {state: self.now[value] for state, value in zip(
            self.values.states, self.values.out, strict=True)}

    def _line(self, begin: int, end: int) -> None:
        at = begin
        while at < end:
            one = self.layout.line[at]
            if isinstance(one, Part):
                self._part(one)
            elif one is not None:
                last = self._end_of(at)
                for value, first in zip(one.inputs, one.begins, strict=True):
                    self.now[value] = self.now[first] if first is not None else np.zeros(1)
                for _ in range(one.turns):
                    self._line(at + 1, last)
                    turned = [self.now[value] for value in one.outputs]
                    self.now.update(zip(one.inputs, turned, strict=True))
                self.now.update(zip(one.results, turned, strict=True))
                at = last
            at += 1

    def _end_of(self, at: int) -> int:
        """Where the loop ends that begins there."""
        depth = 0
        for place in range(at, len(self.layout.line)):
            one = self.layout.line[place]
            depth += 0 if isinstance(one, Part) else -1 if one is None else 1
            if not depth:
                break
        return place

    def _part(self, part: Part) -> None:
        own, shared = part.draws
        marked = (own and self.own >= 0) if self.layout.marks else (shared and self.shared >= 0)
        self.evaluated = 0 if marked else self.evaluated
        self.own += own
        self.shared += shared
        gradients = calls = 0
        for n in part.values:
            self.now[n] = self._value(n)
            node = self.values.nodes[n]
            gradients += node.kind == "grad"
            calls += node.kind == "each" and node.payload.uniforms > 0
        self.evaluated += gradients
        self.calls += calls

    def _value(self, n: int) -> Array:
        (kind, payload, terms), d = self.values.nodes[n], self.problem.dim
        N = self.trace.n_clients
        if kind == "noise":
            tag, done = (SHARED_NOISE, self.shared) if payload else (OWN_NOISE, self.own)
            step = self.number * self.noises[bool(payload)] + done
            return np.stack([self.streams.of_step(tag, step, c, d) for c in range(1 if payload else N)])
        if kind == "each":
            return self._applied(n, payload, [self.now[m] for m, _ in terms])
        total: Array = np.zeros((1, len(self.streams.replicas), d))
        for m, c in terms:
            factor = c[self.number % len(c)][:, None, None] if isinstance(c, np.ndarray) else c
            total = total + factor * self.now[m]
        if kind == "lin":
            return total
        x = np.broadcast_to(total, (N, *total.shape[1:]))
        if kind == "grad":
            return np.stack([self.scale[c] * self._gradient(n, c, x[c]) for c in range(N)])
        if kind == "potential":
            values = [self.scale[c] * self.problem._potentials(c, x[c]) for c in range(N)]
            return np.repeat(np.stack(values)[:, :, None], d, axis=2)
        if kind == "random":
            return np.einsum("rij,jrd->ird", self.drawn[self.values.drawn[n]], x)
        table = payload[self.number % len(payload)]
        return np.einsum("ij,jrd->ird", np.atleast_2d(table), x)

    def _applied(self, n: int, function: Each, vectors: list[Array]) -> Array:
        """The images of vectors (N or 1, R, d) under a function."""
        R, d = vectors[0].shape[1:]
        made = np.full((1 if self.values.shared[n] else self.trace.n_clients, R, d), np.nan)
        position = self.number * self.chances + self.calls + self.layout.numbers.get(n, 0)
        for client in range(len(made)):
            own = [np.ascontiguousarray(one[client if len(one) > 1 else 0]) for one in vectors]
            drawn = np.array([self.streams.uniform_of(EACH, position, client, place)
                              for place in range(function.uniforms)])
            for replica in range(R):
                extra = [drawn[:, replica]] if function.uniforms else []
                function.function(*(one[replica] for one in own), *extra, made[client, replica])
        return made

    def _gradient(self, n: int, client: int, x: Array) -> Array:
        exact: Array = self.problem.gradient(client, x)
        noise = self.problem.gradient_noise
        if noise is None:
            return exact
        place = 0 if self.layout.marks else 1
        step = self.number * self.noises[place] + max((self.own, self.shared)[place], 0)
        tag = GRADIENT_NOISE + self.evaluated + self.layout.numbers[n]
        drawn = self.streams.normals(tag, step, client, self.problem.dim).T
        if isinstance(noise, float):
            return exact + noise * drawn
        return exact + drawn @ self.problem._arrays().factors[client].T

    def _shares(self, chance: Chance, position: int) -> Array:
        """(R, n, N): what is drawn for each replica."""
        of, N = chance.of, self.trace.n_clients
        R = len(self.streams.replicas)
        if isinstance(of, RandomMixing):
            last = len(of.chances) - 1
            chosen = np.searchsorted(np.cumsum(of.chances), self.streams.uniform(position, 0), side="right")
            matrices: Array = of.matrices[np.minimum(chosen, last)]
            return matrices
        weights = self.trace.weights
        shares = np.zeros((R, N))
        if isinstance(of, Participation):
            active = of._most_active(N)
            for row in self.streams.clients(position, active, np.cumsum(weights), of.replace):
                shares[np.arange(R), row] += 1.0 / active
        else:
            chances = of.of_clients(N)
            answer = np.stack([self.streams.uniform(position, c) < chances[c] for c in range(N)], axis=1)
            shares = answer * weights / (chances if of.unbiased else 1.0)
            total = shares.sum(axis=1, keepdims=True)
            shares = shares if of.unbiased else np.divide(shares, total, where=total > 0.0, out=shares)
        return shares[:, None, :]
