"""Bias, variance and mean squared error of time averages over replicas; scores of predictions.

With phi_r the average of a test function along replica r (``Run.averages``) and phibar what it estimates,

    bias = E phi - phibar,    variance = E (phi - E phi)^2,    mse = E (phi - phibar)^2 = bias^2 + variance.

Intervals are those of Student for bias and mse, and for the variance Student's in its logarithm with the
standard error from the fourth moment: no normality of phi is assumed, and they are approximate.

The scores of predicted probabilities are those of `predictions`.

Source: stale-gradient paper, section 1 for the errors and 3.3 for several servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..settings.alignment import aligned
from ..settings.lazy_import import lazy
from ..settings.validation import Array, array, instance, positive, real, shape
from .distance import check_quantile
from .predictions import accuracy, brier_score, calibration_error, log_loss, predictive

stdtrit = lazy("scipy.special", "stdtrit")

__all__ = [
    "Errors", "Estimated", "accuracy", "brier_score", "calibration_error", "combine", "errors", "log_loss",
    "predictive",
]


LARGEST = 1e75
"""Size of averages and of their truth, whose fourth powers are taken."""


class Estimated(NamedTuple):
    """A number estimated from replicas: value, standard error, and the ends of its interval.

    Examples
    --------
    >>> found = fs.estimators.Estimated(0.5, 0.1, 0.3, 0.7)
    >>> found.low <= found.value <= found.high
    True
    """

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Errors:
    """Errors of a time average over R replicas.

    Attributes
    ----------
    bias, variance, mse : Estimated
        `bias` has its sign. The values obey mse = bias^2 + (R - 1) / R variance.
    truth : float
    n_replicas : int
    level : float

    Examples
    --------
    >>> found = fs.estimators.errors([1.0, 2.0, 3.0, 6.0], truth=2.0)
    >>> found.n_replicas, found.level
    (4, 0.95)
    """

    bias: Estimated
    variance: Estimated
    mse: Estimated
    truth: float
    n_replicas: int
    level: float


def _of_mean(values: Array, half: float, least: float) -> Estimated:
    mean = float(values.mean())
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Estimated(mean, error, max(least, mean - half * error), mean + half * error)


def errors(averages: Any, truth: float, level: float = 0.95) -> Errors:
    """Bias, variance and mean squared error with their intervals.

    Parameters
    ----------
    averages : (R,)
        One time average per replica, at least 4: ``simulate(..., average="square").averages``.
    truth : float
        phibar, what the average estimates.
    level : float in (0, 1)
        Of each interval.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> found = fs.estimators.errors([1.0, 2.0, 3.0, 6.0], truth=2.0)
    >>> found.bias.value, round(found.variance.value, 12), found.mse.value
    (1.0, 4.666666666667, 4.5)
    """
    given = array("averages", averages, 1)
    if len(given) < 4:
        raise ValueError(f"averages has {len(given)} entries; it must have at least 4")
    goal, largest = real("truth", truth), int(np.argmax(np.abs(given)))
    for name, value in ((f"averages[{largest}]", given[largest]), ("truth", goal)):
        if abs(value) > LARGEST:
            raise ValueError(f"{name}={value:g} must be at most {LARGEST:g} in size: fourth powers are "
                             "taken")
    check_quantile(level)
    n = len(given)
    half = float(stdtrit(n - 1, 0.5 * (1.0 + level)))
    gap = given - given.mean()
    variance = float(gap @ gap / (n - 1))
    fourth = float((gap**4).mean())
    error = float(np.sqrt(max(fourth - (n - 3) / (n - 1) * variance**2, 0.0) / n))
    factor = float(np.exp(half * error / variance)) if variance > 0.0 else 1.0
    return Errors(_of_mean(given - goal, half, -np.inf),
                  Estimated(variance, error, variance / factor, variance * factor),
                  _of_mean((given - goal) ** 2, half, 0.0), goal, n, level)


def combine(averages: Sequence[Any], times: Any) -> Array:
    """Time-weighted averages sum_s (T_s / T) phi_s of independent servers, replica by replica.

    Parameters
    ----------
    averages : sequence of (R,)
        Averages of each server. Servers must have been run with different seeds.
    times : (S,)
        T_s = L_s h_s, iterations times step size: weights are times, not numbers of iterations.

    Returns
    -------
    (R,)

    Examples
    --------
    >>> fs.estimators.combine([[1.0, 2.0], [4.0, 5.0]], times=[2.0, 1.0]).tolist()
    [2.0, 3.0]
    """
    instance("averages", averages, list, tuple, np.ndarray)
    if getattr(averages, "ndim", 1) == 0 or len(averages) == 0:
        raise ValueError("averages is empty; it must hold the averages of at least one server")
    given: list[Array] = []
    for i, part in enumerate(aligned(("averages", averages, 1))[0]):
        given.append(array(f"averages[{i}]", part, 1))
        shape(f"averages[{i}]", given[i], given[0].shape, " (one per replica, as of the first server)")
    spans = shape("times", array("times", times, 1), (len(given),), " (one per server)")
    for i, value in enumerate(spans):
        positive(f"times[{i}]", float(value))
    return np.asarray(np.tensordot(spans / spans.sum(), np.array(given), axes=1))
