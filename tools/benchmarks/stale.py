"""Stale SGLD on the Gaussian model: the chain itself, and the average of its squares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .case import Case


@dataclass(frozen=True)
class StaleTables:
    """Everything that a contestant may know.

    Attributes
    ----------
    data : (n,)
        Of unit variance around theta, whose prior is standard normal.
    step_size : float
    staleness : int
        Age min(l, tau) of the gradient of update l.
    averages : bool
        Report the average of theta_l^2 over l = 1, ..., L, not theta_L.

    The others describe wrong programs.
    """

    data: np.ndarray
    step_size: float
    staleness: int
    averages: bool
    temperature: float = 1.0
    late_rounds: int = 0
    start_counts: bool = False

    @property
    def quadratic(self) -> tuple[float, float]:
        """a and b of the gradient a theta - b."""
        return len(self.data) + 1.0, float(self.data.sum())

    @property
    def noise_size(self) -> float:
        """Standard deviation of the noise of one update."""
        return float(np.sqrt(2 * self.step_size * self.temperature))

    def mutations(self) -> dict[str, StaleTables]:
        """Descriptions of wrong programs, which the law test has to catch."""
        wrong = {"noise sqrt(2) too large": replace(self, temperature=2 * self.temperature),
                 "gradient one update too old": replace(self, staleness=self.staleness + 1),
                 "gradient one update too young": replace(self, staleness=self.staleness - 1),
                 "fresh gradients": replace(self, staleness=0)}
        if self.averages:
            return wrong | {"start counted in the average": replace(self, start_counts=True)}
        return wrong | {"one update too many": replace(self, late_rounds=1)}


@dataclass(frozen=True, kw_only=True)
class StaleCase(Case):
    """Stale SGLD."""

    n_data: int
    staleness: int
    relative_step: float
    averages: bool
    contestants = ("fedsim", "fedsim single", "NumPy", "NumPy by updates", "JAX tuned",
                   "JAX own normals")
    step = "update"

    def tables(self) -> StaleTables:
        """Data around 0, as in the paper."""
        data = np.random.default_rng(20240).standard_normal(self.n_data)
        return StaleTables(data, self.relative_step / (self.n_data + 1.0), self.staleness, self.averages)

    def steps(self, n_rounds: int, n_replicas: int) -> int:
        """Updates of one replica, counted over all of them."""
        return n_rounds * n_replicas

    def normals(self, n_rounds: int) -> int:
        """Standard normals that the algorithm asks for."""
        return n_rounds * self.n_replicas


_SLOW = {"NumPy": 1 / 3, "NumPy by updates": 1 / 6, "JAX tuned": 1 / 10, "JAX own normals": 1 / 10}

CASES = (
    StaleCase(
        name="stale", title="stale SGLD, Gaussian model of 1,000 data, d=1, staleness 8, 200 replicas, "
        "300,000 updates", n_data=1000, staleness=8, relative_step=0.1, averages=False, n_replicas=200,
        n_rounds=300_000, check_replicas=65536, check_rounds=15, fractions=_SLOW),
    StaleCase(
        name="stale-average", title="as stale, with the average of the squares of all iterates, "
        "200,000 updates",
        n_data=1000, staleness=8, relative_step=0.1, averages=True, n_replicas=200, n_rounds=200_000,
        check_replicas=65536, check_rounds=45, fractions=_SLOW),
)
