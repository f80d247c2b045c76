"""What a figure's source uses: theorems and algorithms, read from the names in its text."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import theory

ALGORITHMS = {"FALD": "FA-LD", "FAHMC": "FA-HMC", "DESGLD": "DE-SGLD", "DESGHMC": "DE-SGHMC",
              "StaleSGLD": "Stale SGLD", "StaleSGHMC": "Stale SGHMC"}
"""Names of `fedsim`'s classes for readers."""


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
