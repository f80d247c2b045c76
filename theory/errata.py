"""The registry of errata: where a printed statement needs a correction, with evidence.

An erratum lives beside its paper's theorems (``theory/<paper>/errata.py``) as a function that
computes the evidence, registered by the decorator `erratum`:

    @erratum(id="...", paper="FA-LD", where="Theorem 4.8", printed="...", corrected="...", kind="numerical")
    def _missing_condition():
        return Evidence(demonstrated=True, numbers={"ratio": 5.1}, text="...")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedsim.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

EVIDENCE_KINDS = ("numerical", "derivation", "typographical")


@dataclass(frozen=True)
class Evidence:
    """What an erratum's demonstration found.

    Attributes
    ----------
    demonstrated : bool
        The computed numbers show the printed statement to be wrong (or to differ from what its own
        proof gives). False for what is settled by reading or by derivation alone.
    numbers : mapping name -> float
        What was computed.
    text : str
        One sentence that says what the numbers mean.
    kind : "numerical", "derivation" or "typographical"
        Filled in from the erratum.
    """

    demonstrated: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Erratum:
    """A correction to a printed statement.

    Attributes
    ----------
    id, paper, where : str
    printed, corrected : str
    kind : "numerical", "derivation" or "typographical"
        How it is known.
    harmless : bool
        True when the paper's conclusions do not depend on it.
    """

    id: str
    paper: str
    where: str
    printed: str
    corrected: str
    kind: str
    harmless: bool
    demonstrate: Callable[[], Evidence] = field(repr=False)

    def evidence(self) -> Evidence:
        """Compute the evidence anew (nothing is stored)."""
        found = self.demonstrate()
        return Evidence(found.demonstrated, dict(found.numbers), found.text, self.kind)


_ERRATA: dict[str, Erratum] = {}


def erratum(*, id: str, paper: str, where: str, printed: str, corrected: str, kind: str,
            harmless: bool = False) -> Callable[[Callable[[], Evidence]], Callable[[], Evidence]]:
    """Decorator that registers a function without arguments as the evidence of an erratum."""
    one_of("kind", kind, EVIDENCE_KINDS)

    def register(function: Callable[[], Evidence]) -> Callable[[], Evidence]:
        if id in _ERRATA:
            raise ValueError(f"id={id!r} is registered already; ids must be unique")
        _ERRATA[id] = Erratum(id, paper, where, printed, corrected, kind, harmless, function)
        return function

    return register


def reading(*, id: str, paper: str, where: str, printed: str, corrected: str,
            kind: str = "typographical", because: str = "", harmless: bool = True) -> None:
    """Register an erratum that is settled by reading or derivation, without numbers."""
    erratum(id=id, paper=paper, where=where, printed=printed, corrected=corrected, kind=kind,
            harmless=harmless)(lambda: Evidence(False, {}, because or "settled by reading the text"))


def errata(paper: str | None = None) -> list[Erratum]:
    """Every registered erratum, in the order of their ids.

    Parameters
    ----------
    paper : str, optional
        Only this paper's, e.g. "FA-LD".
    """
    known = tuple(sorted({entry.paper for entry in _ERRATA.values()}))
    if paper is not None:
        one_of("paper", paper, known)
    return [entry for _, entry in sorted(_ERRATA.items()) if paper is None or entry.paper == paper]


def errata_frame(paper: str | None = None) -> pd.DataFrame:
    """The errata as a table, each with its evidence computed."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for entry in errata(paper):
        found = entry.evidence()
        rows.append({"id": entry.id, "where": entry.where, "printed": entry.printed,
                     "corrected": entry.corrected, "kind": entry.kind,
                     "demonstrated": found.demonstrated, "evidence": found.text})
    return pd.DataFrame(rows)
