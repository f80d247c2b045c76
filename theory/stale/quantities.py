"""What the paper's statements are about, from exact laws: errors of the average of squares, the gap of old
gradients, and the martingale part of the average. Lemmas 8 and 9 are about the last two, with an explicit
constant where there is one.

Two pieces of the paper have no entry. Lemma 10 is the variance of a sum of independent centred variables:
an identity without an algorithm or a number. The bound of A_4 in Lemma 9 concerns a sum over k = 2, ..., K
that is empty for the Euler integrators, K = 1, simulated here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.stale import Stale, StaleSGHMC, StaleSGLD
from fedsim.interfaces import Problem, validate, validate_sizes
from fedsim.settings.limits import refuse_bytes
from fedsim.settings.validation import Array, instance, shown, whole

from ..declare.bound import Assumption, Bound
from ..declare.statement import Hypothesis, Terms
from ..exact import exact_law
from ..exact.affine import NoExactLaw
from ..exact.delay import AverageLaw, average_law
from ..exact.delay.family import StaleFamily, each_schedule
from ..facts.constants_of_problem import Constants
from ..judge.checking import Measured, quantity
from ..theorem_parts import of_its_size
from .setting import ONE_STEP_SIZE, STANDARD, Setting, each_age, rate, theorem


def gradient_gap(problem: Problem, algorithm: Stale, n_rounds: int, *, start: Any = None) -> Array:
    """||E (grad f(theta_{l - tau_l}) - grad f(theta_l))|| at updates l = 0, ..., n_rounds - 1, exactly.

    What the paper's Lemma 8 is about: the gradients' noise has mean zero and drops out.

    Parameters
    ----------
    problem : fedsim.Quadratic or fedsim.GaussianMean
    algorithm : fedsim.StaleSGLD or fedsim.StaleSGHMC
    n_rounds : int
        At least 1.
    start : point (d,) or fedsim.Gaussian, optional

    Returns
    -------
    (n_rounds,) in units of grad f.

    Raises
    ------
    UnstableStepSize, NoExactLaw (both are ValueErrors), ValueError

    Source: stale-gradient paper, Lemma 8; the value is derived from the exact law of the means.

    Examples
    --------
    >>> problem, algorithm = fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.25, staleness=1)
    >>> theory.stale.gradient_gap(problem, algorithm, 3, start=[1.0]).tolist()
    [0.0, 0.25, 0.25]
    """
    return _gaps(problem, algorithm, n_rounds, start).value


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Gaps at updates 0, ..., n-1, and the size of the gradients that they are differences of."""

    value: Array
    scale: float


def _gaps(problem: Problem, algorithm: Stale, n_rounds: int, start: Any) -> _Gaps:
    validate_sizes(problem, algorithm, start)
    instance("algorithm", algorithm, StaleSGLD, StaleSGHMC)
    refuse_bytes(32.0 * whole("n_rounds", n_rounds, 1), f"n_rounds={n_rounds}", "ask for fewer rounds")
    length, pooled = int(n_rounds), StaleFamily().solvable(problem).pooled()
    each, updates = each_schedule(algorithm, length), np.arange(length)
    gaps, size = np.zeros((length, problem.dim)), float(np.linalg.norm(pooled.minimizer))
    for one in each:
        law = exact_law(problem, one, length, start=start, record=np.arange(length + 1), covariance="none")
        away = law.mean - pooled.minimizer
        gaps += away[updates - one.ages(length)] - away[updates]
        size = max(size, float(np.linalg.norm(law.mean, axis=1).max()))
    hessian = pooled.dense_hessians[0]
    return _Gaps(np.linalg.norm(gaps @ hessian, axis=1) / len(each), size * float(np.linalg.norm(hessian, 2)))


