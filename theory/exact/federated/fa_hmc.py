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

from ..families import exact
from .chain import Part, Repeat
from .joint import LocalStep
from .rounds import FederatedFamily
from .spectrum import ClientMaps, apply

FRESH = Part([[0.0, 0.0], [0.0, -1.0]], noise=[0.0, 1.0])
"""The momentum is drawn anew."""


def leapfrog(eta: Any, steps: int) -> Repeat:
    """So many leapfrog steps of (theta, p)."""
    half = Part([[0.0, 0.0], [0.0, 0.0]], kick=[0.0, 0.5 * eta])
    return Repeat([half, Part([[0.0, eta], [0.0, 0.0]]), half], steps)


@exact(FAHMC)
class FAHMCFamily(FederatedFamily):
    """A fresh momentum and leapfrog steps; and where debiasing moves the clients' centres."""

    def chain(self, algorithm: Any, eta: Any) -> list[Any]:
        return [FRESH, leapfrog(eta, algorithm.leapfrog_steps)]

    def memory(self, algorithm: Any) -> int:
        return {None: 0, "fresh": 1, "stale": 2}[algorithm.debias]

    def head(self, algorithm: Any) -> int:
        return int(algorithm.debias == "stale")

    def rounds(self, problem: Any, algorithm: Any, variances: bool,
               sampling: bool) -> tuple[Callable[[np.ndarray], ClientMaps], int]:
        plain, together = super().rounds(problem, algorithm, variances, sampling)
        return lambda numbers: self.anchored(problem, algorithm, plain(numbers), numbers == 0), together

    def anchored(self, problem: Any, algorithm: Any, own: ClientMaps, first: np.ndarray) -> ClientMaps:
        if algorithm.debias is None:
            return own
        if own.deviations.ndim == 4:
            towards = np.linalg.solve(problem.dense_hessians, -own.deviations) @ problem.mean_hessian
        else:
            towards = -own.deviations / problem.diagonal_hessians * problem.mean_hessian
        pulls = apply(towards, problem.minimizer[None])
        if algorithm.debias == "fresh":
            return replace(own, deviations=-towards, pulls=pulls)
        anchored = -own.deviations - towards
        if algorithm.first_round == "none":
            pulls[first], anchored[first] = own.pulls[first], 0.0
        elif algorithm.first_round == "printed":
            pulls[first] = 0.0
        return replace(own, pulls=pulls, anchored=anchored)

    def local(self, problem: Any, algorithm: Any) -> Callable[[int], LocalStep]:
        plain, unit = super().local(problem, algorithm), np.eye(problem.dim)
        mean = problem.mean_hessian if problem.mean_hessian.ndim == 2 else np.diag(problem.mean_hessian)
        shift = unit - np.linalg.solve(problem.dense_hessians, mean[None])
        centres = problem.minimizer - shift @ problem.minimizer

        def step(k: int) -> LocalStep:
            own, early = plain(k), algorithm.debias == "stale" and k < algorithm.local_steps
            kind = algorithm.first_round if early else "corrected"
            if kind == "none":
                return own
            away, still = unit - own.maps, float(kind != "printed")
            return own._replace(shifts=still * (away @ centres[..., None])[..., 0], anchors=away @ shift)

        return plain if algorithm.debias is None else step
