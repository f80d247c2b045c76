"""`python -m tools.mutate.sampled`: changes that nobody thought of, in one room of theory, drawn at random.

cosmic-ray knows the changes (a sign, a number, a comparison, a condition, a decorator); a seed draws some of
them, by default the week's, and with it the room. Each is made in a copy of the project, where the room's
tests (`rooms.toml`) have to fail. One that survives is a test that is missing, or it makes no difference:
then `rooms.toml` takes it up, with the reason. Exit code 1 when one survives that is not there.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import os
import random
import shlex
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .__main__ import PYTEST, VERDICTS, bounded, copied, run

ROOMS = tomllib.loads(Path(__file__).with_name("rooms.toml").read_text(encoding="utf-8"))


NEGATIONS = ("_Eq_NotEq", "_NotEq_Eq", "_Is_IsNot", "_IsNot_Is")
Span = tuple[tuple[int, int], tuple[int, int]]


def _span(node: ast.expr) -> Span:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def unread(path: Path) -> Iterator[Span]:
    """Where annotations stand, which nothing reads: begin and end as (line, column)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(part, ast.expr):
                yield _span(part)


def names(path: Path) -> Iterator[Span]:
    """Where something is compared with a name or with None: only the opposite makes sense there."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and any(
                isinstance(part, ast.Constant) and isinstance(part.value, str | None)
                for part in node.comparators):
            yield _span(node)


def sensible(mutation: Any, places: tuple[list[Span], list[Span]]) -> bool:
    """Is it in no annotation, and no `<` of names?"""
    def inside(spans: list[Span]) -> bool:
        return any(begin <= tuple(mutation.start_pos) < end for begin, end in spans)

    compares = mutation.operator_name.startswith("core/ReplaceComparison")
    return not inside(places[0]) and (
        not compares or mutation.operator_name.endswith(NEGATIONS) or not inside(places[1]))


def changes(modules: list[Path], folder: Path) -> list[Any]:
    """All changes of these modules that could make a difference, in a fixed order."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import use_db

    places = {path: (list(unread(path)), list(names(path))) for path in modules}
    with use_db(str(folder / "changes.sqlite")) as kept:
        init(modules, kept, {})
        each = [mutation for item in kept.work_items for mutation in item.mutations]
    each = [one for one in each if sensible(one, places[Path(one.module_path)])]
    return sorted(each, key=lambda one: (str(one.module_path), one.start_pos, one.operator_name,
                                         one.occurrence))


def lines_of(difference: str) -> tuple[str, str]:
    """The line that was, and what it became; of several all."""
    was, became = ([line[1:].strip() for line in difference.splitlines()
                    if line.startswith(sign) and not line.startswith(sign * 3)] for sign in "-+")
    return " ".join(was), " ".join(became)


def known(module: str, was: str, became: str) -> bool:
    """Does `rooms.toml` say that this makes no difference?"""
    return any((module, was, became) == (one["file"], one["was"], one["became"])
               for one in ROOMS.get("equivalent", []))


def judge(chosen: list[Any], command: str, timeout: float, until: float) -> tuple[int, int]:
    """Make the changes one after the other; how many were made, and how many survived that should not."""
    from cosmic_ray.mutating import mutate_and_test

    made = survived = 0
    for mutation in chosen:
        if time.monotonic() > until:
            break
        result = mutate_and_test([mutation], command, timeout)
        if result.test_outcome is None or result.test_outcome.value == "incompetent":
            print(f"no verdict: {mutation.module_path} {mutation.operator_name} {result.output}", flush=True)
            continue
        made += 1
        if result.test_outcome.value != "survived":
            continue
        was, became = lines_of(result.diff or "")
        excused = known(str(mutation.module_path), was, became)
        survived += not excused
        print(f"{'equivalent' if excused else 'SURVIVED'}: {mutation.module_path}:{mutation.start_pos[0]}\n"
              f"    {was}\n    {became}", flush=True)
    return made, survived


def main() -> int:
    """Draw, change, judge, and say what came out."""
    year, week, _ = datetime.date.today().isocalendar()
    parser = argparse.ArgumentParser(prog="python -m tools.mutate.sampled",
                                     description="Random changes of one room of theory.")
    parser.add_argument("--seed", type=int, default=100 * year + week, help="default: the week's")
    parser.add_argument("--room", choices=ROOMS["room"], help="default: drawn too")
    parser.add_argument("--module", default="", help="only modules whose path has this in it")
    parser.add_argument("--count", type=int, default=100, help="changes, default %(default)s")
    parser.add_argument("--minutes", type=float, default=30.0, help="no new change later than this")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for the tests of one change")
    arguments = parser.parse_args()
    bounded()
    began, draws = time.monotonic(), random.Random(arguments.seed)
    name = draws.choice(sorted(ROOMS["room"]))
    name = arguments.room or name
    room, home = ROOMS["room"][name], Path.cwd()
    tests = tuple(f"tests/{test}" for test in room["tests"])
    with tempfile.TemporaryDirectory(prefix="changes-") as folder:
        root = copied(Path(folder))
        verdict, words = run(tests, root, 10 * arguments.timeout, None)
        if verdict != VERDICTS[0]:
            print(f"the tests of {name} do not pass without a change:\n{words}")
            return 2
        try:
            os.chdir(root)
            os.environ["PYTHONPATH"] = str(root)
            modules = [path for base in room["modules"] for path in sorted(Path(base).rglob("*.py"))
                       if arguments.module in path.as_posix()]
            every = changes(modules, Path(folder))
            chosen = draws.sample(every, min(arguments.count, len(every)))
            command = shlex.join([*PYTEST, *tests])
            made, survived = judge(chosen, command, arguments.timeout, began + 60.0 * arguments.minutes)
        finally:
            os.chdir(home)
    print(f"{name}, seed {arguments.seed}: {made} of {len(every)} changes made in "
          f"{(time.monotonic() - began) / 60:.0f} minutes, {survived} survived that should not")
    return 1 if survived else 0 if made else 2


if __name__ == "__main__":
    sys.exit(main())
