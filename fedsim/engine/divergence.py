"""What has diverged: what leaves float64, and where f need not be convex what leaves every scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interfaces import Algorithm, Problem
from ..settings.support import Support, outside, shown_support
from ..settings.validation import Array

RADIUS = 1e75
"""A coordinate beyond this has diverged: its fourth power, in standard errors, would soon overflow."""
FACTOR = 1e6
"""So many times the largest known scale is what no sampler should do without a reason."""


class DivergedError(RuntimeError):
    """A replica left every reasonable bound.

    These are 1e75 and, for a gradient of one's own, 1e6 times the largest of the start's spread, the
    target's standard deviation if it is known, and that of the noise so far without a gradient; unless the
    gradient has become no larger on the way, as it does on the way to a far minimizer.

    Attributes
    ----------
    round : int
        First communication of all replicas after which a coordinate is NaN, infinite or beyond these bounds.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> try:
    ...     fs.simulate(problem, fs.FALD(3.0), 2000, 64, seed=1, allow_unstable=True)
    ... except fs.DivergedError as error:
    ...     print(str(error)[:30])
    diverged at round 107: a coord
    """

    def __init__(self, message: str, round: int) -> None:
        super().__init__(message)
        self.round = round

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.round)


class Fault(NamedTuple):
    """The first replica that has diverged, in the first such round; and what is said of it."""

    round: int
    replica: int
    words: str


class Scales(NamedTuple):
    """What is known of the size of things before a run: standard deviations, 0 where they are not known."""

    start: float
    target: float


def scales_of(problem: Problem, algorithm: Algorithm, mean: Array, cov: Array | None) -> Scales:
    """The largest coordinate's; clients that start at points of their own spread around their mean."""
    spread = 0.0 if cov is None else float(np.sqrt(np.diagonal(cov) if cov.ndim == 2 else cov).max())
    if mean.ndim == 2:
        spread = max(spread, float(mean.std(axis=0).max()))
    try:
        target = float(np.sqrt(algorithm.target(problem).variances.max()))
    except ValueError:  # NoTarget
        target = 0.0
    return Scales(spread, target)


def centre(job: Any) -> Array:
    """The mean of the start (d,), of all clients."""
    mean: Array = job.start_mean
    return mean if mean.ndim == 1 else mean.mean(axis=0)


def reach(job: Any, first: int, last: int) -> Array:
    """How far from home replicas may be after rounds first + 1, ..., last; empty where that is not known."""
    if job.scales is None:
        return np.empty(0)
    with np.errstate(over="ignore"):
        noise = np.sqrt(job.algorithm._noise_so_far(job.problem, np.arange(first + 1.0, last + 1.0)))
        return FACTOR * np.maximum(noise, max(job.scales))


def find_fault(job: Any, first: int, round: int, x: Array, home: Array) -> Fault | None:
    """The fault of the replicas from `first` on that are at `x` (d, B) after this round, if there is one."""
    gone, away = ~(np.abs(x) < RADIUS), np.zeros(x.shape, bool)
    limit = 0.0
    if job.scales is not None:
        limit = float(reach(job, round - 1, round)[0])
        away = ~(np.abs(x - home) < limit) & ~gone.any(axis=0)
        lanes = np.flatnonzero(away.any(axis=0))
        if lanes.size:
            away[:, lanes] &= _pulled_harder(job, x[:, lanes].T).T
    bad = (gone | away).any(axis=0)
    if not bad.any():
        return None
    lane = int(np.argmax(bad))  # lanes beyond the last replica repeat it
    if gone[:, lane].any():
        return Fault(round, first + lane, f"a coordinate is not finite or beyond {RADIUS:g}")
    i, target = int(np.argmax(away[:, lane])), job.scales.target
    known = f"{target:.3g}" if target > 0.0 else "not known"
    return Fault(
        round, first + lane, f"coordinate {i} of replica {first + lane} is {x[i, lane]:.3g}, further from its"
        f" start than {limit:.3g}: {FACTOR:g} times the largest of the start's spread {job.scales.start:.3g},"
        f" the target's sd ({known}) and the noise's sd so far, and the gradient has grown on the way; it"
        " must be that of minus the log density (is its sign wrong?) and step_size small enough, or"
        " allow_unstable=True runs on")


def told_where(fault: Fault, support: Support, before: Array) -> Fault:
    """The fault of a problem with a support; `before` (d,) is where the replica was a round before."""
    left = (f"replica {fault.replica} was outside support={shown_support(support)} a round before, where the "
            if outside(support, before) else f"outside support={shown_support(support)} a ")
    return fault._replace(words=f"{fault.words}; {left}gradient need not be defined")


def _pulled_harder(job: Any, x: Array) -> np.ndarray:
    """Where the slope along a coordinate at `x` (R, d) is larger than at the start: of all clients, or twice
    so large of one. A stable way to a minimizer, however far, does not lead there.
    """
    here, total, steepest = np.concatenate([centre(job)[None], x]), 0.0, np.zeros(())
    with np.errstate(all="ignore"):
        for client, weight in enumerate(job.problem.weights):
            slope = job.problem.gradient(client, here)
            total, steepest = total + weight * slope, np.maximum(steepest, np.abs(slope))
    size = np.abs(total)
    return ~((size[1:] <= size[0]) & (steepest[1:] <= 2.0 * steepest[0]))


def diverged(job: Any, fault: Fault) -> DivergedError:
    """The error that names the round and, where it is known, the stability limit."""
    problem, algorithm = job.problem, job.algorithm
    limit = "" if problem.is_judged else "; nothing bounds the Hessians, so that no step size was judged"
    try:
        stability = algorithm.stability(problem)
        if stability.has_limit or not stability.stable:
            limit = (f"; step_size={stability.step_size:g}, {'stability ' * stability.has_limit}"
                     f"{stability.limit}")
    except ValueError:  # too large to be judged
        pass
    return DivergedError(f"diverged at round {fault.round}: {fault.words}{limit}", fault.round)
