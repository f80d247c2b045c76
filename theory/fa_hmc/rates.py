"""FA-HMC's statements up to constants: Theorems 4.1, 4.4, C.1 and Proposition 4.3.

They are of kind "rate": shapes, with every unknown constant (and power of log d) set to one. What is
done with them stands in `theory.rates`: ratios, a constant labelled as fitted, slopes. With the squared
trajectory length g = (K eta)^2 and E_0 the squared W2 at the start, Theorem 4.1's rule is

    1/g = L + T sqrt(d)/eps + d T^2 (1-rho) N/eps^2 + d sum_c w_c^2 sigma_g^2/(K eps^2)

up to a constant, and iterations go like (4/(mu g)) log(2 E_0/eps^2): solved from Theorem 4.4, whose two
parts are made eps^2/2 each.

Variants "sharp" use that momenta of different updates are independent: with Lemma D.8 corrected,
correlation enters with T, not T^2, and the rise of rounds with T that Theorem 4.1 reads off its rate (the
right arm of the U) is gone. This is what the explicit recursion gives.

Hypotheses "of order" are about families of problems (d to infinity). At one problem they are judged with
a constant of 100, which is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from ..facts.constants_of_problem import Constants
from ..theorem_parts import accuracy, constant_step, half_start, of_order
from .hypotheses import FULL_TURN, MOMENTS, within
from .notation import FULL, Setting, known_moments, theorem
from .theorem_44 import contraction, initial_error

ORDERS = ("W2 at the start squared of order d/strong_convexity",
          "weighted squared gradients at the minimizer of order d*smoothness",
          "squared gradient noise of order leapfrog_steps*smoothness")
"""Theorem 4.1's hypotheses on the start and the heterogeneity; section K's sigma_g^2 = O(K)."""


def inverse_squared_length(s: Setting, eps: float, power: int = 2) -> dict[str, float]:
    """1/g by its parts; the largest decides. `power` is that of T in the correlation."""
    return {"smoothness": s.L, "bias": s.T * np.sqrt(s.d) / eps,
            "correlation": s.d * float(s.T) ** power * (1.0 - s.rho) * s.N / eps**2,
            "gradient_noise": s.d * float((s.w**2).sum()) * s.sigma_sq / (s.K * eps**2)}


def printed_rounds(s: Setting, size: float, g: float) -> dict[str, float]:
    """size (T (g + (1-rho) N) + sum_c w_c^2 sigma_g^2/(K T)) by its parts."""
    return {"bias": size * s.T * g, "correlation": size * s.T * (1.0 - s.rho) * s.N,
            "gradient_noise": size * float((s.w**2).sum()) * s.sigma_sq / (s.K * s.T)}


MODERATE = (
    Hypothesis(ORDERS[0], lambda constants, s: of_order(ORDERS[0], initial_error(constants, s), s.d / s.mu)),
    Hypothesis(ORDERS[1], lambda s: of_order(ORDERS[1], float(s.w @ s.slopes**2), s.d * s.L)),
    Hypothesis(ORDERS[2], lambda s: of_order(ORDERS[2], s.sigma_sq, s.K * s.L)))


def halvings(constants: Constants, s: Setting, eps: float) -> float:
    """log(2 E_0/eps^2), and 0 where the start is near enough."""
    return float(np.log(max(2.0 * initial_error(constants, s) / eps**2, 1.0)))


ROUNDS = ("smoothness", "bias", "correlation", "gradient_noise")


@theorem("Theorem 4.1", quantity="rounds_to_w2", kind="rate", terms=ROUNDS,
         hypotheses=(Hypothesis("step size by the theorem's rule"), *MODERATE, FULL),
         variants={"sharp": "", "printed": "as printed; it has no smoothness term",
                   "resolved": "the theorem's own rule, with T^2, put into (4/(mu g T)) log(2 E_0/eps^2)"},
         inputs=half_start)
def rounds_rate(s: Setting, constants: Constants, variant: str, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps with the step size of Theorem 4.1.

    Guarantee: rounds = O(value), the value being (4/(mu g T)) log(2 E_0/eps^2) with 1/g of
    `theory.fa_hmc.rates` and T for T^2 in the correlation.

    Source: FA-HMC Theorem 4.1. Printed: (d log(d/eps^2)/eps^2) (T (g + (1-rho) N)
    + sum_c w_c^2 sigma_g^2/(K T)), the same with T^2, where 1/L does not decide and E_0 = O(d). "sharp" is
    proved by `error_rate`: each of its parts is made eps^2/2 (up to constants). With sum_c w_c B_c =
    O(d (1 + (1-rho) N)) by Lemma D.7 the bias needs 1/g of order T sqrt(d (1 + (1-rho) N))/eps, which is at
    most T sqrt(d)/eps + the square root of T times the correlation's part d T (1-rho) N/eps^2; the latter
    exceeds T up to a constant, unless (1-rho) N < 1 or E_0 is of order eps^2 already.

    The algorithm's step size is of no influence.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.rounds_rate(known, algorithm, eps=0.01)
    >>> bound.kind, float(bound.value[0].round(1))
    ('rate', 3997.6)
    """
    small = accuracy(eps)
    parts = inverse_squared_length(s, small, 1 if variant == "sharp" else 2)
    if variant == "printed":
        log = max(float(np.log(s.d / small**2)), 0.0)
        terms = printed_rounds(s, log * s.d / small**2, 1.0 / max(parts.values()))
    else:
        log = halvings(constants, s, small)
        terms = {name: 4.0 / (s.mu * s.T) * log * part for name, part in parts.items()}
    return Terms(terms, rounds=np.array([0]), inputs={"eps": small})


