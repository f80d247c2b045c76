"""DE-SGHMC Remark 12: Theorem 11 up to constants. The shapes are those of DE-SGLD's Remark 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...statement import Terms
from ..sgld.rates import BUDGET, SMALL, budget_shape, step_shape
from .paper import HYPOTHESES, theorem_of_constants
from .setting import Chain


@theorem_of_constants("section 4, Remark 12, equations (41), (42)", quantity="w2", kind="rate",
                      terms=("initialization", "step"), hypotheses=(*HYPOTHESES, SMALL),
                      source="DE-SGHMC Remark 12, equation (42)")
def step_rate(s: Chain, rounds: np.ndarray) -> dict[str, Any]:
    """Shape of W2 of the average for a fixed step size, with b_0 the start's part of Theorem 11.

    Guarantee, with alpha = eta^2:
    W2 after 2 K iterations <= exp(-alpha mu (1 - alpha L/2) K) b_0 + O(sqrt(alpha)).

    Source: DE-SGHMC Remark 12, equations (41) and (42).

    Examples
    --------
    >>> bound.kind, round(float(bound.value[-1]), 3), bound.hypotheses_hold
    ('rate', 0.811, True)
    """
    return step_shape(s.base, rounds)


@theorem_of_constants("section 4, Remark 12", quantity="w2", kind="rate", terms=("budget",),
                      hypotheses=(*HYPOTHESES, BUDGET), source="DE-SGHMC Remark 12")
def budget_rate(s: Chain, n_rounds: int) -> Terms:
    """Shape of W2 of the average after a budget of 2 K = n_rounds iterations, as in DE-SGLD.

    Guarantee: W2 after 2 K iterations with eta^2 = c log(sqrt K)/(mu K) = O(sqrt(log K/K)).

    Source: DE-SGHMC Remark 12; `remark_step_size` has the step size. See `theory.de_sgld.budget_rate`.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> pair = fs.network.complete(2)
    >>> step = theory.de_sghmc.remark_step_size(1.0, 2.0, pair, 50)
    >>> algorithm = fs.DESGHMC(step, 1.0 / step, pair)
    >>> round(float(bound.value[0]), 3), round(bound.inputs["c"], 3), bound.hypotheses_hold
    (0.28, 1.5, True)
    """
    return budget_shape(s.base, n_rounds)
