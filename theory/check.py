"""check: does a bound hold for an exact law, and how tight is it?

A bound names its `quantity`. Each quantity is registered here, or beside the theorem that speaks about
it, with two functions: `measure` reads it from a law, `exact` makes what it is read from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fedsim.law import Law
from fedsim.validation import Array, array, one_of, positive, shape

from .bound import Bound
from .catalogue import Theorem, theorems
from .constants import Constants, constants
from .exact import exact_law

TOLERANCE = 1e-12
"""Of the quantity's scale: rounding of the exact side."""


class Measured(NamedTuple):
    """A quantity at some rounds.

    value (n,); rounds (n,); scale of its rounding errors; low and high (n,) ends of its band where it
    is an estimate, else the value; note for the verdict.
    """

    value: Array
    rounds: np.ndarray
    scale: float
    low: Array | None = None
    high: Array | None = None
    note: str = ""


@dataclass(frozen=True)
class Quantity:
    """What a bound can be about.

    Attributes
    ----------
    name, meaning : str
    measure : callable(bound, law, level) -> Measured
    exact : callable(problem, algorithm, bound, n_rounds, start, record) -> what `measure` reads
    """

    name: str
    meaning: str
    measure: Callable[[Bound, Any, float], Measured] = field(repr=False)
    exact: Callable[..., Any] = field(repr=False)


_QUANTITIES: dict[str, Quantity] = {}


def quantity(name: str, meaning: str, measure: Callable[[Bound, Any, float], Measured],
             exact: Callable[..., Any]) -> None:
    """Register a quantity (see `Quantity`)."""
    if name in _QUANTITIES:
        raise ValueError(f"name={name!r} is registered already; quantities must be unique")
    _QUANTITIES[name] = Quantity(name, meaning, measure, exact)


def quantities() -> dict[str, str]:
    """Name and meaning of every quantity that a bound can be checked on."""
    return {name: entry.meaning for name, entry in sorted(_QUANTITIES.items())}


@dataclass(frozen=True, eq=False)
class Verdict:
    """Outcome of a comparison; true as a bool exactly when the bound held.

    Attributes
    ----------
    holds : bool
    tightness : float
        Largest exact / bound (bound / exact for lower bounds): 1 is tight, more is a violation.
    first_violation : int or None
        The first round at which it fails.
    hypotheses_met : bool
        A bound may fail outside its hypotheses without being wrong.
    is_vacuous : bool
    n_compared : int
        Rounds compared.
    worst_round : int
        Where `tightness` is attained.
    bound : Bound
    note : str
        What limits the comparison.
    """

    holds: bool
    tightness: float
    first_violation: int | None
    hypotheses_met: bool
    is_vacuous: bool
    n_compared: int
    worst_round: int
    bound: Bound = field(repr=False)
    note: str = ""

    def __bool__(self) -> bool:
        return self.holds

    @property
    def contradicts_theorem(self) -> bool:
        """True when the bound failed although all its hypotheses hold."""
        return not self.holds and self.hypotheses_met

    @property
    def message(self) -> str:
        """The verdict in a sentence or two."""
        bound = self.bound
        if self.holds:
            text = (f"{bound.source} holds at {self.n_compared} {bound.index}s: {bound.quantity} is at most "
                    f"{self.tightness:.3g} of the bound")
            if bound.kind == "lower":
                text = text.replace("is at most", "has a lower bound of at most").replace(
                    "of the bound", "of its value")
        else:
            text = (f"{bound.source} ({bound.variant}) is violated from {bound.index} "
                    f"{self.first_violation}: ratio {self.tightness:.6g} at {bound.index} {self.worst_round}")
        return ". ".join(part for part in (text, bound.remark, self.note) if part)

    def __str__(self) -> str:
        return self.message


def check(bound: Bound, law: Any, *, level: float = 0.999) -> Verdict:
    """Compare a bound with the quantity it bounds.

    Parameters
    ----------
    bound : Bound
        Of kind "upper" or "lower"; rates hold up to unknown constants and are refused.
    law : Law, Run, joint law, or array (n,) of the quantity itself at ``bound.rounds``
        What the bound's quantity is read from: see `quantities`.
    level : float
        For a `Run`: joint confidence of its band over all rounds. A run violates a bound only where
        its whole band does.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        When quantity, rounds or target do not match, and for rates.

    Examples
    --------
    >>> import fedsim as fs, theory
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    >>> verdict = check(bound, theory.exact_law(problem, algorithm, n_rounds=50))
    >>> verdict.holds, verdict.first_violation, verdict.is_vacuous
    (True, None, True)
    """
    if not isinstance(bound, Bound):
        raise ValueError(f"bound={bound!r} must be a theory.Bound")
    if bound.kind == "rate":
        raise ValueError(f"kind='rate' of {bound.source}: a rate holds up to an unknown constant and cannot "
                         "be checked; compare slopes instead")
    positive("level", level)
    measured = _measure(bound, law, level)
    rounds, mine, theirs = np.intersect1d(bound.rounds, measured.rounds, return_indices=True)
    if not len(rounds):
        raise ValueError(f"rounds of the bound ({bound.index}s {bound.rounds[0]}..{bound.rounds[-1]}) and of "
                         f"the law ({measured.rounds[0]}..{measured.rounds[-1]}) must have one in common")
    limit, value = bound.value[mine], measured.value[theirs]
    low = (value if measured.low is None else measured.low[theirs])
    high = (value if measured.high is None else measured.high[theirs])
    slack = TOLERANCE * max(measured.scale, float(np.abs(value).max()))
    if bound.kind == "upper":
        wrong, top, bottom = low > limit + slack, value, limit
    else:
        wrong, top, bottom = high < limit - slack, limit, value
    ratio = _ratio(top, bottom, slack)
    worst = int(np.argmax(ratio))
    return Verdict(
        holds=not wrong.any(), tightness=float(ratio[worst]),
        first_violation=int(rounds[np.argmax(wrong)]) if wrong.any() else None,
        hypotheses_met=bound.hypotheses_hold, is_vacuous=bound.is_vacuous, n_compared=len(rounds),
        worst_round=int(rounds[worst]), bound=bound, note=measured.note)


