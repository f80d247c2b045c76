"""Rates at the best step size: Corollary 5, section 4, and what follows Theorem 7; all constants one.

The step size that they speak about is the best one for each L, whose constant is not known; that of the
algorithm, which may be a schedule, only decides whether it is stable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import whole

from ..bound import Assumption
from ..statement import Hypothesis, Terms
from .setting import BEST, Setting, theorem

AT_EACH = Hypothesis("step size that is best for the bound at each L")


def _old(s: Setting) -> Assumption:
    return Assumption.yes("the term of staleness dominates: tau >= 1", s.tau >= 1)


def _exponent(order: int) -> float:
    """That of L: -2K/(2K+1)."""
    K = whole("order", order, 1)
    return -2.0 * K / (2.0 * K + 1.0)


@theorem("Corollary 5", kind="rate", quantity="average_variance", terms=("variance",),
         hypotheses=(*BEST, Hypothesis("step_size proportional to L^(-1/(2K+1))")))
def optimal_variance_rate(rounds: np.ndarray, *, order: int = 1) -> dict[str, Any]:
    """Shape of the variance with the step size that is best for Theorem 4.

    Guarantee: Var phi_L = O(L^(-2K/(2K+1))).

    Source: stale-gradient paper, Corollary 5, as printed.

    The algorithm's step size, which may be a schedule, only decides whether it is stable.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4)
    0.0464
    """
    return {"variance": rounds ** _exponent(order)}


@theorem("section 4 (bias)", source="Stale gradients section 4", kind="rate", quantity="average_bias",
         terms=("bias",), hypotheses=(*BEST, AT_EACH, Hypothesis("M1 tau h > M2 h^K", _old)))
def optimal_bias_rate(s: Setting, rounds: np.ndarray) -> Terms:
    """Shape of the bias with the step size that is best for Theorem 2, `theory.stale.bias_step_size`.

    Guarantee: |E phi_L - phibar| = O((tau/L)^(1/2)), where the paper writes L = W Lbar with W workers.

    Source: stale-gradient paper, section 4, as printed.

    L counts the iterations of the server. At tau = 0, where the hypothesis fails, age 1 takes its place,
    because the integrator's term is then of that size.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4)
    0.2236
    """
    return Terms({"bias": (max(s.tau, 1) / rounds) ** 0.5}, inputs={"tau": s.tau})


@theorem("section 4 (MSE)", source="Stale gradients section 4", kind="rate", quantity="average_mse",
         terms=("mse",), hypotheses=(*BEST, AT_EACH, Hypothesis("M1 tau^2 h^2 > M2 h^(2K)", _old)))
def optimal_mse_rate(s: Setting, rounds: np.ndarray) -> Terms:
    """Shape of the MSE with the step size that is best for Theorem 3, `theory.stale.mse_step_size`.

    Guarantee: E (phi_L - phibar)^2 = O((tau/L)^(2/3)), where the paper writes L = W Lbar.

    Source: stale-gradient paper, sections 4 and 5.1, as printed.

    L and tau = 0 as in `optimal_bias_rate`.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4)
    0.1357
    """
    return Terms({"mse": (max(s.tau, 1) / rounds) ** (2.0 / 3.0)}, inputs={"tau": s.tau})


@theorem("after Theorem 7", source="Stale gradients Theorem 7", kind="rate", quantity="average_variance",
         terms=("variance",), hypotheses=(*BEST, AT_EACH, Hypothesis("one step size for all chains")),
         variants={"optimised": "(1/S) L^(-2K/(2K+1))", "printed": "(S L)^(-2K/(2K+1))"})
def chains_optimal_variance_rate(rounds: np.ndarray, variant: str, *, n_chains: int = 2, order: int = 1,
                                 ) -> Terms:
    """Shape of the variance of S equal servers with the step size that is best for Theorem 7.

    Guarantee: Var = O((sum_s L_s)^(-2K/(2K+1))) as printed, with L_s = L. For equal servers the theorem's
    bound is 1/(S L h) + h^(2K)/S = (1/S) (1/(L h) + h^(2K)), whose least value over h is of order
    (1/S) L^(-2K/(2K+1)), smaller by S^(-1/(2K+1)): the linear speedup in S of which the text speaks.

    Source: stale-gradient paper, sentence after Theorem 7.

    Examples
    --------
    >>> round(float(bound.value[-1]), 4)
    0.0232
    """
    servers, exponent = whole("n_chains", n_chains, 1), _exponent(order)
    value = (servers * rounds) ** exponent if variant == "printed" else rounds**exponent / servers
    return Terms({"variance": value}, inputs={"n_chains": servers})
