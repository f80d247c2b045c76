"""DE-SGHMC Theorem 11: W2 of the average and of the clients to the target exp(-f).

Notation as in `setting`: alpha = eta^2, beta = 1 - gamma eta, mu'' = mu (1 - alpha L/2), g = gamma-bar,
H = (rho^k - g^(2k)) / (rho - g^2) with rho = 1 - alpha mu'', and c_5 bounds E||v||^2 of all clients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.law import recorded_rounds

from ..bound import Bound
from ..catalogue import theorem
from ..constants import Constants
from ..de_sgld.setting import applicable
from .beginning import Beginning, of_problem
from .setting import MOMENTUM_RANGE, PAPER, STEP_RANGE, Chain, chain

HYPOTHESES = ("connected network", f"constant {STEP_RANGE}", MOMENTUM_RANGE)


def _average_terms(c: Chain, rounds: np.ndarray) -> dict[str, Any]:
    s = c.base
    amplified = np.sqrt(2.0 * s.drift / s.mu_prime)
    return {"initialization": s.initialization(rounds),
            "network_transient": np.sqrt(s.transient_sq(rounds, c.variant)),
            "discretization": s.euler, "gradient_noise": s.noise,
            "disagreement": float(amplified * np.sqrt(
                c.beta**2 * c.c5 / (c.alpha * s.N) + 2.0 * c.alpha * s.L**2 * c.c5 / (s.N * s.gap**2))),
            "momentum": float(amplified * c.lost * np.sqrt(s.d / (c.alpha * s.N)))}


def _bound(c: Chain, rounds: np.ndarray, terms: dict[str, Any], quantity: str, equation: str) -> Bound:
    floor = sum(part for part in terms.values() if np.ndim(part) == 0)
    return Bound.from_terms(
        terms, rounds, assumptions=c.hypotheses, quantity=quantity, kind="upper",
        source=f"DE-SGHMC Theorem 11, equation {equation}", variant=c.variant, target=c.base.constants.target,
        start_distance=c.base.start_distance(quantity == "w2_clients"), floor=float(floor))


@theorem(id="de_sghmc.w2_bound", paper=PAPER, number="Theorem 11 (average)", kind="upper", quantity="w2",
         algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES, applies=applicable,
         inputs=of_problem)
def w2_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
             variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """W2 bound of the clients' average.

    Guarantee, after k iterations, in the range (37), (38) of step size and friction:

        W2 <= (1 - mu eta^2)^k [ sqrt(E||average_0 - x_*||^2) + sqrt(2 d/(mu N)) ]
              + [alpha (alpha + (1 + alpha L)^2/mu'') H]^(1/2) (2 L/sqrt(N)) sqrt(E||x_0||^2)
              + 1.65 (L/mu) eta sqrt(d/N) + eta sigma/sqrt(mu'' N)
              + eta sqrt(2) [alpha/mu'' + (1 + alpha L)^2/mu''^2]^(1/2)
                * { [beta^2 c_5/(alpha^2 N) + 2 L^2 c_5/(N (1-g)^2)]^(1/2)
                    + [(sqrt(1-beta) - 1)^2 d/(alpha^2 N)]^(1/2) }

    Source: DE-SGHMC Theorem 11, equation (39), with the constants of appendix B (see `setting`). Printed
    with g^2 H in the second term (as Theorem 1), and with a constant c~_4 inside c_5 that is too small
    (see `theory.errata("DE-SGHMC")`).

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGHMC
        Constant step size.
    n_rounds, record
        Iterations, as in `fedsim.recorded_rounds`.
    variant : "corrected" or "printed"
    begin : Beginning, optional
        The problem's own moments at the start (`beginning`), which make the bound somewhat smaller than
        those that follow from the constants.

    Returns
    -------
    Bound with terms "initialization", "network_transient", "discretization", "gradient_noise",
    "disagreement" and "momentum".

    Raises
    ------
    NotApplicable
        For a network that is not connected, and where the formula has no value: far outside (37), (38).

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> bound = w2_bound(constants(problem, algorithm), algorithm, n_rounds=1000)
    >>> round(float(bound.value[-1]), 3), bound.hypotheses_hold
    (0.993, True)
    """
    c = chain(constants, algorithm, variant, begin)
    rounds = recorded_rounds(n_rounds, record)
    return _bound(c, rounds, _average_terms(c, rounds), "w2", "(39)")


@theorem(id="de_sghmc.w2_clients_bound", paper=PAPER, number="Theorem 11 (clients)", kind="upper",
         quantity="w2_clients", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         applies=applicable, inputs=of_problem)
def w2_clients_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                     variant: str = "corrected", begin: Beginning | None = None) -> Bound:
    """Bound of the mean over clients of their W2 distances to the target.

    Guarantee, in the range of `w2_bound`, with the terms of `w2_bound` and

        (1/N) sum_i W2(x_i) <= ... + (sqrt(2) g^k/sqrt(N)) sqrt(E||x_0||^2) + eta sqrt(2 c_5)/(sqrt(N) (1-g))

    Source: DE-SGHMC Theorem 11, equation (40). With the printed constants it is violated: see
    `theory.errata("DE-SGHMC")`.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, variant, begin
        As for `w2_bound`.

    Returns
    -------
    Bound on "w2_clients" with the terms of `w2_bound`, "clients_transient" and "clients_spread".

    Raises
    ------
    NotApplicable
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, variant, begin)
    rounds, s = recorded_rounds(n_rounds, record), c.base
    terms = _average_terms(c, rounds) | {
        "clients_transient": s.mixing_power(rounds) * np.sqrt(2.0 * s.origin_sq / s.N),
        "clients_spread": float(c.eta * np.sqrt(2.0 * c.c5 / s.N) / s.gap)}
    return _bound(c, rounds, terms, "w2_clients", "(40)")
