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
from typing import Any

from fedsim.hints import shown

from . import costs, gallery, parameter_overrides, picture, run, store
from .claims import Claim, Finding, Unjudged
from .data_files import Files, chosen_files, listed
from .discovery import chosen
from .figure import SCALES, BadInput, Figure, Tables, clear_note
from .pool import HELP, results

Done = tuple[Tables, float]
COMMANDS = ("scoreboard", "worst_cases", "certificates", "gallery", "readme", "rejudge", "costs")
"""Modules of this package with a `main(arguments) -> int` of their own."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    line = argparse.ArgumentParser(
        prog="python -m reproduce", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make the papers' figures: tables (CSV), verdicts on the claims (JSON), pictures (PNG).",
        epilog="python -m reproduce scoreboard   every theorem against the exact law\n"
               "python -m reproduce worst_cases  for every bound, the problem at which it is tightest\n"
               "python -m reproduce certificates how fast samplers contract for every client, proved\n"
               "python -m reproduce gallery      figures/index.html from what is stored\n"
               "python -m reproduce rejudge      every verdict that rests on random numbers, on other seeds\n"
               "python -m reproduce costs        measure the seconds of every figure")
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
    line.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="changes",
                      help="another value of a parameter of the chosen figures (see --list ID), a JSON or "
                           "Python literal; may be repeated; results are marked and go to figures/custom/ "
                           "unless --out says otherwise, and no claim of a paper is judged on them")
    line.add_argument("--format", default="png", metavar="KINDS", dest="formats",
                      help="formats of the picture besides svg and png: pdf")
    line.add_argument("--style", metavar="NAME", help="a matplotlib style, by its file or name, on top of "
                      "the house style; pictures go to figures/custom/ unless --out says otherwise")
    line.add_argument("--json", action="store_true", help="print what --list, --check or a run says as JSON")
    mode = line.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true",
                      help="every figure in a line; of named figures: parameters, cost and claims")
    mode.add_argument("--draw", action="store_true", help="draw again from the stored CSV, no simulation")
    mode.add_argument("--check", action="store_true",
                      help="compute afresh and compare numbers and verdicts with what is stored, and the "
                           f"stored reasons with the code (relative {store.RTOL:g})")
    return line


def folder_of(arguments: argparse.Namespace, custom: bool = False) -> Path:
    """Where the results live."""
    return store.folder_for(arguments.scale, arguments.out, bool(arguments.data), custom)


def is_custom(arguments: argparse.Namespace) -> bool:
    """Are results other than what is kept of the figures?"""
    return bool(arguments.changes or arguments.style)


def wished(arguments: argparse.Namespace, todo: Sequence[Figure]) -> run.Wish:
    """What the options say of parameters and pictures; `BadInput` before anything is computed."""
    if arguments.changes and arguments.draw:
        raise BadInput("--set changes what is computed: it must be given without --draw")
    if is_custom(arguments) and arguments.out is not None:
        parameter_overrides.refuse_folder(Path(arguments.out))
    return run.Wish(parameter_overrides.read(arguments.changes, todo, arguments.scale),
                    picture.formats_of(arguments.formats), picture.style_of(arguments.style))


def work(figure: Figure, arguments: argparse.Namespace, files: Files, wish: run.Wish,
         done: Done | None = None) -> tuple[str, dict[str, Any]]:
    """One figure, from what is `done` of it: what to print, and what to say as JSON."""
    folder = folder_of(arguments, is_custom(arguments))
    if arguments.check:
        differing = run.check(figure, arguments.scale, folder, files, done, wish.changes)
        first = "same as stored" if not differing else f"{len(differing)} differences"
        return "\n      ".join([first, *differing]), {"id": figure.id, "differences": differing}
    if arguments.draw:
        result = run.redraw(figure, arguments.scale, folder, folder_of(arguments), wish)
        return f"drawn; {run.verdict_line(result)}", result
    result, seconds = run.make(figure, arguments.scale, folder, files, done, wish)
    return f"{seconds:6.1f} s   {run.verdict_line(result)}", result


def _computed(jobs: Sequence[Sequence[Figure]], arguments: argparse.Namespace, files: Files,
              wish: run.Wish) -> Generator[tuple[Figure, Done | Exception | None], None, None]:
    """Figures with what other processes computed of them; None where this one is to do it. To be closed."""
    workers = min(arguments.workers, len(jobs))
    if arguments.draw or (workers < 2 and arguments.executor is None):
        yield from ((figure, None) for job in jobs for figure in job)
        return
    known = {figure.id: figure for job in jobs for figure in job}
    paths = {name: path.resolve() for name, path in files.items()}
    some = partial(run.computed_by_id, scale=arguments.scale, given=paths, changes=wish.changes)
    for made in results(some, [[figure.id for figure in job] for job in jobs], workers, arguments.executor):
        yield from ((known[id], done) for id, done in made)


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
    try:
        todo = chosen(arguments.figures)
        if arguments.list:
            print(told(todo, arguments.scale, bool(arguments.figures), arguments.json))
            return 0
        files, wish = chosen_files(arguments.data, todo), wished(arguments, todo)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    tell = partial(print, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    said: dict[str, dict[str, Any]] = {}
    expected = parameter_overrides.FAILURES if wish.changes else (store.MissingResult, BadInput)
    if arguments.scale == "quick" and not arguments.draw and arguments.executor is None and not files:
        tell(costs.told(todo, min(arguments.workers, len(todo))))
    figure = todo[0]
    try:
        with closing(_computed(costs.jobs(todo), arguments, files, wish)) as computed:
            for number, (figure, done) in enumerate(computed, start=1):
                running[0] = figure.id
                tell(f"[{number}/{len(todo)}] {figure.id:<18} {figure.title[:60]:<60} ", end="")
                if isinstance(done, Exception):
                    raise done
                text, result = work(figure, arguments, files, wish, done)
                tell(text)
                said[figure.id], running[0] = result, "the rest"
    except expected as error:
        marked = f"{figure.id} {parameter_overrides.said(figure, wish.changes, arguments.scale)}: "
        print(f"\nerror: {marked if wish.changes else ''}{error}", file=sys.stderr)
        return 2
    if arguments.json:
        print(store.to_json([said[figure.id] for figure in todo]), end="")
    if not arguments.check:
        running[0] = "gallery"
        tell(f"gallery: {gallery.write(folder_of(arguments, is_custom(arguments)), arguments.scale)}")
    return 1 if any(result.get("differences") for result in said.values()) else 0


KINDS = {Claim: "claim", Finding: "finding", Unjudged: "unjudged"}


def line(figure: Figure) -> str:
    """A figure in one line, for grep: id, paper, title, cost, data."""
    cost = ", ".join(f"{scale} {figure.cost[scale]}" for scale in SCALES)
    reads = f"; reads {listed(figure.data)}" if figure.data else ""
    return f"{figure.id:<24} {figure.paper}: {figure.title}  [{cost}{reads}]"


def about(figure: Figure, scale: str) -> dict[str, Any]:
    """All about a figure, as plain values."""
    return {"id": figure.id, "paper": figure.paper, "title": figure.title, "shows": figure.shows,
            "reproduces": list(figure.reproduces), "cost": dict(figure.cost), "reads": list(figure.data),
            "scale": scale, "parameters": figure.parameters(scale),
            "said": [{"kind": KINDS[type(item)], "name": item.name, "text": item.text,
                      "source": getattr(item, "source", ""), "about": getattr(item, "about", ""),
                      "rests_on": getattr(item, "rests_on", "")} for item in figure.module.CLAIMS]}


def details(figure: Figure, scale: str) -> str:
    """All about a figure, as text: parameters with value, origin and reason, cost, and what is said."""
    told, lines = about(figure, scale), [figure.id, f"    {figure.paper}: {figure.title}"]
    lines += _wrapped(figure.shows, "    ")
    if figure.data:
        lines.append(f"    reads  {listed(figure.data)} of --data; without it, what the picture names")
    lines += ["    cost   " + ",  ".join(f"{one} {figure.cost[one]}" for one in SCALES),
              f"    parameters at {scale} scale, for --set name=value:"]
    for row in told["parameters"]:
        lines += _wrapped(f"{row['name']} = {_value(row['value'])}   ({row['origin']}"
                          f"{': ' + row['reason'] if row['reason'] else ''})", "      ")
    for item in told["said"]:
        source = item["source"] or item["about"]
        end = f" ({source})" if source else ""
        lines += _wrapped(f"{item['kind']} {item['name']}: {item['text']}{end}", "    ")
    return "\n".join(lines)


def _value(value: Any) -> str:
    """As it can be given to --set, where that is short."""
    text = repr(value)
    return text if len(text) <= 120 else shown(value)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 108, initial_indent=indent, subsequent_indent=indent + "    ",
                         break_long_words=False, break_on_hyphens=False)


def told(figures: Sequence[Figure], scale: str, named: bool, as_json: bool) -> str:
    """The text of --list: details where figures are `named`, else a line each."""
    if as_json:
        return store.to_json([about(figure, scale) for figure in figures]).rstrip()
    if named:
        return "\n\n".join(details(figure, scale) for figure in figures)
    return "\n".join(map(line, figures))
