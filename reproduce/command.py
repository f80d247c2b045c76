"""The command line, `python -m reproduce`: list, make, redraw and check the figures."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import textwrap
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from . import gallery, run, store
from .data import Files, chosen_files, listed
from .discovery import chosen, figures
from .figure import SCALES, BadInput, Figure, Tables, clear_note
from .pool import HELP, results

Done = tuple[Tables, float]
COMMANDS = ("scoreboard", "worst_cases", "gallery", "readme", "rejudge")
"""Modules of this package with a `main(arguments) -> int` of their own."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    line = argparse.ArgumentParser(
        prog="python -m reproduce", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make the papers' figures: tables (CSV), verdicts on the claims (JSON), pictures (PNG).",
        epilog="python -m reproduce scoreboard   every theorem against the exact law\n"
               "python -m reproduce worst_cases  for every bound, the problem at which it is tightest\n"
               "python -m reproduce gallery      figures/index.html from what is stored\n"
               "python -m reproduce rejudge      every verdict that rests on random numbers, on other seeds")
    line.add_argument("figures", nargs="*", metavar="figure", help="ids from --list; all when none is given")
    line.add_argument("--scale", choices=SCALES, default="quick",
                      help="quick: seconds each (default); paper: the paper's sizes, into figures/paper/; "
                           "tiny: for tests")
    line.add_argument("--out", metavar="FOLDER", help="write there instead of figures/")
    line.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1), metavar="N",
                      help="processes that compute figures (default the number of cores, at most 4)")
    line.add_argument("--executor", metavar="WHERE", help=HELP)
    line.add_argument("--data", action="append", default=[], metavar="PATH",
                      help="a data file, or a folder of data files under their usual names (see --list; "
                           "one with a folder is in a folder of that name); may be repeated; results go to "
                           "figures/data/ unless --out says otherwise")
    mode = line.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="every figure: what it shows, cost per scale")
    mode.add_argument("--draw", action="store_true", help="draw again from the stored CSV, no simulation")
    mode.add_argument("--check", action="store_true",
                      help="compute afresh and compare numbers and verdicts with what is stored, and the "
                           f"stored reasons with the code (relative {store.RTOL:g})")
    return line


def listing() -> str:
    """The text of --list."""
    lines = []
    for figure in figures().values():
        lines += [f"{figure.id}", f"    {figure.paper}: {figure.title}"]
        lines += textwrap.wrap(figure.shows, 100, initial_indent="    ", subsequent_indent="    ")
        if figure.data:
            lines.append(f"    reads  {listed(figure.data)} where --data has it, a stand-in otherwise")
        lines += ["    cost   " + ",  ".join(f"{scale} {figure.cost[scale]}" for scale in SCALES), ""]
    return "\n".join(lines).rstrip()


def folder_of(arguments: argparse.Namespace) -> Path:
    """Where the results live."""
    return store.folder_for(arguments.scale, arguments.out, bool(arguments.data))


def work(figure: Figure, arguments: argparse.Namespace, files: Files, done: Done | None = None) -> bool:
    """One figure, from what is `done` of it; False when a check found differences."""
    folder = folder_of(arguments)
    if arguments.check:
        differing = run.check(figure, arguments.scale, folder, files, done)
        print("same as stored" if not differing else f"{len(differing)} differences")
        for text in differing:
            print(f"      {text}")
        return not differing
    if arguments.draw:
        result = run.redraw(figure, arguments.scale, folder)
        print(f"drawn; {run.verdict_line(result)}")
        return True
    result, seconds = run.make(figure, arguments.scale, folder, files, done)
    print(f"{seconds:6.1f} s   {run.verdict_line(result)}")
    return True


def _computed(todo: Sequence[Figure], arguments: argparse.Namespace,
              files: Files) -> Generator[Done | None, None, None]:
    """What other processes computed, in order; None where this one is to do it. To be closed."""
    workers = min(arguments.workers, len(todo))
    if arguments.draw or (workers < 2 and arguments.executor is None):
        yield from [None] * len(todo)
        return
    paths = {name: path.resolve() for name, path in files.items()}
    one = partial(run.computed_by_id, scale=arguments.scale, given=paths)
    yield from results(one, [figure.id for figure in todo], workers, arguments.executor, in_order=True)


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if given is None else given)
    running = [words[0] if words and words[0] in COMMANDS else "the work"]
    try:
        if running[0] in COMMANDS:
            return importlib.import_module(f"{__package__}.{running[0]}").main(words[1:])
        return _figures(parser().parse_args(words), running)
    except KeyboardInterrupt:
        clear_note()
        print(f"\ninterrupted: {running[0]} was not finished, its previous result is intact", file=sys.stderr)
        return 130


def _figures(arguments: argparse.Namespace, running: list[str]) -> int:
    """List, make, draw or check; `running` tells the caller which figure is at work."""
    if arguments.list:
        print(listing())
        return 0
    try:
        todo = chosen(arguments.figures)
        files = chosen_files(arguments.data, todo)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    same = True
    with closing(_computed(todo, arguments, files)) as computed:
        for number, figure in enumerate(todo, start=1):
            running[0] = figure.id
            print(f"[{number}/{len(todo)}] {figure.id:<18} {figure.title[:60]:<60} ", end="", flush=True)
            try:
                same &= work(figure, arguments, files, next(computed))
            except (store.MissingResult, BadInput) as error:
                print(f"\nerror: {error}", file=sys.stderr)
                return 2
    if not arguments.check:
        running[0] = "gallery"
        page = gallery.write(folder_of(arguments), arguments.scale)
        print(f"gallery: {page}")
    return 0 if same else 1
