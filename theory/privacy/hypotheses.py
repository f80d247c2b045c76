"""What FA-LD's privacy theorem assumes, as far as numbers decide it, its two forms, and step-size ceilings.

All ceilings rest on condition (57) ("from now on, we assume that 57 holds"), as the simplified bound does:
they are never above it.

Source: FA-LD appendix G, equations (57), (60), (61), (66) to (73).
"""

from __future__ import annotations

import math

from fedsim.settings.validation import instance, shown

from ..declare.bound import Assumption
from ..declare.registry import named_variant
from .setting import PrivacySetting
from .terms import exp, log_inverse

VARIANTS = ("record_level", "printed")


def validity_ceiling(given: PrivacySetting) -> float:
    """Equation (57): the largest step size at which (54) is at most one; 0 without private noise.

    tau (1 - shared_noise) batch_fraction^2 min_c p_c / (sensitivity^2 log(1.25/delta0)).

    Parameters
    ----------
    given : PrivacySetting

    Returns
    -------
    float
        eta; infinite where it is too large for a float64.

    Raises
    ------
    ValueError
        For what is no `PrivacySetting`.

    Source: FA-LD (57).

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=1.0, delta0=0.01, delta1=0.0,
    ...     delta2=0.0, local_steps=1, n_rounds=1, n_clients=1)
    >>> round(theory.privacy.validity_ceiling(given), 6)
    0.207112
    """
    instance("given", given, PrivacySetting)
    share = math.log(given.batch_fraction) - math.log(given.sensitivity)
    return exp(2.0 * share - given.log_noise_scale(1.0))


def share(given: PrivacySetting, variant: str) -> float:
    """What multiplies e^eps - 1 in (62): the chance to be drawn, or 1 where drawing does not amplify."""
    return given.drawn(variant) if variant == "printed" else 1.0


def validity(given: PrivacySetting, step_size: float) -> Assumption:
    """Condition (57) at this step size."""
    return at_most(validity_ceiling(given), step_size, "(57)")


def at_most(limit: float, step_size: float, where: str) -> Assumption:
    """That the step size is within an equation's limit, which may be 0 or infinite."""
    name = f"step_size <= {limit:.6g}, equation {where}"
    if 0.0 < limit < math.inf:
        return Assumption.at_most(name, step_size, limit)
    return Assumption.yes(name, step_size <= limit)


def amplification(given: PrivacySetting, variant: str) -> tuple[Assumption, ...]:
    """What (62) and (63) need besides: that one client can be exchanged for another by one record.

    Source: FA-LD (62), (63) and the two theorems of Balle et al. (2018) that they rest on.
    """
    if variant != "printed" or given.everyone_is_drawn:
        return ()
    alone = Assumption.yes("one record per client (else drawing clients does not hide a record)",
                           given.largest_client == 1.0)
    if given.scheme == "II":
        return (alone,)
    return (alone, Assumption.yes("equal weights (else clients are not exchangeable)", given.equal_weights),
            Assumption.yes("n_active=1 in scheme I (a client drawn twice runs once here, twice in (63))",
                           given.n_active == 1))


def assumptions(given: PrivacySetting, step_size: float, variant: str) -> tuple[Assumption, ...]:
    """The hypotheses that numbers decide."""
    return (validity(given, step_size), *amplification(given, variant))


def named(variant: str) -> str:
    """The variant meant, by a name in force or a former one."""
    return named_variant(variant, VARIANTS, "FA-LD's privacy guarantee")


def checked_variant(given: PrivacySetting, variant: str) -> str:
    """The variant meant, for functions that return a number which cannot say that it is not proved.

    Raises ValueError when a hypothesis of the variant fails in this setting.
    """
    variant = named(variant)
    instance("given", given, PrivacySetting)
    for one in amplification(given, variant):
        if not one.holds:
            raise ValueError(f"variant={variant!r} needs {one.name}: client_sizes={shown(given.client_sizes)}"
                             f", n_active={given.n_active}; use variant='record_level'")
    return variant


def needed(given: PrivacySetting, where: str, *names: str) -> list[float]:
    """log(1/delta) of the deltas that advanced composition needs to be positive."""
    instance("given", given, PrivacySetting)
    for name in names:
        if getattr(given, name) == 0.0:
            raise ValueError(f"{name}=0 must be greater than 0 (equation {where} is about advanced "
                             "composition)")
    return [log_inverse(getattr(given, name)) for name in names]


def log_unit(given: PrivacySetting) -> float:
    """log of tau (1-shared_noise) min p / (4 sensitivity^2 log(1.25/delta0)): step size where (56) is 1."""
    return -given.log_noise_scale(1.0) - 2.0 * math.log(given.sensitivity) - math.log(4.0)


def local_limit(given: PrivacySetting) -> float:
    """(60) by itself."""
    first, = needed(given, "(60)", "delta1")
    return exp(log_unit(given) + 2.0 * math.log(math.log1p(math.sqrt(2.0 * first / given.local_steps))))


def run_limit(given: PrivacySetting, variant: str) -> float:
    """(69) by itself."""
    first, second = needed(given, "(69)", "delta1", "delta2")
    inside = math.log1p(math.sqrt(2.0 * second / given.n_rounds) / share(given, variant))
    total = exp(log_unit(given) + 2.0 * math.log(inside) - math.log(8.0 * given.local_steps * first))
    return min(local_limit(given), total)


def local_ceiling(given: PrivacySetting) -> float:
    """Step size up to which (61) holds, eps_K <= 2 sqrt(2 K log(1/delta1)) eps_1: of (57), (60) the smaller.

    Parameters
    ----------
    given : PrivacySetting

    Returns
    -------
    float
        eta; infinite where it is too large for a float64.

    Source: FA-LD (57) and (60).
    Raises: ValueError when delta1 is 0.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.local_ceiling(given) == theory.privacy.validity_ceiling(given)
    True
    """
    return min(local_limit(given), validity_ceiling(given))


def round_ceiling(given: PrivacySetting, *, variant: str = "record_level") -> float:
    """Step size up to which (70) to (73) hold: of (57) and (69) the smaller; never above `local_ceiling`.

    N/S in (69) is one over what multiplies e^eps - 1 in (62): 1 for variant="record_level", where drawing
    clients does not amplify; for "printed" the chance that a round draws a given client, which extends (69)
    to scheme I.

    Parameters
    ----------
    given : PrivacySetting
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    float
        As for `local_ceiling`.

    Source: FA-LD (57), (60) and (69).
    Raises: ValueError when delta1 or delta2 is 0, and when a hypothesis of the variant fails.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.round_ceiling(given) <= theory.privacy.local_ceiling(given)
    True
    """
    variant = checked_variant(given, variant)
    return min(run_limit(given, variant), validity_ceiling(given))


def round_epsilon_ceiling(given: PrivacySetting) -> float:
    """Equation (66): epsilon of a round up to which (67) holds, log(1 + sqrt(2 K log(1/delta2) / T)).

    Parameters
    ----------
    given : PrivacySetting

    Returns
    -------
    float

    Source: FA-LD (66).
    Raises: ValueError when delta2 is 0.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> round(theory.privacy.round_epsilon_ceiling(given), 4)
    0.4224
    """
    second, = needed(given, "(66)", "delta2")
    return math.log1p(math.sqrt(2.0 * second / given.n_rounds))


def small_in_run(given: PrivacySetting, step_size: float, variant: str) -> Assumption:
    """Condition (69) at this step size."""
    return at_most(run_limit(given, variant), step_size, "(69)")
