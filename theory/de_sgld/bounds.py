"""DE-SGLD Theorem 1: W2 of the average and of the clients to the target exp(-f).

Notation as in `setting`; sigma^2 bounds E||gradient noise of a client||^2, mu' = mu (1 - eta L/2),
g = gamma-bar, D^2 is that of Lemma 5, and in print H = (rho^k - g^(2k)) / (rho - g^2), rho = 1 - eta mu'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.law import recorded_rounds

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import PAPER, Setting, applicable, hypotheses, setting

VARIANTS = ("without_transient", "printed")
HYPOTHESES = ("connected network", "constant step_size <= (1 + lambda_N)/smoothness",
              "step_size <= 1/(smoothness + strong_convexity)")


def _average_terms(s: Setting, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms that both bounds have."""
    terms: dict[str, Any] = {"initialization": s.initialization(rounds)}
    if variant == "printed":
        terms["network_transient"] = np.sqrt(s.transient_sq(rounds))
    return terms | {"discretization": s.euler, "gradient_noise": s.noise,
                    "disagreement": float(np.sqrt(s.disagreement_sq))}


def clients_terms(s: Setting, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of the clients' bound, equation (20)."""
    spread = (2.0 * np.sqrt(2.0 * s.d * s.alpha / s.square_gap)
              + 2.0 * np.sqrt(s.gradient_bound / s.N) * s.alpha / s.gap
              + 2.0 * s.alpha * np.sqrt(s.sigma_sq / s.square_gap))
    return _average_terms(s, rounds, variant) | {
        "clients_transient": 2.0 * s.mixing_power(rounds) * np.sqrt(s.origin_sq / s.N),
        "clients_spread": float(spread)}


def _bound(s: Setting, rounds: np.ndarray, terms: dict[str, Any], variant: str, quantity: str,
           equation: str) -> Bound:
    floor = sum(part for part in terms.values() if np.ndim(part) == 0)
    return Bound.from_terms(
        terms, rounds, assumptions=hypotheses(s), quantity=quantity, kind="upper",
        source=f"DE-SGLD Theorem 1, equation {equation}", variant=variant, target=s.constants.target,
        start_distance=s.start_distance(quantity == "w2_clients"), floor=float(floor))


@theorem(id="de_sgld.w2_bound", paper=PAPER, number="Theorem 1 (average)", kind="upper", quantity="w2",
         algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES, variants=VARIANTS,
         applies=applicable)
def w2_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
             variant: str = "without_transient") -> Bound:
    """W2 bound of the clients' average.

    Guarantee, after k iterations with step size eta < min((1 + lambda_N)/L, 1/(L + mu)):

        W2 <= (1 - mu eta)^k [ sqrt(E||average_0 - x_*||^2) + sqrt(2 d/(mu N)) ]
              + 1.65 (L/mu) sqrt(eta d/N) + sigma sqrt(eta/(mu' N))
              + sqrt(eta) [eta/mu' + (1 + eta L)^2/mu'^2]^(1/2)
                * [4 L^2 D^2 eta/(N (1-g)^2) + 4 L^2 sigma^2 eta/(1-g^2) + 8 L^2 d/(1-g^2)]^(1/2)

    Source: DE-SGLD Theorem 1, equation (30). Printed with one more term, [g^2 H]^(1/2) (2 L/sqrt(N))
    sqrt(E||x_0||^2), which is at least 0; the theorem holds without it, by Lemmas 9 and 10 and the proof
    in `coupling_bound`, whose square root is the rest.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGLD
        Constant step size.
    n_rounds, record
        Iterations, as in `fedsim.recorded_rounds`.
    variant : "without_transient" or "printed"
        The theorem without its term for a start apart, or with it.

    Returns
    -------
    Bound with terms "initialization", "discretization", "gradient_noise", "disagreement", and printed
    "network_transient".

    Raises
    ------
    NotApplicable
        For a network that is not connected, and where the formula has no value: eta L >= 1 + lambda_N,
        or eta L >= 2.
    ValueError
        Naming argument, value and condition: as for `setting`, and for constants of another convention,
        another class of algorithm, n_rounds below 0, a `record` beyond it, and an unknown variant.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> bound = w2_bound(constants(problem, algorithm), algorithm, n_rounds=1000)
    >>> round(float(bound.value[-1]), 3), bound.hypotheses_hold
    (0.846, True)
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    return _bound(s, rounds, _average_terms(s, rounds, variant), variant, "w2", "(30)")


@theorem(id="de_sgld.w2_clients_bound", paper=PAPER, number="Theorem 1 (clients)", kind="upper",
         quantity="w2_clients", algorithm=DESGLD, convention="components", hypotheses=HYPOTHESES,
         variants=VARIANTS, applies=applicable)
def w2_clients_bound(constants: Constants, algorithm: DESGLD, *, n_rounds: int, record: Any = None,
                     variant: str = "without_transient") -> Bound:
    """Bound of the mean over clients of their W2 distances to the target.

    Guarantee, in the range of `w2_bound`, with the terms of `w2_bound` and

        (1/N) sum_i W2(x_i) <= ... + (2 g^k/sqrt(N)) sqrt(E||x_0||^2)
                               + 2 sqrt(2 d eta/(1-g^2)) + 2 D eta/(sqrt(N) (1-g)) + 2 sigma eta/sqrt(1-g^2)

    Source: DE-SGLD Theorem 1, equation (20): `w2_bound` and the root of Lemma 6, term by term.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant
        As for `w2_bound`.

    Returns
    -------
    Bound on "w2_clients" with the terms of `w2_bound`, "clients_transient" and "clients_spread".

    Raises
    ------
    NotApplicable
        As for `w2_bound`.
    ValueError
        As for `w2_bound`.
    """
    s = setting(constants, algorithm)
    rounds = recorded_rounds(n_rounds, record)
    return _bound(s, rounds, clients_terms(s, rounds, variant), variant, "w2_clients", "(20)")
