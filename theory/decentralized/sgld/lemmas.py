"""DE-SGLD's lemmas about the clients: Lemmas 5 to 8, and (123). Notation as in `bounds`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...statement import Terms
from ..paper import THEOREM_1 as HYPOTHESES, sgld_theorem as theorem
from ..setting import Setting, power
from .bounds import VARIANTS

DISAGREEMENT = ("start", "gradients", "gradient_noise", "injected_noise")


@theorem("Lemma 5", quantity="component_gradients", hypotheses=HYPOTHESES,
         terms=("start", "fixed_point", "noise", "heterogeneity"), source="DE-SGLD Lemma 5, equation (26)")
def gradient_bound(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """Uniform bound D^2 of the clients' exact gradients.

    Guarantee, for every iteration:

        sum_i E||grad f_i(x_i)||^2 <= 4 L^2 E||x_0 - x^*||^2 + 8 L^2 C_1^2 eta^2 N/(1-g)^2
                                      + 2 L^2 (eta sigma^2 N + 2 d N)/(mu (1 + lambda_N - eta L))
                                      + 4 ||grad F(x^*)||^2

    with C_1 = sqrt(2 L sum_i (f_i(0) - min f_i)) (1 + 2 (L + mu)/mu).

    Source: DE-SGLD Lemma 5, equations (26) and (27).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    37.57
    """
    return s.gradient_parts


@theorem("Lemma 5, proof, and equation (123)", quantity="fixed_point_moment", hypotheses=HYPOTHESES,
         terms=("start", "noise"), source="DE-SGLD Lemma 5, proof")
def iterate_bound(s: Setting, rounds: np.ndarray) -> Terms:
    """How far the clients are from the fixed point x_eta of the iteration without noise.

    Guarantee, for every iteration k, with s = mu (1 + lambda_N - eta L):

        E||x - x_eta||^2 <= (1 - eta s)^k E||x_0 - x_eta||^2 + (eta sigma^2 N + 2 d N)/s

    where sqrt(E||x_0 - x_eta||^2) <= sqrt(E||x_0 - x^*||^2) + C_1 eta sqrt(N)/(1-g) by Lemma 18.

    Source: DE-SGLD, proof of Lemma 5; equation (123) is one step of it.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    4.13
    """
    start = (np.sqrt(s.start_sq) + s.fixed_point_distance) ** 2
    pull = s.alpha * s.mu * s.room
    return Terms({"start": start * power(np.log1p(-pull), rounds), "noise": s.alpha * s.heat / pull},
                 inputs={"alpha": s.alpha})


def _disagreement_terms(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    return {"start": 4.0 * s.mixing_power(rounds) ** 2 * s.origin_sq,
            "gradients": 4.0 * s.gradient_bound * s.alpha**2 / s.gap**2,
            "gradient_noise": 4.0 * s.sigma_sq * s.N * s.alpha**2 / s.square_gap,
            "injected_noise": 8.0 * s.d * s.N * s.alpha / s.square_gap}


@theorem("Lemma 6", quantity="disagreement", terms=DISAGREEMENT, hypotheses=HYPOTHESES)
def disagreement_bound(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """How far clients are from their average.

    Guarantee, for every iteration k:

        sum_i E||x_i - average||^2 <= 4 g^(2k) E||x_0||^2 + 4 D^2 eta^2/(1-g)^2
                                      + 4 sigma^2 N eta^2/(1-g^2) + 8 d N eta/(1-g^2)

    Source: DE-SGLD Lemma 6.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.175
    """
    return _disagreement_terms(s, rounds)


@theorem("Lemma 7", quantity="gradient_error", terms=DISAGREEMENT, hypotheses=HYPOTHESES)
def gradient_error_bound(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """What the average's gradient misses because clients take theirs elsewhere.

    Guarantee, for every iteration:

        E||(1/N) sum_i [grad f_i(average) - grad f_i(x_i)]||^2 <= (L^2/N) * right-hand side of Lemma 6

    Source: DE-SGLD Lemma 7.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.35
    """
    return {name: s.L**2 / s.N * part for name, part in _disagreement_terms(s, rounds).items()}


@theorem("Lemma 8", quantity="average_to_euler", hypotheses=HYPOTHESES, variants=VARIANTS,
         terms=("disagreement", "gradient_noise", "network_transient"))
def coupling_bound(s: Setting, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """Distance of the average to the Euler scheme that has the same noise.

    Guarantee, with y' = y - (eta/N) grad f(y) + sqrt(2 eta) wbar from the same start:

        E||average - y||^2 <= eta [eta/mu' + (1 + eta L)^2/mu'^2]
                              * [4 L^2 D^2 eta/(N (1-g)^2) + 4 L^2 sigma^2 eta/(1-g^2) + 8 L^2 d/(1-g^2)]
                              + eta sigma^2/(mu' N)

    Source: DE-SGLD Lemma 8. Printed with one more term, g^2 H (4 L^2/N) E||x_0||^2, which is at least 0.
    Where the proof in print sums it, a factor eta (eta + (1 + eta L)^2/mu') is lost and the index is
    shifted by one; the lemma holds even without it. Proof, in L2 norms, with r = 1 - mu eta:

    1. By (61) the clients are Delta_j <= g^j S + a (1 - g^j) + n from their average, where
       S = ||x_0 - average_0||, a = eta D/(1-g) and n^2 = (eta^2 sigma^2 N + 2 d N eta)/(1-g^2). Since
       S <= ||x_0 - x^*||, (26) has S <= D/(2L) = a (1-g)/(2 eta L).
    2. average - y shrinks by r, is pushed by at most eta (L/sqrt(N)) Delta_j, and gets orthogonal noise of
       at most eta sigma/sqrt(N). By Minkowski's inequality it is at most u_k + w_k, where
       u_k = (eta L/sqrt(N)) sum_(j<k) r^(k-1-j) Delta_j and w_k^2 <= eta sigma^2/(mu N (2 - mu eta)).
    3. u_k <= (L/(mu sqrt(N))) (a + n): clear for S <= a, as sum_j r^(k-1-j) <= 1/(mu eta). For S > a step 1
       gives mu eta <= eta L < (1-g)/2, so r - g > (1-g)/2, sum_j r^(k-1-j) g^j <= 2 r^k/(1-g), and S adds
       at most mu eta S 2 r^k/(1-g) <= a r^k to (1 - r^k) (a + n).
    4. E||average - y||^2 <= 2 u_k^2 + 2 w_k^2 <= (4 L^2/(mu^2 N)) (a^2 + n^2) + eta sigma^2/(mu' N), which
       is the guarantee with 1/mu^2 in place of eta/mu' + (1 + eta L)^2/mu'^2.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.375
    """
    terms: dict[str, Any] = {"disagreement": s.disagreement_sq, "gradient_noise": s.noise**2}
    if variant == "printed":
        terms["network_transient"] = s.transient_sq(rounds)
    return terms
