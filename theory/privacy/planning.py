"""Step-size ceilings, the simplified bound, the linearised rates, and the inverse of the theorem.

Source: FA-LD appendix G, equations (60), (61) and (66) to (75).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from scipy.optimize import brentq

from fedsim.validation import fraction, one_of, positive

from .setting import PrivacySetting
from .terms import amplified, exp, log_inverse, log_noise_scale
from .theorem import VARIANTS, PrivacyGuarantee, guarantee_at, validity_ceiling


class Approximation(NamedTuple):
    """A linearised expression: its size for small arguments, never a bound (`kind` is "rate")."""

    value: float
    source: str
    kind: str = "rate"


def _composed(given: PrivacySetting, where: str) -> tuple[float, float]:
    """log(1/delta1) and log(1/delta2), both of which advanced composition needs to be finite."""
    for name in ("delta1", "delta2"):
        if getattr(given, name) == 0.0:
            raise ValueError(f"{name}=0 must be greater than 0 (equation {where} is about advanced "
                             "composition)")
    return log_inverse(given.delta1), log_inverse(given.delta2)


def _log_unit(given: PrivacySetting) -> float:
    """log of tau (1-shared_noise) min p / (4 sensitivity^2 log(1.25/delta0)): step size where (56) is 1."""
    scale = log_noise_scale(step_size=1.0, weight=given.smallest_weight, temperature=given.temperature,
                            shared_noise=given.shared_noise, delta0=given.delta0)
    return -scale - 2.0 * math.log(given.sensitivity) - math.log(4.0)


def local_ceiling(given: PrivacySetting) -> float:
    """Equation (60): step size up to which (61) holds, eps_K <= 2 sqrt(2 K log(1/delta1)) eps_1.

    Raises ValueError when delta1 or delta2 is 0.
    """
    first, _ = _composed(given, "(60)")
    return exp(_log_unit(given) + 2.0 * math.log(math.log1p(math.sqrt(2.0 * first / given.local_steps))))


def round_ceiling(given: PrivacySetting, *, variant: str = "corrected") -> float:
    """Equation (69): step size up to which (70) to (73) hold; never above (60).

    N/S is one over the chance that a round draws a given client, which extends it to scheme I; for
    variant="record_level", where drawing does not amplify, it is 1.

    Raises ValueError when delta1 or delta2 is 0.
    """
    first, second = _composed(given, "(69)")
    share = _share(given, variant)
    steps, rounds = given.local_steps, given.n_rounds
    inside = math.log1p(math.sqrt(2.0 * second / rounds) / share)
    total = exp(_log_unit(given) + 2.0 * math.log(inside) - math.log(8.0 * steps * first))
    return min(local_ceiling(given), total)


def round_epsilon_ceiling(given: PrivacySetting) -> float:
    """Equation (66): epsilon of a round up to which (67) holds, log(1 + sqrt(2 K log(1/delta2) / T))."""
    _, second = _composed(given, "(66)")
    return math.log1p(math.sqrt(2.0 * second / given.n_rounds))


def simplified_epsilon(given: PrivacySetting, step_size: float, *, variant: str = "corrected") -> float:
    """Equation (73): an upper bound of epsilon for step sizes up to `round_ceiling`.

    2 sqrt(2 (T/K) log(1/delta2)) log(1 + (S/N) (e^(4 c Delta sqrt(eta K log(1/delta1) / (...))) - 1)) with
    c = sqrt(2 log(1.25/delta0)); looser than the theorem, but one formula.

    Raises ValueError when delta1 or delta2 is 0, or when `step_size` is above `round_ceiling`.
    """
    eta = positive("step_size", step_size)
    limit = round_ceiling(given, variant=variant)
    if eta > limit:
        raise ValueError(f"step_size={eta:g} must be at most {limit:.6g} (equation (69)) for (73) to hold")
    first, second = _composed(given, "(73)")
    one_step = exp(0.5 * (math.log(eta) - _log_unit(given)))
    inner = 2.0 * math.sqrt(2.0 * given.local_steps * first) * one_step
    return 2.0 * math.sqrt(2.0 * given.n_rounds * second) * amplified(inner, _share(given, variant))


def epsilon_rate(given: PrivacySetting, step_size: float, *, variant: str = "corrected") -> Approximation:
    """Equation (75) with the constant that linearising (73) gives, 16; a rate, not a bound.

    16 (S/N) Delta_l sqrt(eta T log(1.25/delta0) log(1/delta1) log(1/delta2) / (tau (1-shared_noise) min p)).
    """
    first, second = _composed(given, "(75)")
    eta = positive("step_size", step_size)
    one_step = exp(0.5 * (math.log(eta) - _log_unit(given)))
    steps = math.sqrt(float(given.local_steps)) * math.sqrt(float(given.n_rounds))
    value = 8.0 * _share(given, variant) * steps * math.sqrt(first * second) * one_step
    return Approximation(value, "FA-LD (75), linearised from (73), constant 16")


def step_size_rate(given: PrivacySetting, *, variant: str = "corrected") -> Approximation:
    """Equation (74) with the constant that linearising (69) gives, 1/16; a rate, not a ceiling.

    tau (1-shared_noise) N^2 min p log(1/delta2) / (16 Delta_l^2 S^2 T log(1.25/delta0) log(1/delta1)).
    """
    first, second = _composed(given, "(74)")
    log_value = (_log_unit(given) - math.log(4.0) - 2.0 * math.log(_share(given, variant)) + math.log(second)
                 - math.log(first) - math.log(given.local_steps) - math.log(given.n_rounds))
    return Approximation(exp(log_value), "FA-LD (74), linearised from (69), constant 1/16")


def _share(given: PrivacySetting, variant: str) -> float:
    """What multiplies e^eps - 1 in (62): S/N, the chance to be drawn, or 1 without amplification."""
    variant = one_of("variant", variant, VARIANTS)
    return 1.0 if variant == "record_level" else given.drawn(variant)


@dataclass(frozen=True)
class PrivateStep:
    """The largest step size within a privacy budget, what binds it, and the guarantee there.

    Attributes
    ----------
    step_size : float
    binding : str
        "epsilon" (the budget), or "validity" (equation (57): the theorem says nothing beyond).
    guarantee : PrivacyGuarantee
    """

    step_size: float
    binding: str
    guarantee: PrivacyGuarantee


def largest_step_size(given: PrivacySetting, epsilon: float, *, variant: str = "corrected") -> PrivateStep:
    """Largest step size whose epsilon is at most `epsilon` and at which the theorem is valid, (57).

    Epsilon increases with the step size, so there is one such value. delta does not depend on it under
    scheme II; under scheme I it increases as well: read it off the returned guarantee.

    Raises
    ------
    ValueError
        When shared_noise=1, where no step size protects.

    Examples
    --------
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> largest_step_size(given, 1.0).guarantee.epsilon <= 1.0
    True
    """
    budget = positive("epsilon", epsilon)
    if given.shared_noise == 1.0:
        raise ValueError("shared_noise=1.0 must be less than 1: without private noise no step size protects")
    ceiling = validity_ceiling(given)
    if not 0.0 < ceiling < math.inf:
        raise ValueError(f"equation (57) limits step_size by {ceiling:g}, beyond a float64; "
                         f"rescale sensitivity={given.sensitivity:g} or temperature={given.temperature:g}")
    at_ceiling = guarantee_at(given, ceiling, variant=variant)
    if at_ceiling.epsilon <= budget:
        return PrivateStep(ceiling, "validity", at_ceiling)

    def excess(log_step: float) -> float:
        return math.log(guarantee_at(given, math.exp(log_step), variant=variant).epsilon) - math.log(budget)

    high = math.log(ceiling)
    # epsilon is convex in sqrt(step size) and zero at zero, so that this step size is within the budget
    low = high + 2.0 * (math.log(budget) - math.log(at_ceiling.epsilon)) - 1e-9
    if low < math.log(math.ulp(0.0)) + 40.0:
        raise ValueError(f"epsilon={epsilon!r} needs a step size too small for a float64")
    step = math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-14))
    found = guarantee_at(given, step, variant=variant)
    while found.epsilon > budget:  # the root is known to a few units in the last place
        step *= 1.0 - 1e-14
        found = guarantee_at(given, step, variant=variant)
    return PrivateStep(step, "epsilon", found)


def largest_shared_noise(given: PrivacySetting, step_size: float, epsilon: float, *,
                         variant: str = "corrected") -> float:
    """Largest shared_noise within the budget `epsilon` at this step size; `given.shared_noise` is ignored.

    Step size and private noise enter as step_size / (1 - shared_noise) only, in (57) too.

    Raises
    ------
    ValueError
        When even independent noise is not enough.
    """
    eta = positive("step_size", step_size)
    most = largest_step_size(replace(given, shared_noise=0.0), epsilon, variant=variant).step_size
    if eta > most:
        raise ValueError(f"step_size={eta:g} must be at most {most:.6g}: beyond it epsilon={epsilon:g} "
                         "cannot be reached even with shared_noise=0")
    return fraction("shared_noise", 1.0 - eta / most)
