"""How many clients the worst problem takes: at most four, often two."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from fedsim.settings.validation import nonnegative, positive, real, shown, whole

from ..closed.arguments import number_or_range
from ..intervals import Interval


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
    if Fraction(eta) * Fraction(high) >= 2:
        raise ValueError(f"step_size={step_size!r} must be less than 2/curvature={2.0 / high:.6g} at the "
                         f"largest curvature {high!r} of the class: beyond it no law is stationary")
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