def _ratio(top: Array, bottom: Array, slack: float) -> Array:
    """top / bottom, where 0/0 up to rounding is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = top / bottom
    return np.where(bottom > 0.0, ratio, np.where(top <= slack, 0.0, np.inf))


def _measure(bound: Bound, law: Any, level: float) -> Measured:
    if isinstance(law, (np.ndarray, list, tuple, float, int)):
        value = shape("law", array("law", np.atleast_1d(np.asarray(law)), 1), bound.value.shape,
                      " (one number per round of the bound)")
        return Measured(value, bound.rounds, float(np.abs(value).max()))
    return _QUANTITIES[one_of("quantity", bound.quantity, tuple(_QUANTITIES))].measure(bound, law, level)


def _same_target(bound: Bound, law: Law) -> str:
    """"" when both distances are to the same law; a note when one of the targets is not known."""
    if bound.target is None:
        return "the bound's target is not known: taken to be that of the law"
    if law.target is None:
        return ""
    mine, theirs = bound.target, law.target
    shape("law.target", theirs.mean, mine.mean.shape, " (the dimension of the bound's target)")
    size = float(np.sqrt(mine.variances.sum()))
    gap = mine.w2(theirs)
    if gap > 1e-7 * size:
        raise ValueError(f"target of the law differs from that of the bound by W2={gap:.3g} (size "
                         f"{size:.3g}); they must be the same")
    return ""


def _measure_w2(bound: Bound, law: Any, level: float) -> Measured:
    if not isinstance(law, Law):
        raise ValueError(f"law={law!r} must be a fedsim.Law or Run: the bound is about W2 at communications")
    if bound.index != "round":
        raise ValueError(f"index={bound.index!r} of the bound must be 'round' to compare with a Law")
    notes = [_same_target(bound, law)]
    goal = law.target if law.target is not None else bound.target
    value = law.w2(goal)
    scale = max(float(value.max()), float(np.sqrt(goal.variances.sum())) if goal is not None else 0.0)
    if not law.is_gaussian:
        notes.append("the law is not Gaussian: its W2 is that of the Gaussian with the same moments, a lower "
                     "bound of the true one")
    band = None
    if hasattr(law, "w2_interval"):
        band = np.asarray(law.w2_interval(1.0 - (1.0 - level) / len(value)))
        notes.append(f"measured by replicas: violated only where the {level:g} band is")
    nearest = float(value[0] if band is None else band[0, 0])
    if law.rounds[0] == 0 and bound.start_distance is not None and (
            nearest > (1.0 + 1e-6) * bound.start_distance + TOLERANCE * scale):
        raise ValueError(f"start of the law is at W2={nearest:.6g} from the target, that of the bound at "
                         f"{bound.start_distance:.6g}; pass the same start to theory.constants")
    return Measured(value, law.rounds, scale, None if band is None else band[:, 0],
                    None if band is None else band[:, 1], ". ".join(filter(None, notes)))


def _exact_w2(problem: Any, algorithm: Any, bound: Bound, n_rounds: int, start: Any, record: Any) -> Law:
    return exact_law(problem, algorithm, n_rounds, start=start, record=record)


quantity("w2", "W2 between the law of the average iterate at communications and the target",
         _measure_w2, _exact_w2)


def examine(theorem: str | Theorem, problem: Any, algorithm: Any, n_rounds: int, *, start: Any = None,
            record: Any = None, variant: str | None = None, known: Constants | None = None) -> Verdict:
    """Evaluate a theorem on a problem and check it against the exact quantity.

    Parameters
    ----------
    theorem : str or Theorem
        An id of `theory.catalogue`, e.g. "fa_ld.w2_bound".
    problem, algorithm, n_rounds, start
        As for `theory.exact_law`.
    record : sequence of int, optional
        Rounds (or local steps, where the theorem counts those) to compare at.
    variant : str, optional
        The theorem's default variant when not given.
    known : Constants, optional
        In place of ``theory.constants(problem, algorithm, start)``.

    Returns
    -------
    Verdict
    """
    by_id = {entry.id: entry for entry in theorems()}
    entry = theorem if isinstance(theorem, Theorem) else by_id[one_of("theorem", theorem, tuple(by_id))]
    facts = constants(problem, algorithm, start) if known is None else known
    extra: dict[str, Any] = {}
    if entry.inputs is not None:
        extra = entry.inputs(problem, algorithm, facts, n_rounds, start)
    bound = entry.function(facts, algorithm, n_rounds=n_rounds, record=record,
                           variant=variant or entry.variants[0], **extra)
    if bound.kind == "rate":
        raise ValueError(f"theorem={entry.id!r} is a rate: it holds up to an unknown constant")
    last = int(bound.rounds[-1]) if bound.index == "round" else n_rounds
    source = _QUANTITIES[bound.quantity].exact(problem, algorithm, bound, last, start, record)
    return check(bound, source)
