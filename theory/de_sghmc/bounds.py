"""DE-SGHMC Theorem 11: W2 of the average and of the clients to the target exp(-f).

Notation as in `setting`: alpha = eta^2, beta = 1 - gamma eta, mu'' = mu (1 - alpha L/2), g = gamma-bar,
c_5 bounds E||v||^2 of all clients, and in print H = (rho^k - g^(2k)) / (rho - g^2), rho = 1 - alpha mu''.
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

VARIANTS = ("without_transient", "printed", "printed_constant")
HYPOTHESES = ("connected network", f"constant {STEP_RANGE}", MOMENTUM_RANGE)


def constant_of(variant: str) -> str:
    """Which (105) a variant of the theorem or a lemma has in it."""
    return "printed" if variant == "printed_constant" else "corrected"


def coupling_terms(c: Chain, rounds: np.ndarray, variant: str) -> dict[str, Any]:
    """The terms of Lemma 16, squared."""
    s = c.base
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


def _bound(c: Chain, rounds: np.ndarray, terms: dict[str, Any], variant: str, quantity: str,
           equation: str) -> Bound:
    floor = sum(part for part in terms.values() if np.ndim(part) == 0)
    constant = " with (105) as printed for its c_5" if variant == "printed_constant" else ""
    return Bound.from_terms(
        terms, rounds, assumptions=c.hypotheses, quantity=quantity, kind="upper",
        source=f"DE-SGHMC Theorem 11, equation {equation}{constant}", variant=variant,
        target=c.base.constants.target, start_distance=c.base.start_distance(quantity == "w2_clients"),
        floor=float(floor))


@theorem(id="de_sghmc.w2_bound", paper=PAPER, number="Theorem 11 (average)", kind="upper", quantity="w2",
         algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES, variants=VARIANTS,
         applies=applicable, inputs=of_problem)
def w2_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
             variant: str = "without_transient", begin: Beginning | None = None) -> Bound:
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

    Parameters
    ----------
    constants : Constants
        Convention "components".
    algorithm : fedsim.DESGHMC
        Constant step size.
    n_rounds, record
        Iterations, as in `fedsim.recorded_rounds`.
    variant : "without_transient", "printed" or "printed_constant"
        The theorem without its term for a start apart; as printed, both with the corrected (105) for c_5;
        or as printed with (105) as printed, which the theorem itself does not contain.
    begin : Beginning, optional
        The problem's own moments at the start (`beginning`), which make the bound somewhat smaller than
        those that follow from the constants.

    Returns
    -------
    Bound with terms "initialization", "discretization", "gradient_noise", "disagreement", "momentum", and
    in print "network_transient".

    Raises
    ------
    NotApplicable
        For a network that is not connected, and where the formula has no value: far outside (37), (38).
    ValueError
        Naming argument, value and condition: as for `chain`, constants of another convention, another class
        of algorithm, n_rounds below 0, a `record` beyond it, and an unknown variant.

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
    c = chain(constants, algorithm, constant_of(variant), begin)
    rounds = recorded_rounds(n_rounds, record)
    return _bound(c, rounds, _average_terms(c, rounds, variant), variant, "w2", "(39)")


@theorem(id="de_sghmc.w2_clients_bound", paper=PAPER, number="Theorem 11 (clients)", kind="upper",
         quantity="w2_clients", algorithm=DESGHMC, convention="components", hypotheses=HYPOTHESES,
         variants=VARIANTS, applies=applicable, inputs=of_problem)
def w2_clients_bound(constants: Constants, algorithm: DESGHMC, *, n_rounds: int, record: Any = None,
                     variant: str = "without_transient", begin: Beginning | None = None) -> Bound:
    """Bound of the mean over clients of their W2 distances to the target.

    Guarantee, in the range of `w2_bound`, with the terms of `w2_bound` and

        (1/N) sum_i W2(x_i) <= ... + (sqrt(2) g^k/sqrt(N)) sqrt(E||x_0||^2) + eta sqrt(2 c_5)/(sqrt(N) (1-g))

    Source: DE-SGHMC Theorem 11, equation (40): `w2_bound` and the root of Lemma 14, term by term.

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
    ValueError
        As for `w2_bound`.
    """
    c = chain(constants, algorithm, constant_of(variant), begin)
    rounds, s = recorded_rounds(n_rounds, record), c.base
    terms = _average_terms(c, rounds, variant) | {
        "clients_transient": s.mixing_power(rounds) * np.sqrt(2.0 * s.origin_sq / s.N),
        "clients_spread": float(c.eta * np.sqrt(2.0 * c.c5 / s.N) / s.gap)}
    return _bound(c, rounds, terms, variant, "w2_clients", "(40)")
