"""DE-SGLD's lemmas about the clients: Lemmas 5, 6, 7 and 8. Notation as in `bounds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.law import recorded_rounds

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import HYPOTHESES
from .setting import PAPER, Setting, applicable, hypotheses, setting


@theorem(id="de_sgld.gradient_bound", paper=PAPER, number="Lemma 5", kind="upper",
         quantity="component_gradients", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=("corrected",), applies=applicable)
def gradient_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                   variant: str = "corrected") -> Bound:
    """Uniform bound D^2 of the clients' exact gradients.

    Guarantee, for every iteration:

        sum_i E||grad f_i(x_i)||^2 <= 4 L^2 E||x_0 - x^*||^2 + 8 L^2 C_1^2 eta^2 N/(1-g)^2
                                      + 2 L^2 (eta sigma^2 N + 2 d N)/(mu (1 + lambda_N - eta L))
                                      + 4 ||grad F(x^*)||^2

    with C_1 = sqrt(2 L sum_i (f_i(0) - min f_i)) (1 + 2 (L + mu)/mu).

    Source: DE-SGLD Lemma 5, equations (26) and (27).

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "corrected"
        As printed.

    Returns
    -------
    Bound on "component_gradients" with terms "start", "fixed_point", "noise" and "heterogeneity".
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    return Bound.from_terms(
        s.gradient_parts, rounds, assumptions=hypotheses(s), quantity="component_gradients", kind="upper",
        source="DE-SGLD Lemma 5, equation (26)", variant=variant)


def _disagreement_terms(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    return {"start": 4.0 * s.mixing_power(rounds) ** 2 * s.origin_sq,
            "gradients": 4.0 * s.gradient_bound * s.alpha**2 / s.gap**2,
            "gradient_noise": 4.0 * s.sigma_sq * s.N * s.alpha**2 / s.square_gap,
            "injected_noise": 8.0 * s.d * s.N * s.alpha / s.square_gap}


@theorem(id="de_sgld.disagreement_bound", paper=PAPER, number="Lemma 6", kind="upper",
         quantity="disagreement", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=("corrected",), applies=applicable)
def disagreement_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                       variant: str = "corrected") -> Bound:
    """How far clients are from their average.

    Guarantee, for every iteration k:

        sum_i E||x_i - average||^2 <= 4 g^(2k) E||x_0||^2 + 4 D^2 eta^2/(1-g)^2
                                      + 4 sigma^2 N eta^2/(1-g^2) + 8 d N eta/(1-g^2)

    Source: DE-SGLD Lemma 6.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "corrected"
        As printed.

    Returns
    -------
    Bound on "disagreement" with terms "start", "gradients", "gradient_noise" and "injected_noise".
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    return Bound.from_terms(_disagreement_terms(s, rounds), rounds, assumptions=hypotheses(s),
                            quantity="disagreement", kind="upper", source="DE-SGLD Lemma 6", variant=variant)


@theorem(id="de_sgld.gradient_error_bound", paper=PAPER, number="Lemma 7", kind="upper",
         quantity="gradient_error", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=("corrected",), applies=applicable)
def gradient_error_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                         variant: str = "corrected") -> Bound:
    """What the average's gradient misses because clients take theirs elsewhere.

    Guarantee, for every iteration:

        E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2 <= (L^2/N) * right-hand side of Lemma 6

    Source: DE-SGLD Lemma 7.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "corrected"
        As printed.

    Returns
    -------
    Bound on "gradient_error" with the terms of `disagreement_bound`.
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    terms = {name: s.L**2 / s.N * part for name, part in _disagreement_terms(s, rounds).items()}
    return Bound.from_terms(terms, rounds, assumptions=hypotheses(s), quantity="gradient_error", kind="upper",
                            source="DE-SGLD Lemma 7", variant=variant)


@theorem(id="de_sgld.coupling_bound", paper=PAPER, number="Lemma 8", kind="upper",
         quantity="average_to_euler", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         applies=applicable)
def coupling_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                   variant: str = "corrected") -> Bound:
    """Distance of the average to the Euler scheme that has the same noise.

    Guarantee, with y' = y - (eta/N) grad f(y) + sqrt(2 eta) wbar from the same start:

        E||average - y||^2 <= eta [eta/mu' + (1 + eta L)^2/mu'^2]
                              * [4 L^2 D^2 eta/(N (1-g)^2) + 4 L^2 sigma^2 eta/(1-g^2) + 8 L^2 d/(1-g^2)]
                              + eta sigma^2/(mu' N)
                              + eta (eta + (1 + eta L)^2/mu') H (4 L^2/N) E||x_0||^2

    Source: DE-SGLD Lemma 8. Printed with g^2 H in the last term (see `w2_bound`), which has another unit.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant
        As for `w2_bound`.

    Returns
    -------
    Bound on "average_to_euler" with terms "disagreement", "gradient_noise" and "network_transient".
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    bracket = (4.0 * s.L**2 * s.gradient_bound * s.alpha / (s.N * s.gap**2)
               + 4.0 * s.L**2 * s.sigma_sq * s.alpha / s.square_gap + 8.0 * s.L**2 * s.d / s.square_gap)
    return Bound.from_terms(
        {"disagreement": s.alpha * s.drift / s.mu_prime * bracket, "gradient_noise": s.noise**2,
         "network_transient": s.transient_sq(rounds, variant)},
        rounds, assumptions=hypotheses(s), quantity="average_to_euler", kind="upper",
        source="DE-SGLD Lemma 8", variant=variant)
