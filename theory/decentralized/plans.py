"""Remarks 2 and 12: the shapes of Theorems 1 and 11, and step sizes that they ask for.

DE-SGHMC's alpha = eta^2 stands where eta of DE-SGLD does. All unknown constants of the shapes are one in
units in which both sides are lengths: mu^(-1/2) and alpha^(1/2) are. A remark's alpha = c log(sqrt K)/(mu K)
for 2 K iterations is within its theorem exactly when log K <= K/a, for which K >= max(34, a^2/e) suffices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, e as E
from typing import Any

import numpy as np

from fedsim.settings.lazy_import import lazy
from fedsim.settings.network import check_mixing, smallest_eigenvalue
from fedsim.settings.validation import instance, positive, real, whole

from ..declare.bound import Assumption, Bound
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from .applicable import NotApplicable
from .setting import Setting

brentq = lazy("scipy.optimize", "brentq")

_SMALL = "1 - alpha mu (1 - alpha L/2) >= second_eigenvalue^2"
_BUDGET = "step size of the average = c log(sqrt K)/(mu K) with c > 1, K half the iterations"


def _small(s: Any) -> Assumption:
    room = 1.0 - s.base.alpha * s.base.mu_prime - s.base.second**2
    return Assumption(_SMALL, room >= 0.0, room)


def _chosen(s: Any, n_rounds: int) -> Assumption:
    factor = _factor(s.base, n_rounds)
    return Assumption(_BUDGET, factor > 1.0, factor - 1.0 if factor != 1.0 else -1.0)


SMALL, BUDGET = Hypothesis(_SMALL, _small), Hypothesis(_BUDGET, _chosen)


def _factor(s: Setting, n_rounds: int) -> float:
    """c of the budget's step size."""
    K = 0.5 * whole("n_rounds", n_rounds, 4)
    return float(s.alpha * s.mu * K / (0.5 * np.log(K)))


def step_shape(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """exp(-alpha mu' k/2) a_0 + sqrt(alpha), of (22) and (42)."""
    return {"initialization": np.exp(-0.5 * s.alpha * s.mu_prime * rounds) * s.initialization(0),
            "step": np.sqrt(s.alpha)}


def budget_shape(s: Setting, n_rounds: int) -> Terms:
    """sqrt(log K/(mu K)) at iteration 2 K, of (23)."""
    factor, K = _factor(s, n_rounds), 0.5 * n_rounds
    return Terms({"budget": np.sqrt(np.log(K) / (s.mu * K))}, inputs={"c": factor},
                 rounds=np.array([n_rounds]))


def ratio(strong_convexity: float, smoothness: float, mixing: Any, c: float,
          room: Callable[[float], float]) -> float:
    """a of Remarks 2 and 12: c (L + mu)/(mu room), with the room that a theorem makes of 1 + lambda_N."""
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    c = real("c", c)
    if c <= 1.0:
        raise ValueError(f"c={c!r} must be greater than 1")
    share = mu * room(1.0 + smallest_eigenvalue(check_mixing(mixing)))
    if not c * (L + mu) < 1e150 * share:
        raise ValueError(f"strong_convexity={mu!r}, smoothness={L!r} and c={c!r} make a of 1e150 or more; it "
                         "must be less: iterations grow like its square")
    return c * (L + mu) / share


def enough(a: float) -> int:
    """Iterations K from which on log K <= K/a."""
    return ceil(max(34.0, a**2 / E))


def budget_step(strong_convexity: float, n_iterations: int, c: float, a: float, theorem: str,
                remark: str) -> float:
    """c log(sqrt K)/(mu K) of a remark, where it is within the theorem: where log K <= K/a."""
    K, strong_convexity, c = whole("n_iterations", n_iterations, 2), float(strong_convexity), float(c)
    if np.log(K) > K / a:
        raise ValueError(f"n_iterations={K} gives log K={np.log(K):.4g} more than K/a={K / a:.4g}: the step "
                         f"size is beyond {theorem}; {enough(a)} or more suffices ({remark})")
    return float(c * 0.5 * np.log(K) / (strong_convexity * K))


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


def require_plannable(constants: Constants, algorithm: Any, kind: type) -> None:
    """Raise ValueError for an algorithm of another class, and for what are no constants."""
    instance("algorithm", algorithm, kind)
    instance("constants", constants, Constants)


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

    half = 0.5 * eps
    if half == 0.0:
        raise ValueError(f"eps={eps!r} is too small: half of it underflows")

    def excess(log_step: float) -> float:
        try:
            floor = bound(chosen(float(np.exp(log_step))), n_rounds=0).floor
        except NotApplicable as error:
            if binds is None:
                raise
            raise ValueError(f"eps={eps!r} is too small: at a step size that reaches it {error}") from None
        assert floor is not None
        return float(np.log(floor / half))

    high = low = float(np.log(cap))
    binds: bool | None = None
    binds = excess(high) <= 0.0
    while not binds and excess(low) > 0.0:
        low -= 5.0
        if low < -700.0:
            raise ValueError(f"eps={eps!r} is too small: the planned step size underflows")
    step = cap if binds else float(np.exp(brentq(excess, low, min(low + 5.0, high), xtol=1e-10) - 1e-9))
    algorithm = chosen(step)
    return Plan(eps, step, _first_round(eps, partial(bound, algorithm)), binds, algorithm)


def _first_round(eps: float, bound: Callable[..., Bound]) -> int:
    """The first iteration at which the bound, which falls, is at most eps."""
    rounds = range(2**52 + 1)
    first = bisect_left(rounds, True, key=lambda k: bool(bound(n_rounds=k, record=[k]).value[-1] <= eps))
    if first == len(rounds):
        raise ValueError(f"eps={eps!r} is too small: more than 2^52 iterations would be planned")
    return first
