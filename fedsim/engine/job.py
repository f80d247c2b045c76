"""What is to be run: every argument checked once, cut into blocks, and named by a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..fingerprints import feed, source_hash
from ..interfaces import Problem, SimulatedAlgorithm, offers, start_of, validate, validate_sizes
from ..laws.moments import roots
from ..laws.recording import n_recorded, recorded_rounds
from ..problems.custom.functions import frozen, plain_function
from ..random.streams import MAX_CLIENTS, MAX_EVALUATIONS, MAX_PAIRS, MAX_REPLICAS, MAX_STEPS
from ..settings.limits import refuse_bytes
from ..settings.validation import Array, flag, one_of, shown, whole
from ..vector.compile import STUBS, body_of
from .divergence import Scales, scales_of
from .rounds import LEAF, TEST_FUNCTIONS, NoFunction
from .state import state_bytes

_CACHE_BYTES = 2**19
_OWN = __name__.partition(".")[0]
_PART = 64
"""Coordinates of a part, at least: cutting costs as much as a few of them."""


@dataclass(frozen=True)
class Job:
    """A checked simulation. Blocks are pairs (first replica, one past the last).

    `start_cov` is (d, d), or variances (d,) of independent coordinates, or None for a point; `start_root` its
    square root, in the same form. `scales` are there where replicas that leave them are to be told. With
    `first_coordinate` it is a part of another job; see `parts`.
    """

    problem: Problem
    algorithm: SimulatedAlgorithm
    n_rounds: int
    n_replicas: int
    seed: int
    start_mean: Array
    start_cov: Array | None
    rounds: np.ndarray
    covariance: str
    average: str | None
    keep_final: bool
    noise: str
    first: int
    last: int
    block_size: int
    start_root: Array | None = None
    threads: int = 1
    first_coordinate: int = 0
    scales: Scales | None = None

    @property
    def n_views(self) -> int:
        """Laws recorded: the average, and the clients where they differ."""
        return 1 + self.problem.n_clients if self.algorithm._clients_differ(self.problem) else 1

    @property
    def dtype(self) -> Any:
        """Type of the normals."""
        return np.float32 if self.noise == "single" else np.float64

    @property
    def function(self) -> Any:
        """The test function that is averaged, compiled form."""
        return NoFunction() if self.average is None else TEST_FUNCTIONS[self.average]

    @property
    def width(self) -> int:
        """Numbers kept per second moment."""
        dim = self.problem.dim
        return {"full": dim * dim, "diagonal": dim, "none": 0}[self.covariance]

    @property
    def leaves(self) -> range:
        """Numbers of the leaves."""
        return range(self.first // LEAF, -(-self.last // LEAF))

    def parts(self) -> list[Job]:
        """This job cut by coordinates, so that every thread has work where blocks are fewer than threads.

        Only where coordinates neither mix nor meet in what is asked for; else it is the whole job alone.
        """
        dim = self.problem.dim
        blocks = -(-len(self.leaves) * LEAF // self.block_size)
        count = min(self.threads // blocks, dim // _PART)
        apart = (self.covariance != "full" and self.average is None
                 and (self.start_root is None or self.start_root.ndim == 1)
                 and self.scales is None and self.problem.support is None
                 and dim % 4 == 0 and self.algorithm._separates(self.problem))
        if count < 2 or not apart or self.problem._coordinates(0, dim) is None:
            return [self]
        cuts = [4 * (i * (dim // 4) // count) for i in range(count + 1)]  # a call gives up to four normals
        root = self.start_root
        return [replace(self, problem=self.problem._coordinates(first, last), threads=1,
                        start_mean=self.start_mean[..., first:last],
                        start_root=root if root is None else root[first:last], first_coordinate=first)
                for first, last in pairwise(cuts)]

    def blocks(self, done: Container[int] = ()) -> Iterator[tuple[int, int]]:
        """Blocks of whole leaves covering all leaves that are not done yet, one after the other."""
        first = last = self.first
        for leaf in self.leaves:
            if leaf in done:
                continue
            begin, end = leaf * LEAF, min((leaf + 1) * LEAF, self.last)
            if last != begin or end - first > self.block_size:
                if first < last:
                    yield first, last
                first = begin
            last = end
        if first < last:
            yield first, last

    def key(self) -> str:
        """Hash of everything that decides the numbers, and of the code version."""
        digest = hashlib.sha256(source_hash().encode())
        compiled = (self.problem._arrays(), self.algorithm._kernel(self.problem), self.function)
        feed(digest, (*compiled, self.n_rounds, self.n_replicas, self.seed, self.start_mean, self.start_cov,
                      self.rounds, self.scales, self.problem.support, self.covariance, self.average,
                      self.keep_final, self.noise, *_texts_of(compiled)))
        return digest.hexdigest()[:32]


def _texts_of(values: Any) -> list[str]:
    """Of the bodies of other people's that are chosen by these NamedTuples, and those in them.

    Other people's functions that choose a body are asked where one of their bodies calls them, if it does.

    Raises
    ------
    ValueError
        Where one names what cannot be told from others.
    """
    kinds = list(_kinds(values))
    own = [stub for stub in STUBS if _is_own(stub.__module__)]
    texts = list(_texts(own, kinds))
    return texts + list(_texts([stub for stub in STUBS if stub not in own], kinds)) if texts else []


def _kinds(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                yield type(value)
            yield from _kinds(value)


def _texts(stubs: Iterable[Any], kinds: Iterable[Any]) -> Iterator[str]:
    for stub in stubs:
        for kind in kinds:
            body: Any = body_of(stub, kind)
            name = f"{stub.__name__} of {kind.__name__}"
            if body is not None and not _is_own(plain_function(name, body).__globals__.get("__name__")):
                text = frozen(f"checkpoint: the body of {name}", body, fields=True).text
                yield f"{stub.__module__} {name}: {text}"


def _is_own(module: Any) -> bool:
    return str(module).partition(".")[0] == _OWN


def _check_memory(job: Job, algorithm: SimulatedAlgorithm, n_kept: int, threads: int) -> None:
    """Refuse what the moments of so many recorded rounds, every replica's numbers and open blocks need.

    `algorithm` is what was asked for, before anything was worked out for it.
    """
    views, dim, active = job.n_views, job.problem.dim, job.algorithm.n_active(job.problem)
    size = min(job.block_size, LEAF * len(job.leaves))
    open_blocks = min(3 * threads, -(-len(job.leaves) * LEAF // size))
    per_node = 8.0 * views * n_kept * (dim + 3 * job.width)
    leaves_in_flight = open_blocks * (size // LEAF) + np.log2(max(2, job.last / LEAF))
    # of every replica, in blocks and then joined
    per_replica = dim * job.keep_final + (job.average is not None)
    kept = per_node * (leaves_in_flight + 2) + 16.0 * (job.last - job.first) * per_replica
    replicas = min(size, job.last - job.first)
    states = open_blocks * state_bytes(job, replicas)
    if job.start_cov is not None:
        states += 4.0 * job.start_cov.nbytes  # while its root is taken
    if states > kept:
        refuse_bytes(kept + states, f"algorithm={shown(algorithm)} with n_rounds={job.n_rounds}, dimension "
                     f"{dim}, {active} active clients and n_replicas={job.n_replicas}, {open_blocks} blocks "
                     f"of {size} at a time,", "use fewer threads, a smaller block_size, or what keeps "
                     "fewer iterates")
    refuse_bytes(
        kept + states, f"covariance={job.covariance!r} with {n_kept} recorded rounds, dimension {dim}, "
        f"{views} recorded laws, {active} active clients, n_replicas={job.n_replicas}, "
        f"average={job.average!r} and keep_final={job.keep_final}", "use covariance='diagonal' or 'none', "
        "or fewer rounds in record")


def _check_fields(problem: Problem, algorithm: SimulatedAlgorithm, n_rounds: int, n_replicas: int) -> None:
    """Sizes that the counters of the random streams can hold."""
    active = algorithm.n_active(problem)
    steps = algorithm._steps(n_rounds)
    numbered = algorithm._numbered(problem, n_rounds)
    if numbered > MAX_STEPS:
        raise ValueError(f"n_rounds={n_rounds} makes {numbered} steps; the random streams number {MAX_STEPS}")
    for name, value, limit in (("n_active", active, MAX_CLIENTS), ("n_replicas", n_replicas, MAX_REPLICAS),
                               ("n_clients", problem.n_clients, MAX_CLIENTS),
                               ("dim", problem.dim, MAX_PAIRS // 2)):
        if value > limit:
            raise ValueError(f"{name}={value} must be at most {limit}, what the random streams can number")
    draws = algorithm._gradients_per_step(problem)
    if draws > MAX_EVALUATIONS and (problem.has_minibatches or problem.gradient_noise is not None):
        raise ValueError(f"{shown(algorithm)} draws for {draws} gradients in a step; the random streams "
                         f"number {MAX_EVALUATIONS}: let it evaluate fewer, or without noise and minibatches")
    end = algorithm.schedule.n_steps
    if end is not None and steps > end:
        raise ValueError(f"step_size has {end} entries; n_rounds={n_rounds} needs {steps} local steps")


def make_job(problem: Problem, algorithm: SimulatedAlgorithm, n_rounds: int, n_replicas: int, *, seed: int,
              start: object = None, record: object = None, covariance: str = "full",
              average: str | None = None, keep_final: bool = False, noise: str = "double",
              allow_unstable: bool = False, replicas: tuple[int, int] | None = None,
              block_size: int | None = None, threads: int = 1) -> Job:
    """Check every argument of `simulate` before anything is compiled or run."""
    n_rounds = whole("n_rounds", n_rounds, 0)
    n_replicas = whole("n_replicas", n_replicas, 1)
    seed = whole("seed", seed)
    covariance = one_of("covariance", covariance, ("full", "diagonal", "none"))
    noise = one_of("noise", noise, ("double", "single"))
    if average is not None:
        average = one_of("average", average, tuple(TEST_FUNCTIONS))
    n_kept = n_recorded(n_rounds, record)
    unchecked = flag("allow_unstable", allow_unstable)
    validate_sizes(problem, algorithm, start)
    offers("algorithm", algorithm, SimulatedAlgorithm)
    _check_fields(problem, algorithm, n_rounds, n_replicas)  # what is too large may take for ever to judge
    if not unchecked:
        validate(problem, algorithm, start)
    asked = algorithm
    problem, algorithm = algorithm._bind(problem, n_rounds, n_replicas)
    first, last = (0, n_replicas) if replicas is None else _shard(replicas, n_replicas)
    if covariance != "none" and last - first < 2:
        raise ValueError(f"n_replicas={last - first} must be at least 2 to estimate a covariance; "
                         "use covariance='none' for a single replica")
    size = (_block_size(problem, last - first, threads) if block_size is None
            else whole("block_size", block_size, LEAF))
    if size % LEAF:
        raise ValueError(f"block_size={block_size} must be a multiple of {LEAF}")
    mean, cov = start_of(problem, algorithm, start)
    job = Job(problem, algorithm, n_rounds, n_replicas, seed, mean, cov, np.empty(0, np.int64), covariance,
              average, flag("keep_final", keep_final), noise, first, last, size)
    _check_memory(job, asked, n_kept, threads)
    root = cov if cov is None else np.sqrt(cov) if cov.ndim == 1 else roots(cov)
    scales = None if unchecked or problem.is_convex else scales_of(problem, algorithm, mean, cov)
    return replace(job, rounds=recorded_rounds(n_rounds, record), start_root=root, threads=threads,
                   scales=scales)


def _block_size(problem: Problem, n_replicas: int, threads: int) -> int:
    """Long rows, as long as the clients' states fit a processor's cache and all threads have work.

    Threads take turns on the blocks, so three blocks are enough to keep two threads busy.
    """
    leaves = -(-n_replicas // LEAF)
    by_work = leaves if threads == 1 else -(-2 * leaves // (3 * threads))
    by_cache = _CACHE_BYTES // (8 * LEAF * problem.n_clients * problem.dim)
    size = max(1, min(5, by_work, by_cache))
    return LEAF * -(-leaves // -(-leaves // size))  # blocks of about equal size


def _shard(replicas: object, n_replicas: int) -> tuple[int, int]:
    """A range of replicas made of whole leaves."""
    if not isinstance(replicas, (tuple, list)) or len(replicas) != 2:
        raise ValueError(f"replicas={shown(replicas)} must be a pair (first, last) or 'kept'")
    if any(isinstance(end, (tuple, list)) for end in replicas):
        raise ValueError(f"replicas={shown(replicas)} must be a pair (first, last), one of those that "
                         "fedsim.shards lists")
    first, last = whole("replicas[0]", replicas[0], 0), whole("replicas[1]", replicas[1], 1, n_replicas)
    if first >= last or first % LEAF or (last % LEAF and last != n_replicas):
        raise ValueError(f"replicas={shown(replicas)} must be a non-empty range whose ends are multiples of "
                         f"{LEAF} (or n_replicas={n_replicas}), as fedsim.shards gives them")
    return first, last