SHARED = "1 - shared_noise of order smoothness*g/n_clients"
EXACT = "squared gradient noise of order leapfrog_steps*smoothness^2*g"


def vanilla_g(s: Setting, eps: float) -> float:
    """g of Proposition 4.3, the squared trajectory length."""
    return min(1.0 / s.L, eps / (s.T * np.sqrt(s.d)))


@theorem("Proposition 4.3", quantity="rounds_to_w2", kind="rate", terms=("rounds",), inputs=half_start,
         hypotheses=(
             Hypothesis(SHARED, lambda s, eps: of_order(SHARED, 1.0 - s.rho, s.L * vanilla_g(s, eps) / s.N)),
             Hypothesis(EXACT, lambda s, eps: of_order(EXACT, s.sigma_sq, s.K * s.L**2 * vanilla_g(s, eps))),
             *MODERATE[:2], FULL))
def vanilla_rate(constants: Constants, *, eps: float) -> Terms:
    """Shape of the rounds to W2 <= eps for (nearly) shared momenta and (nearly) exact gradients.

    Guarantee: rounds = O(sqrt(d) log(d/eps^2)/eps), whatever the number of local steps is, with
    g = min{1/L, eps/(T sqrt(d))}, 1 - rho = O(g/N) and sigma_g^2 = O(K g).

    Source: FA-HMC Proposition 4.3. L and L^2 free its two conditions of units.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.vanilla_rate(known, algorithm, eps=0.01)
    >>> float(bound.value[0].round(1)), bound.violated
    (921.0, ())
    """
    return _root_of_dimension(constants, eps, 2)


def _root_of_dimension(constants: Constants, eps: float, power: int) -> Terms:
    """sqrt(d) log(d/eps^power)/eps."""
    small, d = accuracy(eps), constants.dim
    value = np.sqrt(d) * max(float(np.log(d / small**power)), 0.0) / small
    return Terms({"rounds": value}, rounds=np.array([0]), inputs={"eps": small})


APART = "smoothness > strong_convexity"


@theorem("Theorem C.1", quantity="rounds_to_w2", kind="rate", terms=("rounds",), inputs=half_start,
         hypotheses=(Hypothesis("two kinds of clients"),
                     Hypothesis(APART, lambda constants: Assumption.yes(
                         APART, constants.smoothness > constants.strong_convexity)),
                     Hypothesis("exact trajectories"), FULL))
