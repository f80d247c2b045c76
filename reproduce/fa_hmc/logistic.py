"""FA-HMC's logistic regression: its Gaussian surrogate, chains of it, and simulated runs.

The surrogate has for each client the quadratic expansion of f_(c) at the posterior's mode. A round of
it is one affine map with Gaussian noise, so that chains of the paper's length are drawn in seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import lfilter

import fedsim as fs
from theory.exact.federated import chain
from theory.exact.federated.fa_hmc import FAHMCFamily

from ..reference import posterior_reference
from ..surrogate import surrogate
from .errors import spread_of

Round = tuple[np.ndarray, np.ndarray, np.ndarray]


def round_map(problem: fs.Quadratic, algorithm: fs.FAHMC) -> Round:
    """M (d, d), v (d,) and Q (d, d) of a round: the average goes from x to M x + v + N(0, Q)."""
    clients, w = FAHMCFamily().rounds(problem, algorithm, False, False)(0), problem.weights
    deviation = np.tensordot(w, clients.deviations, 1)
    noise = clients.shared_average + np.tensordot(w**2, clients.own, 1)
    if deviation.ndim == 1:
        deviation, noise = np.diag(deviation), np.diag(noise)
    return np.eye(problem.dim) + deviation, w @ clients.pulls, noise


class Rounds:
    """`round_map` of many algorithms on one problem whose gradient noise is isotropic, at a few local steps.

    Clients' Hessians are decomposed once; the shared momenta of a round are summed one by one.
    """

    def __init__(self, problem: fs.Quadratic) -> None:
        self.problem = problem
        self.values, self.vectors = np.linalg.eigh(problem.dense_hessians)

    def _composed(self, diagonal: np.ndarray) -> np.ndarray:
        """sum_c U_c diag(diagonal_c) U_c'."""
        stacked = np.concatenate(self.vectors, axis=1)
        return (stacked * diagonal.ravel()) @ stacked.T

    def map(self, algorithm: fs.FAHMC) -> Round:
        """M, v and Q of a round."""
        w, count, shared = self.problem.weights[:, None], algorithm.local_steps, algorithm.shared_noise
        update = chain.local_step(FAHMCFamily().chain(algorithm, algorithm.schedule.largest), self.values,
                                  self.problem.gradient_noise is not None)
        change, reach, updates = update.change[0, 0], update.injected[0, 0], chain.Round([(update, count)])
        own = (1.0 - shared) * w * updates.injected()
        if self.problem.gradient_noise is not None:
            own = own + w**2 * self.problem.gradient_noise**2 * updates.gradient()
        noise = self._composed(own)
        for j in range(count):
            moved = self._composed(w * reach * (1.0 + change) ** j)
            noise += shared * moved @ moved
        gone = -updates.deviation()
        centres = np.einsum("cji,cj->ci", self.vectors, self.problem.minimizers)
        pull = np.einsum("cij,cj->i", self.vectors, w * gone * centres)
        return np.eye(self.problem.dim) - self._composed(w * gone), pull, noise


class Chain:
    """Averages at the ends of rounds, in the basis where M is diagonal (M is symmetric)."""

    def __init__(self, a_round: Round) -> None:
        moved, pull, noise = a_round
        self.factors, self.basis = np.linalg.eigh(0.5 * (moved + moved.T))
        self.stable = bool(np.abs(self.factors).max() < 1.0)
        if self.stable:
            self.centre = np.linalg.solve(np.eye(len(pull)) - moved, pull)
            turned = self.basis.T @ noise @ self.basis
            values, vectors = np.linalg.eigh(0.5 * (turned + turned.T))
            self.root = vectors * np.sqrt(np.clip(values, 0.0, None))
            stationary = turned / (1.0 - self.factors[:, None] * self.factors)
            self.law = fs.Gaussian(self.centre, self.basis @ stationary @ self.basis.T)
            self.shares = self.basis * (self.basis @ stationary) / self.law.variances[:, None]

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:
        """Of each coordinate of the stationary chain, (n_lags, d)."""
        return self.factors ** lags[:, None] @ self.shares.T

    def sample(self, n_rounds: int, n_chains: int, rng: np.random.Generator, kept: int) -> np.ndarray:
        """The last `kept` of n_rounds averages of chains started at 0, (n_chains, kept, d)."""
        start = -self.centre @ self.basis
        noise = rng.standard_normal((n_chains, n_rounds, len(start))) @ self.root.T
        path = np.empty((n_chains, kept, len(start)))
        for i, factor in enumerate(self.factors):
            first = np.full((n_chains, 1), factor * start[i])
            moved, _ = lfilter([1.0], [1.0, -factor], noise[:, :, i], zi=first)
            path[:, :, i] = moved[:, -kept:]
        return path @ self.basis.T + self.centre


class Posterior:
    """A logistic regression with its surrogate, its rounds and the unit of errors."""

    def __init__(self, p: Any, data_seed: int, feature_norm: float, dim: int, n_data: int) -> None:
        self.problem = fs.papers.fa_hmc_logistic(
            dim, data_seed, n_data=n_data, n_clients=p.n_clients, prior_variance=p.prior_variance,
            feature_norm=feature_norm, gradient_noise=p.noise or None)
        self.surrogate = surrogate(self.problem)
        self.rounds = Rounds(self.surrogate)
        self.target = self.surrogate.target()
        self.unit = spread_of(self.target)

    def reference(self, p: Any, seed: int) -> np.ndarray:
        """Draws of the posterior by Metropolis-adjusted HMC, (n, d)."""
        return posterior_reference(self.problem, n_chains=p.reference_chains, n_draws=p.reference_draws,
                                   seed=seed, leapfrog_steps=4, warmup=20).pooled()

    def simulated(self, algorithm: fs.FAHMC, n_rounds: int, n_chains: int, seed: int,
                  reference: np.ndarray) -> float:
        """Error, in units of the spread, of the last half of simulated chains, pooled."""
        path = fs.sample_path(self.problem, algorithm, n_rounds, seed=seed, n_chains=n_chains)
        half = path[:, n_rounds // 2:].reshape(-1, self.problem.dim)
        return fs.distance.w1_samples(half, reference) / self.unit
