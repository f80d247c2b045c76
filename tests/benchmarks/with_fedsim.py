"""fedsim, with double and single variates, and its random numbers alone: the floor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fedsim as fs
from fedsim.compile import compiled
from fedsim.engine.block import lane_state
from fedsim.engine.plan import make_plan
from fedsim.noise import normals
from fedsim.streams import OWN_NOISE, SHARED_NOISE

from .cases import Tables


def algorithm(tables: Tables) -> fs.FALD | fs.FAHMC:
    """The algorithm that the tables describe."""
    if tables.leapfrog_steps:
        return fs.FAHMC(tables.step_size, tables.leapfrog_steps, tables.local_steps, tables.shared_noise)
    return fs.FALD(tables.step_size, tables.local_steps, tables.temperature, tables.shared_noise)


class Fedsim:
    """`fs.simulate` as a user calls it."""

    noise = "double"

    def __init__(self, tables: Tables, threads: int) -> None:
        self.problem = fs.Quadratic(tables.hessians, tables.minimizers, tables.weights)
        self.algorithm = algorithm(tables)
        self.threads = threads

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Compile, or load from the cache."""
        self.n_rounds, self.n_replicas = 1, n_replicas
        self.run(0)
        self.n_rounds = n_rounds

    def run(self, seed: int) -> np.ndarray:
        """The average iterates after the last round, (R, d)."""
        final = fs.simulate(self.problem, self.algorithm, self.n_rounds, self.n_replicas, seed=seed,
                            record=[], covariance="none", keep_final=True, noise=self.noise,
                            threads=self.threads).final
        assert final is not None
        return final


class FedsimSingle(Fedsim):
    """The same with float32 variates; the state stays float64."""

    noise = "single"


@compiled
def draw_all(lanes, own, shared, first, last, n_clients):
    """The normals of draws first..last-1 in the order of the kernel, and nothing else."""
    for draw in range(first, last):
        if shared.shape[0]:
            normals(lanes, SHARED_NOISE, draw, 0, shared)
        for client in range(n_clients):
            normals(lanes, OWN_NOISE, draw, client, own)


class Floor(Fedsim):
    """Draws in the same lanes exactly the normals that a run draws, and throws them away."""

    segments = 8

    def prepare(self, n_rounds: int, n_replicas: int) -> None:
        """Lay out the same blocks of lanes as the engine."""
        self.plan = make_plan(
            self.problem, self.algorithm, n_rounds, n_replicas, seed=0, start=None, record=[],
            covariance="none", average=None, keep_final=False, noise=self.noise, allow_unstable=False,
            replicas=None, block_size=None, threads=self.threads)
        self._draw(1, self.plan)

    def _draw(self, n_draws: int, plan) -> list[np.ndarray]:
        cuts = np.linspace(0, n_draws, self.segments + 1).astype(int)

        def task(job: tuple[tuple[int, int], int]) -> np.ndarray:
            (first, last), part = job
            state = lane_state(plan, first, last)
            own = np.zeros_like(state.work.shared)
            shared = own.copy() if self.algorithm.shared_noise > 0 else own[:0]
            draw_all(state.lanes, own, shared, cuts[part], cuts[part + 1], self.problem.n_clients)
            return own

        jobs = [(block, part) for part in range(self.segments) for block in plan.blocks(set())]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(task, jobs))

    def run(self, seed: int) -> np.ndarray:
        """Normals of the last draw, (n, 1): they are judged too."""
        plan = self.plan
        state = lane_state(plan, 0, 2)
        per_draw = state.work.shared.shape[0] // state.work.server.shape[0]
        per_round, rest = divmod(self.algorithm.local_steps, per_draw)
        if rest:
            raise ValueError(f"local_steps={self.algorithm.local_steps} must be a multiple of {per_draw}")
        blocks = self._draw(plan.n_rounds * per_round, plan)[-len(plan.blocks(set())):]
        return np.concatenate([block.ravel() for block in blocks]).astype(np.float64)[:, None]


class FloorSingle(Floor):
    """The floor of single variates."""

    noise = "single"


CONTESTANTS = {"fedsim": Fedsim, "fedsim single": FedsimSingle}
FLOORS = {"fedsim": Floor, "fedsim single": FloorSingle}
