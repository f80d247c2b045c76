"""Stale gradients and gossip on the line: laws of two numbers on a plane of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import root

import fedsim as fs

from .grids import Grid, cells_w2, equal, stationary, together
from .lines import Line
from .sides import Side

MOST = 190
"""Nodes of a side of a plane."""


def stale(line: Line, algorithm: fs.StaleSGLD, start: float, rounds: int) -> Iterator[Side]:
    """The exact side of every statement of stale SGLD, of age 0 or 1."""
    h, f = float(algorithm.schedule.largest), line.whole
    size = float(np.sqrt(2 * h + h**2 * line.noise**2 * (line.weights**2).sum()))
    age = algorithm.staleness
    noise = np.var([g(np.array(line.minimizer)) for g in f.gradients])  # may be hotter than the target
    reach = abs(start - line.minimizer) + 6.0 * float(np.sqrt(h * noise / line.m))
    grid = Grid(line, size**2, reach, 420 if age == 0 else MOST)
    x, w2 = grid.x, [float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))]
    centres = x[:, None] - h * np.stack([g(x) for g in f.gradients], axis=1)
    spread, chances = grid.spread(size), equal(len(f.gradients))
    kernel = grid.moves(centres, chances) @ spread
    law = grid.point(start)
    if age == 0:
        for _ in range(rounds):
            law = law @ kernel
            w2.append(grid.w2(law, line.target))
        held = stationary(kernel)
        yield Side("stale.stationary_bound", np.array([grid.w2(held, line.target)]), grid.slack(size, held))
    else:
        plane = law[:, None] * (law @ kernel)  # rows: before, columns: now; the first gradient is fresh
        gradients = centres - x[:, None]
        for _ in range(rounds):
            law = plane.sum(axis=0)
            w2.append(grid.w2(law, line.target))
            led = [x[None, :] + move[:, None] for move in gradients.T]
            plane = sum(_led(grid, plane, centre) for centre in led) / len(led) @ spread
    yield Side("stale.w2_recursion", np.array(w2), grid.slack(size, law), bend=True)


def heavy_ball(line: Line, algorithm: fs.DESGHMC, start: float, rounds: int) -> Iterator[Side]:
    """DE-SGHMC of one client: x + beta (x - before) - alpha f' + noise, on the plane of x and before."""
    eta = float(algorithm.schedule.largest)
    beta, alpha, f = 1.0 - algorithm.friction * eta, eta**2, line.whole
    size = float(np.sqrt(2 * alpha * (1 - beta) + alpha**2 * line.noise**2 * (line.weights**2).sum()))
    grid = Grid(line, size**2, abs(start - line.minimizer) + 1.0, MOST)
    x, spread = grid.x, grid.spread(size)
    plane, w2, read = np.outer(grid.point(start), grid.point(start)), [], []  # rows: before, columns: now
    back, now = x[:, None], x[None, :]
    for _ in range(rounds + 1):
        w2.append(grid.w2(plane.sum(axis=0), line.target))
        read.append([(plane * value).sum() for value in (
            now**2 + 0.0 * back, ((now - back) / eta) ** 2, (now + beta / (1 - beta) * (now - back)) ** 2)])
        led = [now + beta * (now - back) - alpha * g(now) for g in f.gradients]
        plane = sum(_led(grid, plane, centre) for centre in led) / len(led) @ spread
    w2[0] = float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))
    slack, values = grid.slack(size, plane.sum(axis=0)), np.array(read).T
    for name in ("w2", "w2_clients"):
        yield Side(f"de_sghmc.{name}_recursion", np.array(w2), 2 * slack, bend=True)
        yield Side(f"de_sghmc.{name}_bound", np.array(w2), 2 * slack)
    for name, value in zip(("position", "velocity", "extrapolation"), values, strict=True):
        yield Side(f"de_sghmc.{name}_bound", value, 4 * slack * value.max())


