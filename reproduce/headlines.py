"""What became of a figure: a word and a sentence, from the verdicts on its claims and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .verdicts import ECHOED, FAIL, MISPRINT, PASS, counted

REPRODUCED, CORRECTED, PARTLY, ECHO = "reproduced", "reproduced as corrected", "partly", "echoed"
CONTRADICTED, CHANCE = "contradicted as printed", "observed, not in the law as described"
UNDECIDED, OURS, NOTHING = "undecided", "findings of ours only", "nothing to judge"
PAPERS = {"bounds": "Across the papers", "fa_ld": "FA-LD", "privacy": "FA-LD", "fa_hmc": "FA-HMC",
          "de": "DE-SGLD and DE-SGHMC", "stale": "Stale gradients"}
"""How ids begin, and under which heading they stand; headings in this order, `OTHERS` last."""
OTHERS = "Other figures"
WORDS = (REPRODUCED, CORRECTED, PARTLY, ECHO, CONTRADICTED, CHANCE, UNDECIDED, OURS, NOTHING)
"""Every word, in the order in which pages list them."""


def paper_of(id: str) -> str:
    """The heading under which a figure stands.

    >>> paper_of("privacy_frontier")
    'FA-LD'
    """
    return next((name for begins, name in PAPERS.items() if id.startswith(f"{begins}_")), OTHERS)


def word(verdicts: Sequence[str], findings: Sequence[str] = (), n_unjudged: int = 0) -> str:
    """One of `WORDS`; a figure of which sentences cannot be judged is at most partly reproduced.

    >>> word(["PASS", "PASS"]), word(["PASS", "FAIL"]), word(["PASS"], n_unjudged=3)
    ('reproduced', 'partly', 'partly')
    >>> word(["MISPRINT"]), word(["NOT TESTABLE"]), word([], ["HOLDS"])
    ('reproduced as corrected', 'undecided', 'findings of ours only')
    >>> word(["ECHOED", "OUTSIDE"]), word(["PASS", "ECHOED"])
    ('echoed', 'partly')
    """
    kinds = set(verdicts)
    if not kinds:
        return OURS if findings else NOTHING
    if kinds <= {PASS, MISPRINT}:
        return PARTLY if n_unjudged else CORRECTED if MISPRINT in kinds else REPRODUCED
    if kinds & {PASS, MISPRINT}:
        return PARTLY
    return CONTRADICTED if FAIL in kinds else ECHO if ECHOED in kinds else UNDECIDED


def word_of(record: Mapping[str, Any]) -> str:
    """The word of a stored figure."""
    verdicts, findings = ([item["verdict"] for item in record[kind]] for kind in ("claims", "findings"))
    said = word(verdicts, findings, len(record["unjudged"]))
    failed = [item for item in record["claims"] if item["verdict"] == FAIL]
    return CHANCE if said == CONTRADICTED and all("seen" in item for item in failed) else said


def headline(record: Mapping[str, Any]) -> str:
    """The word and the counts of a stored figure."""
    verdicts, left = [item["verdict"] for item in record["claims"]], len(record["unjudged"])
    more = f"; {left} not judged" if left else ""
    return f"{word_of(record)}: {counted(verdicts)}{more}" if verdicts else word_of(record)


def sentence(record: Mapping[str, Any]) -> str:
    """What stands behind the word of a stored figure, for readers."""
    verdicts, findings = ([item["verdict"] for item in record[kind]] for kind in ("claims", "findings"))
    n, left = len(verdicts), len(record["unjudged"])
    more = f" {left} sentence{'s' * (left > 1)} of the paper cannot be judged here." if left else ""
    if not verdicts:
        return (f"{counted(findings)}." if findings else "A drawing.") + more
    passed, echoed = verdicts.count(PASS), verdicts.count(ECHOED)
    rest = counted([one for one in verdicts if one not in (PASS, ECHOED)])
    parts = [f"{passed} of the paper's {n} claims {_verb(passed)}"] if passed else []
    if echoed:
        whose = "" if passed else f" of the paper's {n} claims" if n > 1 else " claim of the paper"
        parts.append(f"{echoed}{whose} {'is' if echoed == 1 else 'are'} seen here, where nothing could have "
                     f"contradicted {'it' if echoed == 1 else 'them'}")
    if passed == n:
        text = f"{'The claim' if n == 1 else f'All {n} claims'} of the paper {_verb(n)}."
    elif parts:
        text = "; ".join([*parts, rest] if echoed + passed < n else parts) + "."
    else:
        whose = f"The paper's {'claim' if n == 1 else f'{n} claims'}"
        decided = set(verdicts) & {FAIL, MISPRINT}
        text = (f"{whose}: {rest}." if decided else
                f"{whose} can be neither confirmed nor contradicted here: {rest}.")
    return text + more


def n_unjudged(records: Iterable[Mapping[str, Any]]) -> int:
    """How many different sentences of the papers cannot be judged; several figures may share one."""
    return len({one["text"] for record in records for one in record["unjudged"]})


def _verb(n: int) -> str:
    return "passes" if n == 1 else "pass"
