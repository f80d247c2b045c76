"""Every figure, found in the folders of the papers."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from fedsim.hints import choice

from .figure import Figure


def natural_order(name: str) -> list[Any]:
    """Sort key that puts fig2 before fig10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


@cache
def figures() -> dict[str, Figure]:
    """Every figure of this package by id, in natural order."""
    root = importlib.import_module(__package__ or "reproduce")
    papers = (importlib.import_module(f"{root.__name__}.{info.name}")
              for info in pkgutil.iter_modules(root.__path__) if info.ispkg)
    known: dict[str, Figure] = {}
    for paper in papers:
        begins = getattr(paper, "ID", paper.__name__.split(".")[-1])
        for info in pkgutil.iter_modules(paper.__path__):
            module = importlib.import_module(f"{paper.__name__}.{info.name}")
            own = {info.name: module} if hasattr(module, "TITLE") else getattr(module, "FIGURES", {})
            known |= {f"{begins}_{name}": Figure(f"{begins}_{name}", one, module.__name__)
                      for name, one in own.items()}
    return {name: known[name] for name in sorted(known, key=natural_order)}


def chosen(ids: Iterable[str]) -> list[Figure]:
    """The named figures, or all when none is named; an unknown id lists the known ones."""
    known = figures()
    names = list(dict.fromkeys(ids)) or list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"figure={name!r} must be {choice(name, known, math.inf)}")
    return [known[name] for name in names]
