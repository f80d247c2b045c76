"""FA-HMC's lemma about single clients, Lemma D.7. Notation as in `recursion`.

Each statement is about one client, by default the one of smallest weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.settings.validation import array

from ..exact import joint_law
from ..facts import Constants
from ..statement import Terms
from .quantities import second_moments as exact_second_moments
from .setting import (
    EQUAL,
    FULL,
    FULL_TURN,
    HALF_TURN,
    MOMENT_RANGE,
    Setting,
    client_number,
    theorem,
    trajectory_lengths,
    within,
)

UNIFORM = (within(MOMENT_RANGE), EQUAL, FULL)
COSTS = {"corrected": "", "printed": "B_a^c without the momentum's variance, see `client_step_bound`"}


def _exact_second_moments(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                          start: Any) -> dict[str, Any]:
    law = joint_law(problem, algorithm, max(n_rounds, 1) * algorithm.local_steps, start=start)
    client = int(np.argmin(problem.weights))
    return {"second_moments": exact_second_moments(law, client, problem.minimizer)[:-1], "client": client}


@theorem("Lemma D.7 (10)", quantity="client_second_moment_after", terms=("contraction", "growth"),
         hypotheses=(within(HALF_TURN, printed=FULL_TURN), FULL), variants=("corrected", "printed"),
         index="local_step", inputs=_exact_second_moments,
         arguments={"second_moments": "(n,): E||theta_t^c - theta_*||^2 where updates t = 0..n-1 start."})
def client_step_bound(s: Setting, algorithm: FAHMC, variant: str, *, second_moments: Any,
                      client: int | None = None) -> Terms:
    """One update of one client's second moment about the global minimizer.

    Guarantee, for X <= 1/(2 sqrt(L)):

        E||theta_{t+1}^c - theta_*||^2 <= (1 - mu X^2/4 + (2/3) X^6 L^4/mu) E||theta_t^c - theta_*||^2
                                          + X^2 B_a^c

    with B_a^c of `Setting.moment_constants`, and without X^6 for K = 1.

    Source: FA-HMC Lemma D.7 (10). Printed: 2 for 2/3 and X^2 (L/mu) B_a^c, where B_a^c lacks the momentum's
    variance s_c: false for shared_noise < 1. The above comes out of (36)-(38) with (c_3, c_4) = (9/10,
    1/10) and (c_5, c_6) = (1/2, 1/2): with L X^2 <= 1/4 the momentum has 15/14 + (L/mu)/(18 c_4) <= 2 L/mu,
    the slope 4/(4 c_3 mu) + 4/(16*120 c_4 c_6 mu) <= 4/(3 mu), the noise 15/(14*16 mu) + 4/(16*72 c_4 mu) <=
    1/(7 mu), the lost contraction is 4 X^6 L^4/(120 c_4 c_5 mu). For X^2 <= mu/(4 L^2) the factor is at most
    1 - mu X^2/8, which is (39).

    It bounds the moment after updates, at local steps 1..n.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.574
    """
    c, before = client_number(s, client), array("second_moments", second_moments, 1)
    X = trajectory_lengths(algorithm, len(before))
    cost = s.moment_constants(variant)[c]
    if variant == "printed":
        keep = 1.0 - 0.25 * s.mu * X**2 + (2.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0)
        growth = X**2 * s.kappa * cost
    else:
        lost = 2.0 / 3.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0
        keep = np.maximum(1.0 - 0.25 * s.mu * X**2, 0.0) + lost
        growth = X**2 * cost
    return Terms({"contraction": keep * before, "growth": growth}, rounds=np.arange(1, len(before) + 1),
                 inputs={"client": c})


@theorem("Lemma D.7 (11)", quantity="client_second_moment", terms=("initialization", "growth"),
         hypotheses=UNIFORM, variants=COSTS, index="local_step")
def client_moment_bound(s: Setting, rounds: np.ndarray, variant: str, *, client: int | None = None) -> Terms:
    """Uniform bound of one client's second moment about the global minimizer.

    Guarantee:  sup_t E||theta_t^c - theta_*||^2 <= D + (8/mu) (B_a^c + sum_e w_e B_a^e)

    Source: FA-HMC Lemma D.7 (11).

    Examples
    --------
    >>> round(float(bound.value[-1]), 1)
    108.6
    """
    c = client_number(s, client)
    return Terms({"initialization": s.D, "growth": s.second_moments(variant)[c] - s.D}, inputs={"client": c})


@theorem("Lemma D.7 (12)", quantity="client_gradient_moment", terms=("distance", "heterogeneity"),
         hypotheses=UNIFORM, variants=COSTS, index="local_step")
def client_gradient_bound(s: Setting, rounds: np.ndarray, variant: str, *,
                          client: int | None = None) -> Terms:
    """Uniform bound of one client's gradient.

    Guarantee:  B_c <= 2 L^2 (D + (8/mu) (B_a^c + sum_e w_e B_a^e)) + 2 ||grad f_c(theta_*)||^2

    Source: FA-HMC Lemma D.7 (12).

    Examples
    --------
    >>> round(float(bound.value[-1]), 1)
    1955.2
    """
    c = client_number(s, client)
    return Terms({"distance": 2.0 * s.L**2 * s.second_moments(variant)[c],
                  "heterogeneity": 2.0 * s.slopes[c] ** 2}, inputs={"client": c})
