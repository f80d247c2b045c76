"""`python -m tests.evidence`: write the numbers of all evidence against the papers' text again.

`evidence.json` holds them, so that a parameter of a piece of evidence cannot be changed without a difference
that somebody reads.
"""

from __future__ import annotations

import json
from pathlib import Path

import theory

TABLE = Path(__file__).with_name("evidence.json")


def numbers() -> dict[str, dict[str, float]]:
    """What each piece of computed evidence says, by entry and name."""
    entries = [*theory.errata(), *theory.remarks()]
    return {entry.id: dict(entry.evidence().numbers) for entry in entries if entry.kind == "numerical"}


if __name__ == "__main__":
    text = json.dumps(numbers(), indent=1, sort_keys=True, allow_nan=False)
    TABLE.write_text(text + "\n", encoding="utf-8")
