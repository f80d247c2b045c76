"""A round cut before every gradient, for noise of gradients that depends on where they are taken.

With minibatches client c's gradient at y has noise of mean 0 given y and of covariance G_c(y), quadratic in
y. A piece of a round takes the vectors that are live at its beginning to those that are live at its end,

    l' = M l + v + sum_g B_g xi_g + N(0, Q),     xi_g of the gradients at y_g = Y_g l + s_g,

and the noises are uncorrelated with one another and with l, whatever the point. So mean and covariance close:

    C' = M C M' + Q + sum_g B_g E[G(y_g)] B_g',      E[G_c(y)] by the moments of client c's own y alone.

A draw at random begins a piece of its own too, with H_k and u_k as a `Round` has them.
Loops are as many pieces as they have turns, which are one piece where they are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..settings.validation import Array
from .blocks import Blocks, Value
from .clients import Clients, Round
from .loops import whole_key
from .nodes import Node
from .rounds import aparts
from .trace import Trace, evaluate, shared_nodes, shared_parts

MOST_NODES = 50_000
"""Nodes of a round, loops as all their turns, that are cut into pieces."""
NOISY = ("grad", "random")
Noise = Callable[[Array, Array], Array]


class Piece(NamedTuple):
    """A piece: matrix M (n', n), shift v (n',) and noise Q (n', n').

    points Y (N, e, n) and s (N, e) of its gradients, kicks B (n', N, e) of their noises; roots H (n', n) and
    u (n',) of what is drawn at random.
    """

    matrix: Array
    shift: Array
    noise: Array
    points: tuple[tuple[Array, Array], ...]
    kicks: tuple[Array, ...]
    roots: tuple[tuple[Array, Array], ...]

    @classmethod
    def of(cls, one: Round, group: int) -> Piece:
        """A whole round of a group."""
        roots: Any = () if one.spread is None or one.spread_shift is None else zip(
            one.spread[:, group], one.spread_shift[:, group], strict=True)
        return cls(np.eye(one.shift.shape[1]) + one.deviation[group], one.shift[group], one.noise[group],
                   (), (), tuple(roots))

    def after(self, mean: Array, cov: Array, noise: Noise, linear: bool) -> tuple[Array, Array]:
        """Moments (n',), (n', n') after those before; `linear` keeps what is linear in the covariance."""
        grown = self.matrix @ cov @ self.matrix.T
        for (rows, shift), kick in zip(self.points, self.kicks, strict=True):
            flat = rows.reshape(-1, len(mean))
            own = np.einsum("cin,cjn->cij", (flat @ cov).reshape(rows.shape), rows)
            spread = noise(rows @ mean + (0.0 if linear else shift), own)
            size = len(kick)
            grown += (kick.transpose(1, 0, 2) @ spread).transpose(1, 0, 2).reshape(size, -1) @ kick.reshape(
                size, -1).T
        for root, pull in self.roots:
            gap = root @ mean + (0.0 if linear else pull)
            grown += root @ cov @ root.T + np.outer(gap, gap)
        return self.matrix @ mean + (0.0 if linear else self.shift), grown + (0.0 if linear else self.noise)


class Pieces:
    """The rounds of a trace on quadratic clients whose gradients have noise that depends on the point.

    Parameters
    ----------
    trace : Trace
    clients : Clients
        Their mean gradients, in one group.
    """

    def __init__(self, trace: Trace, clients: Clients) -> None:
        unit = np.broadcast_to(np.eye(clients.hessians.shape[-1]), clients.hessians.shape)
        self.trace, self.clients = trace, clients._replace(roots=unit)
        self.nodes, self.out = flat(trace.nodes, trace.out)
        if len(self.nodes) > MOST_NODES:
            raise ValueError(f"a round of {len(self.nodes)} operations has no moments with minibatches: at "
                             f"most {MOST_NODES} are followed one by one; use fewer local steps")
        read = {node.payload for node in self.nodes if node.kind in ("state", "past")}
        self.nodes += [Node("state", part) for part in trace.names if part not in read]
        self.kinds = shared_parts(trace)
        self.shared = shared_nodes(self.nodes, self.kinds)
        self.where = places(self.nodes)
        met: dict[int, int] = {}
        for node, where in zip(self.nodes, self.where, strict=True):
            if node.kind == "random" and met.setdefault(id(node.payload.of), where) != where:
                raise ValueError(f"{node.payload.of!r}: what is drawn is used before and after a gradient of "
                                 "the same round, and moments are not known there with minibatches")

    def sizes(self) -> list[int]:
        """Numbers of each part of the state."""
        e, N = self.clients.hessians.shape[-1], self.trace.n_clients
        return [(1 if self.kinds[part] else N) * e for part in self.trace.names]

    def round(self, number: int = 0) -> list[Piece]:
        """The pieces of the round of this number."""
        names = {part: n for n, part in enumerate(self.trace.names)}
        place = [names[node.payload] if node.kind in ("state", "past") else None for node in self.nodes]
        live = sorted((n for n, part in enumerate(place) if part is not None), key=lambda n: place[n] or 0)
        known: dict[Any, Piece] = {}
        last, pieces = max(self.where, default=-1), []
        members: list[list[int]] = [[] for _ in range(last + 1)]
        for n, where in enumerate(self.where):
            if where >= 0:
                members[where].append(n)
        used = self._last_use(last)
        for where in range(last + 1):
            here = members[where]
            after = [n for n in [*live, *here] if used[n] > where] if where < last else list(self.out)
            pieces.append(self._piece(live, here, after, number, known))
            live = after
        return pieces

    def _last_use(self, last: int) -> list[int]:
        """The last piece that reads a node; after all for what is returned."""
        used = [-1] * len(self.nodes)
        for n, node in enumerate(self.nodes):
            for m, _ in node.terms:
                used[m] = max(used[m], self.where[n])
        for n in self.out:
            used[n] = last + 1
        return used

    def _piece(self, live: Sequence[int], here: Sequence[int], after: Sequence[int], number: int,
               known: dict[Any, Piece]) -> Piece:
        place = {n: i for i, n in enumerate([*live, *here])}
        nodes = [Node("state", i) for i in range(len(live))]
        nodes += [self.nodes[n]._replace(terms=tuple((place[m], c) for m, c in self.nodes[n].terms))
                  for n in here]
        kinds: dict[Any, bool] = {i: self.shared[n] for i, n in enumerate(live)}
        wanted, shared = [place[n] for n in after], [self.shared[n] for n in after]
        key = (tuple(whole_key(node._replace(payload=id(node.payload))) if node.kind == "random"
                     else whole_key(node) for node in nodes), tuple(kinds.values()), tuple(wanted),
               tuple(shared))
        if key not in known:
            known[key] = self._made(nodes, kinds, wanted, shared, number)
        return known[key]

    def _made(self, nodes: list[Node], kinds: dict[Any, bool], wanted: list[int], shared: list[bool],
              number: int) -> Piece:
        blocks = _Noted(self.clients, self.trace.weights, kinds, number)
        M, v, others = _tables(blocks, kinds, evaluate(nodes, wanted, blocks), shared)
        Q, kicks, points = np.zeros((len(v), len(v))), [], []
        for source, table in others.items():
            if source[:2] == ("a", "noise"):
                Q += table @ table.T
        for node, at in blocks.points.items():
            rows, shift, _ = _tables(blocks, kinds, [at], [False])
            points.append((rows.reshape(self.trace.n_clients, -1, M.shape[1]),
                           shift.reshape(self.trace.n_clients, -1)))
            table = others.get(("a", "gradient noise", node), np.zeros((len(v), shift.size)))
            kicks.append(table.reshape(len(v), self.trace.n_clients, -1))
        roots = [_tables(apart, kinds, evaluate(nodes, wanted, apart), shared)[:2]
                 for apart in aparts(blocks)]
        return Piece(M, v, Q, tuple(points), tuple(kicks), tuple(roots))


def after_all(pieces: Sequence[Piece], mean: Array, cov: Array, noise: Noise,
              linear: bool = False) -> tuple[Array, Array]:
    """Moments (n,), (n, n) of the state after these pieces.

    `noise` gives the clients' E[G] (N, d, d) for means (N, d) and covariances (N, d, d) of their points;
    `linear` keeps what is linear in the covariance.
    """
    for piece in pieces:
        mean, cov = piece.after(mean, cov, noise, linear)
    return mean, 0.5 * (cov + cov.T)


class _Noted(Blocks):
    """Blocks that note where gradients are taken."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.points: dict[int, Value] = {}

    def grad(self, number: int, at: Value) -> Value:
        self.points[number] = at
        return super().grad(number, at)


def _tables(blocks: Blocks, kinds: dict[Any, bool], values: Sequence[Value],
            shared: Sequence[bool]) -> tuple[Array, Array, dict[Any, Array]]:
    """Matrix (n', n) by the live vectors, shift (n',), and matrices (n', k) by the other sources."""
    rows = [1 if one else blocks.N for one in shared]
    first = np.concatenate([[0], np.cumsum(rows)]).astype(int) * blocks.e
    columns = np.concatenate([[0], np.cumsum([blocks.size(part) for part in kinds])]).astype(int)
    v, parts = np.empty(first[-1]), {part: slice(columns[i], columns[i + 1]) for i, part in enumerate(kinds)}
    M, others = np.zeros((first[-1], columns[-1])), dict[Any, Array]()
    for o, value in enumerate(values):
        value, here = blocks.opened(value), slice(first[o], first[o + 1])
        v[here] = np.broadcast_to(value.shift, (1, rows[o], blocks.e)).ravel()
        for source, table in value.tables.items():
            made = blocks.rows(table, rows[o])[0]
            if source in parts:
                M[here, parts[source]] += made
            else:
                others.setdefault(source, np.zeros((first[-1], made.shape[1])))[here] += made
    return M, v, others


def places(nodes: Sequence[Node]) -> list[int]:
    """The piece in which each node is computed; -1 for the state.

    Gradients, and what is drawn at random, come after all that they are taken of; noise as late as it may.
    """
    where: list[int] = []
    pure: list[bool] = []  # of noise alone
    for node in nodes:
        before = [where[m] for m, _ in node.terms]
        fresh = node.kind == "noise"
        pure.append(fresh or (node.kind in ("lin", "mix", "mean") and bool(before)
                              and all(pure[m] for m, _ in node.terms)))
        where.append(-1 if node.kind in ("state", "past") else max(before, default=-1) + 1
                     if node.kind in NOISY else max(0, *before) if before else 0)
    latest = [max(where, default=0)] * len(nodes)
    for n in range(len(nodes) - 1, -1, -1):
        if pure[n]:
            where[n] = latest[n]
        for m, _ in nodes[n].terms:
            latest[m] = min(latest[m], where[n] - (nodes[n].kind in NOISY))
    return where


def flat(nodes: Sequence[Node], out: Sequence[int]) -> tuple[list[Node], list[int]]:
    """The same without loops: all their turns one after the other."""
    made: list[Node] = []
    zero: list[int] = []

    def written(node: Node) -> int:
        made.append(node)
        return len(made) - 1

    def nothing() -> int:
        if not zero:
            zero.append(written(Node("lin")))
        return zero[0]

    def along(part: Sequence[Node], given: list[Any]) -> list[Any]:
        values = list(given)
        for node in part:
            if node.kind == "loop":
                carried = [nothing() if m < 0 else values[m] for m, _ in node.terms]
                for _ in range(node.payload.turns):
                    inner = along(node.payload.nodes, carried)
                    carried = [inner[m] for m in node.payload.outputs]
                    if len(made) > MOST_NODES:
                        break
                values.append(carried)
            elif node.kind == "out":
                values.append(values[node.terms[0][0]][node.payload])
            else:
                values.append(written(node._replace(terms=tuple((values[m], c) for m, c in node.terms))))
        return values

    values = along(nodes, [])
    return made, [values[m] for m in out]
