"""The coupled pair of Theorem 4.4, exactly on quadratic clients.

Beside the clients runs theta^pi, which starts in the target and follows exact Hamiltonian trajectories
of f with the averaged momentum p_t = sum_c w_c p_t^c. With E_t = E||theta_t - theta_t^pi||^2 for the
average theta_t = sum_c w_c theta_t^c, W2(law of theta_t, target)^2 <= E_t, with equality at t = 0, where
the pair is coupled optimally. Since Cov(p^c, p) is the identity whatever the shared noise is, client
and oracle have the cross covariance D_c D_pi of their momentum's contributions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedsim.interfaces import start_moments, validate_sizes
from fedsim.problems.quadratic import Quadratic
from fedsim.provenance import Provenance, attach
from fedsim.settings.validation import Array, whole

from ..exact.federated.chain import Motion, spread
from ..exact.federated.fa_hmc import leapfrog
from ..exact.federated.flow import Flow
from ..exact.federated.spectrum import PAIRS
from .setting import FULL, trajectory_lengths


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


class _Curves:
    """Functions of the clients' Hessians and of the mean one, the last."""

    def __init__(self, problem: Quadratic) -> None:
        mean = problem.mean_hessian
        hessians = np.concatenate([problem.dense_hessians, [mean if mean.ndim == 2 else np.diag(mean)]])
        self.hessians = hessians
        self.values, self.vectors = np.linalg.eigh(hessians)
        self.noise = problem.noise_covariances

    def of(self, diagonal: Array) -> Array:
        return (self.vectors * diagonal[:, None, :]) @ np.swapaxes(self.vectors, 1, 2)

    def gradient(self, update: Motion) -> Array | None:
        """V_c, (N, d, d)."""
        if self.noise is None:
            return None
        vectors = self.vectors[:-1]
        back = np.swapaxes(vectors, 1, 2)
        sums = spread(update.kicked[:1], *PAIRS)[0, 0]
        return vectors @ ((back @ self.noise @ vectors) * sums) @ back


def _pair(problem: Quadratic, mean: Array, cov: Array | None) -> tuple[Array, Array]:
    """Mean (N+1, d) and covariance (N+1, d, N+1, d) of the optimally coupled start."""
    N, d = problem.n_clients, problem.dim
    goal = problem.target()
    means = np.concatenate([np.repeat(mean[None], N, axis=0), goal.mean[None]])
    blocks = np.zeros((N + 1, d, N + 1, d))
    blocks[N, :, N, :] = goal.cov
    if cov is not None:
        values, vectors = np.linalg.eigh(goal.cov)
        root = (vectors * np.sqrt(values)) @ vectors.T
        back = (vectors / np.sqrt(values)) @ vectors.T
        inner, frame = np.linalg.eigh(root @ cov @ root)
        # theta_0 = m_0 + back middle back (theta^pi - m), the optimal map
        cross = back @ (frame * np.sqrt(np.maximum(inner, 0.0))) @ frame.T @ root
        blocks[:N, :, :N, :] = cov[None, :, None, :]
        blocks[:N, :, N, :] = cross
        blocks[N, :, :N, :] = cross.T[:, None, :]
    return means, blocks


