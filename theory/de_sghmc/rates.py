"""DE-SGHMC Remark 12: Theorem 11 up to constants. The shapes are those of DE-SGLD's Remark 2."""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.law import recorded_rounds

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..de_sgld.rates import BUDGET, SMALL, budget_shape, step_shape
from ..de_sgld.setting import applicable
from .bounds import HYPOTHESES
from .setting import PAPER, chain


@theorem(id="de_sghmc.step_rate", paper=PAPER, number="section 4, Remark 12, equations (41), (42)",
         kind="rate", quantity="w2", algorithm=DESGHMC, convention="components",
         hypotheses=(*HYPOTHESES, SMALL), variants=("printed",), applies=applicable)
def step_rate(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
              variant: str = "printed") -> Bound:
    """Shape of W2 of the average for a fixed step size, with b_0 the start's part of Theorem 11.

    Guarantee, with alpha = eta^2:
    W2 after 2 K iterations <= exp(-alpha mu (1 - alpha L/2) K) b_0 + O(sqrt(alpha)).

    Source: DE-SGHMC Remark 12, equations (41) and (42).

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "printed"

    Returns
    -------
    Bound of kind "rate" with terms "initialization" and "step".

    Raises
    ------
    NotApplicable, ValueError
        As for `chain`; ValueError also for a `record` beyond n_rounds.
    """
    c = chain(constants, algorithm)
    return step_shape(c.base, recorded_rounds(n_rounds, record), c.hypotheses, variant=variant,
                      source="DE-SGHMC Remark 12, equation (42)")


@theorem(id="de_sghmc.budget_rate", paper=PAPER, number="section 4, Remark 12", kind="rate", quantity="w2",
         algorithm=DESGHMC, convention="components", hypotheses=(*HYPOTHESES, BUDGET), variants=("printed",),
         applies=applicable)
def budget_rate(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                variant: str = "printed") -> Bound:
    """Shape of W2 of the average after a budget of 2 K iterations with the step size of Remark 12.

    Guarantee: W2 after 2 K iterations with eta^2 = c log(sqrt K)/(mu K) = O(sqrt(log K/K)).

    Source: DE-SGHMC Remark 12; `remark_step_size` has the step size.

    Parameters
    ----------
    constants, algorithm
        As for `w2_bound`.
    n_rounds : int
        2 K, at least 4.
    record
        Not used: the step size belongs to the last iteration.
    variant : "printed"

    Returns
    -------
    Bound of kind "rate" at round `n_rounds` with the one term "budget"; `inputs` has c.

    Raises
    ------
    NotApplicable, ValueError
        As for `chain`; ValueError also for n_rounds below 4.
    """
    c = chain(constants, algorithm)
    return budget_shape(c.base, n_rounds, c.hypotheses, variant=variant, source="DE-SGHMC Remark 12")
