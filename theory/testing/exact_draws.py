"""Kernels without a matrix, as with a Metropolis step: do they leave the target as it is?

States are drawn from the target itself and handed to the kernel. If it leaves the target unchanged, the new
states have the target's law, whatever the kernel does: a test without burn-in and without autocorrelation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fedsim.interfaces import Problem, offers
from fedsim.laws.gaussian import Gaussian
from fedsim.settings.validation import Array, positive, shown, whole

from .black_box import seeds_from
from .comparing import level as level_of
from .findings import Finding, Report
from .nested import Nested, as_numbers, asked, leaves

STAGES = 5
"""Looks at the evidence, at most."""
GROWTH = 4
"""Each look has so many times the draws of the one before."""
CONTENT = 0.2
"""A p-value from which on nothing more is asked."""


def invariance(kernel: Callable[[Any, Any], Any], problem: Problem, *, calls: int = 1,
               start: Callable[[Array, np.random.Generator], Any] | None = None,
               read: Callable[[Any], Any] | None = None, n_draws: int = 1000, false_alarm: float = 1e-4,
               temperature: float = 1.0, seed: int = 0) -> Report:
    """Say whether a kernel leaves the target unchanged, and no more than that.

    A kernel that does so may still be stuck, or slow: the identity leaves every target unchanged. One with a
    step size and without a Metropolis step does not, and `report` is for it.

    Means and covariances are compared with the target's, and the laws of each coordinate and of the distance
    from the mean. Coordinates are in standard deviations, and each is given those before it where they are
    correlated. A dependence that none of these shows, as of three signs of which two tell the third, passes.

    Parameters
    ----------
    kernel : callable(seed, state) -> state
        As for `probe`, affine or not.
    problem : e.g. fedsim.Quadratic
        With a Gaussian target.
    calls : int
        How often the kernel is applied, with new seeds; more calls show smaller faults.
    start : callable(point (d,), generator) -> nested arrays, optional
        A state whose `point` is read; its other parts, as a momentum, have to be drawn from their own
        stationary law. By default the state is the point.
    read : callable(state) -> (d,), optional
        By default the state's first array.
    n_draws : int
        Draws of the first look, by which most faults of 5 % of the scale are seen, a correlation of 0.2, and
        10 % of one coordinate in ten; half of that takes four times as many. While the p-value is below 0.2
        there is another look with four times as many, up to five.
    false_alarm : float
        Chance, at most, that a right kernel is said to differ, over all looks.
    temperature : float
        Of the target.
    seed : int

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For a target without a closed form; naming an argument that does not fit.

    Source: exact draws as in Geweke (2004), and looks that stop early as in Gandy and Scott (2020), with
    exact tests of a Gaussian.

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0, 0.0]])
    >>> def random_walk(seed, x):
    ...     generator = np.random.default_rng(seed)
    ...     y = x + generator.normal(size=2)
    ...     gain = problem.potential(0, x) - problem.potential(0, y)
    ...     return y if np.log(generator.uniform()) < gain else x
    >>> theory.testing.invariance(random_walk, problem).differs
    False
    >>> def langevin(seed, x):
    ...     noise = np.random.default_rng(seed).normal(size=2)
    ...     return x - 0.3 * problem.gradient(0, x) + np.sqrt(0.6) * noise
    >>> theory.testing.invariance(langevin, problem).differs
    True
    """
    offers("problem", problem, Problem)
    for name, value in (("kernel", kernel), ("start", start), ("read", read)):
        if not callable(value) and (name == "kernel" or value is not None):
            raise ValueError(f"{name}={shown(value)} must be a function")
    target = problem.target(positive("temperature", temperature))
    n_calls, count = whole("calls", calls, 1, 10_000), whole("n_draws", n_draws, 20, 100_000)
    level, first = level_of("false_alarm", false_alarm), whole("seed", seed, 0, 2**31)
    apply = _Applied(kernel, start, read, n_calls, target)
    sizes = [count * GROWTH**stage for stage in range(STAGES)]
    if n_calls * sum(sizes) >= 2**30:
        raise ValueError(f"calls={n_calls} with n_draws={count} needs {n_calls * sum(sizes)} seeds; there "
                         f"are {2**30}")
    generator, used = np.random.default_rng(first), 0
    for stage, size in enumerate(sizes):
        seeds = used + seeds_from(first, n_calls * size).reshape(size, n_calls)
        used += n_calls * size
        worst = min(tested(apply(seeds, generator), target), key=lambda one: one.chance)
        chance = min(1.0, worst.chance)
        limit = level / 2.0 ** min(stage + 1, STAGES - 1)  # they sum to the level
        if chance <= limit or chance > CONTENT:
            break
    differs = chance <= limit
    times = "one call" if n_calls == 1 else f"{n_calls} calls"
    told = f"differs from it; p-value {chance:.2g} ({worst.place})" if differs else (
        f"agrees with it: the smallest p-value is {chance:.2g}")
    name = getattr(kernel, "__name__", type(kernel).__name__)
    return Report(f"{name}, from exact draws of the target", (
        Finding("invariance", f"After {times} from {size} exact draws of the target the law {told}.", differs,
                chance),
        Finding("reach", "Whether the target is reached, and how fast, is not looked at.")))


class _Applied:
    """Draws of what a kernel makes of exact draws."""

    def __init__(self, kernel: Callable[[Any, Any], Any], start: Any, read: Any, calls: int,
                 target: Gaussian) -> None:
        self.kernel, self.start, self.read, self.calls, self.target = kernel, start, read, calls, target
        self._root = np.linalg.cholesky(target.cov)

    def __call__(self, seeds: np.ndarray, generator: np.random.Generator) -> Array:
        """New points (K, d), of seeds (K, calls)."""
        found = np.empty((len(seeds), self.target.dim))
        for i, row in enumerate(seeds.tolist()):
            point = self.target.mean + self._root @ generator.standard_normal(self.target.dim)
            state = point if self.start is None else asked("start(point, generator)", self.start, point,
                                                           generator)
            nested = Nested("state", state)
            for seed in row:
                state = nested.tree(nested.flat(asked("kernel(seed, state)", self.kernel, seed, state)))
            found[i] = self._seen(state)
        if not np.isfinite(found).all():
            raise ValueError("kernel gives a state that is not finite")
        return found

    def _seen(self, state: Any) -> Array:
        read = self.read or (lambda state: next(leaves("state", state))[1])
        value = asked("read(state)", read, state)
        seen = as_numbers("read(state)", value)
        if seen.size != self.target.dim:
            raise ValueError(f"read(state) has shape {seen.shape}; it must have the {self.target.dim} "
                             "numbers of a point of the target")
        return seen.ravel()


class Worst(NamedTuple):
    """The smallest p-value of `tests` of one kind, which share this part of the level.

    Each is uniform for exact draws; `place` says which test it is.
    """

    place: str
    pvalue: float
    tests: int
    share: float

    @property
    def chance(self) -> float:
        """The level of all tests at which this one says that the law differs; may be above 1."""
        return self.pvalue * self.tests / self.share


def tested(draws: Array, target: Gaussian) -> list[Worst]:
    """Exact tests that draws (K, d) are of the target, the worst of each kind.

    Half of the level is for the mean, the scale, distances, and laws of coordinates. A quarter is for each of
    variances of coordinates, and of sums and differences of two: together they hold the whole covariance.
    """
    from scipy import stats

    root = np.linalg.cholesky(target.cov)
    white = np.linalg.solve(root, (draws - target.mean).T)
    dim, count = white.shape
    squares, lengths = white @ white.T, (white**2).sum(axis=0)
    correlated = np.abs(np.tril(root, -1)).max(axis=1) > 1e-9 * np.sqrt(np.diag(target.cov))
    given = " given those before" if correlated.any() else ""
    alone = [float(stats.kstest(row, "norm").pvalue) for row in white]
    place = int(np.argmin(alone))
    share = 0.125 if dim > 1 else 0.25
    found = [
        Worst("mean", float(stats.chi2.sf(count * (white.mean(axis=1)**2).sum(), dim)), 1, share),
        Worst("scale", _two_sided(float(np.trace(squares)), count * dim), 1, share),
        Worst("distances", float(stats.kstest(lengths, stats.chi2(dim).cdf).pvalue), 1, share),
        Worst(f"law of coordinate {place}{given}", alone[place], dim, share)]
    return [*found, *_by_covariance(squares, count, given)] if dim > 1 else found


def _by_covariance(squares: Array, count: int, given: str) -> list[Worst]:
    """The worst coordinate, and the worst sum or difference of two, from sums of products (d, d)."""
    own = np.diag(squares)
    later, earlier = np.tril_indices(len(own), -1)
    middle, product = 0.5 * (own[later] + own[earlier]), squares[later, earlier]

    def pair(i: int) -> str:
        sign, place = divmod(i, len(later))
        return f"the {('sum', 'difference')[sign]} of coordinates {earlier[place]} and {later[place]}{given}"

    return [_extreme(own, count, lambda i: f"coordinate {i}{given}"),
            _extreme(np.concatenate([middle + product, middle - product]), count, pair)]


def _extreme(sums: Array, count: int, name: Callable[[int], str]) -> Worst:
    """The worst of sums of `count` squares: they have one law, so it is the smallest or the largest."""
    ends = [int(np.argmin(sums)), int(np.argmax(sums))]
    chances = [_two_sided(float(sums[i]), count) for i in ends]
    worst = int(np.argmin(chances))
    size = float(np.sqrt(sums[ends[worst]] / count))
    place = f"standard deviation of {name(ends[worst])}, {size:.4g} times the target's"
    return Worst(place, chances[worst], len(sums), 0.25)


def _two_sided(value: float, freedom: int) -> float:
    """P-value of a sum of squares, too small or too large."""
    from scipy import stats

    return 2.0 * min(float(stats.chi2.cdf(value, freedom)), float(stats.chi2.sf(value, freedom)))
