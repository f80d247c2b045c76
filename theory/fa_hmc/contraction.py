"""How fast K leapfrogs draw two chains of one potential together, with the same momentum: proved sharply.

Let z_j be the chains' distance after j leapfrogs of step size eta, and w_j the difference of the gradients
of f - m|.|^2/2 there, so that <w_j, (L-m) z_j - w_j> >= 0 (co-coercivity: f is m-strongly convex and
L-smooth). With cos phi = 1 - eta^2 m/2, U_n = sin(n phi)/sin(phi), o_0 = eta^2/2 and o_j = eta^2 for
j >= 1, leapfrogs are

    z_j = cos(j phi) z_0 - sum_{i<j} o_i U_{j-i} w_i,        j = 1, ..., K.

Let c = cos(K phi), b_j = o_j U_{K-j} and the multipliers lambda_j = 2 c b_j/((L-m) cos(j phi)), by which
terms linear in z_0 cancel. Then, identically in z_0 and all w_j,

    c^2 |z_0|^2 - |z_K|^2 - sum_j lambda_j <w_j, (L-m) z_j - w_j> = sum_ij S_ij <w_i, w_j>,
    S = diag(lambda) + (T + T')/2 - b b',    T_ji = lambda_j (L-m) o_i U_{j-i} for i < j, else 0.

If c and all cos(j phi) are positive, and S is positive semidefinite, then |z_K| <= c |z_0| for every such f,
in every dimension; f = m|x|^2/2 attains it. This is a certificate for (m, L, eta, K): the paper's factor for
|z|^2 is 1 - m (K eta)^2/4, c^2 is about 1 - m (K eta)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.settings.validation import Array, positive, set_fields, whole

LARGEST = 2000
"""Most leapfrog steps of which a matrix is made."""
ROUNDING = 1e-13
"""Relative to its diagonal, by which S may miss being positive semidefinite."""


@dataclass(frozen=True)
class Contraction:
    """See the module's docstring.

    Parameters
    ----------
    strong_convexity, smoothness : float
        m and L.
    step_size : float
        eta, of one leapfrog.
    leapfrog_steps : int
        K.

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Examples
    --------
    >>> found = theory.fa_hmc.Contraction(0.1, 1.0, 1/3, 3)
    >>> found.certified, round(found.factor**2, 8)
    (True, 0.90320254)
    """

    strong_convexity: float
    smoothness: float
    step_size: float
    leapfrog_steps: int

    def __post_init__(self) -> None:
        for name in ("strong_convexity", "smoothness", "step_size"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.strong_convexity > self.smoothness * (1.0 + 1e-12):
            raise ValueError(f"strong_convexity={self.strong_convexity:g} must be at most "
                             f"smoothness={self.smoothness:g}")
        set_fields(self, leapfrog_steps=whole("leapfrog_steps", self.leapfrog_steps, 1, LARGEST))

    @cached_property
    def angle(self) -> float:
        """phi; pi where the leapfrog of m|x|^2/2 leaves its range."""
        return 2.0 * math.asin(min(1.0, 0.5 * self.step_size * math.sqrt(self.strong_convexity)))

    @property
    def factor(self) -> float:
        """c: what K leapfrogs multiply distances by at most, where `certified`."""
        return math.cos(self.leapfrog_steps * self.angle)

    @property
    def lost(self) -> float:
        """1 - c^2, without loss."""
        return math.sin(self.leapfrog_steps * self.angle) ** 2

    @cached_property
    def reach(self) -> Array:
        """b_j, (K,)."""
        K, steps = self.leapfrog_steps, self.step_size**2 * np.ones(self.leapfrog_steps)
        steps[0] *= 0.5
        return steps * self._waves(K - np.arange(K))

    @property
    def cosines(self) -> Array:
        """cos(j phi) for j < K."""
        return np.cos(np.arange(self.leapfrog_steps) * self.angle)

    @cached_property
    def multipliers(self) -> Array:
        """lambda_j (L-m), (K,)."""
        return 2.0 * self.factor * self.reach / self.cosines

    @cached_property
    def matrix(self) -> Array:
        """(L-m) S, (K, K)."""
        K, wide = self.leapfrog_steps, self.smoothness - self.strong_convexity
        steps = np.full(K, self.step_size**2)
        steps[0] *= 0.5
        place = np.arange(K)
        between = np.tril(self._waves(np.maximum(place[:, None] - place, 0)), -1)
        lower = wide * self.multipliers[:, None] * steps * between
        return np.diag(self.multipliers) + 0.5 * (lower + lower.T) - wide * np.outer(self.reach, self.reach)

    @cached_property
    def margin(self) -> float:
        """Least eigenvalue of S scaled to its multipliers; at least 0 where `certified`."""
        if self.leapfrog_steps * self.angle >= 0.5 * math.pi:
            return -1.0
        scale = 1.0 / np.sqrt(self.multipliers)
        return float(np.linalg.eigvalsh(scale[:, None] * self.matrix * scale)[0])

    @property
    def certified(self) -> bool:
        """Whether the factor is proved."""
        return self.margin >= -ROUNDING * self.leapfrog_steps

    def _waves(self, n: Any) -> Any:
        """U_n."""
        return np.sin(n * self.angle) / math.sin(self.angle)
