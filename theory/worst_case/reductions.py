"""What the worst problem of a class may be reduced to: fewer coordinates, fewer clients, one angle.

Commuting Hessians: several coordinates are two scalar problems. Clients: at most four, often two. The bias of
FA-LD's mean is worse where Hessians do not commute. Every statement says for which problems it is proved;
what is only conjectured is called so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedsim.settings.validation import nonnegative, one_of, positive, real, shown, whole

from .certifying import Certified, certify
from .closed.closed_form import number_or_range
from .closed.fa_ld import below_two
from .closed.two_clients import geometric
from .numbers import Interval
from .problem_class import at_least_one

TWO_CLIENTS = ("fa_ld.stationary_w2", "fa_hmc.stationary_w2", "de_sgld.stationary_w2")


@dataclass(frozen=True)
class CommutingSupremum:
    """The worst W2 over problems of several coordinates whose Hessians commute.

    Attributes
    ----------
    lower, upper : float
        Proved ends.
    dim : int
    one, others : Certified
        The coordinate that has all of the gradients, and the worst one without any, `dim` - 1 times.

    Examples
    --------
    >>> worst = theory.worst_case.commuting_supremum(2, curvatures=(1.0, 10.0), step_size=0.02, local_steps=5,
    ...                                              heterogeneity=3.0)
    >>> [round(end**2, 5) for end in (worst.one.lower, worst.others.lower, worst.lower)]
    [0.01537, 0.00269, 0.01806]
    """

    lower: float
    upper: float
    dim: int
    one: Certified
    others: Certified

    @property
    def closed(self) -> bool:
        """Whether both parts are."""
        return self.one.closed and self.others.closed


def commuting_supremum(dim: int, quantity: str = "fa_ld.stationary_w2", *, curvatures: Any, step_size: float,
                       heterogeneity: float, local_steps: int = 1, leapfrog_steps: int = 1,
                       shared_noise: float = 0.0, weight: float = 0.5, gradient_noise: float = 0.0,
                       mixing: float | None = None, tolerance: float = 1e-4, most_boxes: int = 1_000_000,
                       progress: bool = False) -> CommutingSupremum:
    """The worst stationary W2 of two clients whose Hessians commute, in any dimension.

    In the common axes W2^2 = sum_j (t_j s(h_j)^2 + v(h_j)), where h_j is the pair of curvatures, the
    gradients at the minimizer are opposite, p_1 g_1 = -p_2 g_2, and t_j >= 0, sum t_j <= gamma^2, are the
    squares of the components of the larger one. The coordinates choose their curvatures apart from each
    other, so the worst is the largest sum_j F(t_j) with F(t) = sup_h (t s(h)^2 + v(h)). F is a supremum of
    affine functions, hence convex, and convex sums are largest at a corner of the simplex: F(gamma^2) +
    (dim - 1) F(0), two scalar problems. Without the hypothesis that Hessians commute this is false: see
    `rotated_bias`.

    Parameters
    ----------
    dim : int
        Coordinates.
    quantity : str
        "fa_ld.stationary_w2", "fa_hmc.stationary_w2" or "de_sgld.stationary_w2".
    curvatures : float or (low, high)
    step_size, heterogeneity, local_steps, leapfrog_steps, shared_noise, weight, gradient_noise, mixing
        As in `certify`, but numbers: no two coordinates may have different ones.
    tolerance, most_boxes, progress
        As in `certify`, of each of the two.

    Returns
    -------
    CommutingSupremum

    Raises
    ------
    ValueError
        Where `certify` does, and for ranges other than that of the curvatures.

    Source: derived here.

    Examples
    --------
    >>> worst = theory.worst_case.commuting_supremum(3, "fa_hmc.stationary_w2", curvatures=(1.0, 2.0),
    ...                                              step_size=0.1, leapfrog_steps=3, heterogeneity=1.0)
    >>> bool(0.0 < worst.lower <= worst.upper), worst.dim
    (True, 3)
    """
    dim = whole("dim", dim, 1)
    one_of("quantity", quantity, TWO_CLIENTS)
    numbers: dict[str, Any] = {"step_size": step_size, "shared_noise": shared_noise, "weight": weight,
                               "gradient_noise": gradient_noise}
    if mixing is not None:
        numbers["mixing"] = mixing
    for name, value in {**numbers, "heterogeneity": heterogeneity}.items():
        real(name, value)
    one, others = (certify(quantity, curvatures=curvatures, local_steps=local_steps, heterogeneity=most,
                           leapfrog_steps=leapfrog_steps, tolerance=tolerance, most_boxes=most_boxes,
                           progress=progress, **numbers) for most in (heterogeneity, 0.0))
    total = Interval(one.lower, one.upper) ** 2 + (dim - 1) * Interval(others.lower, others.upper) ** 2
    ends = total.sqrt()
    return CommutingSupremum(float(ends.lo), float(ends.hi), dim, one, others)


class Clients(NamedTuple):
    """How many clients are enough, and why.

    Attributes
    ----------
    number : int
        A problem with so many clients is as bad as any.
    at_end : bool
        Whether one of them may be taken to have the smallest or the largest curvature of the class.
    reason : str

    Examples
    --------
    >>> theory.worst_case.enough_clients(curvatures=(1.0, 10.0), step_size=0.02, local_steps=1).number
    1
    """

    number: int
    at_end: bool
    reason: str


def _third_zero(a: Any, K: int) -> Any:
    """sum_{0<k<K} 2k (2k-1) (2k-K) a^(2k-1): its sign, for a > 0, is that of a - a_K."""
    total: Any = 0
    for k in range(K - 1, 0, -1):
        total = total * a**2 + 2 * k * (2 * k - 1) * (2 * k - K)
    return total * a


def least_contraction(local_steps: int) -> float:
    """a_K: from 1 - step_size * smoothness >= a_K on, two clients are enough; see `enough_clients`.

    Parameters
    ----------
    local_steps : int
        K >= 3, at most 10,000.

    Returns
    -------
    float
        The positive zero of sum_{0<k<K} 2k (2k-1) (2k-K) a^(2k-1), whose coefficients change sign once, so
        that there is one (Descartes).

    Raises
    ------
    ValueError
        For a K outside of that range.

    Source: derived here.

    Examples
    --------
    >>> [round(theory.worst_case.least_contraction(K), 4) for K in (3, 4, 5, 10, 100)]
    [0.4082, 0.5081, 0.5832, 0.7693, 0.9749]
    """
    K = whole("local_steps", local_steps, 3, 10_000)
    low, high = 0.0, 1.0
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (low, middle) if _third_zero(middle, K) > 0.0 else (middle, high)


def enough_clients(*, curvatures: Any, step_size: float, local_steps: int = 1, heterogeneity: float = 0.0,
                   shared_noise: float = 0.0) -> Clients:
    """How many clients the worst stationary W2 of scalar FA-LD takes, when the weights are free.

    One dimension, any weights, no gradient noise, shared noise 0, and step_size * curvature < 2, so that 0
    < E B < 2. A problem is a probability nu on pairs (curvature h, gradient g at the minimizer). With a = 1
    - eta h and B = 1 - a^K the mean is off by -E(g B/h)/E B, the variance is V = 2 eta E geo(a^2, K)/(E B
    (2 - E B)), and the target's is T = 1/E h.

    Four. At given E h, E B and E g = 0, W2^2 is convex in the linear functionals E(g B/h) and E geo, since
    (sqrt V - sqrt T)^2 is convex in V. So it is largest at an extreme point of the nu with these four
    equalities (mass is one), and such a point has at most four atoms. Three where g = 0: one equality less.

    Two, one of them at an end of the range, where g = 0 and 1 - eta h >= a_K on all of the range: the
    second derivatives of geo(a^2, K) and a^K have an increasing ratio there (a_K of `least_contraction` is
    where its derivative vanishes), so no combination of 1, a, a^K and geo has more than three zeros, and by
    Markov and Krein the nu that are extreme in E geo at given E a and E a^K have one atom inside and one at
    an end. Without a hypothesis for two local steps, where E a and E a^2 determine V. One where there is
    one local step: only E h matters then.

    That two are enough beyond these conditions is a conjecture: searches found nothing worse.

    Parameters
    ----------
    curvatures : float or (low, high)
    step_size : float
    local_steps : int
    heterogeneity : float
        0 where all clients have the same minimizer; how large it is otherwise does not matter.
    shared_noise : float
        Has to be 0.

    Returns
    -------
    Clients
        The condition with a_K is decided in interval arithmetic; three where rounding leaves it open.

    Raises
    ------
    ValueError
        Outside of the hypotheses.

    Source: derived here.

    Examples
    --------
    >>> theory.worst_case.enough_clients(curvatures=(1.0, 10.0), step_size=0.02, local_steps=5)[:2]
    (2, True)
    >>> theory.worst_case.enough_clients(curvatures=(1.0, 10.0), step_size=0.08, local_steps=5).number
    3
    >>> theory.worst_case.enough_clients(curvatures=(1.0, 10.0), step_size=0.02, local_steps=5,
    ...                                  heterogeneity=1.0).number
    4
    """
    ends = number_or_range("curvatures", curvatures)
    high = ends[1] if isinstance(ends, tuple) else ends
    eta, K = positive("step_size", step_size), whole("local_steps", local_steps, 1, 10_000)
    gamma = nonnegative("heterogeneity", heterogeneity)
    if real("shared_noise", shared_noise) != 0.0:
        raise ValueError(f"shared_noise={shown(shared_noise)} must be 0: what is shared couples the "
                         "clients, and the noise is no longer linear in their distribution")
    below_two({"step_size": eta, "curvature": high})
    if not isinstance(ends, tuple) or K == 1:
        return Clients(1, False, "one local step: only the mean curvature matters" if K == 1 else
                       "one curvature: clients that differ in their minimizers only move alike")
    if gamma > 0.0:
        return Clients(4, False, "four linear equalities: mass, mean curvature, contraction and gradient")
    if K == 2:
        return Clients(2, True, "two local steps: mean curvature and mean contraction determine the variance")
    shown_least, least = f"1 - step_size*curvature={1.0 - eta * high:.6g}", least_contraction(K)
    contraction = 1 - Interval.exact(eta) * Interval.exact(high)
    if contraction.lo > 0.0 and _third_zero(contraction, K).lo >= 0.0:
        return Clients(2, True, f"{shown_least} is at least a_K={least:.6g}: Chebyshev systems")
    return Clients(3, False, f"three equalities; {shown_least} is below a_K={least:.6g}")


def commuting_bias(condition: float) -> float:
    """Leading factor of the worst bias of FA-LD's mean where Hessians commute: (kappa-1)/(kappa+1).

    Two clients, equal weights. The stationary mean is x_* + (eta (K-1)/2) H^-1 (1/2) sum_c H_c g_c +
    O(eta^2), by expanding I - (I - eta H_c)^K to second order, and with g_1 = -g_2 = g its size is eta
    (K-1)/2 times |(H_1 + H_2)^-1 (H_1 - H_2) g|. In common axes that is at most (L-m)/(L+m) |g|, attained
    at curvatures m and L.

    Parameters
    ----------
    condition : float
        kappa = L/m, at least 1.

    Returns
    -------
    float
        In units of heterogeneity * step_size * (local_steps - 1)/2.

    Raises
    ------
    ValueError
        For a condition below 1.

    Source: derived here.

    Examples
    --------
    >>> round(theory.worst_case.commuting_bias(10.0), 4)
    0.8182
    """
    kappa = at_least_one("condition", condition)
    return (kappa - 1.0) / (kappa + 1.0)


class RotatedBias(NamedTuple):
    """A worst bias, and the angle phi (radians) that attains it.

    The stiff directions are (cos phi, +-sin phi), and the gradients opposite along the second axis.

    Examples
    --------
    >>> round(theory.worst_case.rotated_bias(1.0).size, 4)
    0.0
    """

    size: float
    angle: float


def rotated_bias(condition: float) -> RotatedBias:
    """Leading factor of the worst bias of FA-LD's mean over all Hessians, two dimensions or more.

    It is (kappa-1)/(2 sqrt kappa), far above `commuting_bias`, for any number of clients with any weights
    p_c. Proof: with Hbar = sum p_c H_c, gradients g_c of sum 0 in p_c, and gamma^2 >= sum p_c |g_c|^2, let
    |e| = 1 and u = Hbar^-1 e. Since sum p_c <e, g_c> = 0,

        <e, Hbar^-1 sum p_c H_c g_c> = sum p_c <H_c u - e, g_c> <= gamma (sum p_c |H_c u|^2 - 1)^(1/2),

    because sum p_c H_c u = e. For m <= H <= L, |H u - (L+m) u/2| <= (L-m) |u|/2 gives |H u|^2 <= (L+m)
    <H u, u> - m L |u|^2, so that the bracket is at most (L+m) <e, u> - m L |u|^2 - 1 <= (L+m)^2/(4 m L) - 1
    = ((kappa-1)/(2 sqrt kappa))^2. Two clients with equal weights attain it.

    Parameters
    ----------
    condition : float
        kappa = L/m, at least 1.

    Returns
    -------
    RotatedBias
        In units of heterogeneity * step_size * (local_steps - 1)/2, and the angle phi with tan(phi)^2 =
        kappa: H_c = m I + (L-m) u_c u_c', u_c = (cos phi, +-sin phi), and gradients along the second axis
        attain it.

    Raises
    ------
    ValueError
        For a condition below 1.

    Source: derived here.

    Examples
    --------
    >>> found = theory.worst_case.rotated_bias(10.0)
    >>> round(found.size, 4), round(float(np.tan(found.angle)) ** 2, 6)
    (1.423, 10.0)
    """
    kappa = at_least_one("condition", condition)
    return RotatedBias((kappa - 1.0) / (2.0 * math.sqrt(kappa)), math.atan(math.sqrt(kappa)))


def rotated_bias_at(curvatures: tuple[float, float], step_size: float, local_steps: int,
                    heterogeneity: float) -> RotatedBias:
    """The worst bias of FA-LD's mean over the angle of two clients with both spectra {m, L}, in the plane.

    With z = cos(phi)^2 the bias is gamma eta |geo_L - geo_m| sqrt(z (1-z))/(B_m + (B_L - B_m) z), where
    geo_x = geo(1 - eta x, K) and B_x = eta x geo_x: largest at tan(phi)^2 = B_L/B_m. In the leading
    order that is `rotated_bias`, the worst of all Hessians between m and L. At a finite step size it is
    not: where step_size * L is above 1, spectra {m, x} with x < L can be worse (K = 3, step size .19: .230
    at x = 7.11 against .164 at L = 10). Whether it is up to step_size * L = 1 is not known.

    Parameters
    ----------
    curvatures : (low, high)
        m and L.
    step_size : float
    local_steps : int
    heterogeneity : float
        gamma.

    Returns
    -------
    RotatedBias
        Its size is gamma eta |geo_L - geo_m|/(2 sqrt(B_m B_L)).

    Raises
    ------
    ValueError
        For numbers outside of what they may be, and steps that are not stable.

    Source: derived here.

    Examples
    --------
    >>> found = theory.worst_case.rotated_bias_at((1.0, 10.0), 0.02, 5, 3.0)
    >>> worst = theory.worst_case.certify("fa_ld.stationary_bias", family="rotated", curvatures=(1.0, 10.0),
    ...                                   step_size=0.02, local_steps=5, heterogeneity=3.0)
    >>> bool(worst.lower <= found.size <= worst.upper), round(found.size, 6)
    (True, 0.170252)
    """
    ends = number_or_range("curvatures", curvatures)
    if not isinstance(ends, tuple):
        raise ValueError(f"curvatures={shown(curvatures)} must be a pair (low, high)")
    eta, K = positive("step_size", step_size), whole("local_steps", local_steps, 1, 10_000)
    below_two({"step_size": eta, "curvature": ends[1]})
    sums = [geometric(1.0 - eta * curvature, K) for curvature in ends]
    low, high = (eta * curvature * total for curvature, total in zip(ends, sums, strict=True))
    gamma = nonnegative("heterogeneity", heterogeneity)
    size = gamma * eta * abs(sums[0] - sums[1]) / (2.0 * math.sqrt(low * high))
    return RotatedBias(size, math.atan(math.sqrt(high / low)))
