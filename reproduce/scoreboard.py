"""`python -m reproduce scoreboard`: every theorem against the exact law, on random problems.

The theorems come from `theory.theorems()` and are compared by `theory.examine`, so that a new theorem
appears by itself. What is drawn at random for an algorithm stands in a module ``_settings_<name>.py``
of this package, which defines

    ALGORITHM                     its class
    draw(rng) -> (problem, algorithm, n_rounds, start)

Within its hypotheses a bound must hold on every problem; `theory` calls a bound vacuous when it is not
below the distance at the start.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import theory

from . import gallery, store
from .figure import clear_note, note

PROBLEMS = 60
"""Problems per theorem and variant."""
SEED = 2024
TRIES = 40
"""Draws per problem wanted, before a theorem counts as not applicable to what is drawn."""

COLUMNS = ("theorem", "statement", "variant", "quantity", "problems", "within_hypotheses", "verdict",
           "violations", "violations_outside", "largest_ratio", "median_ratio", "vacuous")


def settings() -> dict[type, Callable[[np.random.Generator], tuple[Any, Any, int, Any]]]:
    """The random settings of every algorithm that has a module of them."""
    package = importlib.import_module(__package__ or "reproduce")
    modules = [importlib.import_module(f"{package.__name__}.{info.name}")
               for info in pkgutil.iter_modules(package.__path__) if info.name.startswith("_settings_")]
    return {module.ALGORITHM: module.draw for module in modules}


def _draws(entry: Any, n_problems: int) -> Iterator[tuple[Any, Any, int, Any]]:
    """Problems to which a theorem applies; the same for each of its variants."""
    known = settings()
    if entry.algorithm not in known:
        return
    rng = np.random.default_rng([SEED, zlib.crc32(entry.id.encode())])
    found = 0
    for _ in range(TRIES * n_problems):
        drawn = known[entry.algorithm](rng)
        if entry.applies(drawn[1]):
            yield drawn
            found += 1
            if found == n_problems:
                return


def judge(entry: Any, variant: str, n_problems: int) -> dict[str, Any]:
    """One row: a variant of a theorem on random problems."""
    row = {"theorem": entry.id, "statement": f"{entry.paper} {entry.number}", "variant": variant,
           "quantity": entry.quantity}
    if entry.kind == "rate":
        return _empty(row, "a rate: holds up to an unknown constant")
    verdicts = [theory.examine(entry, problem, algorithm, n_rounds, start=start, variant=variant)
                for problem, algorithm, n_rounds, start in _draws(entry, n_problems)]
    if not verdicts:
        return _empty(row, "no random settings for it")
    inside = [verdict for verdict in verdicts if verdict.hypotheses_met]
    ratios = [verdict.tightness for verdict in inside]
    wrong = sum(verdict.contradicts_theorem for verdict in verdicts)
    outside = sum(not verdict.holds for verdict in verdicts) - wrong
    vacuous = any(verdict.bound.start_distance is not None for verdict in verdicts)
    return {**row, "problems": len(verdicts), "within_hypotheses": len(inside),
            "verdict": ("violated" if wrong else "holds") if inside else "never within hypotheses",
            "violations": wrong,
            "violations_outside": outside,
            "largest_ratio": max(ratios, default=np.nan),
            "median_ratio": float(np.median(ratios)) if ratios else np.nan,
            "vacuous": sum(verdict.is_vacuous for verdict in verdicts) / len(verdicts) if vacuous else np.nan}


def _empty(row: dict[str, Any], why: str) -> dict[str, Any]:
    return {**row, "problems": 0, "within_hypotheses": 0, "verdict": why, "violations": 0,
            "violations_outside": 0, "largest_ratio": np.nan, "median_ratio": np.nan, "vacuous": np.nan}


def table(n_problems: int = PROBLEMS) -> pd.DataFrame:
    """One row per theorem and variant."""
    rows = []
    for entry in theory.theorems():
        for variant in entry.variants:
            note(f"{entry.id} ({variant})")
            rows.append(judge(entry, variant, n_problems))
    clear_note()
    return pd.DataFrame(rows, columns=list(COLUMNS))


def as_csv(found: pd.DataFrame) -> str:
    """The table as text, six significant digits, blank where a number does not exist."""
    return found.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def main(given: Sequence[str]) -> int:
    """Command line; exit code 1 when a bound is violated within its hypotheses by its default variant."""
    parser = argparse.ArgumentParser(prog="python -m reproduce scoreboard", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=PROBLEMS, help=f"per theorem (default {PROBLEMS})")
    parser.add_argument("--out", metavar="FOLDER", help="write scoreboard.csv there instead of figures/")
    arguments = parser.parse_args(given)
    if arguments.problems < 1:
        parser.error(f"--problems={arguments.problems} must be at least 1")
    found = table(arguments.problems)
    folder = Path(arguments.out) if arguments.out else store.FOLDER
    store.publish(folder, {"scoreboard.csv": as_csv(found)})
    if (folder / "index.html").exists():
        gallery.write(folder, "quick")
    shown = ["theorem", "variant", "problems", "within_hypotheses", "verdict", "violations", "largest_ratio",
             "median_ratio", "vacuous"]
    print(found[shown].to_string(index=False, float_format=lambda value: f"{value:.3g}", na_rep="-"))
    defaults = {entry.id: entry.variants[0] for entry in theory.theorems()}
    wrong = found[(found["violations"] > 0) & (found["variant"] == found["theorem"].map(defaults))]
    print(f"{len(found)} rows; {len(wrong)} default variants violated within their hypotheses")
    return 1 if len(wrong) else 0
