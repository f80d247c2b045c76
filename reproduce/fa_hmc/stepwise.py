"""FA-HMC in the words of section 5: positions are averaged every T leapfrog steps, whatever K.

Momenta, the same on all clients, are drawn anew every K leapfrog steps. Where K divides T this is Algorithm 3
with T/K local steps; where it does not, trajectories are averaged on their way, and clients go on with
momenta of their own. On the Gaussian surrogate the averages stay Gaussian. Their law repeats after lcm(T, K)
leapfrog steps, a period, at whose start all clients are at the average and draw momenta.

A client's curvature is p I + V_c diag(a_c - p) V_c', p the prior's part. The weighted means of positions and
momenta together with the coordinates V_c'x_c and V_c'p_c of every client therefore go on by themselves.
"""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

import fedsim as fs

from .surrogate import Posterior

NEGLIGIBLE = 1e-7
"""Autocovariances below this share of the variance count as none."""
Steps = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of leapfrog steps by curvature: map (2, 2, n), shift (2, n) by a unit force, covariance (2, 2, n)."""


class StepwiseChain:
    """The averages of a stationary chain, every T leapfrog steps: law and autocorrelation.

    Parameters
    ----------
    posterior : Posterior
        Of clients whose prior parts are equal.
    step_size : float
    leapfrog_steps : int
        K, leapfrog steps of a trajectory.
    every : int
        T, leapfrog steps between communications.

    Attributes
    ----------
    stable : bool
        Whether the mean contracts over a period; if not, nothing else is there.
    law : fs.Gaussian
        Mean and variances of an average, at a round of the period drawn at random.
    correlations : (n_lags, d)
        Autocorrelations of the coordinates by lag in rounds, means over the period; none beyond.
    """

    def __init__(self, posterior: Posterior, step_size: float, leapfrog_steps: int, every: int) -> None:
        self.maps, self.pulls, self.noise = _period(posterior, step_size, leapfrog_steps, every)
        whole = self.maps[-1]
        self.stable = bool(np.abs(np.linalg.eigvals(whole)).max() < 1.0)
        if self.stable:
            means = self.maps @ np.linalg.solve(np.eye(len(whole)) - whole, self.pulls[-1]) + self.pulls
            ends = solve_discrete_lyapunov(whole, self.noise[-1, -1])
            spread = self.maps @ ends
            within = np.einsum("ijaa->ija", self.noise) + (  # of each coordinate by itself
                spread.swapaxes(0, 1) @ self.maps.transpose(1, 2, 0)).transpose(1, 2, 0)
            last = spread @ whole.T + self.noise[:, -1]
            variances = np.einsum("iia->ia", within).mean(axis=0) + means.var(axis=0)
            self.law = fs.Gaussian(posterior.problem.mode() + means.mean(axis=0), np.diag(variances))
            self.correlations = self._by_lag(within, last) / variances

    def _by_lag(self, within: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Autocovariances (n_lags, d), from those within a period, (P, P, d), and of its last (P, d, d)."""
        n, d = self.pulls.shape
        lag = np.subtract.outer(np.arange(n), np.arange(n)).T  # j - i, of averages i and j
        first = np.triu(np.ones((n, n)))[..., None] * within
        sums, later = [first], first
        while not len(sums) > 1 or np.abs(later).max() > NEGLIGIBLE * np.abs(first).max():
            later = (last.swapaxes(0, 1) @ self.maps.transpose(1, 2, 0)).transpose(1, 2, 0)
            last = last @ self.maps[-1].T
            sums.append(later)
        made = np.zeros((n * len(sums), d))
        for number, own in enumerate(sums):
            np.add.at(made, np.maximum(lag + number * n, 0), own / n)
        return made

    def autocorrelation(self, lags: np.ndarray) -> np.ndarray:
        """At these lags in rounds, (n_lags, d)."""
        places = np.rint(lags).astype(int)
        near = places < len(self.correlations)
        return np.where(near[:, None], self.correlations[np.where(near, places, 0)], 0.0)


