"""DE-SGHMC Theorem 11: W2 of the average and of the clients to the target exp(-f).

Notation as in `setting`: alpha = eta^2, beta = 1 - gamma eta, mu'' = mu (1 - alpha L/2), g = gamma-bar,
c_5 bounds E||v||^2 of all clients, and in print H = (rho^k - g^(2k)) / (rho - g^2), rho = 1 - alpha mu''.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...statement import Terms
from ..sgld.bounds import with_floor
from .paper import HYPOTHESES, VARIANTS, theorem
from .setting import Chain

AVERAGE = ("initialization", "discretization", "disagreement", "gradient_noise", "network_transient",
           "momentum")


def coupling_terms(c: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of Lemma 16, squared."""
    c, s = c.as_printed(variant == "printed_constant"), c.base
    bracket = c.beta**2 * c.c5 / (c.alpha * s.N) + 2.0 * s.L**2 * c.c5 * c.alpha / (s.N * s.gap**2)
    terms: dict[str, Any] = {"disagreement": 2.0 * s.drift / s.mu_prime * bracket,
                             "gradient_noise": s.noise**2}
    if variant != "without_transient":
        terms["network_transient"] = s.transient_sq(rounds)
    return terms


def damping_sq(c: Chain) -> float:
    """Lemma 17."""
    s = c.base
    return 2.0 * s.drift / s.mu_prime * c.lost**2 * s.d / (c.alpha * s.N)


def _average_terms(c: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    s = c.base
    roots = {name: np.sqrt(part) for name, part in coupling_terms(c, rounds, variant).items()}
    return {"initialization": s.initialization(rounds), "discretization": s.euler, **roots,
            "momentum": float(np.sqrt(damping_sq(c)))}


def _equation(number: str) -> Callable[[str], str]:
    return lambda variant: f"DE-SGHMC Theorem 11, equation {number}" + (
        " with (105) as printed for its c_5" if variant == "printed_constant" else "")


@theorem("Theorem 11 (average)", quantity="w2", terms=AVERAGE, hypotheses=HYPOTHESES, variants=VARIANTS,
         source=_equation("(39)"))
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
    return with_floor(_average_terms(s, rounds, variant))


@theorem("Theorem 11 (clients)", quantity="w2_clients", hypotheses=HYPOTHESES, variants=VARIANTS,
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
    terms, base = _average_terms(s, rounds, variant), s.base
    c5 = s.as_printed(variant == "printed_constant").c5
    return with_floor(terms | {
        "clients_transient": base.mixing_power(rounds) * np.sqrt(2.0 * base.origin_sq / base.N),
        "clients_spread": float(s.eta * np.sqrt(2.0 * c5 / base.N) / base.gap)})