def coupling_law(problem: Quadratic, algorithm: Any, n_steps: int, *, start: Any = None) -> CouplingLaw:
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
    if not isinstance(problem, Quadratic):
        raise ValueError(f"problem={problem!r} must be a fedsim.Quadratic: only there is the coupling exact")
    validate_sizes(problem, algorithm, start)
    FULL.require(algorithm)
    count = whole("n_steps", n_steps)
    lengths = trajectory_lengths(algorithm, count)
    N, d, w = problem.n_clients, problem.dim, problem.weights
    curves = _Curves(problem)
    mean, cov = _pair(problem, *start_moments(start, d))
    mean, size = mean.reshape(-1), (N + 1) * d
    cov = cov.reshape(size, size)
    gap = np.kron(np.append(w, -1.0), np.eye(d))  # theta - theta^pi
    sync = np.eye(size)
    sync[:N * d] = np.kron(np.ones((N, 1)), np.hstack([np.kron(w, np.eye(d)), np.zeros((d, d))]))
    slopes, centres, places = curves.hessians[:N], problem.minimizers, np.arange(N)
    distance, gradients, main = np.empty(count + 1), np.empty((count + 1, N)), np.empty(count)
    scale, parts = 0.0, _Parts(problem, algorithm, curves)

    def look(t: int) -> None:
        nonlocal scale
        distance[t] = ((gap @ mean) ** 2).sum() + max(((gap @ cov) * gap).sum(), 0.0)
        scale = max(scale, float((mean**2).sum() + np.trace(cov)) / (N + 1))
        own = cov.reshape(N + 1, d, N + 1, d)[places, :, places]
        pull = (slopes @ (mean.reshape(N + 1, d)[:N] - centres)[:, :, None])[:, :, 0]
        gradients[t] = (pull**2).sum(axis=1) + ((slopes @ own) * slopes).sum(axis=(1, 2))

    look(0)
    for t in range(count):
        move, shift, noise, first, kick = parts(float(lengths[t]))
        main[t] = ((first @ mean) ** 2).sum() + ((first @ cov) * first).sum() + kick
        mean, cov = move @ mean + shift, move @ cov @ move.T + noise
        if (t + 1) % algorithm.local_steps == 0:
            mean, cov = sync @ mean, sync @ cov @ sync.T
        look(t + 1)
    found = CouplingLaw(np.arange(count + 1), distance, gradients, main, scale, problem, algorithm)
    return attach(found, Provenance.of(problem, algorithm, start))


class _Parts:
    """Maps of one update of clients and oracle, kept while the step size stays the same."""

    def __init__(self, problem: Quadratic, algorithm: Any, curves: _Curves) -> None:
        self.problem, self.algorithm, self.curves = problem, algorithm, curves
        self.still = np.concatenate([problem.minimizers, problem.minimizer[None]]).reshape(-1)
        self.length = -1.0

    def __call__(self, length: float) -> tuple[Array, Array, Array, Array, float]:
        if length != self.length:
            self.found, self.length = self._make(length), length
        return self.found

    def _make(self, length: float) -> tuple[Array, Array, Array, Array, float]:
        problem, algorithm, curves = self.problem, self.algorithm, self.curves
        N, d, w, rho = problem.n_clients, problem.dim, problem.weights, algorithm.shared_noise
        K = algorithm.leapfrog_steps
        update, unit = leapfrog(length / K, K).motion(curves.values[:N], curves.noise is not None), np.eye(d)
        change, reach = np.empty((2, N + 1, d))
        change[:N], reach[:N] = update.change[0]
        change[N], reach[N] = Flow(length).motion(curves.values[N], False).change[0]
        maps, reaches = unit + curves.of(change), curves.of(reach)
        noise = reaches[:, None] @ reaches[None]  # Cov with a common momentum, (N+1, N+1, d, d)
        noise[:N, :N] *= rho
        places = np.arange(N)
        noise[places, places] += ((1.0 - rho) / w)[:, None, None] * (reaches[:N] @ reaches[:N])
        own = curves.gradient(update)
        if own is not None:
            noise[places, places] += own
        move = np.zeros((N + 1, d, N + 1, d))
        move[np.arange(N + 1), :, np.arange(N + 1), :] = maps
        size = (N + 1) * d
        flat = move.reshape(size, size)
        shift = self.still - flat @ self.still
        first = np.append(w, -1.0)[:, None, None] * (unit - 0.5 * length**2 * curves.hessians)
        eta = length / K
        turn = length**3 / 6.0 * curves.hessians[N] - (K**3 - K) * eta**3 / 6.0 * curves.hessians[:N]
        both = np.einsum("c,cij->ij", w, turn)
        kick = rho * (both**2).sum() + (1.0 - rho) * float(w @ (turn**2).sum(axis=(1, 2)))
        return (flat, shift, noise.transpose(0, 2, 1, 3).reshape(size, size),
                first.transpose(1, 0, 2).reshape(d, size), float(kick))
