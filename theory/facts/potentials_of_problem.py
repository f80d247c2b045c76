"""Facts about the potentials that algorithms follow: one function for each class of problem.

`followed` gives them for a convention. That of "global" are always those of `problem.pooled()`: what a stale
algorithm runs on, whose minibatches are drawn from all data and not from those of each client.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from fedsim.interfaces import Problem
from fedsim.problems.gaussian_mean import GaussianMean
from fedsim.problems.pooled import Pooled
from fedsim.problems.quadratic import Quadratic
from fedsim.problems.regression import LinearRegression, LogisticRegression, SoftmaxRegression
from fedsim.settings.validation import Array, one_of

from ..exact.tables import at

CONVENTIONS = ("federated", "components", "global")


@dataclass(frozen=True)
class Potentials:
    """Facts about the f_(c) of a problem, from which those of every convention follow.

    Attributes
    ----------
    curvature : (N, 2)
        Smallest and largest curvature of every f_(c).
    global_curvature : (2,)
        Those of f = sum_c w_c f_(c).
    minimizer : (d,)
        Of f.
    gradients : (N, d)
        grad f_(c) at the minimizer.
    noise_traces : (N,)
        E||noise||^2 of an evaluation of grad f_(c), or an upper bound of it at every point.
    gaps_at_origin : (N,) or None
        f_(c)(0) - min f_(c), or an upper bound of it.
    hessian_smoothness : (N,) or None
        L_H of every f_(c), see `Constants`; None where it is not known.
    off_target : str
        Why the gradients are not those of the target; "" where they are.
    """

    curvature: Array
    global_curvature: Array
    minimizer: Array
    gradients: Array
    noise_traces: Array
    gaps_at_origin: Array | None = None
    hessian_smoothness: Array | None = None
    off_target: str = ""


@singledispatch
def potentials(problem: Problem) -> Potentials:
    """Facts about a problem's potentials; register a new class of problem with ``potentials.register``."""
    raise ValueError(f"problem={problem!r} has no known constants; make a theory.Constants by hand")


def followed(problem: Problem, convention: str) -> Potentials:
    """Facts about what an algorithm of this convention follows: f_(c), w_c f_(c), or f alone."""
    if one_of("convention", convention, CONVENTIONS) == "global":
        return replace(potentials(problem.pooled()), gradients=np.zeros((1, problem.dim)))
    facts, share = potentials(problem), problem.weights
    if convention == "federated":
        return facts
    return replace(facts, curvature=share[:, None] * facts.curvature,
                   gradients=share[:, None] * facts.gradients, noise_traces=share**2 * facts.noise_traces,
                   gaps_at_origin=_times(share, facts.gaps_at_origin),
                   hessian_smoothness=_times(share, facts.hessian_smoothness))


def _times(share: Array, known: Array | None) -> Array | None:
    return None if known is None else share * known


@potentials.register
def _of_quadratic(problem: Quadratic) -> Potentials:
    dense, count = problem.structure == "dense", problem.n_clients
    hessians = problem.hessians if dense else problem.diagonal_hessians
    spectrum: Any = np.linalg.eigvalsh if dense else np.sort
    local, overall = spectrum(hessians), spectrum(problem.mean_hessian)
    times = at if dense else np.multiply
    minimizer = problem.minimizers[0] if count == 1 else problem.minimizer  # not solved for once more
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not known
        gradients = times(hessians, minimizer - problem.minimizers)
        at_origin = 0.5 * (problem.minimizers * times(hessians, problem.minimizers)).sum(axis=1)
    noise = problem.gradient_noise
    if noise is None:
        traces = np.zeros(count)
    elif np.ndim(noise) == 0:
        traces = np.full(count, noise**2 * problem.dim)
    else:
        traces = np.trace(noise, axis1=1, axis2=2)
    gaps = np.maximum(at_origin, 0.0) if np.isfinite(at_origin).all() else None
    return Potentials(local[:, [0, -1]], overall[[0, -1]], minimizer, gradients, np.maximum(traces, 0.0),
                      gaps, np.zeros(count))


@potentials.register
def _of_gaussian_mean(problem: GaussianMean) -> Potentials:
    """Those of the gradients that the chain follows, which may be those of another law than the target."""
    facts = potentials(problem.as_quadratic())
    if abs(problem.share - 1.0) < 1e-12:  # J / N for sums
        return facts
    precision = 1.0 / float(problem.target().variances[0])
    return replace(facts, off_target=(
        f"grad_scale={problem.grad_scale!r}: the gradients have strong_convexity={problem.curvature:g} and "
        f"the target {precision:g}, so that the average is biased at every step size"))


@potentials.register
def _of_pooled(problem: Pooled) -> Potentials:
    """Their weighted sum, with the noise of clients of which each has its own."""
    facts, share = potentials(problem.problem), problem.problem.weights
    gaps, smoothness = (None if known is None else np.array([share @ known]) for known in (
        facts.gaps_at_origin, facts.hessian_smoothness))
    return replace(facts, curvature=facts.global_curvature[None],
                   gradients=np.array([share @ facts.gradients]),
                   noise_traces=np.array([share**2 @ facts.noise_traces]), gaps_at_origin=gaps,
                   hessian_smoothness=smoothness)


