"""check: does a bound hold for an exact law, and how tight is it?

A bound names its `quantity`. Each quantity is registered here, or beside the theorem that speaks about
it, with two functions: `measure` reads it from a law, `exact` makes what it is read from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedsim.laws.law import Gaussian, Law
from fedsim.provenance import compared, differing, of_source
from fedsim.settings.validation import Array, array, instance, one_of, positive, shape, shown

from ..declare.bound import Bound
from ..exact import exact_law
from .verdict import Verdict, instead_of_verdict

__all__ = ["Measured", "Quantity", "Verdict", "check", "quantities", "quantity"]

TOLERANCE = 1e-12
"""Of the quantity's scale: rounding of the exact side."""
PROOF = 1e-7
"""Probability, over all rounds, with which replicas may be said to contradict a theorem that is true."""
AT_LEAST = "of variances alone W2 is at most the true one, and contradicts no lower bound"


class Measured(NamedTuple):
    """A quantity at some rounds.

    value (n,); rounds (n,); scale of its rounding errors; low and high (n,) ends of its band where it
    is an estimate, else the value; note for the verdict; rounding errors relative to the scale; ends
    (n, 2) between which it is proved to lie, where that is less sure than low and high are.
    """

    value: Array
    rounds: np.ndarray
    scale: float
    low: Array | None = None
    high: Array | None = None
    note: str = ""
    rounding: float = TOLERANCE
    proved: Array | None = None


@dataclass(frozen=True)
class Quantity:
    """What a bound can be about.

    Attributes
    ----------
    name, meaning : str
    measure : callable(bound, law, level) -> Measured
    exact : callable -> what `measure` reads
        Called by the names of its arguments, among problem, algorithm, bound, n_rounds, start and record.
    rounding : callable(problem, algorithm) -> relative rounding, where it may be more than `TOLERANCE`
    of_run : bool
        What `exact` makes depends on the run alone, so that bounds on the same run may share it.
    """

    name: str
    meaning: str
    measure: Callable[[Bound, Any, float], Measured] = field(repr=False)
    exact: Callable[..., Any] = field(repr=False)
    rounding: Callable[[Any, Any], float] | None = field(default=None, repr=False)
    of_run: bool = False


QUANTITIES: dict[str, Quantity] = {}
"""By name."""


def quantity(name: str, meaning: str, measure: Callable[[Bound, Any, float], Measured],
             exact: Callable[..., Any], rounding: Callable[[Any, Any], float] | None = None,
             of_run: bool = False) -> None:
    """Register a quantity (see `Quantity`)."""
    if name in QUANTITIES:
        raise ValueError(f"name={name!r} is registered already; quantities must be unique")
    QUANTITIES[name] = Quantity(name, meaning, measure, exact, rounding, of_run)


def quantities() -> dict[str, str]:
    """Name and meaning of every quantity that a bound can be checked on.

    Examples
    --------
    >>> theory.quantities()['w2']
    'W2 between the law of the average iterate at communications and the target'
    """
    return {name: entry.meaning for name, entry in sorted(QUANTITIES.items())}


def check(bound: Bound, law: Any, *, level: float = 0.999, same: bool = True) -> Verdict:
    """Compare a bound with the quantity it bounds.

    Parameters
    ----------
    bound : Bound
        Of kind "upper" or "lower"; rates hold up to unknown constants and are refused.
    law : Law, Run, joint law, or array (n,) of the quantity itself at ``bound.rounds``
        What the bound's quantity is read from: see `quantities`.
    level : float
        For a `Run`: joint confidence of its band over all rounds. A run violates a bound only where
        its whole band does, and contradicts a theorem only where `Run.w2_proved` does as well, at a joint
        level of 1 - 1e-7.
    same : bool
        False also compares with a law that is known to be of another problem, algorithm or start, on
        purpose: a limit in which both agree, for example. Such a comparison contradicts no theorem.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        When quantity, rounds or target do not match, when the law is known to be of something else than
        the bound (unless `same` is False), and for rates.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    >>> verdict = theory.check(bound, theory.exact_law(problem, algorithm, n_rounds=50))
    >>> verdict.holds, verdict.first_violation, verdict.is_vacuous
    (True, None, True)
    """
    instance("bound", bound, Bound)
    if bound.kind == "rate":
        raise ValueError(f"kind='rate' of {bound.source}: a rate {instead_of_verdict(bound)}")
    level = positive("level", level)
    of, names = of_source(law), ("bound", "law")
    known = differing(bound.of, of, names)
    try:
        measured = measure(bound, law, level)
    except ValueError as error:
        if known and same:  # which is why the rest does not fit either
            raise ValueError(f"{known}; {error}") from None
        raise
    note = compared(bound.of, of, names, bool(one_of("same", same, (True, False))))
    return verdict_on(bound, measured, note, not known)


