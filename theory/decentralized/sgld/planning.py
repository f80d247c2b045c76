"""Step sizes that DE-SGLD's Theorem 1 asks for.

Remark 2 takes eta = c log(sqrt K)/(mu K) for 2 K iterations. That is within the theorem's range exactly when

    log K <= K/a,   a = c (L + mu) / (2 mu min(1, 1 + lambda_N)),

for which K >= max(34, a^2/e) suffices. `plan` inverts Theorem 1 itself, numerically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.network import check_mixing, smallest_eigenvalue
from fedsim.settings.validation import one_of, positive, real, whole

from ...bound import Bound
from ...facts import Constants
from ...tuning import planner
from .bounds import w2_bound
from .target import step_size_limit


def ratio(strong_convexity: float, smoothness: float, mixing: Any, c: float,
          room: Callable[[float], float]) -> float:
    """a of Remarks 2 and 12: c (L + mu)/(mu room), with the room that a theorem makes of 1 + lambda_N."""
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    if real("c", c) <= 1.0:
        raise ValueError(f"c={c!r} must be greater than 1")
    return c * (L + mu) / (mu * room(1.0 + smallest_eigenvalue(check_mixing(mixing))))


def enough(a: float) -> int:
    """Iterations K from which on log K <= K/a."""
    return ceil(max(34.0, a**2 / np.e))


def budget_step(strong_convexity: float, n_iterations: int, c: float, a: float, theorem: str,
                remark: str) -> float:
    """c log(sqrt K)/(mu K) of a remark, where it is within the theorem: where log K <= K/a."""
    K = whole("n_iterations", n_iterations, 2)
    if np.log(K) > K / a:
        raise ValueError(f"n_iterations={K} gives log K={np.log(K):.4g} more than K/a={K / a:.4g}: the step "
                         f"size is beyond {theorem}; {enough(a)} or more suffices ({remark})")
    return float(c * 0.5 * np.log(K) / (strong_convexity * K))


def _room(share: float) -> float:
    return 2.0 * min(1.0, share)


def least_iterations(strong_convexity: float, smoothness: float, mixing: Any, c: float = 1.5, *,
                     variant: str = "corrected") -> int:
    """Iterations K from which on Remark 2's step size is within Theorem 1: max(34, a^2/e).

    Parameters
    ----------
    strong_convexity, smoothness : float
        mu and L of the components.
    mixing : (N, N)
    c : float
        Greater than 1.
    variant : "corrected" or "printed"
        Printed max(e, a^2/e), which is not sufficient, with 1 + lambda_N for min(1, 1 + lambda_N).

    Returns
    -------
    int

    Raises
    ------
    ValueError
        For curvatures not greater than 0, c that is not greater than 1, an unknown variant, and a matrix that
        is no mixing matrix.

    Source: DE-SGLD Remark 2.

    Examples
    --------
    >>> [theory.de_sgld.least_iterations(1.0, L, fs.network.complete(4)) for L in (4.0, 50.0)]
    [34, 539]
    """
    if one_of("variant", variant, ("corrected", "printed")) == "printed":
        a = ratio(strong_convexity, smoothness, mixing, c, lambda share: 2.0 * share)
        return ceil(max(np.e, a**2 / np.e))
    return enough(ratio(strong_convexity, smoothness, mixing, c, _room))


def remark_step_size(strong_convexity: float, smoothness: float, mixing: Any, n_iterations: int,
                     c: float = 1.5) -> float:
    """eta = c log(sqrt K)/(mu K) of Remark 2, for 2 K iterations, checked to be within Theorem 1.

    Parameters
    ----------
    strong_convexity, smoothness, mixing, c
        As for `least_iterations`.
    n_iterations : int
        K, at least 2.

    Returns
    -------
    float
        eta, in the units of 1/smoothness.

    Raises
    ------
    ValueError
        Where log K > K/a: the step size is beyond the theorem's range.

    Source: DE-SGLD Remark 2, with the condition corrected.

    Examples
    --------
    >>> round(theory.de_sgld.remark_step_size(1.0, 4.0, fs.network.complete(4), 1000), 6)
    0.005181
    """
    a = ratio(strong_convexity, smoothness, mixing, c, _room)
    return budget_step(strong_convexity, n_iterations, c, a, "Theorem 1", "DE-SGLD Remark 2")


@dataclass(frozen=True)
class Plan:
    """Parameters and iterations that a theorem asks for.

    Attributes
    ----------
    eps : float
        W2 of the average to be reached.
    step_size : float
    n_rounds : int
        Iterations.
    cap_binds : bool
        True when the step size is the largest that the theorem allows.
    algorithm : fedsim.DESGLD or fedsim.DESGHMC
        With these parameters.

    Examples
    --------
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> found = theory.de_sgld.Plan(0.1, 0.01, 500, False, algorithm)
    >>> found.n_rounds, found.algorithm.step_size
    (500, 0.01)
    """

    eps: float
    step_size: float
    n_rounds: int
    cap_binds: bool
    algorithm: Any


def planned(eps: float, cap: float, chosen: Callable[[float], Any], bound: Callable[..., Bound]) -> Plan:
    """The largest step size up to `cap` whose floor is at most eps/2, and the first round within eps.

    Parameters
    ----------
    eps, cap : float
    chosen : callable(step_size) -> algorithm
    bound : callable(algorithm, n_rounds=, record=) -> Bound

    Raises
    ------
    ValueError
        Where step size or iterations leave the range of numbers.
    """
    eps = positive("eps", eps)

    def floor(log_step: float) -> float:
        found = bound(chosen(float(np.exp(log_step))), n_rounds=0).floor
        assert found is not None
        return float(np.log(found / (0.5 * eps)))

    high = low = float(np.log(cap))
    binds = floor(high) <= 0.0
    while not binds and floor(low) > 0.0:
        low -= 5.0
        if low < -700.0:
            raise ValueError(f"eps={eps!r} is too small: the planned step size underflows")
    step = cap if binds else float(np.exp(brentq(floor, low, min(low + 5.0, high), xtol=1e-10) - 1e-9))
    algorithm = chosen(step)
    return Plan(eps, step, _first_round(eps, partial(bound, algorithm)), binds, algorithm)


def _first_round(eps: float, bound: Callable[..., Bound]) -> int:
    """The first iteration at which the bound, which falls, is at most eps."""
    def within(rounds: Any) -> Any:
        found = bound(n_rounds=int(np.max(rounds)), record=rounds)
        return found.value[np.isin(found.rounds, rounds)] <= eps

    grid = np.concatenate([[0], 2 ** np.arange(53)])
    outside = np.flatnonzero(~within(grid))
    if not len(outside):
        return 0
    if outside[-1] + 1 == len(grid):
        raise ValueError(f"eps={eps!r} is too small: more than 2^52 iterations would be planned")
    low, high = int(grid[outside[-1]]), int(grid[outside[-1] + 1])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within([middle])[-1] else (middle, high)
    return high


def plan(constants: Constants, algorithm: DESGLD, eps: float) -> Plan:
    """Step size and iterations after which Theorem 1 guarantees W2 <= eps of the average.

    The largest step size whose floor is eps/2, then the first iteration with a bound of at most eps.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGLD
        Its step size is replaced.
    eps : float

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        Naming argument, value and condition; `NotApplicable` for a network that is not connected.

    Source: DE-SGLD Theorem 1.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> found = theory.de_sgld.plan(theory.constants(problem, algorithm), algorithm, 0.5)
    >>> float(f"{found.step_size:.2g}"), found.n_rounds, found.cap_binds
    (0.00097, 1591, False)
    """
    if not isinstance(algorithm, DESGLD):
        raise ValueError(f"algorithm={algorithm!r} must be a DESGLD")
    if not isinstance(constants, Constants):
        raise ValueError(f"constants={constants!r} must be a theory.Constants")
    # a hair within the range, at whose end the floor may be huge
    cap = (1.0 - 1e-6) * step_size_limit(constants.strong_convexity, constants.smoothness, algorithm.mixing)
    return planned(eps, cap, lambda step: replace(algorithm, step_size=step), partial(w2_bound, constants))


@planner(DESGLD)
def _planned(constants: Constants, algorithm: DESGLD, eps: float) -> tuple[DESGLD, int]:
    found = plan(constants, algorithm, eps)
    return found.algorithm, found.n_rounds
