"""An average of chains against the diffusion that keeps the target: one step, for recursions.

Y is the stationary diffusion dY = -grad f dt + sqrt(2 tau) dB, which has the target's law at all times;
xbar = sum_c p_c x_c is the average of chains x_c' = x_c - h (grad f_c(x_c) + noise) + injected noise, whose
injected noises add up to the Brownian increment of Y. Every f_c is m-strongly convex and L-smooth,
f = sum_c p_c f_c. Of random vectors ||.|| = (E|.|^2)^(1/2); q = (L+m)/2, r = (L-m)/2.

(S) |grad f_c(x) - grad f_c(y) - q (x-y)| <= r |x-y|. Proof: f_c - m|.|^2/2 is convex and (L-m)-smooth, and
    the co-coercivity <D, x-y> >= |D|^2/(L-m) of its gradient's difference D says that
    |D - (L-m)(x-y)/2| <= (L-m)|x-y|/2.
(P) sum_c p_c |x_c - y|^2 = |xbar - y|^2 + sum_c p_c |x_c - xbar|^2 for every y.
(D) The wandering D = int_0^h (grad f(Y_s) - grad f(Y_0)) ds has

        ||D||^2 <= (2/3) G h^3,    ||E[D|Y_0]||^2 <= c_P G h^3,    G = tau d L^2, c_P = .161393.

    Proof: Y is reversible; with mu the spectral measure of grad f, int l mu(dl) = tau E||Hess f||_F^2 <= G.
    E<g_s - g_0, g_t - g_0>, g = grad f(Y), has the density (1 - e^(-l s))(1 + e^(-l (t-s))) <= 2 l s for
    s <= t, and int int 2 min(s,t) = 2 h^3/3. E[D|Y_0] has the density (h - (1 - e^(-l h))/l)^2 =
    l h^3 phi(l h) with phi(z) = (1 - (1 - e^-z)/z)^2/z, whose supremum is c_P.
    Where the Hessian of f is known to be M-Lipschitz, |(Hess f(x) - Hess f(y)) u| <= M |x-y| |u|, also
    ||E[D|Y_0]|| <= (h^2/2)(L sqrt(L d tau) + tau d M): the generator takes grad f to
    -Hess f grad f + tau grad Laplace f, E|grad f(Y)|^2 <= L d tau and |grad Laplace f| <= d M.
"""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedsim.settings.validation import nonnegative

PREDICTED = 0.161393
"""c_P of (D), rounded up: the supremum is .16139281, at z = 2.149."""


def root(x: Any) -> Any:
    """Square root, also of the complex numbers that derivatives are taken with."""
    return cmath.sqrt(x) if isinstance(x, complex) else math.sqrt(x)


def least(found: Any, *others: Any) -> Any:
    """The smallest by its real part."""
    for other in others:
        if other.real < found.real:
            found = other
    return found


def surplus(large: Any, small: Any, gap: Any) -> Any:
    """sqrt(large) - sqrt(small) where large = small + gap, without loss; roots are given."""
    return gap / (large + small) if gap else 0.0


class Moved(NamedTuple):
    """What becomes of a square x: x' = x + change, both with their digits.

    Where a round hardly moves, the change must not be taken from x' - x, and where it forgets nearly all, x'
    must not be taken from x + change.
    """

    change: Any
    after: Any


def moved(near: Any, less: Any, extra: Any) -> Moved:
    """(near + less)^2 + extra for the square of near."""
    return Moved(less * (2.0 * near + less) + extra, (near + less) ** 2 + extra)


@dataclass(frozen=True)
class Potential:
    """f and its clients: m, L, d, the temperature tau, and M (None: not known)."""

    strong_convexity: float
    smoothness: float
    dim: int
    temperature: float = 1.0
    hessian_smoothness: float | None = None

    def __post_init__(self) -> None:
        if self.hessian_smoothness is not None:
            nonnegative("hessian_smoothness", self.hessian_smoothness)

    @property
    def middle(self) -> float:
        """q."""
        return 0.5 * (self.smoothness + self.strong_convexity)

    @property
    def radius(self) -> float:
        """r."""
        return 0.5 * (self.smoothness - self.strong_convexity)

    @property
    def reach(self) -> float:
        """B = sqrt(d tau/m) >= ||Y - theta_*||, for E<grad f(Y), Y - theta_*> = d tau."""
        return math.sqrt(self.dim * self.temperature / self.strong_convexity)

    def loss(self, h: float) -> float:
        """rho - 1, with rho = |1 - h q| + h r what a gradient step multiplies distances by at most."""
        return -h * self.strong_convexity if h * self.middle <= 1.0 else h * self.smoothness - 2.0

    def kept(self, h: float) -> float:
        """The least share of E that a step of either bound of `average_step` leaves."""
        coupled, mh = (1.0 + self.loss(h)) ** 2, self.strong_convexity * h
        return min(coupled, (1.0 - mh) / (1.0 + mh)) if h * self.smoothness <= 1.0 else coupled

    def shift(self, h: float, near: Any, gap: Any) -> Any:
        """|1 - h q| near + h r (near + gap) - near."""
        return self.loss(h) * near + h * self.radius * gap

    def wandering(self, h: float) -> tuple[float, float]:
        """The bounds of ||D||^2 and of ||E[D|Y_0]||."""
        tau, d, L = self.temperature, self.dim, self.smoothness
        cube = tau * d * (L * h) ** 2 * h
        predicted = math.sqrt(PREDICTED * cube)
        if self.hessian_smoothness is not None:
            drift = L * math.sqrt(L * d * tau) + tau * d * self.hessian_smoothness
            predicted = min(predicted, 0.5 * h * h * drift)
        return 2.0 / 3.0 * cube, predicted


