"""What a figure uses: theorems and algorithms, read from names in its source; errata, from its words."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import theory
from theory.declare.registry import labels

from .. import headlines

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
