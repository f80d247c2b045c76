"""Where the Euler scheme that DE-SGLD's average follows settles: Lemma 9, sharp in the condition number."""

from __future__ import annotations

from fedsim.algorithms.de_sgld import DESGLD

from ...declare.statement import Terms
from ...facts.constants_of_problem import Constants
from ...recursions.langevin import Potential
from ...recursions.stationary import BELOW_TWO, STATIONARY, stationary_terms
from ..paper import euler_scheme as theorem


@theorem("derived here (Lemma 9, stationary)", quantity="stationary_w2_of_euler", terms=("discretization",),
         source="derived here, in place of DE-SGLD's Lemma 9", variants=("proved",),
         hypotheses=(STATIONARY, BELOW_TWO))
def euler_stationary_bound(constants: Constants, algorithm: DESGLD) -> Terms:
    """W2 of the stationary law of the Euler scheme y' = y - (eta/N) grad f(y) + sqrt(2 eta/N) z.

    Guarantee, for eta < 2/L of the components and kappa = L/mu:

        W2^2 <= kappa eta d/(N (2 - eta L))

    Source: derived here, see `theory.recursions.stationary`; Lemma 9 has 1.65 kappa sqrt(eta d/N) for the W2.

    Of the algorithm the step size counts and the number of clients.

    Examples
    --------
    >>> round(float(bound.value[0]), 4)
    0.0711
    """
    N = constants.need("n_clients")
    f = Potential(N * constants.strong_convexity, N * constants.smoothness, constants.dim)
    return stationary_terms(f, float(algorithm.schedule.largest) / N, None)
