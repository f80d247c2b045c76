"""The bias of FA-LD's mean: worse where Hessians do not commute, and at which angle."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fedsim.settings.validation import nonnegative, positive, shown, whole

from ..closed.arguments import number_or_range
from ..closed.fa_ld import below_two
from ..closed.sums import geometric


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
    kappa = _condition(condition)
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
    kappa = _condition(condition)
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


def _condition(condition: Any) -> float:
    kappa = positive("condition", condition)
    if kappa < 1.0:
        raise ValueError(f"condition={shown(condition)} must be at least 1")
    return kappa
