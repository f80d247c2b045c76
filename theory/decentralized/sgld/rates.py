"""DE-SGLD Remark 2: Theorem 1 up to constants, for a step size and for a budget of iterations.

The shapes serve DE-SGHMC's Remark 12 too, whose alpha = eta^2 stands where eta does here. All unknown
constants are one in units in which both sides are lengths: mu^(-1/2) and eta^(1/2) are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import whole

from ...bound import Assumption
from ...statement import Hypothesis, Terms
from .paper import HYPOTHESES, theorem
from .setting import Setting

_SMALL = "1 - alpha mu (1 - alpha L/2) >= second_eigenvalue^2"
_BUDGET = "step size of the average = c log(sqrt K)/(mu K) with c > 1, K half the iterations"


def _small(s: Any) -> Assumption:
    contraction = 1.0 - s.base.alpha * s.base.mu_prime
    return Assumption(_SMALL, contraction >= s.base.second**2, contraction - s.base.second**2)


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
    start = np.sqrt(s.average_sq) + s.target_norm
    return {"initialization": np.exp(-0.5 * s.alpha * s.mu_prime * rounds) * start, "step": np.sqrt(s.alpha)}


def budget_shape(s: Setting, n_rounds: int) -> Terms:
    """sqrt(log K/(mu K)) at iteration 2 K, of (23)."""
    factor, K = _factor(s, n_rounds), 0.5 * n_rounds
    return Terms({"budget": np.sqrt(np.log(K) / (s.mu * K))}, inputs={"c": factor},
                 rounds=np.array([n_rounds]))


@theorem("section 3, Remark 2, equations (21), (22)", quantity="w2", kind="rate",
         terms=("initialization", "step"), hypotheses=(*HYPOTHESES, SMALL),
         source="DE-SGLD Remark 2, equation (22)")
def step_rate(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """Shape of W2 of the average for a fixed step size, with a_0 the start's part of Theorem 1.

    Guarantee: W2 after 2 K iterations <= exp(-eta mu (1 - eta L/2) K) a_0 + O(sqrt(eta)).

    Source: DE-SGLD Remark 2, equations (21) and (22).

    Examples
    --------
    >>> bound.kind, round(float(bound.value[-1]), 3), bound.hypotheses_hold
    ('rate', 0.811, True)
    """
    return step_shape(s, rounds)


@theorem("section 3, Remark 2, equation (23)", quantity="w2", kind="rate", terms=("budget",),
         hypotheses=(*HYPOTHESES, BUDGET), source="DE-SGLD Remark 2, equation (23)")
def budget_rate(s: Setting, n_rounds: int) -> Terms:
    """Shape of W2 of the average after a budget of 2 K = n_rounds iterations with Remark 2's step size.

    Guarantee: W2 after 2 K iterations with eta = c log(sqrt K)/(mu K) = O(sqrt(log K/K)).

    Source: DE-SGLD Remark 2, equation (23); `remark_step_size` has the step size.

    The bound is at round `n_rounds`, at least 4, whatever is recorded: the step size belongs to the last
    iteration. `inputs` has c.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> pair = fs.network.complete(2)
    >>> algorithm = fs.DESGLD(theory.de_sgld.remark_step_size(1.0, 2.0, pair, 50), pair)
    >>> round(float(bound.value[0]), 3), round(bound.inputs["c"], 3), bound.hypotheses_hold
    (0.28, 1.5, True)
    """
    return budget_shape(s, n_rounds)
