"""What the recursions of DE-SGLD and DE-SGHMC share: components, the network's modes, terms.

Components f_i are mu-strongly convex and L-smooth, f = sum_i f_i, so that f and its gradients' mean times N
have m = N mu and smoothness N L. Means over clients have weights 1/N whatever the problem's weights are.
P takes clients' values to their differences from the average; (W - J) has the eigenvalues lambda_2, ...,
lambda_N and 0, J the averaging matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.algorithms.gossip import Decentralized
from fedsim.settings.validation import Array

from ..declare.bound import Assumption
from ..declare.statement import Hypothesis
from ..facts.constants_of_problem import Constants
from ..recursions.bounds import HESSIAN_SMOOTHNESS
from ..recursions.federated import gradients_at_minimizer, start_distance
from ..recursions.langevin import Potential
from ..recursions.rounds import Recursion
from .applicable import require_rows
from .setting import smallest_eigenvalue

NAMES = ("initialization", "client_drift", "discretization", "gradient_noise")


@dataclass(frozen=True, eq=False)
class Clients:
    """What is known of components, network and start.

    Attributes
    ----------
    f : Potential, of the sum of the components
    L, mu : float, of the components
    N, d : int
    modes : (N - 1,), lambda_2, ..., lambda_N
    traces_by_mode : (N - 1,), sum_i u_j(i)^2 v_i, of traces v_i
    traces : (N,), v_i
    smallest : float, lambda_N
    gradients : float, Gamma, Gamma^2 = (1/N) sum_i |grad f_i(x_*)|^2
    distance, spread, w2 : float
        At the start: ||average - x_*||, (1/N) sum_i ||x_i - average||^2, W2 of the average or a bound of it.
    """

    f: Potential
    mu: float
    L: float
    modes: Array
    traces_by_mode: Array
    traces: Array
    smallest: float
    gradients: float
    distance: float
    spread: float
    w2: float

    @classmethod
    def of(cls, constants: Constants, mixing: Array, hessian_smoothness: float | None) -> Clients:
        """From the constants of the components, and the mixing matrix."""
        N, mu, L = constants.need("n_clients"), constants.strong_convexity, constants.smoothness
        require_rows(mixing, N)
        f = Potential(N * mu, N * L, constants.dim, 1.0, hessian_smoothness)
        traces = constants.gradient_noise_traces
        # 2 J sets the average apart from all other modes, also where a network is not connected
        values, vectors = np.linalg.eigh(0.5 * (mixing + mixing.T) + 2.0 / N)
        return cls(f, mu, L, values[:-1], traces @ vectors[:, :-1] ** 2, traces, smallest_eigenvalue(mixing),
                   gradients_at_minimizer(constants, np.full(N, 1.0 / N)), constants.need("initial_distance"),
                   constants.initial_spread, start_distance(constants, f))

    @property
    def N(self) -> int:
        """Number of clients."""
        return len(self.traces)

    @property
    def d(self) -> int:
        """Dimension."""
        return self.f.dim

    @property
    def q(self) -> float:
        """(L + mu)/2."""
        return 0.5 * (self.L + self.mu)

    @property
    def r(self) -> float:
        """(L - mu)/2."""
        return 0.5 * (self.L - self.mu)

    @cached_property
    def noise(self) -> float:
        """sum_i v_i."""
        return float(self.traces.sum())

    def loss(self, size: float) -> float:
        """rW - 1, rW = max(1 - size mu, size L - lambda_N): W - size Hessians shrink distances by it."""
        return max(-size * self.mu, size * self.L - self.smallest - 1.0)

    def mixing(self, size: float) -> float:
        """gW = max_j |lambda_j - size q|."""
        return float(np.abs(self.modes - size * self.q).max(initial=0.0))

    @property
    def scale(self) -> float:
        """A size that E has in the long run."""
        return max(self.d / self.mu, (self.gradients / self.mu) ** 2)


class OfClients(Recursion):
    """A recursion of `Clients`."""

    clients: Clients
    names = NAMES

    @property
    def scale(self) -> float:
        """A size that the state has in the long run."""
        return self.clients.scale


def with_disagreement(average: dict[str, float], value: float, spread: float) -> dict[str, float]:
    """Terms of sqrt(value^2 + spread), from those of value."""
    whole = (value**2 + spread) ** 0.5
    if not whole:
        return {**average, "disagreement": 0.0}
    return {name: part * (value / whole) for name, part in average.items()} | {"disagreement": spread / whole}


def derived(name: str, size: Callable[[Any], float]) -> dict[str, Any]:
    """What the declarations of recursions share: that step sizes are such that the bound has a limit."""
    def judge(constants: Constants, algorithm: Decentralized) -> Assumption:
        limit = (1.0 + smallest_eigenvalue(algorithm.mixing)) / constants.smoothness
        return Assumption.at_most(f"{name} <= (1 + lambda_N)/smoothness (beyond it the bound is true but "
                                  "grows)", size(algorithm), limit) if limit > 0.0 else Assumption.yes(
            "lambda_N > -1", False)

    return {"variants": ("proved",), "arguments": HESSIAN_SMOOTHNESS,
            "hypotheses": (Hypothesis(f"{name} <= (1 + lambda_N)/smoothness", judge),)}
