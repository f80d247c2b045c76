"""Errors of a time average up to constants: Lemma 1, Theorems 2, 3 and 4.

All unknown constants are one. L counts iterations, h is the step size, tau the largest age and K the
order of the integrator, 1 for the Euler steps simulated here. Rates at the best step size are in `optima`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.stale import Stale
from fedsim.validation import nonnegative, whole

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import HYPOTHESES, PAPER, STANDARD, fixed_step, iterations, largest_age, stable_step


def _rate(terms: dict[str, Any], lengths: np.ndarray, constants: Constants, algorithm: Any, quantity: str,
          source: str, *more: Assumption, **inputs: Any) -> Bound:
    return Bound.from_terms(terms, lengths, assumptions=(stable_step(constants, algorithm), *more),
                            quantity=quantity, kind="rate", source=f"{PAPER} {source}", variant="printed",
                            target=constants.target, inputs=inputs)


@theorem(id="stale.generic_bias_rate", paper=PAPER, number="Lemma 1 (bias)", kind="rate",
         quantity="average_bias", algorithm=Stale, convention="global", hypotheses=STANDARD,
         variants=("printed",))
def generic_bias_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                      operator_error: float = 0.0, order: int = 1, variant: str = "printed") -> Bound:
    """Shape of the bias of any SG-MCMC algorithm.

    Guarantee: bias = O( sum_l ||E dV_l|| / L + 1/(L h) + h^K ), dV_l the error of the generator in step l.

    Source: stale-gradient paper, Lemma 1, as printed.

    Parameters
    ----------
    constants : Constants
        Convention "global".
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
        Constant step size.
    n_rounds, record
        Iterations L; see `fedsim.recorded_rounds`.
    operator_error : float
        Mean over l of ||E dV_l||, zero for unbiased gradients.
    order : int
        K.

    Returns
    -------
    Bound of kind "rate" with terms "operator", "time" and "integrator".

    Raises
    ------
    ValueError
        Naming argument, value and condition: constants of another convention, another class of algorithm, a
        schedule, n_rounds below 1, a `record` beyond it, operator_error below 0, order below 1, and an
        unknown variant.
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    return _rate({"operator": nonnegative("operator_error", operator_error), "time": 1.0 / (lengths * h),
                  "integrator": h ** whole("order", order, 1)}, lengths, constants, algorithm,
                 "average_bias", "Lemma 1")


@theorem(id="stale.generic_mse_rate", paper=PAPER, number="Lemma 1 (MSE)", kind="rate",
         quantity="average_mse", algorithm=Stale, convention="global", hypotheses=STANDARD,
         variants=("printed",))
def generic_mse_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                     operator_error: float = 0.0, order: int = 1, variant: str = "printed") -> Bound:
    """Shape of the mean squared error of any SG-MCMC algorithm with unbiased gradients.

    Guarantee: MSE = O( (1/L) sum_l E ||dV_l||^2 / L + 1/(L h) + h^(2K) ).

    Source: stale-gradient paper, Lemma 1, as printed.

    Parameters
    ----------
    constants, algorithm, n_rounds, record, order
        As for `generic_bias_rate`.
    operator_error : float
        Mean over l of E ||dV_l||^2.

    Returns
    -------
    Bound of kind "rate" with terms "operator", "time" and "integrator". Its first term is divided by L
    because errors of unbiased gradients average out; those of old gradients do not, which is an assumption.

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    fresh = Assumption.yes("unbiased gradients: all ages are 0", largest_age(algorithm, n_rounds) == 0)
    return _rate({"operator": nonnegative("operator_error", operator_error) / lengths,
                  "time": 1.0 / (lengths * h), "integrator": h ** (2 * whole("order", order, 1))},
                 lengths, constants, algorithm, "average_mse", "Lemma 1", fresh)


@theorem(id="stale.bias_rate", paper=PAPER, number="Theorem 2", kind="rate", quantity="average_bias",
         algorithm=Stale, convention="global", hypotheses=HYPOTHESES, variants=("printed",))
def bias_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None, order: int = 1,
              variant: str = "printed") -> Bound:
    """Shape of the bias with stale gradients, D1 = M1 = M2 = 1.

    Guarantee: |E phi_L - phibar| <= D1 (1/(L h) + M1 tau h + M2 h^K).

    Source: stale-gradient paper, Theorem 2, as printed, with M1 any constant (``theory.errata``,
    stale.expectations_of_products).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, order
        As for `generic_bias_rate`; tau is the largest age.

    Returns
    -------
    Bound of kind "rate" with terms "time", "staleness" and "integrator".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.1, staleness=5)
    >>> bound = bias_rate(constants(problem, algorithm), algorithm, n_rounds=100)
    >>> bound.kind, round(float(bound.value[-1]), 12)
    ('rate', 0.7)
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    tau = largest_age(algorithm, n_rounds)
    return _rate({"time": 1.0 / (lengths * h), "staleness": tau * h,
                  "integrator": h ** whole("order", order, 1)}, lengths, constants, algorithm,
                 "average_bias", "Theorem 2", tau=tau)


@theorem(id="stale.mse_rate", paper=PAPER, number="Theorem 3", kind="rate", quantity="average_mse",
         algorithm=Stale, convention="global", hypotheses=HYPOTHESES, variants=("printed",))
def mse_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None, order: int = 1,
             variant: str = "printed") -> Bound:
    """Shape of the mean squared error with stale gradients, all constants one.

    Guarantee: E (phi_L - phibar)^2 <= D2 (1/(L h) + M1 tau^2 h^2 + M2 h^(2K)).

    Source: stale-gradient paper, Theorem 3, as printed, with M1 any constant (``theory.errata``,
    stale.expectations_of_products).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, order
        As for `bias_rate`.

    Returns
    -------
    Bound of kind "rate" with terms "time", "staleness" and "integrator".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    tau = largest_age(algorithm, n_rounds)
    return _rate({"time": 1.0 / (lengths * h), "staleness": (tau * h) ** 2,
                  "integrator": h ** (2 * whole("order", order, 1))}, lengths, constants,
                 algorithm, "average_mse", "Theorem 3", tau=tau)


@theorem(id="stale.variance_rate", paper=PAPER, number="Theorem 4", kind="rate", quantity="average_variance",
         algorithm=Stale, convention="global", hypotheses=HYPOTHESES, variants=("printed",))
def variance_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None, order: int = 1,
                  variant: str = "printed") -> Bound:
    """Shape of the variance, D = 1. It does not contain tau.

    Guarantee: Var phi_L <= D (1/(L h) + h^(2K)).

    Source: stale-gradient paper, Theorem 4, as printed. D is free of tau while tau h and the moments of
    Assumption 3 are bounded; on the Gaussian model these bound tau h, and D grows towards the stability limit
    (``theory.errata``, stale.variance_free_of_staleness).

    Parameters
    ----------
    constants, algorithm, n_rounds, record, order
        As for `bias_rate`.

    Returns
    -------
    Bound of kind "rate" with terms "time" and "integrator".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    return _rate({"time": 1.0 / (lengths * h), "integrator": h ** (2 * whole("order", order, 1))}, lengths,
                 constants, algorithm, "average_variance", "Theorem 4")
