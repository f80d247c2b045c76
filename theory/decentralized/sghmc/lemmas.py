"""DE-SGHMC Lemma 13: moments of positions and velocities that hold for every iteration; and (88).

Notation and constants as in `setting`. Those from the first iteration on have rounds that count from 1, and
n_rounds at least 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import whole

from ...statement import Terms
from ..sgld.powers import power
from .paper import HYPOTHESES, theorem
from .setting import Chain

SECOND_CONSTANT = {"sharp": "c_2 with the factor 1 + 1/(2 c_1) of (79)",
                   "printed": "with 1 + 1/c_1, as printed after (86)"}


def _from_first(n_rounds: int, rounds: np.ndarray) -> np.ndarray:
    whole("n_rounds", n_rounds, 1)
    return rounds[rounds > 0]


@theorem("Lemma 13, proof, equation (88)", quantity="lyapunov", terms=("start", "noise"),
         hypotheses=HYPOTHESES, variants=SECOND_CONSTANT, source="DE-SGHMC Lemma 13, equation (88)")
def lyapunov_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """The Lyapunov function of the heavy-ball recursion.

    Guarantee, for every iteration k from the first on (n_rounds at least 1), with q = max(q_1, q_2):

        V_k = b E[Fbar(x_before) - Fbar(x_a)] + E||x + beta/(1-beta) (x - x_before) - x_a||^2
            <= V_1 q^(k-1) + (2 (eta^4 sigma^2 N + 2 gamma eta^3 N d)/(1-beta)^2 + c_2 ||x_a||^2)/(1-q)

    with V_1 <= b L_a E||x_0 - x_a||^2/2 + 2 E||x_1 - x_a||^2 + 2 beta^2/(1-beta)^2 E||x_1 - x_0||^2.

    Source: DE-SGHMC, proof of Lemma 13, equation (88).

    Examples
    --------
    >>> int(bound.rounds[0]), round(float(bound.value[-1]), 2)
    (1, 8.2)
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    noise = c.c3 - c.V1  # c_3 first: it asks whether q < 1
    return Terms({"start": c.V1 * power(float(np.log(c.q)), rounds - 1), "noise": noise}, rounds=rounds,
                 inputs={"weight": c.b})


@theorem("Lemma 13, equation (45)", quantity="extrapolated", terms=("motion", "fixed_point"),
         hypotheses=HYPOTHESES, variants=SECOND_CONSTANT)
def extrapolation_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """Uniform second moment of the extrapolated positions.

    Guarantee, for every iteration from the first on (n_rounds at least 1):

        E||x + beta/(1-beta) (x - x_before)||^2 <= c_4 = 2 c_3 + 2 ||x_a||^2

    Source: DE-SGHMC Lemma 13, equation (45). c_3 and c_4 are those of a given eta and gamma; a supremum
    over all that are allowed depends on neither.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    17.08
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    return Terms({"motion": 2.0 * c.c3, "fixed_point": 2.0 * c.begin.fixed_norm**2}, rounds=rounds)


@theorem("Lemma 13, equations (46), (105)", quantity="velocities", terms=("start", "motion"),
         hypotheses=HYPOTHESES,
         variants={"corrected": "c~_4 as in Source", "printed": "c~_4 and c_2 as printed"})
def velocity_bound(s: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """Uniform second moment of the velocities.

    Guarantee, for every iteration:

        sum_i E||v_i||^2 <= c_5 = E||v_0||^2
                                  + (2 eta^2 c~_4 + eta^2 sigma^2 N + 2 gamma eta N d)/(1 - 2 beta^2)

    Source: DE-SGHMC Lemma 13, equation (46), with the explicit constant of its proof, (105). The lemma
    asserts that there is a constant; (105) is one with c~_4 = 2 ||grad F(x^*)||^2 + 2 L^2 sup E||x - x^*||^2
    >= E||grad F(x)||^2, but not with the printed c~_4 = L (||grad F(x^*)||^2 + sup E||x - x^*||^2), which has
    another unit. The printed c_2 inside it is the larger one of `lyapunov_bound`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    6.73
    """
    c = s.as_printed(variant == "printed")
    return {"start": c.start_velocity_sq, "motion": c.c5 - c.start_velocity_sq}


@theorem("Lemma 13, equation (46) of x", quantity="positions", terms=("moment",), hypotheses=HYPOTHESES,
         source="DE-SGHMC Lemma 13, equation (46)",
         variants={"convexity": "", "printed": "4 c_3 + 4 ||x_a||^2 + 2 beta^2/(1-beta)^2 (2 c_3/(mu b) + 2 "
                                               "||x_a||^2), after (102), whose proof needs 4 c_3/(mu b); not "
                                               "proved here, and not seen to fail"})
def position_bound(s: Chain, n_rounds: int, rounds: np.ndarray, variant: str) -> Terms:
    """Uniform second moment of the positions.

    Guarantee, for every iteration from the first on (n_rounds at least 1):

        sum_i E||x_i||^2 <= (sqrt(max(c_3, E||x_0 - x_a||^2)) + ||x_a||)^2

    Source: DE-SGHMC Lemma 13, equation (46), which asserts that there is a constant. Proof:
    x - x_a = (1-beta) (x + beta/(1-beta) (x - x_before) - x_a) + beta (x_before - x_a), so that by convexity
    and (88), E||x - x_a||^2 <= max(c_3, E||x_0 - x_a||^2).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    10.61
    """
    c, rounds = s.as_printed(variant == "printed"), _from_first(n_rounds, rounds)
    value = c.printed_position if variant == "printed" else (c.fixed_sq**0.5 + c.begin.fixed_norm) ** 2
    return Terms({"moment": value}, rounds=rounds)
