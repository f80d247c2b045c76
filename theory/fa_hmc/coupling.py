"""The coupled pair of Theorem 4.4, exactly on quadratic clients.

Beside the clients runs theta^pi, which starts in the target and follows exact Hamiltonian trajectories
of f with the averaged momentum p_t = sum_c w_c p_t^c. With E_t = E||theta_t - theta_t^pi||^2 for the
average theta_t = sum_c w_c theta_t^c, W2(law of theta_t, target)^2 <= E_t, with equality at t = 0, where
the pair is coupled optimally. Since Cov(p^c, p) is the identity whatever the shared noise is, client
and oracle have the cross covariance D_c D_pi of their momentum's contributions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.interfaces import start_moments, validate_sizes
from fedsim.laws.moments import roots
from fedsim.problems.quadratic import Quadratic
from fedsim.provenance import Provenance, attach
from fedsim.settings.lazy_import import lazy
from fedsim.settings.limits import refuse_work
from fedsim.settings.validation import Array, instance, whole

from ..exact.evolution import matrix_of
from ..exact.federated.chain import spread
from ..exact.federated.fa_hmc import leapfrog
from ..exact.federated.flow import Flow
from ..exact.federated.spectrum import PAIRS
from .hypotheses import trajectory_lengths
from .notation import FULL

block_diag = lazy("scipy.linalg", "block_diag")


@dataclass(frozen=True, eq=False)
class CouplingLaw:
    """Exact moments of clients and oracle.

    Attributes
    ----------
    steps : (n+1,) int
        Local updates 0..n. At a communication theta is the state after it.
    distance_sq : (n+1,)
        E_t.
    gradient_moments : (n+1, N)
        E||grad f_c(theta_t^c)||^2 of exact gradients.
    main_part : (n,)
        E||(I)||^2 of Lemma D.4 for update t.
    scale : float
        Size of the second moments that the distances are differences of.
    of : fedsim.provenance.Provenance
        What it is the law of.

    Examples
    --------
    >>> law = theory.fa_hmc.coupling_law(fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FAHMC(0.02, 10), 3)
    >>> law.steps.tolist(), law.gradient_moments.shape, law.main_part.shape
    ([0, 1, 2, 3], (4, 2), (3,))
    """

    steps: np.ndarray
    distance_sq: Array
    gradient_moments: Array
    main_part: Array
    scale: float
    problem: Any = field(repr=False)
    algorithm: Any = field(repr=False)
    of: Provenance = field(init=False, default=Provenance(), repr=False)


def _pair(problem: Quadratic, mean: Array, cov: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the optimally coupled start, of N equal clients and then the oracle."""
    N, d, goal = problem.n_clients, problem.dim, problem.target()
    cov, root = np.zeros((d, d)) if cov is None else matrix_of(cov), roots(goal.cov)
    # theta_0 = m_0 + back middle back (theta^pi - m), the optimal map, with back the inverse of root
    cross = np.linalg.solve(root, roots(root @ cov @ root) @ root)
    copies = np.kron(np.repeat(np.eye(2), (N, 1), axis=0), np.eye(d))
    both = np.block([[cov, cross], [cross.T, goal.cov]])
    return copies @ np.concatenate([mean, goal.mean]), copies @ both @ copies.T


