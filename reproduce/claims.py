"""What is said about a figure: claims of its paper, findings of ours, and sentences that nobody judges here.

All three stand in a figure's list `CLAIMS`, in the order in which they are read. Only claims are the
paper's; only claims and findings are judged and counted, each among its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from .verdicts import AS_FINDING, BASES, CLAIM_WORDS, ECHOED, FAIL, NOT_TESTABLE, PASS, Judgement

Tables = dict[str, pd.DataFrame]
Judge = Callable[[Tables], tuple[str, ...]]


def _check_name(name: str, text: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"name={name!r} of {text!r} must be an identifier")


def _check_basis(rests_on: str, text: str) -> None:
    if rests_on not in BASES:
        raise ValueError(f"rests_on={rests_on!r} of {text!r} must be one of: {'; '.join(BASES)}")


@dataclass(frozen=True)
class Claim:
    """What the paper says about the figure, and how the tables judge it.

    Parameters
    ----------
    text : str
        The claim in our words.
    source : str
        Where the paper says it.
    judge : tables -> (verdict, why) or (verdict, why, remark)
        verdict is a word of `CLAIM_WORDS`; why has the numbers that decide, and nothing that would not
        be said of the opposite outcome; remark is what else is true, as "not sharp".
    name : str
        An identifier within the figure; the address of the claim on the page.
    rests_on : str
        One of `BASES`.
    context : str
        What a reader has to know, whatever the outcome.
    echo : str
        Why nothing here can contradict the sentence; blank where something can. What `judge` calls PASS is
        then ECHOED, and what it calls FAIL is NOT TESTABLE: a finding of ours says what was seen instead.
    chance : bool
        It reports what the paper saw in a picture: where it fails, the authors saw it all the same, by
        chance or in another set-up than they describe.
    counted_in : str
        Id of the figure in which the same claim is counted; blank: here.
    answer : str
        What the paper's authors say to it; blank until they do.
    """

    text: str
    source: str
    judge: Judge = field(repr=False)
    name: str
    rests_on: str
    context: str = ""
    counted_in: str = ""
    echo: str = ""
    chance: bool = False
    answer: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name, self.text)
        _check_basis(self.rests_on, self.text)

    def judged(self, tables: Tables) -> dict[str, str]:
        """Everything about the claim, with its verdict, as plain strings."""
        verdict, why, remark = Judgement(*self.judge(tables))
        if verdict not in CLAIM_WORDS:
            raise ValueError(f"verdict={verdict!r} of claim {self.text!r} must be one of "
                             f"{', '.join(CLAIM_WORDS)}")
        if self.echo:
            verdict = {PASS: ECHOED, FAIL: NOT_TESTABLE}.get(verdict, verdict)
        elif verdict == ECHOED:
            raise ValueError(f"verdict={verdict!r} of claim {self.text!r} needs echo=, the reason")
        return {"name": self.name, "text": self.text, "source": self.source, "verdict": verdict, "why": why,
                "remark": remark, "rests_on": self.rests_on,
                "context": " ".join(words for words in (self.context, self.echo) if words),
                "counted_in": self.counted_in, "answer": self.answer,
                **({"seen": "by chance, or in another set-up"} if self.chance and verdict == FAIL else {})}


@dataclass(frozen=True)
class Finding:
    """A sentence of ours about the figure: it holds, does not hold, or stays open.

    Parameters
    ----------
    text : str
        The sentence.
    about : str
        Which theorem or place of a paper it is about; blank for the figure itself.
    judge : tables -> (verdict, why) or (verdict, why, remark)
        As of a claim, with PASS, FAIL or NOT TESTABLE, which become HOLDS, DOES NOT HOLD and OPEN.
    name, rests_on, context : str
        As of a claim.
    """

    text: str
    about: str
    judge: Judge = field(repr=False)
    name: str
    rests_on: str
    context: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name, self.text)
        _check_basis(self.rests_on, self.text)

    def judged(self, tables: Tables) -> dict[str, str]:
        """Everything about the finding, with its verdict, as plain strings."""
        verdict, why, remark = Judgement(*self.judge(tables))
        if verdict not in AS_FINDING:
            raise ValueError(f"verdict={verdict!r} of finding {self.text!r} must be one of "
                             f"{', '.join(AS_FINDING)}")
        return {"name": self.name, "text": self.text, "about": self.about, "verdict": AS_FINDING[verdict],
                "why": why, "remark": remark, "rests_on": self.rests_on, "context": self.context}


@dataclass(frozen=True)
class Unjudged:
    """What the paper says about the figure and nothing here can decide, whatever the numbers; not counted.

    Parameters
    ----------
    text, source : str
        The claim in our words, and where the paper says it.
    why : str
        What would be needed to judge it.
    name : str
        An identifier within the figure.
    """

    text: str
    source: str
    why: str
    name: str

    def __post_init__(self) -> None:
        _check_name(self.name, self.text)

    def said(self) -> dict[str, str]:
        """As plain strings."""
        return {"name": self.name, "text": self.text, "source": self.source, "why": self.why}
