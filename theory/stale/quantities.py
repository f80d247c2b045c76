"""What the rates are about: errors of the average of squares, from its exact law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedsim.problems.gaussian_mean import GaussianMean
from fedsim.validation import Array

from ..bound import Bound
from ..check import Measured, quantity
from ..constants import Potentials, potentials
from ..exact.stale import AverageLaw, average_law


@potentials.register
def _of_gaussian_mean(problem: GaussianMean) -> Potentials:
    """Those of the gradients that the chain follows."""
    return potentials(problem.as_quadratic())


def _exact(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> AverageLaw:
    return average_law(problem, algorithm, n_rounds, start=start)


def _measure(pick: Callable[[AverageLaw], Array]) -> Callable[[Bound, Any, float], Measured]:
    def measure(bound: Bound, law: AverageLaw, level: float) -> Measured:
        at = np.searchsorted(law.lengths, bound.rounds)
        value = pick(law)[at]
        return Measured(value, bound.rounds, float(np.abs(value).max()))

    return measure


quantity("average_bias", "|E phi_L - phibar| of the average of squares over L iterates",
         _measure(lambda law: np.abs(law.bias)), _exact)
quantity("average_mse", "E (phi_L - phibar)^2 of the average of squares over L iterates",
         _measure(lambda law: law.mse), _exact)
quantity("average_variance", "Var phi_L of the average of squares over L iterates",
         _measure(lambda law: law.variance), _exact)
