"""How fast K leapfrogs draw two chains of one potential together, with the same momentum: proved sharply.

Let z_j be the chains' distance after j leapfrogs of step size eta, and w_j the difference of the gradients
of f - m|.|^2/2 there, so that <w_j, (L-m) z_j - w_j> >= 0 (co-coercivity: f is m-strongly convex and
L-smooth). With cos phi = 1 - eta^2 m/2, C_n = cos(n phi), U_n = sin(n phi)/sin(phi), o_0 = eta^2/2 and
o_j = eta^2 for j >= 1, leapfrogs are

    z_j = C_j z_0 - sum_{i<j} o_i U_{j-i} w_i,        j = 1, ..., K.

Let c = C_K, b_j = o_j U_{K-j} and the multipliers lambda_j = 2 c b_j/((L-m) C_j), by which terms linear in
z_0 cancel. Then, identically in z_0 and all w_j,

    c^2 |z_0|^2 - |z_K|^2 - sum_j lambda_j <w_j, (L-m) z_j - w_j> = sum_ij S_ij <w_i, w_j>,
    S = diag(lambda) + (T + T')/2 - b b',    T_ji = lambda_j (L-m) o_i U_{j-i} for i < j, else 0.

If c and all C_j are positive, and S is positive semidefinite, then |z_K| <= c |z_0| for every such f,
in every dimension; f = m|x|^2/2 attains it. This is a certificate for (m, L, eta, K): the paper's factor for
|z|^2 is 1 - m (K eta)^2/4, c^2 is about 1 - m (K eta)^2.

All numbers are polynomials in eta^2 m and eta^2 L (Chebyshev's), so that for the doubles given the question
is one of fractions. It needs no matrix: as C_K U_{j-i} - C_j U_{K-i} = -U_{K-j} C_i, for i <= j

    (L-m) S_ij = [i = j] 2 c b_j/C_j - (L-m) o_i o_j C_i C_j u_j^2,        u_j = U_{K-j}/C_j,

and u_j^2 falls to u_K = 0: a positive diagonal less a Gram matrix of sums, sum_{k>=j} (u_k^2 - u_{k+1}^2).
By Schur's complement S >= 0 exactly if a tridiagonal matrix is, and with
u_k^2 - u_{k+1}^2 = c V_k/(C_k C_{k+1})^2, V_k = U_{K-k} C_{k+1} + U_{K-k-1} C_k, its pivots are, up to
positive factors, p_k = C_{k+1}^2 - s_k V_k for k < K, where y = eta^2 (L-m) and

    s_0 = y/(4 U_K),        s_k = C_{k-1}^2 s_{k-1}/p_{k-1} + y C_k/(2 U_{K-k}).

So S >= 0 exactly if p_0, ..., p_{K-2} > 0 and p_{K-1} >= 0. Their signs are decided by integers of growing
precision (`theory.certificates.decided`), and what that leaves open by LDL' of S in fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fedsim.settings.validation import Array, positive, set_fields, whole

from ..certificates import decided, refuse_flushing, semidefinite

LARGEST = 2000
"""Most leapfrog steps that are looked at."""
LARGEST_MATRIX = 12
"""Most of which S is written down, and eliminated within a second: its fractions have 50 K^2 digits."""
BELOW = -1e-300
"""The margin of what is not proved, and misses it by nothing that floats could tell."""


class Judged(NamedTuple):
    """What is proved of a trajectory: whether its factor holds; the least p_k/C_{k+1}^2, cut off at -1."""

    holds: bool
    margin: float


def _judged(x: Any, y: Any, K: int) -> Judged:
    """By the recursion of the module's docstring, at x = eta^2 m; `Undecided` where digits do not suffice."""
    cosine, sine_sq = 1 - x / 2, x - x * x / 4
    C, U = [0 * x + 1], [0 * x]
    for _ in range(K):
        C, U = [*C, cosine * C[-1] - sine_sq * U[-1]], [*U, cosine * U[-1] + C[-1]]
        if C[-1].sign <= 0:
            return Judged(False, -1.0)
    margin, s, p = math.inf, y / (4 * U[K]), C[0]
    for k in range(K):
        if k:
            s = C[k - 1] * C[k - 1] * s / p + y * C[k] / (2 * U[K - k])
        square = C[k + 1] * C[k + 1]
        p = square - s * (U[K - k] * C[k + 1] + U[K - k - 1] * C[k])
        margin = min(margin, float(max((p / square).least, Fraction(-1))))
        if p.sign < 0 or (p.sign == 0 and k < K - 1):
            return Judged(False, min(margin, BELOW))
    return Judged(True, max(margin, 0.0))


