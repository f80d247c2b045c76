"""What is computed: FA-LD or FA-HMC on quadratic clients with unequal curvature, weights and minimizers.

Only NumPy is imported here, so that a contestant's peak memory is its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Tables:
    """Everything that a contestant may know.

    Attributes
    ----------
    hessians : (N, d, d), or (N,) isotropic
    minimizers : (N, d)
    weights : (N,)
        Sum to one.
    step_size, local_steps, shared_noise, temperature
        As in `fedsim.FALD`.
    leapfrog_steps : int
        As in `fedsim.FAHMC`; 0 for FA-LD.
    """

    hessians: np.ndarray
    minimizers: np.ndarray
    weights: np.ndarray
    step_size: float
    local_steps: int
    shared_noise: float
    temperature: float = 1.0
    leapfrog_steps: int = 0

    @property
    def own_sizes(self) -> np.ndarray:
        """Standard deviation of a client's own noise (FA-HMC: momentum) in one local step, (N,)."""
        if self.leapfrog_steps:
            return np.sqrt((1 - self.shared_noise) / self.weights)
        return np.sqrt(2 * self.step_size * self.temperature * (1 - self.shared_noise) / self.weights)

    @property
    def shared_size(self) -> float:
        """Standard deviation of the shared noise (FA-HMC: momentum) in one local step."""
        if self.leapfrog_steps:
            return float(np.sqrt(self.shared_noise))
        return float(np.sqrt(2 * self.step_size * self.temperature * self.shared_noise))

    def affine_step(self) -> tuple[np.ndarray, np.ndarray]:
        """I - eta A_c, (N, d, d) or (N, 1), and eta A_c b_c, (N, d)."""
        if self.hessians.ndim == 1:
            return (1 - self.step_size * self.hessians[:, None],
                    self.step_size * self.hessians[:, None] * self.minimizers)
        eye = np.eye(self.minimizers.shape[1])
        return (eye - self.step_size * self.hessians,
                self.step_size * np.einsum("cij,cj->ci", self.hessians, self.minimizers))

    def mutations(self) -> dict[str, Tables]:
        """Tables of wrong programs, which the law test has to catch."""
        wrong = {"noise sqrt(2) too large": replace(self, temperature=2 * self.temperature)}
        if self.leapfrog_steps:
            wrong = {"one leapfrog step too many": replace(self, leapfrog_steps=self.leapfrog_steps + 1)}
        result = wrong | {
            "synchronised one step late": replace(self, local_steps=self.local_steps + 1),
            "weights ignored": replace(self, weights=np.full_like(self.weights, 1 / len(self.weights)))}
        if self.shared_noise > 0:
            result["shared noise left out"] = replace(self, shared_noise=0.0)
        return result


@dataclass(frozen=True)
class Case:
    """One benchmark.

    Attributes
    ----------
    n_rounds : int
        What fedsim runs. A contestant in `fractions` runs that fraction of it; rates are per client-step.
    check_replicas, check_rounds : int
        Size of the larger sample for the law test.
    fractions : dict
        From the contestant's name.
    """

    name: str
    title: str
    n_clients: int
    dim: int
    isotropic: bool
    n_replicas: int
    n_rounds: int
    local_steps: int
    shared_noise: float
    check_replicas: int
    check_rounds: int
    fractions: dict[str, float]
    leapfrog_steps: int = 0

    def tables(self) -> Tables:
        """The problem, drawn from a fixed seed."""
        rng = np.random.default_rng(20240)
        shape = (self.n_clients,) if self.isotropic else (self.n_clients, self.dim)
        curvature = np.exp(rng.uniform(np.log(0.05), np.log(5.0), shape))
        if not self.isotropic:
            basis = np.linalg.qr(rng.standard_normal((self.n_clients, self.dim, self.dim)))[0]
            dense = np.einsum("cij,cj,ckj->cik", basis, curvature, basis)
            curvature = 0.5 * (dense + dense.transpose(0, 2, 1))
        weights = rng.uniform(0.5, 1.5, self.n_clients)
        return Tables(curvature, rng.standard_normal((self.n_clients, self.dim)), weights / weights.sum(),
                      0.3, self.local_steps, self.shared_noise, leapfrog_steps=self.leapfrog_steps)

    def rounds_of(self, contestant: str) -> int:
        """Rounds that this contestant runs in one timed run."""
        return max(1, round(self.n_rounds * self.fractions.get(contestant, 1.0)))

    def client_steps(self, n_rounds: int) -> int:
        """Local steps (FA-HMC: leapfrog steps) of one client of one replica, counted over all of them."""
        return n_rounds * self.local_steps * max(1, self.leapfrog_steps) * self.n_clients * self.n_replicas

    def normals(self, n_rounds: int) -> int:
        """Standard normals that the algorithm asks for."""
        per_step = self.dim * (self.n_clients + (self.shared_noise > 0))
        return n_rounds * self.local_steps * self.n_replicas * per_step

    def shortened(self, factor: float) -> Case:
        """The same case with fewer rounds, for development."""
        return replace(self, n_rounds=max(2, round(self.n_rounds * factor)))


_SLOW = {"NumPy": 1 / 3, "JAX natural": 1 / 12, "JAX tuned": 1 / 4, "JAX own normals": 1 / 2}

CASES = (
    Case("i", "N=50, d=2, dense, K=10, 300 replicas, 20,000 steps, shared noise 1/4",
         50, 2, False, 300, 2000, 10, 0.25, 65536, 2, _SLOW),
    Case("i-0", "as i, without shared noise",
         50, 2, False, 300, 2000, 10, 0.0, 65536, 2, _SLOW),
    Case("ii", "N=20, d=50, dense, K=10, 256 replicas, 1,000 steps, shared noise 1/4",
         20, 50, False, 256, 100, 10, 0.25, 8192, 2, _SLOW),
    Case("iii", "N=2, d=1000, isotropic, K=10, 64 replicas, 4,000 steps, shared noise 1/4",
         2, 1000, True, 64, 400, 10, 0.25, 2048, 2, _SLOW),
    Case("iv", "FA-HMC, N=20, d=2, dense, K=5, T=10, 320 replicas, 1,500 rounds, shared noise 1/4",
         20, 2, False, 320, 1500, 10, 0.25, 65536, 2, _SLOW, 5),
    Case("v", "FA-HMC, N=20, d=10, dense, K=5, T=10, 320 replicas, 200 rounds, shared noise 1/4",
         20, 10, False, 320, 200, 10, 0.25, 16384, 2, _SLOW, 5),
)
