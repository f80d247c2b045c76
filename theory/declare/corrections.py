"""The register of what we say against the papers' text: errata, and apart from them remarks.

We have transcriptions of the papers, not the printed pages: "printed" means "as it stands in our
transcription", which loses bars, ends of radicals, subscripts and strike-throughs. An entry is graded under
the reading kindest to the authors that the text allows:

* error: the statement is false as it stands;
* proof: the statement is true, and a step of its proof (or a constant that only the proof prints) is not;
* loose: the statement is true and not sharp;
* transcription: it cannot be told from our text whether the paper has it.

Only the first two are errata; the others are `remarks`. An entry lives beside its paper's theorems as a
function that computes the evidence, or that says in words why none is computed:

    @PAPER.erratum("...", "Lemma E.1", "error", "range", ("second_moment_bound",), "<printed>", "<corrected>")
    def _range():
        '''The derivation.'''
        return Evidence(demonstrated=ratio > 1.0, numbers={"exact / printed": ratio}, text="...")

The comparison in `demonstrated` decides between the entry and the authors: it must be able to come out
for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from fedsim.pickles import keep_function, made
from fedsim.settings.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

ERRATA = ("error", "proof")
REMARKS = ("loose", "transcription")
CONSEQUENCES = ("nothing", "constant", "range", "conclusion")
COLUMNS = ("id", "paper", "grade", "consequence", "where", "printed", "corrected", "theorems", "derivation",
           "kind")
EVIDENCE_KINDS = ("numerical", "derivation", "typographical")


@dataclass(frozen=True)
class Evidence:
    """What an entry's demonstration found.

    Attributes
    ----------
    demonstrated : bool
        The computed numbers speak for the entry. False where they speak for the authors, and for what is
        settled by reading or by derivation alone (then `numbers` is empty).
    numbers : mapping name -> float
        What was computed.
    text : str
        What the numbers mean.
    kind : "numerical", "derivation" or "typographical"
        Filled in from the entry.

    Examples
    --------
    >>> found = theory.Evidence(True, {'exact / printed': 1.2}, 'more than the printed bound')
    >>> found.speaks_for
    'the entry'
    """

    demonstrated: bool
    numbers: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    kind: str = ""

    @property
    def speaks_for(self) -> str:
        """ "the entry", "the authors", or "neither" where nothing was computed."""
        if not self.numbers:
            return "neither"
        return "the entry" if self.demonstrated else "the authors"


Demonstration = Callable[[], Evidence]


@dataclass(frozen=True)
class Erratum:
    """A correction to, or a remark on, the text of a paper as our transcription has it.

    Attributes
    ----------
    id, paper : str
    where : str
        The place.
    printed : str
        The words in question, short, as in our transcription.
    corrected : str
        What holds.
    grade : "error", "proof", "loose" or "transcription"
    consequence : "nothing", "constant", "range" or "conclusion"
        What falls with it.
    theorems : tuple of str
        Ids of `theory.catalogue` that it touches.
    derivation : str
        Why, in a few lines.
    kind : "numerical", "derivation" or "typographical"
        How it is known.

    Examples
    --------
    >>> entry = theory.errata(theorem='fa_ld.second_moment_bound')[0]
    >>> entry.paper, entry.where, entry.consequence
    ('FA-LD', 'Lemmas B.3 (4.5), C.2, E.1 and E.2', 'range')
    """

    id: str
    paper: str
    where: str
    printed: str
    corrected: str
    grade: str
    consequence: str
    theorems: tuple[str, ...]
    derivation: str
    kind: str
    demonstrate: Demonstration = field(repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, ("theory.erratum", self.id)

    @property
    def harmless(self) -> bool:
        """True when neither a range nor a conclusion that the paper states falls with it."""
        return self.consequence in ("nothing", "constant")

    def evidence(self) -> Evidence:
        """Compute the evidence anew (nothing is stored)."""
        evidence = self.demonstrate()
        return Evidence(bool(evidence.demonstrated), dict(evidence.numbers), evidence.text, self.kind)


_ENTRIES: dict[str, Erratum] = {}


@keep_function("theory.erratum")
def _entry(id: str) -> Erratum:
    """The entry of this id: what a pickled one becomes again."""
    return _ENTRIES[id]


def erratum(*, id: str, grade: str, consequence: str = "", theorems: tuple[str, ...] = (),
            kind: str = "numerical", derivation: str = "", **words: str,
            ) -> Callable[[Demonstration], Demonstration]:
    """Decorator that registers a function without arguments as the evidence of an `Erratum`.

    Its docstring is the derivation, where that is not given. Nothing falls with a remark; every erratum must
    say what does.
    """
    one_of("kind", kind, EVIDENCE_KINDS)
    one_of("grade", grade, ERRATA + REMARKS)
    falls = one_of("consequence", consequence or ("nothing" if grade in REMARKS else None), CONSEQUENCES)

    def register(function: Demonstration) -> Demonstration:
        if id in _ENTRIES:
            raise ValueError(f"id={id!r} is registered already; ids must be unique")
        derived = derivation or " ".join((inspect.getdoc(function) or "").split())
        if not derived:
            raise ValueError(f"derivation='' of {id!r} must be given, or be the docstring of its evidence")
        _ENTRIES[id] = Erratum(id=id, grade=grade, consequence=falls, theorems=tuple(theorems), kind=kind,
                               demonstrate=function, derivation=derived, **words)
        return function

    return register


def _entries(paper: str | None, theorem: str | None, grades: Iterable[str]) -> list[Erratum]:
    if paper is not None:
        one_of("paper", paper, tuple(sorted({entry.paper for entry in _ENTRIES.values()})))
    if theorem is not None:
        from .registry import named  # here, because theorems may look errata up

        theorem = named(theorem).id
    return [entry for _, entry in sorted(_ENTRIES.items()) if entry.grade in grades
            and paper in (None, entry.paper) and (theorem is None or theorem in entry.theorems)]


def errata(paper: str | None = None, *, theorem: str | None = None) -> list[Erratum]:
    """What is wrong in a paper's text: entries of grade "error" and "proof", in the order of their ids.

    Parameters
    ----------
    paper : str, optional
        Only this paper's: "FA-LD", "FA-HMC", "DE-SGLD", "DE-SGHMC" or "Stale gradients".
    theorem : str, optional
        Only what touches this theorem, named as for `theory.examine`.

    Returns
    -------
    list of Erratum

    Raises
    ------
    ValueError
        For a paper that has no entry, and a theorem that is not in the catalogue.

    Source: none; the entries name theirs.

    Examples
    --------
    >>> [(entry.id, entry.grade) for entry in theory.errata(theorem='fa_ld.w2_bound_decreasing')]
    [('fa_ld.halved_step_size', 'proof')]
    """
    return _entries(paper, theorem, ERRATA)


def remarks(paper: str | None = None, *, theorem: str | None = None) -> list[Erratum]:
    """What is no erratum: true statements that are not sharp ("loose"), and places where our transcription
    may have lost a mark ("transcription").

    Parameters, returns and errors as for `errata`.

    Examples
    --------
    >>> import theory
    >>> {entry.grade for entry in theory.remarks()} <= {"loose", "transcription"}
    True
    """
    return _entries(paper, theorem, REMARKS)


def _frame(entries: list[Erratum], evidence: bool) -> pd.DataFrame:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for entry in entries:
        row: dict[str, Any] = {name: getattr(entry, name) for name in COLUMNS}
        row["theorems"] = list(entry.theorems)
        if one_of("evidence", evidence, (True, False)):
            result = entry.evidence()
            row |= {"demonstrated": result.demonstrated, "speaks_for": result.speaks_for,
                    "numbers": {name: float(value) if isfinite(value) else None
                                for name, value in result.numbers.items()}, "evidence": result.text}
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def errata_frame(paper: str | None = None, *, theorem: str | None = None,
                 evidence: bool = False) -> pd.DataFrame:
    """The errata as a table.

    Parameters
    ----------
    paper, theorem : str, optional
        As for `errata`.
    evidence : bool
        Also compute the evidence of each (a few seconds for all): columns demonstrated, speaks_for, numbers
        and evidence.

    Returns
    -------
    DataFrame with columns id, paper, grade, consequence, where, printed, corrected, theorems, derivation
    and kind. Its cells are strings, lists and dicts of plain numbers: ``json.dumps`` of
    ``errata_frame().to_dict("records")`` works.

    Raises
    ------
    ValueError
        For a paper that has no entry.

    Examples
    --------
    >>> list(theory.errata_frame('FA-LD'))[:4]
    ['id', 'paper', 'grade', 'consequence']
    """
    return _frame(errata(paper, theorem=theorem), evidence)


def remarks_frame(paper: str | None = None, *, theorem: str | None = None,
                  evidence: bool = False) -> pd.DataFrame:
    """The remarks as a table, like `errata_frame`.

    Examples
    --------
    >>> set(theory.remarks_frame('FA-LD')['grade']) <= {'loose', 'transcription'}
    True
    """
    return _frame(remarks(paper, theorem=theorem), evidence)
