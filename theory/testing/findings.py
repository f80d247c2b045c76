"""Findings about a kernel, one sentence each, and the report that holds them."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

WIDTH = 118
"""Columns of a printed line."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    about : str
        What was asked: "matrix", "noise", "target", "momentum", "temperature", ...
    sentence : str
    differs : bool
        Whether the kernel differs from what it was compared with, beyond rounding or chance.
    value, low, high : float or None
        The number, and the ends of its interval.
    causes : tuple of str
        Mistakes, or choices, that are known to leave this number, the nearest first; others may, too.

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

    Examples
    --------
    >>> finding = theory.testing.Finding("noise", "The noise is 1.41 times that of a.", True, 1.41)
    >>> found = theory.testing.Report("b against a", (finding,))
    >>> found.differs, found["noise"].value
    (True, 1.41)
    """

    title: str
    findings: tuple[Finding, ...]

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
        """As JSON: title, differs, and the findings with their numbers."""
        plain: dict[str, Any] = {"title": self.title, "differs": self.differs,
                                 "findings": [asdict(one) for one in self.findings]}
        return json.dumps(plain, indent=1)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(one.about)}</td><td>{'differs' if one.differs else ''}</td>"
            f"<td>{escape(one.sentence)}</td><td>{escape('; or '.join(one.causes))}</td></tr>"
            for one in self.findings)
        return (f"<table><caption>{escape(self.title)}</caption><tr><th>about</th><th></th><th>found</th>"
                f"<th>known to do so</th></tr>{rows}</table>")