def _led(grid: Grid, plane: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Rows: now, columns: where it leads, of (before, now)."""
    n, now = len(grid.x), np.broadcast_to(np.arange(len(grid.x)), plane.shape)
    below, above = grid.shares(centres)
    new = np.zeros(n * n)
    for place, share in ((below, 1 - above), (below + 1, above)):
        new += np.bincount((now * n + place).ravel(), (plane * share).ravel(), n * n)
    return new.reshape(n, n)


def fixed_point(line: Line, algorithm: Any, step: float) -> np.ndarray:
    """Where x = W x - step (f_1', ..., f_N') of the components."""
    def gap(x: np.ndarray) -> np.ndarray:
        return x - algorithm.mixing @ x + step * slopes(line, x)

    found = root(gap, np.full(len(line.clients), line.minimizer), tol=1e-13)
    assert np.abs(gap(found.x)).max() < 1e-9
    return np.asarray(found.x)


def slopes(line: Line, x: Any) -> np.ndarray:
    """Of the components at positions (N, ...)."""
    return np.stack([w * c.slope(at) for w, c, at in zip(line.weights, line.clients, x, strict=True)])


class Pair:
    """The plane of two clients that gossip, and what can be read from a law on it."""

    def __init__(self, line: Line, algorithm: fs.DESGLD, start: float) -> None:
        self.line, self.algorithm = line, algorithm
        self.step = float(algorithm.schedule.largest)
        self.sizes = np.sqrt(2 * self.step + (self.step * line.weights * line.noise) ** 2)
        self.grid = Grid(line, 3.0 * float(self.sizes.max()) ** 2, abs(start - line.minimizer) + 1.0, MOST)
        x = self.grid.x
        self.x = np.stack(np.meshgrid(x, x, indexing="ij"))
        self.spreads = [self.grid.spread(float(size)) for size in self.sizes]
        mixed = np.tensordot(algorithm.mixing, self.x, axes=1)
        self.led = []  # for every pair of gradients: nodes and shares of both clients
        for drawn in together(list(line.clients)):
            moved = [m - self.step * w * g(at) for m, w, g, at in zip(
                mixed, line.weights, drawn, self.x, strict=True)]
            self.led.append([self.grid.shares(each) for each in moved])

    def after(self, law: np.ndarray) -> np.ndarray:
        """One iteration."""
        n = len(self.grid.x)
        new = np.zeros(n * n)
        for (one, up), (other, right) in self.led:
            for i, share in ((one, 1 - up), (one + 1, up)):
                for j, part in ((other, 1 - right), (other + 1, right)):
                    new += np.bincount((i * n + j).ravel(), (law * share * part).ravel(), n * n)
        return self.spreads[0].T @ (new.reshape(n, n) / len(self.led)) @ self.spreads[1]

    def average(self, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and masses of the average."""
        n = len(self.grid.x)
        mass = np.bincount(np.add.outer(np.arange(n), np.arange(n)).ravel(), law.ravel())
        return self.grid.x[0] + 0.5 * self.grid.h * np.arange(2 * n - 1), mass

    def read(self, law: np.ndarray, fixed: np.ndarray) -> dict[str, float]:
        """Moments and distances, by the statement they belong to."""
        line, middle = self.line, self.x.mean(axis=0)
        error = (slopes(line, [middle] * 2) - slopes(line, self.x)).mean(axis=0)
        sums = {"disagreement_bound": ((self.x - middle) ** 2).sum(axis=0),
                "gradient_bound": (slopes(line, self.x) ** 2).sum(axis=0), "gradient_error_bound": error**2,
                "iterate_bound": ((self.x - fixed[:, None, None]) ** 2).sum(axis=0)}
        found = {name: float((law * value).sum()) for name, value in sums.items()}
        found["growing_noise_iterate_bound"] = found["iterate_bound"]
        found["growing_noise_bound"] = max(
            float((law * (w**2 * (np.var([g(x) for g in c.gradients], axis=0) + line.noise**2))).sum()
                  / (1.0 + (law * x**2).sum()))
            for w, c, x in zip(line.weights, line.clients, self.x, strict=True))
        each = [self.grid.w2(law.sum(axis=axis), line.target) for axis in (1, 0)]
        return found | {"w2": cells_w2(*self.average(law), line.target), "w2_clients": float(np.mean(each))}


def gossip(line: Line, algorithm: fs.DESGLD, start: float, rounds: int) -> Iterator[Side]:
    """The exact side of every statement of DE-SGLD, of two clients."""
    pair = Pair(line, algorithm, start)
    fixed, point = fixed_point(line, algorithm, pair.step), pair.grid.point(start)
    law, read = np.outer(point, point), []
    for number in range(rounds + 1):
        read.append(pair.read(law, fixed))
        if number < rounds:
            law = pair.after(law)
    own = float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))
    values = {name: np.array([each[name] for each in read]) for name in read[0]}
    slack = 2.0 * pair.grid.slack(float(pair.sizes.min()), law.sum(axis=0))
    for name in ("w2", "w2_clients"):
        values[name][0] = own
        yield Side(f"de_sgld.{name}_recursion", values[name], slack, bend=True)
        yield Side(f"de_sgld.{name}_bound", values.pop(name), slack)
    for name, value in values.items():
        yield Side(f"de_sgld.{name}", value, slack * max(value.max(), 1e-3) + 1e-9)
    away = float(np.linalg.norm(fixed - line.minimizer))
    yield Side("de_sgld.fixed_point_bound", np.array([away]), 1e-9)
    x, mass = line.target
    yield Side("de_sgld.target_moment_bound", np.array([mass @ (x - line.minimizer) ** 2]), 1e-9)
    yield from euler(line, pair.step / len(line.clients), start, rounds)
    yield Side("de_sgld.coupling_bound", coupled(line, algorithm, start), 1e-9, rounds=COUPLED_ROUNDS)


