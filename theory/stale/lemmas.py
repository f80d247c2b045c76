"""Lemmas 8 and 9, with an explicit constant where there is one.

Two pieces of the paper have no entry. Lemma 10 is the variance of a sum of independent centred variables:
an identity without an algorithm or a number. The bound of A_4 in Lemma 9 concerns a sum over k = 2, ..., K
that is empty for the Euler integrators, K = 1, simulated here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedsim.algorithms.stale import StaleSGLD

from ..bound import Assumption
from ..facts import Constants
from ..statement import Hypothesis, Terms
from .setting import HYPOTHESES, ONE_STEP_SIZE, STANDARD, Setting, each_age, theorem


@theorem("Lemma 8", kind="rate", quantity="gradient_gap", terms=("staleness",), hypotheses=HYPOTHESES)
def gradient_gap_rate(s: Setting, rounds: np.ndarray) -> Terms:
    """Shape of the gap between an old and a fresh gradient in the mean.

    Guarantee: ||E (G_{l - tau_l} - G_l)|| = O(tau h), with tau the largest age. The printed constant,
    C max |L_i f_ih| with f_ih the length of a step, is infinite at the start of a step of SGLD; the largest
    ||E L~_i grad f||, with L~_i the generator of the gradient in use, takes its place (``theory.errata``,
    stale.brownian_step).

    Source: stale-gradient paper, Lemma 8, equation (7).

    The L-th update uses iterates up to number L - 1.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.5
    """
    return Terms({"staleness": s.tau * s.h}, inputs={"tau": s.tau})


def _normal(constants: Constants) -> Assumption:
    return Assumption.yes("f is quadratic (its target is known to be normal)", constants.target is not None)


def _small(constants: Constants, s: Setting) -> Assumption:
    value = (s.tau + 1.0) * s.h * constants.smoothness
    return Assumption.at_most("(tau + 1) step_size smoothness <= 1", value, 1.0)


@theorem("Lemma 8 (quadratic f)", source="Stale gradients Lemma 8", quantity="gradient_gap",
         terms=("staleness",), algorithm=StaleSGLD, variants=("quadratic",),
         hypotheses=(Hypothesis("quadratic f", _normal), Hypothesis("unbiased stochastic gradients"),
                     ONE_STEP_SIZE, Hypothesis("(tau + 1) step_size smoothness <= 1", _small)))
def gradient_gap_bound(s: Setting, constants: Constants, algorithm: StaleSGLD, n_rounds: int,
                       rounds: np.ndarray) -> Terms:
    """Lemma 8 with an explicit constant, for quadratic f of smoothness Ls.

    Guarantee: ||E (G_{l - tau_l} - G_l)|| <= tau_l h Ls^2 (E ||theta_0 - theta_*||^2)^(1/2).

    Proof (ours). With f of Hessian A and y = E theta - theta_*, y_{i+1} = y_i - h A y_{i - tau_i}, so that
    the gap is the norm of h A^2 summed over tau_l old y. It remains that no coordinate x of y in the
    eigenbasis of A, of curvature a, exceeds M = |x_0| in size. Let x_{n+1} > M be the first to do so (x <
    -M in the same way). Then x_{n+1} > x_n asks for x_j < 0 at j = n - tau_n, and
    x_{n+1} <= x_j + (n + 1 - j) h a M < (tau + 1) h a M <= M.

    Source: stale-gradient paper, Lemma 8, equation (7), with L~ (of the gradient in use) applied to grad f in
    place of f_lh.

    The constants need `initial_distance`; a known `target` tells that f is quadratic. The bound is at the
    age of each update.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([2.0], [[0.0]]), fs.StaleSGLD(0.125, staleness=1)
    >>> known = theory.constants(problem, algorithm, start=[1.0])
    >>> bound = theory.stale.gradient_gap_bound(known, algorithm, n_rounds=3)
    >>> bound.value.tolist()
    [0.0, 0.5, 0.5]
    """
    ages = each_age(algorithm, n_rounds).max(axis=0)[rounds - 1]
    scale = s.h * constants.smoothness**2 * constants.need("initial_distance")
    return Terms({"staleness": ages * scale}, inputs={"tau": s.tau})


@theorem("Lemma 9 (A_2)", source="Stale gradients Lemma 9", kind="rate", quantity="average_fluctuation",
         terms=("time",), hypotheses=STANDARD)
def fluctuation_rate(s: Setting, rounds: np.ndarray) -> dict[str, Any]:
    """Shape of the martingale part of the average.

    Guarantee: E A_2 = O(1/(L h)), A_2 = sum_l (E[psi_l | past] - psi_l)^2 / (L h)^2: each term is the
    variance of one step, of order h. (With the mean of psi_l in place of its conditional mean, as the
    notation may also be read, each term would be of order one.)

    Source: stale-gradient paper, Lemma 9, first line.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.1
    """
    return {"time": 1.0 / (rounds * s.h)}
