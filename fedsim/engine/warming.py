"""`warm_up`: compile now what a later run needs."""

from __future__ import annotations

from typing import Any

from ..interfaces import Problem, SimulatedAlgorithm
from ..vector.compile import compiled_here
from .block import BlockPart
from .job import make_job


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
