"""FA-LD on the line: the law at communications on a grid, clients inside a round by Gauss-Hermite nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import fedsim as fs

from .grids import Grid, stationary, together
from .lines import Line
from .sides import Side

NODES, MASSES = np.polynomial.hermite_e.hermegauss(7)
MASSES = MASSES / MASSES.sum()


@dataclass(frozen=True)
class Clients:
    """Positions (N, n, k) from n starts, with chances (k,)."""

    x: np.ndarray
    chances: np.ndarray

    def stepped(self, line: Line, h: float) -> Clients:
        """After a step of every gradient that may be drawn, without normal noise."""
        each = [np.stack([x - h * g(x) for x, g in zip(self.x, drawn, strict=True)])
                for drawn in together(list(line.clients))]
        return Clients(np.concatenate(each, axis=2), np.tile(self.chances, len(each)) / len(each))

    def kicked(self, private: np.ndarray, common: float) -> Clients:
        """With normal noise of these sizes, of each client and of all together."""
        own = len(private) if private.any() else 0
        dims = own + (common > 0.0)
        normal = np.array(list(itertools.product(NODES, repeat=dims)))
        mass = np.prod(np.array(list(itertools.product(MASSES, repeat=dims))), axis=1)
        kicks = np.zeros((len(private), 1)) + (common * normal[:, -1] if common else 0.0)
        if own:
            kicks = kicks + private[:, None] * normal[:, :own].T
        moved = self.x[:, :, :, None] + kicks[:, None, None, :]
        return Clients(moved.reshape(*self.x.shape[:2], -1), np.outer(self.chances, mass).ravel())

    def mean(self, law: np.ndarray, value: np.ndarray) -> np.ndarray:
        """E of values (..., n, k) where starts have this law."""
        return (value @ self.chances) @ law


class Round:
    """A round of FA-LD from every node of a grid."""

    def __init__(self, line: Line, algorithm: fs.FALD, reach: float, h: float,
                 grid: Grid | None = None) -> None:
        self.line, self.algorithm = line, algorithm
        w, s = line.weights, algorithm.shared_noise
        self.h, self.common = h, np.sqrt(2 * h * s)
        self.private = np.sqrt(2 * h * (1 - s) / w + (h * line.noise) ** 2)
        self.size = float(np.sqrt(self.common**2 + (w**2) @ self.private**2))
        self.grid = grid or Grid(line, self.size**2 * len(w), reach, 420)
        x = self.grid.x
        self.inside = [Clients(np.repeat(x[None, :, None], len(w), axis=0), np.ones(1))]
        for _ in range(algorithm.local_steps - 1):
            self.inside.append(self.inside[-1].stepped(line, h).kicked(self.private, self.common))
        self.last = self.inside[-1].stepped(line, h)

    def kernel(self) -> np.ndarray:
        """From node to node."""
        drawn, w = self.algorithm.participation, self.line.weights
        if drawn is None:
            return self.grid.moves(np.tensordot(w, self.last.x, axes=1), self.last.chances) @ (
                self.grid.spread(self.size))
        sizes = np.hypot(self.private, self.common)
        return sum(share * self.grid.moves(x, self.last.chances) @ self.grid.spread(float(size))
                   for share, x, size in zip(w, self.last.x, sizes, strict=True))

    def participation_gap(self, law: np.ndarray) -> float:
        """E of the squared distance of the one client that is drawn to the average of all."""
        w, v = self.line.weights, self.private**2
        away = self.last.x - np.tensordot(w, self.last.x, axes=1)
        return float(w @ (self.last.mean(law, away**2) + v - 2 * w * v + w**2 @ v))


def _noise_of_average(line: Line) -> np.ndarray:
    """E||sum_c p_c noise_c||^2 at some points."""
    x = line.minimizer + np.linspace(-20.0, 20.0, 41)
    spread = [np.var([g(x) for g in client.gradients], axis=0) for client in line.clients]
    return (line.weights**2) @ (np.array(spread) + line.noise**2)


def increment(line: Line, h: float) -> float:
    """E|X_h - X_0|^2 of the stationary Langevin diffusion, by a reversible chain of small jumps."""
    x = line.minimizer + np.linspace(-7.0, 7.0, 500) / np.sqrt(line.m)
    level = line.whole.height(x)
    half = 0.5 * (level[:-1] - level[1:])
    step, up, down = x[1] - x[0], np.exp(half), np.exp(-half)
    leave = np.append(up, 0.0) + np.append(0.0, down)
    rates = (np.diag(-leave) + np.diag(np.ones(len(half)), 1) + np.diag(np.ones(len(half)), -1)) / step**2
    values, vectors = np.linalg.eigh(rates)  # made symmetric by the root of the law
    root = np.exp(0.5 * (level.min() - level))
    seen = vectors.T @ (root / np.linalg.norm(root) * (x - line.minimizer))
    return float(2.0 * seen**2 @ -np.expm1(h * np.minimum(values, 0.0)))


def sides(line: Line, algorithm: fs.FALD, start: float, rounds: int) -> Iterator[Side]:
    """The exact side of every statement of FA-LD."""
    if not algorithm.schedule.is_constant:
        yield from scheduled(line, algorithm, start, rounds)
        return
    one = Round(line, algorithm, abs(start - line.minimizer), float(algorithm.schedule.largest))
    grid, w, K = one.grid, line.weights, algorithm.local_steps
    kernel, law = one.kernel(), grid.point(start)
    w2 = [float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))]
    second, apart, steep, gaps = [], [], [], []
    for number in range(rounds + 1):
        for clients in one.inside if number < rounds else one.inside[:1]:
            middle = np.tensordot(w, clients.x, axes=1)
            apart.append(float(w @ clients.mean(law, (clients.x - middle) ** 2)))
            second.append(clients.mean(law, (clients.x - line.minimizer) ** 2).max())
            steep.append(max(clients.mean(law, np.mean([g(x) ** 2 for g in c.gradients], axis=0))
                             for c, x in zip(line.clients, clients.x, strict=True)) + line.noise**2)
        if number < rounds:
            gaps.append(one.participation_gap(law))
            law = law @ kernel
            w2.append(grid.w2(law, line.target))
    slack = grid.slack(one.size, law)
    moment = 1e-9 + 2.0 * slack * max(second) ** 0.5
    distances = np.array(w2)
    yield Side("fa_ld.w2_recursion", distances, slack, bend=True)
    yield Side("fa_ld.initial_bound", distances[:1], slack)
    yield Side("fa_ld.second_moment_bound", np.array(second), moment)
    yield Side("fa_ld.divergence_bound", np.array(apart), moment)
    yield Side("fa_ld.gradient_moment_bound", np.array(steep), line.L**2 * moment)
    yield Side("fa_ld.gradient_noise_bound", _noise_of_average(line).max(keepdims=True), 1e-9)
    yield Side("fa_ld.discretization_bound", np.array([increment(line, one.h)]), 1e-9)
    rng = np.random.default_rng(3)
    points, others = line.minimizer + 2.0 * rng.standard_normal((2, len(w), 1))
    moved = [z[:, 0] - one.h * np.array([c.slope(x) for c, x in zip(line.clients, z[:, 0], strict=True)])
             for z in (points, others)]
    yield Side("fa_ld.contraction_bound", np.array([float(w @ (moved[0] - moved[1])) ** 2]), 1e-9,
               {"points": points, "others": others})
    if algorithm.participation is not None:
        yield Side("fa_ld.w2_bound_partial", distances, slack)
        yield Side("fa_ld.participation_gap_bound", np.array(gaps), moment)
        return
    yield Side("fa_ld.w2_bound", distances, slack)
    if K == 1:
        yield Side("fa_ld.one_step_bound", distances[1:] ** 2, 4.0 * slack * distances.max(),
                   {"w2": distances[:-1]})
        yield Side("fa_ld.stationary_bound", np.array([grid.w2(stationary(kernel), line.target)]), slack)


def scheduled(line: Line, algorithm: fs.FALD, start: float, rounds: int) -> Iterator[Side]:
    """The same of W2, with another step size in every round of one step, largest first."""
    first, *steps = np.asarray(algorithm.schedule.at(np.arange(rounds)), dtype=float)
    one = Round(line, algorithm, abs(start - line.minimizer), first)
    law, w2 = one.grid.point(start), [float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))]
    for h in [first, *steps]:
        one = Round(line, algorithm, 0.0, h, one.grid)
        law = law @ one.kernel()
        w2.append(one.grid.w2(law, line.target))
    slack = one.grid.slack(one.size, law)
    yield Side("fa_ld.w2_recursion", np.array(w2), slack, bend=True)
    yield Side("fa_ld.w2_bound_decreasing", np.array(w2), slack)
