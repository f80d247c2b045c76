"""`python -m reproduce scoreboard`: every theorem against the exact law, on random problems.

The theorems come from `theory.theorems()` and are compared by `theory.examine`, so that a new theorem
appears by itself. An interrupted run goes on where it was. One row per theorem and variant; the first
variant of a theorem is its default, the smallest form that is proved. The columns:

    theorem, statement   id in `theory.catalogue()`; paper and number
    variant, quantity    form of the statement; what it bounds (`theory.quantities()`)
    problems             random problems to which the theorem speaks
    within_hypotheses    those on which every hypothesis that numbers decide holds
    verdict              holds: on all within its hypotheses; violated: not on all of them. A rate has an
                         unknown constant, so that no problem can speak against it: it is not compared
    violations           problems within the hypotheses on which the exact quantity breaks the bound
    violations_outside   the same outside the hypotheses, which contradicts nothing
    largest_ratio        largest exact / bound within the hypotheses (bound / exact for a lower bound): 1 is
                         tight, more a violation; at most 1 within rounding is 1; below 1e-12 it is 0,
                         also where both sides are
    median_ratio         its median over problems
    largest_found        the largest ratio that a search found in three classes of problems, from
                         worst_cases.json, whose instances are evaluated again here
    first_bound          the bound at its last round on one problem, the first where the ratio is not 0
    first_ratio          the ratio there: by these two a test sees that the file lags behind the code
    vacuous              share of problems on which a bound on a distance is below the distance at the start
                         at none of the rounds drawn; blank for what is no distance
    least_gain           of a bound derived here: the least that a published bound of the same quantity is
                         over it, at any round after the start, where the hypotheses of both hold
    median_gain          the median of the same at the last round
    errata               of a violated variant, what `theory.errata(theorem=...)` says against the text
"""

from __future__ import annotations

import argparse
import os
import sys
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
from ..kept import Kept
from ..pool import HELP, results
from . import rows as of_rows
from .rows import DIGITS, Row, ratio, rows

PROBLEMS = 60
"""Problems per theorem."""

COLUMNS = ("theorem", "statement", "variant", "quantity", "problems", "within_hypotheses", "verdict",
           "violations", "violations_outside", "largest_ratio", "median_ratio", "largest_found",
           "first_bound", "first_ratio", "vacuous", "least_gain", "median_gain", "errata")


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
        yield from results(one, ids, workers, executor, in_order=False)


def table(n_problems: int = PROBLEMS, workers: int = 1, kept: Kept | None = None,
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


def kept_rows(folder: Path, n_problems: int) -> Kept:
    """The finished theorems of an interrupted run."""
    return Kept(folder, "scoreboard", (of_rows, random_settings), problems=n_problems)


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


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduce scoreboard", description=__doc__,
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
