"""The iterations that the proofs of Theorems 1 and 11 compare the clients with, exactly.

One is the iteration without noise, which has a `fixed_point`. Two are Euler schemes of step alpha on f that
start at the average and have the same noise w as the clients, averaged:

    t' = t - (alpha/N) grad f(t) + sqrt(2 (1 - beta) alpha) wbar,
    y' = y - (alpha/N) grad f(y) + sqrt(2 alpha) wbar.

DE-SGLD is the case alpha = eta, beta = 0, in which both are equations (24) of the paper; DE-SGHMC has
alpha = eta^2 and equations (44) and (43). On quadratic components the whole is one affine recursion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.algorithms.de_sghmc import DESGHMC
from fedsim.algorithms.de_sgld import DESGLD
from fedsim.algorithms.gossip import Decentralized
from fedsim.interfaces import start_of
from fedsim.problems.quadratic import Quadratic
from fedsim.problems.regression import LinearRegression
from fedsim.provenance import Provenance, attach
from fedsim.settings.lazy_import import lazy
from fedsim.settings.limits import refuse_work
from fedsim.settings.validation import Array, array, instance, positive, real, shape, whole

from ..exact import JointLaw
from ..exact.evolution import matrix_of
from ..exact.gossip.fixed import fixed_positions
from ..exact.gossip.general import Components
from ..float_range import float64_range

block_diag = lazy("scipy.linalg", "block_diag")


def fixed_point(problem: Quadratic, algorithm: Decentralized, alpha: float) -> Array:
    """The fixed point of x <- (W x I) x - alpha grad F(x) where gradients are affine in the mean, (N, d).

    It minimises F(x) + x'(I - W x I) x/(2 alpha).

    Parameters
    ----------
    problem : fedsim.Quadratic or fedsim.LinearRegression
    algorithm : fedsim.DESGLD or fedsim.DESGHMC
        Its mixing matrix is used.
    alpha : float
        Step size; eta^2 for DE-SGHMC.

    Returns
    -------
    (N, d) in units of length

    Raises
    ------
    ValueError
        For other problems.

    Source: DE-SGLD Lemma 18.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 1.0], [[1.0], [-1.0]])
    >>> algorithm = fs.DESGLD(0.1, fs.network.complete(2))
    >>> theory.de_sgld.fixed_point(problem, algorithm, 0.5).round(12).tolist()
    [[0.333333333333], [-0.333333333333]]
    """
    instance("problem", problem, Quadratic, LinearRegression, advice="the fixed point is explicit there")
    instance("algorithm", algorithm, DESGLD, DESGHMC).check(problem)
    followed, alpha = problem.curvature_problem(), positive("alpha", alpha)
    with float64_range(f"alpha={alpha!r} on this problem"):
        return fixed_positions(Components(followed, algorithm.mixing, dense=True), alpha, 0)


@dataclass(frozen=True)
class Coupling:
    """Second moments along the iterations 0, ..., n.

    Attributes
    ----------
    rounds : (n + 1,) int
    average_to_damped : (n + 1,)
        E||average - t||^2.
    damped_to_euler : (n + 1,)
        E||t - y||^2.
    average_to_euler : (n + 1,)
        E||average - y||^2.
    extrapolated : (n + 1,)
        E||x + beta/(1-beta) (x - x_before)||^2 of all clients; at 0 with x - x_before = eta v.
    distance : (n + 1,)
        The same of x + beta/(1-beta) (x - x_before) - x_a, x_a the minimizer of
        Fbar = F + x'(I - W x I) x/(2 alpha).
    energy : (n + 1,)
        E[Fbar(x_before) - Fbar(x_a)].
    of : fedsim.provenance.Provenance
        What it is of; with other alpha, beta or velocities than the algorithm's, of no algorithm's own.

    Examples
    --------
    >>> theory.de_sgld.Coupling(np.arange(2), *np.zeros((6, 2))).energy.tolist()
    [0.0, 0.0]
    """

    rounds: np.ndarray
    average_to_damped: Array
    damped_to_euler: Array
    average_to_euler: Array
    extrapolated: Array
    distance: Array
    energy: Array
    of: Provenance = field(init=False, default=Provenance(), repr=False, compare=False)


def _of(problem: Quadratic, algorithm: Decentralized, start: Any, alpha: float, beta: float,
        velocities: Array | None) -> Provenance:
    """What a coupling is of: with other numbers than its own, it is not the algorithm's."""
    of, own = Provenance.of(problem, algorithm, start), (float(algorithm.schedule.largest), 0.0)
    still = pushes = np.zeros((problem.n_clients, problem.dim))
    if isinstance(algorithm, DESGHMC):
        own = own[0] ** 2, 1.0 - algorithm.friction * own[0]
        pushes = algorithm.start_velocities(problem)
    pushed = still if velocities is None else np.broadcast_to(velocities, still.shape)
    if np.allclose((alpha, beta), own, rtol=1e-12, atol=1e-14) and np.array_equal(pushed, pushes):
        return of
    return of.altered(f"alpha={float(alpha)!r}, beta={float(beta)!r} and velocities by hand, in place")


