"""Shards: the replicas of one simulation in parts, run where and when it suits, and put together."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

from ..settings.limits import refuse_bytes
from ..settings.validation import whole
from .job import Job
from .rounds import LEAF

_NAMED = 5
"""Missing ranges that a message names; it counts the others."""


def shards(n_replicas: int, n_shards: int) -> list[tuple[int, int]]:
    """Ranges of about equal size that cover all replicas, for ``simulate(..., replicas=...)``.

    Each is made of whole leaves of 64 replicas (the last may end with a short one), so that the merged
    run has the same bits as one call. Task i of an array job runs ``shards(n_replicas, n_shards)[i]`` into
    a common `checkpoint` folder; ``replicas="kept"`` merges.

    Parameters
    ----------
    n_replicas : int
        As given to `simulate`.
    n_shards : int
        At most the number of leaves, so that no shard is empty.

    Returns
    -------
    list of (first, last), `n_shards` of them

    Raises
    ------
    ValueError
        For more shards than leaves.

    Examples
    --------
    >>> fs.shards(1000, 4)
    [(0, 256), (256, 512), (512, 768), (768, 1000)]
    """
    n_replicas = whole("n_replicas", n_replicas, 1)
    n_shards, leaves = whole("n_shards", n_shards, 1), -(-n_replicas // LEAF)
    if n_shards > leaves:
        raise ValueError(f"n_shards={n_shards} must be at most {leaves}: n_replicas={n_replicas} are so many "
                         f"leaves of {LEAF}")
    refuse_bytes(200.0 * n_shards, f"n_shards={n_shards}", "make fewer, larger shards")
    ends = [min(LEAF * (i * leaves // n_shards), n_replicas) for i in range(n_shards + 1)]
    return list(pairwise(ends))


def to_run(replicas: Any, checkpoint: object) -> Any:
    """The range of `simulate`: None, for all, where they are kept; without their folder a ValueError."""
    if not (isinstance(replicas, str) and replicas == "kept"):
        return replicas
    if not (isinstance(checkpoint, (str, os.PathLike)) and os.path.isdir(checkpoint)):
        raise ValueError("replicas='kept' needs the folder that holds them; there is none of the name "
                         f"checkpoint={checkpoint if checkpoint is None else str(checkpoint)!r}")
    return None


def missing(job: Job, done: set[int]) -> list[tuple[int, int]]:
    """Ranges of replicas whose leaves are not done."""
    end = -(-job.last // LEAF)
    gaps, begin = [], job.first // LEAF
    for leaf in [*sorted(done), end]:
        if leaf > begin:
            gaps.append((begin * LEAF, min(leaf * LEAF, job.last)))
        begin = leaf + 1
    return gaps


def refuse_missing(job: Job, done: set[int], checkpoint: object) -> None:
    """A ValueError that names what a checkpoint lacks."""
    gaps = missing(job, done)
    if gaps:
        count = sum(last - first for first, last in gaps)
        more = f" and {len(gaps) - _NAMED} more ranges" if len(gaps) > _NAMED else ""
        raise ValueError(f"replicas='kept' merges what checkpoint={str(checkpoint)!r} holds, and {count} of "
                         f"{job.last} replicas are missing: {', '.join(map(str, gaps[:_NAMED]))}{more}; run "
                         "these shards, or leave replicas out to have them computed here")
