"""DE-SGHMC's lemmas about the clients and their average: Lemmas 14 to 17. Notation as in `setting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bounds import coupling_terms, damping_sq
from .paper import CONSTANT_105, HYPOTHESES, VARIANTS, theorem, theorem_of_constants
from .setting import Chain


def _disagreement_terms(c: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    c, s = c.as_printed(variant == "printed_constant"), c.base
    return {"start": 2.0 * s.mixing_power(rounds) ** 2 * s.origin_sq,
            "velocities": 2.0 * c.c5 * c.alpha / s.gap**2}


@theorem("Lemma 14", quantity="disagreement", terms=("start", "velocities"), hypotheses=HYPOTHESES,
         variants=CONSTANT_105)
def disagreement_bound(s: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """How far clients are from their average.

    Guarantee, for every iteration k:

        sum_i E||x_i - average||^2 <= 2 g^(2k) E||x_0||^2 + 2 c_5 eta^2/(1-g)^2

    Source: DE-SGHMC Lemma 14.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    0.13
    """
    return _disagreement_terms(s, rounds, variant)


@theorem("Lemma 15", quantity="gradient_error", terms=("start", "velocities"), hypotheses=HYPOTHESES,
         variants=CONSTANT_105, source="DE-SGHMC Lemma 15, equation (49)")
def gradient_error_bound(s: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """What the average's gradient misses because clients take theirs elsewhere.

    Guarantee, for every iteration:

        E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2 <= (L^2/N) * right-hand side of Lemma 14

    Source: DE-SGHMC Lemma 15, equation (49).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    0.27
    """
    return {name: s.base.L**2 / s.base.N * part
            for name, part in _disagreement_terms(s, rounds, variant).items()}


@theorem("Lemma 16", quantity="average_to_damped", hypotheses=HYPOTHESES, variants=VARIANTS,
         terms=("disagreement", "gradient_noise", "network_transient"))
def coupling_bound(s: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
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

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    0.58
    """
    return coupling_terms(s, rounds, variant)


@theorem_of_constants("Lemma 17", quantity="damped_to_euler", terms=("damping",), hypotheses=HYPOTHESES)
def damping_bound(s: Chain, rounds: np.ndarray) -> dict[str, Any]:
    """Distance of the two Euler schemes, with damped and with full noise.

    Guarantee, with A as in `coupling_bound`:

        E||t - y||^2 <= 2 A (sqrt(1-beta) - 1)^2 d/(alpha N)

    Source: DE-SGHMC Lemma 17.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 9.999999, fs.network.complete(2))
    >>> float(f"{bound.value[-1]:.2g}")
    2.7e-13
    """
    return {"damping": damping_sq(s)}