MOST_ROUNDS = 10**7
"""Rounds that are followed one by one."""


def _checked(problem: Quadratic, algorithm: Decentralized, n_rounds: Any, alpha: Any, beta: Any,
             velocities: Any) -> tuple[int, float, float, Array | None]:
    """The numbers of a coupling, once they and the objects are what they must be."""
    instance("problem", problem, Quadratic, advice="the coupling is affine only there")
    instance("algorithm", algorithm, DESGLD, DESGHMC).check(problem)
    if not 0.0 <= real("beta", beta) < 1.0:
        raise ValueError(f"beta={beta!r} must lie in [0, 1)")
    if velocities is not None:
        velocities = array("velocities", velocities, 1, 2)
        shape("velocities", velocities, (problem.n_clients, problem.dim)[2 - velocities.ndim:])
    count, size = whole("n_rounds", n_rounds, 0, MOST_ROUNDS), 3 * problem.n_clients * problem.dim
    refuse_work(4.0 * count * size**3, f"n_rounds={n_rounds} of the coupling of {problem.n_clients} clients "
                f"at dimension {problem.dim}", "ask for fewer rounds, clients or dimensions")
    return count, positive("alpha", alpha), float(beta), velocities


def coupling(problem: Quadratic, algorithm: Decentralized, n_rounds: int, start: Any = None, *, alpha: float,
             beta: float = 0.0, velocities: Array | None = None) -> Coupling:
    """Moments of the clients and of both schemes, driven by the same noise.

    Parameters
    ----------
    problem : fedsim.Quadratic
    algorithm : fedsim.DESGLD or fedsim.DESGHMC
        Its mixing matrix is used.
    n_rounds : int
    start : as for `theory.exact_law`
    alpha, beta : float
        As above.
    velocities : (N, d), optional
        At the start.

    Returns
    -------
    Coupling

    Raises
    ------
    ValueError
        For problems that are not quadratic.

    Source: DE-SGLD Lemma 8 and DE-SGHMC Lemmas 16 and 17, whose coupled schemes these are.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> theory.de_sgld.coupling(problem, algorithm, 2, [1.0], alpha=0.01).average_to_euler.round(9).tolist()
    [0.0, 0.0, 2.54e-07]
    """
    n_rounds, alpha, beta, velocities = _checked(problem, algorithm, n_rounds, alpha, beta, velocities)
    N, d, W = problem.n_clients, problem.dim, algorithm.mixing
    size, unit, eta = N * d, np.eye(d), np.sqrt(alpha)
    blocks = problem.weights[:, None, None] * problem.dense_hessians
    A, mean_A = block_diag(*blocks), blocks.mean(axis=0)
    pull = np.einsum("cij,cj->ci", blocks, problem.minimizers)
    # state: x, x before, u = eta v, average - t, t - y; the differences are carried, because they are small
    x, before, u = slice(0, size), slice(size, 2 * size), slice(2 * size, 3 * size)
    apart, lag = slice(3 * size, 3 * size + d), slice(3 * size + d, 3 * size + 2 * d)
    total = 3 * size + 2 * d
    M, c = np.zeros((total, total)), np.zeros(total)
    M[u, u], M[u, x], c[u] = beta * np.eye(size), -alpha * A, alpha * pull.ravel()
    M[x], c[x] = M[u], c[u]
    M[x, x] += np.kron(W, unit)
    M[before, x] = np.eye(size)
    mean_of = np.tile(unit, (1, N)) / N
    M[apart, apart] = M[lag, lag] = unit - alpha * mean_A
    M[apart, x], M[apart, u] = alpha * (mean_A @ mean_of - mean_of @ A), beta * mean_of
    damping = np.sqrt(1.0 - beta)
    kick = np.zeros((total, size))
    kick[x] = kick[u] = damping * np.eye(size)
    kick[lag] = -beta / (1.0 + damping) * mean_of  # damping - 1
    Q = 2.0 * alpha * kick @ kick.T
    if problem.noise_covariances is not None:
        rough = np.zeros((total, size))
        rough[x] = rough[u] = np.eye(size)
        rough[apart] = mean_of
        G = block_diag(*(problem.weights[:, None, None] ** 2 * problem.noise_covariances))
        Q += alpha**2 * rough @ G @ rough.T

    points, cov = start_of(problem, algorithm, start)
    points = np.broadcast_to(points, (N, d))
    push = np.zeros((N, d)) if velocities is None else eta * np.broadcast_to(velocities, (N, d))
    still = np.zeros(2 * d)
    mean = np.concatenate([points.ravel(), (points - push).ravel(), push.ravel(), still])
    rows = np.concatenate([np.tile(unit, (2 * N, 1)), np.zeros((size + 2 * d, d))])
    S = np.zeros((total, total)) if cov is None else rows @ matrix_of(cov) @ rows.T

    pick, step = np.eye(total), beta / (1.0 - beta)
    ahead, curvature = (1.0 + step) * pick[x] - step * pick[before], A + np.kron(np.eye(N) - W, unit) / alpha
    try:
        root = np.linalg.cholesky(0.5 * curvature).T
    except np.linalg.LinAlgError:
        raise ValueError(f"alpha={alpha:g} is too small: beside (I - W)/alpha the Hessians vanish in "
                         "float64") from None
    fixed = fixed_point(problem, algorithm, alpha).ravel()
    reads = [(pick[apart], 0.0), (pick[lag], 0.0), (pick[apart] + pick[lag], 0.0), (ahead, 0.0),
             (ahead, fixed), (root @ pick[before], root @ fixed)]
    moments = np.empty((len(reads), n_rounds + 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_rounds + 1):
            if k:
                mean, S = M @ mean + c, M @ S @ M.T + Q
            for row, (read, origin) in zip(moments, reads, strict=True):
                spread = np.einsum("ij,jk,ik->", read, S, read, optimize=True)
                row[k] = ((read @ mean - origin) ** 2).sum() + spread
    if not np.isfinite(moments).all():
        raise ValueError(f"alpha={alpha:g} is too large: the moments leave float64 within {n_rounds} rounds")
    return attach(Coupling(np.arange(n_rounds + 1), *moments),
                  _of(problem, algorithm, start, alpha, beta, velocities))


@dataclass(frozen=True, eq=False)
class Spread:
    """The clients' joint law, and the fixed point (N, d) of the iteration without noise: for Lemma 5's proof.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> joint = theory.exact.joint_law(problem, algorithm, 9)
    >>> spread = theory.de_sgld.Spread(joint, theory.de_sgld.fixed_point(problem, algorithm, 0.01))
    >>> known = theory.constants(problem, algorithm)
    >>> theory.check(theory.de_sgld.iterate_bound(known, algorithm, n_rounds=9), spread).holds
    True
    """

    joint: JointLaw
    fixed: Array

    @property
    def of(self) -> Provenance:
        """What the joint law is of."""
        return self.joint.of


@dataclass(frozen=True)
class NoiseFree:
    """The iteration without noise, whose fixed point Lemma 18 is about.

    Examples
    --------
    >>> problem = fs.Quadratic.from_components([1.0, 2.0], [[0.5], [-0.5]])
    >>> algorithm = fs.DESGLD(0.01, fs.network.complete(2))
    >>> bound = theory.de_sgld.fixed_point_bound(theory.constants(problem, algorithm), algorithm)
    >>> theory.check(bound, theory.de_sgld.NoiseFree(problem, algorithm)).holds
    True
    """

    problem: Any
    algorithm: Any
