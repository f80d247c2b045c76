"""`python -m reproduce worst_cases`: for every bound, the problem of a class at which it is tightest.

`theory.worst_case.search` looks for it in three classes (two and three clients in one dimension, two clients
with rotated Hessians in two), with 100 evaluations per unknown. What it finds is written to
`worst_cases.json`, a record a line, numbers in hexadecimal: the same seed gives the same file.

The objectives, of which the last two are for bounds on W2:

    ratio        exact / bound at its largest over the rounds (bound / exact for a lower bound)
    excess       the same without the start's term on either side, where the bound names one
    stationary   that of the limits, where the bound has one

`--verify` only evaluates the stored instances again, as the scoreboard does for its column largest_found.
An interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import theory
from theory import worst_case
from theory.worst_case import ProblemClass

from . import store
from .figure import BadInput
from .pool import HELP, results
from .resume_file import ResumeFile

FILE = "worst_cases.json"
PER_UNKNOWN = 100
"""Evaluations: with fewer a search has not looked everywhere."""
SHAPES = ((2, 1), (3, 1), (2, 2))
"""Clients and dimensions."""
NO_RATIO = ("de_sghmc.connectivity_bound", "de_sghmc.gradient_coefficient_bound",
            "de_sgld.connectivity_bound")
"""Statements that something is at most 0: there is no ratio."""
Job = tuple[str, str, int, int, int, int]
Record = dict[str, Any]


def jobs(only: str, seed: int, per_unknown: int) -> dict[str, Job]:
    """What is searched, by the name of its record."""
    found: dict[str, Job] = {}
    theorems = {entry.id: entry for entry in theory.theorems()}
    for aim in worst_case.aims():
        if aim not in theorems or not aim.startswith(only) or aim in NO_RATIO:
            continue
        clients = theorems[aim].only.get("n_clients")
        shapes = SHAPES if clients is None else ((clients, 1), (clients, 2))
        further = worst_case.objectives(aim)[1:] if theorems[aim].quantity == "w2" else ()
        todo = [("ratio", *shape) for shape in shapes]
        todo += [(objective, *shape) for objective in further for shape in shapes if shape != (3, 1)]
        for objective, clients, dim in todo:
            found[f"{aim} {objective} N={clients} d={dim}"] = (aim, objective, clients, dim, seed,
                                                               per_unknown)
    return found


def searched(item: tuple[str, Job]) -> tuple[str, Record, float]:
    """One search: its name, its record, and the seconds it took."""
    name, (aim, objective, clients, dim, seed, per_unknown) = item
    begin = time.perf_counter()
    only, = (entry.only for entry in theory.theorems() if entry.id == aim)
    cls = ProblemClass(**{**only, "n_clients": clients, "dim": dim})
    budget = per_unknown * worst_case.unknowns(aim, cls, objective=objective)
    found = worst_case.search(aim, cls, budget=budget, seed=seed, objective=objective)
    return name, worst_case.to_record(found), time.perf_counter() - begin


def load(folder: Path = store.FOLDER) -> dict[str, Record]:
    """The stored records by name; none where there is no file."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text()))
    except (json.JSONDecodeError, ValueError, TypeError) as error:
        raise BadInput(f"{path.name} in {folder.name}/ is not what this program wrote ({error})") from None


