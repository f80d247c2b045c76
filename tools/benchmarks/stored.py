"""What is kept: the table (results.csv) and its cases (results.json), which README and docs/ are made of."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

HEADER = ("case", "program", "step", "ns per step, 1 thread", "times fedsim's (range)",
          "ns per step, 2 threads", "times fedsim's (range)", "time / its random numbers",
          "first result after, s", "peak MB", "note")
CONDITIONS = ("machine", "versions", "load_before_and_after")


class Stored(NamedTuple):
    """What stands in the two files.

    Attributes
    ----------
    cases : by name the title, the conditions under which it was measured, and how many statistics the law
        test used of the false-alarm budget
    rows : of the table, by case; the header is `HEADER`
    """

    cases: dict[str, dict[str, Any]]
    rows: list[tuple[str, ...]]

    @property
    def statistics(self) -> int:
        """Of all cases that stand together."""
        return sum(case["statistics"] for case in self.cases.values())

    def joined(self, new: Stored, order: tuple[str, ...]) -> Stored:
        """With newly measured cases in place of the stored ones."""
        both, rows = self.cases | new.cases, [row for row in self.rows if row[0] not in new.cases]
        return Stored({name: both[name] for name in order if name in both},
                      sorted(rows + new.rows, key=lambda row: order.index(row[0])))

    def save(self, folder: Path) -> None:
        """Write both files; conditions that cases share stand once."""
        conditions: list[dict[str, Any]] = []
        cases: dict[str, Any] = {}
        for name, case in self.cases.items():
            under = {part: case[part] for part in CONDITIONS}
            if under not in conditions:
                conditions.append(under)
            cases[name] = {"title": case["title"], "statistics": case["statistics"],
                           "conditions": conditions.index(under)}
        folder.mkdir(parents=True, exist_ok=True)
        each = [",\n  ".join(map(json.dumps, conditions)),
                ",\n  ".join(f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())]
        (folder / "results.json").write_text(
            f'{{"conditions": [\n  {each[0]}],\n "cases": {{\n  {each[1]}}}}}\n', encoding="utf-8")
        with (folder / "results.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *self.rows])


def load(folder: Path) -> Stored:
    """What `save` has written."""
    found = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    cases = {name: {"title": case["title"], "statistics": case["statistics"],
                    **found["conditions"][case["conditions"]]} for name, case in found["cases"].items()}
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return Stored(cases, [tuple(row) for row in rows])