def coupling_law(problem: Quadratic, algorithm: FAHMC, n_steps: int, *, start: Any = None) -> CouplingLaw:
    """Exact E_t, gradient moments and main parts over `n_steps` local updates.

    Parameters
    ----------
    problem : fedsim.Quadratic
    algorithm : fedsim.FAHMC
        With all clients and without debiasing.
    n_steps : int
        Local updates.
    start : point or Gaussian, optional
        The origin by default.

    Returns
    -------
    CouplingLaw

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-HMC sections D.1, D.2 and G; the moments are derived.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> law = theory.fa_hmc.coupling_law(problem, fs.FAHMC(0.02, 10, local_steps=2), 400)
    >>> law.distance_sq[[0, 400]].round(4).tolist()
    [1.0625, 0.0]
    """
    instance("problem", problem, Quadratic, advice="only there is the coupling exact")
    instance("algorithm", algorithm, FAHMC)
    validate_sizes(problem, algorithm, start)
    FULL.require(algorithm)
    count = whole("n_steps", n_steps)
    lengths = trajectory_lengths(algorithm, count)
    N, d, w = problem.n_clients, problem.dim, problem.weights
    refuse_work(8.0 * count * ((N + 1) * d) ** 3, f"n_steps={count} of the coupling of {N} clients at "
                f"dimension {d}", "ask for fewer rounds, clients or dimensions")
    own = problem.dense_hessians
    hessians = np.concatenate([own, np.tensordot(w, own, axes=1)[None]])
    update = lru_cache(maxsize=1)(partial(_update, problem, algorithm, hessians))
    mean, cov = _pair(problem, *start_moments(start, d))
    gap = np.kron(np.append(w, -1.0), np.eye(d))  # theta - theta^pi
    sync = np.kron(block_diag(np.tile(w, (N, 1)), np.ones((1, 1))), np.eye(d))
    centres, places = problem.minimizers, np.arange(N)
    distance, gradients, main = np.empty(count + 1), np.empty((count + 1, N)), np.empty(count)
    scale = 0.0
    for t in range(count + 1):
        distance[t] = ((gap @ mean) ** 2).sum() + max(((gap @ cov) * gap).sum(), 0.0)
        scale = max(scale, float((mean**2).sum() + np.trace(cov)) / (N + 1))
        spreads = cov.reshape(N + 1, d, N + 1, d)[places, :, places]
        pull = (own @ (mean.reshape(N + 1, d)[:N] - centres)[:, :, None])[:, :, 0]
        gradients[t] = (pull**2).sum(axis=1) + ((own @ spreads) * own).sum(axis=(1, 2))
        if t == count:
            break
        move, shift, noise, first, kick = update(float(lengths[t]))
        main[t] = ((first @ mean) ** 2).sum() + ((first @ cov) * first).sum() + kick
        mean, cov = move @ mean + shift, move @ cov @ move.T + noise
        if (t + 1) % algorithm.local_steps == 0:
            mean, cov = sync @ mean, sync @ cov @ sync.T
    law = CouplingLaw(np.arange(count + 1), distance, gradients, main, scale, problem, algorithm)
    return attach(law, Provenance.of(problem, algorithm, start))


def _update(problem: Quadratic, algorithm: FAHMC, hessians: Array,
            length: float) -> tuple[Array, Array, Array, Array, float]:
    """Map, shift and covariance of one update of clients and oracle; map and momenta's share of (I).

    The Hessians are the clients' and, last, the mean one.
    """
    N, d, w, rho = problem.n_clients, problem.dim, problem.weights, algorithm.shared_noise
    K, own, places, unit = algorithm.leapfrog_steps, problem.noise_covariances, np.arange(N), np.eye(d)
    values, vectors = np.linalg.eigh(hessians)
    back = np.swapaxes(vectors, 1, 2)
    leap = leapfrog(length / K, K).motion(values[:N], own is not None)
    flow = Flow(length).motion(values[N:], False)
    change, reaches = ((vectors * diagonal[:, None, :]) @ back for diagonal in np.concatenate(
        [leap.change[0], flow.change[0]], axis=1))
    noise = reaches[:, None] @ reaches[None]  # Cov with a common momentum, (N+1, N+1, d, d)
    noise[:N, :N] *= rho
    noise[places, places] += ((1.0 - rho) / w)[:, None, None] * (reaches[:N] @ reaches[:N])
    if own is not None:
        sums = spread(leap.kicked[:1], *PAIRS)[0, 0]
        noise[places, places] += vectors[:N] @ ((back[:N] @ own @ vectors[:N]) * sums) @ back[:N]
    move, size = block_diag(*(unit + change)), (N + 1) * d
    still = np.concatenate([problem.minimizers, problem.minimizer[None]]).reshape(-1)
    first = np.append(w, -1.0)[:, None, None] * (unit - 0.5 * length**2 * hessians)
    turn = length**3 / 6.0 * hessians[N] - (K**3 - K) * (length / K)**3 / 6.0 * hessians[:N]
    both = np.einsum("c,cij->ij", w, turn)
    kick = rho * (both**2).sum() + (1.0 - rho) * float(w @ (turn**2).sum(axis=(1, 2)))
    return (move, still - move @ still, noise.transpose(0, 2, 1, 3).reshape(size, size),
            first.transpose(1, 0, 2).reshape(d, size), float(kick))
