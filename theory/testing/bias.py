"""In which order of the step size the stationary law of an algorithm tends to its target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.interfaces import validate_sizes
from fedsim.settings.validation import Array, read_only, whole

from ..exact import stationary_law

SETTLED = 0.1
"""How much the last slopes may differ, from each other and from half an integer, to be called an order."""
NOISE = 1e-12
"""W2 below this share of the target's size is rounding."""


@dataclass(frozen=True, eq=False)
class BiasOrder:
    """The order of a stationary bias.

    Attributes
    ----------
    order : float or None
        W2 falls as step_size**order; 0 where it does not fall. None where no order is seen.
    step_sizes, w2 : (n,)
        Halved each time, and W2 of the stationary law to the target.
    slopes : (n - 1,)
        log2 of the ratio of successive W2.
    reason : str
        What was seen, in words.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> found = theory.testing.bias_order(problem, fs.StaleSGLD(0.1, 0))
    >>> isinstance(found, theory.testing.BiasOrder), found.reason
    (True, 'W2 falls as step_size**1, to 0.000553')
    """

    order: float | None
    step_sizes: Array
    w2: Array
    slopes: Array
    reason: str


def bias_order(problem: Any, algorithm: Any, *, halvings: int = 6) -> BiasOrder:
    """Order in the step size of W2 between stationary law and target, from halved step sizes.

    Parameters
    ----------
    problem, algorithm : as for `theory.stationary_law`
        Any algorithm, beginning at its own step size.
    halvings : int, at least 2

    Returns
    -------
    BiasOrder

    Raises
    ------
    ValueError
        As of `theory.stationary_law`.

    Source: none; slopes of exact laws.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> theory.testing.bias_order(problem, fs.FALD(0.1, local_steps=3)).order
    1.0
    """
    validate_sizes(problem, algorithm)
    count = whole("halvings", halvings, 2, 40)
    sizes = algorithm.schedule.largest * 0.5 ** np.arange(count + 1)
    target = algorithm.target(problem)
    size = float(np.sqrt(np.abs(target.variances).max()) + np.abs(target.mean).max())
    w2 = np.array([float(stationary_law(problem, replace(algorithm, step_size=float(one))).w2(target))
                   for one in sizes])
    return judged_order(sizes, w2, size)


def judged_order(sizes: Array, w2: Array, scale: float) -> BiasOrder:
    """The order that these distances show, of a target of this size."""
    slopes = np.full(len(w2) - 1, np.nan)
    seen = w2 > NOISE * scale
    both = seen[1:] & seen[:-1]
    slopes[both] = np.log2(w2[:-1][both] / w2[1:][both])
    known = slopes[both]
    order: float | None = None
    if not seen.any():
        reason = f"no bias is seen: W2 is at most {NOISE:.0e} of the target's size, which is rounding"
    elif len(known) < 2:
        reason = f"W2 falls to rounding ({w2[-1]:.2g}) before an order is seen; begin at a larger step size"
    else:
        near = round(2.0 * float(known[-1])) / 2.0
        settled = abs(known[-1] - known[-2]) <= SETTLED and abs(known[-1] - near) <= SETTLED
        if settled and near == 0.0:
            order, reason = 0.0, f"W2 does not fall with the step size: it stays at {w2[-1]:.3g}"
        elif settled and near > 0.0:
            order, reason = near, f"W2 falls as step_size**{near:g}, to {w2[-1]:.3g}"
        else:
            reason = (f"no order is seen: the last slopes are {known[-2]:.2f} and {known[-1]:.2f}; halve "
                      "more often")
    return BiasOrder(order, read_only(sizes), read_only(w2), read_only(slopes), reason)
