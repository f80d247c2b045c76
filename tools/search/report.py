"""What was found, as a table and as lists of the cases above one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .judge import Outcome


@dataclass
class Row:
    """What is known of one theorem and variant."""

    counts: bool = True
    examined: int = 0
    inside: int = 0
    refused: int = 0
    ties: int = 0
    violations: int = 0
    ratio: float = -np.inf
    later: float = -np.inf
    where: str = ""
    refusal: str = ""


@dataclass
class Findings:
    """Collects outcomes, in any order."""

    name: Callable[[Outcome], str]
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    cases: list[Outcome] = field(default_factory=list)

    def add(self, found: Outcome) -> None:
        """Count one outcome."""
        row = self.rows.setdefault((found.theorem, found.variant), Row(found.counts))
        row.examined += 1
        if found.grade == "refused":
            row.refused, row.refusal = row.refused + 1, found.note
        if found.grade in ("refused", "outside"):
            return
        row.inside += 1
        row.ties += found.grade in ("tie", "rounding")
        row.violations += found.grade == "violation"
        row.ratio = max(row.ratio, found.ratio)
        if found.later > row.later:
            row.later, row.where = found.later, self.name(found)
        if found.grade in ("tie", "violation") or (found.grade == "rounding" and found.later > 1.0):
            self.cases.append(found)

    def _counted(self, grade: str) -> list[Outcome]:
        return [found for found in self.cases if found.counts and found.grade == grade]

    def _line(self, f: Outcome) -> str:
        return (f"  {f.theorem} ({f.variant}): ratio 1 {f.ratio - 1.0:+.2e} at {f.at}, {self.name(f)}: "
                f"{f.note}")

    @property
    def failures(self) -> list[Outcome]:
        """What counts against a theorem."""
        return [found for found in self.cases if found.fails]

    def table(self) -> str:
        """One line for every theorem and variant."""
        lines = [f"{'theorem':<42}{'variant':<13}{'examined':>9}{'inside':>8}{'refused':>8}{'ties':>6}"
                 f"{'above 1':>8}  {'ratio':<9} {'after start':<12} reproduce by"]
        for (theorem, variant), row in sorted(self.rows.items()):
            mark = "" if row.counts else " (not counted)"
            shown = [f"{value:.6f}" if np.isfinite(value) and value < 1e3 else f"{value:.3g}"
                     for value in (row.ratio, row.later)] if row.inside else ["-", "-"]
            lines.append(f"{theorem:<42}{variant:<13}{row.examined:>9}{row.inside:>8}{row.refused:>8}"
                         f"{row.ties:>6}{row.violations:>8}  {shown[0]:<9} {shown[1]:<12} {row.where}{mark}")
        return "\n".join(lines)

    def lists(self) -> str:
        """The cases above one that count, those that are rounding, and why theorems refused settings."""
        parts = []
        for title, chosen in (("ABOVE ONE WITHIN THE HYPOTHESES", self.failures),
                              ("Ties up to rounding, redone", self._counted("tie"))):
            parts.append(f"{title}: {len(chosen)}")
            parts += [self._line(f) for f in sorted(chosen, key=lambda f: (f.theorem, f.variant))]
        equal: dict[tuple[str, str], list[Outcome]] = {}
        for f in self._counted("rounding"):
            equal.setdefault((f.theorem, f.variant), []).append(f)
        parts.append(f"Above one after the start, but held up to rounding: {sum(map(len, equal.values()))}")
        for (theorem, variant), kept in sorted(equal.items()):
            worst = max(kept, key=lambda f: f.ratio)
            parts.append(f"  {theorem} ({variant}) {len(kept)} times, the most: {self._line(worst).strip()}")
        refused: dict[str, list[str]] = {}
        for (theorem, variant), row in sorted(self.rows.items()):
            if row.refused:
                refused.setdefault(row.refusal, []).append(f"{theorem} ({variant}) {row.refused}")
        parts += [f"refused, e.g. because {why}:\n  {', '.join(names)}" for why, names in refused.items()]
        return "\n".join(parts)

    def missing(self, chosen: list[Any]) -> str:
        """Theorems that no setting was within the hypotheses of."""
        seen = {theorem for (theorem, _), row in self.rows.items() if row.inside}
        absent = [entry.id for entry in chosen if entry.id not in seen]
        return f"never within hypotheses: {', '.join(absent)}" if absent else ""
