"""The Gaussian surrogate of FA-HMC's logistic regression: its rounds, chains and marginal errors.

Each client has the quadratic expansion of f_(c) at the posterior's mode. A round is then one affine map with
Gaussian noise, so that chains of the paper's length and in its 1000 dimensions are answered in a second.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Protocol

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtr, ndtri

import fedsim as fs
from theory.exact.federated import chain
from theory.exact.federated.fa_hmc import FAHMCFamily

from ..once import once

Round = tuple[np.ndarray, np.ndarray, np.ndarray]
ORDERS = 24
"""Hermite orders of an indicator's correlations; what is beyond is taken to decay like the last one."""
COORDINATES = 100
"""Marginal errors are means over the first so many coordinates: all are alike in law."""


def round_map(problem: fs.Quadratic, algorithm: fs.FAHMC) -> Round:
    """M (d, d), v (d,) and Q (d, d) of a round: the average goes from x to M x + v + N(0, Q)."""
    rounds, w = FAHMCFamily().rounds(problem, algorithm, False, False)[0], problem.weights
    clients = rounds(np.array([0])).at(0)
    deviation = np.tensordot(w, clients.deviations, 1)
    noise = clients.shared_average + np.tensordot(w**2, clients.own, 1)
    if deviation.ndim == 1:
        deviation, noise = np.diag(deviation), np.diag(noise)
    return np.eye(problem.dim) + deviation, w @ clients.pulls, noise


class Posterior:
    """The Gaussian surrogate of a logistic regression and its rounds, by the few data of each client.

    The Hessian of f_(c) at the mode is p_c I + V_c diag(a_c - p_c) V_c', p_c the prior's part and V_c (d, r)
    orthonormal with r = min(n_c, d); so a function of it is g(p_c) I + V_c diag(g(a_c) - g(p_c)) V_c'.
    Clients are equally large.
    """

    def __init__(self, problem: fs.LogisticRegression) -> None:
        self.problem, mode, w = problem, problem.mode(), problem.weights
        curvatures, vectors = [], []
        for c in range(problem.n_clients):
            rows = problem.features[problem.clients == c]
            slopes = expit(rows @ mode) * expit(-(rows @ mode)) / w[c]
            _, sizes, directions = np.linalg.svd(np.sqrt(slopes)[:, None] * rows, full_matrices=False)
            curvatures.append(problem.prior_pull[c] + np.r_[sizes**2, 0.0])
            vectors.append(directions)
        self.curvatures = np.array(curvatures)
        """a_c, and p_c at the end: (n_clients, r + 1)."""
        self.vectors = np.concatenate(vectors).T
        """V_c side by side: (d, n_clients r)."""
        self.gram = self.vectors.T @ self.vectors
        self.gradients = np.array([problem.gradient(c, mode) for c in range(problem.n_clients)])
        self.precision = self._summed(w[:, None] * self.curvatures)
        cov = np.linalg.inv(self.precision)[:COORDINATES, :COORDINATES]
        self.target = fs.Gaussian(mode[:COORDINATES], 0.5 * (cov + cov.T))

    def _summed(self, values: np.ndarray) -> np.ndarray:
        """sum_c g_c(A_c) by the values of g_c at the curvatures, (d, d)."""
        weights = (values[:, :-1] - values[:, -1:]).ravel()
        return values[:, -1].sum() * np.eye(len(self.vectors)) + (self.vectors * weights) @ self.vectors.T

    def _squares(self, values: np.ndarray) -> np.ndarray:
        """sum_j (sum_c g_jc(A_c))^2 by the values of g_jc, (j, n_clients, r + 1)."""
        shift = values[..., -1].sum(axis=1)
        rest = (values[..., :-1] - values[..., -1:]).reshape(len(values), -1)
        return (shift @ shift) * np.eye(len(self.vectors)) + self.vectors @ (
            np.diag(2.0 * shift @ rest) + rest.T @ rest * self.gram) @ self.vectors.T

    def round_map(self, algorithm: fs.FAHMC) -> Round:
        """The surrogate's `round_map`; shared momenta are summed over local steps one by one."""
        count, shared, noise = algorithm.local_steps, algorithm.shared_noise, self.problem.gradient_noise
        w = self.problem.weights[:, None]
        update = chain.local_step(FAHMCFamily().chain(algorithm, algorithm.schedule.largest),
                                  self.curvatures, noise is not None)
        change, reach, updates = update.change[0, 0], update.injected[0, 0], chain.Round([update], count)
        own = (1.0 - shared) * w * updates.injected()
        if noise is not None:
            own = own + w**2 * noise**2 * updates.gradient()
        powers = (1.0 + change) ** np.arange(count)[:, None, None]
        gone = -w * updates.deviation()
        moved = np.eye(len(self.vectors)) - self._summed(gone)
        drift = gone / self.curvatures
        along = np.einsum("dcr,cd->cr", self.vectors.reshape(-1, *change[:, 1:].shape), self.gradients)
        drifted = drift[:, -1] @ self.gradients + self.vectors @ (
            (drift[:, :-1] - drift[:, -1:]) * along).ravel()
        mode = self.problem.mode()
        return (moved, mode - moved @ mode - drifted,
                self._summed(own) + shared * self._squares(w * reach * powers))


