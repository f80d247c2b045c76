"""Findings about a kernel, one sentence each, and the report that holds them."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from .picture import draw_report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 118
"""Columns of a printed line."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    about : str
        What was asked: "matrix", "noise", "target", "state", "temperature", ...
    sentence : str
    differs : bool
        Whether the kernel differs from what it was compared with, beyond rounding or chance.
    value, low, high : float or None
        The number, and the ends of its interval.
    causes : tuple of str
        Mistakes, or choices, that are known to leave this number, the nearest first; others may, too.
    expected : float or None
        The number with which the value is compared.
    label : str
        A name for the value, in a picture.

    Examples
    --------
    >>> print(theory.testing.Finding("noise", "The noise is 1.41 times that of a.", True, 1.41))
    noise        differs  The noise is 1.41 times that of a.
    """

    about: str
    sentence: str
    differs: bool = False
    value: float | None = None
    low: float | None = None
    high: float | None = None
    causes: tuple[str, ...] = ()
    expected: float | None = None
    label: str = ""

    def __str__(self) -> str:
        mark = "differs" if self.differs else "-"
        causes = f" Known to do so: {'; or '.join(self.causes)}." if self.causes else ""
        return textwrap.fill(f"{self.about:<12} {mark:<8} {self.sentence}{causes}", WIDTH,
                             subsequent_indent=22 * " ", break_on_hyphens=False)


@dataclass(frozen=True, repr=False)
class Report:
    """The findings about a kernel; printed, a sentence for each.

    Attributes
    ----------
    title : str
    findings : tuple of Finding
    by_step_size : tuple of (step_size, value, low, high)
        The stationary variance over the target's at each step size at which the kernel was probed, with the
        ends of 95 % intervals.

    Examples
    --------
    >>> finding = theory.testing.Finding("noise", "The noise is 1.41 times that of a.", True, 1.41)
    >>> found = theory.testing.Report("b against a", (finding,))
    >>> found.differs, found["noise"].value
    (True, 1.41)
    """

    title: str
    findings: tuple[Finding, ...]
    by_step_size: tuple[tuple[float, float, float, float], ...] = ()

    @property
    def differs(self) -> bool:
        """Whether any finding is a difference."""
        return any(one.differs for one in self.findings)

    def __getitem__(self, about: str) -> Finding:
        """The first finding about this."""
        for one in self.findings:
            if one.about == about:
                return one
        raise KeyError(f"{about!r}: there are findings about {', '.join(one.about for one in self.findings)}")

    def __contains__(self, about: object) -> bool:
        return any(one.about == about for one in self.findings)

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.findings)])

    __repr__ = __str__

    def to_json(self) -> str:
        """As JSON: title, differs, the findings with their numbers, and the variances by step size."""
        plain: dict[str, Any] = {"title": self.title, "differs": self.differs,
                                 "findings": [asdict(one) for one in self.findings],
                                 "by_step_size": self.by_step_size}
        return json.dumps(plain, indent=1)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(one.about)}</td><td>{'differs' if one.differs else ''}</td>"
            f"<td>{escape(one.sentence)}</td><td>{escape('; or '.join(one.causes))}</td></tr>"
            for one in self.findings)
        return (f"<table><caption>{escape(self.title)}</caption><tr><th>about</th><th></th><th>found</th>"
                f"<th>known to do so</th></tr>{rows}</table>")

    def plot(self) -> Figure:
        """Draw the findings that are numbers beside what they are compared with, and the bias by step size.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        ValueError
            Where no finding is a number with something to compare it with.
        ImportError
            Where matplotlib is not installed (extra `plot` of fedsim-theory).

        Examples
        --------
        >>> finding = theory.testing.Finding("noise", "The noise is 1.41 times that of a.", True, 1.41, 1.39,
        ...                                  1.43, expected=1.0)
        >>> axes, = theory.testing.Report("b against a", (finding,)).plot().axes
        >>> axes.get_title(loc="left")
        'noise: 1.41 (1.39 to 1.43)'
        """
        return draw_report(self)
