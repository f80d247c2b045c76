"""FA-LD or FA-HMC on quadratic clients with unequal curvature, weights and minimizers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .case import Case


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


@dataclass(frozen=True, kw_only=True)
class FederatedCase(Case):
    """FA-LD, or with leapfrog steps FA-HMC."""

    n_clients: int
    dim: int
    isotropic: bool = False
    local_steps: int = 10
    shared_noise: float = 0.25
    leapfrog_steps: int = 0
    contestants: ClassVar[tuple[str, ...]] = ("fedsim", "fedsim single", "NumPy", "JAX natural", "JAX tuned",
                                              "JAX own normals")

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

    def steps(self, n_rounds: int, n_replicas: int) -> int:
        """Local steps (FA-HMC: leapfrog steps) of one client of one replica, counted over all of them."""
        return n_rounds * self.local_steps * max(1, self.leapfrog_steps) * self.n_clients * n_replicas

    def normals(self, n_rounds: int) -> int:
        """Standard normals that the algorithm asks for."""
        per_step = self.dim * (self.n_clients * (self.shared_noise < 1) + (self.shared_noise > 0))
        return n_rounds * self.local_steps * self.n_replicas * per_step


@dataclass(frozen=True, kw_only=True)
class HamiltonianCase(FederatedCase):
    """FA-HMC, which others may also compute in the coordinates that fedsim uses."""

    leapfrog_steps: int = 5
    contestants = ("fedsim", "fedsim single", "NumPy", "NumPy in modes", "JAX natural", "JAX tuned",
                   "JAX own normals", "JAX in modes")


_SLOW = {"NumPy": 1 / 3, "NumPy in modes": 1 / 3, "JAX natural": 1 / 12, "JAX tuned": 1 / 4,
         "JAX in modes": 1 / 4, "JAX own normals": 1 / 2}

CASES = (
    FederatedCase(
        name="i", title="FA-LD, N=50, d=2, dense, K=10, 300 replicas, 5,000 steps, shared noise 1/4",
        n_clients=50, dim=2, n_replicas=300, n_rounds=500, check_replicas=65536, check_rounds=2,
        fractions=_SLOW),
    FederatedCase(
        name="i-0", title="as i, without shared noise", n_clients=50, dim=2, shared_noise=0.0,
        n_replicas=300, n_rounds=500, check_replicas=65536, check_rounds=2, fractions=_SLOW),
    FederatedCase(
        name="ii", title="FA-LD, N=20, d=50, dense, K=10, 256 replicas, 250 steps, shared noise 1/4",
        n_clients=20, dim=50, n_replicas=256, n_rounds=25, check_replicas=8192, check_rounds=2,
        fractions=_SLOW),
    FederatedCase(
        name="iii", title="FA-LD, N=2, d=1000, isotropic, K=10, 64 replicas, 1,000 steps, shared noise 1/4",
        n_clients=2, dim=1000, isotropic=True, n_replicas=64, n_rounds=100, check_replicas=2048,
        check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="iv", title="FA-HMC, N=20, d=2, dense, K=5, T=10, 320 replicas, 1,500 rounds, shared noise 1 "
        "(the default)", n_clients=20, dim=2, shared_noise=1.0, n_replicas=320,
        n_rounds=1500, check_replicas=65536, check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="iv-1/4", title="as iv, shared noise 1/4", n_clients=20, dim=2,
        n_replicas=320, n_rounds=500, check_replicas=65536, check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="iv-0", title="as iv, without shared noise", n_clients=20, dim=2, shared_noise=0.0,
        n_replicas=320, n_rounds=500, check_replicas=65536, check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="v", title="FA-HMC, N=20, d=10, dense, K=5, T=10, 320 replicas, 200 rounds, shared noise 1 "
        "(the default)", n_clients=20, dim=10, shared_noise=1.0, n_replicas=320,
        n_rounds=200, check_replicas=16384, check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="v-1/4", title="as v, shared noise 1/4", n_clients=20, dim=10,
        n_replicas=320, n_rounds=75, check_replicas=16384, check_rounds=2, fractions=_SLOW),
    HamiltonianCase(
        name="v-0", title="as v, without shared noise", n_clients=20, dim=10, shared_noise=0.0,
        n_replicas=320, n_rounds=75, check_replicas=16384, check_rounds=2, fractions=_SLOW),
)