class Averages(Protocol):
    """What `error_of_chain` needs of a stationary chain of averages."""

    stable: bool
    law: fs.Gaussian

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:
        """Of every coordinate, (n_lags, d)."""


class Chain:
    """Averages at the ends of rounds, in the basis where M is diagonal (M is symmetric).

    `law` and `autocorrelation` are of the first `COORDINATES`.
    """

    def __init__(self, a_round: Round) -> None:
        moved, pull, noise = a_round
        even = 0.5 * (moved + moved.T)
        self.factors, self.basis = once(sha256(even.data).digest(), lambda: tuple(np.linalg.eigh(even)))
        self.stable = bool(np.abs(self.factors).max() < 1.0)
        if self.stable:
            self.centre = np.linalg.solve(np.eye(len(pull)) - moved, pull)
            self.noise = self.basis.T @ noise @ self.basis
            stationary = self.noise / (1.0 - self.factors[:, None] * self.factors)
            rows = self.basis[:COORDINATES]
            self.law = fs.Gaussian(self.centre[:COORDINATES], rows @ stationary @ rows.T)
            self.shares = rows * (rows @ stationary) / self.law.variances[:, None]

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:
        """Of each coordinate of the stationary chain, (n_lags, d)."""
        return self.factors ** lags[:, None] @ self.shares.T

    def sample(self, n_rounds: int, n_chains: int, rng: np.random.Generator, kept: int) -> np.ndarray:
        """The last `kept` of n_rounds averages of chains started at 0, (n_chains, kept, d)."""
        start = -self.centre @ self.basis
        values, vectors = np.linalg.eigh(0.5 * (self.noise + self.noise.T))
        root = vectors * np.sqrt(np.clip(values, 0.0, None))
        noise = rng.standard_normal((n_chains, n_rounds, len(start))) @ root.T
        path = np.empty((n_chains, kept, len(start)))
        for i, factor in enumerate(self.factors):
            first = np.full((n_chains, 1), factor * start[i])
            moved, _ = lfilter([1.0], [1.0, -factor], noise[:, :, i], zi=first)
            path[:, :, i] = moved[:, -kept:]
        return path @ self.basis.T + self.centre


def spread_of(target: fs.Gaussian) -> float:
    """The unit of errors in the figures: mean standard deviation of the coordinates."""
    return float(np.sqrt(target.variances).mean())


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


def error_of_chain(averages: Averages, target: fs.Gaussian, counts: Any) -> np.ndarray:
    """Expected marginal error of n averages in a row of a stationary chain, for each n of `counts`.

    W1 is the integral of |F_n - F|. At a point the empirical F_n is taken to be normal, with its exact mean
    and variance: an indicator's autocovariance is sum_m c_m^2 rho^m, c_m its Hermite coefficients and rho the
    chain's autocorrelation. Sums over lags are interpolated between lags that grow geometrically.
    """
    lengths = np.asarray(counts, dtype=float)
    goal, spread = np.sqrt(target.variances), np.sqrt(averages.law.variances)
    lags = np.unique(np.rint(np.r_[np.arange(33), np.geomspace(32, max(33, lengths.max()), 150)]))
    rho = averages.autocorrelation(lags)
    shares = np.clip(1.0 - lags / lengths[:, None], 0.0, None) * _lag_weights(lags)
    ends = [(target.mean + side * 6.0 * goal - averages.law.mean) / spread for side in (-1.0, 1.0)]
    z = np.linspace(min(-6.0, ends[0].min()), max(6.0, ends[1].max()), 161)
    level = ndtr(z)
    left, power = level * ndtr(-z), np.ones_like(rho)
    variance = np.repeat(left[None], len(lengths) * len(goal), axis=0)
    before, hermite, sums = np.zeros_like(z), np.ones_like(z), np.zeros((len(lengths) * len(goal), 1))
    for order in range(1, ORDERS + 1):
        squares = (_density(z) * hermite) ** 2 / order
        power = power * rho
        sums = (shares @ power).reshape(-1, 1)
        variance += 2.0 * sums * squares
        left = left - squares
        before, hermite = hermite, (z * hermite - np.sqrt(order - 1.0) * before) / np.sqrt(order)
    variance += 2.0 * sums * np.clip(left, 0.0, None)
    variance = variance.reshape(len(lengths), len(goal), len(z)) / lengths[:, None, None]
    points = averages.law.mean[:, None] + spread[:, None] * z
    bias = level - ndtr((points - target.mean[:, None]) / goal[:, None])
    error = np.sqrt(np.clip(variance, 1e-300, None))
    gap = 2.0 * error * _density(bias / error) + bias * (1.0 - 2.0 * ndtr(-bias / error))
    return (np.trapezoid(gap, z, axis=2) * spread).mean(axis=1)


def _lag_weights(lags: np.ndarray) -> np.ndarray:
    """Weights of the lags for a sum over all lags from 1 on that is linear between them."""
    weights, steps = np.zeros(len(lags)), np.diff(lags)
    weights[:-1] += 0.5 * (steps - 1.0)
    weights[1:] += 0.5 * (steps + 1.0)
    return weights


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
