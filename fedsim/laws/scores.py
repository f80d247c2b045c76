"""ZScores: how far replicas are from a law, in standard errors and in a sentence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..settings.lazy import lazy
from ..settings.validation import Array

ndtr, ndtri = lazy("scipy.special", "ndtr", "ndtri")

_LEVEL = 0.01
"""Of the p-value, at which scores are said to differ."""


class _Scores(NamedTuple):
    mean: Array
    cov: Array | None


class ZScores(_Scores):
    """Deviations from a law in standard errors: mean (n, d), cov (n, d, d), (n, d) or None.

    Its `note` says what is not known of run or law, or is known to differ.

    Examples
    --------
    >>> import fedsim as fs, theory
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.1)
    >>> law = theory.exact_law(problem, algorithm, 20)
    >>> fs.simulate(problem, algorithm, 20, 1000, seed=1).z_scores(law)
    ZScores(largest |z| = 1.4 among 40, usually about 2.38, p <= 1: agrees with the law at level 0.01)
    """

    note = ""

    def largest(self) -> float:
        """Largest size of all of them."""
        parts = [np.abs(part).max() for part in self if part is not None and part.size]
        return float(np.max(parts))

    @property
    def n_random(self) -> int:
        """How many there are: each covariance once, and none that has to be 0, as at a point."""
        parts = [part if part.ndim < 3 else part[:, *np.triu_indices(part.shape[-1])]
                 for part in self if part is not None]
        return int(sum(np.count_nonzero(part) for part in parts))

    def usual_largest(self) -> float:
        """Median of the largest size of as many independent standard normals; dependence makes it smaller."""
        return float(-ndtri(-np.expm1(np.log(0.5) / self.n_random) / 2.0)) if self.n_random else 0.0

    def p_value(self) -> float:
        """Bound on the probability of so large a size if run and law agree, however the scores depend.

        Twice the normal tail of the largest, times their number (Bonferroni), at most 1.
        """
        return float(min(2.0 * max(1, self.n_random) * ndtr(-self.largest()), 1.0))  # not a number stays so

    def __repr__(self) -> str:
        p, note = self.p_value(), f". {self.note}" if self.note else ""
        says = "agrees with" if p >= _LEVEL else "differs from" if p < _LEVEL else "cannot be compared with"
        return (f"ZScores(largest |z| = {self.largest():.3g} among {self.n_random}, usually about "
                f"{self.usual_largest():.3g}, p <= {p:.2g}: {says} the law at level {_LEVEL}{note})")
