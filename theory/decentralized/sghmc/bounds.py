"""DE-SGHMC Theorem 11, W2 of the average and of the clients to the target, Lemmas 14 to 17, and Remark 12.

Notation as in `setting`: alpha = eta^2, beta = 1 - gamma eta, mu'' = mu (1 - alpha L/2), g = gamma-bar,
c_5 bounds E||v||^2 of all clients, and in print H = (rho^k - g^(2k)) / (rho - g^2), rho = 1 - alpha mu''.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.settings.validation import whole

from ...declare.statement import Terms
from ...facts.constants_of_problem import Constants
from ..connectivity import Connectivity, along_gamma_bar
from ..paper import sghmc_theorem as theorem, theorem_of_constants
from ..sgld.bounds import with_floor
from .setting import Chain, chain

AVERAGE = ("initialization", "discretization", "disagreement", "gradient_noise", "network_transient",
           "momentum")
CONSTANT_105 = {"printed": "with the corrected (105) for c_5",
                "printed_constant": "with (105) as printed"}
VARIANTS = {"without_transient": "without the term for a start apart, and with the corrected (105) for c_5",
            "printed": "with that term, and with the corrected (105)",
            "printed_constant": "with that term, and (105) as printed, which the theorem itself does not "
                                "contain"}


def constant_5(c: Chain, variant: str) -> float:
    """c_5 by (105), as printed or corrected."""
    return c.as_printed(variant == "printed_constant").c5


def disagreement_terms(c: Chain, c5: float, rounds: np.ndarray) -> dict[str, Any]:
    """The terms of Lemma 14 for a c_5."""
    return {"start": 2.0 * c.base.mixing_power(rounds) ** 2 * c.base.origin_sq,
            "velocities": 2.0 * c5 * c.alpha / c.base.gap**2}


def coupling_terms(c: Chain, c5: float, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of Lemma 16, squared, for a c_5."""
    s, apart = c.base, disagreement_terms(c, c5, rounds)["velocities"]
    bracket = (c.beta**2 * c5 / c.alpha + s.L**2 * apart) / s.N
    terms: dict[str, Any] = {"disagreement": 2.0 * s.drift / s.mu_prime * bracket,
                             "gradient_noise": s.noise**2}
    if variant != "without_transient":
        terms["network_transient"] = s.transient_sq(rounds)
    return terms


def damping_sq(c: Chain) -> float:
    """Lemma 17."""
    s = c.base
    return 2.0 * s.drift / s.mu_prime * c.lost**2 * s.d / (c.alpha * s.N)


