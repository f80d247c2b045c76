"""FA-HMC's own coupling, evaluated update by update, with the sharp contraction of `contraction`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..recursions.federated import Federated
from ..recursions.langevin import Moved, Potential, Step, average_step, moved, root
from .contraction import Contraction


class NotCertified(ValueError):
    """The contraction of a trajectory is not proved: the bound has no value.

    Examples
    --------
    >>> issubclass(theory.fa_hmc.NotCertified, ValueError)
    True
    """


@dataclass(frozen=True)
class Trajectory:
    """What K leapfrogs of one step size have whatever the state is; f has temperature 1.

    Attributes
    ----------
    contraction : Contraction
    half : Array, (K + 1,), h_j = (j eta)^2/2
    drift : Array, (K,), r c b_j/cos(j phi): what the clients' spread at leapfrog j adds to E
    error : float, eps_K >= ||K leapfrogs of f - its exact flow||, from the target
    noise : float, N_K^2, of gradient noise that is centred given the momentum
    rest : float, the rest of it over sqrt(sum_c p_c v_c)
    """

    contraction: Contraction
    half: list[float]
    drift: list[float]
    error: float
    noise: float
    rest: float


def _accumulated(kicks: Sequence[float], pull: float) -> float:
    """eps_K of eps_k = sum_{j<k} (k-j) (kicks_j + pull eps_j), eps_0 = 0."""
    value = slope = 0.0
    for kick in kicks:
        slope += kick + pull * value
        value += slope
    return value


@lru_cache(maxsize=1024)
def trajectory(f: Potential, step_size: float, leapfrog_steps: int) -> Trajectory:
    """The trajectories of one step size; `NotCertified` beyond what is proved."""
    K, L, d, M = leapfrog_steps, f.smoothness, f.dim, f.hessian_smoothness
    one = Contraction(f.strong_convexity, L, step_size, K)
    if not one.certified:
        raise NotCertified(f"step_size={step_size:g} with leapfrog_steps={K}: the contraction of "
                           f"trajectories of length {K * step_size:g} {one.reason} at smoothness="
                           f"{L:g}; they must be shorter, at most about {1.4 / math.sqrt(L):.3g}")
    jump = math.sqrt(d) * L * step_size**3 / 6.0
    later = 2.0 * jump
    if M is not None:
        later = min(later, step_size**4 / 12.0 * (M * math.sqrt(d * (d + 2.0)) + L * math.sqrt(L * d)))
    pull = step_size**2 * L
    errors = _accumulated([jump] + [later] * (K - 1), pull)
    ks = np.arange(1, K + 1)
    noises = step_size**4 * (ks**2 / 4.0 + (ks - 1) * ks * (2 * ks - 1) / 12.0)
    reached = np.sqrt(noises).tolist()
    return Trajectory(one, (0.5 * (np.arange(K + 1) * step_size) ** 2).tolist(),
                      (f.radius * one.factor * one.reach / one.cosines).tolist(), errors, float(noises[-1]),
                      _accumulated([pull * one for one in reached[:-1]], pull))


class Rounds(Federated):
    """See `w2_recursion`."""

    @property
    def work(self) -> int:
        """Leapfrog steps of a round."""
        return int(self.algorithm.local_steps * self.algorithm.leapfrog_steps)

    def update(self, size: float) -> Trajectory:
        """Its trajectory."""
        return trajectory(self.potential, size, self.algorithm.leapfrog_steps)

    @property
    def kept(self) -> float:
        """The least share of E that a round leaves."""
        path, count = self.given(0)[0], len(self.given(0))
        one = 1.0 - path.contraction.lost
        return float((min(one, self.potential.kept(path.half[-1])) if len(path.drift) == 1 else one) ** count)

    def local(self, path: Trajectory, E: Any, S: Any, near: Any, beyond: Any, far: Any,
              ) -> tuple[Step, Moved, Moved, Any]:
        """One update of K leapfrogs."""
        f, h, X_sq = self.potential, path.half[-1], 2.0 * path.half[-1]
        shared, N = self.algorithm.shared_noise, self.clients
        heat, apart = f.dim * (shared + N * (1.0 - shared)), f.dim * (1.0 - shared) * (N - 1)
        swept, spreads, last = self._inside(path, root(S), near + beyond, heat, apart)
        step = self._coupled(E, path, spreads)
        if len(path.drift) == 1:
            other = average_step(E, S, h, f, self.noise)
            step = other if other.change.real < step.change.real else step
        rest = path.rest * math.sqrt(self.noises)
        extra = swept + rest
        less, more = f.shift(h, near, beyond), f.loss(h) * far + h * self.gradients
        return (step, _after(near, less, X_sq * f.dim + path.noise * self.noise, extra),
                _after(far, more, X_sq * heat + path.noise * self.noises, extra),
                (root(last**2 + path.noise * (self.noises - self.noise)) + rest) ** 2)

    def _inside(self, path: Trajectory, spread: Any, w: Any, heat: float, apart: float,
                ) -> tuple[Any, list[Any], Any]:
        """eta^2 L sum (K-i) n_i, the s_j^2 for j < K, and s_K."""
        f, Gamma, h = self.potential, self.gradients, path.half
        q, r, pull = f.middle, f.radius, 2.0 * h[1]
        fast, slow = Gamma + f.smoothness * w, q * spread + r * w + Gamma
        moved = moving = other = turning = 0.0
        spreads = [spread**2]
        for j in range(1, len(h)):
            own = root((abs(1.0 - h[j] * q) * spread + h[j] * (r * w + Gamma)) ** 2
                       + 2.0 * h[j] * apart) + other
            if j == len(h) - 1:
                return moved, spreads, own
            n = root(2.0 * h[j] * heat + (h[j] * fast) ** 2) + moved
            a = root(2.0 * h[j] * apart + (h[j] * slow) ** 2) + other
            spreads.append(own**2)
            moving += pull * f.smoothness * n
            turning += pull * (q * a + r * n)
            moved += moving
            other += turning
        raise AssertionError

    def _coupled(self, E: Any, path: Trajectory, spreads: Sequence[Any]) -> Step:
        """(3.2) of `w2_recursion`."""
        drift = sum((share * spread for share, spread in zip(path.drift, spreads, strict=True)), 0.0)
        lost, eps, noise = path.contraction.lost, path.error, path.noise * self.noise
        rest = path.rest * math.sqrt(self.noises)
        near = root((1.0 - lost) * E + drift)
        final = root((near + eps) ** 2 + noise)
        added = {"client_drift": drift, "discretization": eps * (2.0 * near + eps),
                 "gradient_noise": noise + rest * (2.0 * final + rest)}
        return Step(sum(added.values()) - lost * E, 1.0 - lost, added)


def _after(near: Any, less: Any, noise: float, extra: Any) -> Moved:
    """(sqrt((near + less)^2 + noise) + extra)^2 for the square of near."""
    first = moved(near, less, noise)
    beyond = extra * (2.0 * root(first.after) + extra)
    return Moved(first.change + beyond, first.after + beyond)
