"""Bound: what a theorem says about one setting, and Assumption: one of its hypotheses, judged there.

Theorems themselves are listed by `theory.catalogue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from fedsim.laws.law import Gaussian
from fedsim.provenance import Provenance
from fedsim.settings.alignment import aligned
from fedsim.settings.validation import (
    Array,
    array,
    instance,
    nonnegative,
    one_of,
    positive,
    read_only,
    real,
    set_fields,
    shape,
    shown,
    whole_numbers,
)

from .pictures import draw_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("upper", "lower", "rate")
INDICES = ("round", "local_step", "leapfrog_step")
ROUNDING = 1e-12
"""Relative slack of a hypothesis: a step size of exactly 1/(2L) must count as within it."""


def number_or_infinite(name: str, value: Any) -> float:
    """A real number, which may be infinite."""
    infinite = isinstance(value, (float, np.floating)) and np.isinf(value)
    return float(value) if infinite else real(name, value)


@dataclass(frozen=True)
class Assumption:
    """One hypothesis of a theorem, judged in one setting.

    Attributes
    ----------
    name : str
        The condition, e.g. ``"step_size <= 1/(2 smoothness)"``.
    holds : bool
    margin : float
        At least 0 exactly when it holds. For a limit it is the relative room (limit - value) / limit,
        so that 1 is far inside and -1 is twice the limit; for a yes-or-no condition it is 1 or -1.

    Examples
    --------
    >>> name, holds, margin = theory.Assumption('step_size <= 2', True, 0.75)
    >>> holds, margin
    (True, 0.75)
    """

    name: str
    holds: bool
    margin: float

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        if not isinstance(self.holds, (bool, np.bool_)):
            raise ValueError(f"holds={shown(self.holds)} must be True or False")
        margin = real("margin", self.margin)
        if bool(self.holds) != (margin >= 0.0):
            raise ValueError(f"holds={self.holds!r} contradicts margin={margin:g} in {shown(self.name)}; "
                             "an assumption holds exactly when its margin is at least 0")
        set_fields(self, margin=margin, holds=margin >= 0.0)

    def __iter__(self) -> Iterator[str | bool | float]:
        """So that ``name, holds, margin = assumption`` works."""
        return iter((self.name, self.holds, self.margin))

    @classmethod
    def at_most(cls, name: str, value: float, limit: float) -> Assumption:
        """``value <= limit`` for a positive limit, with margin (limit - value) / limit.

        Examples
        --------
        >>> theory.Assumption.at_most('step_size <= 1/(2 smoothness)', 0.25, 0.5)
        Assumption(name='step_size <= 1/(2 smoothness)', holds=True, margin=0.5)
        """
        limit, value = positive("limit", limit), number_or_infinite("value", value)
        margin = (limit - value) / limit
        if abs(margin) <= ROUNDING:
            margin = 0.0
        return cls(name, margin >= 0.0, float(np.clip(margin, -1e300, 1e300)))

    @classmethod
    def yes(cls, name: str, holds: bool) -> Assumption:
        """A condition that holds or not: margin 1 or -1."""
        return cls(name, holds, 1.0 if isinstance(holds, (bool, np.bool_)) and holds else -1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """What a theorem says about `quantity` at the recorded rounds.

    Attributes
    ----------
    value : (n,)
        The bound.
    rounds : (n,) int
        Communications, or what `index` says.
    terms : mapping name -> (n,)
        Named parts that add up to `value`.
    assumptions : tuple of Assumption
        Each hypothesis with its margin.
    quantity : str
        What is bounded; `theory.check` compares it with the same quantity only. See
        `theory.quantities`.
    kind : "upper", "lower" or "rate"
    source : str
        Paper, theorem and equation.
    variant : str
        Which form of the statement: "printed" (as in our transcription), "corrected", ...
    target : Gaussian or None
        The law to which a distance is measured.
    start_distance : float or None
        The quantity at the start, for distances: what a useful bound must be below.
    floor : float or None
        Limit of the bound as the rounds go to infinity, where it has one.
    index : "round", "local_step" or "leapfrog_step"
        What `rounds` counts.
    inputs : mapping
        What the exact quantity depends on besides the law (e.g. the minimizer).
    theorem : str
        Its id in the catalogue.
    is_root : bool
        Whether the value is the root of a sum of squares; its terms are then each part's share of the root.
    of : fedsim.provenance.Provenance
        The problem and start that its constants are of, and the algorithm. A copy changed by hand is a bound
        on nothing known.
    given : tuple of str
        Arguments given by hand beyond the constants: that they are what the theorem asks for is not known.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    >>> list(bound.terms), bound.quantity, bound.kind
    (['initialization', 'discretization'], 'w2', 'upper')
    >>> bound.hypotheses_hold, bound.is_vacuous
    (True, True)
    """

    value: Array
    rounds: np.ndarray
    terms: Mapping[str, Array]
    assumptions: tuple[Assumption, ...]
    quantity: str
    kind: str
    source: str
    variant: str = "printed"
    target: Gaussian | None = None
    start_distance: float | None = None
    floor: float | None = None
    index: str = "round"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    theorem: str = ""
    is_root: bool = False
    of: Provenance = field(init=False, default=Provenance())
    given: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        one_of("kind", self.kind, KINDS)
        one_of("index", self.index, INDICES)
        for name in ("quantity", "source", "variant", "theorem"):
            instance(name, getattr(self, name), str)
        instance("target", self.target, Gaussian, type(None))
        if self.start_distance is not None:
            nonnegative("start_distance", self.start_distance)
        if self.floor is not None and number_or_infinite("floor", self.floor) < 0.0:
            raise ValueError(f"floor={self.floor!r} must be at least 0")
        for name in ("terms", "inputs"):
            instance(name, getattr(self, name), Mapping)
        total, numbers, *parts = aligned(("value", self.value, 0), ("rounds", self.rounds, 0), *(
            (f"terms[{shown(name)}]", part, 0) for name, part in self.terms.items()))
        value = array("value", total, 1)
        rounds = read_only(whole_numbers("rounds", numbers).astype(np.int64))
        shape("rounds", rounds, value.shape, " (one per value)")
        if not self.terms:
            raise ValueError("terms must name at least one part of the bound")
        terms = {name: read_only(np.array(np.broadcast_to(part, value.shape), dtype=np.float64))
                 for name, part in zip(self.terms, parts, strict=True)}
        gap = np.abs(np.sum(list(terms.values()), axis=0) - value)
        if not (gap <= 1e-12 * np.abs(value)).all():
            raise ValueError(f"terms {shown(sorted(terms))} differ from value by up to {gap.max():g}; "
                             "they must add up to it")
        if (value < 0.0).any():
            raise ValueError(f"value has a negative entry {value.min():g}; a bound must be at least 0")
        for i, one in enumerate(instance("assumptions", self.assumptions, tuple, list)):
            instance(f"assumptions[{i}]", one, Assumption)
        set_fields(self, value=value, rounds=rounds, terms=MappingProxyType(terms),
                   assumptions=tuple(self.assumptions), inputs=MappingProxyType(dict(self.inputs)))

    @classmethod
    def from_terms(cls, terms: Mapping[str, Any], rounds: np.ndarray, **rest: Any) -> Bound:
        """The bound whose value is the sum of its terms (numbers or (n,) arrays)."""
        parts = {name: np.broadcast_to(np.asarray(part, dtype=np.float64), np.shape(rounds))
                 for name, part in terms.items()}
        return cls(value=np.sum(list(parts.values()), axis=0), rounds=rounds, terms=parts, **rest)

    @classmethod
    def _of(cls, terms: Mapping[str, Any], rounds: np.ndarray, **rest: Any) -> Bound:
        """`from_terms` of what a statement makes: recorded rounds, and words that its declaration checked.

        The values of its formula are looked at: those that are not finite, or negative, are refused by name.
        """
        parts = {name: read_only(np.array(np.broadcast_to(part, rounds.shape), dtype=np.float64))
                 for name, part in terms.items()}
        value = np.sum(list(parts.values()), axis=0)
        start, floor = (0.0 if rest[name] is None else rest[name] for name in ("start_distance", "floor"))
        if not (parts and rounds.dtype == np.int64 and 0.0 <= value.min() <= value.max() < np.inf
                and 0.0 <= start < np.inf and floor >= 0.0):
            return cls.from_terms(terms, rounds, **rest)
        made = object.__new__(cls)
        vars(made).update({one.name: one.default for one in fields(cls)} | rest | {
            "value": read_only(value), "rounds": read_only(rounds.copy()), "terms": MappingProxyType(parts),
            "inputs": MappingProxyType(dict(rest["inputs"]))})
        return made

    def alone(self, term: str) -> Array:
        """(n,) what the value would be of this term alone: the term, or in a root the root of its square.

        Parameters
        ----------
        term : str

        Raises
        ------
        ValueError
            For a name that is none of its terms.

        Examples
        --------
        >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
        >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
        >>> bool((bound.alone("initialization") ** 2 + bound.alone("discretization") ** 2
        ...       <= bound.value**2 * (1 + 1e-14)).all())
        True
        """
        part = self.terms[one_of("term", term, tuple(self.terms))]
        return np.sqrt(part) * np.sqrt(self.value) if self.is_root else part

    @property
    def hypotheses_hold(self) -> bool:
        """True when every assumption holds."""
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def violated(self) -> tuple[str, ...]:
        """Names of the assumptions that do not hold."""
        return tuple(assumption.name for assumption in self.assumptions if not assumption.holds)

    @property
    def vacuous_at(self) -> np.ndarray:
        """(n,) bool: an upper bound that is not below the distance at the start says nothing there.

        False everywhere where there is no distance at the start to compare with (moments, lemmas).
        """
        if self.kind != "upper" or self.start_distance is None:
            return np.zeros(self.value.shape, dtype=bool)
        return self.value >= self.start_distance

    @property
    def is_vacuous(self) -> bool:
        """True when the bound is below the distance at the start at none of its rounds.

        This is so for good when `always_vacuous`, and up to the last recorded round otherwise.
        """
        return bool(self.vacuous_at.all())

    @property
    def always_vacuous(self) -> bool:
        """True when even the limit of the bound (`floor`) is not below the distance at the start."""
        return (self.kind == "upper" and self.start_distance is not None and self.floor is not None
                and self.floor >= self.start_distance)

    @property
    def vacuity(self) -> str:
        """One sentence on a bound that says nothing, "" when it says something."""
        if self.always_vacuous:
            when = "" if self.is_vacuous else " in the end"
            return f"bound vacuous{when}: floor {self.floor:.4g} > initial distance {self.start_distance:.4g}"
        if self.is_vacuous:
            return (f"bound vacuous up to {self.index} {self.rounds[-1]}: "
                    f"it stays above the initial distance {self.start_distance:.4g}")
        return ""

    @property
    def remark(self) -> str:
        """What limits the bound: failed hypotheses, vacuity; "" when nothing does."""
        failed = "" if self.hypotheses_hold else "hypotheses fail: " + "; ".join(self.violated)
        return ". ".join(filter(None, (failed, self.vacuity)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it against rounds, with its terms where it has several; grey where it says nothing.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            Where matplotlib is not installed (extra `plot`).

        Examples
        --------
        >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
        >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
        >>> len(bound.plot().lines)  # the bound, two terms, the distance at the start
        4
        """
        return draw_bound(self, ax)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"

    def summary(self) -> str:
        """Several lines of text: value, terms at the last round, assumptions, vacuity."""
        lines = [f"{self.source} ({self.variant}): {self.kind} bound on {self.quantity}", f"  of {self.of}",
                 f"  {self.index} {self.rounds[0]}: {self.value[0]:.6g}, "
                 f"{self.index} {self.rounds[-1]}: {self.value[-1]:.6g}"]
        lines += [f"    {name:<16} {part[-1]:.6g}" for name, part in self.terms.items()]
        lines += [f"  [{'holds' if a.holds else 'FAILS'}] {a.name} (margin {a.margin:.3g})"
                  for a in self.assumptions]
        if self.remark:
            lines.append(f"  {self.remark}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        state = f", {self.remark}" if self.remark else ""
        return (f"Bound({self.quantity}, {self.kind}, {self.source}, {self.variant}: "
                f"{self.value[0]:.4g} -> {self.value[-1]:.4g} at {self.index}s "
                f"{self.rounds[0]}..{self.rounds[-1]}{state})")
