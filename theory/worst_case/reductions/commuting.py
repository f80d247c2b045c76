"""Commuting Hessians: several coordinates are two scalar problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fedsim.settings.validation import one_of, real, whole

from ..certifying import Certified, certify
from ..intervals import Interval

TWO_CLIENTS = ("fa_ld.stationary_w2", "fa_hmc.stationary_w2", "de_sgld.stationary_w2")


@dataclass(frozen=True)
class CommutingSupremum:
    """The worst W2 over problems of several coordinates whose Hessians commute.

    Attributes
    ----------
    lower, upper : float
        Proved ends.
    closed : bool
        Whether both parts are.
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
