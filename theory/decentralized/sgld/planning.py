"""DE-SGLD Remark 2: Theorem 1 up to constants, the step sizes that it asks for, and plans.

`theory.decentralized.plans` has what Remark 12 shares. Here a = c (L + mu)/(2 mu min(1, 1 + lambda_N)).
`plan` inverts Theorem 1 itself, numerically.
"""

from __future__ import annotations

from math import ceil, e as E
from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.validation import instance, one_of

from ...declare.statement import Terms
from ...facts import Constants
from ...tuning import Plan, plan as theory_plan, planner
from .. import plans
from ..paper import THEOREM_1, sgld_theorem as theorem
from ..setting import Setting


@theorem("section 3, Remark 2, equations (21), (22)", quantity="w2", kind="rate",
         terms=("initialization", "step"), hypotheses=(*THEOREM_1, plans.SMALL),
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
    return plans.step_shape(s, rounds)


@theorem("section 3, Remark 2, equation (23)", quantity="w2", kind="rate", terms=("budget",),
         hypotheses=(*THEOREM_1, plans.BUDGET), source="DE-SGLD Remark 2, equation (23)")
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
    return plans.budget_shape(s, n_rounds)


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
        a = plans.ratio(strong_convexity, smoothness, mixing, c, lambda share: 2.0 * share)
        return ceil(max(E, a**2 / E))
    return plans.enough(plans.ratio(strong_convexity, smoothness, mixing, c, _room))


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
    a = plans.ratio(strong_convexity, smoothness, mixing, c, _room)
    return plans.budget_step(strong_convexity, n_iterations, c, a, "Theorem 1", "DE-SGLD Remark 2")


@planner(DESGLD)
def plan(constants: Constants, algorithm: DESGLD, eps: float) -> Plan:
    """Step size with the fewest iterations after which Theorem 1 guarantees W2 <= eps of the average.

    See `theory.tuning.plan`; the paper's own step size is `remark_step_size`.

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
    (0.0027, 999, False)
    """
    instance("algorithm", algorithm, DESGLD)
    return theory_plan("de_sgld.w2_bound", instance("constants", constants, Constants), algorithm, eps)
