"""Every page of the gallery, as text."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
import pandas as pd

import theory
from theory.declare.registry import labels

from .. import explorables, headlines, store
from ..coverage import NOT_REPRODUCED
from ..discovery import figures
from ..scoreboard_columns import COLUMNS
from ..verdicts import CLAIM_WORDS, FINDING_WORDS, NOT_TESTABLE, OPEN, total

HERE = Path(__file__).parent / "templates"
ROOT = Path(__file__).resolve().parents[2]
CLASSES = {"PASS": "pass", "ECHOED": "echo", "FAIL": "fail", "MISPRINT": "mend", "HOLDS": "pass",
           "DOES NOT HOLD": "mend", headlines.ECHO: "echo",
           headlines.REPRODUCED: "pass", headlines.CORRECTED: "pass", headlines.PARTLY: "mend",
           headlines.CONTRADICTED: "fail", "holds": "pass", "violated": "fail"}
"""How a verdict is coloured, besides its word; others are grey."""
LONG = 400
"""Letters of a reason that a picture's text can do without."""
PER_POINT = 96.0 / 72.0
"""Pixels of a page for a point of an SVG: pictures are shown at the size that they are drawn for."""
Context = dict[str, Any]


def size_of(path: Path) -> tuple[int, int]:
    """Width and height at which an SVG is shown, from its header."""
    with path.open(encoding="utf-8") as file:
        found = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', file.read(2000))
    if found is None:
        raise ValueError(f"{path.name} has no width and height in points; it must be one of `make figures`")
    return round(float(found[1]) * PER_POINT), round(float(found[2]) * PER_POINT)


def entry_of(folder: Path, record: Mapping[str, Any]) -> Context:
    """What pages say of a stored figure besides its record."""
    id, figure = record["id"], figures()[record["id"]]
    home = figure.source
    ids, algorithms = used(home)
    theorems = tuple(dict.fromkeys((*ids, *named(record))))
    errata = (*about_figures(figure.reproduces), *(
        one for id in theorems for one in (*theory.errata(theorem=id), *theory.remarks(theorem=id))))
    verdicts = [item["verdict"] for kind in ("claims", "findings") for item in record[kind]]
    svg = folder / f"{id}.svg"
    source = f"{home.replace('.', '/')}.py" if home else ""
    return {**record, "group": headlines.paper_of(id), "source": source, "up": _up(folder),
            "theorems": theorems, "algorithms": algorithms,
            "wants": figure.data if "--data" not in record["command"] else (),
            "word": headlines.word_of(record), "sentence": headlines.sentence(record),
            "verdicts": list(dict.fromkeys(verdicts)),
            "size": size_of(svg) if svg.exists() else None, "seen": seen(record),
            "errata": list({one.id: one for one in errata}.values())}


def _up(folder: Path) -> str:
    """The way from a folder to the checkout that has the sources; "" for a folder elsewhere."""
    return os.path.relpath(ROOT, folder) if folder.resolve().is_relative_to(ROOT) else ""


def seen(record: Mapping[str, Any]) -> str:
    """A picture in words: what it shows, and two short reasons with numbers, of what is decided."""
    short = [item["why"] for kind in ("claims", "findings") for item in record[kind]
             if item["verdict"] not in (NOT_TESTABLE, OPEN) and len(item["why"]) <= LONG]
    return " ".join([record["shows"], *short[:2]])


@cache
def _papers() -> list[tuple[str, str, str]]:
    """The papers' names here and in the catalogue, their references and keys."""
    names: dict[str, dict[str, None]] = {}
    for entry in theory.theorems():
        names.setdefault(entry.key, {})[entry.paper] = None
    return [(", ".join(called), theory.cite(key), key) for key, called in names.items() if key]


@cache
def environment() -> jinja2.Environment:
    """Templates, which refuse names that they are not given."""
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined,
                              keep_trailing_newline=True)
    made.filters["json"] = json.dumps
    made.globals |= {"classes": CLASSES}
    return made


def _table(path: Path) -> pd.DataFrame | None:
    return pd.read_csv(path, dtype=str, keep_default_na=False) if path.exists() else None


def worst_cases(folder: Path) -> Sequence[Mapping[str, Any]]:
    """The stored worst cases, as far as a reader wants them."""
    path = folder / "worst_cases.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [{"theorem": one["aim"], "variant": one["variant"], "objective": one["objective"],
             "value": float.fromhex(one["value"]), "clients": one["problem_class"]["n_clients"],
             "dimensions": one["problem_class"]["dim"]} for one in stored.values()]


