"""All clients together after every round of a sampler of one's own.

A round that ends with an average is followed with the vector y that it averages as one more part of the
state, which no round reads: (z, y) is an affine recursion like z, and has the moments just before a
communication.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedsim.problems.quadratic import Quadratic
from fedsim.samplers.nodes import Node
from fedsim.samplers.trace import Trace
from fedsim.settings.participation import Participation
from fedsim.settings.validation import Array

from .joint_laws import JointLaw
from .tables import symmetrised

BEFORE = ("", 0)
"""The part of the state that is averaged at the end of a round."""


@dataclass(frozen=True, eq=False, repr=False)
class RoundJointLaw(JointLaw):
    """First two moments of all clients after every round of a sampler of one's own, of its first part.

    `steps` are rounds, whatever a round does within. `problem` holds the functions whose gradients are
    followed: f_(c), or components w_c f_(c). `average_mean` and the like are those of `exact_law`: uniform
    where clients differ. `sync_steps` are the rounds that end with ``mean(y)`` over all clients, or over some
    that a scheme draws, and `before_mean` and `before_cov` are those of y; elsewhere it is empty.

    Attributes
    ----------
    noise_second_moment : (n, N)
        E||gradient noise of a client||^2 of a gradient at theta.
    """

    noise_second_moment: Array = field(kw_only=True)

    def gradient_second_moment(self) -> Array:
        """E||stochastic gradient at theta^c||^2, (n, N)."""
        hessians = self.problem.dense_hessians
        slope = np.einsum("cij,kcj->kci", hessians, self.mean - self.problem.minimizers)
        spread = np.einsum("cij,kcjl,cil->kc", hessians, self.client_cov, hessians, optimize=True)
        return (slope**2).sum(axis=2) + spread + self.noise_second_moment


def averaged_last(found: Trace) -> tuple[Trace, float] | None:
    """The trace with what a round averages last, and the variance factor of who is drawn.

    None where the first part is no such average: over all clients by their weights, or by a scheme.
    """
    node, factor = found.nodes[found.out[0]], 0.0
    if node.kind == "random" and isinstance(node.payload.of, Participation):
        factor = node.payload.of.variance_factor(found.n_clients)
    elif node.kind != "mean" or not np.array_equal(node.payload, found.weights[None]):
        return None
    nodes = (*found.nodes, Node("lin", None, node.terms))
    return replace(found, names=(*found.names, BEFORE), nodes=nodes,
                   out=(*found.out, len(found.nodes))), factor


def followed_by(problem: Quadratic, components: bool, differ: bool) -> Quadratic:
    """The quadratic clients whose gradients are followed, weighted as the average of clients is."""
    if not components:
        return Quadratic(problem.hessians, problem.minimizers, None if differ else problem.weights,
                         problem.gradient_noise)
    w = problem.weights[:, None, None]
    covs = problem.noise_covariances
    return Quadratic(w * problem.dense_hessians, problem.minimizers, None if differ else problem.weights,
                     None if covs is None else w * w * covs)


def clients_of(mean: Array, cov: Array, first: int, rows: int, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Moments (N, d) and (N d, N d) of a part of the state (1, n) that has so many `rows` from `first` on."""
    n, d = shape
    size = rows * d
    points = np.broadcast_to(mean[0, first:first + size].reshape(rows, d), shape)
    table = cov[0, first:first + size, first:first + size].reshape(rows, d, rows, d)
    return points, symmetrised(np.broadcast_to(table, (n, d, n, d)).reshape(n * d, n * d))


def joint_of(problem: Any, algorithm: Any, rounds: Any, factor: float, begin: tuple[Array, Array],
             n_rounds: int, step: Callable[[int, Array, Array], Any], gaussian: bool,
             minibatches: Callable[[Array, Array], Array] | None) -> RoundJointLaw:
    """The joint law at rounds 0, ..., n_rounds of the rounds of a trace, as `averaged_last` has it or not.

    `step` gives the moments after a round; `minibatches` the covariances of their noise (N, d, d), or None.
    """
    shape, sizes = (problem.n_clients, problem.dim), rounds.sizes()
    size, count = shape[0] * shape[1], n_rounds + 1
    sync = np.arange(1, count) if rounds.trace.names[-1] == BEFORE else np.empty(0, dtype=np.int64)
    means, covs = np.empty((count, *shape)), np.empty((count, size, size))
    before, before_covs = np.empty((len(sync), *shape)), np.empty((len(sync), size, size))
    mean, cov = begin
    for k in range(count):
        if k:
            mean, cov = step(k - 1, mean, cov)
        means[k], covs[k] = clients_of(mean, cov, 0, sizes[0] // shape[1], shape)
        if k and len(sync):
            before[k - 1], before_covs[k - 1] = clients_of(mean, cov, sum(sizes[:-1]), sizes[-1] // shape[1],
                                                           shape)
    quadratic, differ = problem.curvature_problem(), sizes[0] > shape[1]
    followed = followed_by(quadratic, algorithm._follows == "components", differ)
    noise = followed.noise_covariances
    rough = np.zeros((count, shape[0])) if noise is None else np.tile(np.trace(noise, axis1=1, axis2=2),
                                                                      (count, 1))
    if minibatches is not None:
        own = (np.einsum("cicj->cij", cov.reshape(shape * 2)) for cov in covs)
        rough += [np.trace(minibatches(*each), axis1=1, axis2=2) for each in zip(means, own, strict=True)]
    return RoundJointLaw(np.arange(count), means, covs, sync, before, before_covs, gaussian, followed,
                         algorithm, factor, noise_second_moment=rough)
