"""Every theorem on a setting: its ratio to the exact quantity, and what is made of a ratio above one.

A ratio counts against a theorem when the bound's hypotheses hold, `theory.check` says that it fails, and
what is left after more digits is more than rounding. Where a "corrected" form exists, the readings of the
print are known to be false: they are in the table, and do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import theory
from theory.declare.statement import called
from theory.judge.checking import QUANTITIES, TOLERANCE, measure
from theory.judge.examining import drawn_numbers

from .precise import NotRedone, exact_w2
from .settings import KINDS, Setting

LONG = ("w2", "w2_clients", "w2_of_euler")
"""Quantities of communications alone: their rounds can be skipped, so that long runs cost little."""
AT_START = ("fa_ld.initial_bound",)
"""Theorems about round 0 alone."""
READINGS = ("printed", "consistent")
"""Variants that read the print; they are not proved where a "corrected" one stands beside them."""
NOT_CLAIMED = ("printed_constant",)
"""Variants with a constant that is not part of the statement and is known to be wrong."""
TIE = 1e-9
"""Of a quantity's scale: more than this is no rounding, where it cannot be redone."""
MOVED = 1e-12
"""Relative change of the constants, which are eigenvalues with rounding, when a bound is made again."""
REDONE_TIE = 1e-11
"""The same, of the bound, after 60 digits: rounding of the bound, whose own constants are float64."""
REDONE_ROUNDS = 4
SMALLEST = 1e3
"""Times the check's own slack: a bound below this is rounding and has no ratio."""


@dataclass(frozen=True)
class Outcome:
    """A variant of a theorem on a setting.

    Attributes
    ----------
    theorem, variant : str
    counts : bool
        False for printed forms that are known to be false.
    grade : str
        "refused", "outside" (of the hypotheses), "below" one, "rounding" (above, but equal to rounding),
        "tie" (failed, and found to be rounding), or "violation".
    ratio : float
        Largest over all rounds.
    later : float
        Largest over rounds after the start, where there are any.
    last : float
        At the last round.
    at : int
        Round of `ratio`, or of `later` where the start alone is above.
    note : str
    """

    theorem: str
    variant: str
    counts: bool
    grade: str
    ratio: float = np.nan
    later: float = np.nan
    last: float = np.nan
    at: int = -1
    note: str = ""
    setting: Setting | None = field(default=None, repr=False)

    @property
    def fails(self) -> bool:
        """Does this count against the theorem?"""
        return self.counts and self.grade == "violation"


def entries(only: str = "", catalogue: tuple[Any, ...] | None = None) -> list[Any]:
    """Upper and lower bounds whose id begins with `only`; a rate cannot be examined."""
    found = theory.theorems() if catalogue is None else catalogue
    return [entry for entry in found if entry.kind in ("upper", "lower") and entry.id.startswith(only)]


def kinds_for(entry: Any) -> list[str]:
    """Kinds of settings that a theorem can speak about."""
    return [kind for kind, (_, classes, _) in KINDS.items()
            if any(issubclass(cls, entry.algorithm) for cls in classes)]


HAVE_FREE_POINTS = ("fa_ld.contraction_bound", "fa_hmc.flow_distance_bound", "fa_hmc.displacement_bound")
"""Lemmas that hold for any points."""


def free_points(id: str, setting: Setting, given: dict[str, Any]) -> dict[str, Any]:
    """Random points for such a lemma in place of the given ones, of the size of the target."""
    problem, numbers = setting.problem, setting.numbers
    points = numbers.normals("free", 4, problem.n_clients, problem.dim)
    size = float(np.sqrt(setting.algorithm.target(problem).variances.sum()))
    first, second = problem.minimizer + size * points[0], problem.minimizer + size * points[1]
    if id == "fa_ld.contraction_bound":
        return {**given, "points": first, "others": second}
    if id == "fa_hmc.flow_distance_bound":
        return {**given, "position_gap": size * points[2, 0], "momentum_gap": points[3, 0]}
    return {**given, "point": first[0], "momentum": points[3, 0],
            "gradient": problem.gradient(given["client"], first[0])}


def _with_points(entry: Any, setting: Setting) -> Iterator[Any]:
    """The theorem as it is examined by itself, and with points of the setting where it has free ones."""
    yield entry
    if entry.id in HAVE_FREE_POINTS:
        own = entry.inputs
        yield replace(entry, inputs=lambda *arguments: free_points(entry.id, setting, own(*arguments)))


def recorded(entry: Any, setting: Setting) -> tuple[int, list[int] | None]:
    """Rounds to compare at: all of a short run, or some 40 of a long one."""
    if entry.quantity not in LONG or entry.id in AT_START or setting.long_rounds == setting.n_rounds:
        return setting.n_rounds, None
    last = setting.long_rounds
    return last, sorted({*range(min(10, last)), *np.geomspace(1, last, 30).astype(int).tolist()})


def _ratios(verdict: Any, entry: Any, setting: Setting, rounds: int, record: Any) -> tuple[np.ndarray, ...]:
    """Rounds compared, the side that must be smaller, the greater one, and the check's slack and scale."""
    bound = verdict.bound
    last = int(bound.rounds[-1]) if bound.index == "round" else rounds
    source = called(QUANTITIES[bound.quantity].exact, {
        "problem": setting.problem, "algorithm": setting.algorithm, "bound": bound, "n_rounds": last,
        "start": setting.start, "record": record})
    measured = measure(bound, source, 0.999)
    at, mine, theirs = np.intersect1d(bound.rounds, measured.rounds, return_indices=True)
    limit, value, ends = bound.value[mine], measured.value[theirs], (measured.low, measured.high)
    low, high = (value if end is None else end[theirs] for end in ends)
    scale = max(float(measured.scale), float(np.abs(value).max()))
    small, large = (low, limit) if bound.kind == "upper" else (limit, high)
    return at, small, large, np.array([TOLERANCE * scale, scale])


