"""DE-SGLD's lemmas about the target and the noise-free scheme: Lemmas 9, 10 and 18."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.network import check_mixing, smallest_eigenvalue
from fedsim.settings.validation import positive

from ...bound import Assumption
from ...facts import Constants
from ...statement import Hypothesis, Terms
from ..paper import THEOREM_1 as HYPOTHESES, sgld_theorem as theorem
from ..setting import Setting

ONCE = np.array([0])


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


@theorem("Lemma 10", quantity="target_moment", terms=("spread",),
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


@theorem("Lemma 18", quantity="fixed_point_distance", terms=("distance",), hypotheses=HYPOTHESES)
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
        For numbers not greater than 0, and a matrix that is no mixing matrix (`fedsim.network.check_mixing`).

    Source: DE-SGLD Theorem 1.

    Examples
    --------
    >>> [round(theory.de_sgld.step_size_limit(1.0, L, fs.network.ring(4)), 6) for L in (1.0, 9.0)]
    [0.5, 0.074074]
    """
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    smallest = smallest_eigenvalue(check_mixing(mixing))
    below = np.nextafter(min((1.0 + smallest) / L, 1.0 / (L + mu)), 0.0)
    while 1.0 + smallest - below * L <= 0.0:  # rounding, as in `Setting.room`
        below = np.nextafter(below, 0.0)
    return float(below)
