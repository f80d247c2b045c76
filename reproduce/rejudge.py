"""`python -m reproduce rejudge`: every verdict that rests on random numbers, again on other seeds.

A verdict may turn to NOT TESTABLE (a finding to OPEN) where evidence is short; that it turns from one
decided word to another means that it was an accident, and is an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import pandas as pd

from .discovery import chosen
from .figure import SCALES, Figure, clear_note
from .verdicts import EXACT, NOT_TESTABLE, OPEN

SEEDS = 5
UNDECIDED = (NOT_TESTABLE, OPEN)


def rests_on_chance(figure: Figure) -> bool:
    """Whether any verdict of the figure rests on random numbers."""
    return any(item.rests_on != EXACT for item in figure.judged)


def rejudged(figure: Figure, scale: str, n_seeds: int = SEEDS) -> pd.DataFrame:
    """Verdicts on the figure's own seeds and on `n_seeds` others: one row a claim, one column a seed.

    Columns: figure, name, then "own", "seed 1" and so on.
    """
    columns: dict[str, list[str]] = {}
    chancy = [item for item in figure.judged if item.rests_on != EXACT]
    for k in range(n_seeds + 1):
        tables = figure.compute(scale, reseed=k)
        columns["own" if k == 0 else f"seed {k}"] = [item.judged(tables)["verdict"] for item in chancy]
    clear_note()
    names = [item.name for item in chancy]
    return pd.DataFrame({"figure": figure.id, "name": names, **columns})


def turned(table: pd.DataFrame) -> pd.DataFrame:
    """The rows in which two decided verdicts differ."""
    verdicts = table.drop(columns=["figure", "name"])
    decided = verdicts.where(~verdicts.isin(UNDECIDED))
    return table[decided.nunique(axis=1) > 1]


def main(given: Sequence[str]) -> int:
    """Command line; exit code 1 when a verdict turned."""
    parser = argparse.ArgumentParser(prog="python -m reproduce rejudge", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", nargs="*", metavar="figure", help="ids; all when none is given")
    parser.add_argument("--scale", choices=SCALES, default="tiny")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"how many others (default {SEEDS})")
    parser.add_argument("--out", metavar="FILE", help="also write the verdicts there, as CSV")
    arguments = parser.parse_args(list(given))
    if arguments.seeds < 1:
        parser.error(f"--seeds={arguments.seeds} must be at least 1")
    try:
        todo = [figure for figure in chosen(arguments.figures) if rests_on_chance(figure)]
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    tables = []
    for number, figure in enumerate(todo, start=1):
        began = time.perf_counter()
        tables.append(rejudged(figure, arguments.scale, arguments.seeds))
        print(f"[{number}/{len(todo)}] {figure.id:<24} {len(tables[-1])} verdicts, "
              f"{len(turned(tables[-1]))} turned  ({time.perf_counter() - began:.0f} s)", flush=True)
    if not tables:
        print("no verdict of these figures rests on random numbers")
        return 0
    table = pd.concat(tables, ignore_index=True)
    if arguments.out:
        table.to_csv(arguments.out, index=False, lineterminator="\n")
    wrong, moved = turned(table), table[table.iloc[:, 2:].nunique(axis=1) > 1]
    for title, rows in (("turned, an error", wrong), ("undecided on some seeds", moved.drop(wrong.index))):
        if len(rows):
            print(f"\n{title}:\n{rows.to_string(index=False)}")
    print(f"\n{len(table)} verdicts on {arguments.seeds + 1} seeds: {len(wrong)} turned, "
          f"{len(moved) - len(wrong)} undecided on some seeds, {len(table) - len(moved)} the same on all")
    return 1 if len(wrong) else 0
