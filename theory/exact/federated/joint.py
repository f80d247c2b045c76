"""The law of all clients together at every local step of a federated algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array

from ..joint_laws import JointLaw
from ..tables import symmetrised


class LocalStep(NamedTuple):
    """One local step of every client: x_c <- P_c x_c + Z_c z + v_c + own noise + noise with common parts.

    maps (N, d, d); shifts (N, d); own (N, d, d) covariances of private noise; shared (N, N, d, d)
    covariances of common noise between clients, or anything that broadcasts to it; anchors (N, d, d),
    the Z_c, where clients look at an earlier value z of the server. Where x_c is (theta, rest), p d for d.
    """

    maps: Array
    shifts: Array
    own: Array
    shared: Array
    anchors: Array | None = None


def propagate(problem: Any, algorithm: Any, n_steps: int, mean: Array, cov: Array | None,
              step: Callable[[int], LocalStep], factor: float, memory: int = 0) -> JointLaw:
    """Step through `n_steps` local steps; `step(k)` is the k-th, `factor` the participation's variance.

    The state also holds the server's last `memory` values, oldest first: that one is the z of
    `LocalStep`. Before the start they were 0.
    """
    clients, dim, weights = problem.n_clients, problem.dim, problem.weights
    size, every = clients * dim, algorithm.local_steps
    sync_steps = np.arange(every, n_steps + 1, every)
    means, covs = np.empty((n_steps + 1, clients, dim)), np.empty((n_steps + 1, size, size))
    before_means = np.empty((len(sync_steps), clients, dim))
    before_covs = np.empty((len(sync_steps), size, size))
    after = [0] * clients + ([*range(1, memory), 0] if memory else [])  # 0: the server's new value
    known = np.array([1.0] * clients + ([0.0] * (memory - 1) + [1.0] if memory else []))
    rest = (0, step(0).maps.shape[-1] - dim if n_steps else 0)  # what clients hold besides
    mean = np.pad(known[:, None] * mean, ((0, 0), rest))
    blocks = np.multiply.outer(np.outer(known, known), np.zeros((dim, dim)) if cov is None else cov)
    blocks = np.pad(blocks, ((0, 0), (0, 0), rest, rest))

    def flat() -> Array:
        held = blocks[:clients, :clients, :dim, :dim]
        return symmetrised(held.transpose(0, 2, 1, 3).reshape(size, size))

    means[0], covs[0] = mean[:clients, :dim], flat()
    for k in range(n_steps):
        mean, blocks = after_step(step(k), mean, blocks)
        if (k + 1) % every == 0:
            before_means[k // every], before_covs[k // every] = mean[:clients, :dim], flat()
            mean[:, dim:], blocks[:, :, dim:], blocks[:, :, :, dim:] = 0.0, 0.0, 0.0
            centre, server, cross = communicate(mean, blocks, weights, factor)
            mean = np.concatenate([centre[None], mean[clients + 1:]])[after]
            remembered = _around_server(server, cross[clients + 1:], blocks[clients + 1:, clients + 1:])
            blocks = remembered[np.ix_(after, after)]
        means[k + 1], covs[k + 1] = mean[:clients, :dim], flat()
    return JointLaw(np.arange(n_steps + 1), means, covs, sync_steps, before_means, before_covs,
                    factor == 0.0 or clients == 1, problem, algorithm, factor)


def communicate(mean: Array, blocks: Array, weights: Array, factor: float) -> tuple[Array, Array, Array]:
    """The server's new value: mean, covariance, and covariances with all, before it replaces the clients.

    It has C' = (1 - f) Cbar + f sum_c p_c [C_cc + (m_c - m)(m_c - m)'] with Cbar = sum_ce p_c p_e C_ce: the
    variance of an average over drawn clients. Clients come first in `mean` (n, d) and `blocks` (n, n, d, d).
    """
    clients = len(weights)
    centre = weights @ mean[:clients]
    cross = np.tensordot(weights, blocks[:clients], axes=1)
    server = np.tensordot(weights, cross[:clients], axes=1)
    if factor:
        gaps = mean[:clients] - centre
        own = np.einsum("c,ccij->ij", weights, blocks[:clients, :clients])
        server = (1.0 - factor) * server + factor * (own + (gaps.T * weights) @ gaps)
    return centre, symmetrised(server), cross


def after_step(step: LocalStep, mean: Array, blocks: Array) -> tuple[Array, Array]:
    """Moments of the clients and the memory after one local step."""
    clients = len(step.shifts)
    maps = np.broadcast_to(np.eye(mean.shape[1]), (len(mean), *step.maps.shape[1:])).copy()
    maps[:clients] = step.maps
    after = np.einsum("cij,cj->ci", maps, mean)
    after[:clients] += step.shifts
    left = maps[:, None] @ blocks
    if step.anchors is not None:
        after[:clients] += step.anchors @ mean[clients]
        left[:clients] += step.anchors[:, None] @ blocks[clients]
    grown = left @ np.swapaxes(maps, 1, 2)
    if step.anchors is not None:
        grown[:, :clients] += left[:, clients, None] @ np.swapaxes(step.anchors, 1, 2)
    grown[:clients, :clients] += step.shared
    grown[np.arange(clients), np.arange(clients)] += step.own
    return after, grown


def _around_server(server: Array, cross: Array, rest: Array) -> Array:
    """Blocks (1 + r, 1 + r, d, d) of the server's new value and of r remembered ones."""
    count = len(rest) + 1
    blocks = np.empty((count, count, *server.shape))
    blocks[0, 0], blocks[1:, 1:] = server, rest
    blocks[0, 1:], blocks[1:, 0] = cross, np.swapaxes(cross, 1, 2)
    return blocks
