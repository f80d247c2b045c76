"""DE-SGHMC Remark 12: Theorem 11 up to constants, the step sizes that it asks for, and plans.

`theory.decentralized.plans` has what Remark 2 shares. Remark 12's eta^2 = c log(sqrt K)/(mu K) is within
(37) exactly when log K <= K/a, a = c (L + mu)/(mu (1 + lambda_N)); friction 1/eta is then within (38).
`plan` inverts Theorem 11 itself, numerically.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.settings.validation import fraction, instance, positive

from ...declare.statement import Terms
from ...facts import Constants
from ...tuning import Plan, planner
from ...tuning.planning import promised
from .. import plans
from ..paper import THEOREM_11, theorem_of_constants as theorem
from .momentum import largest_momentum
from .setting import Chain


@theorem("section 4, Remark 12, equations (41), (42)", quantity="w2", kind="rate",
         terms=("initialization", "step"), hypotheses=(*THEOREM_11, plans.SMALL),
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
    return plans.step_shape(s.base, rounds)


@theorem("section 4, Remark 12", quantity="w2", kind="rate", terms=("budget",),
         hypotheses=(*THEOREM_11, plans.BUDGET), source="DE-SGHMC Remark 12")
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
    return plans.budget_shape(s.base, n_rounds)


def least_iterations(strong_convexity: float, smoothness: float, mixing: Any, c: float = 1.5) -> int:
    """Iterations K from which on Remark 12's step size is within Theorem 11: max(34, a^2/e).

    Parameters
    ----------
    strong_convexity, smoothness, mixing, c
        As for `theory.de_sgld.least_iterations`.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        As there.

    Source: DE-SGHMC Remark 12, with the condition that Remark 2 lacks made for (37).

    Examples
    --------
    >>> theory.de_sghmc.least_iterations(1.0, 9.0, fs.network.complete(4))
    83
    """
    return plans.enough(plans.ratio(strong_convexity, smoothness, mixing, c, lambda share: share))


def remark_step_size(strong_convexity: float, smoothness: float, mixing: Any, n_iterations: int,
                     c: float = 1.5) -> float:
    """eta = sqrt(c log(sqrt K)/(mu K)) of Remark 12, checked to be within (37); use with friction 1/eta.

    Parameters
    ----------
    strong_convexity, smoothness, mixing, n_iterations, c
        As for `theory.de_sgld.remark_step_size`.

    Returns
    -------
    float
        eta, in the units of 1/sqrt(smoothness).

    Raises
    ------
    ValueError
        As there.

    Source: DE-SGHMC Remark 12.

    Examples
    --------
    >>> round(theory.de_sghmc.remark_step_size(1.0, 4.0, fs.network.complete(4), 1000), 6)
    0.071978
    """
    a = plans.ratio(strong_convexity, smoothness, mixing, c, lambda share: share)
    return sqrt(plans.budget_step(strong_convexity, n_iterations, c, a, "Theorem 11", "DE-SGHMC Remark 12"))


@planner(DESGHMC)
def plan(constants: Constants, algorithm: DESGHMC, eps: float, *, share: float = 0.0) -> Plan:
    """Step size and friction with the fewest iterations after which Theorem 11 guarantees W2 <= eps.

    It is for the average, at the momentum that is asked for; see `theory.tuning.plan`. The paper's own step
    size is `remark_step_size`.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGHMC
        Its step size and friction are replaced.
    eps : float
    share : float
        From 0 to 1: the momentum 1 - friction * step_size as a part of the largest that (38) allows. The
        bound grows with it; 0 is friction 1/step_size.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        Naming argument, value and condition; `NotApplicable` for a network that is not connected.

    Source: DE-SGHMC Theorem 11, equations (37) to (39).

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> found = theory.de_sghmc.plan(theory.constants(problem, algorithm), algorithm, 0.5)
    >>> round(found.step_size * found.algorithm.friction, 12), found.n_rounds > 1
    (1.0, True)
    """
    instance("algorithm", algorithm, DESGHMC)
    mu, L = instance("constants", constants, Constants).strong_convexity, constants.smoothness
    part = fraction("share", share)

    def chosen(step: float) -> DESGHMC:
        beta = part * largest_momentum(mu, L, algorithm.mixing, step)
        return replace(algorithm, step_size=step, friction=(1.0 - beta) / step)

    return promised("de_sghmc.w2_bound", constants, algorithm, positive("eps", eps), chosen=chosen)
