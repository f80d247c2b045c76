"""FA-HMC's lemma about single clients, Lemma D.7. Notation as in `recursion`.

Each statement is about one client, by default the one of smallest weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.law import recorded_rounds
from fedsim.validation import array, whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..exact import joint_law
from .bounds import all_clients
from .quantities import second_moments as exact_second_moments
from .setting import (
    EQUAL_STEPS,
    FULL_TURN,
    HALF_TURN,
    MOMENT_RANGE,
    PAPER,
    client_number,
    equal_within_rounds,
    setting,
    trajectory_lengths,
    within,
)


def _exact_second_moments(problem: Any, algorithm: Any, constants: Constants, n_rounds: int,
                          start: Any) -> dict[str, Any]:
    law = joint_law(problem, algorithm, max(n_rounds, 1) * algorithm.local_steps, start=start)
    client = int(np.argmin(problem.weights))
    return {"second_moments": exact_second_moments(law, client, problem.minimizer)[:-1], "client": client}


@theorem(id="fa_hmc.client_step_bound", paper=PAPER, number="Lemma D.7 (10)", kind="upper",
         quantity="client_second_moment_after", algorithm=FAHMC, convention="federated",
         hypotheses=(HALF_TURN,), variants=("corrected", "printed"), index="local_step",
         inputs=_exact_second_moments, applies=all_clients)
def client_step_bound(constants: Constants, algorithm: FAHMC, *, second_moments: Any,
                      client: int | None = None, n_rounds: int = 0, record: Any = None,
                      variant: str = "corrected") -> Bound:
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

    Parameters
    ----------
    constants, algorithm
        As for `coupling_bound`.
    second_moments : (n,)
        E||theta_t^c - theta_*||^2 of the client where updates t = 0..n-1 start.
    client : int, optional
        The one of smallest weight by default.
    n_rounds, record
        Of no influence.
    variant : "corrected" or "printed"

    Returns
    -------
    Bound after updates, at local steps 1..n, with terms "contraction" and "growth".

    Raises
    ------
    ValueError
        As for `coupling_bound`; for a client that does not exist, and second moments that are not (n,).
    """
    s = setting(constants, algorithm)
    c, before = client_number(s, client), array("second_moments", second_moments, 1)
    X = trajectory_lengths(algorithm, len(before))
    cost = s.moment_constants(variant)[c]
    if variant == "printed":
        limit = within(s, FULL_TURN)
        keep = 1.0 - 0.25 * s.mu * X**2 + (2.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0)
        growth = X**2 * s.kappa * cost
    else:
        lost = 2.0 / 3.0 * X**6 * s.L**4 / s.mu if s.K >= 2 else 0.0
        limit, growth = within(s, HALF_TURN), X**2 * cost
        keep = np.maximum(1.0 - 0.25 * s.mu * X**2, 0.0) + lost
    return Bound.from_terms(
        {"contraction": keep * before, "growth": growth}, np.arange(1, len(before) + 1), assumptions=(limit,),
        quantity="client_second_moment_after", kind="upper", source="FA-HMC Lemma D.7 (10)",
        variant=variant, index="local_step", inputs={"client": c})


@theorem(id="fa_hmc.client_moment_bound", paper=PAPER, number="Lemma D.7 (11)", kind="upper",
         quantity="client_second_moment", algorithm=FAHMC, convention="federated",
         hypotheses=(MOMENT_RANGE, EQUAL_STEPS), variants=("corrected", "printed"), index="local_step",
         applies=all_clients)
def client_moment_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int, record: Any = None,
                        client: int | None = None, variant: str = "corrected") -> Bound:
    """Uniform bound of one client's second moment about the global minimizer.

    Guarantee:  sup_t E||theta_t^c - theta_*||^2 <= D + (8/mu) (B_a^c + sum_e w_e B_a^e)

    Source: FA-HMC Lemma D.7 (11); the variants differ in B_a (see `client_step_bound`).

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `coupling_bound`.
    client : int, optional
    variant : "corrected" or "printed"

    Returns
    -------
    Bound at local updates with terms "initialization" and "growth".

    Raises
    ------
    ValueError
        As for `coupling_bound`, and for a client that does not exist.
    """
    s = setting(constants, algorithm)
    c, steps = client_number(s, client), recorded_rounds(whole("n_rounds", n_rounds) * s.T, record)
    return Bound.from_terms(
        {"initialization": s.D, "growth": s.second_moments(variant)[c] - s.D}, steps,
        assumptions=(within(s, MOMENT_RANGE), *equal_within_rounds(algorithm, int(steps.max()))),
        quantity="client_second_moment", kind="upper", source="FA-HMC Lemma D.7 (11)", variant=variant,
        index="local_step", inputs={"client": c})


@theorem(id="fa_hmc.client_gradient_bound", paper=PAPER, number="Lemma D.7 (12)", kind="upper",
         quantity="client_gradient_moment", algorithm=FAHMC, convention="federated",
         hypotheses=(MOMENT_RANGE, EQUAL_STEPS), variants=("corrected", "printed"), index="local_step",
         applies=all_clients)
def client_gradient_bound(constants: Constants, algorithm: FAHMC, *, n_rounds: int, record: Any = None,
                          client: int | None = None, variant: str = "corrected") -> Bound:
    """Uniform bound of one client's gradient.

    Guarantee:  B_c <= 2 L^2 (D + (8/mu) (B_a^c + sum_e w_e B_a^e)) + 2 ||grad f_c(theta_*)||^2

    Source: FA-HMC Lemma D.7 (12); the variants differ in B_a (see `client_step_bound`).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, client, variant
        As for `client_moment_bound`.

    Returns
    -------
    Bound at local updates with terms "distance" and "heterogeneity".

    Raises
    ------
    ValueError
        As for `coupling_bound`, and for a client that does not exist.
    """
    s = setting(constants, algorithm)
    c, steps = client_number(s, client), recorded_rounds(whole("n_rounds", n_rounds) * s.T, record)
    return Bound.from_terms(
        {"distance": 2.0 * s.L**2 * s.second_moments(variant)[c], "heterogeneity": 2.0 * s.slopes[c] ** 2},
        steps, assumptions=(within(s, MOMENT_RANGE), *equal_within_rounds(algorithm, int(steps.max()))),
        quantity="client_gradient_moment", kind="upper", source="FA-HMC Lemma D.7 (12)", variant=variant,
        index="local_step", inputs={"client": c})
