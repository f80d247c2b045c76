"""One false-alarm level for the whole test run.

Every random comparison goes through the `alarm` fixture. With at most `MAX_STATISTICS` two-sided
comparisons, each judged at level FALSE_ALARM / MAX_STATISTICS, the chance that a run of a correct
program raises any alarm is at most `FALSE_ALARM`, however the statistics depend on one another
(Bonferroni). The statistics are counted, and a run that exceeds its budget fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-3
MAX_STATISTICS = 200_000
P_LIMIT = FALSE_ALARM / MAX_STATISTICS
Z_LIMIT = float(stats.norm.isf(P_LIMIT / 2.0))  # about 5.85
MARGIN = 1.5  # a mutation counts as caught only beyond MARGIN * Z_LIMIT


class Alarm:
    """Judges statistics at the run's level and counts them.

    Attributes
    ----------
    count : int
        Statistics judged so far in this process.
    """

    def __init__(self) -> None:
        self.count = 0

    def _take(self, values: Any, name: str) -> np.ndarray:
        found = np.atleast_1d(np.asarray(values, dtype=np.float64))
        assert found.size > 0, f"{name}: no statistic to judge"
        bad = np.argwhere(~np.isfinite(found))
        assert not len(bad), f"{name}{bad[0].tolist()} = {found[tuple(bad[0])]} is not finite"
        return found

    def assert_normal(self, z: Any, name: str = "z") -> None:
        """No standard normal statistic in `z` (any shape) is larger than `Z_LIMIT` in size.

        The statistics must be normal far into the tails. For ratios by an estimated standard error
        use `assert_student`, and elsewhere a p-value of the exact law.
        """
        found = self._take(z, name)
        self.count += found.size
        worst = np.unravel_index(int(np.abs(found).argmax()), found.shape)
        place = [int(i) for i in worst]
        assert abs(found[worst]) <= Z_LIMIT, (
            f"{name}{place} = {found[worst]:.3f} is beyond {Z_LIMIT:.3f} standard errors "
            f"({int((np.abs(found) > Z_LIMIT).sum())} of {found.size} are)")

    def assert_student(self, t: Any, dof: Any, name: str = "t") -> None:
        """No Student statistic with `dof` degrees of freedom is beyond the run's level."""
        found = self._take(t, name)
        self.assert_pvalue(2.0 * stats.t.sf(np.abs(found), dof), name)

    def assert_pvalue(self, p: Any, name: str = "p") -> None:
        """No p-value (any shape) is below the run's level for one statistic."""
        found = self._take(p, name)
        assert ((found >= 0.0) & (found <= 1.0)).all(), f"{name} holds values outside [0, 1]"
        self.count += found.size
        worst = np.unravel_index(int(found.argmin()), found.shape)
        place = [int(i) for i in worst]
        assert found[worst] >= P_LIMIT, (
            f"{name}{place} = {found[worst]:.3g} is below {P_LIMIT:.3g} "
            f"({int((found < P_LIMIT).sum())} of {found.size} are)")

    def must_fail(self, z: Any, name: str = "z") -> None:
        """The largest of these normal statistics is beyond the limit by a clear margin.

        For mutation tests: a deliberately wrong program has to be caught. Costs no budget, because a
        correct program cannot raise an alarm here.
        """
        found = self._take(z, name)
        largest = float(np.abs(found).max())
        assert largest > MARGIN * Z_LIMIT, (
            f"{name}: the mutation is not caught, the largest statistic {largest:.3f} is not beyond "
            f"{MARGIN:g} * {Z_LIMIT:.3f}")