def verdict_on(bound: Bound, measured: Measured, note: str, same: bool) -> Verdict:
    """Compare at the rounds that both have."""
    _require_finite(measured)
    rounds, of_bound, of_law = np.intersect1d(bound.rounds, measured.rounds, return_indices=True)
    if not len(rounds):
        own, theirs = (f"{few[0]}..{few[-1]}" if len(few) else "none"
                       for few in (bound.rounds, measured.rounds))
        raise ValueError(f"rounds of the bound ({bound.index}s {own}) and of the law ({theirs}) must have "
                         "one in common; ask for other n_rounds or record")
    limit, value = bound.value[of_bound], measured.value[of_law]
    low, high = (value if end is None else end[of_law] for end in (measured.low, measured.high))
    slack = measured.rounding * max(measured.scale, float(np.abs(value).max()))
    upper = bound.kind == "upper"
    wrong = low > limit + slack if upper else high < limit - slack
    least, most = (low, high) if measured.proved is None else measured.proved[of_law].T
    sure = wrong & (least > limit + slack if upper else most < limit - slack)
    top, bottom = (value, limit) if upper else (limit, value)
    told = wrong | (bottom > slack)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(told, top / bottom, 0.0)
    tied = ~wrong & (ratio > 1.0)
    worst = int(np.argmax(np.where(tied, 1.0, ratio)))
    notes = [measured.note, note]
    if not told.any():
        small = bool((np.abs(value) <= slack).all())
        what = f"both sides are rounding, below {slack:.2g}," if small and slack > 0.0 else (
            "both sides are 0" if small else "what is divided by is 0, or rounding,")
        notes.append(f"{what} at every {bound.index}: there is no ratio")
    elif tied[worst]:
        excess = f"{bound.quantity} at {bound.index} {rounds[worst]}"
        gap = abs(float(value[worst] - limit[worst]))
        if gap <= slack:
            notes.append(f"equal up to rounding: {excess} is beyond the bound by {gap:.2g}, less than its "
                         f"rounding {slack:.2g}, and this is not redone with more digits")
        elif measured.low is not None or measured.high is not None:
            notes.append(f"the estimate of {excess} is {ratio[worst]:.6g} of the bound, within its band")
    return Verdict(
        holds=not wrong.any(), tightness=1.0 if tied[worst] else float(ratio[worst]),
        first_violation=int(rounds[np.argmax(wrong)]) if wrong.any() else None,
        hypotheses_met=bound.hypotheses_hold, is_vacuous=bound.is_vacuous, n_compared=len(rounds),
        worst_round=int(rounds[worst]), bound=bound, note=". ".join(filter(None, notes)), same=same,
        proved=bool(sure.any()) or not wrong.any(), compared=(rounds, limit, value))


def _require_finite(measured: Measured) -> None:
    """Raise ValueError where a comparison would come out by what is not a number."""
    for what, values, allowed in (("value", measured.value, ()), ("low end", measured.low, (-np.inf,)),
                                  ("high end", measured.high, (np.inf,))):
        if values is not None:
            bad = ~(np.isfinite(values) | np.isin(values, allowed))
            if bad.any():
                where = int(np.argmax(bad))
                raise ValueError(f"{what} of the measured quantity at round {measured.rounds[where]} is "
                                 f"{values[where]}; it must be finite")
    if not np.isfinite(measured.scale):
        raise ValueError(f"scale={measured.scale} of the measured quantity must be finite")


