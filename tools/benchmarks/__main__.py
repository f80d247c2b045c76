"""`python -m tools.benchmarks`: measure, judge, print, and keep results.json and results.csv."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .arena import CONTESTANTS, PEERS, Arena, Result, first_calls
from .cases import CASES
from .judge import ALLOWED
from .report import as_text, kept, record
from .stored import load

HERE = Path(__file__).resolve().parent
QUICK = 0.1
REPEATS = 30


def _chosen(text: str | None, known: tuple[str, ...], what: str) -> tuple[str, ...]:
    wanted = known if text is None else tuple(text.split(","))
    for name in wanted:
        if name not in known:
            raise SystemExit(f"{what} {name!r} is not known: {', '.join(known)}")
    return wanted


def _has(python: str, module: str) -> bool:
    """Can this interpreter import the module?"""
    found = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    return found.returncode == 0


def _versions(python: str, modules: tuple[str, ...]) -> dict[str, str]:
    """Of the peers, as the interpreter that runs them has them."""
    ask = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]))"
    answer = subprocess.run([python, "-c", ask, *modules], capture_output=True, check=True, text=True).stdout
    return dict(zip(modules, answer.split(), strict=True))


def main() -> int:
    """Exit code 1 when a result does not count, or when the law test misses a wrong program."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true",
                        help="a tenth of the work, 3 repetitions, nothing kept")
    parser.add_argument("--cases", help="comma separated, of " + ", ".join(case.name for case in CASES))
    parser.add_argument("--contestants", help="comma separated, of " + ", ".join(CONTESTANTS))
    parser.add_argument("--repeats", type=int, help=f"repetitions, {REPEATS} by default")
    parser.add_argument("--output", type=Path, help="folder for results.json and results.csv; by default "
                        "this one for the full comparison or with --update, none for a part of it")
    parser.add_argument("--update", action="store_true",
                        help="keep the stored results of the cases that are not measured now")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH",
                        help="an interpreter that has NumPy and " + " and ".join(PEERS) + ", which are left "
                        "out where it has not; by default this one")
    options = parser.parse_args()
    repeats = options.repeats or (3 if options.quick else REPEATS)
    factor = QUICK if options.quick else 1.0
    names = _chosen(options.cases, tuple(case.name for case in CASES), "case")
    contestants = _chosen(options.contestants, CONTESTANTS, "contestant")
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed: it is left out (make bench installs it)")
        contestants = tuple(name for name in contestants if not name.startswith("JAX"))
    for peer in PEERS:
        if peer in contestants and not _has(options.peer_python, peer):
            print(f"{peer} is not installed: it is left out (--peer-python PATH names an interpreter that "
                  "has it)")
            contestants = tuple(name for name in contestants if name != peer)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = (1, 2) if cores > 1 else (1,)
    cases = [case.shortened(factor) if options.quick else case for case in CASES if case.name in names]
    before = os.getloadavg()[0]

    results: list[Result] = []
    power: dict[str, dict[str, bool]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = tuple(name for name in contestants if name.startswith("fedsim"))
        first = first_calls(cases[0], ours, folder)
        for case in cases:
            arena = Arena(case, factor, contestants, threads, folder, lambda line: print(line, flush=True),
                          options.peer_python)
            results += arena.run(repeats)
            power[case.name] = arena.power()
    versions = _versions(options.peer_python, tuple(name for name in PEERS if name in contestants))
    found = record(results, first, power, cases, versions, (before, os.getloadavg()[0]))
    print(as_text(found))
    missing = set(CONTESTANTS) - set(PEERS) - set(contestants)
    partial = options.quick or options.repeats or len(names) < len(CASES) or missing
    output = options.output or (None if options.quick or (partial and not options.update) else HERE)
    if output is not None:
        stored = kept(found)
        if options.update and (output / "results.json").exists():
            stored = load(output).joined(stored, tuple(case.name for case in CASES))
        if stored.statistics > ALLOWED:
            raise SystemExit(f"the law test used more than {ALLOWED} statistics: declare more in judge.py")
        stored.save(output)
        print("kept results.json and results.csv; README: python -m reproduce readme")
    good = all(result.valid for result in results) and all(all(one.values()) for one in power.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
