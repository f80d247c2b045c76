"""Kernels without a matrix, as with a Metropolis step: do they leave the target as it is?

States are drawn from the target itself and handed to the kernel. If it leaves the target unchanged, the new
states have the target's law, whatever the kernel does: a test without burn-in and without autocorrelation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        Draws of the first look, by which most faults of 5 % of the scale are seen. While the p-value is below
        0.2 there is another look with four times as many, up to five.
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
        values = tested(apply(seeds, generator), target)
        place = min(values, key=lambda name: values[name])
        chance = min(1.0, len(values) * values[place])
        limit = level / 2.0 ** min(stage + 1, STAGES - 1)  # they sum to the level
        if chance <= limit or chance > CONTENT:
            break
    differs = chance <= limit
    times = "one call" if n_calls == 1 else f"{n_calls} calls"
    told = f"differs from it; p-value {chance:.2g} ({place})" if differs else (
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


def tested(draws: Array, target: Gaussian) -> dict[str, float]:
    """P-values of exact tests that draws (K, d) are of the target, by what they look at."""
    from scipy import stats

    white = np.linalg.solve(np.linalg.cholesky(target.cov), (draws - target.mean).T)
    dim, count = white.shape
    squares = (white**2).sum(axis=0)
    below = float(stats.chi2.cdf(squares.sum(), count * dim))
    above = float(stats.chi2.sf(squares.sum(), count * dim))
    found = {"mean": float(stats.chi2.sf(count * (white.mean(axis=1)**2).sum(), dim)),
             "scale": min(1.0, 2.0 * min(below, above)),
             "distances": float(stats.kstest(squares, stats.chi2(dim).cdf).pvalue)}
    alone = [float(stats.kstest(row, "norm").pvalue) for row in white]
    return found | {"coordinates": min(1.0, dim * min(alone))}
