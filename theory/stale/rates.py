"""Errors of a time average up to constants: Lemma 1, Theorems 2, 3 and 4; and at the best step size.

All unknown constants are one. L counts iterations, h is the step size, tau the largest age and K the
order of the integrator, 1 for the Euler steps simulated here. The best step size, of which Corollary 5,
section 4 and what follows Theorem 7 speak, is that for each L, whose constant is not known; that of the
algorithm, which may be a schedule, only decides whether it is stable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import nonnegative, whole

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis, Terms
from .setting import BEST, STANDARD, Setting, rate


def _shape(s: Setting, rounds: np.ndarray, order: int, power: int, **further: Any) -> dict[str, Any]:
    """1/(L h), further terms, and the integrator's h^K to this power."""
    return {"time": 1.0 / (rounds * s.h), **further, "integrator": s.h ** (power * whole("order", order, 1))}


@rate("Lemma 1 (bias)", source="Stale gradients Lemma 1", quantity="average_bias",
      terms=("operator", "time", "integrator"), hypotheses=STANDARD,
      arguments={"operator_error": "float: Mean over l of ||E dV_l||, zero for unbiased gradients."})
def generic_bias_rate(s: Setting, rounds: np.ndarray, *, operator_error: float = 0.0, order: int = 1,
                      ) -> dict[str, Any]:
    """Shape of the bias of any SG-MCMC algorithm.

    Guarantee: bias = O( sum_l ||E dV_l|| / L + 1/(L h) + h^K ), dV_l the error of the generator in step l.

    Source: stale-gradient paper, Lemma 1, as printed.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.2
    """
    return {"operator": nonnegative("operator_error", operator_error), **_shape(s, rounds, order, 1)}


FRESH = Hypothesis("all ages 0", lambda s: Assumption.yes("unbiased gradients: all ages are 0", s.tau == 0))


@rate("Lemma 1 (MSE)", source="Stale gradients Lemma 1", quantity="average_mse",
      terms=("operator", "time", "integrator"), hypotheses=(*STANDARD, FRESH),
      arguments={"operator_error": "float: Mean over l of E ||dV_l||^2."})
def generic_mse_rate(s: Setting, rounds: np.ndarray, *, operator_error: float = 0.0, order: int = 1,
                     ) -> dict[str, Any]:
    """Shape of the mean squared error of any SG-MCMC algorithm with unbiased gradients.

    Guarantee: MSE = O( (1/L) sum_l E ||dV_l||^2 / L + 1/(L h) + h^(2K) ).

    Source: stale-gradient paper, Lemma 1, as printed.

    The first term is divided by L because errors of unbiased gradients average out; those of old gradients
    do not, which is an assumption.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3), bound.violated
    (0.11, ('unbiased gradients: all ages are 0',))
    """
    return {"operator": nonnegative("operator_error", operator_error) / rounds, **_shape(s, rounds, order, 2)}


@rate("Theorem 2", quantity="average_bias", terms=("time", "staleness", "integrator"))
def bias_rate(s: Setting, rounds: np.ndarray, *, order: int = 1) -> Terms:
    """Shape of the bias with stale gradients, D1 = M1 = M2 = 1.

    Guarantee: |E phi_L - phibar| <= D1 (1/(L h) + M1 tau h + M2 h^K), with tau the largest age.

    Source: stale-gradient paper, Theorem 2, as printed, with M1 any constant (``theory.errata``,
    stale.expectations_of_products).

    Examples
    --------
    >>> bound.kind, round(float(bound.value[-1]), 3)
    ('rate', 0.7)
    """
    return Terms(_shape(s, rounds, order, 1, staleness=s.tau * s.h), inputs={"tau": s.tau})


@rate("Theorem 3", quantity="average_mse", terms=("time", "staleness", "integrator"))
def mse_rate(s: Setting, rounds: np.ndarray, *, order: int = 1) -> Terms:
    """Shape of the mean squared error with stale gradients, all constants one.

    Guarantee: E (phi_L - phibar)^2 <= D2 (1/(L h) + M1 tau^2 h^2 + M2 h^(2K)), with tau the largest age.

    Source: stale-gradient paper, Theorem 3, as printed, with M1 any constant (``theory.errata``,
    stale.expectations_of_products).

    Examples
    --------
    >>> law, late = theory.stale.average_law(problem, algorithm, 100, start=[2.0]), bound.rounds >= 10
    >>> shape = {name: part[late] for name, part in bound.terms.items()}
    >>> theory.stale.fit_constants(shape, law.mse[late]).label
    'fitted constants: time 4.29, staleness 3.34, integrator 0'
    """
    return Terms(_shape(s, rounds, order, 2, staleness=(s.tau * s.h) ** 2), inputs={"tau": s.tau})


@rate("Theorem 4", quantity="average_variance", terms=("time", "integrator"))
def variance_rate(s: Setting, rounds: np.ndarray, *, order: int = 1) -> dict[str, Any]:
    """Shape of the variance, D = 1. It does not contain tau.

    Guarantee: Var phi_L <= D (1/(L h) + h^(2K)).

    Source: stale-gradient paper, Theorem 4, as printed. D is free of tau while tau h and the moments of
    Assumption 3 are bounded; on the Gaussian model these bound tau h, and D grows towards the stability limit
    (``theory.errata``, stale.variance_free_of_staleness).

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.11
    """
    return _shape(s, rounds, order, 2)


AT_EACH = Hypothesis("step size that is best for the bound at each L")


def _old(s: Setting) -> Assumption:
    return Assumption.yes("the term of staleness dominates: tau >= 1", s.tau >= 1)


def _exponent(order: int) -> float:
    """That of L: -2K/(2K+1)."""
    K = whole("order", order, 1)
    return -2.0 * K / (2.0 * K + 1.0)


@rate("Corollary 5", quantity="average_variance", terms=("variance",),
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


@rate("section 4 (bias)", source="Stale gradients section 4", quantity="average_bias", terms=("bias",),
      hypotheses=(*BEST, AT_EACH, Hypothesis("M1 tau h > M2 h^K", _old)))
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


@rate("section 4 (MSE)", source="Stale gradients section 4", quantity="average_mse", terms=("mse",),
      hypotheses=(*BEST, AT_EACH, Hypothesis("M1 tau^2 h^2 > M2 h^(2K)", _old)))
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


@rate("after Theorem 7", source="Stale gradients Theorem 7", quantity="average_variance", terms=("variance",),
      hypotheses=(*BEST, AT_EACH, Hypothesis("one step size for all chains")),
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