def fluctuation(problem: Problem, algorithm: Stale, n_rounds: int, *, start: Any = None) -> Array:
    """E A_2 = sum_{l <= L} E (psi_l - E[psi_l | past])^2 / (L h)^2 for L = 1, ..., n_rounds, exactly.

    psi solves L psi = |theta|^2 - phibar. For quadratic f with Hessian A and minimizer m it is
    -(1/2) y' A^-1 y - 2 m' A^-1 y, with y = theta - m. Given the past y_l has a known mean mu and
    covariance Q = 2 h I + h^2 (gradient noise), so that with B = A^-1 Q A^-1 the conditional variance is
    (mu + 2 m)' B (mu + 2 m) + tr(B Q)/2, and mu has the mean of y_l and its covariance less Q.

    Parameters
    ----------
    problem : fedsim.Quadratic, or fedsim.GaussianMean without minibatches
    algorithm : fedsim.StaleSGLD
        Constant step size.
    n_rounds, start
        As for `gradient_gap`.

    Returns
    -------
    (n_rounds,) in units of |theta|^4.

    Raises
    ------
    UnstableStepSize, NoExactLaw (both are ValueErrors), ValueError
        As for `gradient_gap`; NoExactLaw also for SGHMC, a schedule and minibatches.

    Source: derived, for the term A_2 of the stale-gradient paper's equation (17) and Lemma 9.

    Examples
    --------
    >>> theory.stale.fluctuation(fs.Quadratic([1.0], [[0.0]]), fs.StaleSGLD(0.25), 1).tolist()
    [2.0]
    """
    if not isinstance(algorithm, StaleSGLD) or not algorithm.schedule.is_constant:
        raise NoExactLaw(f"algorithm={shown(algorithm)}: psi is known here for StaleSGLD with one step size")
    validate_sizes(problem, algorithm, start)
    if not problem.keeps_gaussian:
        raise NoExactLaw(f"problem={problem!r}: the noise of minibatches is not normal")
    validate(problem, algorithm, start)
    refuse_bytes(32.0 * whole("n_rounds", n_rounds, 1), f"n_rounds={n_rounds}", "ask for fewer rounds")
    length, pooled = whole("n_rounds", n_rounds, 1), StaleFamily().solvable(problem).pooled()
    h, rough = float(algorithm.schedule.largest), pooled.noise_covariances
    noise = 2.0 * h * np.eye(pooled.dim) + (0.0 if rough is None else h**2 * rough[0])
    inverse = np.linalg.inv(pooled.dense_hessians[0])
    weight = inverse @ noise @ inverse
    each = each_schedule(algorithm, length)
    total = np.zeros(length)
    for one in each:
        law = exact_law(problem, one, length, start=start, record=np.arange(length + 1))
        centre, covariances = law.mean[1:] + pooled.minimizer, np.asarray(law.cov)  # centre is y + 2 m
        total += (np.einsum("li,ij,lj->l", centre, weight, centre)
                  + np.einsum("ij,lji->l", weight, covariances[1:] - noise) + 0.5 * np.trace(weight @ noise))
    return np.cumsum(total / len(each)) / (h * np.arange(1.0, length + 1.0)) ** 2


def _of_average(name: str, meaning: str, pick: Callable[[AverageLaw], Array]) -> None:
    """Register a quantity that is read from the law of the average."""
    def measure(bound: Bound, law: AverageLaw, level: float) -> Measured:
        return of_its_size(pick(law)[np.searchsorted(law.lengths, bound.rounds)], bound.rounds)

    quantity(name, f"{meaning} of the average of squares over L iterates", measure, average_law)


_of_average("average_bias", "|E phi_L - phibar|", lambda law: np.abs(law.bias))
_of_average("average_mse", "E (phi_L - phibar)^2", lambda law: law.mse)
_of_average("average_variance", "Var phi_L", lambda law: law.variance)


def _exact_gaps(problem: Problem, algorithm: Stale, bound: Bound, n_rounds: int, start: Any) -> _Gaps:
    gaps = _gaps(problem, algorithm, n_rounds, start)
    return _Gaps(gaps.value[bound.rounds - 1], gaps.scale)


def _measure_plain(bound: Bound, law: Any, level: float) -> Measured:
    """Values at the rounds of a bound, which `theory.check` takes as they are where they are an array."""
    if isinstance(law, _Gaps):
        return Measured(law.value, bound.rounds, law.scale)
    raise ValueError(f"law={shown(law)} must be an array (n,) of the {bound.quantity} at the bound's rounds, "
                     "e.g. from theory.stale.gradient_gap")


quantity("gradient_gap", "norm of the mean difference of old and fresh gradient at the L-th update",
         _measure_plain, _exact_gaps)
quantity("average_fluctuation", "mean square of the martingale part of the average of L squares",
         _measure_plain, lambda problem, algorithm, bound, n_rounds, start: fluctuation(
             problem, algorithm, n_rounds, start=start)[bound.rounds - 1])


@rate("Lemma 8", quantity="gradient_gap", terms=("staleness",))
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


QUADRATIC = Hypothesis("quadratic f", lambda constants: Assumption.yes(
    "f is quadratic (its target is known to be normal)", constants.target is not None))
SMALL = Hypothesis("(tau + 1) step_size smoothness <= 1", lambda constants, s: Assumption.at_most(
    "(tau + 1) step_size smoothness <= 1", (s.tau + 1.0) * s.h * constants.smoothness, 1.0))


@theorem("Lemma 8 (quadratic f)", source="Stale gradients Lemma 8", quantity="gradient_gap",
         terms=("staleness",), algorithm=StaleSGLD, variants=("quadratic",),
         hypotheses=(QUADRATIC, Hypothesis("unbiased stochastic gradients"), ONE_STEP_SIZE, SMALL))
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


@rate("Lemma 9 (A_2)", source="Stale gradients Lemma 9", quantity="average_fluctuation", terms=("time",),
      hypotheses=STANDARD)
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
