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
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.participation import Participation
from fedsim.settings.validation import instance

from ..facts.constants_of_problem import Constants
from .langevin import Moved, Potential, Step, least, root, surplus
from .rounds import Recursion

NAMES = ("initialization", "client_drift", "discretization", "gradient_noise", "participation")


@dataclass(frozen=True)
class Federated(Recursion):
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
    def of(cls, algorithm: Any, constants: Constants, hessian_smoothness: float | None) -> Any:
        """From what is known of the problem; its theorem's `hessian_smoothness` is M."""
        f = Potential(constants.strong_convexity, constants.smoothness, constants.dim,
                      algorithm.temperature, hessian_smoothness)
        weights, traces = constants.weights, constants.gradient_noise_traces
        drawn = instance("participation", algorithm.participation, Participation, type(None))
        distance = constants.need("initial_distance")
        start = start_distance(constants, f)
        N = constants.need("n_clients")
        return cls(algorithm, f, N, (start**2, distance**2), gradients_at_minimizer(constants, weights),
                   float(weights**2 @ traces), float(weights @ traces),
                   0.0 if drawn is None else float(drawn.variance_factor(N)))

    @property
    def work(self) -> int:
        """Steps of a round that take time."""
        return int(self.algorithm.local_steps)

    def update(self, size: float) -> Any:
        """What a local update of this step size is to `local`."""
        return size

    def local(self, update: Any, E: Any, S: Any, near: Any, beyond: Any, far: Any,
              ) -> tuple[Step, Moved, Moved, Any]:
        """The step of E, what becomes of R and Q, and the new S.

        Given E, S, near = sqrt(R), beyond with sqrt(min(R + S, Q)) = near + beyond, and far = sqrt(Q).
        """

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
        if self._equal is not None:
            return self._equal
        schedule, count = self.algorithm.schedule, self.algorithm.local_steps
        sizes = np.asarray(schedule.at(np.arange(number * count, (number + 1) * count)), dtype=np.float64)
        return [self.update(size) for size in sizes.tolist()]

    @cached_property
    def _equal(self) -> list[Any] | None:
        """The updates of every round, where they are the same."""
        schedule = self.algorithm.schedule
        return [self.update(schedule.largest)] * self.algorithm.local_steps if schedule.is_constant else None

    def round(self, state: Sequence[Any], given: Sequence[Any]) -> tuple[list[Moved], list[Step]]:
        """One communication to the next; everything is followed by itself and by its change."""
        E, Q, B = state[0], state[1], self.potential.reach
        at_first = root(E)
        begin = R = Q = least(Q, (at_first + B) ** 2)
        slack = (at_first + B) ** 2 - begin
        dE: Any = 0.0
        dR: Any = 0.0
        dQ, S, steps = dR, 0.0, []

        def nearest() -> Moved:
            """(sqrt(E) + B)^2, and how much it is more than R at the beginning."""
            return Moved(slack + (dE * (1.0 + 2.0 * B / (root(E) + at_first)) if dE else 0.0),
                         (root(E) + B) ** 2)

        for update in given:
            most = nearest()
            dR, R, S = (least(dR, most.change, dQ), least(R, most.after, Q),
                        least(S, Q) if self.clients > 1 else 0.0)
            near, far, apart = root(R), root(Q), least(S, dQ - dR)
            step, of_R, of_Q, S = self.local(update, E, S, near, surplus(root(R + apart), near, apart), far)
            dE, dR, dQ = dE + step.change, dR + of_R.change, dQ + of_Q.change
            E, R, Q = step.of(E).after, of_R.after, of_Q.after
            steps.append(step)
        S = least(S, Q) if self.clients > 1 else 0.0
        between, most = self.drawn * S, nearest()
        dR, R = least(dR, most.change, dQ), least(R, most.after, Q)
        dE, E = dE + between, E + between
        most = nearest()
        return ([Moved(dE, E), Moved(begin - state[1] + least(dR + between, most.change, dQ),
                                     least(R + between, most.after, Q))],
                [*steps, Step(between, 1.0, {"participation": between})])


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
