"""Verdict: the outcome of comparing a bound with what it bounds, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from fedsim.settings.validation import Array

from ..declare.bound import Bound
from ..declare.pictures import draw_verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Verdict:
    """Outcome of a comparison; true as a bool exactly when the bound held.

    Attributes
    ----------
    holds : bool
    tightness : float
        Largest exact / bound (bound / exact for lower bounds): 1 is tight, and more a violation. At most 1
        while the bound holds: an excess within rounding, or within the band of replicas, is a tie, and said
        in `note`. Rounds where what is divided by is itself no more than rounding give no ratio; 0 when that
        is all of them.
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
    same : bool
        False for a comparison, on purpose, with what is known to be of something else.
    compared : tuple of (n,) arrays
        Rounds, the bound there, and what it bounds.
    proved : bool
        False where it failed by an estimate that does not prove it: replicas, by their band alone.

    Examples
    --------
    >>> problem = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]])
    >>> algorithm = fs.FALD(0.01, local_steps=2)
    >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
    >>> verdict = theory.check(bound, theory.exact_law(problem, algorithm, n_rounds=50))
    >>> bool(verdict), round(verdict.tightness, 3), verdict.worst_round
    (True, 0.589, 0)
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
    same: bool = True
    compared: tuple[np.ndarray, Array, Array] | None = field(default=None, repr=False)
    proved: bool = True

    def __bool__(self) -> bool:
        return self.holds

    @property
    def contradicts_theorem(self) -> bool:
        """True when the bound failed for what it is about, although all its hypotheses hold.

        Never where the theorem was given arguments by hand: they may not be what it asks for; nor by replicas
        whose proved ends, jointly at level 1 - 1e-7, leave room for it.
        """
        return (not self.holds and self.proved and self.hypotheses_met and self.same
                and not self.bound.given)

    @property
    def last_ratio(self) -> float:
        """The ratio at the last round compared; NaN where there is none, and of a verdict made by hand.

        From a start that is a point `tightness` may be that of round 0, where a recursion begins with the
        exact distance; this is then what it loses in the long run.
        """
        if self.compared is None:
            return float("nan")
        limit, value = (float(side[-1]) for side in self.compared[1:])
        top, bottom = (limit, value) if self.bound.kind == "lower" else (value, limit)
        return top / bottom if bottom > 0.0 else float("nan")

    @property
    def message(self) -> str:
        """The verdict in a sentence or two."""
        return ". ".join(part for part in (self._headline(), self.bound.vacuity, self.note) if part)

    def _headline(self) -> str:
        bound, lower = self.bound, self.bound.kind == "lower"
        what = f"{bound.source} ({bound.variant})"
        ratio = f"ratio {self.tightness:.6g} at {bound.index} {self.worst_round}"
        given = self.bound.given
        if self.hypotheses_met and self.same and (self.holds or not given):
            if not self.holds and not self.proved:
                side = "above" if lower else "below"
                return (f"{what} lies {side} the band of the replicas, first at {bound.index} "
                        f"{self.first_violation} ({ratio}), which is not proved and contradicts nothing")
            if not self.holds:
                return f"{what} is violated from {bound.index} {self.first_violation}: {ratio}"
            says = (f"has a lower bound of at most {self.tightness:.3g} of its value" if lower
                    else f"is at most {self.tightness:.3g} of the bound")
            return (f"{bound.source} holds at {self.n_compared} {bound.index}s: {bound.quantity} {says}"
                    + self._at_end())
        unless = ""
        if self.hypotheses_met and self.same:
            reason = f"{what} is compared with {', '.join(given)} given by hand"
            unless = f" unless {'they are' if len(given) > 1 else 'it is'} what the theorem asks for"
        elif self.hypotheses_met:
            reason = f"{what} is compared with something else"
        else:
            several = len(bound.violated) > 1
            reason = f"{what} does not apply ({'; '.join(bound.violated)} {'fail' if several else 'fails'})"
        if self.holds:
            return (f"{reason}: its formula holds all the same at {self.n_compared} {bound.index}s, "
                    f"largest {ratio}")
        return (f"{reason}: its formula is {'not reached' if lower else 'exceeded'}, first at {bound.index} "
                f"{self.first_violation} ({ratio}), which contradicts nothing{unless}")

    def _at_end(self) -> str:
        """The last ratio, where the largest is that of the start."""
        if self.compared is None or self.worst_round > 0 or not self.last_ratio > 0.0:
            return ""
        index, last = self.bound.index, self.compared[0][-1]
        return f" (at {index} 0; {self.last_ratio:.3g} at {index} {last})" if last > 0 else ""

    def __str__(self) -> str:
        return self.message

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bound and exact quantity at the rounds compared, with the round that decides marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib Axes
            Titled by the verdict.

        Raises
        ------
        ValueError
            Of a verdict made by hand, which has nothing to draw.
        ImportError
            Where matplotlib is not installed (extra `plot`).

        Examples
        --------
        >>> problem, algorithm = fs.Quadratic([1.0, 3.0], [[0.0], [1.0]]), fs.FALD(0.01, local_steps=2)
        >>> bound = theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds=50)
        >>> axes = theory.check(bound, theory.exact_law(problem, algorithm, n_rounds=50)).plot()
        >>> [line.get_label() for line in axes.lines][-1]
        'tightest: ratio 0.589, round 0'
        """
        return draw_verdict(self, ax)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.message)}</pre>"


def instead_of_verdict(rate: Bound) -> str:
    """Why a rate is not checked, and what can be done with measured values."""
    fit = ("stale.fit_constants(bound.terms, measured)" if len(rate.terms) > 1 else
           "rates.fit_rate(bound.rounds, bound.value, measured)")
    return f"holds up to an unknown constant and cannot be checked; fit it to measured values: theory.{fit}"
