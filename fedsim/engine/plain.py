"""Blocks of a simulation in NumPy, for algorithms that have a twin: slow, and without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..random.plain import PlainStreams
from ..random.streams import START
from ..settings.support import outside
from ..settings.validation import Array, shown
from .block import BlockResult
from .divergence import RADIUS, DivergedError
from .job import Job
from .rounds import LEAF


def refuse_plain(noise: str, executor: object, checkpoint: object) -> None:
    """Raise ValueError for what only compiled replicas have."""
    for name, value, wanted in (("noise", noise, "double"), ("executor", executor, None),
                                ("checkpoint", checkpoint, None)):
        if value != wanted:
            raise ValueError(f"{name}={shown(value)} must be {wanted!r} with compiled=False, whose numbers "
                             "are the same to rounding and not to the last bit")


def run_plainly(job: Job, blocks: Iterable[tuple[int, int]], take: Callable[[BlockResult], None],
                tick: Callable[[int], None]) -> None:
    """Run the blocks one after the other, handing each result to `take`."""
    for first, last in blocks:
        take(_block(job, first, last, tick))


def _block(job: Job, first: int, last: int, tick: Callable[[int], None]) -> BlockResult:
    dim, R = job.problem.dim, last - first
    streams = PlainStreams(job.seed, np.arange(first, last))
    start = np.broadcast_to(job.start_mean[..., None, :], (*job.start_mean.shape[:-1], R, dim))
    if job.start_root is not None:
        drawn = streams.normals(START, 0, 0, dim).T
        start = start + (drawn * job.start_root if job.start_root.ndim == 1 else drawn @ job.start_root.T)
    twin: Any = job.algorithm._twin(job.problem, streams, start)
    begins = list(range(0, R, LEAF))
    shape = len(begins), job.n_views, len(job.rounds)
    mean, square = np.zeros((*shape, dim)), np.zeros((*shape, job.width))
    sums, counts, index = np.zeros(R), np.zeros(shape[1:], np.int64), 0
    for done in range(job.n_rounds + 1):
        if done:
            twin.round(done - 1)
            tick(R)
            now: Array = twin.view(0)
            if not (np.abs(now) < RADIUS).all():
                raise DivergedError(f"diverged at round {done}: a coordinate is not finite or beyond "
                                    f"{RADIUS:g}", done)
            if job.average is not None:
                sums += (now if job.average == "identity" else now**2).sum(axis=1)
        if index < len(job.rounds) and job.rounds[index] == done:
            for view in range(job.n_views):
                points = twin.view(view)
                for leaf, begin in enumerate(begins):
                    mean[leaf, view, index], square[leaf, view, index] = _moments(
                        points[begin:begin + LEAF], job.width)
                if job.problem.support is not None:
                    counts[view, index] = outside(job.problem.support, points).sum()
            index += 1
    final = twin.view(0).copy() if job.keep_final else np.empty((0, dim))
    return BlockResult(first, last, mean, square, (sums if job.average else np.empty(0)) / max(
        job.n_rounds, 1), final, counts)


def _moments(points: Array, width: int) -> tuple[Array, Array]:
    """Mean and sums of centred products, or squares, of a leaf."""
    mean = points.mean(axis=0)
    away = points - mean
    dim = points.shape[1]
    return mean, ((away.T @ away).ravel() if width == dim * dim else (away**2).sum(axis=0) if width
                  else np.empty(0))
