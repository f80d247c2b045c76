"""Exact laws of the benchmarks, against which samples are judged."""

from __future__ import annotations

from typing import Any

import numpy as np

import theory
from theory.exact.delay import average_law

from .judge import Finding, judge
from .stale import StaleTables
from .with_fedsim import algorithm_of, problem_of

SETTLED = 4000
"""Updates after which a time average's mean and variance, times L and L^2, grow by constants."""


class Laws:
    """Exact laws of what a case's contestants return."""

    def __init__(self, tables: Any) -> None:
        self.tables = tables
        self.problem, self.algorithm = problem_of(tables), algorithm_of(tables)

    def judge(self, samples: np.ndarray, n_rounds: int) -> Finding:
        """The law test of what was returned after so many rounds."""
        if isinstance(self.tables, StaleTables) and self.tables.averages:
            return judge(samples, *self._average(n_rounds), gaussian=False)
        kind = "full" if getattr(self.problem, "structure", "dense") == "dense" else "diagonal"
        law = theory.exact_law(self.problem, self.algorithm, n_rounds, record=[], covariance=kind)
        assert law.cov is not None
        return judge(samples, law.mean[-1], law.cov[-1], gaussian=law.is_gaussian)

    def _average(self, n_rounds: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean (1,) and variance (1,) of the average of squares.

        The cost of the exact variance grows with L^2. Correlations of the chain die out geometrically,
        so that the mean of the sum and its variance are straight lines in L from `SETTLED` on.

        Raises
        ------
        RuntimeError
            When the chain is too slow for that.
        """
        law = average_law(self.problem, self.algorithm, min(n_rounds, SETTLED))
        mean, variance = law.lengths * law.mean, law.lengths**2 * law.variance
        if n_rounds <= SETTLED:
            return mean[-1:] / n_rounds, variance[-1:] / n_rounds**2
        result = []
        for values, power in ((mean, 1), (variance, 2)):
            slopes = np.diff(values)
            if abs(slopes[-1] - slopes[SETTLED // 2]) > 1e-9 * abs(slopes[-1]):
                raise RuntimeError(f"the average has not settled after {SETTLED} updates: use a larger step")
            result.append((values[-1:] + (n_rounds - SETTLED) * slopes[-1]) / n_rounds**power)
        return result[0], result[1]
