"""The catalogue of all theorems.

A theorem is declared by `Paper.theorem` (`theory/declare/paper.py`), which enters it here.

One rule for variants: the first one is the default, and the smallest form that is proved; "printed" is what
our transcription of the paper says; "corrected" exists only where the printed formula is false; other
proved forms have names of their own. A name that has gone is accepted for one release, with a
DeprecationWarning: "corrected" means the default, and others what `formerly` says.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedsim.hints import did_you_mean, shown
from fedsim.interfaces import Algorithm
from fedsim.pickles import keep_function, made
from fedsim.settings.validation import instance, one_of

from .bound import Bound

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Theorem:
    """An entry of the catalogue.

    Attributes
    ----------
    id, paper, number : str
    kind, quantity : as in `Bound`
    hypotheses : tuple of str
    variants : tuple of str
        The first is the default: the smallest form that is proved.
    function : callable
        The decorated theorem.
    algorithm : type
        Class of the algorithms it speaks about.
    index : "round", "local_step" or "leapfrog_step"
    applies : callable(algorithm, problem=None) -> bool
        Whether the theorem speaks about this algorithm's settings (participation, schedule), and about this
        problem where it is given.
    inputs : callable(problem, algorithm, constants, n_rounds, start) -> dict, or None
        Further arguments of the theorem where it needs any (e.g. the distances it starts from).
    key : str
        Of the paper in ``papers.bib``, see `theory.cite`; "" for what no paper says.
    require : callable(algorithm, problem=None)
        Raises ValueError with the reason where a hypothesis excludes them.
    only : mapping
        Values of a `theory.worst_case.ProblemClass` outside of which no hypotheses hold.

    Examples
    --------
    >>> entry = theory.theorems()[0]
    >>> entry.id, entry.number, entry.variants
    ('de_sghmc.budget_rate', 'section 4, Remark 12', ('printed',))
    >>> entry.function is theory.de_sghmc.budget_rate
    True
    """

    id: str
    paper: str
    number: str
    kind: str
    quantity: str
    hypotheses: tuple[str, ...]
    variants: tuple[str, ...]
    function: Callable[..., Bound]
    algorithm: type
    index: str = "round"
    applies: Callable[..., bool] = lambda algorithm, problem=None: True
    inputs: Callable[..., dict[str, Any]] | None = None
    key: str = ""
    require: Callable[..., None] = lambda algorithm, problem=None: None
    only: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return made, ("theory.theorem", self.id)


TheoremLike = str | Theorem | Callable[..., Bound]
"""A theorem, its id or number, or its function."""


_THEOREMS: dict[str, Theorem] = {}


def enter(entry: Theorem) -> None:
    """Put a theorem into the catalogue."""
    if entry.id in _THEOREMS:
        raise ValueError(f"id={entry.id!r} is in the catalogue already; ids must be unique")
    _THEOREMS[entry.id] = entry


@keep_function("theory.theorem")
def _entered(id: str) -> Theorem:
    """The theorem of this id: what a pickled one becomes again."""
    return _THEOREMS[id]


def named_variant(variant: Any, variants: tuple[str, ...], of: str,
                  formerly: Mapping[str, str] | None = None, stacklevel: int = 3) -> str:
    """The variant meant: one of `variants`, or what a name that has gone means for one release.

    `stacklevel` is that of the user's line, as for `warnings.warn`.
    """
    gone = {"corrected": variants[0], **(formerly or {})}
    if isinstance(variant, str) and variant not in variants and variant in gone:
        warnings.warn(f"variant={variant!r} of {of} is no more: it means variant={gone[variant]!r}, and will "
                      "be refused in the next release", DeprecationWarning, stacklevel=stacklevel)
        return gone[variant]
    return str(one_of("variant", variant, variants))


def theorems() -> tuple[Theorem, ...]:
    """Every theorem, in the order of the catalogue.

    Examples
    --------
    >>> {entry.kind for entry in theory.theorems()} == {'upper', 'lower', 'rate'}
    True
    """
    return tuple(_THEOREMS[id] for id in sorted(_THEOREMS))


LABELS = re.compile(r"\(\d+\)|\b[a-z]\.\d+|[a-z_]\w*|\d+(?:\.\d+)*")
KINDS = ("theorem", "lemma", "proposition", "corollary", "remark", "equation", "section")


def labels(text: str) -> set[tuple[str, str]]:
    """What a number names: "Theorems 4.7 and B.6, (12)" is theorem 4.7, theorem b.6 and equation 12.

    >>> from theory.declare.registry import labels
    >>> labels("Lemma 13, equation (45)") == {("lemma", "13"), ("equation", "45")}
    True
    """
    found, kind = set(), ""
    for word in LABELS.findall(text.lower()):
        if word.removesuffix("s") in KINDS:
            kind = word.removesuffix("s")
        elif word[0] == "(":
            found.add(("equation", word[1:-1]))
        elif re.fullmatch(r"(?:[a-z]\.)?[\d.]+", word):
            found.add((kind, word))
    return found


def _by_number(text: str, entries: list[Theorem]) -> list[Theorem]:
    """Those of which a paper speaks by this number, or whose id ends so; one where it is its whole number."""
    ends = [entry for entry in entries if entry.id.partition(".")[2] == text]
    papers = {entry.paper for entry in entries if text.lower().startswith(entry.paper.lower() + " ")}
    paper = max(papers, key=len, default="")
    rest = text[len(paper):].strip()

    def says(entry: Theorem) -> bool:
        known, asked = labels(entry.number), labels(rest)
        known |= {("", label) for _, label in known}  # "4.7" alone may be anything's number
        return bool(asked) and asked <= known

    spoken = [entry for entry in entries if paper in ("", entry.paper) and says(entry)]
    whole = [entry for entry in spoken if entry.number.lower() == rest.lower()]
    return ends or whole or spoken


def named(theorem: Any, algorithm: Algorithm | None = None, name: str = "theorem") -> Theorem:
    """The theorem meant.

    Parameters
    ----------
    theorem : str, Theorem or callable
        An id of the catalogue, its last part, a number of the paper ("Theorem 4.7", "FA-LD Lemma B.3"), or
        the function itself.
    algorithm : optional
        Of several theorems with this number, those about it are meant.
    name : str
        Of the argument, for the message.

    Raises
    ------
    ValueError
        Where none or several are meant, with those that are close.

    Examples
    --------
    >>> from theory.declare.registry import named
    >>> named("FA-LD Theorem 4.7").id, named(theory.de_sgld.w2_bound).id
    ('fa_ld.w2_bound', 'de_sgld.w2_bound')
    """
    if isinstance(theorem, Theorem):
        return theorem
    entries = list(theorems())
    text = isinstance(theorem, str)
    if text:
        theorem = theorem.removeprefix("theory.")  # as `catalogue` writes the functions
    found = [entry for entry in entries if (entry.id == theorem if text else entry.function is theorem)]
    if not found and text:
        found = _by_number(theorem, [one for one in entries if isinstance(algorithm, one.algorithm)])
        found = found or _by_number(theorem, entries)
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"{one.id} ({one.paper} {one.number})" for one in found)
        raise ValueError(f"{name}={shown(theorem)} must be the number of one theorem, and here is of "
                         f"{several}; give an id")
    end = did_you_mean(theorem, [entry.id for entry in entries])
    raise ValueError(f"{name}={shown(theorem)} must be one of {len(entries)} ids of theory.catalogue(), the "
                     f"number of a theorem as 'FA-LD Theorem 4.7', or its function{end}")


def about(theorem: Any, algorithm: Algorithm) -> Theorem:
    """The theorem meant, or a ValueError where it is not about algorithms of this class."""
    entry = named(theorem, algorithm)
    instance("algorithm", algorithm, entry.algorithm, advice=f"theorem={entry.id!r} is about it")
    return entry


def catalogue() -> pd.DataFrame:
    """A table of every theorem.

    Returns
    -------
    DataFrame with columns id, paper, number, kind, quantity, index, hypotheses, variants, function, key.

    Examples
    --------
    >>> table = theory.catalogue()
    >>> table[table['id'] == 'fa_ld.w2_bound']['number'].item()
    'Theorems 4.7 and 4.9 (B.6, B.8)'
    """
    import pandas as pd

    return pd.DataFrame([{
        "id": t.id, "paper": t.paper, "number": t.number, "kind": t.kind, "quantity": t.quantity,
        "index": t.index, "hypotheses": "; ".join(t.hypotheses), "variants": "/".join(t.variants),
        "function": f"theory.{t.id.split('.')[0]}.{t.function.__name__}", "key": t.key} for t in theorems()])
