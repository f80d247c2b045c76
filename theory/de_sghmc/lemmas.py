"""DE-SGHMC's lemmas about the clients: Lemmas 13 to 17. Notation and constants as in `setting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.law import recorded_rounds
from fedsim.validation import whole

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..de_sgld.setting import applicable
from .beginning import Beginning, of_problem
from .bounds import HYPOTHESES
from .setting import PAPER, Chain, chain


def _bound(c: Chain, rounds: np.ndarray, terms: dict[str, Any], quantity: str, number: str) -> Bound:
    return Bound.from_terms(terms, rounds, assumptions=c.hypotheses, quantity=quantity, kind="upper",
                            source=f"DE-SGHMC {number}", variant=c.variant)


@theorem(id="de_sghmc.extrapolation_bound", paper=PAPER, number="Lemma 13, equation (45)", kind="upper",
         quantity="extrapolated", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def extrapolation_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                        variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """Uniform second moment of the extrapolated positions.

    Guarantee, for every iteration from the first on:

        E||x + beta/(1-beta) (x - x_before)||^2 <= c_4 = 2 c_3 + 2 ||x_a||^2

    Source: DE-SGHMC Lemma 13, equation (45). c_3 and c_4 depend on eta and gamma, although the lemma says
    they need not; they stay bounded as eta falls. Printed with a larger c_2 inside c_3.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`; n_rounds at least 1.

    Returns
    -------
    Bound on "extrapolated" with terms "motion" and "fixed_point"; rounds count from 1.
    """
    c = chain(constants, algorithm, variant, begin)
    rounds = recorded_rounds(whole("n_rounds", n_rounds, 1), record)
    return _bound(c, rounds[rounds > 0], {"motion": 2.0 * c.c3, "fixed_point": 2.0 * c.begin.fixed_norm**2},
                  "extrapolated", "Lemma 13, equation (45)")


@theorem(id="de_sghmc.velocity_bound", paper=PAPER, number="Lemma 13, equation (46)", kind="upper",
         quantity="velocities", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def velocity_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """Uniform second moment of the velocities.

    Guarantee, for every iteration:

        sum_i E||v_i||^2 <= c_5 = E||v_0||^2
                                  + (2 eta^2 c~_4 + eta^2 sigma^2 N + 2 gamma eta N d)/(1 - 2 beta^2)

    Source: DE-SGHMC Lemma 13, equations (46) and (105). Corrected c~_4 = 2 ||grad F(x^*)||^2
    + 2 L^2 sup E||x - x^*||^2; printed L (||grad F(x^*)||^2 + sup E||x - x^*||^2), which has another unit
    and is too small. (46) says the same of E||x||^2, which (105) does not bound.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "velocities" with terms "start" and "motion".
    """
    c = chain(constants, algorithm, variant, begin)
    return _bound(c, recorded_rounds(n_rounds, record),
                  {"start": c.start_velocity_sq, "motion": c.c5 - c.start_velocity_sq}, "velocities",
                  "Lemma 13, equation (46)")


def _disagreement_terms(c: Chain, rounds: np.ndarray) -> dict[str, Any]:
    s = c.base
    return {"start": 2.0 * s.mixing_power(rounds) ** 2 * s.origin_sq,
            "velocities": 2.0 * c.c5 * c.alpha / s.gap**2}


@theorem(id="de_sghmc.disagreement_bound", paper=PAPER, number="Lemma 14", kind="upper",
         quantity="disagreement", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def disagreement_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                       variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """How far clients are from their average.

    Guarantee, for every iteration k:

        sum_i E||x_i - average||^2 <= 2 g^(2k) E||x_0||^2 + 2 c_5 eta^2/(1-g)^2

    Source: DE-SGHMC Lemma 14.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "disagreement" with terms "start" and "velocities".
    """
    c = chain(constants, algorithm, variant, begin)
    rounds = recorded_rounds(n_rounds, record)
    return _bound(c, rounds, _disagreement_terms(c, rounds), "disagreement", "Lemma 14")


@theorem(id="de_sghmc.gradient_error_bound", paper=PAPER, number="Lemma 15", kind="upper",
         quantity="gradient_error", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def gradient_error_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                         variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """What the average's gradient misses because clients take theirs elsewhere.

    Guarantee, for every iteration:

        E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2 <= (L^2/N) * right-hand side of Lemma 14

    Source: DE-SGHMC Lemma 15, equation (49).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "gradient_error" with the terms of `disagreement_bound`.
    """
    c = chain(constants, algorithm, variant, begin)
    rounds = recorded_rounds(n_rounds, record)
    terms = {name: c.base.L**2 / c.base.N * part for name, part in _disagreement_terms(c, rounds).items()}
    return _bound(c, rounds, terms, "gradient_error", "Lemma 15, equation (49)")


@theorem(id="de_sghmc.coupling_bound", paper=PAPER, number="Lemma 16", kind="upper",
         quantity="average_to_damped", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def coupling_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """Distance of the average to the Euler scheme t with the same, damped noise.

    Guarantee, with t' = t - (alpha/N) grad f(t) + sqrt(2 gamma eta) eta wbar from the same start and
    A = alpha/mu'' + (1 + alpha L)^2/mu''^2:

        E||average - t||^2 <= 2 A [beta^2 c_5/(alpha N) + 2 L^2 c_5 alpha/(N (1-g)^2)]
                              + alpha sigma^2/(mu'' N)
                              + alpha (alpha + (1 + alpha L)^2/mu'') H (4 L^2/N) E||x_0||^2

    Source: DE-SGHMC Lemma 16. Printed with g^2 H in the last term, as Lemma 8.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "average_to_damped" with terms "disagreement", "gradient_noise" and "network_transient".
    """
    c = chain(constants, algorithm, variant, begin)
    rounds, s = recorded_rounds(n_rounds, record), c.base
    bracket = c.beta**2 * c.c5 / (c.alpha * s.N) + 2.0 * s.L**2 * c.c5 * c.alpha / (s.N * s.gap**2)
    return _bound(c, rounds, {
        "disagreement": 2.0 * s.drift / s.mu_prime * bracket, "gradient_noise": s.noise**2,
        "network_transient": s.transient_sq(rounds, variant)}, "average_to_damped", "Lemma 16")


@theorem(id="de_sghmc.damping_bound", paper=PAPER, number="Lemma 17", kind="upper",
         quantity="damped_to_euler", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("corrected",), applies=applicable)
def damping_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                  variant: str = "corrected") -> Bound:
    """Distance of the two Euler schemes, with damped and with full noise.

    Guarantee, with A as in `coupling_bound`:

        E||t - y||^2 <= 2 A (sqrt(1-beta) - 1)^2 d/(alpha N)

    Source: DE-SGHMC Lemma 17.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "corrected"
        As printed.

    Returns
    -------
    Bound on "damped_to_euler" with the one term "damping".
    """
    c = chain(constants, algorithm)
    s = c.base
    value = 2.0 * s.drift / s.mu_prime * c.lost**2 * s.d / (c.alpha * s.N)
    return _bound(c, recorded_rounds(n_rounds, record), {"damping": value}, "damped_to_euler", "Lemma 17")
