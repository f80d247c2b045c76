"""Theorems 5.1 and G.3 of FA-LD: how private a run is.

In our transcription the root of Theorem 5.1's display runs on to the end of the minimum, over the minimum's
other argument. That is a mark of the transcription: Theorem G.3, (64) and the last line of the proof have
the root over its first term only, and so has everything here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fedsim.algorithms.fa_ld import FALD
from fedsim.interfaces import Problem
from fedsim.settings.validation import instance, positive

from ..declare.bound import Assumption
from .hypotheses import assumptions, named, share
from .setting import PrivacySetting, setting_of
from .terms import amplified, base_epsilon, compose, step_epsilon, with_replacement_delta

SOURCE = "FA-LD Theorems 5.1 and G.3, equations (54) to (65)"


@dataclass(frozen=True, eq=False, repr=False)
class PrivacyGuarantee:
    """(epsilon, delta)-differential privacy of a run when one record of one client is replaced.

    It is a pair of numbers, and no `theory.Bound`; `theory.privacy.run_bound` makes the same claim as one.

    Source: FA-LD Theorems 5.1 and G.3, definition (13).

    Attributes
    ----------
    epsilon, delta : float
        The guarantee; epsilon is infinite without private noise, and delta may exceed one.
    terms : mapping of str to float
        epsilon_batch (54), epsilon_step (56), epsilon_client (58), delta_client (59), drawn (a client's
        chance to be drawn), epsilon_round (62), delta_round (63), and both candidates of (58) and (64).
    branches : mapping of str to str
        "local" and "rounds": which composition rule is the smaller, "advanced" or "basic".
    assumptions : tuple of theory.declare.bound.Assumption
        Hypotheses that can be read off the numbers. Assumptions G.1 and G.2 (bounded sensitivity,
        minibatches without replacement) are properties of data and code, and are not among them.
    setting, step_size, variant, source, kind
        What it was computed from and by.

    Examples
    --------
    >>> found = theory.privacy.fa_ld_guarantee(step_size=1e-8, sensitivity=1.0, batch_fraction=0.1,
    ...     delta0=1e-6, delta1=0.0, delta2=0.0, local_steps=10, n_rounds=2000, n_clients=50)
    >>> found.hypotheses_hold, found.branches["rounds"], found.why_vacuous
    (True, 'basic', ())
    """

    epsilon: float
    delta: float
    step_size: float
    setting: PrivacySetting
    variant: str
    terms: Mapping[str, float]
    branches: Mapping[str, str]
    assumptions: tuple[Assumption, ...]
    source: str = SOURCE
    kind: str = field(default="upper")

    @property
    def protected(self) -> bool:
        """False when all the noise is shared: nothing random then hides a client's gradient."""
        return self.setting.shared_noise < 1.0

    @property
    def hypotheses_hold(self) -> bool:
        """True when every hypothesis in `assumptions` holds."""
        return all(one.holds for one in self.assumptions)

    @property
    def vacuous_delta(self) -> float:
        """1 / (number of records): the delta from which a guarantee says nothing.

        Publishing one record drawn at random satisfies (0, 1/n)-differential privacy, so a delta of 1/n
        or more allows a leak of a whole record. Without `client_sizes` n is taken as N, the fewest
        records that N clients can hold, which never calls vacuous what is not.
        """
        return 1.0 / self.setting.fewest_records

    @property
    def why_vacuous(self) -> tuple[str, ...]:
        """Reasons why the guarantee says nothing, in words; empty when it says something."""
        reasons = []
        if not self.protected:
            reasons.append("shared_noise=1 leaves no private noise")
        elif self.epsilon == math.inf:
            reasons.append("epsilon is too large for a float64")
        if self.delta >= 1.0:
            reasons.append(f"delta={self.delta:.3g} is 1 or more")
        elif self.delta >= self.vacuous_delta:
            reasons.append(f"delta={self.delta:.3g} is at least 1/records={self.vacuous_delta:.3g}")
        return tuple(reasons)

    @property
    def is_vacuous(self) -> bool:
        """True when epsilon is infinite, or delta is at least 1 / (number of records)."""
        return bool(self.why_vacuous)

    def __repr__(self) -> str:
        notes = [*self.why_vacuous, *(f"NOT MET: {one.name}" for one in self.assumptions if not one.holds)]
        return (f"PrivacyGuarantee(epsilon={self.epsilon:.6g}, delta={self.delta:.6g}, {self.variant}"
                + "".join(f"; {note}" for note in notes) + ")")


