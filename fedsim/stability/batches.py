"""The second moment of minibatches of a problem, where it is small enough to judge stability by."""

from __future__ import annotations

from ..interfaces import Problem
from ..settings.validation import Array

MAX_TABLE = 1_000_000
"""Entries of the largest table that is made: N d^4, and four times that for FA-HMC."""
MAX_WORK = 4_000_000_000
"""n d^4 for n data, the operations that `batch_response` takes."""


def batch_response(problem: Problem, fits: bool = True, table: int = 1) -> tuple[Array | None, str]:
    """`problem.batch_response()` where there is one and it is small enough, else None; and a remark.

    `fits` is False for a decentralized state that is too large, `table` multiplies N d^4.
    """
    if problem.response_work is None:
        return None, ""
    if (not fits or table * problem.n_clients * problem.dim**4 > MAX_TABLE
            or problem.response_work > MAX_WORK):
        return None, "; of the mean alone: too large to judge the second moment under minibatches"
    response = problem.batch_response()
    return (response if response is not None and response.any() else None), ""  # 0: all data, each once
