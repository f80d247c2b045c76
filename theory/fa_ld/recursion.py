"""FA-LD's own coupling, evaluated local step by local step instead of closed in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD

from ..facts import Constants
from ..recursions.bounds import gradients_at_minimizer
from ..recursions.langevin import Potential, Step, average_step, least, root, surplus

NAMES = ("initialization", "client_drift", "discretization", "gradient_noise", "participation")


@dataclass(frozen=True)
class Rounds:
    """The state at communications: squares of W2(xbar, target) and of ||xbar - theta_*||.

    Parameters
    ----------
    algorithm : fedsim.FALD
    potential : Potential
    clients : int
        N.
    start : tuple of float
        The state before round 0.
    gradients : float
        Gamma, with Gamma^2 = sum_c p_c |grad f_c(theta_*)|^2.
    noise, noises : float
        sum_c p_c^2 v_c and sum_c p_c v_c of traces v_c.
    drawn : float
        phi, the variance of the drawn average over the clients' spread.
    """

    algorithm: FALD
    potential: Potential
    clients: int
    start: tuple[float, float]
    gradients: float
    noise: float
    noises: float
    drawn: float

    names = NAMES

    @property
    def work(self) -> int:
        """Local steps of a round."""
        return self.algorithm.local_steps

    @property
    def constant(self) -> bool:
        """Whether all step sizes are equal."""
        return self.algorithm.schedule.is_constant

    @classmethod
    def of(cls, constants: Constants, algorithm: FALD, hessian_smoothness: float | None) -> Rounds:
        """From what is known of the problem."""
        f = Potential(constants.strong_convexity, constants.smoothness, constants.dim, algorithm.temperature,
                      hessian_smoothness)
        N, weights, traces = constants.need("n_clients"), constants.weights, constants.gradient_noise_traces
        distance = constants.need("initial_distance")
        start = distance + f.reach
        if constants.initial_w2 is not None:
            start = min(start, constants.initial_w2)
        drawn = algorithm.participation
        return cls(algorithm, f, N, (start**2, distance**2), gradients_at_minimizer(constants, weights),
                   float(weights**2 @ traces), float(weights @ traces),
                   0.0 if drawn is None else float(drawn.variance_factor(N)))

    @property
    def scale(self) -> float:
        """A size that E has in the long run, or more."""
        f = self.potential
        eta = self.algorithm.schedule.largest
        return max(f.reach**2, (self.gradients / f.strong_convexity) ** 2,
                   eta * self.noises / f.strong_convexity)

    def begin(self) -> list[float]:
        """The state before round 0."""
        return list(self.start)

    def given(self, number: int) -> Sequence[float]:
        """Step sizes of a round."""
        schedule, K = self.algorithm.schedule, self.work
        if schedule.is_constant:
            return [schedule.largest] * K
        return np.asarray(schedule.at(np.arange(number * K, (number + 1) * K)), dtype=np.float64).tolist()

    def round(self, state: Sequence[Any], given: Sequence[float]) -> tuple[list[Any], list[Step]]:
        """See `w2_recursion`; all is followed as its change since the round began."""
        f, Gamma, apart = self.potential, self.gradients, 1.0 - self.algorithm.shared_noise
        E0, R0 = state
        at_first, B, r = root(E0), f.reach, f.radius
        slack = (at_first + B) ** 2 - R0
        dE: Any = 0.0
        dR: Any = least(0.0, slack)
        dQ, S, steps = dR, 0.0, []

        def nearest(dE: Any) -> Any:
            """(sqrt(E) + B)^2 - R0."""
            return slack + (dE * (1.0 + 2.0 * B / (root(E0 + dE) + at_first)) if dE else 0.0)

        for h in given:
            dR = least(dR, nearest(dE), dQ)
            R, Q = R0 + dR, R0 + dQ
            S = least(S, Q)
            step = average_step(E0 + dE, S, h, f, self.noise)
            near, far, own = root(R), root(Q), root(S)
            gap = least(S, Q - R)
            beyond = surplus(root(R + gap), near, gap)  # of w = sqrt(min(R + S, Q))
            less, more = f.shift(h, near, beyond), f.loss(h) * far + h * Gamma
            heat = 2.0 * h * f.temperature * f.dim
            S = ((abs(1.0 - h * f.middle) * own + h * (r * (near + beyond) + Gamma)) ** 2
                 + heat * apart * (self.clients - 1) + h * h * (self.noises - self.noise))
            dR = dR + less * (2.0 * near + less) + heat + h * h * self.noise
            dQ = (dQ + more * (2.0 * far + more) + heat * (1.0 - apart + self.clients * apart)
                  + h * h * self.noises)
            dE = dE + step.change
            steps.append(step)
        S = least(S, R0 + dQ)
        dR = least(dR, nearest(dE), dQ)
        between = self.drawn * S
        steps.append(Step(between, 1.0, {"participation": between}))
        dE = dE + between
        return [dE, least(dR + between, nearest(dE), dQ)], steps

    def terms(self, state: Sequence[float], parts: dict[str, float], number: int) -> dict[str, float]:
        """Parts of E over its root."""
        whole = sum(parts.values())
        return {name: part / whole**0.5 if whole else 0.0 for name, part in parts.items()}