@potentials.register
def _of_linear(problem: LinearRegression) -> Potentials:
    if problem.has_minibatches:
        raise ValueError(f"problem={problem!r}: the noise of its minibatches depends on the state, so that "
                         "no noise trace is known beforehand; for decentralized algorithms use "
                         "theory.de_sgld.minibatch_constants")
    return potentials(problem.as_quadratic())


@potentials.register
def _of_logistic(problem: LogisticRegression) -> Potentials:
    """The loss s(t) = log(1 + exp(-+t)) of a score t has |s'| <= 1, s'' <= 1/4, |s'''| <= 1/(6 sqrt 3).

    The last with p = P(y = 1): s''' = p (1-p)(1-2p) is largest in size at (2p - 1)^2 = 1/3.
    """
    return _of_labels(problem, problem.features, steepest=0.25, slope_sq=1.0, third=1.0 / (6.0 * 3.0**0.5),
                      highest=float(np.log(2.0)))


@potentials.register
def _of_softmax(problem: SoftmaxRegression) -> Potentials:
    """The loss log sum_k exp(z_k) - z_y of scores z = theta X has |gradient|^2 <= 2 and Hessian <= 1/2.

    Third derivative. Along scores a, b, c it is the third cumulant E[(a-Ea)(b-Eb)(c-Ec)] of a random class K.
    It is to be at most |a| |b| |c|_max / 2. A bilinear symmetric form is largest at a = +-b, a convex one at
    corners: c = 1 in a set A of classes and -1 elsewhere, up to sign with q = P(A) <= 1/2. With v, v' the
    variances of a inside and outside of A and D the difference of its means there, it is then
    2 q(1-q) [v - v' + (1-2q) D^2]. Let r be the norm of a inside A, s outside, r^2 + s^2 = |a|^2 = 1. As
    v <= (max - min)^2/4 <= r^2/2 and D <= r + s, with t = 1 - 2q, the form is at most

        (1-t^2)/2 [r^2/2 + t (r+s)^2] <= (1-t^2)/2 [t + 1/4 + sqrt(t^2 + 1/16)] < .4915

    for all t in [0, 1] (the bracket is the largest eigenvalue in (r, s)). Two classes attain 2/(3 sqrt 3) =
    .385 at q = (1 - 1/sqrt 3)/2.
    """
    features = problem.feature_scale * problem.features.astype(np.float64)
    return _of_labels(problem, features, steepest=0.5, slope_sq=2.0, third=0.5,
                      highest=float(np.log(problem.n_classes or 2)))


def _of_labels(problem: Any, features: Array, *, steepest: float, slope_sq: float, third: float,
               highest: float) -> Potentials:
    """Of losses of scores x'X_r: curvature between prior's and losses' largest, noise by their slopes.

    A loss whose third derivative along scores a, b, c is at most third |a| |b| |c|_max changes its Hessian
    along u by at most third |X_r|^2 |x-y| |X_r|_1 |u|_max. Over a client's rows the sum of these is at most
    the sum of third |X_r|^2 |X_r|_1, and (Cauchy) third max_r |X_r|_1 times the largest eigenvalue of X'X.
    """
    refuse_sums(problem)
    overall = np.array(problem.curvature_bounds("global"))  # refuses what memory cannot hold
    weights, mode, clients = problem.weights, problem.mode(), range(problem.n_clients)
    squares, sizes = np.square(features).sum(axis=1), np.abs(features).sum(axis=1)
    own = [features[problem.clients == c] for c in clients]
    top = np.array([np.linalg.eigvalsh(rows.T @ rows)[-1] for rows in own])
    prior = 1.0 / (problem.prior_variance * problem.n_clients)
    curvature = np.stack([np.full_like(top, prior), steepest * top + prior], axis=1) / weights[:, None]
    bend = np.minimum(sum_by_client(problem, squares * sizes),
                      top * [sizes[problem.clients == c].max() for c in clients])
    traces = np.zeros(problem.n_clients)
    if problem.has_minibatches:
        traces = (slope_sq * problem.sizes / problem.batch_size * finite_share(problem)
                  * sum_by_client(problem, squares) / weights**2)
    if problem.gradient_noise is not None:
        traces = traces + problem.gradient_noise**2 * problem.dim
    return Potentials(curvature, overall, mode,
                      np.stack([problem.gradient(c, mode) for c in clients]), traces,
                      problem.sizes * highest / weights,  # losses are at least 0, and `highest` at the origin
                      third * bend / weights)


def refuse_sums(problem: Any) -> None:
    """Raise ValueError where the mean gradient is that of another law, with less of the likelihood."""
    if (problem.followed_share != 1.0).any():  # b / n_c for sums
        raise ValueError(f"grad_scale={problem.grad_scale!r} must be 'unbiased': with the sum of a minibatch "
                         "the mean gradient is not that of the target, and the theorems do not apply")


def finite_share(problem: Any) -> Array:
    """Variance of a minibatch over that with replacement: 1, or (n_c - b)/(n_c - 1) without, (N,)."""
    sizes = problem.sizes
    return np.ones(len(sizes)) if problem.replace else (sizes - float(problem.batch_size)) / np.maximum(
        sizes - 1.0, 1.0)


def sum_by_client(problem: Any, values: Array) -> Array:
    """Sums over the data of each client, (N,)."""
    return np.asarray(np.bincount(problem.clients, weights=values), dtype=np.float64)
