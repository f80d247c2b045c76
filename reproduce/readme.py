"""`python -m reproduce readme`: the tables of README.md, from the stored results.

Each table stands between two HTML comments, ``<!-- name:begin -->`` and ``<!-- name:end -->``; the
rest of the file is written by hand and not touched.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import store
from .coverage import NOT_REPRODUCED
from .discovery import natural_order
from .verdicts import CLAIM_WORDS, FINDING_WORDS, counted, total

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "tests" / "benchmarks" / "results.csv"
"""Written by `make bench`: one row a contestant, the header is the table's."""


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell is escaped.

    >>> print(markdown(["a", "b"], [["1", "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\\|y |
    """
    lines = [header, *rows]
    text = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([text[0], "|" + "---|" * len(header), *text[1:]])


def records(folder: Path = store.FOLDER) -> list[dict[str, Any]]:
    """The claims JSON of every stored figure, in natural order."""
    paths = sorted(folder.glob("*.json"), key=lambda path: natural_order(path.stem))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [record for record in found if "claims" in record]


def figure_table(folder: Path = store.FOLDER) -> str:
    """Paper figure -> command -> verdicts on the paper's claims and on our findings."""
    rows = []
    for record in records(folder):
        picture = f"[{record['title']}](figures/{record['id']}.png)"
        verdicts = [counted([item["verdict"] for item in record[kind]]) for kind in ("claims", "findings")]
        rows.append([record["paper"], picture, f"`{record['command']}`", *verdicts])
    if not rows:
        return "No figure is stored yet: `make figures`."
    return markdown(["figure", "shows", "command", "claims of the paper", "findings of ours"], rows)


def verdict_table(folder: Path = store.FOLDER) -> str:
    """What each verdict means, and how many there are."""
    said = records(folder)
    rows = [[word, meaning] for word, meaning in CLAIM_WORDS.items()]
    ours = [[word, meaning] for word, meaning in FINDING_WORDS.items()]
    totals = [total(item for record in said for item in record[kind]) for kind in ("claims", "findings")]
    unjudged = sum(len(record["unjudged"]) for record in said)
    return "\n".join([
        markdown(["a claim of a paper", "means"], rows), "",
        markdown(["a finding of ours", "means"], ours), "",
        f"The papers' claims: {totals[0]}; {unjudged} more sentences of theirs cannot be judged here. "
        f"Findings of ours: {totals[1]}. A claim that several figures share counts once."])


def missing_table() -> str:
    """The papers' figures that are not reproduced, and why."""
    rows = [[row.number, row.shows + (f" (missing: {row.part})" if row.part else ""), row.why, row.needs]
            for row in NOT_REPRODUCED]
    return markdown(["figure", "shows", "why it is not here", "what it would take"], rows)


def benchmark_table(path: Path = BENCHMARKS) -> str:
    """The benchmark's own output as a table, and what its cases are."""
    if not path.exists():
        return "Not measured yet: `make bench`."
    header, *rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    whole = path.with_suffix(".json")
    cases = json.loads(whole.read_text(encoding="utf-8"))["cases"] if whole.exists() else {}
    legend = "".join(f"- {name}: {case['title']}\n" for name, case in cases.items())
    return (f"{legend}\n" if legend else "") + markdown(header, rows)


PARTS: dict[str, Callable[[], str]] = {"figures": figure_table, "verdicts": verdict_table,
                                       "missing": missing_table, "benchmarks": benchmark_table}


def filled(text: str, parts: dict[str, Callable[[], str]] | None = None) -> str:
    """`text` with every marked part replaced by what it should be now.

    Raises
    ------
    ValueError
        When a part is not marked exactly once.
    """
    for name, part in (PARTS if parts is None else parts).items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, opened, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not opened or not closed or begin in after:
            raise ValueError(f"README.md must contain {begin} ... {end} exactly once")
        text = f"{before}{begin}\n{part()}\n{end}{after}"
    return text


def main(arguments: Sequence[str] = ()) -> int:
    """Rewrite the tables of README.md, or with --check only say whether they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m reproduce readme",
                                     description="Fill the tables of README.md from the stored results.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when out of date")
    options = parser.parse_args(list(arguments))
    path = ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = filled(old)
    if options.check:
        print("README.md is up to date" if new == old else
              "README.md is out of date: python -m reproduce readme")
        return int(new != old)
    if new != old:
        store.publish(ROOT, {path.name: new})
    print("README.md: " + ("tables rewritten" if new != old else "already up to date"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
