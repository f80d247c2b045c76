"""The law of all clients together, step by step, as `joint_law` gives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.laws.law_checks import check_covariance
from fedsim.provenance import Provenance
from fedsim.settings.validation import Array, array, read_only, shape, whole

from .tables import symmetrised


@dataclass(frozen=True, eq=False, repr=False)
class JointLaw:
    """First two moments of (theta^1_k, ..., theta^N_k) for k = 0, ..., n_steps.

    At a communication (k a multiple of local_steps, k > 0) theta is the state after it, when all
    clients coincide, and beta the state before it.

    Attributes
    ----------
    steps : (n,) int
        Local steps 0, ..., n_steps.
    mean : (n, N, d), cov : (n, N d, N d)
        Of theta, clients in order (row c d + i is coordinate i of client c).
    sync_steps : (n_sync,) int
        The communications among `steps`.
    before_mean : (n_sync, N, d), before_cov : (n_sync, N d, N d)
        Of beta at `sync_steps`.
    is_gaussian : bool
        False with participation: only the moments are exact then.
    of : fedsim.provenance.Provenance
        What it is the law of; `problem` and `algorithm` are what was solved.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> law = theory.exact.joint_law(problem, fs.FALD(0.1, local_steps=3), n_steps=6)
    >>> law.divergence().round(4).tolist()
    [0.0, 0.2225, 0.395, 0.0, 0.2179, 0.3817, 0.0]
    """

    steps: np.ndarray
    mean: Array
    cov: Array
    sync_steps: np.ndarray
    before_mean: Array
    before_cov: Array
    is_gaussian: bool
    problem: Any = field(repr=False)
    algorithm: Any = field(repr=False)
    participation_factor: float = 0.0
    of: Provenance = field(init=False, default=Provenance())

    def __post_init__(self) -> None:
        for name, value in vars(self).items():  # an edit in place would leave `of` as it was
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
        for before, steps in (("", self.steps), ("before_", self.sync_steps)):
            mean, cov = (getattr(self, f"{before}{name}") for name in ("mean", "cov"))
            check_covariance(f"{before}cov", mean.reshape(len(mean), self.n_clients * self.dim), cov, steps)

    @property
    def n_clients(self) -> int:
        """Number of clients N."""
        return self.mean.shape[1]

    @property
    def dim(self) -> int:
        """Dimension d."""
        return self.mean.shape[2]

    def _blocks(self, cov: Array) -> Array:
        """(n, N, d, N, d)."""
        return cov.reshape(len(cov), self.n_clients, self.dim, self.n_clients, self.dim)

    @property
    def client_cov(self) -> Array:
        """Covariance of each client alone, (n, N, d, d)."""
        return np.einsum("kcicj->kcij", self._blocks(self.cov))

    @property
    def average_mean(self) -> Array:
        """Mean of theta_k = sum_c p_c theta^c_k, (n, d)."""
        return np.einsum("c,kci->ki", self.problem.weights, self.mean)

    @cached_property
    def average_cov(self) -> Array:
        """Covariance of theta_k, (n, d, d)."""
        blocks, weights = self._blocks(self.cov), self.problem.weights
        return symmetrised(np.einsum("c,kciej,e->kij", weights, blocks, weights, optimize=True))

    def average(self, k: int) -> Gaussian:
        """Gaussian with the moments of theta_k = sum_c p_c theta^c_k."""
        index = whole("k", k, 0, int(self.steps[-1]))
        return Gaussian(self.average_mean[index], self.average_cov[index])

    def second_moment_about(self, point: Any) -> Array:
        """E ||theta^c_k - point||^2 for a point (d,), (n, N)."""
        centre = shape("point", array("point", point, 1), (self.dim,))
        return np.einsum("kcici->kc", self._blocks(self.cov)) + ((self.mean - centre) ** 2).sum(axis=2)

    def divergence(self) -> Array:
        """sum_c p_c E ||theta^c_k - theta_k||^2, (n,): zero at communications (FA-LD Lemma B.3)."""
        return _divergence(self.mean, self._blocks(self.cov), self.problem.weights)

    def divergence_before(self) -> Array:
        """The same of beta at `sync_steps`, just before they communicate, (n_sync,)."""
        return _divergence(self.before_mean, self._blocks(self.before_cov), self.problem.weights)

    def participation_gap(self) -> Array:
        """E ||theta_k - beta_k||^2 at `sync_steps`, (n_sync,), with beta_k = sum_c p_c beta^c_k.

        What drawing clients adds (FA-LD Lemma C.2); zero with full participation.
        """
        return self.participation_factor * self.divergence_before()

    def gradient_second_moment(self) -> Array:
        """E ||g_c(theta^c_k)||^2 of the stochastic gradient, not debiased, (n, N) (FA-LD Lemma E.2)."""
        hessians, noise = self.problem.dense_hessians, self.problem.noise_covariances
        slope = np.einsum("cij,kcj->kci", hessians, self.mean - self.problem.minimizers)
        spread = np.einsum("cij,kcjl,cil->kc", hessians, self.client_cov, hessians, optimize=True)
        total = (slope**2).sum(axis=2) + spread
        return total if noise is None else total + np.trace(noise, axis1=1, axis2=2)

    def __repr__(self) -> str:
        return (f"JointLaw(n_steps={self.steps[-1]}, n_clients={self.n_clients}, dim={self.dim}, "
                f"communications={len(self.sync_steps)})")


def _divergence(mean: Array, blocks: Array, weights: Array) -> Array:
    """sum_c p_c E ||x_c - sum_e p_e x_e||^2 from means (n, N, d) and covariances (n, N, d, N, d)."""
    # as sum_ce p_c p_e E ||x_c - x_e||^2 / 2: exactly zero where clients coincide
    offsets = ((mean[:, :, None] - mean[:, None]) ** 2).sum(axis=3)
    crossed = np.einsum("nciei->nce", blocks)
    own = np.einsum("ncc->nc", crossed)
    pairs = np.clip(own[:, :, None] + own[:, None, :] - 2.0 * crossed, 0.0, None)
    return 0.5 * np.einsum("c,nce,e->n", weights, pairs + offsets, weights)
