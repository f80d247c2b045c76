"""Gradient noise that grows with the point, as that of minibatches, under DE-SGLD's theorems (appendix D).

Theorem 1 assumes E||gradient noise of a client||^2 <= sigma^2. Where the noise grows as (121) says, sigma^2
needs a bound of E|x|^2:

* a priori, sigma^2 = C (1 + 2 Ct + 2 ||x_eta||^2) with Ct of (125), `growing_noise_iterate_bound`;
* a posteriori, the largest E||noise||^2 that the exact second moments show within so many rounds.

Source: DE-SGLD appendix D. It shows that such bounds exist, for "sufficiently small" eta, and needs no
numbers: C and the constant of (125) are left open. Here they, and how small eta has to be, are derived along
its steps; C for its f_i with the factor 1/(2 xi^2).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.algorithms.gossip import Decentralized
from fedsim.problems.regression import LinearRegression
from fedsim.settings.validation import instance, one_of, whole

from ...declare.bound import Assumption
from ...declare.statement import Hypothesis, Terms
from ...exact import joint_law
from ...facts.constants_of_problem import Constants, constants
from ...facts.potentials_of_problem import finite_share, refuse_sums, sum_by_client
from ..applicable import NotApplicable
from ..paper import THEOREM_1, sgld_theorem as theorem
from ..setting import Setting, setting


@theorem("Appendix D, equation (121)", quantity="relative_noise", terms=("growth",), hypotheses=(),
         source="DE-SGLD appendix D, equation (121)")
def growing_noise_bound(s: Setting, rounds: np.ndarray) -> dict[str, float]:
    """How fast the gradient noise of a client may grow with its position.

    Guarantee, for every client and iteration:

        E||noise of f_i||^2 <= C (1 + E||x_i||^2)

    with `Constants.noise_growth` as C; where the noise is bounded at every point, with that bound.

    Source: DE-SGLD appendix D, equation (121), there an assumption, given x; here its mean over x. The paper
    calls it well known for minibatches of linear regression; `noise_growth` derives a C.

    Examples
    --------
    >>> round(float(bound.value[-1]), 3)
    0.0
    """
    return {"growth": s.growth}


SMALL = "step_size <= strong_convexity (1 + lambda_N)/(4 noise_growth + strong_convexity smoothness)"


def largest_step(s: Setting) -> float:
    """What "sufficiently small" is in the last step of (124): 4 eta C <= mu (1 + lambda_N - eta L)."""
    return s.mu * (1.0 + s.smallest) / (4.0 * s.growth + s.mu * s.L)


@theorem("Appendix D, equation (125)", quantity="fixed_point_moment", terms=("largest",),
         hypotheses=(*THEOREM_1, Hypothesis(SMALL, lambda s: Assumption.at_most(
             SMALL, s.alpha, largest_step(s)))),
         source="DE-SGLD appendix D, equations (124) and (125)")
def growing_noise_iterate_bound(s: Setting, rounds: np.ndarray) -> Terms:
    """How far the clients are from the fixed point x_eta, where gradient noise grows with the point.

    Guarantee, for every iteration:

        E||x - x_eta||^2 <= Ct = max( E||x_0 - x_eta||^2, [eta C N + 4 eta C ||x^*||^2
                                      + 4 eta^3 C C_1^2 N/(1-g)^2 + 2 d N] 2/(mu (1 + lambda_N - eta L)) )

    with C of (121), C_1 of (27), g = gamma-bar, and E||x_0 - x_eta||^2 as for `iterate_bound`.

    Source: DE-SGLD appendix D, equation (125), "for some constant C~_1 > 0". Ct is one, derived: the larger
    of the start and of the fixed point of the recursion (124).

    Examples
    --------
    >>> round(float(bound.value[-1]), 2)
    8.16
    """
    return Terms({"largest": largest_moment(s)}, inputs={"alpha": s.alpha})


def largest_moment(s: Setting) -> float:
    """Ct of (125)."""
    squares = s.N + 4.0 * (s.minimizer_norm**2 + s.fixed_point_distance**2)
    source = s.alpha * s.growth * squares + 2.0 * s.d * s.N
    return float(max((np.sqrt(s.start_sq) + s.fixed_point_distance) ** 2, 2.0 * source / (s.mu * s.room)))


def noise_growth(problem: LinearRegression) -> float:
    """C of (121) for minibatches of linear regression, E||noise of f_i at x||^2 <= C (1 + |x|^2).

    C = max_i (n_i k_i/(b xi^4)) sum_j |X_j|^2 (|X_j|^2 + y_j^2) over clients i, with k_i = 1 with replacement
    and (n_i - b)/(n_i - 1) without: the noise is at most (n_i k_i/b) times the sum of the squared gradients
    (y_j - x'X_j)^2 |X_j|^2/xi^4 of the data, and (y - x'X)^2 <= (1 + |x|^2) (y^2 + |X|^2).

    Parameters
    ----------
    problem : fedsim.LinearRegression
        With a `batch_size` and grad_scale="unbiased".

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For other problems, no `batch_size`, and another grad_scale.

    Source: DE-SGLD appendix D, equation (121); the constant is derived.

    Examples
    --------
    >>> problem = fs.LinearRegression([[1.0], [2.0], [1.0], [-1.0]], [1.0, 2.0, 0.5, -1.0], [0, 0, 1, 1],
    ...                               noise_std=1.0, prior_variance=1.0, batch_size=1)
    >>> theory.de_sgld.noise_growth(problem)
    68.0
    """
    instance("problem", problem, LinearRegression)
    if problem.batch_size is None:
        raise ValueError(f"problem={problem!r} must be a fedsim.LinearRegression with a batch_size")
    refuse_sums(problem)
    rows = np.square(problem.features).sum(axis=1)
    sums = sum_by_client(problem, rows * (rows + problem.targets**2))
    return float((problem.sizes * finite_share(problem) / problem.batch_size * sums).max()
                 / problem.noise_std**4)


def minibatch_constants(problem: LinearRegression, algorithm: Decentralized, start: Any = None, *,
                        known: str = "a_priori", n_rounds: int | None = None) -> Constants:
    """Constants of linear regression with minibatches, with a sigma^2 that covers their noise.

    Parameters
    ----------
    problem : fedsim.LinearRegression
        With a `batch_size` and grad_scale="unbiased".
    algorithm : fedsim.DESGLD, or with known="a_posteriori" also fedsim.DESGHMC
    start : as for `theory.constants`
    known : "a_priori" or "a_posteriori"
        Appendix D's bound, true for all iterations; or the largest E||noise||^2 of the exact second
        moments up to `n_rounds`, true up to there.
    n_rounds : int
        For "a_posteriori".

    Returns
    -------
    Constants whose `gradient_noise_traces` are sigma^2 for every client, and `noise_growth` C.

    Raises
    ------
    NotApplicable
        A priori, for step sizes beyond mu (1 + lambda_N)/(4 C + mu L), or a network not connected.
    ValueError
        As for `noise_growth`, for an unknown `known`, and a posteriori without n_rounds.

    Source: DE-SGLD appendix D, equation (121).

    Examples
    --------
    >>> problem = fs.LinearRegression([[1.0], [2.0], [1.0], [-1.0]], [1.0, 2.0, 0.5, -1.0], [0, 0, 1, 1],
    ...                               noise_std=1.0, prior_variance=1.0, batch_size=1)
    >>> algorithm = fs.DESGLD(0.001, fs.network.complete(2))
    >>> known = theory.de_sgld.minibatch_constants(problem, algorithm, known="a_posteriori", n_rounds=100)
    >>> known.gradient_noise_traces.round(1).tolist()
    [9.0, 9.0]
    """
    one_of("known", known, ("a_priori", "a_posteriori"))
    instance("algorithm", algorithm, DESGLD, DESGHMC)
    growth = noise_growth(problem)
    exact = dataclasses.replace(problem, batch_size=None)
    facts = dataclasses.replace(constants(exact, algorithm, start), noise_growth=growth)
    if known == "a_priori":
        sigma_sq = _a_priori(facts, algorithm)
    else:
        if n_rounds is None:
            raise ValueError("n_rounds=None must be an integer: the noise is looked at up to there")
        law = joint_law(problem, algorithm, whole("n_rounds", n_rounds), start=start)
        sigma_sq = float(law.noise_second_moment.max())  # type: ignore[attr-defined]
    return dataclasses.replace(facts, gradient_noise_traces=np.full(problem.n_clients, sigma_sq))


def _a_priori(facts: Constants, algorithm: Decentralized) -> float:
    instance("algorithm", algorithm, DESGLD, advice="appendix D is about it alone; use known='a_posteriori'")
    s = setting(facts, algorithm)
    limit = largest_step(s)
    if s.alpha > limit * (1.0 + 1e-12):
        raise NotApplicable(f"step_size={s.alpha:g} must be at most {limit:g} for the bound of minibatches' "
                            "noise in DE-SGLD's appendix D; use known='a_posteriori' with n_rounds")
    farthest = s.minimizer_norm + s.fixed_point_distance
    return float(s.growth * (1.0 + 2.0 * largest_moment(s) + 2.0 * farthest**2))
