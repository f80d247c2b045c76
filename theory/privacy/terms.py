"""The quantities of FA-LD appendix G one by one.

Everything is evaluated so that no intermediate result can overflow before the answer does: products of
extreme numbers are sums of logarithms, and e^eps is never formed on its own. A value too large for a
float64 is `inf`; nothing here returns NaN.

Source: FA-LD section 5 and appendix G, equations (54) to (65).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fedsim.settings.lazy_import import lazy

from .setting import PrivacySetting

logsumexp = lazy("scipy.special", "logsumexp")
binom = lazy("scipy.stats", "binom")

MAX_DRAWS = 10_000_000
_LARGEST = 709.0  # e^709 still fits a float64
_TINY = math.ulp(0.0)


class Composition(NamedTuple):
    """An epsilon, its two candidates, and which of them is the smaller."""

    epsilon: float
    advanced: float
    basic: float
    branch: str


def exp(log_value: float) -> float:
    """e^x, `inf` instead of an overflow."""
    return math.exp(log_value) if log_value <= _LARGEST else math.inf


def exp_minus_one(x: float) -> float:
    """e^x - 1, `inf` instead of an overflow."""
    return math.expm1(x) if x <= _LARGEST else math.inf


def log_inverse(delta: float) -> float:
    """log(1 / delta), infinite at zero."""
    return -math.log(delta) if delta > 0.0 else math.inf


def base_epsilon(given: PrivacySetting, step_size: float) -> float:
    """Equation (54): epsilon of one noisy step on a given minibatch (Gaussian mechanism).

    sqrt(2 log(1.25/delta0)) (sensitivity / batch_fraction) sqrt(step_size / (2 min p tau (1-shared_noise))).
    """
    return max(exp(math.log(given.sensitivity) - math.log(given.batch_fraction)
                   + 0.5 * given.log_noise_scale(step_size)), _TINY)


def step_epsilon(given: PrivacySetting, step_size: float) -> float:
    """Equation (56): epsilon_1 of one local step once the minibatch is random.

    2 sensitivity sqrt(step_size log(1.25/delta0) / (tau (1 - shared_noise) min p)), with the smallest
    weight of all clients. It is twice batch_fraction times (54), and holds while (54) is at most one.

    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=0.0,
    ...     delta2=0.0, local_steps=1, n_rounds=1, n_clients=2)
    >>> round(theory.privacy.terms.step_epsilon(given, 1e-4), 6)
    0.105976
    """
    return max(exp(math.log(2.0) + math.log(given.sensitivity) + 0.5 * given.log_noise_scale(step_size)),
               _TINY)


def compose(epsilon: float, times: int, delta: float) -> Composition:
    """Equations (58) and (64): epsilon of `times` repetitions, the smaller of two composition rules.

    advanced: sqrt(2 times log(1/delta)) epsilon + times epsilon (e^epsilon - 1), at the price of `delta`;
    basic: times epsilon, the only one left when delta = 0.

    >>> [theory.privacy.terms.compose(0.01, times, 1e-6).branch for times in (10_000, 10)]
    ['advanced', 'basic']
    """
    basic = times * epsilon
    root = math.sqrt(2.0 * times) * math.sqrt(log_inverse(delta))
    advanced = root * epsilon + times * (epsilon * exp_minus_one(epsilon))
    if basic <= advanced:
        return Composition(basic, advanced, basic, "basic")
    return Composition(advanced, advanced, basic, "advanced")


def amplified(epsilon: float, fraction: float) -> float:
    """Equation (62): log(1 + fraction (e^epsilon - 1)).

    >>> theory.privacy.terms.amplified(3.0, 1.0), round(theory.privacy.terms.amplified(10_000.0, 0.5), 6)
    (3.0, 9999.306853)
    """
    if fraction == 1.0 or epsilon == math.inf:
        return epsilon
    if epsilon <= _LARGEST:
        return max(math.log1p(fraction * math.expm1(epsilon)), _TINY)
    return epsilon + math.log(fraction + (1.0 - fraction) * math.exp(-epsilon))


def log_profile_ratio(epsilon: float, copies: np.ndarray) -> np.ndarray:
    """log of (e^epsilon - 1) / (e^(epsilon/copies) - 1), for copies = 1, 2, ..."""
    if epsilon == math.inf:
        return np.where(copies == 1.0, 0.0, math.inf)
    if epsilon < 1e-8:  # the quotient of the two series; both could underflow
        return np.log(copies) + 0.5 * epsilon * (1.0 - 1.0 / copies)
    part = epsilon / copies
    return epsilon - part + math.log(-math.expm1(-epsilon)) - np.log(-np.expm1(-part))


def with_replacement_delta(given: PrivacySetting, epsilon: float, chance: float) -> float:
    """Equation (63), scheme I: sum over s copies of Binomial(n_active, chance) weights times delta_{K,s}.

    delta_{K,s} = (e^eps_K - 1) / (e^(eps_K/s) - 1) * (1.25 K g (delta0/1.25)^(1/s^2) + delta1). The power
    1/s^2 takes delta0 towards one, so that the sum is large for any n_active >= 2.

    Parameters
    ----------
    given : PrivacySetting
    epsilon : float
        eps_K of (58).
    chance : float
        A client's chance at each draw, 1/N.

    Raises
    ------
    ValueError
        When n_active is above ten million (the sum has that many terms).
    """
    if given.n_active > MAX_DRAWS:
        raise ValueError(f"n_active={given.n_active} must be at most {MAX_DRAWS} "
                         "(scheme I's delta is a sum of n_active terms)")
    copies = np.arange(1.0, given.n_active + 1.0)
    local = (math.log(1.25 * given.local_steps) + math.log(given.batch_fraction)
             + (math.log(given.delta0) - math.log(1.25)) / copies**2)
    if given.delta1 > 0.0:
        local = np.logaddexp(local, math.log(given.delta1))
    chances = binom.logpmf(copies, given.n_active, chance)
    possible = chances > -math.inf  # an impossible count must not meet an infinite ratio
    logs = chances[possible] + log_profile_ratio(epsilon, copies[possible]) + local[possible]
    return math.inf if (logs == math.inf).any() else exp(float(logsumexp(logs)))
