"""figures/index.html: every stored figure with the verdicts on its claims.

The page is made from the stored claims JSON and the theorems' papers by the template gallery.html.j2, links
only to files beside it, and needs no network.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
import pandas as pd

import theory

from . import store
from .coverage import NOT_REPRODUCED
from .discovery import figures
from .figure import SCALES
from .verdicts import CLAIM_WORDS, FINDING_WORDS, total

CLASSES = {"PASS": "pass", "FAIL": "fail", "MISPRINT": "mend", "HOLDS": "pass", "DOES NOT HOLD": "mend"}
"""How a verdict is coloured; others are grey."""


def _papers() -> list[tuple[str, str, str]]:
    """The papers' names here and in the catalogue, their references and keys."""
    names: dict[str, dict[str, None]] = {}
    for entry in theory.theorems():
        names.setdefault(entry.key, {})[entry.paper] = None
    return [(", ".join(called), theory.cite(key), key) for key, called in names.items() if key]


def page(folder: Path, scale: str) -> str:
    """The page's HTML."""
    results = [result for name in figures() if (result := store.load_record(folder, name)) is not None]
    board = folder / "scoreboard.csv"
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True,
                                     undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    environment.filters["json"] = json.dumps
    return environment.get_template("gallery.html.j2").render(
        results=results, scale=scale, classes=CLASSES, papers=_papers(),
        words={**CLAIM_WORDS, **FINDING_WORDS},
        claims=total(item for result in results for item in result["claims"]),
        findings=total(item for result in results for item in result["findings"]),
        unjudged=sum(len(result["unjudged"]) for result in results),
        missing=[(row.number, row.shows + (f" (missing: {row.part})" if row.part else ""), row.why, row.needs)
                 for row in NOT_REPRODUCED],
        scoreboard=pd.read_csv(board, dtype=str, keep_default_na=False) if board.exists() else None)


def write(folder: Path, scale: str) -> Path:
    """Write index.html beside the figures."""
    store.publish(folder, {"index.html": page(folder, scale)})
    return folder / "index.html"


def main(given: Sequence[str]) -> int:
    """`python -m reproduce gallery`."""
    parser = argparse.ArgumentParser(prog="python -m reproduce gallery", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument("--out", metavar="FOLDER")
    arguments = parser.parse_args(given)
    print(write(store.folder_for(arguments.scale, arguments.out), arguments.scale))
    return 0
