"""What became of a figure: a word and a sentence, from the verdicts on its claims and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .verdicts import FAIL, MISPRINT, PASS, counted

REPRODUCED, PARTLY, CONTRADICTED = "reproduced", "partly", "contradicted as printed"
UNDECIDED, OURS, NOTHING = "undecided", "findings of ours only", "nothing to judge"
PAPERS = {"bounds": "Across the papers", "fa_ld": "FA-LD", "privacy": "FA-LD", "fa_hmc": "FA-HMC",
          "de": "DE-SGLD and DE-SGHMC", "stale": "Stale gradients"}
"""How ids begin, and under which heading they stand; headings in this order, `OTHERS` last."""
OTHERS = "Other figures"
WORDS = (REPRODUCED, PARTLY, CONTRADICTED, UNDECIDED, OURS, NOTHING)
"""Every word, in the order in which pages list them."""


def paper_of(id: str) -> str:
    """The heading under which a figure stands.

    >>> paper_of("privacy_frontier")
    'FA-LD'
    """
    return next((name for begins, name in PAPERS.items() if id.startswith(f"{begins}_")), OTHERS)


def word(verdicts: Sequence[str], findings: Sequence[str] = ()) -> str:
    """One of `WORDS`.

    >>> word(["PASS", "PASS"]), word(["PASS", "FAIL"]), word(["NOT TESTABLE"]), word([], ["HOLDS"])
    ('reproduced', 'partly', 'undecided', 'findings of ours only')
    """
    kinds = set(verdicts)
    if not kinds:
        return OURS if findings else NOTHING
    return (REPRODUCED if kinds == {PASS} else PARTLY if PASS in kinds else
            CONTRADICTED if kinds & {FAIL, MISPRINT} else UNDECIDED)


def headline(verdicts: Sequence[str], findings: Sequence[str] = ()) -> str:
    """The word and the counts.

    >>> headline(["PASS", "PASS"]), headline(["PASS", "FAIL"])
    ('reproduced: 2 PASS', 'partly: 1 PASS, 1 FAIL')
    >>> headline([], ["HOLDS"]), headline([])
    ('findings of ours only', 'nothing to judge')
    """
    said = word(verdicts, findings)
    return f"{said}: {counted(verdicts)}" if verdicts else said


def sentence(record: Mapping[str, Any]) -> str:
    """What stands behind the word of a stored figure, for readers."""
    verdicts, findings = ([item["verdict"] for item in record[kind]] for kind in ("claims", "findings"))
    said, n, passed = word(verdicts, findings), len(verdicts), verdicts.count(PASS)
    if said in (OURS, NOTHING):
        return f"{counted(findings)}." if findings else "A drawing."
    if said == REPRODUCED:
        return f"{'The claim' if n == 1 else f'All {n} claims'} of the paper {_verb(n)}."
    rest = counted([one for one in verdicts if one != PASS])
    if said == PARTLY:
        return f"{passed} of the paper's {n} claims {_verb(passed)}; {rest}."
    whose = f"The paper's {'claim' if n == 1 else f'{n} claims'}"
    if said == CONTRADICTED:
        return f"{whose}: {rest}."
    return f"{whose} can be neither confirmed nor contradicted here: {rest}."


def _verb(n: int) -> str:
    return "passes" if n == 1 else "pass"
