"""Sentences follow docs/style.md, as far as a machine can see: new text adds no breach of its rules.

The breaches that are there are counted in tests/style.json, which `python -m tests.test_style` writes: counts
may fall.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STORED = Path(__file__).with_name("style.json")
RULES = {
    "begins with 'Of'": r"(?:^|[.:;] )Of (?!course)[a-z`]",
    "has 'what' as its subject": r"(?:^|[.] )What (?!is new)[^?.]{3,}[.:;]",
    "has 'who' as its subject": r"(?:^|[.] )Who(?:ever)? [^?.]{3,}[.:;]",
    "is no sentence": r"^(?:As it is|The same|Itself|The paper's)\.",
    "'a' for 'per'": r"\bonce an? (?:machine|process|run|round|problem|setting)\b",
    "'some' for 'a few'": r"\bsome (?:seconds|minutes|hundred|thousand)\b",
    "'away' for 'out'": r"\b(?:leave|leaves|leaving|left) [\w' ]{0,25}\baway\b|`\w+` leaves away",
    "'all the same'": r"\ball the same\b",
    "'has not' without a verb": r"\b(?:has|have) not[.;,:]",
}
PLACES = ("pages", "fedsim", "theory", "reproduce", "tools")


def paragraphs(place: str) -> list[tuple[str, str]]:
    """(file, paragraph) of every page, or of every string of a package that has more than a word."""
    found = []
    if place == "pages":
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
            if path.name == "style.md":  # it shows them
                continue
            text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text(encoding="utf-8"))
            found += [(path, part) for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|]|\d+\.) )", text)]
    for path in (ROOT / place).rglob("*.py") if place != "pages" else ():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
                found += [(path, part) for part in re.split(r"\n\s*\n", node.value)]
    return [(str(path.relative_to(ROOT)), " ".join(part.split())) for path, part in found]


def breaches(place: str) -> dict[str, list[str]]:
    """By rule: where, and the words."""
    found = defaultdict(list)
    for path, text in paragraphs(place):
        for rule, pattern in RULES.items():
            found[rule] += [f"{path}: {text[max(match.start() - 10, 0):match.start() + 70]}"
                            for match in re.finditer(pattern, text)]
    return found


@pytest.mark.parametrize("place", PLACES)
def test_new_text_adds_no_breach(place):
    stored = json.loads(STORED.read_text(encoding="utf-8"))[place]
    more = {rule: len(places) - stored.get(rule, 0) for rule, places in breaches(place).items()
            if len(places) > stored.get(rule, 0)}
    assert not more, ("more sentences than before (python -m tests.test_style lists all): "
                      + "; ".join(f"{count} where one {rule}" for rule, count in more.items()))


@pytest.mark.parametrize(("rule", "bad", "good"), [
    ("begins with 'Of'", "Of replicas, only a breach counts.", "For replicas, only a breach counts."),
    ("has 'what' as its subject", "What is left out is unknown.", "What is new? Nothing."),
    ("has 'who' as its subject", "Who needs least; several where they tie.", "The algorithms."),
    ("is no sentence", "As it is.", "Leave the value as it is."),
    ("'a' for 'per'", "compiled once a machine", "compiled once per machine"),
    ("'some' for 'a few'", "for some seconds", "for a few seconds, in some figures"),
    ("'away' for 'out'", "leaves the start's term away", "leaves out the start, which is away from it"),
    ("'all the same'", "it holds all the same", "it holds nevertheless"),
    ("'has not' without a verb", "a variant that fedsim has not;", "it has not been run"),
])
def test_a_rule_sees_its_breach_and_no_other(rule, bad, good):
    assert re.search(RULES[rule], bad)
    assert not re.search(RULES[rule], good)


def test_the_counts_are_of_rules_that_there_are():
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    assert set(stored) == set(PLACES) and all(set(counts) <= set(RULES) for counts in stored.values())
    assert set(RULES) == {row[0] for mark in test_a_rule_sees_its_breach_and_no_other.pytestmark
                          for row in mark.args[1]}


if __name__ == "__main__":
    for each in PLACES:
        print("\n".join(f"{rule}: {where}" for rule, found in breaches(each).items() for where in found))
    table = {place: {rule: len(found) for rule, found in breaches(place).items() if found}
             for place in PLACES}
    STORED.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
