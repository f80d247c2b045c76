"""DE-SGHMC Lemma 13: moments of positions and velocities that hold for every iteration; and (88).

Notation and constants as in `setting`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.law import recorded_rounds
from fedsim.validation import whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..de_sgld.setting import applicable, power
from .beginning import Beginning, of_problem
from .bounds import HYPOTHESES
from .clients import lemma
from .setting import PAPER, chain

_CONSTANTS = {"sharp": "corrected", "convexity": "corrected", "printed": "printed"}


@theorem(id="de_sghmc.lyapunov_bound", paper=PAPER, number="Lemma 13, proof, equation (88)", kind="upper",
         quantity="lyapunov", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("sharp", "printed"), applies=applicable, inputs=of_problem)
def lyapunov_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "sharp", begin: Beginning | None = None) -> Bound:
    """The Lyapunov function of the heavy-ball recursion.

    Guarantee, for every iteration k from the first on, with q = max(q_1, q_2):

        V_k = b E[Fbar(x_before) - Fbar(x_a)] + E||x + beta/(1-beta) (x - x_before) - x_a||^2
            <= V_1 q^(k-1) + (2 (eta^4 sigma^2 N + 2 gamma eta^3 N d)/(1-beta)^2 + c_2 ||x_a||^2)/(1-q)

    with V_1 <= b L_a E||x_0 - x_a||^2/2 + 2 E||x_1 - x_a||^2 + 2 beta^2/(1-beta)^2 E||x_1 - x_0||^2.

    Source: DE-SGHMC, proof of Lemma 13, equation (88).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, begin
        As for `w2_bound`; n_rounds at least 1.
    variant : "sharp" or "printed"
        c_2 with the factor 1 + 1/(2 c_1) of (79), or with 1 + 1/c_1 as printed after (86).

    Returns
    -------
    Bound on "lyapunov" with terms "start" and "noise"; rounds count from 1.

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, _CONSTANTS[variant], begin)
    rounds = recorded_rounds(whole("n_rounds", n_rounds, 1), record)
    rounds, noise = rounds[rounds > 0], c.c3 - c.V1  # c_3 first: it asks whether q < 1
    start = c.V1 * power(float(np.log(c.q)), rounds - 1)
    return lemma(c, rounds, {"start": start, "noise": noise}, variant, "lyapunov", "Lemma 13, equation (88)",
                 weight=c.b)


@theorem(id="de_sghmc.extrapolation_bound", paper=PAPER, number="Lemma 13, equation (45)", kind="upper",
         quantity="extrapolated", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("sharp", "printed"), applies=applicable, inputs=of_problem)
def extrapolation_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                        variant: str = "sharp", begin: Beginning | None = None) -> Bound:
    """Uniform second moment of the extrapolated positions.

    Guarantee, for every iteration from the first on:

        E||x + beta/(1-beta) (x - x_before)||^2 <= c_4 = 2 c_3 + 2 ||x_a||^2

    Source: DE-SGHMC Lemma 13, equation (45). c_3 and c_4 are those of a given eta and gamma; a supremum
    over all that are allowed depends on neither.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, begin
        As for `w2_bound`; n_rounds at least 1.
    variant : "sharp" or "printed"
        As for `lyapunov_bound`.

    Returns
    -------
    Bound on "extrapolated" with terms "motion" and "fixed_point"; rounds count from 1.

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, _CONSTANTS[variant], begin)
    rounds = recorded_rounds(whole("n_rounds", n_rounds, 1), record)
    return lemma(c, rounds[rounds > 0], {"motion": 2.0 * c.c3, "fixed_point": 2.0 * c.begin.fixed_norm**2},
                 variant, "extrapolated", "Lemma 13, equation (45)")


@theorem(id="de_sghmc.velocity_bound", paper=PAPER, number="Lemma 13, equations (46), (105)", kind="upper",
         quantity="velocities", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("corrected", "printed"), applies=applicable, inputs=of_problem)
def velocity_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """Uniform second moment of the velocities.

    Guarantee, for every iteration:

        sum_i E||v_i||^2 <= c_5 = E||v_0||^2
                                  + (2 eta^2 c~_4 + eta^2 sigma^2 N + 2 gamma eta N d)/(1 - 2 beta^2)

    Source: DE-SGHMC Lemma 13, equation (46), with the explicit constant of its proof, (105). The lemma
    asserts that there is a constant; (105) is one with c~_4 = 2 ||grad F(x^*)||^2 + 2 L^2 sup E||x - x^*||^2
    >= E||grad F(x)||^2, but not with the printed c~_4 = L (||grad F(x^*)||^2 + sup E||x - x^*||^2), which has
    another unit.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, begin
        As for `w2_bound`.
    variant : "corrected" or "printed"
        Which c~_4 is in (105); printed, also the larger c_2 inside it.

    Returns
    -------
    Bound on "velocities" with terms "start" and "motion".

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, variant, begin)
    return lemma(c, recorded_rounds(n_rounds, record),
                 {"start": c.start_velocity_sq, "motion": c.c5 - c.start_velocity_sq}, variant, "velocities",
                 "Lemma 13, equations (46), (105)")


@theorem(id="de_sghmc.position_bound", paper=PAPER, number="Lemma 13, equation (46) of x", kind="upper",
         quantity="positions", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("convexity", "printed"), applies=applicable, inputs=of_problem)
def position_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "convexity", begin: Beginning | None = None) -> Bound:
    """Uniform second moment of the positions.

    Guarantee, for every iteration from the first on:

        sum_i E||x_i||^2 <= (sqrt(max(c_3, E||x_0 - x_a||^2)) + ||x_a||)^2

    Source: DE-SGHMC Lemma 13, equation (46), which asserts that there is a constant. Proof:
    x - x_a = (1-beta) (x + beta/(1-beta) (x - x_before) - x_a) + beta (x_before - x_a), so that by convexity
    and (88), E||x - x_a||^2 <= max(c_3, E||x_0 - x_a||^2).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, begin
        As for `w2_bound`; n_rounds at least 1.
    variant : "convexity" or "printed"
        Printed, after (102): 4 c_3 + 4 ||x_a||^2 + 2 beta^2/(1-beta)^2 (2 c_3/(mu b) + 2 ||x_a||^2), whose
        proof needs 4 c_3/(mu b); not proved here, and not seen to fail.

    Returns
    -------
    Bound on "positions" with the one term "moment"; rounds count from 1.

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, _CONSTANTS[variant], begin)
    rounds = recorded_rounds(whole("n_rounds", n_rounds, 1), record)
    value = c.printed_position if variant == "printed" else (c.fixed_sq**0.5 + c.begin.fixed_norm) ** 2
    return lemma(c, rounds[rounds > 0], {"moment": value}, variant, "positions", "Lemma 13, equation (46)")
