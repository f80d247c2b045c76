"""Count the lines of the packages by kind, with Python's own parser.

    python -m tools.count            prints the table
    python -m tools.count --write    writes it into CONTRIBUTING.md

A line is one of: docstring, import, blank, comment, or code. `tests/test_count.py` fails when the code of
fedsim, theory and reproduce has grown by more than `ROOM` lines since the table was written: with the new
table comes a fragment of docs/changes that says what the lines buy.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("fedsim", "theory", "reproduce", "tests", "tools", "docs")
SHIPPED = PACKAGES[:3]
KINDS = ("code", "docstring", "import", "comment", "blank")
ROOM = 500
PAGE = ROOT / "CONTRIBUTING.md"
TABLE = re.compile(r"(<!-- python -m tools.count --write -->\n).*?(<!-- end of count -->)", re.DOTALL)


def kinds(source: str) -> Counter[str]:
    """How many lines of each kind a module has."""
    lines = source.splitlines()
    kind = ["code"] * len(lines)
    for number, line in enumerate(lines):
        if not line.strip():
            kind[number] = "blank"
        elif line.lstrip().startswith("#"):
            kind[number] = "comment"
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                here = "docstring"
            case ast.Import() | ast.ImportFrom():
                here = "import"
            case _:
                continue
        kind[node.lineno - 1:node.end_lineno] = [here] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return Counter(kind)


def count(package: str) -> Counter[str]:
    """The sums over the files of a package, with their number as "files"."""
    total: Counter[str] = Counter()
    for path in sorted((ROOT / package).rglob("*.py")):
        total += kinds(path.read_text(encoding="utf-8")) + Counter(files=1)
    return total


def table() -> str:
    """The table in Markdown."""
    rows = [f"| package | files | lines | {' | '.join(KINDS)} |", "|---" * (3 + len(KINDS)) + "|"]
    for package in PACKAGES:
        found = count(package)
        numbers = (found["files"], sum(found[kind] for kind in KINDS), *(found[kind] for kind in KINDS))
        rows.append(f"| {package} | {' | '.join(f'{number:,}' for number in numbers)} |")
    return "\n".join(rows) + "\n"


def written(text: str) -> int:
    """Lines of code of the shipped packages, as the table of a page has them."""
    rows = {cells[1].strip(): cells for line in text.splitlines() if len(cells := line.split("|")) == 10}
    return sum(int(rows[package][4].replace(",", "")) for package in SHIPPED)


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(prog="python -m tools.count", description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the table into CONTRIBUTING.md")
    if not parser.parse_args().write:
        print(table(), end="")
        return
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda found: found[1] + table() + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
