"""`python -m reproduce scoreboard`: every theorem against the exact law, on random problems.

The theorems come from `theory.theorems()` and are compared by `theory.examine`, so that a new theorem
appears by itself. An interrupted run goes on where it was. One row per theorem and variant; the first
variant of a theorem is its default, the smallest form that is proved."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import theory

from .. import gallery, random_settings, store, worst_cases
from ..figure import BadInput
from ..pool import HELP, results
from ..resume_file import ResumeFile
from ..scoreboard_columns import COLUMNS
from . import rows as of_rows
from .rows import DIGITS, Row, ratio, rows

PROBLEMS = 60
"""Problems per theorem."""


def _timed(id: str, n_problems: int) -> tuple[list[Row], float]:
    """Rows of a theorem, and the seconds they took."""
    begin = time.perf_counter()
    entry = next(entry for entry in theory.theorems() if entry.id == id)
    return rows(entry, n_problems), time.perf_counter() - begin


def _finished(ids: Sequence[str], n_problems: int, workers: int,
              executor: str | None) -> Generator[tuple[list[Row], float], None, None]:
    """Rows of the theorems as they finish."""
    one = partial(_timed, n_problems=n_problems)
    if executor is None and min(workers, len(ids)) < 2:
        yield from map(one, ids)
    else:
        yield from results(one, ids, workers, executor)


def table(n_problems: int = PROBLEMS, workers: int = 1, kept: ResumeFile | None = None,
          tell: Callable[[str], None] | None = None, executor: str | None = None) -> pd.DataFrame:
    """One row per theorem and variant, whatever the number of workers.

    Parameters
    ----------
    n_problems : random problems per theorem
    workers : processes
    kept : where finished theorems are kept and found
    tell : what takes a line of text per finished theorem
    executor : instead of processes; see ``--executor``
    """
    ids = [entry.id for entry in theory.theorems()]
    known = kept.load() if kept is not None else {}
    finished = {id: known[id] for id in ids if id in known}
    if finished and tell is not None:
        tell(f"{len(finished)} of {len(ids)} theorems are kept from an interrupted run")
    left = [id for id in ids if id not in finished]
    with closing(_finished(left, n_problems, workers, executor)) as coming:
        for rows_of, seconds in coming:
            id = rows_of[0]["theorem"]
            finished[id] = rows_of
            if kept is not None:
                kept.add(id, rows_of)
            if tell is not None:
                tell(f"[{len(finished):>2}/{len(ids)}] {id:<40} {_words(rows_of)}  {seconds:.1f} s")
    found = worst_cases.largest(worst_cases.load())
    return pd.DataFrame([{**row, "largest_found": ratio(found.get((id, row["variant"]), np.nan))}
                         for id in ids for row in finished[id]], columns=list(COLUMNS))


def kept_rows(folder: Path, n_problems: int) -> ResumeFile:
    """The finished theorems of an interrupted run."""
    return ResumeFile(folder, "scoreboard", (of_rows, random_settings), problems=n_problems)


def _words(rows_of: list[Row]) -> str:
    """The verdicts on a theorem's variants, in one where they agree."""
    words = {row["variant"]: row["verdict"] for row in rows_of}
    if len(set(words.values())) == 1:
        return str(rows_of[0]["verdict"])
    return ", ".join(f"{variant} {word}" for variant, word in words.items())


def as_csv(board: pd.DataFrame) -> str:
    """The table as text, blank where a number does not exist."""
    return board.to_csv(index=False, float_format=f"%.{DIGITS}g", lineterminator="\n")


def against_defaults(board: pd.DataFrame) -> pd.DataFrame:
    """The rows of default variants that are violated within their hypotheses."""
    defaults = {entry.id: entry.variants[0] for entry in theory.theorems()}
    return board[(board["violations"] > 0) & (board["variant"] == board["theorem"].map(defaults))]


def _told() -> str:
    """The columns and what they say, for a terminal."""
    return "\n".join(textwrap.fill(text, 110, initial_indent=f"    {name:<21}", subsequent_indent=" " * 25)
                     for name, text in COLUMNS.items())


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduce scoreboard",
                                     description=f"{__doc__}\nThe columns:\n\n{_told()}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = os.cpu_count() or 1
    parser.add_argument("--problems", type=int, default=PROBLEMS, help=f"per theorem (default {PROBLEMS})")
    parser.add_argument("--workers", type=int, default=cores, metavar="N",
                        help=f"processes (default the number of cores, {cores})")
    parser.add_argument("--executor", metavar="WHERE", help=HELP)
    parser.add_argument("--out", metavar="FOLDER", help="write scoreboard.csv there instead of figures/")
    arguments = parser.parse_args(given)
    for name in ("problems", "workers"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}={getattr(arguments, name)} must be at least 1")
    return arguments


def main(given: Sequence[str]) -> int:
    """Command line; exit code 1 when a bound is violated within its hypotheses by its default variant."""
    arguments = _arguments(given)
    folder = Path(arguments.out) if arguments.out else store.FOLDER
    kept = kept_rows(folder, arguments.problems)
    try:
        board = table(arguments.problems, arguments.workers, kept,
                      partial(print, file=sys.stderr, flush=True), arguments.executor)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nthe finished theorems are kept: the same command goes on from there", file=sys.stderr)
        raise
    store.publish(folder, {"scoreboard.csv": as_csv(board)})
    kept.remove()
    if (folder / "index.html").exists():
        gallery.write(folder, "quick")
    listed = ["theorem", "variant", "problems", "within_hypotheses", "verdict", "violations", "largest_ratio",
              "median_ratio", "largest_found", "vacuous", "least_gain", "median_gain"]
    print(board[listed].to_string(index=False, float_format=lambda value: f"{value:.3g}", na_rep="-"))
    wrong = against_defaults(board)
    print(f"{len(board)} rows; {len(wrong)} default variants violated within their hypotheses")
    return 1 if len(wrong) else 0
