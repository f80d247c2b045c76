"""Step-size ceilings, the simplified bound, and the linearised rates.

All of them rest on condition (57) ("from now on, we assume that 57 holds"): ceilings are never above it.

Source: FA-LD appendix G, equations (60), (61) and (66) to (75).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fedsim.validation import positive

from ..bound import Assumption
from ..catalogue import named_variant
from .hypotheses import OF, VARIANTS, amplification, checked_variant, share, validity, validity_ceiling
from .setting import PrivacySetting
from .terms import amplified, exp, log_inverse, log_noise_scale


@dataclass(frozen=True)
class Approximation:
    """A linearised expression: its size for small arguments, never a bound (`kind` is "rate").

    `assumptions` are those of the statement that was linearised, each with its margin.
    """

    value: float
    source: str
    kind: str = "rate"
    assumptions: tuple[Assumption, ...] = ()

    def __iter__(self) -> Iterator[float | str]:
        """So that ``value, source, kind = approximation`` works."""
        return iter((self.value, self.source, self.kind))

    @property
    def hypotheses_hold(self) -> bool:
        """True when every hypothesis in `assumptions` holds."""
        return all(one.holds for one in self.assumptions)


def _needed(given: PrivacySetting, where: str, *names: str) -> list[float]:
    """log(1/delta) of the deltas that advanced composition needs to be positive."""
    for name in names:
        if getattr(given, name) == 0.0:
            raise ValueError(f"{name}=0 must be greater than 0 (equation {where} is about advanced "
                             "composition)")
    return [log_inverse(getattr(given, name)) for name in names]


def _log_unit(given: PrivacySetting) -> float:
    """log of tau (1-shared_noise) min p / (4 sensitivity^2 log(1.25/delta0)): step size where (56) is 1."""
    scale = log_noise_scale(step_size=1.0, weight=given.smallest_weight, temperature=given.temperature,
                            shared_noise=given.shared_noise, delta0=given.delta0)
    return -scale - 2.0 * math.log(given.sensitivity) - math.log(4.0)


def _one_step(given: PrivacySetting, step_size: float) -> float:
    """(56)."""
    return exp(0.5 * (math.log(step_size) - _log_unit(given)))


def _local(given: PrivacySetting) -> float:
    """(60) by itself."""
    first, = _needed(given, "(60)", "delta1")
    return exp(_log_unit(given) + 2.0 * math.log(math.log1p(math.sqrt(2.0 * first / given.local_steps))))


def _round(given: PrivacySetting, variant: str) -> float:
    """(69) by itself."""
    first, second = _needed(given, "(69)", "delta1", "delta2")
    inside = math.log1p(math.sqrt(2.0 * second / given.n_rounds) / share(given, variant))
    total = exp(_log_unit(given) + 2.0 * math.log(inside) - math.log(8.0 * given.local_steps * first))
    return min(_local(given), total)


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
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> local_ceiling(given) == validity_ceiling(given)
    True
    """
    return min(_local(given), validity_ceiling(given))


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
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> round_ceiling(given) <= local_ceiling(given)
    True
    """
    variant = checked_variant(given, variant)
    return min(_round(given, variant), validity_ceiling(given))


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
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> round(round_epsilon_ceiling(given), 4)
    0.4224
    """
    second, = _needed(given, "(66)", "delta2")
    return math.log1p(math.sqrt(2.0 * second / given.n_rounds))


def simplified_client(given: PrivacySetting, step_size: float) -> tuple[float, tuple[Assumption, ...]]:
    """(61)'s bound of eps_K, and its hypotheses (57) and (60)."""
    first, = _needed(given, "(61)", "delta1")
    limit = _local(given)
    return (2.0 * math.sqrt(2.0 * given.local_steps * first) * _one_step(given, step_size),
            (validity(given, step_size), _below(limit, step_size, "(60)")))


def simplified(given: PrivacySetting, step_size: float, variant: str) -> tuple[float, tuple[Assumption, ...]]:
    """(73), and its hypotheses: (57), (69), and those of the amplification."""
    first, second = _needed(given, "(73)", "delta1", "delta2")
    inner = 2.0 * math.sqrt(2.0 * given.local_steps * first) * _one_step(given, step_size)
    value = 2.0 * math.sqrt(2.0 * given.n_rounds * second) * amplified(inner, share(given, variant))
    return value, (validity(given, step_size), _below(_round(given, variant), step_size, "(69)"),
                   *amplification(given, variant))


