"""What an observer of FA-LD sees of one changed record, and with which exact delta.

The two data sets are such that a record moves every step that uses it by the whole sensitivity, in one
direction (a loss linear in theta): each delta is that of an actual pair, at most the mechanism's own. With
full minibatches and everyone drawn no pair is worse, and it is the mechanism's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedsim.algorithms.fa_ld import FALD
from fedsim.fingerprints import fingerprint
from fedsim.settings.lazy_import import lazy
from fedsim.settings.schedules import Schedule
from fedsim.settings.validation import Array, instance, nonnegative, one_of, whole

from ..declare.bound import Bound
from ..judge.checking import Measured, quantity
from .profiles import (
    batches_delta,
    gaussian_delta,
    gaussian_deltas,
    mixture_delta,
    nonnegative_or_inf,
    record_shift,
)
from .setting import PrivacySetting, drawn_probability

brentq = lazy("scipy.optimize", "brentq")
binom = lazy("scipy.stats", "binom")

OBSERVED = ("step", "minibatch", "client", "run")
_MOST_DRAWS = 4
_MOST_ROUNDS = 4
_POINTS = 20_001
_MOST_STEPS = 10**8


@dataclass(frozen=True, eq=False)
class Release:
    """The outputs that a changed record can be guessed from.

    Parameters
    ----------
    given : PrivacySetting
    schedule : fedsim.schedules.Schedule
        Step sizes of the run's local steps.
    observed : {"step", "minibatch", "client", "run"}
        One step on a known minibatch that holds the record; one step on a random minibatch; the local
        steps of one client; the uploads of all rounds.

    Source: FA-LD definition (13), and the mechanisms M_c, its minibatch form, their K-fold composition and
    Algorithm 1 in the proof of Theorem G.3.

    Examples
    --------
    >>> given = theory.privacy.PrivacySetting(sensitivity=2.0, batch_fraction=1.0, delta0=1e-5, delta1=0.0,
    ...     delta2=0.0, local_steps=4, n_rounds=1, n_clients=2)
    >>> release = theory.privacy.Release(given, fs.FALD(0.0625).schedule, "client")
    >>> round(release.delta(1.0, 4), 6)  # four steps that move by 1/2 each are one that moves by 1
    0.126937
    """

    given: PrivacySetting
    schedule: Any
    observed: str = "run"

    def __post_init__(self) -> None:
        instance("given", self.given, PrivacySetting)
        instance("schedule", self.schedule, Schedule)
        one_of("observed", self.observed, OBSERVED)

    @property
    def hides_who_is_drawn(self) -> bool:
        """Clients are left out, and hold too few records for their uploads to be told apart for certain."""
        return (self.observed == "run" and not self.given.everyone_is_drawn
                and self.given.client_sizes is not None)

    @property
    def is_exact(self) -> bool:
        """False where `delta` is that of something less than what the observer sees: a lower bound."""
        single = self.observed in ("step", "minibatch") or (
            self.observed == "run" and self.given.n_rounds == self.given.local_steps == 1)
        return not self.hides_who_is_drawn and (self.given.batch_fraction == 1.0 or single) and (
            self.schedule.is_constant or self.observed != "run" or self.given.everyone_is_drawn)

    @property
    def note(self) -> str:
        """What limits a comparison with it."""
        part = "one upload of the first round" if self.hides_who_is_drawn else "the sum of the steps"
        return "" if self.is_exact else (f"the exact delta is that of {part} on one pair of data sets, a "
                                         "lower bound of what all outputs reveal")

    def delta(self, epsilon: float, count: int) -> float:
        """Smallest delta at `epsilon` after `count` rounds ("client": local steps; else 1)."""
        count, given = whole("count", count, 1), self.given
        epsilon = nonnegative_or_inf("epsilon", epsilon)
        if count * given.local_steps > _MOST_STEPS:
            raise ValueError(f"count={count} of local_steps={given.local_steps} makes more than "
                             f"{_MOST_STEPS:g} steps, which are looked at one by one; ask for fewer")
        steps = self._steps({"client": count, "run": count * given.local_steps}.get(self.observed, 1))
        if self.hides_who_is_drawn:
            return self._one_upload(epsilon, steps[:given.local_steps])
        if self.observed == "run" and not given.everyone_is_drawn:
            return max(self._when_drawn(epsilon, float(weight), steps, count)
                       for weight in np.unique(given.weights))
        if self.observed == "step":
            return gaussian_delta(epsilon, self._shift(given.smallest_weight, steps))
        return self._together(epsilon, given.smallest_weight, steps)

    def epsilon(self, delta: float, count: int) -> float:
        """Smallest epsilon at which `delta` is enough."""
        delta = nonnegative("delta", delta)
        if self.delta(0.0, count) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high, count) > delta:
            high *= 2.0
            if high > 1e300:
                return math.inf
        def excess(epsilon: float) -> float:  # in logarithms, where the profile is nearly a parabola
            return math.log(max(self.delta(epsilon, count), math.ulp(0.0))) - goal

        goal = math.log(max(delta, math.ulp(0.0)))
        return float(brentq(excess, 0.0, high, rtol=1e-12))

    def _steps(self, count: int) -> Array:
        steps = np.arange(count)
        return np.broadcast_to(np.asarray(self.schedule.at(steps), dtype=np.float64), steps.shape)

    def _shift(self, weight: float, steps: Array) -> float:
        """Standard deviations by which the sum of these steps moves when each of them uses the record."""
        return record_shift(self.given, float(steps.sum()), weight)

    def _together(self, epsilon: float, weight: float, steps: Array) -> float:
        """All these steps of one client; with random minibatches as if each were the smallest."""
        fraction = self.given.batch_fraction
        if fraction == 1.0:
            return gaussian_delta(epsilon, self._shift(weight, steps))
        return batches_delta(epsilon, self._shift(weight, steps.min()[None]), len(steps), fraction)

    def _when_drawn(self, epsilon: float, weight: float, steps: Array, rounds: int) -> float:
        """Others hold so many far records that an upload shows whose it is: the rounds drawn are seen."""
        given = self.given
        chance = given.drawn("record_level") if given.scheme == "II" else drawn_probability(
            weight, given.n_active)
        times = np.arange(1.0, rounds + 1.0)
        chances = binom.pmf(times, rounds, chance)
        by_round = steps.reshape(rounds, given.local_steps)
        if given.batch_fraction < 1.0:
            likely = np.argsort(chances)[-_MOST_DRAWS:]
            least = np.full(rounds * given.local_steps, steps.min())
            return float(sum(chances[j] * self._together(epsilon, weight, least[:(j + 1) * given.local_steps])
                             for j in likely))
        shifts = np.sqrt(times) * self._shift(weight, by_round[np.argmin(by_round.sum(axis=1))])
        return float(chances @ gaussian_deltas(epsilon, shifts))

    def _one_upload(self, epsilon: float, steps: Array) -> float:
        """One upload of the first round, picked blindly; all records are at one of two ends.

        The client with the changed record holds the upper end otherwise, the others the lower one. Units
        are standard deviations of its upload.
        """
        given, worst = self.given, 0.0
        if given.batch_fraction < 1.0 and not self.schedule.is_constant:
            steps = steps[:1]  # which steps used the record matters then: look at the first alone
        counts = np.arange(len(steps) + 1)
        used = binom.pmf(counts, len(steps), given.batch_fraction)
        kinds, members = np.unique(np.column_stack([given.weights, given.client_sizes]), axis=0,
                                   return_counts=True)  # clients that hold as many records and weigh as much
        chances = kinds[:, 0] if given.scheme == "I" else np.full(len(kinds), 1.0 / given.n_clients)
        for c, (weight, size) in enumerate(kinds.tolist()):
            moved, ratios = self._shift(weight, steps), weight / kinds[:, 0]
            record = moved * given.batch_fraction  # what a record moves on average over minibatches
            others = members - (np.arange(len(kinds)) == c)
            rest = np.column_stack([chances * others, -0.5 * kinds[:, 1] * record * ratios,
                                    np.sqrt(ratios)])[others > 0].tolist()
            upper, chance = 0.5 * size * record, float(chances[c])
            before = [(chance, upper, 1.0), *rest]
            after = [(chance * share, upper - moved / len(steps) * count, 1.0)
                     for count, share in zip(counts.tolist(), used.tolist(), strict=True) if share > 0.0]
            worst = max(worst, mixture_delta(epsilon, before, [*after, *rest], _POINTS),
                        mixture_delta(epsilon, [*after, *rest], before, _POINTS))
        return worst

    def affordable(self, counts: np.ndarray) -> np.ndarray:
        """Those of the counts at which `delta` is worth its time."""
        if self.hides_who_is_drawn:
            return counts[:1]
        if self.given.batch_fraction < 1.0 and len(counts) > _MOST_ROUNDS:
            return counts[np.unique(np.linspace(0, len(counts) - 1, _MOST_ROUNDS).astype(int))]
        return counts


def _release(algorithm: FALD, bound: Bound) -> Release:
    return Release(bound.inputs["setting"], algorithm.schedule, bound.inputs["observed"])


def _require_same(bound: Bound, law: Release) -> None:
    """Raise ValueError where setting, schedule or observer are not those the bound is about."""
    def print_of(name: str, value: Any) -> str | None:
        if name == "setting":  # without what is spent, which no exact delta depends on
            value = replace(value, delta0=0.5, delta1=0.0, delta2=0.0, n_rounds=1,
                            client_sizes=value.client_sizes if law.observed == "run" else None)
        return fingerprint(value)

    for name, own in (("observed", law.observed), ("setting", law.given), ("schedule", law.schedule)):
        bound_to = bound.inputs.get(name)
        prints = print_of(name, own), print_of(name, bound_to) if bound_to is not None else None
        if None not in prints and prints[0] != prints[1]:
            raise ValueError(f"{name} of the release, {own!r}, differs from that of the bound, {bound_to!r}; "
                             "they must be the same")


def _measure(known: str) -> Any:
    def measure(bound: Bound, law: Any, level: float) -> Measured:
        instance("law", law, Release, advice="the bound is about what an observer learns of one record")
        _require_same(bound, law)
        rounds = law.affordable(bound.rounds)
        levels = bound.inputs[known][np.isin(bound.rounds, rounds)]
        read = law.delta if known == "epsilon" else law.epsilon
        value = np.array([read(float(one), int(count)) for one, count in zip(levels, rounds, strict=True)])
        return Measured(value, rounds, float(value.max()), note=law.note)

    return measure


quantity("privacy_delta", "exact delta, at the bound's epsilon, of telling one changed record",
         _measure("epsilon"), _release)
quantity("privacy_epsilon", "exact epsilon, at the bound's delta, of telling one changed record",
         _measure("delta"), _release)