class Step(NamedTuple):
    """E' = E + change = factor E + sum of what is added, by name; E is a square."""

    change: Any
    factor: Any
    added: dict[str, Any]

    def of(self, E: Any) -> Moved:
        """What becomes of E."""
        return Moved(self.change, self.factor * E + sum(self.added.values()))


def coupled_step(E: Any, spread: Any, h: float, f: Potential, noise: float) -> Step:
    """A bound of ||xbar' - Y'||^2 given E >= ||xbar - Y||^2, by the coupling itself.

    `spread` is at least sum_c p_c ||x_c - xbar||^2, `noise` sum_c p_c^2 E|gradient noise of c|^2.

    With D of (D) and zeta the averaged gradient noise,

        xbar' - Y' = sum_c p_c [(x_c - Y) - h (grad f_c(x_c) - grad f_c(Y))] + D - h zeta.

    The sum is (1 - h q)(xbar - Y) - h sum_c p_c [grad f_c(x_c) - grad f_c(Y) - q (x_c - Y)], by (S), Jensen
    and (P) at most A = |1 - h q| sqrt(E) + h r sqrt(E + spread). It is known before the step, as E[D|Y_0] is;
    the rest of D and zeta are centred given that, and orthogonal:

        E' = A^2 + 2 A ||E[D|Y_0]|| + ||D||^2 + h^2 noise            for every h.
    """
    total, predicted = f.wandering(h)
    near, far = root(E), root(E + spread)
    gap = surplus(far, near, spread)
    less, loss = f.shift(h, near, gap), f.loss(h)
    drift, A = h * f.radius * gap, near + less
    wander = 2.0 * A * predicted + total
    return Step(less * (2.0 * near + less) + wander + h * h * noise, (1.0 + loss) ** 2,
                {"client_drift": drift * (A + (1.0 + loss) * near), "discretization": wander,
                 "gradient_noise": h * h * noise})


def average_step(E: Any, spread: Any, h: float, f: Potential, noise: float) -> Step:
    """The smaller of two bounds of W2(xbar', target)^2, given E >= W2(xbar, target)^2.

    One is that of `coupled_step`, the other, for h L <= 1, one of energy. Let
    X' = xbar - h sum_c p_c grad f_c(x_c). Smoothness of f_c from x_c to X', convexity from x_c to Y, and (P)
    give
    2h (f(X') - f(Y)) <= (1 - mh)|xbar - Y|^2 - |X' - Y|^2 + h (L-m) sum_c p_c |x_c - xbar|^2. The noises
    raise E f by at most L h^2 noise/2 + L h tau d. The heat flow is the gradient flow of entropy H:
    W2(after)^2 <= W2(before)^2 + 2 h tau (H(target) - H(after)). Added up, 2 h tau times the relative entropy
    remains on the left, at least m h W2^2 (Talagrand):

        (1 + m h) E' = (1 - m h) E + h (L-m) spread + 2 L d tau h^2 + h^2 (1 + h L) noise

    (one chain: Durmus, Majewski and Miasojedow, durmus2019 of papers.bib). Both are increasing in E and in
    the spread and speak of W2, so that one may change from one to the other at every step.
    """
    coupled = coupled_step(E, spread, h, f, noise)
    m, L = f.strong_convexity, f.smoothness
    if h * L > 1.0:
        return coupled
    share = 1.0 / (1.0 + m * h)
    added = {"client_drift": share * h * (L - m) * spread,
             "discretization": share * 2.0 * L * f.dim * f.temperature * h * h,
             "gradient_noise": share * h * h * (1.0 + h * L) * noise}
    energetic = Step(sum(added.values()) - 2.0 * m * h * share * E, (1.0 - m * h) * share, added)
    return energetic if energetic.change.real < coupled.change.real else coupled