def _below(limit: float, step_size: float, where: str) -> Assumption:
    name = f"step_size <= {limit:.6g}, equation {where}"
    if 0.0 < limit < math.inf:
        return Assumption.at_most(name, step_size, limit)
    return Assumption.yes(name, step_size <= limit)


def simplified_epsilon(given: PrivacySetting, step_size: float, *, variant: str = "record_level") -> float:
    """Equation (73): an upper bound of epsilon for step sizes up to `round_ceiling`.

    2 sqrt(2 (T/K) log(1/delta2)) log(1 + (S/N) (e^(4 c Delta sqrt(eta K log(1/delta1) / (...))) - 1)) with
    c = sqrt(2 log(1.25/delta0)), and 1 in place of S/N for variant="record_level"; looser than the theorem,
    but one formula.

    Parameters
    ----------
    given : PrivacySetting
    step_size : float
        eta.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    float

    Source: FA-LD (73), under (57) and (69).
    Raises: ValueError when delta1 or delta2 is 0, `step_size` is not above 0 or beyond (57) or (69), and when
    a hypothesis of the variant fails.

    Examples
    --------
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> round(simplified_epsilon(given, 1e-10), 4)
    1.852
    """
    eta = positive("step_size", step_size)
    variant = checked_variant(given, variant)
    limit = round_ceiling(given, variant=variant)
    if eta > limit:
        raise ValueError(f"step_size={eta:g} must be at most {limit:.6g}, the smaller of equation (57), "
                         f"{validity_ceiling(given):.6g}, and equation (69), {_round(given, variant):.6g}, "
                         "for (73) to hold")
    return simplified(given, eta, variant)[0]


def epsilon_rate(given: PrivacySetting, step_size: float, *, variant: str = "record_level") -> Approximation:
    """Equation (75) with the constant that linearising (73) gives, 16; a rate, not a bound.

    16 (S/N) Delta_l sqrt(eta T log(1.25/delta0) log(1/delta1) log(1/delta2) / (tau (1-shared_noise) min p)),
    with 1 in place of S/N for variant="record_level". Its assumptions are those of (73).

    Parameters
    ----------
    given : PrivacySetting
    step_size : float
        eta.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    Approximation

    Source: FA-LD (75).
    Raises: ValueError when delta1 or delta2 is 0, for a `step_size` not above 0, and an unknown variant.

    Examples
    --------
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> epsilon_rate(given, 1e-12).hypotheses_hold, epsilon_rate(given, 1e-3).hypotheses_hold
    (True, False)
    """
    variant = named_variant(variant, VARIANTS, OF)
    first, second = _needed(given, "(75)", "delta1", "delta2")
    eta = positive("step_size", step_size)
    steps = math.sqrt(float(given.local_steps)) * math.sqrt(float(given.n_rounds))
    value = 8.0 * share(given, variant) * steps * math.sqrt(first * second) * _one_step(given, eta)
    return Approximation(value, "FA-LD (75), linearised from (73), constant 16",
                         assumptions=simplified(given, eta, variant)[1])


def step_size_rate(given: PrivacySetting, *, variant: str = "record_level") -> Approximation:
    """Equation (74) with the constant that linearising (69) gives, 1/16; a rate, not a ceiling.

    tau (1-shared_noise) N^2 min p log(1/delta2) / (16 Delta_l^2 S^2 T log(1.25/delta0) log(1/delta1)), with
    1 in place of N/S for variant="record_level". Its assumptions: that it is itself within (57), and those
    of the variant.

    Parameters
    ----------
    given : PrivacySetting
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    Approximation

    Source: FA-LD (74).
    Raises: ValueError when delta1 or delta2 is 0, and for an unknown variant.

    Examples
    --------
    >>> given = PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6, delta1=1e-6, delta2=1e-6,
    ...     local_steps=10, n_rounds=100, n_clients=50)
    >>> step_size_rate(given).hypotheses_hold
    True
    """
    variant = named_variant(variant, VARIANTS, OF)
    first, second = _needed(given, "(74)", "delta1", "delta2")
    log_value = (_log_unit(given) - math.log(4.0) - 2.0 * math.log(share(given, variant)) + math.log(second)
                 - math.log(first) - math.log(given.local_steps) - math.log(given.n_rounds))
    value = exp(log_value)
    return Approximation(value, "FA-LD (74), linearised from (69), constant 1/16",
                         assumptions=(validity(given, value), *amplification(given, variant)))
