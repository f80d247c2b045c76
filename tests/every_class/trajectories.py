"""FA-HMC on the line: updates by nodes of the momenta, trajectories from the target by quadrature."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.integrate import solve_ivp

import fedsim as fs

from .grids import Grid, pairs_of, together
from .lines import Client, Line
from .sides import Side

COUNTS = {1: 301, 2: 41, 3: 9}
"""Equidistant nodes of a normal variable, where so many are needed: the trapezoidal rule."""
FEW = 9
"""Nodes where updates follow on each other."""
ATOMS = 120
"""Of the target that is coupled with the average."""


def normals(dims: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (dims, k) and masses of a standard normal vector."""
    z = np.linspace(-5.5, 5.5, count)
    mass = np.exp(-0.5 * z**2)
    mass /= mass.sum()
    return (np.stack(np.meshgrid(*[z] * dims, indexing="ij")).reshape(dims, -1),
            np.prod(np.meshgrid(*[mass] * dims, indexing="ij"), axis=0).ravel())


def momenta(line: Line, shared: float, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Momenta (N, k) of the clients, and masses."""
    N = len(line.weights)
    if shared == 1.0:
        z, mass = normals(1, count or COUNTS[1])
        return np.repeat(z, N, axis=0), mass
    dims = N + (shared > 0.0)
    z, mass = normals(dims, count or COUNTS[dims])
    own = np.sqrt((1.0 - shared) / line.weights)[:, None] * z[:N]
    return own + (np.sqrt(shared) * z[N] if shared else 0.0), mass


def leapfrogs(slope: Callable[..., np.ndarray], x: np.ndarray, p: np.ndarray, eta: float, K: int
              ) -> list[np.ndarray]:
    """Positions after 1, ..., K steps."""
    found = []
    for _ in range(K):
        p = p - 0.5 * eta * slope(x)
        x = x + eta * p
        p = p - 0.5 * eta * slope(x)
        found.append(x)
    return found


def updated(line: Line, algorithm: fs.FAHMC, x: np.ndarray, p: np.ndarray) -> Iterator[np.ndarray]:
    """Positions (N, ...) after an update, of every gradient that may be drawn; the noise is not in it."""
    eta, K = float(algorithm.schedule.largest), algorithm.leapfrog_steps
    assert K == 1 or (not any(c.drawn for c in line.clients) and not line.noise)  # more draws than one
    for drawn in together(list(line.clients)):
        yield np.stack([leapfrogs(g, at, q, eta, K)[-1] for g, at, q in zip(drawn, x, p, strict=True)])


def flowed(client: Client, x: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Exact trajectories: positions (times, ...)."""
    shape, begin = x.shape, np.concatenate([x.ravel(), p.ravel()])

    def motion(_: float, state: np.ndarray) -> np.ndarray:
        at, speed = np.split(state, 2)
        return np.concatenate([speed, -client.slope(at)])

    found = solve_ivp(motion, (0.0, float(times[-1])), begin, t_eval=times, rtol=1e-8, atol=1e-12,
                      max_step=float(times[-1]) / 8.0)
    assert found.success
    return found.y.T[:, :x.size].reshape(-1, *shape)


def from_target(line: Line, u: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and masses of the target, dense where curvatures jump: in steps of 10% of the distance to it."""
    far = np.arcsinh(9.0 / 1e-7)
    near = np.append(1e-7 * np.sinh(np.linspace(-far, far, 401)), np.linspace(-6.0 * u, 6.0 * u, 121))
    x = np.unique(np.concatenate([line.minimizer + np.linspace(-9.0, 9.0, 201) / np.sqrt(line.m),
                                  *(at + near for at in line.kinks)]))
    level = line.whole.height(x)
    mass = np.exp(level.min() - level) * np.gradient(x)
    return x, mass / mass.sum()


def oracle(line: Line, algorithm: fs.FAHMC) -> Iterator[Side]:
    """Statements about one trajectory from the target."""
    u = float(algorithm.schedule.largest) * np.arange(1, algorithm.leapfrog_steps + 1)
    nodes, share = from_target(line, float(u[-1]))
    z, mass = normals(1, 45)
    x, p = np.meshgrid(nodes, z[0], indexing="ij")
    law = np.outer(share, mass)
    f, moved = line.whole, flowed(line.whole, x, p, u)
    bent = [f.slope(at) - f.slope(x) - t * f.bend(x) * p for t, at in zip(u, moved, strict=True)]
    yield Side("fa_hmc.oracle_deviation_bound", np.array(
        [(law * (at - x - t * p) ** 2).sum() for t, at in zip(u, moved, strict=True)]), 1e-15)
    yield Side("fa_hmc.oracle_reach_bound", np.array(
        [(law * (at - x) ** 2 * p**2).sum() for at in moved]), 1e-12)
    yield Side("fa_hmc.oracle_gradient_bound", np.array([(law * each**2).sum() for each in bent]), 1e-15,
               bend=True)
    yield Side("fa_hmc.target_moment_bound", np.array([share @ (nodes - line.minimizer) ** 2]), 1e-9)
    leaps = leapfrogs(line.clients[0].slope, x, p, float(u[0]), algorithm.leapfrog_steps)
    if len(line.clients) == 1 and not line.clients[0].drawn and not line.noise:
        yield from deviations(line, algorithm, 0, x, p, law, leaps, (law * f.slope(x) ** 2).sum())


def deviations(line: Line, algorithm: fs.FAHMC, client: int, x: np.ndarray, p: np.ndarray, law: np.ndarray,
               leaps: list[np.ndarray], steep: float) -> Iterator[Side]:
    """Lemma D.6 of one client whose updates begin with this law."""
    u, c = float(algorithm.schedule.largest) * np.arange(1, len(leaps) + 1), line.clients[client]
    given = {"client": client, "gradient_moments": np.full(len(line.clients), steep)}
    yield Side("fa_hmc.leapfrog_deviation_bound", np.array(
        [(law * (at - x - t * p) ** 2).sum() for t, at in zip(u, leaps, strict=True)]), 1e-15, given)
    bent = [c.slope(at) - c.slope(x) - t * c.bend(x) * p for t, at in zip(u, leaps, strict=True)]
    yield Side("fa_hmc.leapfrog_gradient_deviation_bound", np.array([(law * each**2).sum() for each in bent]),
               1e-15, given, bend=True)


def paths(line: Line, algorithm: fs.FAHMC) -> Iterator[Side]:
    """Statements about trajectories between given points; the worst of some."""
    eta, K = float(algorithm.schedule.largest), algorithm.leapfrog_steps
    u = eta * np.arange(1, K + 1)
    begin = line.minimizer + np.linspace(-3.0, 3.0, 25)
    apart, push = 0.8, -0.5
    two = [flowed(line.whole, begin + gap, np.full(25, kick), u)
           for gap, kick in ((0.0, 0.4), (apart, 0.4 + push))]
    yield Side("fa_hmc.flow_distance_bound", np.abs(two[0] - two[1]).max(axis=1), 1e-7,
               {"position_gap": [apart], "momentum_gap": [push]})
    for number, client in enumerate(line.clients):
        point, p = np.array(line.minimizer - 0.3), np.array(0.9)
        if K > 1:
            ends = [[at] for at in leapfrogs(client.slope, point, p, eta, K)]
        else:
            z, mass = normals(1, 41)
            ends = [[point + eta * p - 0.5 * eta**2 * (g(point) + line.noise * z[0])
                     for g in client.gradients]]
        share = np.ones(1) if K > 1 else mass
        given = {"point": [float(point)], "momentum": [float(p)], "client": number,
                 "gradient": [float(client.slope(point))]}
        gone = [np.mean([share @ np.atleast_1d((at - point) ** 2) for at in each]) for each in ends]
        slope = client.slope(point)
        steep = [np.mean([share @ np.atleast_1d((client.slope(at) - slope) ** 2) for at in each])
                 for each in ends]
        yield Side("fa_hmc.displacement_bound", np.array(gone), 1e-12, given)
        yield Side("fa_hmc.gradient_displacement_bound", np.array(steep), 1e-12, given)


def w2(line: Line, algorithm: fs.FAHMC, start: float, rounds: int) -> Iterator[Side]:
    """W2 at communications, of one update a round."""
    eta = float(algorithm.schedule.largest)
    size = eta * algorithm.leapfrog_steps
    grid = Grid(line, size**2, abs(start - line.minimizer) + 3.0 * size, 420)
    p, mass = momenta(line, algorithm.shared_noise)
    x = np.repeat(grid.x[None, :, None], len(line.weights), axis=0)
    ends = updated(line, algorithm, x, p[:, None, :])
    kernel = sum(grid.moves(np.tensordot(line.weights, end, axes=1), mass) for end in ends)
    kernel = kernel / pairs_of(line)
    if line.noise:
        kernel = kernel @ grid.spread(0.5 * eta**2 * line.noise * float(np.sqrt((line.weights**2).sum())))
    law, values = grid.point(start), [float(np.sqrt(line.target[1] @ (line.target[0] - start) ** 2))]
    for _ in range(rounds):
        law = law @ kernel
        values.append(grid.w2(law, line.target))
    slack = grid.slack(size, law)
    yield Side("fa_hmc.w2_recursion", np.array(values), slack, bend=True)
    yield Side("fa_hmc.w2_bound", np.array(values), slack, bend=True)


class Updates:
    """Clients at every update of the first round, by nodes of all momenta; and the oracle beside them."""

    def __init__(self, line: Line, algorithm: fs.FAHMC, start: float, with_oracle: bool) -> None:
        T = algorithm.local_steps
        self.line, self.algorithm = line, algorithm
        self.x, self.p, self.law = [np.full((len(line.weights), 1), start)], [], [np.ones(1)]
        levels, total = np.linspace(0, 1, ATOMS + 1), np.cumsum(line.target[1])
        atoms = np.interp(0.5 * (levels[:-1] + levels[1:]), total, line.target[0])
        self.pi = [atoms[:, None]]
        size = algorithm.leapfrog_steps * float(algorithm.schedule.largest)
        for _ in range(T):
            p, mass = momenta(line, algorithm.shared_noise, None if T == 1 and not with_oracle else FEW)
            x = np.repeat(self.x[-1], p.shape[1], axis=1)
            p = np.tile(p, self.x[-1].shape[1])
            ends = list(updated(line, algorithm, x, p))
            law = np.repeat(self.law[-1], len(mass)) * np.tile(mass, len(self.law[-1]))
            self.x[-1], self.law[-1], count = x, law, len(ends)
            self.p.append(p)
            self.x.append(np.concatenate(ends, axis=1))
            self.law.append(np.tile(law, count) / count)
            if with_oracle:
                pi = np.repeat(self.pi[-1], len(mass), axis=1)
                self.pi[-1] = pi
                end = flowed(line.whole, pi, np.broadcast_to(line.weights @ p, pi.shape), np.array([size]))[0]
                self.pi.append(np.tile(end, count))

    def mean(self, t: int, value: np.ndarray) -> np.ndarray:
        """E of values (..., k) at update t."""
        return value @ self.law[t]

    def sides(self) -> Iterator[Side]:
        """Lemmas D.6 to D.8."""
        line, w, T = self.line, self.line.weights, self.algorithm.local_steps
        noise = (0.5 * float(self.algorithm.schedule.largest) ** 2 * line.noise) ** 2
        grown = noise * np.minimum(np.arange(T + 1), 1)  # that of the last update alone
        middle = [w @ x for x in self.x]
        apart = [w @ self.mean(t, (x - middle[t]) ** 2) for t, x in enumerate(self.x[:-1])] + [0.0]
        moments = np.array([self.mean(t, (x - line.minimizer) ** 2) for t, x in enumerate(self.x)])
        steep = np.array([[self.mean(t, c.slope(at) ** 2) for c, at in zip(line.clients, x, strict=True)]
                          for t, x in enumerate(self.x[:-1])])
        given = {"gradient_moments": steep.max(axis=0)}
        yield Side("fa_hmc.divergence_bound", np.array(apart), 1e-9, given)
        for c in range(len(w)):
            ends = np.append(moments[:-1, c], self.mean(T, (middle[T] - line.minimizer) ** 2))
            yield Side("fa_hmc.client_moment_bound", ends, 1e-9, {"client": c})
            slopes = np.append(steep[:, c], self.mean(T, line.clients[c].slope(middle[T]) ** 2))
            yield Side("fa_hmc.client_gradient_bound", slopes, 1e-9, {"client": c})
            yield Side("fa_hmc.client_step_bound", moments[1:, c] + grown[1:], 1e-9,
                       {"client": c, "second_moments": moments[:-1, c]})
            if not line.clients[c].drawn and not line.noise:
                for t in range(T):
                    leaps = leapfrogs(line.clients[c].slope, self.x[t][c], self.p[t][c], float(
                        self.algorithm.schedule.largest), self.algorithm.leapfrog_steps)
                    yield from deviations(line, self.algorithm, c, self.x[t][c], self.p[t][c], self.law[t],
                                          leaps, steep[:, c].max())

    def coupled(self) -> Iterator[Side]:
        """Theorem 4.4, of the pair."""
        w = self.line.weights
        E = np.array([float(self.mean(t, ((w @ x - pi) ** 2).mean(axis=0)))
                      for t, (x, pi) in enumerate(zip(self.x, self.pi, strict=True))])
        steep = [max(float(self.mean(t, c.slope(x[number]) ** 2)) for t, x in enumerate(self.x[:-1]))
                 for number, c in enumerate(self.line.clients)]
        given = {"gradient_moments": steep}
        yield Side("fa_hmc.one_step_bound", E[1:], 1e-3 * E[0], {**given, "coupling": E[:-1]}, bend=True)
        yield Side("fa_hmc.coupling_bound", E, 1e-3 * E[0], {**given, "initial": float(E[0])}, bend=True)
