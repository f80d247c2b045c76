"""Clients that work apart and meet at communications: what the recursions of FA-LD and FA-HMC share.

The state at communications are squares, E of W2(xbar, target) and R of ||xbar - theta_*||. Between them
S = sum_c p_c ||x_c - xbar||^2 and Q = sum_c p_c ||x_c - theta_*||^2 = R + S are followed too, all as upper
bounds. Where clients are together S = 0 and Q = R. At any time R <= (sqrt(E) + B)^2, because
||Y - theta_*|| <= B, and R, S <= Q; one client alone has S = 0.

Participation. Given all clients, the average of those that are drawn is unbiased with variance phi S; with Y
chosen given the average of all, phi S adds to E and to R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..facts import Constants
from .langevin import Potential, Step, least, root, surplus

NAMES = ("initialization", "client_drift", "discretization", "gradient_noise", "participation")


@dataclass(frozen=True)
class Federated:
    """A recursion over communications; subclasses say what a local update does.

    Parameters
    ----------
    algorithm : fedsim.FALD or fedsim.FAHMC
    potential : Potential
    clients : int
        N.
    start : tuple of float
        E and R before round 0.
    gradients : float
        Gamma, with Gamma^2 = sum_c p_c |grad f_c(theta_*)|^2.
    noise, noises : float
        Z2 = sum_c p_c^2 v_c and V1 = sum_c p_c v_c, of traces v_c.
    drawn : float
        phi.
    """

    algorithm: Any
    potential: Potential
    clients: int
    start: tuple[float, float]
    gradients: float
    noise: float
    noises: float
    drawn: float

    names = NAMES

    @classmethod
    def of(cls, constants: Constants, algorithm: Any, hessian_smoothness: float | None = None) -> Any:
        """From what is known of the problem; its theorem's `hessian_smoothness` is M."""
        f = Potential(constants.strong_convexity, constants.smoothness, constants.dim,
                      algorithm.temperature, hessian_smoothness)
        weights, traces, drawn = constants.weights, constants.gradient_noise_traces, algorithm.participation
        distance = constants.need("initial_distance")
        start = start_distance(constants, f)
        N = constants.need("n_clients")
        return cls(algorithm, f, N, (start**2, distance**2), gradients_at_minimizer(constants, weights),
                   float(weights**2 @ traces), float(weights @ traces),
                   0.0 if drawn is None else float(drawn.variance_factor(N)))

    @property
    def work(self) -> int:
        """Steps of a round that take time."""
        raise NotImplementedError

    def update(self, size: float) -> Any:
        """What a local update of this step size is to `local`."""
        raise NotImplementedError

    def local(self, update: Any, E: Any, S: Any, near: Any, beyond: Any, far: Any,
              ) -> tuple[Step, Any, Any, Any]:
        """The step of E, the changes of R and Q, and the new S.

        Given E, S, near = sqrt(R), beyond with sqrt(min(R + S, Q)) = near + beyond, and far = sqrt(Q).
        """
        raise NotImplementedError

    @property
    def constant(self) -> bool:
        """Whether all step sizes are equal."""
        return bool(self.algorithm.schedule.is_constant)

    @property
    def scale(self) -> float:
        """A size that E has in the long run."""
        f = self.potential
        return max(f.reach**2, (self.gradients / f.strong_convexity) ** 2)

    def begin(self) -> list[float]:
        """The state before round 0."""
        return list(self.start)

    def given(self, number: int, since: int = 0) -> list[Any]:
        """The updates of a round."""
        schedule, count = self.algorithm.schedule, self.algorithm.local_steps
        if schedule.is_constant:
            return [self.update(schedule.largest)] * count
        sizes = np.asarray(schedule.at(np.arange(number * count, (number + 1) * count)), dtype=np.float64)
        return [self.update(size) for size in sizes.tolist()]

    def round(self, state: Sequence[Any], given: Sequence[Any]) -> tuple[list[Any], list[Step]]:
        """One communication to the next; all is followed as its change since the round began."""
        E0, R0 = state
        at_first, B = root(E0), self.potential.reach
        slack = (at_first + B) ** 2 - R0
        dE: Any = 0.0
        dR: Any = least(0.0, slack)
        dQ, S, steps = dR, 0.0, []

        def nearest() -> Any:
            """(sqrt(E) + B)^2 - R0."""
            return slack + (dE * (1.0 + 2.0 * B / (root(E0 + dE) + at_first)) if dE else 0.0)

        for update in given:
            dR = least(dR, nearest(), dQ)
            near, far = root(R0 + dR), root(R0 + dQ)
            S = least(S, R0 + dQ) if self.clients > 1 else 0.0
            apart = least(S, dQ - dR)
            step, change, more, S = self.local(
                update, E0 + dE, S, near, surplus(root(R0 + dR + apart), near, apart), far)
            dE, dR, dQ = dE + step.change, dR + change, dQ + more
            steps.append(step)
        S = least(S, R0 + dQ) if self.clients > 1 else 0.0
        dR = least(dR, nearest(), dQ)
        between = self.drawn * S
        dE = dE + between
        return ([dE, least(dR + between, nearest(), dQ)],
                [*steps, Step(between, 1.0, {"participation": between})])

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """Parts of E over its root."""
        return over_root(parts)


def over_root(parts: dict[str, float]) -> dict[str, float]:
    """Parts of a square as parts of its root."""
    whole = sum(parts.values()) ** 0.5
    return {name: part / whole if whole else 0.0 for name, part in parts.items()}


def start_distance(constants: Constants, f: Potential) -> float:
    """W2 at the start, or ||x_0 - theta_*|| + B where it is not known."""
    farthest = constants.need("initial_distance") + f.reach
    return farthest if constants.initial_w2 is None else min(constants.initial_w2, farthest)


def gradients_at_minimizer(constants: Constants, weights: Any) -> float:
    """Gamma = (sum_c w_c |grad f_c(theta_*)|^2)^(1/2), or the largest norm where only that is known."""
    if constants.n_clients == 1:
        return 0.0
    if constants.gradient_at_minimizer is None:
        return float(constants.need("heterogeneity"))
    return float(np.sqrt(np.asarray(weights) @ constants.gradient_norms**2))