def lower_rate(constants: Constants, *, eps: float) -> Terms:
    """Shape of the rounds that the problem of Theorem C.1 needs at least.

    Guarantee: rounds to W2 <= eps on `TwoGroups` = Omega(sqrt(d) log(d/eps)/eps); iterations are T times
    as many.

    Source: FA-HMC Theorem C.1 (I.1) and section 4.1, which have iterations, sqrt(d) T log(d/eps)/eps.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.1, 5, local_steps=10)
    >>> known = theory.constants(problem, algorithm)
    >>> bound = theory.fa_hmc.lower_rate(known, algorithm, eps=0.01)
    >>> float(bound.value[0].round(1))
    460.5
    """
    return _root_of_dimension(constants, eps, 1)


CONSTANT = constant_step(": with decreasing steps the theorem's display is false; use "
                         "theory.fa_hmc.coupling_bound")


@theorem("Theorem 4.4 (O-form)", quantity="coupling_sq", kind="rate", source="FA-HMC Theorem 4.4",
         terms=("initialization", "bias", "correlation", "gradient_noise", "discretization"),
         hypotheses=(within(FULL_TURN), CONSTANT, MOMENTS, FULL), index="local_step",
         variants={"sharp": "", "printed": "as printed; it has no discretization term"})
def error_rate(s: Setting, constants: Constants, rounds: np.ndarray, variant: str, *,
               gradient_moments: Any = None) -> dict[str, Any]:
    """Shape of E_t after t local updates, with the constants of Theorem 4.4 set to one.

    Guarantee, up to constants that depend on L/mu and L_H^2 c_d/L^3, with X = K eta constant:

        E_t <= (1 - mu X^2/4)^t E_0 + ((T-1)^2 + 1) X^4 sum_c w_c (B_c + L s_c d) + (T-1) X^2 (1-rho)(N-1) d
               + (X^2/(K L)) [ sum_c w_c^2 + ((T-1)^2 + 1) L X^2 ] sigma_g^2 d

    Source: FA-HMC Theorem 4.4, from its recursion: a_{T-1}/(mu X^2/4) with a_j of `theory.fa_hmc.theorem_44`.
    (T-1)^2 and T-1 come from Lemma D.8; the 1 beside (T-1)^2 from delta_K^c of (9), which contains B_c/L,
    and from the momenta's X^6 L^2 sum_c w_c s_c d: with one update per round clients never part, and the
    error is still not zero. Printed: T^2 in place of ((T-1)^2 + 1) and of T-1, exponent t for E_{t+1},
    1/L in the terms of B_c and (1-rho), and gradient noise as sum_c w_c^2 alone; its constants may depend
    on L as well.

    Examples
    --------
    >>> bound.kind, round(float(bound.value[-1]), 3)
    ('rate', 1.036)
    """
    moments = known_moments(s, gradient_moments, "corrected")
    averaged, mean = float((s.w**2).sum()), float(s.w @ moments)
    if variant == "printed":
        age, noise = np.maximum(rounds - 1, 0), s.of("printed").sigma_sq
        parts = {"bias": s.T**2 * s.X**4 * mean / s.L,
                 "correlation": s.T**2 * s.X**2 * (1.0 - s.rho) * s.N * s.d / s.L,
                 "gradient_noise": s.X**2 / s.K * averaged * noise * s.d}
    else:
        age, many = rounds, (s.T - 1.0) ** 2 + 1.0
        parts = {"bias": many * s.X**4 * mean,
                 "correlation": (s.T - 1.0) * s.X**2 * s.spread * s.d,
                 "gradient_noise": s.X**2 / (s.K * s.L) * (averaged + many * s.L * s.X**2) * s.sigma_sq * s.d,
                 "discretization": many * s.X**4 * s.L * float(s.w @ s.s) * s.d}
    return {"initialization": contraction(s, s.X) ** age * initial_error(constants, s), **parts}
