"""Exact bias, variance and mean squared error of time averages (1/L) sum_{l=1..L} phi(theta_l).

For phi the sum of squares or of coordinates of a Gaussian chain with means m and covariances C
(Isserlis),

    Cov(|x|^2, |y|^2) = sum_ij 2 C_ij^2 + 4 m_i(x) m_j(y) C_ij.

Covariances of all pairs of iterates are taken row by row, O(L^2) operations for every L up to the last.
Minibatches of `GaussianMean` are not normal: with G_ls the response of theta_l to the noise e_s of
update s, A_s = sum_l G_ls^2 and B_s = sum_l m_l G_ls they add sum_s k4 A_s^2 + 4 k3 A_s B_s to the
variance of L times the average of squares, k3 and k4 the cumulants of e_s.

Source: derived, for the estimators of the stale-gradient paper, section 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.algorithms.stale import StaleSGHMC, StaleSGLD
from fedsim.interfaces import start_of, validate, validate_sizes
from fedsim.provenance import Provenance, attach
from fedsim.settings.alignment import align_fields
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, array, instance, one_of, positive, real, shape, shown, whole

from ..affine import NoExactLaw
from .family import StaleFamily, each_schedule, n_schedules, refuse_law
from .recursion import Delays, Directions


@dataclass(frozen=True, eq=False, repr=False)
class AverageLaw:
    """Mean and variance of the average over the first L iterates, for L = 1, 2, ...

    Attributes
    ----------
    lengths : (n,) int
        L. The start theta_0 is not part of the average.
    mean, variance : (n,)
    truth : float
        What the average estimates: phi's mean under the target.
    label : str
    of : fedsim.provenance.Provenance
        The problem, algorithm and start that it is the law of.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.1, staleness=1)
    >>> theory.stale.average_law(problem, algorithm, 20).at(10)
    AverageLaw('average of square along StaleSGLD', L=10: bias -0.2501, variance 0.565, mse 0.6276)
    """

    lengths: np.ndarray
    mean: Array
    variance: Array
    truth: float
    label: str = ""
    of: Provenance = field(init=False, default=Provenance())

    def __post_init__(self) -> None:
        align_fields(self, "lengths", "mean", "variance")

    @property
    def bias(self) -> Array:
        """Mean minus truth, with its sign, (n,)."""
        return self.mean - self.truth

    @property
    def mse(self) -> Array:
        """Mean squared error, bias^2 + variance, (n,)."""
        return self.bias**2 + self.variance

    def at(self, length: int) -> AverageLaw:
        """The same of one L alone."""
        index = int(np.searchsorted(self.lengths, whole("length", length)))
        if index == len(self.lengths) or self.lengths[index] != length:
            several = f"one of the lengths {self.lengths[0]} to " if len(self.lengths) > 1 else ""
            raise ValueError(f"length={shown(length)} must be {several}{self.lengths[-1]}")
        keep = slice(index, index + 1)
        one = AverageLaw(self.lengths[keep], self.mean[keep], self.variance[keep], self.truth, self.label)
        return attach(one, self.of)

    def __repr__(self) -> str:
        return (f"AverageLaw({self.label!r}, L={self.lengths[-1]}: bias {self.bias[-1]:.4g}, variance "
                f"{self.variance[-1]:.4g}, mse {self.mse[-1]:.4g})")


def average_law(problem: Any, algorithm: Any, n_rounds: int, *, function: str = "square", start: Any = None,
                truth: float | None = None, allow_unstable: bool = False) -> AverageLaw:
    """Exact law, up to second moments, of the time averages of stale SGLD and SGHMC.

    Parameters
    ----------
    problem : fedsim.Quadratic or fedsim.GaussianMean
        With the minibatches of the latter the variances are those of the minibatches themselves.
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
    n_rounds : int
        Largest L, at least 1.
    function : "square" or "identity"
        Sum of the squares of the coordinates, or of the coordinates, as in ``simulate(average=...)``.
    start : point (d,) or fedsim.Gaussian, optional
    truth : float, optional
        What bias is measured from; by default phi's mean under ``algorithm.target(problem)``.
    allow_unstable : bool

    Returns
    -------
    AverageLaw with L = 1, ..., n_rounds.

    Raises
    ------
    UnstableStepSize, NoExactLaw (both are ValueErrors), ValueError

    Source: none; the exact side of the stale-gradient paper's Theorems 2 to 7.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0], [[0.0]])
    >>> law = theory.stale.average_law(problem, fs.StaleSGLD(0.1, staleness=1), 2)
    >>> law.mean.round(12).tolist(), law.variance.round(12).tolist()
    ([0.2, 0.3], [0.08, 0.14])
    """
    one_of("function", function, ("square", "identity"))
    validate_sizes(problem, algorithm, start)
    if not isinstance(algorithm, (StaleSGLD, StaleSGHMC)):
        raise NoExactLaw(f"algorithm={shown(algorithm)}: time averages have an exact law here for stale SGLD "
                         "and SGHMC")
    quadratic = StaleFamily().solvable(problem)
    if not one_of("allow_unstable", allow_unstable, (True, False)):
        validate(problem, algorithm, start)
    length, goal = whole("n_rounds", n_rounds, 1), _truth(problem, algorithm, function, truth)
    refuse_law(n_schedules(algorithm) * 5.0 * float(length) ** 2, length)
    means, variances = np.swapaxes([_on_schedule(problem, quadratic.pooled(), one, length, function, start)
                                    for one in each_schedule(algorithm, length)], 0, 1)
    law = AverageLaw(np.arange(1, length + 1), means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0),
                     goal, f"average of {function} along {type(algorithm).__name__}")
    return attach(law, Provenance.of(problem, algorithm, start))


def _on_schedule(problem: Any, pooled: Any, algorithm: Any, length: int, function: str,
                 start: Any) -> tuple[Array, Array]:
    """Mean and variance on one schedule."""
    mean, cov = start_of(problem, algorithm, start)
    directions = Directions.of(pooled, cov)
    refuse_law(5.0 * float(length) ** 2 * len(directions.left), length)
    ages = algorithm.ages(length)
    steps = np.broadcast_to(algorithm.schedule.at(np.arange(length)), length)
    oldest = int(ages.max())
    refuse_bytes(8.0 * len(directions.left) * (oldest + 10) * (length + 1),  # nine rows to work with
                 f"covariances of n_rounds={length} iterates at dimension {pooled.dim} with ages up to "
                 f"{oldest}", "average over fewer, or use diagonal Hessians")
    delays = Delays(directions, algorithm.friction, oldest, length + 1, *directions.enter(mean, cov))
    with np.errstate(over="ignore", invalid="ignore"):
        sums, squares = (_squares if function == "square" else _identity)(directions, delays, steps, ages)
        if function == "square":
            squares = squares + _non_normal(problem, algorithm, delays, steps, ages)
        lengths = np.arange(1.0, length + 1.0)
        means, variances = sums / lengths, squares / lengths**2
    if not (np.isfinite(means).all() and np.isfinite(variances).all()):
        raise ValueError(f"step_size={algorithm.step_size!r}: the law leaves the range of float64 within "
                         f"n_rounds={length}; the step size is beyond the stability limit")
    return means, variances


def _truth(problem: Any, algorithm: Any, function: str, truth: float | None) -> float:
    if truth is not None:
        return real("truth", truth)
    target = algorithm.target(problem)
    return float((target.mean**2 + target.variances).sum() if function == "square" else target.mean.sum())


def _squares(directions: Directions, delays: Delays, steps: Array, ages: np.ndarray) -> tuple[Array, Array]:
    """Mean and variance of sum_{l <= L} |theta_l|^2 for every L."""
    vectors, centre = directions.vectors, directions.minimizer
    centre = centre if vectors is None else vectors.T @ centre
    left, right, same = directions.left, directions.right, directions.left == directions.right
    means, joint = np.empty(len(steps)), np.empty(len(steps))
    centred = np.empty((len(centre), len(steps) + 1))
    for number, (step, age) in enumerate(zip(steps.tolist(), ages.tolist(), strict=True)):
        row = delays.step(step, age)[:, 1:]  # without theta_0
        now, own = delays.newest
        here = centre + now
        centred[:, number + 1] = here
        before = centred[right, 1:number + 1] if len(right) > 1 else centred[:, 1:number + 1]
        crossed = 2.0 * np.vdot(row, row) + 4.0 * (here[left] @ (before * row).sum(axis=1))
        means[number] = here @ here + own[same].sum()
        joint[number] = 2.0 * crossed + 2.0 * own @ own + 4.0 * (here[left] * here[right]) @ own
    return np.cumsum(means), np.cumsum(joint)


def _identity(directions: Directions, delays: Delays, steps: Array, ages: np.ndarray) -> tuple[Array, Array]:
    """Mean and variance of sum_{l <= L} sum_i theta_li for every L."""
    vectors = directions.vectors
    load = np.ones(len(directions.curvatures)) if vectors is None else vectors.sum(axis=0)
    weights = load[directions.left] * load[directions.right]
    means, joint = np.empty(len(steps)), np.empty(len(steps))
    for number, (step, age) in enumerate(zip(steps.tolist(), ages.tolist(), strict=True)):
        row = delays.step(step, age)[:, 1:]
        now, own = delays.newest
        means[number] = directions.minimizer.sum() + load @ now
        joint[number] = 2.0 * (weights @ row.sum(axis=1)) + weights @ own
    return np.cumsum(means), np.cumsum(joint)


def _non_normal(problem: Any, algorithm: Any, delays: Delays, steps: Array, ages: np.ndarray) -> Any:
    """What third and fourth cumulants of minibatches add to the variance of sums of squares."""
    if not problem.has_minibatches:
        return 0.0
    third, fourth = problem.gradient_cumulants[1:]
    k3, k4 = -steps**3 * third, steps**4 * fourth  # of e_s = ... - h (gradient noise)
    curvature, friction, length = problem.curvature, algorithm.friction, len(steps)
    centre, depth = problem.pull / problem.curvature, delays.depth
    means = centre + delays.mean[0]
    response, velocity = np.zeros((depth, length)), np.zeros(length)
    squares, crossed, total = np.zeros(length), np.zeros(length), np.empty(length)
    for number, (step, age) in enumerate(zip(steps.tolist(), ages.tolist(), strict=True)):
        known = slice(0, number + 1)
        pull = step * curvature * response[(number - age) % depth, known]
        if friction is None:
            new = response[number % depth, known] - pull
            new[number] += 1.0
        else:
            velocity[known] = (1.0 - friction * step) * velocity[known] - pull
            velocity[number] += 1.0
            new = response[number % depth, known] + step * velocity[known]
        response[(number + 1) % depth] = 0.0
        response[(number + 1) % depth, known] = new
        squares[known] += new * new
        crossed[known] += means[number + 1] * new
        parts = k4[known] * squares[known] + 4.0 * k3[known] * crossed[known]
        total[number] = squares[known] @ parts
    return total


def combine_servers(laws: Sequence[AverageLaw], times: Any) -> AverageLaw:
    """Law of the time-weighted average sum_s (T_s / T) phi_s of independent servers, each at its last L.

    Parameters
    ----------
    laws : sequence of AverageLaw
        One per server, with the same truth.
    times : (S,)
        T_s = L_s h_s, positive.

    Returns
    -------
    AverageLaw with one L, that of all servers together.

    Raises
    ------
    ValueError
        For no laws or other objects, times of another shape or not greater than 0, and unequal truths.

    Source: stale-gradient paper, section 3.3: weights are times, not numbers of iterations.

    Examples
    --------
    >>> law = theory.stale.AverageLaw(np.array([2]), np.array([1.0]), np.array([0.5]), 0.0, "one")
    >>> theory.stale.combine_servers([law, law], [1.0, 1.0]).variance.tolist()
    [0.25]
    """
    instance("laws", laws, list, tuple, advice="of the laws of servers")
    if not laws:
        raise ValueError(f"laws={shown(laws)} must hold at least one AverageLaw")
    for i, law in enumerate(laws):
        instance(f"laws[{i}]", law, AverageLaw)
    lengths = shape("times", array("times", times, 1), (len(laws),), " (one per server)")
    for i, value in enumerate(lengths):
        positive(f"times[{i}]", float(value))
    truths = sorted({law.truth for law in laws})
    if len(truths) > 1:
        raise ValueError(f"laws have truths {truths}; they must be one and the same")
    shares = lengths / lengths.sum()
    mean = sum(share * law.mean[-1] for share, law in zip(shares, laws, strict=True))
    variance = sum(share**2 * law.variance[-1] for share, law in zip(shares, laws, strict=True))
    total = sum(int(law.lengths[-1]) for law in laws)
    return AverageLaw(np.array([total]), np.array([mean]), np.array([variance]), laws[0].truth,
                      f"{len(laws)} servers, weighted by time")
