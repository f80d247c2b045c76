"""`simulate`: blocks of replicas -> an executor -> moments -> a Run; `warm_up` compiles what it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from ..interfaces import Problem, SimulatedAlgorithm
from ..laws.law import NoTarget
from ..laws.run import Run
from ..problems.failing import GradientError
from ..provenance import Provenance, attach
from ..settings.progress import bars_shown, tqdm
from ..settings.support import warn_outside
from ..settings.validation import Array, one_of
from ..vector.compile import compiled_here
from .block import BlockPart, BlockResult
from .checkpoint import Checkpoint
from .divergence import DivergedError
from .job import Job, make_job
from .moments import Moments, Tree
from .plain import refuse_plain, run_plainly
from .pool import (
    UnusableExecutor,
    check_executor,
    check_travels,
    first_of_all,
    run_on_executor,
    run_on_threads,
    thread_count,
)
from .rounds import LEAF
from .sharding import refuse_missing, to_run


def simulate(problem: Problem, algorithm: SimulatedAlgorithm, n_rounds: int, n_replicas: int, *, seed: int,
             start: Any = None, record: Any = None, covariance: str = "full", average: str | None = None,
             keep_final: bool = False, noise: str = "double", allow_unstable: bool = False,
             replicas: tuple[int, int] | Literal["kept"] | None = None, block_size: int | None = None,
             threads: int | None = None, executor: Executor | None = None,
             checkpoint: str | os.PathLike[str] | None = None, progress: bool = False,
             compiled: bool = True) -> Run:
    """Run independent replicas of an algorithm and keep the moments of its average iterate.

    Every active client, every local step and every noise is simulated. The same seed gives the same
    bits whatever `threads`, `block_size`, `executor`, and however often a run was interrupted.

    Parameters
    ----------
    problem, algorithm : e.g. `Quadratic` and `FALD`
    n_rounds : int
        Communications.
    n_replicas : int
        Independent replicas R.
    seed : int in [0, 2^64)
    start : point (d,) or Gaussian, optional
        A Gaussian gives one draw per replica, common to all clients. Default the origin.
    record : sequence of int, optional
        Rounds to keep besides 0 and `n_rounds`; see `recorded_rounds`.
    covariance : "full", "diagonal" or "none"
        What is kept of second moments.
    average : "identity" or "square", optional
        Average, along each replica over rounds 1..n_rounds, the sum of the coordinates or of their
        squares; gives ``Run.averages``.
    keep_final : bool
        Keep every replica's last average iterate in ``Run.final`` (R, d).
    noise : "double" or "single"
        Precision of the random variates; the state is always float64.
    allow_unstable : bool
        Run a step size beyond stability all the same, and with a gradient of one's own go on when
        replicas leave every known scale, up to 1e75.
    replicas : (first, last) or "kept", optional
        Run only this range, whole leaves of 64, as `shards` gives them. Shards that share a `checkpoint`
        folder are merged by a last call without `replicas`, which computes what is missing, or with
        "kept", which refuses to.
    block_size : int, optional
        Replicas per block, a multiple of 64.
    threads : int, optional
        Default: all processors that this process may use. With an executor: how many tasks it runs at a
        time, for the default size of blocks; twice as many, at least 64, are handed over at a time.
    executor : concurrent.futures.Executor, optional
        Runs each block as one task, instead of threads: processes of this machine, loky, MPI, or a Dask
        cluster by ``client.get_executor()``. The same fedsim must be installed where tasks run.
    checkpoint : folder, optional
        Finished blocks are kept there and not computed again. It belongs to one simulation: the same problem,
        algorithm, sizes, seed, options that decide numbers, and sources of fedsim.
    progress : bool
        Show a progress bar; on threads it moves within long rounds of local steps too.
    compiled : bool
        False runs the NumPy twin of a sampler of one's own (`fedsim.sampler`), in one thread: nothing is
        compiled, it is slow, and its numbers are the same to rounding.

    Returns
    -------
    Run
        Where a replica is outside its problem's support at a recorded round, with an `OutsideWarning`.

    Raises
    ------
    ValueError
        For bad arguments, before anything is compiled or run; `UnstableStepSize` beyond stability. For
        an executor that came broken or was shut down, and for "kept" where replicas are missing, which it
        names.
    DivergedError
        When a replica diverges, naming the first round of all replicas: the others run up to there too.
    KeyboardInterrupt
        After Ctrl-C, when all threads have stopped and finished blocks are kept.
    Exception
        What an executor raises that breaks under the run (a killed process: `BrokenProcessPool`), with a
        note of what is kept.

    Examples
    --------
    >>> import fedsim as fs
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> run = fs.simulate(problem, fs.FALD(0.1, local_steps=2), n_rounds=5, n_replicas=100, seed=1)
    >>> run.costs["gradient_evaluations"]
    20
    """
    one_of("progress", progress, (True, False))
    n_threads = thread_count(threads)
    check_executor(executor)
    if not one_of("compiled", compiled, (True, False)):
        refuse_plain(noise, executor, checkpoint)
    shard = to_run(replicas, checkpoint)
    with bars_shown(progress):
        job = make_job(problem, algorithm, n_rounds, n_replicas, seed=seed, start=start, record=record,
                       covariance=covariance, average=average, keep_final=keep_final, noise=noise,
                       allow_unstable=allow_unstable, replicas=shard, block_size=block_size,
                       threads=n_threads)
    check_travels(job, executor)
    of = Provenance.of(problem, algorithm, start)  # the job's own are worked out for so many rounds
    tree = Tree(job.leaves.start, job.leaves.stop, covariance == "diagonal")
    store = None if checkpoint is None else Checkpoint(checkpoint, job)
    done: set[int] = set()
    replica_parts: dict[int, tuple[Array, Array]] = {}
    outside = np.zeros((job.n_views, len(job.rounds)), np.int64)
    n_done = 0  # leaves, which may be too many to list

    def take(block: BlockResult, is_new: bool = True) -> None:
        nonlocal n_done
        if store and is_new:
            store.write(block)
        for leaf, moments in block.leaves():
            tree.add(leaf, moments)
            n_done += 1
        np.add(outside, block.outside, out=outside)
        if keep_final or average is not None or not replica_parts:
            replica_parts[block.first] = block.sums, block.final

    work = (job.last - job.first) * job.n_rounds
    for block in store.read() if store else ():
        take(block, is_new=False)
        done |= {leaf for leaf, _ in block.leaves()}
        work -= (block.last - block.first) * job.n_rounds
    if replicas is not shard:
        refuse_missing(job, done, checkpoint)
    with _telling_what_is_kept(job, lambda: n_done, checkpoint), tqdm(
            total=work, disable=not progress, unit="replica-round", unit_scale=True,
            desc=type(algorithm).__name__) as bar:
        try:
            if not compiled:
                run_plainly(job, job.blocks(), take, bar.update)
            elif executor is None:
                counted = job.algorithm._counted(job.problem) if progress else 0
                run_on_threads(job, job.blocks(done), n_threads, take, bar.update, counted)
            else:
                run_on_executor(job, job.blocks(done), executor, take, bar.update, max(64, 2 * n_threads))
        except DivergedError as error:
            if not compiled:
                raise
            raise first_of_all(job, executor, n_threads, error.round) from None
    name = f"{type(algorithm).__name__} on {type(job.problem).__name__}"  # the job's may be another class
    run = _finish(job, name, tree.root(), [parts for _, parts in sorted(replica_parts.items())], outside)
    warn_outside(outside.max(axis=0), job.rounds, run.n_replicas)  # of the average, or of any client
    for number, client in enumerate(run.clients):
        attach(client, of.client(number))
    return attach(run, of)


@contextmanager
def _telling_what_is_kept(job: Job, n_done: Callable[[], int], checkpoint: object) -> Iterator[None]:
    """A note on what ends a run early: how much is finished, and how to go on."""
    try:
        yield
    except (DivergedError, GradientError):  # to go on would not help
        raise
    except Exception as error:
        share = f"{n_done()} of {len(job.leaves)} leaves of {LEAF} replicas are finished"
        if checkpoint is not None:
            anew = " with a new executor" if isinstance(error, (BrokenExecutor, UnusableExecutor)) else ""
            error.add_note(f"{share} and kept in checkpoint={str(checkpoint)!r}: the same call{anew} goes on "
                           "from there")
        elif n_done():
            error.add_note(f"{share}, and none is kept without a checkpoint")
        raise


def _finish(job: Job, name: str, moments: Moments, replica_parts: list[tuple[Array, Array]],
            outside: np.ndarray) -> Run:
    """The Run of merged moments, of each block's averages and last iterates of every replica, and of how many
    are outside the support."""
    gaussian = job.algorithm._is_gaussian(job.problem)
    try:
        target = job.algorithm.target(job.problem)
    except NoTarget:
        target = None

    def shaped(square: np.ndarray) -> np.ndarray | None:
        if job.covariance == "none":
            return None
        dim = job.problem.dim
        return square.reshape(len(square), dim, dim) if job.covariance == "full" else square

    def view(i: int) -> dict[str, Any]:
        leaves = moments.leaves
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.sqrt(moments.spread_square[i] / (np.float64(leaves) * (leaves - 1)))
        return {"rounds": job.rounds, "mean": moments.mean[i],
                "cov": shaped(moments.square[i] / max(moments.count - 1, 1)), "target": target,
                "is_gaussian": gaussian, "n_replicas": moments.count, "seed": job.seed,
                "n_leaves": leaves, "leaf_cov": shaped(moments.spread_mean[i]), "spread": shaped(error),
                "outside": None if job.problem.support is None else outside[i]}

    clients = tuple(Run(**view(i), label=f"client {i - 1}") for i in range(1, job.n_views))
    averages, final = (np.concatenate(parts) for parts in zip(*replica_parts, strict=True))
    return Run(**view(0), clients=clients, averages=averages if job.average else None,
               final=final if job.keep_final else None,
               costs=dict(job.algorithm.costs(job.problem, job.n_rounds)),
               label=name)


def warm_up(problem: Problem, algorithm: SimulatedAlgorithm, n_replicas: int = 1024, **options: Any) -> int:
    """Compile what `simulate` and `sample_path` need for such a run; none of its rounds is run.

    What is compiled depends on the kinds of problem and algorithm, not on their numbers: on whether the
    problem is dense, diagonal or two-dimensional, has gradient noise or minibatches, on whether clients are
    drawn, and on `noise`, `average` and whether the start is random.

    Parameters
    ----------
    problem, algorithm : as in `simulate`
    n_replicas : int
        Few replicas may be laid out in another way, which has code of its own.
    **options
        Of `simulate`, as far as they decide what is run: `start`, `covariance`, `average`, `noise`,
        `allow_unstable`.

    Returns
    -------
    int
        Kernels compiled; 0 where all of them were there.

    Raises
    ------
    ValueError
        For bad arguments, as `simulate` does.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> compiled = fs.warm_up(problem, fs.FALD(0.1))
    >>> fs.warm_up(problem, fs.FALD(0.2, local_steps=5))
    0
    """
    job = make_job(problem, algorithm, 0, n_replicas, seed=0, **options)
    before = len(compiled_here())
    first, last = next(job.blocks())
    BlockPart(job, first, last).run_to(0, 1)
    return len(compiled_here()) - before