def euler(line: Line, h: float, start: float, rounds: int) -> Iterator[Side]:
    """The scheme that the average follows, x - h f' + (2 h)^(1/2) z."""
    size = float(np.sqrt(2 * h))
    grid = Grid(line, size**2, abs(start - line.minimizer), 420)
    kernel = grid.moves((grid.x - h * line.whole.slope(grid.x))[:, None], np.ones(1)) @ grid.spread(size)
    law, w2 = grid.point(start), [float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))]
    for _ in range(rounds):
        law = law @ kernel
        w2.append(grid.w2(law, line.target))
    slack = grid.slack(size, law)
    yield Side("de_sgld.euler_bound", np.array(w2), slack)
    yield Side("de_sgld.euler_stationary_bound",
               np.array([grid.w2(stationary(kernel), line.target)]), slack)


COUPLED_ROUNDS = 2


def coupled(line: Line, algorithm: fs.DESGLD, start: float) -> np.ndarray:
    """E||average - Euler scheme with the same noise||^2 at rounds 0, 1, 2, by Gauss-Hermite nodes.

    In round 1 gradient noise alone is between them, in round 2 the gradients where it and the noise that
    both see have led.
    """
    step, w, N = float(algorithm.schedule.largest), line.weights, len(line.clients)
    nodes, masses = np.polynomial.hermite_e.hermegauss(7 if line.noise else 15)
    dims = 2 * N if line.noise else N
    normal = np.stack(np.meshgrid(*[nodes] * dims, indexing="ij")).reshape(dims, -1)
    mass = np.prod(np.meshgrid(*[masses / masses.sum()] * dims, indexing="ij"), axis=0).ravel()
    seen = np.sqrt(2 * step) * normal[:N]
    unseen = (step * w * line.noise)[:, None] * normal[N:] if line.noise else 0.0
    begin, every = np.array(start), list(together(list(line.clients)))
    y = start - step / N * line.whole.slope(begin) + seen.mean(axis=0)
    ahead, values = y - step / N * line.whole.slope(y), np.zeros(3)
    for drawn in every:
        at = np.array([float(g(begin)) for g in drawn])
        x = (start - step * w * at)[:, None] + seen + unseen
        values[1] += mass @ (x.mean(axis=0) - y) ** 2
        for again in every:
            slope = np.mean([c * g(a) for c, g, a in zip(w, again, x, strict=True)], axis=0)
            led = x.mean(axis=0) - step * slope
            values[2] += mass @ (led - ahead) ** 2 / len(every)
    values /= len(every)
    values[2] += ((step * w * line.noise) ** 2).sum() / N**2
    return values
