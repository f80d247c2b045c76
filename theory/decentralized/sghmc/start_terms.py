"""Where DE-SGHMC starts relative to x_a, the minimizer of Fbar: what V_1 of Theorem 11 is made of.

`beginning_bound` knows only constants; `beginning` computes the same moments of a quadratic problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.interfaces import Problem, start_of
from fedsim.problems.quadratic import Quadratic
from fedsim.settings.lazy_import import lazy
from fedsim.settings.validation import instance

from ...exact.evolution import matrix_of
from ..applicable import require_constant_step
from ..schemes import fixed_point
from ..setting import Setting

block_diag = lazy("scipy.linalg", "block_diag")


@dataclass(frozen=True)
class Beginning:
    """Moments of all clients together.

    Attributes
    ----------
    fixed_norm : float
        ||x_a||.
    fixed_distance : float
        ||x_a - x^*||.
    start_sq : float
        E||x^(0) - x_a||^2.
    first_sq : float
        E||x^(1) - x_a||^2.
    step_sq : float
        E||x^(1) - x^(0)||^2.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> begin = theory.de_sghmc.Beginning(fixed_norm=0.7, fixed_distance=0.6, start_sq=0.5, first_sq=0.5,
    ...                                   step_sq=0.1)
    >>> bound = theory.de_sghmc.velocity_bound(theory.constants(problem, algorithm), algorithm, n_rounds=9,
    ...                                        begin=begin)
    >>> round(float(bound.value[-1]), 2)
    7.06
    """

    fixed_norm: float
    fixed_distance: float
    start_sq: float
    first_sq: float
    step_sq: float


def beginning_bound(s: Setting, beta: float, start_velocity_sq: float) -> Beginning:
    """Upper bounds of the moments, from constants alone.

    Lemma 18 bounds ||x_a - x^*||, and x^(1) - x_a = (I - alpha Hess)(x^(0) - x_a) + eta beta v^(0) + noise
    with a norm of at most max(1, alpha L_a - 1) before it.
    """
    off = s.fixed_point_distance
    start = float(np.sqrt(s.start_sq)) + off
    steepest = s.alpha * s.L + 1.0 - s.smallest  # alpha L_a
    pushed = float(np.sqrt(s.alpha * start_velocity_sq)) * beta
    heat = s.alpha * s.heat_of(beta)
    return Beginning(s.minimizer_norm + off, off, start**2,
                     (max(1.0, steepest - 1.0) * start + pushed) ** 2 + heat,
                     (steepest * start + pushed) ** 2 + heat)


def beginning(problem: Quadratic, algorithm: DESGHMC, start: Any = None) -> Beginning:
    """The moments of a quadratic problem.

    Parameters
    ----------
    problem : fedsim.Quadratic
    algorithm : fedsim.DESGHMC
    start : as for `theory.exact_law`

    Returns
    -------
    Beginning

    Raises
    ------
    ValueError
        For problems that are not quadratic.

    Source: derived, for V_1 of DE-SGHMC, equations (94) and (95).

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGHMC(0.1, 10.0, fs.network.complete(2))
    >>> begin = theory.de_sghmc.beginning(problem, algorithm, [1.0])
    >>> round(begin.start_sq, 2), round(begin.first_sq, 2)
    (2.71, 2.67)
    """
    instance("problem", problem, Quadratic)
    instance("algorithm", algorithm, DESGHMC).check(problem)
    eta = require_constant_step(algorithm)
    alpha, beta = eta**2, 1.0 - algorithm.friction * eta
    fixed = fixed_point(problem, algorithm, alpha)
    (N, d), same = fixed.shape, np.eye(fixed.size)
    blocks = problem.weights[:, None, None] * problem.dense_hessians
    downhill = np.kron(algorithm.mixing - np.eye(N), np.eye(d)) - alpha * block_diag(*blocks)
    push = eta * beta * algorithm.start_velocities(problem).ravel()
    heat = 2.0 * (1.0 - beta) * alpha * N * d
    if problem.noise_covariances is not None:
        rough = np.trace(problem.noise_covariances, axis1=1, axis2=2)
        heat += alpha**2 * float(problem.weights**2 @ rough)
    points, cov = start_of(problem, algorithm, start)
    off = (np.broadcast_to(points, (N, d)) - fixed).ravel()
    spread = np.tile(np.zeros((d, d)) if cov is None else matrix_of(cov), (N, N))  # one draw for all clients
    moments = [float(((to @ off + moved * push) ** 2).sum() + np.trace(to @ spread @ to.T) + moved * heat)
               for to, moved in ((same, 0.0), (same + downhill, 1.0), (downhill, 1.0))]
    return Beginning(float(np.linalg.norm(fixed)), float(np.linalg.norm(fixed - problem.minimizer)), *moments)


def of_problem(problem: Problem, algorithm: DESGHMC, constants: Any, n_rounds: int,
               start: Any) -> dict[str, Any]:
    """The further argument of the theorems where the problem is known and quadratic."""
    return {"begin": beginning(problem, algorithm, start)} if isinstance(problem, Quadratic) else {}
