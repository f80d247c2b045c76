"""DE-SGHMC's lemmas about the clients and their average: Lemmas 14 to 17. Notation as in `setting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.law import recorded_rounds

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..de_sgld.setting import applicable
from .beginning import Beginning, of_problem
from .bounds import HYPOTHESES, VARIANTS, constant_of, coupling_terms, damping_sq
from .setting import PAPER, Chain, chain


def lemma(c: Chain, rounds: np.ndarray, terms: dict[str, Any], variant: str, quantity: str, number: str,
          **inputs: Any) -> Bound:
    """A bound on a second moment."""
    return Bound.from_terms(terms, rounds, assumptions=c.hypotheses, quantity=quantity, kind="upper",
                            source=f"DE-SGHMC {number}", variant=variant, inputs=inputs)


def _disagreement_terms(c: Chain, rounds: np.ndarray) -> dict[str, Any]:
    s = c.base
    return {"start": 2.0 * s.mixing_power(rounds) ** 2 * s.origin_sq,
            "velocities": 2.0 * c.c5 * c.alpha / s.gap**2}


@theorem(id="de_sghmc.disagreement_bound", paper=PAPER, number="Lemma 14", kind="upper",
         quantity="disagreement", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=VARIANTS[1:], applies=applicable, inputs=of_problem)
def disagreement_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                       variant: str = "printed", begin: Beginning | None = None) -> Bound:
    """How far clients are from their average.

    Guarantee, for every iteration k:

        sum_i E||x_i - average||^2 <= 2 g^(2k) E||x_0||^2 + 2 c_5 eta^2/(1-g)^2

    Source: DE-SGHMC Lemma 14.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, begin
        As for `w2_bound`.
    variant : "printed" or "printed_constant"
        The lemma as printed, with the corrected or the printed (105) for c_5.

    Returns
    -------
    Bound on "disagreement" with terms "start" and "velocities".

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, constant_of(variant), begin)
    rounds = recorded_rounds(n_rounds, record)
    return lemma(c, rounds, _disagreement_terms(c, rounds), variant, "disagreement", "Lemma 14")


@theorem(id="de_sghmc.gradient_error_bound", paper=PAPER, number="Lemma 15", kind="upper",
         quantity="gradient_error", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=VARIANTS[1:], applies=applicable, inputs=of_problem)
def gradient_error_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                         variant: str = "printed", begin: Beginning | None = None) -> Bound:
    """What the average's gradient misses because clients take theirs elsewhere.

    Guarantee, for every iteration:

        E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2 <= (L^2/N) * right-hand side of Lemma 14

    Source: DE-SGHMC Lemma 15, equation (49).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `disagreement_bound`.

    Returns
    -------
    Bound on "gradient_error" with the terms of `disagreement_bound`.

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, constant_of(variant), begin)
    rounds = recorded_rounds(n_rounds, record)
    terms = {name: c.base.L**2 / c.base.N * part for name, part in _disagreement_terms(c, rounds).items()}
    return lemma(c, rounds, terms, variant, "gradient_error", "Lemma 15, equation (49)")


@theorem(id="de_sghmc.coupling_bound", paper=PAPER, number="Lemma 16", kind="upper",
         quantity="average_to_damped", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=VARIANTS, applies=applicable, inputs=of_problem)
def coupling_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                   variant: str = "without_transient", begin: Beginning | None = None) -> Bound:
    """Distance of the average to the Euler scheme t with the same, damped noise.

    Guarantee, with t' = t - (alpha/N) grad f(t) + sqrt(2 gamma eta) eta wbar from the same start and
    A = alpha/mu'' + (1 + alpha L)^2/mu''^2:

        E||average - t||^2 <= 2 A [beta^2 c_5/(alpha N) + 2 L^2 c_5 alpha/(N (1-g)^2)]
                              + alpha sigma^2/(mu'' N)

    Source: DE-SGHMC Lemma 16. Printed with one more term, g^2 H (4 L^2/N) E||x_0||^2, which is at least 0.
    Proof without it, for the corrected (105), in the steps of `theory.de_sgld.coupling_bound`, in L2 norms:

    1. As in Lemma 14 the clients are Delta_j <= g^j S + a (1 - g^j) from their average, a =
       eta sqrt(c_5)/(1-g), S = ||x_0 - average_0||. (105) has c_5 >= 2 alpha c~_4 >= 4 alpha L^2 S^2, because
       c~_4 >= 2 L^2 (||x_0 - x_a|| + ||x_a - x^*||)^2: so S <= a (1-g)/(2 alpha L).
    2. average - t is at most u_k + w_k, u_k driven by alpha (L/sqrt(N)) Delta_j + beta eta sqrt(c_5/N) and
       w_k^2 <= alpha sigma^2/(mu N (2 - mu alpha)).
    3. As there, u_k <= (L a + (beta/eta) sqrt(c_5))/(mu sqrt(N)). By (38), beta <= alpha mu/16 <= alpha L/2,
       so that 2 (beta/eta) sqrt(c_5) <= L a, and mu^2 N u_k^2 <= beta^2 c_5/alpha + 2 L^2 a^2.
    4. E||average - t||^2 <= 2 u_k^2 + 2 w_k^2, which is at most the guarantee, as A >= 1/mu^2.

    For another c_5 with (46), S <= a (1-g)/(2 alpha L) has to be asked for.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "average_to_damped" with terms "disagreement", "gradient_noise" and in print
    "network_transient".

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, constant_of(variant), begin)
    rounds = recorded_rounds(n_rounds, record)
    return lemma(c, rounds, coupling_terms(c, rounds, variant), variant, "average_to_damped", "Lemma 16")


@theorem(id="de_sghmc.damping_bound", paper=PAPER, number="Lemma 17", kind="upper",
         quantity="damped_to_euler", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=("printed",), applies=applicable)
def damping_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                  variant: str = "printed") -> Bound:
    """Distance of the two Euler schemes, with damped and with full noise.

    Guarantee, with A as in `coupling_bound`:

        E||t - y||^2 <= 2 A (sqrt(1-beta) - 1)^2 d/(alpha N)

    Source: DE-SGHMC Lemma 17.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`.
    variant : "printed"

    Returns
    -------
    Bound on "damped_to_euler" with the one term "damping".

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm)
    return lemma(c, recorded_rounds(n_rounds, record), {"damping": damping_sq(c)}, variant, "damped_to_euler",
                 "Lemma 17")
