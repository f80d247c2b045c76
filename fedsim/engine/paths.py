"""`sample_path`: whole trajectories of a few chains, for time averages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..laws.chains import Chains, chains_of
from ..provenance import Provenance
from ..settings.limits import refuse_bytes
from ..settings.support import outside, warn_outside
from ..settings.validation import shown, whole
from ..vector.memory import TILE, signal_of, signals
from .block import SEGMENT, BlockPart
from .divergence import DivergedError
from .job import make_job
from .pool import first_of_all, thread_count
from .rounds import LEAF

_TASK = 4000.0  # bytes, about, of a block that waits for a thread


def sample_path(problem: Problem, algorithm: SimulatedAlgorithm, n_rounds: int, *, seed: int, every: int = 1,
                n_chains: int = 1, start: Any = None, client: int | None = None,
                allow_unstable: bool = False, threads: int | None = None) -> Chains:
    """The average iterate after rounds every, 2 every, ... of `n_chains` independent chains.

    Chain i is replica i of `simulate` with the same seed. The array is one of `fedsim.laws.chains.Chains`,
    with a method `to_arviz` for the diagnostics and plots of ArviZ.

    Parameters
    ----------
    problem, algorithm, n_rounds, seed, start, allow_unstable, threads : as in `simulate`
    every : int
        Keep one round in `every`.
    n_chains : int
    client : int, optional
        Keep this client's iterate instead of the average; for algorithms whose clients differ.

    Returns
    -------
    (n_chains, n_rounds // every, d) float64; the start is not included.

    Raises
    ------
    ValueError
        For bad arguments; `DivergedError` names the round.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> fs.sample_path(problem, fs.FALD(0.1), n_rounds=30, seed=1, every=10, n_chains=2).shape
    (2, 3, 1)
    """
    every, n_threads = whole("every", every, 1), thread_count(threads)
    n_chains = whole("n_chains", n_chains, 1)
    job = make_job(problem, algorithm, n_rounds, n_chains, seed=seed, start=start, record=(),
                   covariance="none", allow_unstable=allow_unstable, block_size=LEAF, threads=n_threads)
    view = 0
    if client is not None:
        if job.n_views == 1:
            raise ValueError(f"client={shown(client)} must be None for {type(algorithm).__name__}: its "
                             "clients share one iterate")
        view = 1 + whole("client", client, 0, job.n_views - 2)
    n_rounds, dim = job.n_rounds, job.problem.dim
    blocks = -(-n_chains // LEAF)
    open_rows = min(n_threads, blocks) * -(-min(n_chains, LEAF) // TILE) * TILE
    refuse_bytes(8.0 * (n_chains + open_rows) * (n_rounds // every) * dim + _TASK * blocks,
                 f"n_rounds={n_rounds} with every={every}, n_chains={n_chains} and dimension {dim}",
                 "use a larger every")
    paths = np.empty((n_chains, n_rounds // every, dim))
    stop = signals(n_threads)

    def trace(block: tuple[int, int]) -> None:
        runner = BlockPart(job, *block, paths.shape[1], every, view, signal_of(stop, block[0] // LEAF))
        while runner.done < n_rounds:
            if stop[0]:
                return
            bad = runner.run_to(min(runner.done + SEGMENT, n_rounds), 1)
            if bad >= 0:
                raise DivergedError(f"diverged by round {bad}", bad)
        paths[block[0]:block[1]] = runner.path.values.transpose(2, 0, 1)[:block[1] - block[0]]

    with ThreadPoolExecutor(n_threads) as pool:
        try:
            list(pool.map(trace, job.blocks()))
        except DivergedError as error:
            stop[0] = 1
            raise first_of_all(job, None, n_threads, error.round) from None
        except BaseException:
            stop[0] = 1  # Ctrl-C: the threads end after their segment
            raise
    if job.problem.support is not None:
        counts = outside(job.problem.support, paths).sum(axis=0)
        warn_outside(counts, every * np.arange(1, len(counts) + 1), n_chains)
    of = Provenance.of(problem, algorithm, start)  # the job's own are worked out for so many rounds
    number = view - 1 if view else None
    return chains_of(paths, (of if number is None else of.client(number), job.seed, every, number))
