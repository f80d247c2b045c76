"""A slow twin of FA-HMC that averages every T leapfrog steps: all positions and momenta in one vector."""

import numpy as np


class Twin:
    """All positions and momenta in one vector, leapfrog step by leapfrog step, and all averages so far."""

    def __init__(self, problem, step_size, k, every, momenta_too=False, renew_on_averaging=False):
        self.n, self.d = problem.n_clients, problem.dim
        size, self.k, self.every = self.n * self.d, k, every
        hessian, still = np.zeros((size, size)), problem.minimizers.ravel()
        for c in range(self.n):
            own = slice(c * self.d, (c + 1) * self.d)
            hessian[own, own] = problem.hessians[c]
        eye, null, noise = np.eye(size), np.zeros((size, size)), problem.gradient_noise
        move = np.block([[eye - 0.5 * step_size**2 * hessian, step_size * eye], [null, eye]])
        first = np.block([[eye, null], [-0.5 * step_size * hessian, eye]])  # half a kick, then the other one
        drift = np.block([[eye, step_size * eye], [null, eye]])
        self.step = first @ drift @ first
        np.testing.assert_allclose(self.step[:size], move[:size], atol=1e-12)
        kick = np.concatenate([null, -0.5 * step_size * noise * eye])
        self.noise = (first @ drift @ kick) @ (first @ drift @ kick).T + kick @ kick.T
        self.pull = np.concatenate([still, 0 * still]) - self.step @ np.concatenate([still, 0 * still])
        mean = np.kron(np.ones((self.n, 1)) * problem.weights, np.eye(self.d))
        self.average = np.block([[mean, null], [null, mean if momenta_too else eye]])
        self.forget = np.block([[eye, null], [null, null]])
        fresh = np.concatenate([np.zeros((size, self.d)), np.kron(np.ones((self.n, 1)), np.eye(self.d))])
        self.fresh, self.renew_on_averaging = fresh @ fresh.T, renew_on_averaging

    def run(self, start, n_rounds):
        """Means (n_rounds, d) of the averages and their joint covariance, from all clients at `start`."""
        size = 2 * self.n * self.d
        mean = np.concatenate([np.tile(start, self.n), np.zeros(size // 2)])
        cov, means = np.zeros((size, size)), []
        for s in range(n_rounds * self.every):
            if s % (self.every if self.renew_on_averaging else self.k) == 0:
                mean, cov = self._apply(self.forget, mean, cov)
                cov[:size, :size] += self.fresh
            mean, cov = self._apply(self.step, mean, cov)
            mean[:size] += self.pull
            cov[:size, :size] += self.noise
            if (s + 1) % self.every == 0:
                mean, cov = self._apply(self.average, mean, cov)
                own = np.r_[:len(mean), :self.d]  # the average, once more
                mean, cov = mean[own], cov[np.ix_(own, own)]
                means.append(mean[:self.d].copy())
        return np.array(means), cov[size:, size:]

    def _apply(self, matrix, mean, cov):
        own = slice(len(matrix))
        mean[own], cov[own] = matrix @ mean[own], matrix @ cov[own]
        cov[:, own] = cov[:, own] @ matrix.T
        return mean, cov