@dataclass(frozen=True)
class Contraction:
    """See the module's docstring.

    Parameters
    ----------
    strong_convexity, smoothness : float
        m and L: exactly these doubles. An L that is below m by rounding counts as m.
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
    >>> [theory.fa_hmc.Contraction(1.0, 3.0, eta, 1).certified for eta in (1.0, np.nextafter(1.0, 2.0))]
    [True, False]
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
        return steps * (np.sin((K - np.arange(K)) * self.angle) / math.sin(self.angle))

    @property
    def cosines(self) -> Array:
        """cos(j phi) for j < K."""
        return np.cos(np.arange(self.leapfrog_steps) * self.angle)

    @cached_property
    def matrix(self) -> list[list[Fraction]]:
        """(L-m) S in fractions of the doubles given, K x K.

        Raises
        ------
        ValueError
            For more than 12 leapfrogs, or where c or a cos(j phi) is not positive.
        """
        K, (x, y) = whole("leapfrog_steps", self.leapfrog_steps, 1, LARGEST_MATRIX), self._numbers
        wide = y / Fraction(self.step_size) ** 2
        C, U = [Fraction(1), 1 - x / 2], [Fraction(0), Fraction(1)]
        for _ in range(K - 1):
            C.append(2 * C[1] * C[-1] - C[-2])
            U.append(2 * C[1] * U[-1] - U[-2])
        if min(C) <= 0:
            raise ValueError(f"step_size={self.step_size!r} with leapfrog_steps={K} must leave all "
                             "cos(j phi) positive")
        o = [Fraction(self.step_size) ** 2 / (1 if j else 2) for j in range(K)]
        reach = [o[j] * U[K - j] for j in range(K)]
        multipliers = [2 * C[K] * reach[j] / C[j] for j in range(K)]

        def entry(i: int, j: int) -> Fraction:
            own = multipliers[j] if i == j else wide * multipliers[j] * o[i] * U[j - i] / 2
            return own - wide * reach[i] * reach[j]

        return [[entry(min(i, j), max(i, j)) for j in range(K)] for i in range(K)]

    @property
    def _numbers(self) -> tuple[Fraction, Fraction]:
        """x = eta^2 m and y = eta^2 (L-m)."""
        refuse_flushing()  # a double below 2^-1022 would become another fraction
        m, L, square = (Fraction(value) for value in (self.strong_convexity, self.smoothness, self.step_size))
        return square**2 * m, square**2 * max(L - m, Fraction(0))

    @cached_property
    def _found(self) -> Judged | None:
        """None where nothing is decided."""
        K = self.leapfrog_steps
        found = decided(lambda x, y: _judged(x, y, K), *self._numbers)
        if found is None and K <= LARGEST_MATRIX:
            holds = semidefinite(self.matrix).holds
            found = Judged(holds, 0.0 if holds else BELOW)
        return found

    @property
    def margin(self) -> float:
        """Least p_k/C_{k+1}^2, at most 1, or -1 where K phi >= pi/2; at least 0 exactly where `certified`."""
        return BELOW if self._found is None else self._found.margin

    @property
    def certified(self) -> bool:
        """Whether the factor is proved, for exactly the doubles given."""
        refuse_flushing()
        return self._found is not None and self._found.holds

    @property
    def reason(self) -> str:
        """Why it is not; "" where it is."""
        if self._found is None:
            return "is computed, not certified: it is so near its limit that 8192 bits do not tell the side"
        return "" if self._found.holds else "is not certified"
