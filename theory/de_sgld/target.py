"""DE-SGLD's lemmas about the target and the noise-free scheme: Lemmas 9, 10 and 18."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.law import recorded_rounds
from fedsim.network import check_mixing, smallest_eigenvalue
from fedsim.validation import positive

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .bounds import HYPOTHESES
from .setting import PAPER, applicable, hypotheses, setting

ONCE = np.array([0])


@theorem(id="de_sgld.euler_bound", paper=PAPER, number="Lemma 9", kind="upper", quantity="w2_of_euler",
         algorithm=DESGLD, convention="components",
         hypotheses=("constant step_size <= 2/(smoothness + strong_convexity)",),
         variants=("corrected", "printed"), applies=applicable)
def euler_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                variant: str = "corrected") -> Bound:
    """W2 of the Euler scheme y' = y - (eta/N) grad f(y) + sqrt(2 eta/N) z with the average's start.

    Guarantee, after k iterations with step size eta <= 2/(L + mu):

        W2(y) <= (1 - mu eta)^k W2 at the start + 1.65 (L/mu) sqrt(eta d/N)

    Where the W2 at the start is not known, sqrt(E||average_0 - x_*||^2) + sqrt(d/(mu N)) is at least it
    (section 3.1.4, with Lemma 10's sharp constant).

    Source: DE-SGLD Lemma 9, which is Theorem 4 of Dalalyan and Karagulyan (2019). Printed for
    eta <= 2 N/(L + mu), because f/N is said to be (mu/N)-strongly convex and (L/N)-smooth. With
    components in the paper's class it is mu-strongly convex and L-smooth.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `w2_bound`; of the algorithm the step size counts and the number of clients.
    variant : "corrected" or "printed"
        They differ in the range of step sizes.

    Returns
    -------
    Bound on "w2_of_euler" with terms "initialization" and "discretization".

    Raises
    ------
    NotApplicable, ValueError
        As for `w2_bound`.
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    if variant == "printed":
        limit = Assumption.at_most("step_size <= 2 n_clients/(smoothness + strong_convexity)", s.alpha,
                                   2.0 * s.N / (s.L + s.mu))
    else:
        limit = Assumption.at_most("step_size <= 2/(smoothness + strong_convexity)", s.alpha,
                                   2.0 / (s.L + s.mu))
    begin = s.start_distance(False)
    return Bound.from_terms(
        {"initialization": s.contraction(rounds) * begin, "discretization": s.euler}, rounds,
        assumptions=(limit,), quantity="w2_of_euler", kind="upper", source="DE-SGLD Lemma 9",
        variant=variant, target=constants.target, start_distance=begin, floor=s.euler)


@theorem(id="de_sgld.target_moment_bound", paper=PAPER, number="Lemma 10", kind="upper",
         quantity="target_moment", algorithm=DESGLD, convention="components", hypotheses=(),
         variants=("sharp", "printed"), applies=applicable)
def target_moment_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int = 0, record: Any = None,
                        variant: str = "sharp") -> Bound:
    """Spread of the target about its mode.

    Guarantee, for X with density proportional to exp(-f):

        E||X - x_*||^2 <= d/(mu N)

    Source: DE-SGLD Lemma 10, printed with 2 d/(mu N). Proof of the smaller: integrating by parts,
    E<X - x_*, grad f(X)> = d, and f is (N mu)-strongly convex.

    Parameters
    ----------
    constants, algorithm
        As for `w2_bound`.
    n_rounds, record
        Not used: the bound is about the target.
    variant : "sharp" or "printed"
        d/(mu N) or 2 d/(mu N).

    Returns
    -------
    Bound on "target_moment" with the one term "spread".

    Raises
    ------
    NotApplicable, ValueError
        As for `setting`.
    """
    s = setting(constants, algorithm)
    value = s.target_norm**2 * (0.5 if variant == "sharp" else 1.0)
    return Bound.from_terms(
        {"spread": value}, ONCE, assumptions=(), quantity="target_moment", kind="upper",
        source="DE-SGLD Lemma 10", variant=variant, target=constants.target,
        inputs={"minimizer": constants.minimizer})


@theorem(id="de_sgld.fixed_point_bound", paper=PAPER, number="Lemma 18", kind="upper",
         quantity="fixed_point_distance", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=("printed",), applies=applicable)
def fixed_point_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int = 0, record: Any = None,
                      variant: str = "printed") -> Bound:
    """How far the fixed point of the noise-free iteration is from agreement on the minimizer.

    Guarantee, for x_eta with x_eta = (W x I) x_eta - eta grad F(x_eta):

        ||x_eta - x^*|| <= C_1 eta sqrt(N)/(1-g)

    with C_1 of Lemma 5.

    Source: DE-SGLD Lemma 18, after Corollary 9 of Yuan, Ling and Yin (2016).

    Parameters
    ----------
    constants, algorithm
        As for `w2_bound`.
    n_rounds, record
        Not used: the bound is about a fixed point.
    variant : "printed"

    Returns
    -------
    Bound on "fixed_point_distance" with the one term "distance".

    Raises
    ------
    NotApplicable, ValueError
        As for `setting`.
    """
    s = setting(constants, algorithm)
    return Bound.from_terms({"distance": s.fixed_point_distance}, ONCE, assumptions=hypotheses(s),
                            quantity="fixed_point_distance", kind="upper", source="DE-SGLD Lemma 18",
                            variant=variant, inputs={"alpha": s.alpha})


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
    >>> from fedsim import network
    >>> [round(step_size_limit(1.0, L, network.ring(4)), 6) for L in (1.0, 9.0)]
    [0.5, 0.074074]
    """
    mu, L = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    smallest = smallest_eigenvalue(check_mixing(mixing))
    below = np.nextafter(min((1.0 + smallest) / L, 1.0 / (L + mu)), 0.0)
    while 1.0 + smallest - below * L <= 0.0:  # rounding, as in `Setting.room`
        below = np.nextafter(below, 0.0)
    return float(below)
