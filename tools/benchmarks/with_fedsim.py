"""fedsim, with double and single variates, and its random numbers alone: the floor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import fedsim as fs
from fedsim.engine.block import lane_state
from fedsim.engine.job import make_job
from fedsim.problems.regression.minibatch import draw_indices
from fedsim.random.normals import normals
from fedsim.random.slots import Numbers
from fedsim.random.streams import OWN_NOISE, SHARED_NOISE
from fedsim.samplers import grad, noise, sqrt
from fedsim.vector.compile import compiled

from .gossip import GossipTables
from .own import OwnTables
from .stale import StaleTables


@fs.sampler(follows="components")
def extra_sgld(x, s, *, step_size, W):
    """EXTRA with noise: s adds up what mixing moves."""
    return W @ x - s - step_size * grad(x) + sqrt(2 * step_size) * noise(), s + (x - W @ x) / 2


@fs.sampler(follows="components")
def diging_sgld(x, y, g, *, step_size, W):
    """DIGing with noise: y tracks the mean gradient, g is the last one seen."""
    new = grad(x)
    y = W @ y + new - g
    return W @ x - step_size * y + sqrt(2 * step_size) * noise(), y, new


def problem_of(tables: Any) -> Any:
    """The problem that the tables describe."""
    if isinstance(tables, GossipTables):
        n_clients, n_data, dim = tables.shape
        return fs.LinearRegression(
            tables.features.reshape(-1, dim), tables.targets.ravel(), np.repeat(np.arange(n_clients), n_data),
            noise_std=1.0, prior_variance=tables.prior_variance, batch_size=tables.batch_size)
    if isinstance(tables, StaleTables):
        return fs.GaussianMean(tables.data)
    return fs.Quadratic(tables.hessians, tables.minimizers, tables.weights)


def algorithm_of(tables: Any) -> Any:
    """The algorithm that the tables describe."""
    if isinstance(tables, OwnTables):
        return {"extra": extra_sgld, "diging": diging_sgld}[tables.method](
            step_size=tables.step_size, W=tables.mixing())
    if isinstance(tables, GossipTables):
        return fs.DESGLD(tables.step_size, tables.mixing())
    if isinstance(tables, StaleTables):
        return fs.StaleSGLD(tables.step_size, tables.staleness)
    if tables.leapfrog_steps:
        return fs.FAHMC(tables.step_size, tables.leapfrog_steps, tables.local_steps, tables.shared_noise)
    return fs.FALD(tables.step_size, tables.local_steps, tables.temperature, tables.shared_noise)


class Fedsim:
    """`fs.simulate` as a user calls it."""

    noise = "double"
    runs_when_prepared = True

    def __init__(self, tables: Any, threads: int) -> None:
        self.problem, self.algorithm = problem_of(tables), algorithm_of(tables)
        self.averages = getattr(tables, "averages", False)
        self.threads = threads

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Compile, or load from the cache."""
        self.n_rounds, self.n_replicas = 1, n_replicas
        self.run(0)
        self.n_rounds = n_rounds

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d), or averages of their squares, (R, 1)."""
        run = fs.simulate(self.problem, self.algorithm, self.n_rounds, self.n_replicas, seed=seed,
                          record=[], covariance="none", keep_final=not self.averages, noise=self.noise,
                          average="square" if self.averages else None, threads=self.threads)
        if self.averages:
            assert run.averages is not None
            return run.averages[:, None]
        assert run.final is not None
        return run.final


class FedsimSingle(Fedsim):
    """The same with float32 variates; the state stays float64."""

    noise = "single"


@compiled
def draw_all(lanes, own, shared, first, last, n_clients, together, ahead):
    """The normals of draws first..last-1 in the order of the kernel, and nothing else.

    One call draws for `together` clients, or with `ahead` for as many draws of a single chain.
    """
    for draw in range(first, last, together if ahead else 1):
        if shared.shape[0]:
            normals(lanes, SHARED_NOISE, draw, 0, shared)
        for client in range(0, n_clients, 1 if ahead else together):
            if ahead:
                normals(lanes, OWN_NOISE, Numbers(draw), client, own)
            else:
                normals(lanes, OWN_NOISE, draw, Numbers(client), own)


@compiled
def draw_data(batch, lanes, indices, first, last, n_clients):
    """The minibatches of rounds first..last-1."""
    for step in range(first, last):
        for client in range(n_clients):
            draw_indices(batch, lanes, client, step, 0, indices)


class Floor(Fedsim):
    """Draws in the same lanes exactly the random numbers that a run draws, and throws them away."""

    segments = 8

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Lay out the same blocks of lanes as the engine."""
        self.job = make_job(self.problem, self.algorithm, n_rounds, n_replicas, seed=0, record=[],
                            covariance="none", noise=self.noise, threads=self.threads)
        self._draw(1, self.job)

    def _draw(self, n_rounds: int, job) -> list[np.ndarray]:
        rounds = np.linspace(0, n_rounds, self.segments + 1).astype(int)
        steps = n_rounds * getattr(self.algorithm, "local_steps", 1)

        def task(piece: tuple[tuple[int, int], int]) -> np.ndarray:
            (first, last), part = piece
            state = lane_state(job, first, last)
            own, together = np.zeros_like(state.work.own.rows[0]), state.work.own.slots.shape[2]
            room = getattr(state.work, "shared", None)
            shared = (np.zeros_like(room.rows[0]) if room and getattr(self.algorithm, "shared_noise", 0.0) > 0
                      else np.empty((0, 1), own.dtype))
            ahead = room is None and not hasattr(self.algorithm, "mixing")
            n_draws = -(-steps // (len(own) // self.problem.dim))
            cuts = np.linspace(0, n_draws, self.segments + 1).astype(int)
            with_own = 0 if getattr(self.algorithm, "shared_noise", 0.0) == 1.0 else self.problem.n_clients
            draw_all(state.lanes, own, shared, cuts[part], cuts[part + 1], with_own, together, ahead)
            if getattr(self.problem, "has_minibatches", False):
                draw_data(state.arrays, state.lanes, state.work.scratch.indices, rounds[part],
                          rounds[part + 1], self.problem.n_clients)
            return (own if with_own else shared)[:, :last - first]  # lanes beyond repeat the last replica

        pieces = [(block, part) for part in range(self.segments) for block in job.blocks()]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(task, pieces))

    def run(self, seed: int) -> np.ndarray:
        """Normals of the last draw, (n, 1): they are judged too."""
        blocks = self._draw(self.job.n_rounds, self.job)[-len(list(self.job.blocks())):]
        return np.concatenate([block.ravel() for block in blocks]).astype(np.float64)[:, None]


class FloorSingle(Floor):
    """The floor of single variates."""

    noise = "single"


CONTESTANTS = {"fedsim": Fedsim, "fedsim single": FedsimSingle}
FLOORS = {"fedsim": Floor, "fedsim single": FloorSingle}
