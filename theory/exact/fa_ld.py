"""Exact law of FA-LD on quadratic clients.

With A_c, b_c the client's Hessian and minimizer, S_c the covariance of its gradient noise, tau the
temperature and s the shared noise, K local steps of size eta make in client c

    beta^c = G_c x + (I - G_c) b_c + xi^c,      P_c = I - eta A_c,   G_c = P_c^K,

    Q_ce = Cov(xi^c, xi^e) = 2 eta tau s sum_{j<K} P_c^j P_e^j
           + [c = e] { (2 eta tau (1-s) / p_c) sum_{j<K} P_c^{2j} + eta^2 sum_{j<K} P_c^j S_c P_c^j }.

`sums` has the sums as functions of curvatures, and `spectrum` what they mean for matrices.

Source: FA-LD, equations (7) and (11) (Algorithms 1 to 4) for the recursion; the law itself is derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.validation import Array

from .dispatch import exact
from .federated import Clients, FederatedFamily
from .joint import LocalStep
from .spectrum import Spectrum, round_clients
from .sums import EqualSteps, ListedSteps, Steps


@exact(FALD)
class FALDFamily(FederatedFamily):
    """What a round and a local step of FA-LD do in each client."""

    def rounds(self, problem: Any, algorithm: Any, variances: bool,
               sampling: bool) -> Callable[[int], Clients]:
        spectrum, count, schedule = Spectrum(problem), algorithm.local_steps, algorithm.schedule

        def clients(number: int) -> Clients:
            steps: Steps
            if schedule.is_constant:
                steps = EqualSteps(schedule.largest, count)
            else:
                steps = ListedSteps(schedule.at(np.arange(number * count, (number + 1) * count)))
            return round_clients(problem, spectrum, _LangevinRound(steps, algorithm.temperature),
                                 algorithm.shared_noise, variances, sampling)

        return clients

    def local(self, problem: Any, algorithm: Any) -> Callable[[int], LocalStep]:
        hessians, noise, unit = problem.dense_hessians, problem.noise_covariances, np.eye(problem.dim)
        pulls = np.einsum("cij,cj->ci", hessians, problem.minimizers)
        private = (1.0 - algorithm.shared_noise) / problem.weights[:, None, None] * unit

        def step(k: int) -> LocalStep:
            size = float(algorithm.schedule.at(k))
            own = 2.0 * size * algorithm.temperature * private
            if noise is not None:
                own = own + size**2 * noise
            return LocalStep(unit - size * hessians, size * pulls, own,
                             2.0 * size * algorithm.temperature * algorithm.shared_noise * unit)

        return step


@dataclass(frozen=True)
class _LangevinRound:
    """A round's sums as functions of curvature."""

    steps: Steps
    temperature: float

    def deviation(self, a: Array) -> Array:
        return self.steps.deviation(a)

    def injected(self, a: Array, b: Array) -> Array:
        return 2.0 * self.temperature * self.steps.overlap(a, b, 1)

    def gradient(self, a: Array, b: Array) -> Array:
        return self.steps.overlap(a, b, 2)