def measure(bound: Bound, law: Any, level: float) -> Measured:
    """What a bound is about, read from a law, or from numbers at the bound's rounds."""
    if isinstance(law, (np.ndarray, list, tuple, float, int)):
        value = shape("law", np.atleast_1d(array("law", law, 0, 1)), bound.value.shape,
                      " (one number per round of the bound)")
        return Measured(value, bound.rounds, float(np.abs(value).max()))
    return QUANTITIES[one_of("quantity", bound.quantity, tuple(QUANTITIES))].measure(bound, law, level)


def require_target(bound: Bound, theirs: Gaussian) -> None:
    """Raise ValueError where a law is known not to be the target that the bound is about."""
    target = bound.target
    if target is None:
        return
    shape("law.target", theirs.mean, target.mean.shape, " (the dimension of the bound's target)")
    if np.array_equal(target.mean, theirs.mean) and np.array_equal(target.table, theirs.table):
        return
    size = float(np.sqrt(target.variances.sum()))
    gap = target.w2(theirs)
    if gap > 1e-7 * size:
        raise ValueError(f"target of the law differs from that of the bound by W2={gap:.3g} (size "
                         f"{size:.3g}); they must be the same")


def _measure_w2(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Law):
        raise ValueError(f"law={shown(law)} must be a fedsim.Law or Run: the bound is about W2 at "
                         "communications")
    if bound.index != "round":
        raise ValueError(f"index={bound.index!r} of the bound must be 'round' to compare with a Law")
    notes = ["the bound's target is not known: taken to be that of the law"] if bound.target is None else []
    if law.target is not None:
        require_target(bound, law.target)
    goal = law.target if law.target is not None else bound.target
    value = law.w2(goal)
    scale = max(float(value.max()), float(np.sqrt(goal.variances.sum())) if goal is not None else 0.0)
    if not law.is_gaussian:
        notes.append("the law is not Gaussian: its W2 is that of the Gaussian with the same moments, a lower "
                     "bound of the true one")
    low = high = proved = None
    if hasattr(law, "w2_interval"):
        low, high = np.asarray(law.w2_interval(1.0 - (1.0 - level) / len(value))).T
        proved = proved_of(law, len(value))
        notes.append(f"measured by replicas: violated only where the {level:g} band is")
    if bound.kind == "lower" and not is_distance(law):
        high = np.full(len(value), np.inf)
        notes += [AT_LEAST] * law.is_gaussian
    nearest = float(value[0] if low is None else low[0])
    starts = {part and part.fingerprint for part in (bound.of.start, law.of.start)}
    same_start = len(starts) == 1 and None not in starts  # few replicas of it may lie anywhere
    if not same_start and law.rounds[0] == 0 and bound.start_distance is not None and (
            nearest > (1.0 + 1e-6) * bound.start_distance + TOLERANCE * scale):
        raise ValueError(f"start of the law is at W2={nearest:.6g} from the target, that of the bound at "
                         f"{bound.start_distance:.6g}; pass the same start to theory.constants")
    return Measured(value, law.rounds, scale, low, high, ". ".join(notes), proved=proved)


def is_distance(law: Law) -> bool:
    """Whether its W2 is the true one: not that of a mixture, nor of variances without their correlations."""
    return bool(law.is_gaussian) and (law.dim == 1 or law.cov is None or law.cov.ndim == 3)


def proved_of(law: Any, n_comparisons: int) -> Array:
    """Ends (n, 2) that replicas prove, jointly over so many comparisons; 0 and infinity of other laws."""
    if hasattr(law, "w2_proved"):
        return np.asarray(law.w2_proved(1.0 - PROOF / n_comparisons))
    return np.tile([0.0, np.inf], (len(law.rounds), 1))


quantity("w2", "W2 between the law of the average iterate at communications and the target",
         _measure_w2, exact_law, of_run=True)