def guarantee_at(given: PrivacySetting, step_size: float, *,
                 variant: str = "record_level") -> PrivacyGuarantee:
    """The guarantee of a setting at one (constant) step size; see `fa_ld_guarantee`.

    Parameters
    ----------
    given : PrivacySetting
    step_size : float
        eta.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    PrivacyGuarantee

    Raises
    ------
    ValueError
        For a `step_size` not above 0, an unknown variant, and more than 10^7 draws of "printed" scheme I.

    Source: FA-LD Theorems 5.1 and G.3.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=1.0, batch_fraction=0.1, delta0=1e-6,
    ...     delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> theory.privacy.guarantee_at(given, 1e-8)
    PrivacyGuarantee(epsilon=3.07367, delta=0.000201, record_level)
    """
    instance("given", given, PrivacySetting)
    eta = positive("step_size", step_size)
    variant = named(variant)
    one_step = step_epsilon(given, eta)
    local = compose(one_step, given.local_steps, given.delta1)
    delta_client = given.local_steps * given.batch_fraction * given.delta0 + given.delta1
    drawn = given.drawn(variant)
    round_epsilon, round_delta = amplified(local.epsilon, share(given, variant)), drawn * delta_client
    if variant == "printed" and given.scheme == "I":
        round_delta = with_replacement_delta(given, local.epsilon, given.chance(variant))
    total = compose(round_epsilon, given.n_rounds, given.delta2)
    terms = {
        "epsilon_batch": base_epsilon(given, eta), "epsilon_step": one_step,
        "epsilon_client": local.epsilon, "epsilon_client_advanced": local.advanced,
        "epsilon_client_basic": local.basic, "delta_client": delta_client, "drawn": drawn,
        "epsilon_round": round_epsilon, "delta_round": round_delta,
        "epsilon_advanced": total.advanced, "epsilon_basic": total.basic}
    return PrivacyGuarantee(
        total.epsilon, given.n_rounds * round_delta + given.delta2, eta, given, variant,
        MappingProxyType(terms), MappingProxyType({"local": local.branch, "rounds": total.branch}),
        assumptions(given, eta, variant))


def fa_ld_guarantee(*, step_size: float, sensitivity: float, batch_fraction: float, delta0: float,
                    delta1: float, delta2: float, local_steps: int, n_rounds: int,
                    n_clients: int | None = None, weights: Any = None, participation: Any = None,
                    temperature: float = 1.0, shared_noise: float = 0.0, client_sizes: Any = None,
                    variant: str = "record_level") -> PrivacyGuarantee:
    """(epsilon, delta) of FA-LD after n_rounds rounds of local_steps noisy gradient steps.

    The private share of a client's noise protects each step (Gaussian mechanism, then a random
    minibatch); local steps compose; only drawn clients upload; rounds compose. Of each composition the
    smaller of the advanced and the basic rule is taken.

    Parameters
    ----------
    step_size : float
        eta; of a schedule give the largest, epsilon increases with it.
    sensitivity, batch_fraction, delta0, delta1, delta2, local_steps, n_rounds, n_clients, weights,
    participation, temperature, shared_noise, client_sizes
        As in `PrivacySetting`.
    variant : {"record_level", "printed"}
        "record_level" is proved for the replacement of one record, for any client sizes, any weights and
        both schemes: per round epsilon_K stays as it is and delta_K is multiplied by the chance q that the
        client with the record is drawn. Proof: given the drawn set D, P_D(E) <= e^epsilon_K P'_D(E), plus
        delta_K if the client is in D (drawn twice it still uploads the same); average over D.
        "printed": Theorems 5.1 and G.3, where drawing clients also reduces epsilon, (62). That needs that a
        drawn client can be exchanged for any other by changing one record: one record per client, equal
        weights, S = 1 in scheme I, and nobody sees who was drawn (or everyone is drawn, where nothing is
        reduced). `assumptions` says where this fails. Read with a whole client as the record (sensitivity
        times the client's records, batch_fraction=1, client_sizes=1) it protects whole clients.

    Returns
    -------
    PrivacyGuarantee

    Raises
    ------
    ValueError
        Naming argument, value and condition.

    Source: FA-LD Theorems 5.1 and G.3.

    Examples
    --------
    >>> found = theory.privacy.fa_ld_guarantee(step_size=1e-8, sensitivity=1.0, batch_fraction=0.1,
    ...     delta0=1e-6, delta1=1e-6, delta2=1e-6, local_steps=10, n_rounds=100, n_clients=50)
    >>> round(found.epsilon, 4), round(found.delta, 6), found.branches["rounds"]
    (3.0737, 0.000201, 'advanced')
    """
    given = PrivacySetting(
        sensitivity=sensitivity, batch_fraction=batch_fraction, delta0=delta0, delta1=delta1, delta2=delta2,
        local_steps=local_steps, n_rounds=n_rounds, n_clients=n_clients, weights=weights,
        participation=participation, temperature=temperature, shared_noise=shared_noise,
        client_sizes=client_sizes)
    return guarantee_at(given, step_size, variant=variant)


def guarantee(problem: Problem, algorithm: FALD, n_rounds: int, *, sensitivity: float, batch_fraction: float,
              delta0: float, delta1: float, delta2: float, client_sizes: Any = None,
              variant: str = "record_level") -> PrivacyGuarantee:
    """`fa_ld_guarantee` of an FA-LD run; a schedule counts with its largest step size.

    Parameters
    ----------
    problem : a fedsim problem, or its weights (N,)
    algorithm : fedsim.FALD
    n_rounds : int
    sensitivity, batch_fraction, delta0, delta1, delta2, client_sizes
        As in `PrivacySetting`.
    variant : {"record_level", "printed"}
        As in `fa_ld_guarantee`.

    Returns
    -------
    PrivacyGuarantee

    Raises
    ------
    ValueError
        As for `setting_of` and `guarantee_at`.

    Source: FA-LD Theorems 5.1 and G.3.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
    >>> theory.privacy.guarantee(problem, fs.FALD(1e-8, 5), 10, sensitivity=2.0, batch_fraction=0.1,
    ...     delta0=1e-6, delta1=0.0, delta2=0.0)
    PrivacyGuarantee(epsilon=0.105976, delta=5e-06, record_level)
    """
    given = setting_of(problem, algorithm, n_rounds, sensitivity=sensitivity, batch_fraction=batch_fraction,
                       delta0=delta0, delta1=delta1, delta2=delta2, client_sizes=client_sizes)
    return guarantee_at(given, algorithm.schedule.largest, variant=variant)
