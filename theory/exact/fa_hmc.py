"""Exact law of FA-HMC on quadratic clients, debiased or not.

K leapfrog steps of size eta on a client with Hessian A and minimizer b are, from x with momentum p,

    x' = C x + (I - C) b + D p + nu,     C = T_K(I - eta^2 A / 2),     D_k = eta U_{k-1}(I - eta^2 A / 2),

D = D_K, T and U the Chebyshev polynomials. Of the 2K - 1 gradient evaluations that matter the first one
and two at each interior point have independent noise of covariance S, and so

    Cov(nu) = V = (eta^2/4) [ D_K S D_K + 2 sum_{0<i<K} D_i S D_i ].

With momentum sqrt(s) xi + sqrt((1-s)/w_c) xi^c, T such updates make G_c = C_c^T and

    Q_ce = s sum_{j<T} C_c^j D_c D_e C_e^j
           + [c = e] { ((1-s)/w_c) sum_{j<T} C_c^j D_c^2 C_c^j + sum_{j<T} C_c^j V_c C_c^j }.

`fa_hmc_flow` has the limit of vanishing step size.

Debiasing moves the client's centre to z - A_c^{-1} (Abar z - h) with Abar = sum_c w_c A_c,
h = sum_c w_c A_c b_c and z the anchor, so that with R_c = (I - G_c) A_c^{-1}

    beta^c = G_c x + (I - G_c) z - R_c (Abar z - h) + xi^c.

A fresh anchor is z = x. A stale one is the server's previous value, and the state of a round (x, z);
who is drawn picks among these maps of the state, so that the moments with participation stay closed.

Source: FA-HMC Algorithms 1 and 3, B.2, and section 6 for the recursions; the laws are derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_hmc import FAHMC
from fedsim.validation import Array

from .dispatch import exact
from .federated import Clients, FederatedFamily
from .joint import LocalStep
from .spectrum import Spectrum, round_clients
from .updates import EqualUpdates, Leapfrog, ListedUpdates, Update


@exact(FAHMC)
class FAHMCFamily(FederatedFamily):
    """What a round and a local update of FA-HMC do in each client."""

    def update(self, algorithm: Any, step: int) -> Update:
        """The local update number `step`."""
        return Leapfrog(float(algorithm.schedule.at(step)), algorithm.leapfrog_steps)

    def memory(self, algorithm: Any) -> int:
        return {None: 0, "fresh": 1, "stale": 2}[algorithm.debias]

    def head(self, algorithm: Any) -> int:
        return int(algorithm.debias == "stale")

    def rounds(self, problem: Any, algorithm: Any, variances: bool,
               sampling: bool) -> Callable[[int], Clients]:
        spectrum, count = Spectrum(problem), algorithm.local_steps

        def clients(number: int) -> Clients:
            updates: EqualUpdates | ListedUpdates
            if algorithm.schedule.is_constant:
                updates = EqualUpdates(self.update(algorithm, 0), count)
            else:
                steps = range(number * count, (number + 1) * count)
                updates = ListedUpdates(tuple(self.update(algorithm, step) for step in steps))
            found = round_clients(problem, spectrum, updates, algorithm.shared_noise, variances, sampling)
            if algorithm.debias is None:
                return found
            values = spectrum.values
            inverse = spectrum.compose(-updates.deviation(values) / values)[spectrum.group]
            towards = inverse @ problem.mean_hessian if spectrum.dense else inverse * problem.mean_hessian
            if algorithm.debias == "fresh":
                return replace(found, deviations=-towards, pulls=_apply(towards, problem.minimizer))
            kind = "corrected" if number else algorithm.first_round
            if kind == "none":
                return replace(found, anchored=np.zeros_like(towards))
            pulls = np.zeros_like(found.pulls) if kind == "printed" else _apply(towards, problem.minimizer)
            return replace(found, pulls=pulls, anchored=-found.deviations - towards)

        return clients

    def local(self, problem: Any, algorithm: Any) -> Callable[[int], LocalStep]:
        spectrum, common, noise = Spectrum(problem), algorithm.shared_noise, problem.noise_covariances
        unit, every = np.eye(problem.dim), algorithm.local_steps
        values, vectors = spectrum.values, spectrum.vectors
        if not spectrum.dense:
            vectors = np.broadcast_to(unit, (len(values), *unit.shape))
        bases, back = vectors[spectrum.group], np.swapaxes(vectors, 1, 2)[spectrum.group]

        def compose(diagonal: Array) -> Array:
            return (bases * diagonal[spectrum.group][:, None, :]) @ back

        shift = unit - np.linalg.solve(problem.dense_hessians, np.broadcast_to(
            problem.mean_hessian if spectrum.dense else np.diag(problem.mean_hessian), bases.shape))

        def step(k: int) -> LocalStep:
            update = self.update(algorithm, k)
            deviation, reach = update.maps(values)
            maps, reaches = unit + compose(deviation), compose(reach)
            own = (1.0 - common) / problem.weights[:, None, None] * (reaches @ reaches)
            if noise is not None:
                sums = update.gradient(values[:, :, None], values[:, None, :])[spectrum.group]
                own = own + bases @ ((back @ noise @ bases) * sums) @ back
            centres, anchors = problem.minimizers, None
            kind = algorithm.first_round if algorithm.debias == "stale" and k < every else "corrected"
            if algorithm.debias is not None and kind != "none":
                anchors = (unit - maps) @ shift
                exact_pull = problem.minimizer - shift @ problem.minimizer
                centres = np.zeros_like(centres) if kind == "printed" else exact_pull
            pulls = np.einsum("cij,cj->ci", unit - maps, centres)
            return LocalStep(maps, pulls, own, common * reaches[:, None] @ reaches, anchors)

        return step


def _apply(maps: Array, point: Array) -> Array:
    """Maps (N, d, d) or (N, d) at one point (d,)."""
    return maps @ point if maps.ndim == 3 else maps * point