def counts_against(entry: Any, variant: str) -> bool:
    """Is this variant claimed to be true?"""
    return variant not in NOT_CLAIMED and not (variant in READINGS and "corrected" in entry.variants)


def compare(entry: Any, variant: str, setting: Setting) -> Outcome:
    """Examine one variant; nothing is thrown but what is no ValueError."""
    counts = counts_against(entry, variant)
    found = [_compare(form, variant, setting, counts) for form in _with_points(entry, setting)]
    order = ("refused", "outside", "below", "rounding", "tie", "violation")
    return max(found, key=lambda each: (order.index(each.grade), np.nan_to_num(each.later, nan=-1.0)))


def _compare(entry: Any, variant: str, setting: Setting, counts: bool) -> Outcome:
    rounds, record = recorded(entry, setting)
    base = Outcome(entry.id, variant, counts, "refused", setting=setting)
    try:
        verdict = theory.examine(entry, setting.problem, setting.algorithm, rounds, start=setting.start,
                                 record=record, variant=variant,
                                 privacy=drawn_numbers(entry, setting.problem, setting.algorithm, rounds))
        at, small, large, (slack, scale) = _ratios(verdict, entry, setting, rounds, record)
    except ValueError as refusal:
        return replace(base, note=f"{type(refusal).__name__}: {refusal}"[:160])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(large > SMALLEST * slack, small / large,
                         np.where(small > large + slack, np.inf, 0.0))
    timed = verdict.bound.index != "leapfrog_step" and bool((at > 0).any())
    after = np.where((at > 0) | (not timed), ratio, -np.inf)
    later = float(after.max())
    worst = int(np.argmax(after if later > 1.0 else ratio))
    base = replace(base, ratio=float(ratio.max()), later=later, last=float(ratio[-1]), at=int(at[worst]))
    if not verdict.hypotheses_met:
        return replace(base, grade="outside", note="; ".join(verdict.bound.violated))
    if verdict.holds and not base.ratio > 1.0:
        return replace(base, grade="below")
    if not verdict.holds and not base.ratio > 1.0:
        base = replace(base, ratio=float(verdict.tightness), at=int(verdict.worst_round))
    above = np.flatnonzero(small > large)
    most = above[np.argsort(-(small - large)[above])][:REDONE_ROUNDS]
    return settle(base, verdict.holds, entry, at[most], small[most], large[most], scale)


def settle(found: Outcome, holds: bool, entry: Any, at: np.ndarray, small: np.ndarray, large: np.ndarray,
           scale: float) -> Outcome:
    """What a ratio above one comes to, with more digits where a law can be made with them."""
    setting = found.setting
    assert setting is not None
    excess = float((small - large).max()) / scale
    note = f"above by {excess:.1e} of the quantity's scale"
    if holds and (entry.quantity not in ("w2", "w2_clients") or found.later <= 1.0):
        return replace(found, grade="rounding", note=note)
    if entry.quantity in ("w2", "w2_clients") and entry.kind == "upper":
        try:
            exact = exact_w2(setting.problem, setting.algorithm, setting.start, at.tolist(),
                             clients=entry.quantity == "w2_clients")
        except NotRedone:
            pass
        else:
            pairs = list(zip(exact, large.tolist(), strict=True))
            above = max(float(value / limit - 1) if limit else np.inf for value, limit in pairs)
            rounding = all(value - limit <= REDONE_TIE * limit + 1e-2 * TOLERANCE * scale
                           for value, limit in pairs)
            return replace(found, grade=("rounding" if holds else "tie") if rounding else "violation",
                           note=f"with 60 digits the ratio is 1 {above:+.2e}")
    if holds:
        return replace(found, grade="rounding", note=note)
    tie = excess < TIE and (found.ratio < 1.0 + TIE or _holds_nearby(found, entry))
    return replace(found, grade="tie" if tie else "violation", note=note)


def _holds_nearby(found: Outcome, entry: Any) -> bool:
    """Does the bound hold when it is made again from constants that are the same up to rounding?"""
    setting = found.setting
    assert setting is not None
    known = theory.constants(setting.problem, setting.algorithm, setting.start)
    known = replace(known, strong_convexity=known.strong_convexity * (1.0 - MOVED),
                    smoothness=known.smoothness * (1.0 + MOVED))
    rounds, record = recorded(entry, setting)
    return theory.examine(entry, setting.problem, setting.algorithm, rounds, start=setting.start,
                          record=record, variant=found.variant, known=known,
                          privacy=drawn_numbers(entry, setting.problem, setting.algorithm, rounds)).holds


def judge(setting: Setting, chosen: list[Any], default_only: bool = False) -> Iterator[Outcome]:
    """Every theorem of `chosen` that speaks about the setting, every variant."""
    for entry in chosen:
        if (isinstance(setting.algorithm, entry.algorithm)
                and entry.applies(setting.algorithm, setting.problem)):
            for variant in entry.variants[:1] if default_only else entry.variants:
                yield compare(entry, variant, setting)
