"""Linear regression with minibatches under DE-SGLD's theorems (appendix D).

Theorem 1 assumes E||gradient noise of a client||^2 <= sigma^2. With minibatches of linear regression the
noise grows with the point,

    E[||noise of f_i||^2 | x] <= C (1 + |x|^2),
    C = max_i (2 n_i k_i/(b xi^4)) max( sum_j |X_j|^4, sum_j y_j^2 |X_j|^2 ),

k_i = 1 with replacement and (n_i - b)/(n_i - 1) without, so that sigma^2 needs a bound of E|x|^2:

* a priori, appendix D: for eta <= mu (1 + lambda_N)/(4 C + mu L)

      E||x - x_eta||^2 <= Ct = max( E||x_0 - x_eta||^2, [eta C N + 4 eta C ||x^*||^2
                                    + 4 eta^3 C C_1^2 N/(1-g)^2 + 2 d N] 2/(mu (1 + lambda_N - eta L)) ),
      sigma^2 = C (1 + 2 Ct + 2 ||x_eta||^2);

* a posteriori: the largest E||noise||^2 that the exact second moments show within so many rounds.

Source: DE-SGLD appendix D. The paper says "sufficiently small" and gives no C; the constants are
derived, for its f_i with the factor 1/(2 xi^2).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.problems.regression import LinearRegression
from fedsim.settings.validation import Array, instance, one_of, whole

from ...exact import joint_law
from ...facts import Constants, constants
from ...potentials import finite_share, refuse_sums, sum_by_client
from ..applicable import NotApplicable
from ..setting import setting


def noise_growth(problem: LinearRegression) -> float:
    """C of E[||noise of f_i||^2 | x] <= C (1 + |x|^2), for every client's component.

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
    sums = np.maximum(sum_by_client(problem, rows**2), sum_by_client(problem, problem.targets**2 * rows))
    return float((2.0 * problem.sizes * finite_share(problem) / problem.batch_size * sums).max()
                 / problem.noise_std**4)


def minibatch_constants(problem: LinearRegression, algorithm: Any, start: Any = None, *,
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
    Constants whose `gradient_noise_traces` are sigma^2 for every client.

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
    facts = constants(exact, algorithm, start)
    if known == "a_priori":
        sigma_sq = _a_priori(facts, algorithm, growth)
    else:
        if n_rounds is None:
            raise ValueError("n_rounds=None must be an integer: the noise is looked at up to there")
        law = joint_law(problem, algorithm, whole("n_rounds", n_rounds), start=start)
        sigma_sq = max(float(_noise_traces(problem, c, law.mean[:, c], law.client_cov[:, c]).max())
                       for c in range(problem.n_clients))
    return dataclasses.replace(facts, gradient_noise_traces=np.full(problem.n_clients, sigma_sq))


def _noise_traces(problem: LinearRegression, client: int, mean: Array, cov: Array) -> Array:
    """E||noise of f_i||^2 at points with these means (n, d) and covariances (n, d, d), (n,).

    (n_i k_i/(b xi^4)) [ sum_j E(r_j^2) |X_j|^2 - E|sum_j r_j X_j|^2/n_i ] with residuals r_j.
    """
    assert problem.batch_size is not None
    own = problem.clients == client
    X, y, size = problem.features[own], problem.targets[own], int(problem.sizes[client])
    residuals = np.square(mean @ X.T - y) + np.einsum("ra,kab,rb->kr", X, cov, X, optimize=True)
    gram = X.T @ X
    total = np.square(mean @ gram - X.T @ y).sum(axis=1) + np.einsum("ia,kab,ib->k", gram, cov, gram,
                                                                     optimize=True)
    scale = size * finite_share(problem)[client] / (problem.batch_size * problem.noise_std**4)
    return scale * (residuals @ np.square(X).sum(axis=1) - total / size)


def _a_priori(facts: Constants, algorithm: Any, growth: float) -> float:
    instance("algorithm", algorithm, DESGLD, advice="appendix D is about it alone; use known='a_posteriori'")
    s = setting(facts, algorithm)
    eta, limit = s.alpha, s.mu * (1.0 + s.smallest) / (4.0 * growth + s.mu * s.L)
    if eta > limit * (1.0 + 1e-12):
        raise NotApplicable(f"step_size={eta:g} must be at most {limit:g} for the noise of minibatches to be "
                            "bounded (DE-SGLD appendix D); use known='a_posteriori' for finitely many rounds")
    off, common = s.fixed_point_distance, s.minimizer_norm
    source = eta * growth * s.N + 4.0 * eta * growth * (common**2 + off**2) + 2.0 * s.d * s.N
    moment = max((np.sqrt(s.start_sq) + off) ** 2, 2.0 * source / (s.mu * s.room))
    return float(growth * (1.0 + 2.0 * moment + 2.0 * (common + off) ** 2))