def average_terms(c: Chain, c5: float, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of the average's bound, equation (39), for a c_5."""
    s = c.base
    roots = {name: np.sqrt(part) for name, part in coupling_terms(c, c5, rounds, variant).items()}
    return {"initialization": s.initialization(rounds), "discretization": s.euler, **roots,
            "momentum": float(np.sqrt(damping_sq(c)))}


def clients_terms(c: Chain, c5: float, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of the clients' bound, equation (40), for a c_5."""
    start, velocities = (np.sqrt(part / c.base.N) for part in disagreement_terms(c, c5, rounds).values())
    return average_terms(c, c5, rounds, variant) | {"clients_transient": start,
                                                    "clients_spread": float(velocities)}


def _equation(number: str) -> Callable[[str], str]:
    return lambda variant: f"DE-SGHMC Theorem 11, equation {number}" + (
        " with (105) as printed for its c_5" if variant == "printed_constant" else "")


@theorem("Theorem 11 (average)", quantity="w2", terms=AVERAGE, variants=VARIANTS, source=_equation("(39)"))
def w2_bound(s: Chain, rounds: np.ndarray, variant: str) -> Terms:
    """W2 bound of the clients' average.

    Guarantee, after k iterations, in the range (37), (38) of step size and friction:

        W2 <= (1 - mu eta^2)^k [ sqrt(E||average_0 - x_*||^2) + sqrt(2 d/(mu N)) ]
              + 1.65 (L/mu) eta sqrt(d/N) + eta sigma/sqrt(mu'' N)
              + eta sqrt(2) [alpha/mu'' + (1 + alpha L)^2/mu''^2]^(1/2)
                * { [beta^2 c_5/(alpha^2 N) + 2 L^2 c_5/(N (1-g)^2)]^(1/2)
                    + [(sqrt(1-beta) - 1)^2 d/(alpha^2 N)]^(1/2) }

    Source: DE-SGHMC Theorem 11, equation (39), for the c_5 of `velocity_bound`. Printed with one more
    term, [g^2 H]^(1/2) (2 L/sqrt(N)) sqrt(E||x_0||^2), which is at least 0; with this c_5 the theorem holds
    without it, by Lemmas 9, 10, 17 and the proof in `coupling_bound`. The theorem takes c_5 from Lemma 13,
    which asserts that there is one; the one that its proof gives, (105), is not a bound as it is printed.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), bound.hypotheses_hold
    (1.42, True)
    """
    return with_floor(average_terms(s, constant_5(s, variant), rounds, variant))


@theorem("Theorem 11 (clients)", quantity="w2_clients", variants=VARIANTS,
         terms=(*AVERAGE, "clients_transient", "clients_spread"), source=_equation("(40)"))
def w2_clients_bound(s: Chain, rounds: np.ndarray, variant: str) -> Terms:
    """Bound of the mean over clients of their W2 distances to the target.

    Guarantee, in the range of `w2_bound`, with the terms of `w2_bound` and

        (1/N) sum_i W2(x_i) <= ... + (sqrt(2) g^k/sqrt(N)) sqrt(E||x_0||^2) + eta sqrt(2 c_5)/(sqrt(N) (1-g))

    Source: DE-SGHMC Theorem 11, equation (40): `w2_bound` and the root of Lemma 14, term by term.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), bound.is_vacuous
    (1.68, True)
    """
    return with_floor(clients_terms(s, constant_5(s, variant), rounds, variant))


@theorem("Lemma 14", quantity="disagreement", terms=("start", "velocities"), variants=CONSTANT_105)
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
    return disagreement_terms(s, constant_5(s, variant), rounds)


@theorem("Lemma 15", quantity="gradient_error", terms=("start", "velocities"), variants=CONSTANT_105,
         source="DE-SGHMC Lemma 15, equation (49)")
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
            for name, part in disagreement_terms(s, constant_5(s, variant), rounds).items()}


@theorem("Lemma 16", quantity="average_to_damped", variants=VARIANTS,
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
    return coupling_terms(s, constant_5(s, variant), rounds, variant)


@theorem_of_constants("Lemma 17", quantity="damped_to_euler", terms=("damping",))
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


def connectivity(constants: Constants, algorithm: DESGHMC, n_rounds: int) -> Connectivity:
    """Theorem 11's bound for the clients, as printed, for gamma-bar from |lambda_N| to one and c_5 the same.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGHMC
        Constant step size; of its network lambda_N counts, and gamma-bar where c_5 asks for it.
    n_rounds : int

    Returns
    -------
    Connectivity

    Raises
    ------
    NotApplicable
        As for `w2_bound`.
    ValueError
        As for `chain`, and for n_rounds below 0.

    Source: DE-SGHMC Remark 12.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> known = theory.constants(problem, algorithm, [1.0])
    >>> theory.de_sghmc.connectivity(known, algorithm, 100).decrease < 0.0
    True
    """
    c, rounds = chain(constants, algorithm), np.array([whole("n_rounds", n_rounds)])
    c5 = constant_5(c, "printed")
    return along_gamma_bar(c.base, lambda s: clients_terms(replace(c, base=s), c5, rounds, "printed"))


@theorem_of_constants("section 4, Remark 12 (connectivity)", quantity="connectivity_decrease",
                      terms=("zero",), source="DE-SGHMC Remark 12")
def connectivity_bound(s: Chain, constants: Constants, algorithm: DESGHMC, n_rounds: int) -> Terms:
    """Theorem 11's bound for the clients falls nowhere as gamma-bar grows and c_5 stays.

    Guarantee: the largest fall of equation (40), with one c_5, between neighbouring values of gamma-bar is at
    most 0.

    Source: DE-SGHMC Remark 12, which leaves out "the constant c_5 whose dependency to gamma-bar is more
    complicated to determine"; the remark `de_sghmc.monotone` has two networks between which (40) with its c_5
    falls.

    The bound is looked at after `n_rounds`, whatever is recorded. Proof: g stands in 1/(1-g), in g^k, and in
    g^2 H = sum_(i<k) rho^i g^(2 (k-i)), all of which grow with it.

    Examples
    --------
    >>> bound.value.tolist(), round(bound.inputs["connectivity"].decrease, 3)
    ([0.0], -0.138)
    """
    return Terms({"zero": 0.0}, rounds=np.array([0]),
                 inputs={"connectivity": connectivity(constants, algorithm, n_rounds)})
