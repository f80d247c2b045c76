"""FA-HMC's logistic regression: its Gaussian surrogate, marginal errors, and runs of both.

The surrogate has for each client the quadratic expansion of f_(c) at the posterior's mode. A round of
it is one affine map with Gaussian noise, so that chains of the paper's length are drawn in seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtr, ndtri

import fedsim as fs
from theory.exact.fa_hmc import FAHMCFamily

from ._reference import posterior_reference

SPREAD = "posterior standard deviations"


def surrogate(problem: fs.LogisticRegression) -> fs.Quadratic:
    """Clients' quadratic expansions at the mode with the same noise; its target is the Laplace law."""
    mode, hessians, minimizers = problem.mode(), [], []
    for c in range(problem.n_clients):
        rows = problem.features[problem.clients == c]
        scores = rows @ mode
        curved = (rows.T * (expit(scores) * expit(-scores))) @ rows / problem.weights[c]
        curved = curved + problem.prior_pull[c] * np.eye(problem.dim)
        hessians.append(curved)
        minimizers.append(mode - np.linalg.solve(curved, problem.gradient(c, mode)))
    return fs.Quadratic(np.array(hessians), np.array(minimizers), problem.weights, problem.gradient_noise)


def round_map(problem: fs.Quadratic, algorithm: fs.FAHMC) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M (d, d), v (d,) and Q (d, d) of a round: the average goes from x to M x + v + N(0, Q)."""
    clients, w = FAHMCFamily().rounds(problem, algorithm, False, False)(0), problem.weights
    deviation = np.tensordot(w, clients.deviations, 1)
    noise = clients.shared_average + np.tensordot(w**2, clients.own, 1)
    if deviation.ndim == 1:
        deviation, noise = np.diag(deviation), np.diag(noise)
    return np.eye(problem.dim) + deviation, w @ clients.pulls, noise


class Chain:
    """The surrogate's averages at the ends of rounds, in the basis where M is diagonal (M is symmetric)."""

    def __init__(self, problem: fs.Quadratic, algorithm: fs.FAHMC) -> None:
        moved, pull, noise = round_map(problem, algorithm)
        self.factors, self.basis = np.linalg.eigh(0.5 * (moved + moved.T))
        self.stable = bool(np.abs(self.factors).max() < 1.0)
        if self.stable:
            self.centre = np.linalg.solve(np.eye(len(pull)) - moved, pull)
            turned = self.basis.T @ noise @ self.basis
            values, vectors = np.linalg.eigh(0.5 * (turned + turned.T))
            self.root = vectors * np.sqrt(np.clip(values, 0.0, None))
            gaps = 1.0 - self.factors[:, None] * self.factors
            self.law = fs.Gaussian(self.centre, self.basis @ (turned / gaps) @ self.basis.T)

    def sample(self, n_rounds: int, n_chains: int, rng: np.random.Generator, kept: int) -> np.ndarray:
        """The last `kept` of n_rounds averages of chains started at 0, (n_chains, kept, d)."""
        start = -self.centre @ self.basis
        path = np.empty((n_chains, kept, len(start)))
        for chain in range(n_chains):
            noise = rng.standard_normal((n_rounds, len(start))) @ self.root.T
            for i, factor in enumerate(self.factors):
                moved, _ = lfilter([1.0], [1.0, -factor], noise[:, i], zi=[factor * start[i]])
                path[chain, :, i] = moved[-kept:]
        return path @ self.basis.T + self.centre


def error_of_law(law: fs.Gaussian, target: fs.Gaussian) -> float:
    """Marginal error between two normal laws: mean over coordinates of W1."""
    return float(fs.distance.w1_normal(law.mean, np.sqrt(law.variances), target.mean,
                                       np.sqrt(target.variances)).mean())


def error_of_sample(sample: np.ndarray, target: fs.Gaussian) -> float:
    """Marginal error of a sample (n, d) against a normal law: exact W1, coordinate by coordinate.

    With t the i-th sorted draw, standardised, and [a, b] the normal's part for it, the cost is the integral
    of |t - z| phi(z) over [a, b], split at c, the point of [a, b] nearest to t.
    """
    spread, n = np.sqrt(target.variances), len(sample)
    t = (np.sort(sample, axis=0) - target.mean) / spread
    edges = ndtri(np.arange(n + 1) / n)[:, None]
    c = np.clip(t, edges[:-1], edges[1:])
    heights, levels = _density(edges), np.arange(n + 1)[:, None] / n
    below = t * (ndtr(c) - levels[:-1]) - heights[:-1]
    above = t * (levels[1:] - ndtr(c)) + heights[1:]
    return float(((below - above + 2.0 * _density(c)).sum(axis=0) * spread).mean())


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)


def spread_of(target: fs.Gaussian) -> float:
    """The unit of errors in the figures: mean standard deviation of the coordinates."""
    return float(np.sqrt(target.variances).mean())


class Posterior:
    """A logistic regression with its surrogate, its reference sample and the unit of errors."""

    def __init__(self, p: Any, feature_norm: float, dim: int, n_data: int) -> None:
        self.problem = fs.papers.fa_hmc_logistic(
            dim, p.data_seed, n_data=n_data, n_clients=p.n_clients, prior_variance=p.prior_variance,
            feature_norm=feature_norm, gradient_noise=p.noise or None)
        self.surrogate = surrogate(self.problem)
        self.target = self.surrogate.target()
        self.unit = spread_of(self.target)

    def reference(self, p: Any) -> np.ndarray:
        """Draws of the posterior by Metropolis-adjusted HMC, (n, d)."""
        return posterior_reference(self.problem, n_chains=p.reference_chains, n_draws=p.reference_draws,
                                   seed=p.seed, leapfrog_steps=4, warmup=20).pooled()

    def simulated(self, algorithm: fs.FAHMC, n_rounds: int, n_chains: int, seed: int,
                  reference: np.ndarray) -> float:
        """Error, in units of the spread, of the last half of simulated chains, pooled."""
        path = fs.sample_path(self.problem, algorithm, n_rounds, seed=seed, n_chains=n_chains)
        half = path[:, n_rounds // 2:].reshape(-1, self.problem.dim)
        return fs.distance.w1_samples(half, reference) / self.unit

    def floor(self, n_draws: int, reference: np.ndarray, rng: np.random.Generator) -> float:
        """The error of as many independent draws."""
        chosen = rng.choice(len(reference), n_draws, replace=False)
        others = np.delete(reference, chosen, axis=0)
        return fs.distance.w1_samples(reference[chosen], others) / self.unit
