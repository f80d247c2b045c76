"""How many local steps FA-LD's bounds ask for (section 4.3.1, "Optimal choice of K")."""

from __future__ import annotations

import functools
from dataclasses import replace
from math import floor, sqrt

from fedsim.algorithms.fa_ld import FALD
from fedsim.settings.validation import one_of, real, whole

from ..facts import Constants
from ..tuning import Plan
from .notation import FULL
from .planning import plan


def optimal_local_steps(condition_number: float, *, rule: str = "(K-1)^2") -> tuple[int, ...]:
    """Local steps that minimise the predicted rounds while the cap does not bind.

    Parameters
    ----------
    condition_number : float
        kappa, at least 1.
    rule : "(K-1)^2" or "K^2"
        Minimise ((K-1)^2 + kappa)/K (Theorem 4.9), least at sqrt(1 + kappa), or (K^2 + kappa)/K (the
        text of section 4.3.1), least at sqrt(kappa).

    Returns
    -------
    Every integer minimiser, increasing: two where there is a tie.

    Raises
    ------
    ValueError
        For a condition number below 1, and an unknown rule.

    Source: FA-LD section 4.3.1.

    Examples
    --------
    >>> theory.fa_ld.optimal_local_steps(33.97), theory.fa_ld.optimal_local_steps(1.0)
    ((6,), (1, 2))
    """
    kappa = real("condition_number", condition_number)
    if kappa < 1.0:
        raise ValueError(f"condition_number={condition_number!r} must be at least 1")
    shift = {"(K-1)^2": 1, "K^2": 0}[one_of("rule", rule, ("(K-1)^2", "K^2"))]
    best = floor(sqrt(shift + kappa))
    costs = {K: ((K - shift) ** 2 + kappa) / K for K in range(max(1, best - 1), best + 2)}
    return tuple(K for K, cost in costs.items() if cost <= min(costs.values()) * (1.0 + 1e-14))


def best_plan(constants: Constants, algorithm: FALD, eps: float, *, largest: int = 10**6) -> Plan:
    """The plan with the fewest predicted rounds over `local_steps`, by Theorem 4.9 or 4.8.

    Parameters
    ----------
    constants, algorithm, eps
        As for `plan`; the algorithm's own local steps are replaced too. Full participation.
    largest : int
        Search up to this many local steps.

    Returns
    -------
    Plan with the fewest predicted rounds; fewer local steps may do as well where rounds are few.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-LD sections 4.3.1, with the cap 1/(2L) on the step size taken into account, and 4.3.2.

    Examples
    --------
    >>> known = theory.Constants(dim=1, strong_convexity=1.0, smoothness=8.0, weights=[1.0],
    ...     initial_distance=1.0)
    >>> theory.fa_ld.best_plan(known, fs.FALD(0.1), 0.1).local_steps
    3
    """
    largest = whole("largest", largest, 1)
    if isinstance(algorithm, FALD):
        FULL.require(algorithm)

    @functools.cache
    def at(steps: int) -> Plan:
        return plan(constants, replace(algorithm, local_steps=steps) if isinstance(algorithm, FALD)
                    else algorithm, eps)

    def needed(steps: int) -> tuple[float, ...]:
        return at(steps).n_rounds, at(steps).value or 0.0

    # rounds fall with K while the largest step size limits, and up to about sqrt(1 + kappa); then they rise
    low, middle, high = 1, 1, min(2, largest)
    while high > middle and needed(high) < needed(middle):
        low, middle, high = middle, high, min(2 * high, largest)
    while high - low > 2:
        left = low + round(0.382 * (high - low))
        right = low + high - left
        low, high = (low, right) if needed(left) <= needed(right) else (left, high)
    return at(min(range(low, high + 1), key=lambda steps: (at(steps).n_rounds, steps)))
