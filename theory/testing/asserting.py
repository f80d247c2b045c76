"""The door for pytest: a kernel is the algorithm that it says it is, or the test fails with a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.interfaces import Problem
from fedsim.settings.validation import fraction, shown, such

from .comparing import compared, fitting, level
from .findings import Report
from .likeness import NONE, draws_for, matrices_of
from .probing import LEAVES, probe


def assert_samples(kernel: Callable[[Any, Any], Any], problem: Problem, like: Any, *, start: Any = None,
                   read: Callable[[Any], Any] | None = None, batched: bool = False,
                   batch_fraction: float = 1.0, smallest: float = 0.02, false_alarm: float = 1e-4,
                   missed: float = 1e-3, seed: int = 0) -> Report:
    """Fail unless a kernel does one round of an algorithm: matrix to rounding, noise by tests.

    As many seeds are drawn as it takes to see a noise whose standard deviation is off by `smallest`. They are
    fixed: a test that passes today passes tomorrow.

    Parameters
    ----------
    kernel : callable(seed, state) -> state
        As for `probe`.
    problem : e.g. fedsim.Quadratic
        Whose gradient the kernel has.
    like : an algorithm
        Shipped, of `fedsim.sampler`, or an `UpdateRule`.
    start, read, batched, seed
        As for `probe`.
    batch_fraction : float
        n/N of the kernel's minibatches, by which causes are looked for.
    smallest : float
        Relative fault of the noise's standard deviation that has to be seen.
    false_alarm, missed : float
        Chances, at most, that a right kernel fails, and that one with that fault passes.

    Returns
    -------
    Report
        What was found, where nothing differs.

    Raises
    ------
    AssertionError
        With the report, where the kernel differs.
    ValueError
        As for `probe`.

    Source: none; Bonferroni over chi-squared tests.

    Examples
    --------
    >>> problem = fs.Quadratic([2.0], [[1.0, 0.0]])
    >>> def kernel(seed, x):
    ...     noise = np.random.default_rng(seed).normal(size=2)
    ...     return x - 0.1 * problem.gradient(0, x) + np.sqrt(0.2) * noise
    >>> found = theory.testing.assert_samples(kernel, problem, like=fs.StaleSGLD(0.1, 0), smallest=0.1)
    >>> found.differs
    False
    """
    fitting(problem, like)
    false_alarm, missed = level("false_alarm", false_alarm), level("missed", missed)
    smallest = such("smallest", smallest, lambda one: 1e-4 <= one < 1.0, "be at least 1e-4 and less than 1")
    share = fraction("batch_fraction", batch_fraction) or 1.0
    values = np.linalg.eigvalsh(matrices_of(like, problem).noise)
    rank = int((values > NONE * max(float(values.max(initial=0.0)), 1e-300)).sum())
    count = max(2 * LEAVES, draws_for(smallest, false_alarm, missed, rank))
    found = probe(kernel, problem, start=start, read=read, n_draws=count, seed=seed, batched=batched,
                  temperature=float(like.temperature))
    findings = compared(found, problem, like, false_alarm, {"share": share})
    name = getattr(kernel, "__name__", type(kernel).__name__)
    result = Report(f"{name}, against {shown(like)}, by {count} draws", tuple(findings))
    if result.differs:
        raise AssertionError(str(result))
    return result


