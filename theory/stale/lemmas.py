"""Lemmas 8 and 9, with an explicit constant where there is one.

Two pieces of the paper have no entry. Lemma 10 is the variance of a sum of independent centred variables:
an identity without an algorithm or a number. The bound of A_4 in Lemma 9 concerns a sum over k = 2, ..., K
that is empty for the Euler integrators, K = 1, simulated here.
"""

from __future__ import annotations

from typing import Any

from fedsim.algorithms.stale import Stale, StaleSGLD

from ..bound import Assumption, Bound
from ..catalogue import theorem
from ..constants import Constants
from .setting import HYPOTHESES, PAPER, STANDARD, each_age, fixed_step, iterations, largest_age, stable_step


@theorem(id="stale.gradient_gap_rate", paper=PAPER, number="Lemma 8", kind="rate", quantity="gradient_gap",
         algorithm=Stale, convention="global", hypotheses=HYPOTHESES, variants=("printed",))
def gradient_gap_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                      variant: str = "printed") -> Bound:
    """Shape of the gap between an old and a fresh gradient in the mean.

    Guarantee: ||E (G_{l - tau_l} - G_l)|| = O(tau h). The printed constant, C max |L_i f_ih| with f_ih the
    length of a step, is infinite at the start of a step of SGLD; the largest ||E L~_i grad f||, with L~_i
    the generator of the gradient in use, takes its place (``theory.errata``, stale.brownian_step).

    Source: stale-gradient paper, Lemma 8, equation (7).

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `theory.stale.bias_rate`; the L-th update uses iterates up to number L - 1.

    Returns
    -------
    Bound of kind "rate" with the term "staleness".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.
    """
    lengths, tau = iterations(n_rounds, record), largest_age(algorithm, n_rounds)
    return Bound.from_terms(
        {"staleness": tau * fixed_step(algorithm)}, lengths, assumptions=(stable_step(constants, algorithm),),
        quantity="gradient_gap", kind="rate", source=f"{PAPER} Lemma 8", variant="printed",
        target=constants.target, inputs={"tau": tau})


@theorem(id="stale.gradient_gap_bound", paper=PAPER, number="Lemma 8 (quadratic f)", kind="upper",
         quantity="gradient_gap", algorithm=StaleSGLD, convention="global",
         hypotheses=("quadratic f", "unbiased stochastic gradients", "constant step size",
                     "(tau + 1) step_size smoothness <= 1"), variants=("quadratic",))
def gradient_gap_bound(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                       variant: str = "quadratic") -> Bound:
    """Lemma 8 with an explicit constant, for quadratic f of smoothness Ls.

    Guarantee: ||E (G_{l - tau_l} - G_l)|| <= tau_l h Ls^2 (E ||theta_0 - theta_*||^2)^(1/2).

    Proof (ours). With f of Hessian A and y = E theta - theta_*, y_{i+1} = y_i - h A y_{i - tau_i}, so that
    the gap is the norm of h A^2 summed over tau_l old y. It remains that no coordinate x of y in the
    eigenbasis of A, of curvature a, exceeds M = |x_0| in size. Let x_{n+1} > M be the first to do so (x <
    -M in the same way). Then x_{n+1} > x_n asks for x_j < 0 at j = n - tau_n, and
    x_{n+1} <= x_j + (n + 1 - j) h a M < (tau + 1) h a M <= M.

    Source: stale-gradient paper, Lemma 8, equation (7), with L~ (of the gradient in use) applied to grad f in
    place of f_lh.

    Parameters
    ----------
    constants : Constants
        With `initial_distance`; a known `target` tells that f is quadratic.
    algorithm : fedsim.StaleSGLD
        Constant step size.
    n_rounds, record
        As for `gradient_gap_rate`.
    variant : "quadratic"

    Returns
    -------
    Bound with the term "staleness", at the age of each update.

    Raises
    ------
    ValueError
        As for `generic_bias_rate`, and for constants without `initial_distance`.

    Examples
    --------
    >>> import fedsim as fs
    >>> from theory.constants import constants
    >>> problem, algorithm = fs.Quadratic([2.0], [[0.0]]), fs.StaleSGLD(0.125, staleness=1)
    >>> gradient_gap_bound(constants(problem, algorithm, [1.0]), algorithm, n_rounds=3).value.tolist()
    [0.0, 0.5, 0.5]
    """
    lengths, h = iterations(n_rounds, record), fixed_step(algorithm)
    tau, ages = largest_age(algorithm, n_rounds), each_age(algorithm, n_rounds).max(axis=0)[lengths - 1]
    scale = h * constants.smoothness**2 * constants.need("initial_distance")
    return Bound.from_terms(
        {"staleness": ages * scale}, lengths, quantity="gradient_gap", kind="upper",
        assumptions=(
            Assumption.yes("f is quadratic (its target is known to be normal)", constants.target is not None),
            Assumption.at_most("(tau + 1) step_size smoothness <= 1", (tau + 1.0) * h * constants.smoothness,
                               1.0)),
        source=f"{PAPER} Lemma 8", variant="quadratic", target=constants.target, inputs={"tau": tau})


@theorem(id="stale.fluctuation_rate", paper=PAPER, number="Lemma 9 (A_2)", kind="rate",
         quantity="average_fluctuation", algorithm=Stale, convention="global", hypotheses=STANDARD,
         variants=("printed",))
def fluctuation_rate(constants: Constants, algorithm: Any, *, n_rounds: int, record: Any = None,
                     variant: str = "printed") -> Bound:
    """Shape of the martingale part of the average.

    Guarantee: E A_2 = O(1/(L h)), A_2 = sum_l (E[psi_l | past] - psi_l)^2 / (L h)^2: each term is the
    variance of one step, of order h. (With the mean of psi_l in place of its conditional mean, as the
    notation may also be read, each term would be of order one.)

    Source: stale-gradient paper, Lemma 9, first line.

    Parameters
    ----------
    constants, algorithm, n_rounds, record
        As for `theory.stale.bias_rate`.

    Returns
    -------
    Bound of kind "rate" with the term "time".

    Raises
    ------
    ValueError
        As for `generic_bias_rate`.
    """
    lengths = iterations(n_rounds, record)
    return Bound.from_terms(
        {"time": 1.0 / (lengths * fixed_step(algorithm))}, lengths, quantity="average_fluctuation",
        kind="rate", assumptions=(stable_step(constants, algorithm),), source=f"{PAPER} Lemma 9",
        variant="printed", target=constants.target)