def as_json(records: dict[str, Record]) -> str:
    """A record a line, in the order of their names."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def verified(records: dict[str, Record]) -> dict[str, Any]:
    """The verdict on every instance, evaluated again; `BadInput` where another value comes out."""
    found = {}
    for name, record in records.items():
        try:
            found[name] = worst_case.verify(record)
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f"{FILE}, {name}: {error}\nafter a change of a bound or a law: "
                           "python -m reproduce worst_cases") from None
    return found


def largest(records: dict[str, Record]) -> dict[tuple[str, str], float]:
    """By theorem and variant the largest verified ratio."""
    found: dict[tuple[str, str], float] = {}
    chosen = {name: record for name, record in records.items() if record["objective"] == "ratio"}
    for name, verdict in verified(chosen).items():
        key = (records[name]["aim"], records[name]["variant"])
        found[key] = max(found.get(key, 0.0), verdict.tightness)
    return found


def _line(name: str, record: Record) -> str:
    found = worst_case.from_record(record)
    state = "agree" if found.agreed else "differ"
    return f"{name:<58} {found.value:<12.6g} restarts {state:<7} {found.binding}"


def _arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reproduce worst_cases", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    cores = os.cpu_count() or 1
    parser.add_argument("--only", default="", metavar="BEGIN",
                        help="theorems whose id begins so; others stay")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-unknown", type=int, default=PER_UNKNOWN, metavar="N",
                        help=f"evaluations for each unknown (default {PER_UNKNOWN})")
    parser.add_argument("--workers", type=int, default=cores, metavar="N",
                        help=f"processes (default the number of cores, {cores})")
    parser.add_argument("--executor", metavar="WHERE", help=HELP)
    parser.add_argument("--verify", action="store_true", help="only evaluate the stored instances again")
    parser.add_argument("--out", metavar="FOLDER", help=f"write {FILE} there instead of figures/")
    arguments = parser.parse_args(given)
    for name, least in (("seed", 0), ("per_unknown", 10), ("workers", 1)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name.replace('_', '-')}={getattr(arguments, name)} must be at least {least}")
    return arguments


def _coming(left: Sequence[tuple[str, Job]], workers: int,
            executor: str | None) -> Generator[tuple[str, Record, float], None, None]:
    """Searches as they end."""
    if executor is None and min(workers, len(left)) < 2:
        yield from map(searched, left)
    else:
        yield from results(searched, left, workers, executor)


def _search(arguments: argparse.Namespace, folder: Path) -> dict[str, Record]:
    """Every search, in the order in which they end."""
    todo = jobs(arguments.only, arguments.seed, arguments.per_unknown)
    if not todo:
        raise BadInput(f"--only={arguments.only} must begin the id of a bound; see theory.worst_case.aims()")
    kept = ResumeFile(folder, "worst_cases", (sys.modules[__name__],), seed=arguments.seed,
                per_unknown=arguments.per_unknown)
    finished = {name: record for name, record in kept.load().items() if name in todo}
    if finished:
        print(f"{len(finished)} of {len(todo)} searches are kept from an interrupted run", file=sys.stderr)
    left = [item for item in todo.items() if item[0] not in finished]
    with closing(_coming(left, arguments.workers, arguments.executor)) as found:
        for name, record, seconds in found:
            kept.add(name, record)
            finished[name] = record
            print(f"[{len(finished):>3}/{len(todo)}] {_line(name, record)}  {seconds:.0f} s", file=sys.stderr,
                  flush=True)
    store.publish(folder, {FILE: as_json({**load(folder), **finished})})
    kept.remove()
    return finished


def main(given: Sequence[str]) -> int:
    """Command line; exit code 1 when a bound is violated within its hypotheses by its default variant."""
    arguments = _arguments(given)
    folder = Path(arguments.out) if arguments.out else store.FOLDER
    try:
        if arguments.verify:
            stored = load(folder).items()
            records = {name: record for name, record in stored if name.startswith(arguments.only)}
            if not records:
                raise BadInput(f"{FILE} has no records to verify; make it: python -m reproduce worst_cases")
        else:
            records = _search(arguments, folder)
        verdicts = verified(records)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nthe finished searches are kept: the same command goes on from there", file=sys.stderr)
        raise
    for name in sorted(records):
        print(_line(name, records[name]))
    wrong = [name for name, verdict in verdicts.items() if verdict.contradicts_theorem]
    print(f"{len(records)} instances, each evaluated again; {len(wrong)} violate a bound within its "
          "hypotheses")
    for name in wrong:
        print(f"    {name}: {verdicts[name]}")
    return 1 if wrong else 0
