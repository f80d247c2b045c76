"""DE-SGLD Remark 2: Theorem 1 up to constants, for a step size and for a budget of iterations.

The shapes serve DE-SGHMC's Remark 12 too, whose alpha = eta^2 stands where eta does here. All unknown
constants are one in units in which both sides are lengths: mu^(-1/2) and eta^(1/2) are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.law import recorded_rounds
from fedsim.validation import whole

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import HYPOTHESES
from .setting import PAPER, Setting, applicable, hypotheses, setting

SMALL = "1 - alpha mu (1 - alpha L/2) >= second_eigenvalue^2"
BUDGET = "step size of the average = c log(sqrt K)/(mu K) with c > 1, K half the iterations"


def step_shape(s: Setting, rounds: np.ndarray, begin: tuple[Assumption, ...], **labels: Any) -> Bound:
    """exp(-alpha mu' k/2) a_0 + sqrt(alpha), of (22) and (42)."""
    contraction = 1.0 - s.alpha * s.mu_prime
    small = Assumption(SMALL, contraction >= s.second**2, contraction - s.second**2)
    start = np.sqrt(s.average_sq) + s.target_norm
    return Bound.from_terms(
        {"initialization": np.exp(-0.5 * s.alpha * s.mu_prime * rounds) * start, "step": np.sqrt(s.alpha)},
        rounds, assumptions=(*begin, small), quantity="w2", kind="rate", target=s.constants.target, **labels)


def budget_shape(s: Setting, n_rounds: int, begin: tuple[Assumption, ...], **labels: Any) -> Bound:
    """sqrt(log K/(mu K)) at iteration 2 K, of (23)."""
    K = 0.5 * whole("n_rounds", n_rounds, 4)
    factor = s.alpha * s.mu * K / (0.5 * np.log(K))
    chosen = Assumption(BUDGET, factor > 1.0, factor - 1.0 if factor != 1.0 else -1.0)
    return Bound.from_terms(
        {"budget": np.sqrt(np.log(K) / (s.mu * K))}, np.array([n_rounds]), assumptions=(*begin, chosen),
        quantity="w2", kind="rate", target=s.constants.target, inputs={"c": factor}, **labels)


@theorem(id="de_sgld.step_rate", paper=PAPER, number="section 3, Remark 2, equations (21), (22)",
         kind="rate", quantity="w2", algorithm=DESGLD, convention="components",
         hypotheses=(*HYPOTHESES, SMALL), variants=("printed",), applies=applicable)
def step_rate(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
              variant: str = "printed") -> Bound:
    """Shape of W2 of the average for a fixed step size, with a_0 the start's part of Theorem 1.

    Guarantee: W2 after 2 K iterations <= exp(-eta mu (1 - eta L/2) K) a_0 + O(sqrt(eta)).

    Source: DE-SGLD Remark 2, equations (21) and (22).

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
        As for `setting`; ValueError also for a `record` beyond n_rounds.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> rate = step_rate(constants(problem, algorithm), algorithm, n_rounds=10**4, record=[])
    >>> rate.kind, round(float(rate.value[-1]), 3), rate.hypotheses_hold
    ('rate', 0.1, True)
    """
    s = setting(constants, algorithm)
    return step_shape(s, recorded_rounds(n_rounds, record), hypotheses(s), variant=variant,
                      source="DE-SGLD Remark 2, equation (22)")


@theorem(id="de_sgld.budget_rate", paper=PAPER, number="section 3, Remark 2, equation (23)", kind="rate",
         quantity="w2", algorithm=DESGLD, convention="components", hypotheses=(*HYPOTHESES, BUDGET),
         variants=("printed",), applies=applicable)
def budget_rate(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                variant: str = "printed") -> Bound:
    """Shape of W2 of the average after a budget of 2 K iterations with the step size of Remark 2.

    Guarantee: W2 after 2 K iterations with eta = c log(sqrt K)/(mu K) = O(sqrt(log K/K)).

    Source: DE-SGLD Remark 2, equation (23); `remark_step_size` has the step size.

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
        As for `setting`; ValueError also for n_rounds below 4.
    """
    s = setting(constants, algorithm)
    return budget_shape(s, n_rounds, hypotheses(s), variant=variant,
                        source="DE-SGLD Remark 2, equation (23)")
