"""What FA-LD's privacy theorem assumes, as far as numbers decide it, and its two forms."""

from __future__ import annotations

import math

from ..bound import Assumption
from ..registry import named_variant
from .setting import PrivacySetting
from .terms import exp, log_noise_scale

VARIANTS = ("record_level", "printed")
OF = "FA-LD's privacy guarantee"


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
    None: a `PrivacySetting` is checked already.

    Source: FA-LD (57).

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=1.0, delta0=0.01, delta1=0.0,
    ...     delta2=0.0, local_steps=1, n_rounds=1, n_clients=1)
    >>> round(theory.privacy.validity_ceiling(given), 6)
    0.207112
    """
    scale = log_noise_scale(step_size=1.0, weight=given.smallest_weight, temperature=given.temperature,
                            shared_noise=given.shared_noise, delta0=given.delta0)
    return exp(2.0 * (math.log(given.batch_fraction) - math.log(given.sensitivity)) - scale)


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


def checked_variant(given: PrivacySetting, variant: str) -> str:
    """The variant meant, for functions that return a number which cannot say that it is not proved.

    Raises ValueError when a hypothesis of the variant fails in this setting.
    """
    found = named_variant(variant, VARIANTS, OF)
    for one in amplification(given, found):
        if not one.holds:
            raise ValueError(f"variant={found!r} needs {one.name}: client_sizes={given.client_sizes!r}, "
                             f"n_active={given.n_active}; use variant='record_level'")
    return found