def _period(posterior: Posterior, step_size: float, leapfrog_steps: int,
            every: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Averages of a period: maps (P, d, d) of its start, pulls (P, d), covariances (P, P, d, d) of its noise.

    All are relative to the mode. Rows of `state` are the mean position, all V_c'x_c, the mean momentum and
    all V_c'p_c; its columns a map of the start, the mean, and covariances with all rows and, further right,
    with the averages so far.
    """
    flow = _Flow(posterior, step_size)
    d, size, end = flow.dim, flow.size, lcm(leapfrog_steps, every)
    count, cov, filled = end // every, slice(d + 1, d + 1 + 2 * size), d + 1 + 2 * size
    maps, pulls, noise = np.zeros((count, d, d)), np.zeros((count, d)), np.zeros((count, count, d, d))
    state = np.zeros((2 * size, filled + count * d))
    state[:size, :d] = flow.spread
    for now, then in pairwise(sorted({*range(0, end + 1, leapfrog_steps), *range(0, end + 1, every)})):
        if now % leapfrog_steps == 0:  # new momenta, the same on all clients
            state[size:], state[:, cov.start + size:cov.stop] = 0.0, 0.0
            state[size:, cov.start + size:cov.stop] = flow.spread @ flow.spread.T
        state[:, :filled] = flow.moved(state[:, :filled], then - now)
        state[:, cov] = flow.moved(state[:, cov].T, then - now) + flow.noise(then - now)
        state[:, d] += flow.pull(then - now)
        if then % every == 0:  # positions are averaged
            state[:size] = flow.spread @ state[:d]
            state[:, cov.start:cov.start + size] = state[:, cov.start:cov.start + d] @ flow.spread.T
            state[:, filled:filled + d] = state[:, cov.start:cov.start + d]
            j, filled = then // every - 1, filled + d
            maps[j], pulls[j] = state[:d, :d], state[:d, d]
            noise[j, :j + 1] = state[:d, cov.stop:filled].reshape(d, j + 1, d).swapaxes(0, 1)
            noise[:j + 1, j] = noise[j, :j + 1].swapaxes(1, 2)
    return maps, pulls, noise


class _Flow:
    """What leapfrog steps without communication do to the rows of a period's state."""

    def __init__(self, posterior: Posterior, step_size: float) -> None:
        self.posterior, self.step_size, vectors = posterior, step_size, posterior.vectors
        self.dim, self.size = len(vectors), sum(vectors.shape)
        self.spread = np.concatenate([np.eye(self.dim), vectors.T])
        """Positions of all rows when all clients are at one point, (d + N r, d)."""
        self.weights = np.repeat(posterior.problem.weights, len(vectors.T) // posterior.problem.n_clients)
        self.curvatures = np.r_[posterior.curvatures[0, -1], posterior.curvatures[:, :-1].ravel()]
        self.known: dict[int, Steps] = {}

    def steps(self, count: int) -> Steps:
        """So many steps, of the prior's curvature and of all others."""
        if count not in self.known:
            self.known[count] = _steps(self.curvatures, self.step_size, count,
                                       self.posterior.problem.gradient_noise or 0.0)
        return self.known[count]

    def moved(self, state: np.ndarray, count: int) -> np.ndarray:
        """The linear part, of every column."""
        ahead, d = self.steps(count)[0], self.dim
        halves, made = state.reshape(2, self.size, -1), np.empty((2, self.size, state.shape[1]))
        for i in range(2):
            made[i, :d] = ahead[i, 0, 0] * halves[0, :d] + ahead[i, 1, 0] * halves[1, :d]
            beyond = self.weights[:, None] * (ahead[i, :, 1:] - ahead[i, :, :1])[..., None] * halves[:, d:]
            made[i, :d] += self.posterior.vectors @ beyond.sum(axis=0)
            made[i, d:] = (ahead[i, :, 1:, None] * halves[:, d:]).sum(axis=0)
        return made.reshape(state.shape)

    def pull(self, count: int) -> np.ndarray:
        """What the clients' gradients at the mode, whose mean is zero, add to a state."""
        shift, vectors = self.steps(count)[1], self.posterior.vectors
        n_clients = self.posterior.problem.n_clients
        along = np.einsum("dcr,cd->cr", vectors.reshape(self.dim, n_clients, -1),
                          self.posterior.gradients).ravel()
        beyond = (shift[:, 1:] - shift[:, :1]) * (self.weights * along)
        return np.concatenate([np.r_[vectors @ beyond[i], shift[i, 1:] * along] for i in range(2)])

    def noise(self, count: int) -> np.ndarray:
        """Covariance that gradient noise adds to a state."""
        own, w, vectors, d = self.steps(count)[2], self.weights, self.posterior.vectors, self.dim
        made = np.empty((2, self.size, 2, self.size))
        for i in range(2):
            for j in range(2):
                made[i, :d, j, :d] = (self.posterior.problem.weights**2).sum() * own[i, j, 0] * np.eye(d) + (
                    vectors * (w**2 * (own[i, j, 1:] - own[i, j, 0]))) @ vectors.T
                made[i, :d, j, d:] = vectors * (w * own[i, j, 1:])
                made[i, d:, j, :d] = made[i, :d, j, d:].T
                made[i, d:, j, d:] = np.diag(own[i, j, 1:])
        return made.reshape(2 * self.size, -1)


def _steps(curvatures: np.ndarray, step_size: float, count: int, noise: float) -> Steps:
    """Leapfrog steps of a position and a momentum along each curvature."""
    half, bend = 0.5 * step_size, 0.5 * step_size**2 * curvatures
    one = np.array([[1.0 - bend, np.full_like(bend, step_size)],
                    [-step_size * curvatures * (1.0 - 0.5 * bend), 1.0 - bend]])
    first = np.array([np.full_like(bend, -step_size * half), -half * (1.0 - bend)])
    kicks = noise**2 * np.einsum("ir,jr->ijr", first, first)
    kicks[1, 1] += noise**2 * half**2
    ahead, own = np.zeros_like(one), np.zeros_like(one)
    ahead[0, 0] = ahead[1, 1] = 1.0
    for _ in range(count):
        ahead = np.einsum("ijr,jkr->ikr", one, ahead)
        own = np.einsum("ijr,jkr,lkr->ilr", one, own, one) + kicks
    shift = (ahead[:, 0] - np.eye(2)[:, :1]) / curvatures  # it turns around -1 / curvature
    return ahead, shift, own
