"""The linearised rates (74) and (75), with the constants that linearising gives.

Source: FA-LD section 5 and appendix G, equations (74) and (75).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fedsim.settings.validation import positive

from ..bound import Assumption
from ..registry import named_variant
from .ceilings import log_unit, needed, one_step, small_in_run
from .hypotheses import OF, VARIANTS, amplification, share, validity
from .setting import PrivacySetting
from .terms import exp


@dataclass(frozen=True)
class Approximation:
    """A linearised expression: its size for small arguments, never a bound (`kind` is "rate").

    `assumptions` are those of the statement that was linearised, each with its margin.

    Examples
    --------
    >>> value, source, kind = theory.privacy.Approximation(0.5, "(75), linearised")
    >>> value, kind
    (0.5, 'rate')
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
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> [theory.privacy.epsilon_rate(given, step_size).hypotheses_hold for step_size in (1e-12, 1e-3)]
    [True, False]
    """
    variant = named_variant(variant, VARIANTS, OF)
    first, second = needed(given, "(75)", "delta1", "delta2")
    eta = positive("step_size", step_size)
    steps = math.sqrt(float(given.local_steps)) * math.sqrt(float(given.n_rounds))
    value = 8.0 * share(given, variant) * steps * math.sqrt(first * second) * one_step(given, eta)
    return Approximation(value, "FA-LD (75), linearised from (73), constant 16",
                         assumptions=(validity(given, eta), small_in_run(given, eta, variant),
                                      *amplification(given, variant)))


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
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.step_size_rate(given).hypotheses_hold
    True
    """
    variant = named_variant(variant, VARIANTS, OF)
    first, second = needed(given, "(74)", "delta1", "delta2")
    log_value = (log_unit(given) - math.log(4.0) - 2.0 * math.log(share(given, variant)) + math.log(second)
                 - math.log(first) - math.log(given.local_steps) - math.log(given.n_rounds))
    value = exp(log_value)
    return Approximation(value, "FA-LD (74), linearised from (69), constant 1/16",
                         assumptions=(validity(given, value), *amplification(given, variant)))
