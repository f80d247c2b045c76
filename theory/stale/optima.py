"""Rates at the best step size: Corollary 5, section 4, and what follows Theorem 7; all constants one.

The step size that they speak about is the best one for each L, whose constant is not known; that of the
algorithm only decides whether it is stable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.stale import Stale
from fedsim.validation import whole

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import HYPOTHESES, PAPER, iterations, largest_age, stable_step

BEST = "step size that is best for the bound at each L"


def _optimum(name: str, value: Any, lengths: np.ndarray, constants: Constants, algorithm: Any, source: str,
             *more: Assumption, variant: str = "printed", **inputs: Any) -> Bound:
    return Bound.from_terms({name: value}, lengths, assumptions=(stable_step(constants, algorithm), *more),
                            quantity=f"average_{name}", kind="rate", source=f"{PAPER} {source}",
                            variant=variant, target=constants.target, inputs=inputs)


@theorem(id="stale.optimal_variance_rate", paper=PAPER, number="Corollary 5", kind="rate",
         quantity="average_variance", algorithm=Stale, convention="global",
         hypotheses=(*HYPOTHESES, "step_size proportional to L^(-1/(2K+1))"), variants=("printed",))
def optimal_variance_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                          order: int = 1, variant: str = "printed") -> Bound:
    """Shape of the variance with the step size that is best for Theorem 4.

    Guarantee: Var phi_L = O(L^(-2K/(2K+1))).

    Source: stale-gradient paper, Corollary 5, as printed.

    Parameters
    ----------
    constants, n_rounds, record, order
        As for `theory.stale.bias_rate`.
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
        Its step size decides the assumption alone.

    Returns
    -------
    Bound of kind "rate" with the term "variance".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`, but that the step size may be a schedule.
    """
    lengths, K = iterations(n_rounds, record), whole("order", order, 1)
    return _optimum("variance", lengths ** (-2.0 * K / (2.0 * K + 1.0)), lengths, constants, algorithm,
                    "Corollary 5")


def _with_age(name: str, exponent: float, constants: Constants, algorithm: Any, n_rounds: int,
              record: Any) -> Bound:
    lengths, tau = iterations(n_rounds, record), largest_age(algorithm, n_rounds)
    dominant = Assumption.yes("the term of staleness dominates: tau >= 1", tau >= 1)
    return _optimum(name, (max(tau, 1) / lengths) ** exponent, lengths, constants, algorithm, "section 4",
                    dominant, tau=tau)


@theorem(id="stale.optimal_bias_rate", paper=PAPER, number="section 4 (bias)", kind="rate",
         quantity="average_bias", algorithm=Stale, convention="global",
         hypotheses=(*HYPOTHESES, BEST, "M1 tau h > M2 h^K"), variants=("printed",))
def optimal_bias_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                      variant: str = "printed") -> Bound:
    """Shape of the bias with the step size that is best for Theorem 2, `theory.stale.bias_step_size`.

    Guarantee: |E phi_L - phibar| = O((tau/L)^(1/2)), where the paper writes L = W Lbar with W workers.

    Source: stale-gradient paper, section 4, as printed.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `optimal_variance_rate`; L counts the iterations of the server.

    Returns
    -------
    Bound of kind "rate" with the term "bias". At tau = 0, where the hypothesis fails, age 1 takes its
    place, because the integrator's term is then of that size.

    Raises
    ------
    ValueError
        As for `optimal_variance_rate`.
    """
    return _with_age("bias", 0.5, constants, algorithm, n_rounds, record)


@theorem(id="stale.optimal_mse_rate", paper=PAPER, number="section 4 (MSE)", kind="rate",
         quantity="average_mse", algorithm=Stale, convention="global",
         hypotheses=(*HYPOTHESES, BEST, "M1 tau^2 h^2 > M2 h^(2K)"), variants=("printed",))
def optimal_mse_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                     variant: str = "printed") -> Bound:
    """Shape of the MSE with the step size that is best for Theorem 3, `theory.stale.mse_step_size`.

    Guarantee: E (phi_L - phibar)^2 = O((tau/L)^(2/3)), where the paper writes L = W Lbar.

    Source: stale-gradient paper, sections 4 and 5.1, as printed.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `optimal_bias_rate`.

    Returns
    -------
    Bound of kind "rate" with the term "mse"; tau = 0 as in `optimal_bias_rate`.

    Raises
    ------
    ValueError
        As for `optimal_variance_rate`.
    """
    return _with_age("mse", 2.0 / 3.0, constants, algorithm, n_rounds, record)


@theorem(id="stale.chains_optimal_variance_rate", paper=PAPER, number="after Theorem 7", kind="rate",
         quantity="average_variance", algorithm=Stale, convention="global",
         hypotheses=(*HYPOTHESES, BEST, "one step size for all chains"), variants=("optimised", "printed"))
def chains_optimal_variance_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                                 n_chains: int = 2, order: int = 1, variant: str = "optimised") -> Bound:
    """Shape of the variance of S equal servers with the step size that is best for Theorem 7.

    Guarantee: Var = O((sum_s L_s)^(-2K/(2K+1))) as printed, with L_s = L. For equal servers the theorem's
    bound is 1/(S L h) + h^(2K)/S = (1/S) (1/(L h) + h^(2K)), whose least value over h is of order
    (1/S) L^(-2K/(2K+1)), smaller by S^(-1/(2K+1)): the linear speedup in S of which the text speaks.

    Source: stale-gradient paper, sentence after Theorem 7.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, order
        As for `optimal_variance_rate`; L counts the iterations of each server.
    n_chains : int
        S.
    variant : "optimised" or "printed"
        (1/S) L^(-2K/(2K+1)), or (S L)^(-2K/(2K+1)).

    Returns
    -------
    Bound of kind "rate" with the term "variance".

    Raises
    ------
    ValueError
        As for `optimal_variance_rate`, and for n_chains below 1.
    """
    lengths, K = iterations(n_rounds, record), whole("order", order, 1)
    servers, exponent = whole("n_chains", n_chains, 1), -2.0 * K / (2.0 * K + 1.0)
    value = (servers * lengths) ** exponent if variant == "printed" else lengths**exponent / servers
    return _optimum("variance", value, lengths, constants, algorithm, "Theorem 7", variant=variant,
                    n_chains=servers)
