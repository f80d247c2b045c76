"""DE-SGLD Theorem 1: W2 of the average and of the clients to the target exp(-f); and Remark 3.

Notation as in `setting`; sigma^2 bounds E||gradient noise of a client||^2, mu' = mu (1 - eta L/2),
g = gamma-bar, D^2 is that of Lemma 5, and in print H = (rho^k - g^(2k)) / (rho - g^2), rho = 1 - eta mu'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sgld import DESGLD
from fedsim.settings.validation import whole

from ...declare.statement import Terms
from ...facts.constants_of_problem import Constants
from ..connectivity import Connectivity, along_gamma_bar
from ..paper import sgld_theorem as theorem
from ..setting import Setting, setting

VARIANTS = {"without_transient": "without the term for a start apart", "printed": "with it"}
AVERAGE = ("initialization", "network_transient", "discretization", "gradient_noise", "disagreement")


def _average_terms(s: Setting, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms that both bounds have."""
    terms: dict[str, Any] = {"initialization": s.initialization(rounds)}
    if variant == "printed":
        terms["network_transient"] = np.sqrt(s.transient_sq(rounds))
    return terms | {"discretization": s.euler, "gradient_noise": s.noise,
                    "disagreement": float(np.sqrt(s.disagreement_sq))}


def clients_terms(s: Setting, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of the clients' bound, equation (20)."""
    spread = sum(np.sqrt(part / s.N) for part in s.disagreement_parts.values())
    return _average_terms(s, rounds, variant) | {
        "clients_transient": 2.0 * s.mixing_power(rounds) * np.sqrt(s.origin_sq / s.N),
        "clients_spread": float(spread)}


def with_floor(terms: dict[str, Any]) -> Terms:
    """The terms; those that do not depend on the iteration are what remains."""
    return Terms(terms, floor=float(sum(part for part in terms.values() if np.ndim(part) == 0)))


@theorem("Theorem 1 (average)", quantity="w2", terms=AVERAGE, variants=VARIANTS,
         source="DE-SGLD Theorem 1, equation (30)")
def w2_bound(s: Setting, rounds: np.ndarray, variant: str) -> Terms:
    """W2 bound of the clients' average.

    Guarantee, after k iterations with step size eta < min((1 + lambda_N)/L, 1/(L + mu)):

        W2 <= (1 - mu eta)^k [ sqrt(E||average_0 - x_*||^2) + sqrt(2 d/(mu N)) ]
              + 1.65 (L/mu) sqrt(eta d/N) + sigma sqrt(eta/(mu' N))
              + sqrt(eta) [eta/mu' + (1 + eta L)^2/mu'^2]^(1/2)
                * [4 L^2 D^2 eta/(N (1-g)^2) + 4 L^2 sigma^2 eta/(1-g^2) + 8 L^2 d/(1-g^2)]^(1/2)

    Source: DE-SGLD Theorem 1, equation (30). Printed with one more term, [g^2 H]^(1/2) (2 L/sqrt(N))
    sqrt(E||x_0||^2), which is at least 0; the theorem holds without it, by Lemmas 9 and 10 and the proof
    in `coupling_bound`, whose square root is the rest.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2), bound.hypotheses_hold
    (1.27, True)
    """
    return with_floor(_average_terms(s, rounds, variant))


@theorem("Theorem 1 (clients)", quantity="w2_clients", variants=VARIANTS,
         terms=(*AVERAGE, "clients_transient", "clients_spread"), source="DE-SGLD Theorem 1, equation (20)")
def w2_clients_bound(s: Setting, rounds: np.ndarray, variant: str) -> Terms:
    """Bound of the mean over clients of their W2 distances to the target.

    Guarantee, in the range of `w2_bound`, with the terms of `w2_bound` and

        (1/N) sum_i W2(x_i) <= ... + (2 g^k/sqrt(N)) sqrt(E||x_0||^2)
                               + 2 sqrt(2 d eta/(1-g^2)) + 2 D eta/(sqrt(N) (1-g)) + 2 sigma eta/sqrt(1-g^2)

    Source: DE-SGLD Theorem 1, equation (20): `w2_bound` and the root of Lemma 6, term by term.

    Examples
    --------
    >>> round(float(bound.value[-1]), 2), bound.is_vacuous
    (1.64, True)
    """
    return with_floor(clients_terms(s, rounds, variant))


def connectivity(constants: Constants, algorithm: DESGLD, n_rounds: int) -> Connectivity:
    """Theorem 1's bound for the clients after `n_rounds`, as printed, for gamma-bar from |lambda_N| to one.

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGLD
        Constant step size; of its network lambda_N counts.
    n_rounds : int

    Returns
    -------
    Connectivity

    Raises
    ------
    NotApplicable
        As for `w2_bound`.
    ValueError
        As for `setting`, and for n_rounds below 0.

    Source: DE-SGLD Remark 3.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> known = theory.constants(problem, algorithm, [1.0])
    >>> theory.de_sgld.connectivity(known, algorithm, 100).decrease < 0.0
    True
    """
    rounds = np.array([whole("n_rounds", n_rounds)])
    return along_gamma_bar(setting(constants, algorithm), lambda s: clients_terms(s, rounds, "printed"))


@theorem("section 3, Remark 3", quantity="connectivity_decrease", terms=("zero",), source="DE-SGLD Remark 3")
def connectivity_bound(s: Setting, constants: Constants, algorithm: DESGLD, n_rounds: int) -> Terms:
    """Theorem 1's bound for the clients falls nowhere as gamma-bar grows.

    Guarantee: the largest fall of equation (20) between neighbouring values of gamma-bar is at most 0.

    Source: DE-SGLD Remark 3.

    The bound is looked at after `n_rounds`, whatever is recorded.

    Examples
    --------
    >>> bound.value.tolist(), round(bound.inputs["connectivity"].decrease, 3)
    ([0.0], -0.034)
    """
    return Terms({"zero": 0.0}, rounds=np.array([0]),
                 inputs={"connectivity": connectivity(constants, algorithm, n_rounds)})
