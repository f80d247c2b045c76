"""DE-SGLD on the paper's linear regression, on a ring, with full gradients and with minibatches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .case import Case


@dataclass(frozen=True)
class GossipTables:
    """Everything that a contestant may know.

    Attributes
    ----------
    features : (N, n, d)
        n rows of data of every client.
    targets : (N, n)
    prior_variance : float
    step_size : float
    batch_size : int or None
        Rows drawn with replacement for a gradient; all rows without one.
    share : float
        Weight of either neighbour on the ring.

    The others describe wrong programs, which only NumPy's plain loop follows.
    """

    features: np.ndarray
    targets: np.ndarray
    prior_variance: float
    step_size: float
    batch_size: int | None = None
    share: float = 1 / 3
    temperature: float = 1.0
    one_by_one: bool = False
    gradient_when_mixed: bool = False
    late_rounds: int = 0
    batch_scaled: bool = True
    same_batch: bool = False
    without_replacement: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """N, n and d."""
        n_clients, n_data, dim = self.features.shape
        return n_clients, n_data, dim

    @property
    def prior(self) -> float:
        """Curvature of a client's part of the prior."""
        return 1.0 / (self.prior_variance * len(self.features))

    @property
    def noise_size(self) -> float:
        """Standard deviation of a client's noise in one iteration."""
        return float(np.sqrt(2 * self.step_size * self.temperature))

    def mixing(self) -> np.ndarray:
        """The ring's matrix (N, N)."""
        eye = np.eye(len(self.features))
        neighbours = np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0)
        return (1 - 2 * self.share) * eye + self.share * neighbours

    def quadratic(self) -> tuple[np.ndarray, np.ndarray]:
        """Hessians A_i (N, d, d) and pulls A_i b_i (N, d) of the components."""
        x = self.features
        return (np.einsum("cni,cnj->cij", x, x) + self.prior * np.eye(x.shape[2]),
                np.einsum("cni,cn->ci", x, self.targets))

    @property
    def is_right(self) -> bool:
        """Is this the algorithm, rather than a wrong program?"""
        return self.batch_scaled and not (self.one_by_one or self.gradient_when_mixed or self.same_batch
                                          or self.without_replacement)

    def mutations(self) -> dict[str, GossipTables]:
        """Descriptions of wrong programs, which the law test has to catch."""
        wrong = {"noise sqrt(2) too large": replace(self, temperature=2 * self.temperature),
                 "one iteration too many": replace(self, late_rounds=1),
                 "clients updated one by one": replace(self, one_by_one=True),
                 "gradient at the mixed point": replace(self, gradient_when_mixed=True),
                 "no gossip": replace(self, share=0.0)}
        if self.batch_size is not None:
            wrong |= {"full gradients in place of minibatches": replace(self, batch_size=None),
                      "minibatch sum not scaled": replace(self, batch_scaled=False),
                      "rows drawn without replacement": replace(self, without_replacement=True),
                      "one minibatch for all clients": replace(self, same_batch=True)}
        return wrong


@dataclass(frozen=True, kw_only=True)
class GossipCase(Case):
    """DE-SGLD."""

    n_clients: int
    n_data: int
    dim: int
    step_size: float
    batch_size: int | None = None
    contestants: ClassVar[tuple[str, ...]] = ("fedsim", "fedsim single", "NumPy", "JAX tuned",
                                              "JAX own normals", "desgld")

    def tables(self) -> GossipTables:
        """Data simulated as in the paper: x ~ N(0, 10 I), unit normal features and errors."""
        rng = np.random.default_rng(20240)
        truth = np.sqrt(10.0) * rng.standard_normal(self.dim)
        features = rng.standard_normal((self.n_clients, self.n_data, self.dim))
        targets = features @ truth + rng.standard_normal((self.n_clients, self.n_data))
        return GossipTables(features, targets, 10.0, self.step_size, self.batch_size)

    def steps(self, n_rounds: int, n_replicas: int) -> int:
        """Iterations of one client of one replica, counted over all of them."""
        return n_rounds * self.n_clients * n_replicas

    def normals(self, n_rounds: int) -> int:
        """Standard normals that the algorithm asks for."""
        return self.steps(n_rounds, self.n_replicas) * self.dim


_PEER = "another map: clients updated one by one, minibatches of {} only; law not judged"

CASES = (
    GossipCase(
        name="de", title="DE-SGLD, linear regression, N=100, d=2, ring, 100 replicas, 4,000 iterations",
        n_clients=100, n_data=50, dim=2, step_size=0.009, n_replicas=100, n_rounds=4000,
        check_replicas=32768, check_rounds=4,
        fractions={"NumPy": 1 / 2, "JAX tuned": 1 / 4, "JAX own normals": 1 / 2, "desgld": 1 / 400},
        replicas={"desgld": 1}, notes={"desgld": _PEER.format("50 rows drawn at random")}),
    GossipCase(
        name="de-minibatch", title="DE-SGLD, linear regression, N=100, d=2, ring, minibatches of 25 of 50 "
        "data, 400 iterations", n_clients=100, n_data=50, dim=2, step_size=0.008, batch_size=25,
        n_replicas=100, n_rounds=400, check_replicas=32768, check_rounds=4,
        fractions={"NumPy": 1 / 2, "desgld": 1 / 40}, replicas={"desgld": 1},
        notes={"desgld": _PEER.format("25 rows")}),
)
