"""Errors of a time average up to constants: Lemma 1, Theorems 2, 3 and 4.

All unknown constants are one. L counts iterations, h is the step size, tau the largest age and K the
order of the integrator, 1 for the Euler steps simulated here. Rates at the best step size are in `optima`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.settings.validation import nonnegative, whole

from ..bound import Assumption
from ..statement import Hypothesis, Terms
from .setting import HYPOTHESES, STANDARD, Setting, theorem


@theorem("Lemma 1 (bias)", source="Stale gradients Lemma 1", kind="rate", quantity="average_bias",
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
    return {"operator": nonnegative("operator_error", operator_error), "time": 1.0 / (rounds * s.h),
            "integrator": s.h ** whole("order", order, 1)}


FRESH = Hypothesis("all ages 0", lambda s: Assumption.yes("unbiased gradients: all ages are 0", s.tau == 0))


@theorem("Lemma 1 (MSE)", source="Stale gradients Lemma 1", kind="rate", quantity="average_mse",
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
    return {"operator": nonnegative("operator_error", operator_error) / rounds,
            "time": 1.0 / (rounds * s.h), "integrator": s.h ** (2 * whole("order", order, 1))}


@theorem("Theorem 2", kind="rate", quantity="average_bias", terms=("time", "staleness", "integrator"),
         hypotheses=HYPOTHESES)
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
    return Terms({"time": 1.0 / (rounds * s.h), "staleness": s.tau * s.h,
                  "integrator": s.h ** whole("order", order, 1)}, inputs={"tau": s.tau})


@theorem("Theorem 3", kind="rate", quantity="average_mse", terms=("time", "staleness", "integrator"),
         hypotheses=HYPOTHESES)
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
    return Terms({"time": 1.0 / (rounds * s.h), "staleness": (s.tau * s.h) ** 2,
                  "integrator": s.h ** (2 * whole("order", order, 1))}, inputs={"tau": s.tau})


@theorem("Theorem 4", kind="rate", quantity="average_variance", terms=("time", "integrator"),
         hypotheses=HYPOTHESES)
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
    return {"time": 1.0 / (rounds * s.h), "integrator": s.h ** (2 * whole("order", order, 1))}