def pages(folder: Path, scale: str) -> dict[str, str]:
    """File names of the pages, and their text."""
    stored = (store.load_record(folder, name) for name in figures())
    entries = [entry_of(folder, record) for record in stored if record is not None]
    headings = dict.fromkeys((*headlines.PAPERS.values(), headlines.OTHERS))
    groups = {name: [one for one in entries if one["group"] == name] for name in headings}
    entries = [one for some in groups.values() for one in some]
    board = _table(folder / "scoreboard.csv")
    shared: Context = {
        "scale": scale, "entries": entries, "groups": {name: some for name, some in groups.items() if some},
        "words": {**CLAIM_WORDS, **FINDING_WORDS}, "kinds": headlines.WORDS, "papers": _papers(),
        "algorithms": tuple(ALGORITHMS.values()), "board": board, "columns": COLUMNS,
        "claims": total(item for one in entries for item in one["claims"]),
        "findings": total(item for one in entries for item in one["findings"]),
        "unjudged": headlines.n_unjudged(entries), "missing": NOT_REPRODUCED,
        "errata": theory.errata(), "remarks": theory.remarks(), "worst": worst_cases(folder)}
    made = {f"{name}.html": environment().get_template(f"{name}.html.j2").render(shared, page=name)
            for name in ("index", "scoreboard", "errata", "worst_cases", "missing")}
    one_figure = environment().get_template("figure.html.j2")
    for one in entries:
        made[f"{one['id']}.html"] = one_figure.render(shared, page=one["id"], r=one)
    beside = {name: (HERE / name).read_text(encoding="utf-8") for name in ("gallery.css", "gallery.js")}
    return made | explorables.pages() | beside | {"order.js": order(entries)}


def order(entries: Sequence[Context]) -> str:
    """The figures in order, for the links to neighbours: so that no page has to name another figure."""
    rows = [json.dumps([one["id"], one["paper"]]) for one in entries]
    return "\n".join(['"use strict";', "const FIGURES = [", *(f"{row}," for row in rows), "];", ""])


ALGORITHMS = {"FALD": "FA-LD", "FAHMC": "FA-HMC", "DESGLD": "DE-SGLD", "DESGHMC": "DE-SGHMC",
              "StaleSGLD": "Stale SGLD", "StaleSGHMC": "Stale SGHMC"}
"""Names of `fedsim`'s classes for readers."""


NUMBERED = re.compile(r"(?:theorem|lemma|proposition|corollary)s? (?:[A-Z]\.)?\d+(?:\.\d+)*", re.IGNORECASE)
"""A theorem's number in a sentence."""


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _sources(module: ModuleType, seen: dict[Path, None]) -> dict[Path, None]:
    """The module's file and those of its own paper that it imports, directly or not."""
    path = Path(module.__file__ or "")
    if path in seen:
        return seen
    seen[path] = None
    package = module.__name__.rpartition(".")[0]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            for name in names:
                if (path.parent / f"{name}.py").exists():
                    _sources(importlib.import_module(f"{package}.{name}"), seen)
    return seen


def _names(module: ModuleType) -> Iterator[str]:
    """Attributes in dots, as theory.fa_ld.w2_bound, and texts."""
    for path in _sources(module, {}):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute):
                yield ast.unparse(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@cache
def used(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of theorems and names of algorithms in the module of this name, and in what it shares."""
    if not name:
        return (), ()
    names = set(_names(sys.modules[name]))
    ids = tuple(entry.id for entry in theory.theorems() if names & {entry.id, f"theory.{entry.id}"})
    return ids, tuple(word for cls, word in ALGORITHMS.items() if names & {f"fs.{cls}", cls})


def named(record: Mapping[str, Any]) -> list[str]:
    """Ids of theorems whose number the words of a stored figure have; those of its own paper."""
    said = [record["paper"], record["shows"], *(text for kind in ("claims", "findings", "unjudged")
                                                for item in record[kind] for text in item.values())]
    own, numbers = headlines.paper_of(record["id"]), NUMBERED.findall("\n".join(said))
    meant = {label for number in numbers for label in labels(number)}
    return [entry.id for entry in theory.theorems() if entry.paper in own and meant & labels(entry.number)]


def about_figures(numbers: Iterable[str]) -> list[theory.Erratum]:
    """Errata and remarks on these figures, as "FA-LD 1(a)"."""
    wanted = [number.rsplit(" ", 1) for number in numbers]
    return [one for one in (*theory.errata(), *theory.remarks()) if any(
        one.paper.startswith(paper) and re.search(rf"figures?\b[^;.]*\b{re.escape(number)}(?![(\w])",
                                                  one.where.casefold()) for paper, number in wanted)]
