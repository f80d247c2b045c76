"""Inverse questions: the largest step size, shared noise or number of drawn clients within a budget.

Source: FA-LD section 5: "under some DP budget, we can select the largest rho and S".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace

from fedsim.settings.participation import Participation
from fedsim.settings.validation import fraction, instance, positive

from ..tuning.fewest import refined
from .hypotheses import checked_variant, validity, validity_ceiling
from .setting import PrivacySetting
from .theorem import PrivacyGuarantee, guarantee_at


@dataclass(frozen=True)
class PrivateStep:
    """The largest step size within a privacy budget, what binds it, and the guarantee there.

    Attributes
    ----------
    step_size : float
    binding : str
        "epsilon" (the budget), or "validity" (equation (57): the theorem says nothing beyond).
    guarantee : PrivacyGuarantee

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6,
    ...     delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> found = theory.privacy.largest_step_size(given, 1.0)
    >>> float(f"{found.step_size:.3g}"), found.binding
    (1.2e-09, 'epsilon')
    """

    step_size: float
    binding: str
    guarantee: PrivacyGuarantee


def largest_step_size(given: PrivacySetting, epsilon: float, *, variant: str = "record_level") -> PrivateStep:
    """Largest step size whose epsilon is at most `epsilon` and at which the theorem is valid, (57).

    Epsilon increases with the step size, so there is one such value. delta does not depend on it, except
    for variant="printed" under scheme I, where it increases as well: read it off the returned guarantee.

    Parameters
    ----------
    given : PrivacySetting
    epsilon : float
        The budget.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    PrivateStep

    Raises
    ------
    ValueError
        When shared_noise=1, where no step size protects, and when a hypothesis of the variant fails.

    Source: FA-LD Theorems 5.1 and G.3.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.largest_step_size(given, 1.0).guarantee.epsilon <= 1.0
    True
    """
    budget = positive("epsilon", epsilon)
    variant = checked_variant(given, variant)
    if given.shared_noise == 1.0:
        raise ValueError("shared_noise=1.0 must be less than 1: without private noise no step size protects")
    ceiling = validity_ceiling(given)
    if not 0.0 < ceiling < math.inf:
        raise ValueError(f"equation (57) limits step_size by {ceiling:g}, beyond a float64; "
                         f"rescale sensitivity={given.sensitivity:g} or temperature={given.temperature:g}")
    at_ceiling = guarantee_at(given, ceiling, variant=variant)
    if at_ceiling.epsilon <= budget:
        return PrivateStep(ceiling, "validity", at_ceiling)
    # epsilon is convex in sqrt(step size) and zero at zero, so that this step size is within the budget
    low = math.log(ceiling) + 2.0 * (math.log(budget) - math.log(at_ceiling.epsilon)) - 1e-9
    if low < math.log(math.ulp(0.0)) + 40.0:
        raise ValueError(f"epsilon={epsilon!r} needs a step size too small for a float64")
    step, _ = refined(lambda eta: guarantee_at(given, eta, variant=variant).epsilon,
                      math.nextafter(budget, math.inf), math.exp(low), (ceiling, at_ceiling.epsilon), 0.0)
    return PrivateStep(step, "epsilon", guarantee_at(given, step, variant=variant))


def largest_shared_noise(given: PrivacySetting, step_size: float, epsilon: float, *,
                         variant: str = "record_level") -> float:
    """Largest shared_noise within the budget `epsilon` at this step size; `given.shared_noise` is ignored.

    Step size and private noise enter as step_size / (1 - shared_noise) only, in (57) too.

    Parameters
    ----------
    given : PrivacySetting
    step_size, epsilon : float
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    float, from 0 to 1

    Raises
    ------
    ValueError
        When even independent noise is not enough, and when a hypothesis of the variant fails.

    Source: FA-LD Theorems 5.1 and G.3.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> round(theory.privacy.largest_shared_noise(given, 1e-9, 2.0), 4)
    0.7784
    """
    eta = positive("step_size", step_size)
    instance("given", given, PrivacySetting)
    most = largest_step_size(replace(given, shared_noise=0.0), epsilon, variant=variant).step_size
    if eta > most:
        raise ValueError(f"step_size={eta:g} must be at most {most:.6g}: beyond it epsilon={epsilon:g} "
                         "cannot be reached even with shared_noise=0")
    return fraction("shared_noise", 1.0 - eta / most)


def largest_active_clients(given: PrivacySetting, step_size: float, epsilon: float, *,
                           delta: float | None = None, variant: str = "record_level") -> int:
    """Largest number of drawn clients S, 1 to N, within the budget (epsilon, delta) at this step size.

    Scheme I if `given.participation` is of scheme I, else scheme II; `given.n_active` is ignored. Epsilon
    and delta do not fall as S grows, so that bisection finds it. With variant="record_level" S matters to
    delta alone: drawing fewer clients does not reduce epsilon.

    Parameters
    ----------
    given : PrivacySetting
    step_size, epsilon : float
    delta : float, optional
        The budget's delta; by default only epsilon counts.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When not even one client fits, when `step_size` is beyond (57), when a hypothesis of the variant
        fails, or for scheme II with unequal weights.

    Source: FA-LD section 5, the paragraph after Theorem 5.1.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-9, delta1=0.0,
    ...     delta2=1e-8, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.largest_active_clients(given, 1e-9, 2.0, delta=5.1e-8)
    20
    """
    instance("given", given, PrivacySetting)
    eta, budget = positive("step_size", step_size), positive("epsilon", epsilon)
    failure = math.inf if delta is None else positive("delta", delta)
    in_force = validity(given, eta)
    if not in_force.holds:
        raise ValueError(f"step_size={eta:g} must be valid: {in_force.name}")

    def at(n_active: int) -> PrivacyGuarantee:
        drawn = replace(given, participation=Participation(n_active, given.scheme == "I"))
        return guarantee_at(drawn, eta, variant=checked_variant(drawn, variant))

    def too_many(n_active: int) -> bool:
        spent = at(n_active)
        return spent.epsilon > budget or spent.delta > failure

    if too_many(1):
        raise ValueError(f"epsilon={epsilon!r} and delta={delta!r} must be at least {at(1).epsilon:.6g} and "
                         f"{at(1).delta:.6g}, which a single drawn client needs at step_size={eta:g}")
    return bisect_left(range(1, given.n_clients + 1), True, key=too_many)
