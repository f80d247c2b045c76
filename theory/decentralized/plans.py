"""Remarks 2 and 12: the shapes of Theorems 1 and 11, and the step sizes that the paper asks for.

DE-SGHMC's alpha = eta^2 stands where eta of DE-SGLD does. All unknown constants of the shapes are one in
units in which both sides are lengths: mu^(-1/2) and alpha^(1/2) are. A remark's alpha = c log(sqrt K)/(mu K)
for 2 K iterations is within its theorem exactly when log K <= K/a, for which K >= max(34, a^2/e) suffices.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, e as E
from typing import Any

import numpy as np

from fedsim.settings.network import check_mixing, smallest_eigenvalue
from fedsim.settings.validation import positive, real, whole

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from .setting import Setting

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
