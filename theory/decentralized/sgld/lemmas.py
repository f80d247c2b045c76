"""DE-SGLD's lemmas, and Theorem 1's largest step size. Notation as in `bounds`.

Lemmas 5 to 8 and (123) are about the clients; 9, 10 and 18 about the target and the noise-free scheme.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.network import check_mixing, smallest_eigenvalue
from fedsim.settings.validation import positive

from ...declare.bound import Assumption
from ...declare.statement import Hypothesis, Terms
from ...facts.constants_of_problem import Constants
from ..paper import sgld_theorem as theorem
from ..setting import Setting, power
from .bounds import VARIANTS

ONCE = np.array([0])
DISAGREEMENT = ("start", "gradients", "gradient_noise", "injected_noise")


@theorem("Lemma 5", quantity="component_gradients", terms=("start", "fixed_point", "noise", "heterogeneity"),
         source="DE-SGLD Lemma 5, equation (26)")
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


@theorem("Lemma 5, proof, and equation (123)", quantity="fixed_point_moment", terms=("start", "noise"),
         source="DE-SGLD Lemma 5, proof")
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
    return Terms({"start": start * power(np.log1p(-pull), rounds), "noise": s.alpha * s.heat_of() / pull},
                 inputs={"alpha": s.alpha})


def _disagreement_terms(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    return {"start": 4.0 * s.mixing_power(rounds) ** 2 * s.origin_sq, **s.disagreement_parts}


@theorem("Lemma 6", quantity="disagreement", terms=DISAGREEMENT)
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


@theorem("Lemma 7", quantity="gradient_error", terms=DISAGREEMENT)
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


@theorem("Lemma 8", quantity="average_to_euler", variants=VARIANTS,
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


def _limit(s: Setting, variant: str) -> Assumption:
    clients, name = (s.N, "2 n_clients") if variant == "printed" else (1, "2")
    return Assumption.at_most(f"step_size <= {name}/(smoothness + strong_convexity)", s.alpha,
                              2.0 * clients / (s.L + s.mu))


@theorem("Lemma 9", quantity="w2_of_euler", terms=("initialization", "discretization"),
         hypotheses=(Hypothesis("constant step_size <= 2/(smoothness + strong_convexity)", _limit),),
         variants={"corrected": "", "printed": "for step sizes up to 2 N/(L + mu)"})
def euler_bound(s: Setting, rounds: np.ndarray) -> Terms:
    """W2 of the Euler scheme y' = y - (eta/N) grad f(y) + sqrt(2 eta/N) z with the average's start.

    Guarantee, after k iterations with step size eta <= 2/(L + mu):

        W2(y) <= (1 - mu eta)^k W2 at the start + 1.65 (L/mu) sqrt(eta d/N)

    Where the W2 at the start is not known, sqrt(E||average_0 - x_*||^2) + sqrt(d/(mu N)) is at least it
    (section 3.1.4, with Lemma 10's sharp constant). Of the algorithm the step size counts and the number of
    clients.

    Source: DE-SGLD Lemma 9, which is Theorem 4 of Dalalyan and Karagulyan (2019). Printed for
    eta <= 2 N/(L + mu), because f/N is said to be (mu/N)-strongly convex and (L/N)-smooth. With
    components in the paper's class it is mu-strongly convex and L-smooth.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), bound.is_vacuous
    (0.453, False)
    """
    return Terms({"initialization": s.contraction(rounds) * s.start_distance(False),
                  "discretization": s.euler}, floor=s.euler)


@theorem("Lemma 10", quantity="target_moment", terms=("spread",), hypotheses=(),
         variants={"sharp": "d/(mu N)", "printed": "2 d/(mu N)"})
def target_moment_bound(s: Setting, constants: Constants, variant: str) -> Terms:
    """Spread of the target about its mode.

    Guarantee, for X with density proportional to exp(-f):

        E||X - x_*||^2 <= d/(mu N)

    Source: DE-SGLD Lemma 10, printed with 2 d/(mu N). Proof of the smaller: integrating by parts,
    E<X - x_*, grad f(X)> = d, and f is (N mu)-strongly convex.

    Examples
    --------
    >>> round(float(bound.value[0]), 3)
    0.5
    """
    return Terms({"spread": s.target_norm**2 * (0.5 if variant == "sharp" else 1.0)}, rounds=ONCE,
                 inputs={"minimizer": constants.minimizer})


@theorem("Lemma 18", quantity="fixed_point_distance", terms=("distance",))
def fixed_point_bound(s: Setting) -> Terms:
    """How far the fixed point of the noise-free iteration is from agreement on the minimizer.

    Guarantee, for x_eta with x_eta = (W x I) x_eta - eta grad F(x_eta):

        ||x_eta - x^*|| <= C_1 eta sqrt(N)/(1-g)

    with C_1 of Lemma 5.

    Source: DE-SGLD Lemma 18, after Corollary 9 of Yuan, Ling and Yin (2016).

    Examples
    --------
    >>> round(float(bound.value[0]), 3)
    0.121
    """
    return Terms({"distance": s.fixed_point_distance}, rounds=ONCE, inputs={"alpha": s.alpha})


def step_size_limit(strong_convexity: float, smoothness: float, mixing: Any) -> float:
    """Largest step size of Theorem 1: the number just below min((1 + lambda_N)/L, 1/(L + mu)).

    The theorem's interval is open; at its end (1 + lambda_N)/L its bound has no value, and a hair below it
    is huge.

    Parameters
    ----------
    strong_convexity, smoothness : float
        mu and L of the components, e.g. ``problem.curvature_bounds("components")``.
    mixing : (N, N)

    Returns
    -------
    float
        eta, in the units of 1/smoothness.

    Raises
    ------
    ValueError
        For numbers not greater than 0, strong convexity beyond smoothness, and a matrix that is no mixing
        matrix (`fedsim.network.check_mixing`).

    Source: DE-SGLD Theorem 1.

    Examples
    --------
    >>> [round(theory.de_sgld.step_size_limit(1.0, L, fs.network.ring(4)), 6) for L in (1.0, 9.0)]
    [0.5, 0.074074]
    """
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    if mu > L:
        raise ValueError(f"strong_convexity={mu:g} must be at most smoothness={L:g}")
    smallest = smallest_eigenvalue(check_mixing(mixing))
    below = np.nextafter(min((1.0 + smallest) / L, 1.0 / (L + mu)), 0.0)
    while 1.0 + smallest - below * L <= 0.0:  # rounding, as in `Setting.room`
        below = np.nextafter(below, 0.0)
    return float(below)
