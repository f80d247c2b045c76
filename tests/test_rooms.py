"""Rooms: who needs whom, how long a function is, and what a name may hide."""

from __future__ import annotations

import graphlib
import re

import pytest
from layout import PACKAGES, ROOT, imports_of, name_of, rooms, shown, sources, top, violations

FLOORS = ("old_names", "pickles", "hints", "fingerprints", "equality", "settings", "vector", "random",
          "interfaces", "provenance", "laws", "data", "problems", "stability", "samplers", "algorithms",
          "engine", "explaining")
THEORY = ("float_range", "exact", "facts", "declare", "judge", "certificates", "all_clients", "recursions",
          "tuning", "theorem_parts", "rates", "testing", "fa_ld", "fa_hmc", "stale", "decentralized",
          "de_sgld", "de_sghmc", "privacy", "worst_case")
"""The rooms of fedsim and of theory from the ground up: each imports only those before it."""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_room_needs_itself_through_others(package):
    graphlib.TopologicalSorter(rooms(package)).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize(("package", "floors"), [("fedsim", FLOORS), ("theory", THEORY)])
def test_every_room_imports_only_those_below_it(package, floors):
    graph = rooms(package)
    assert set(graph) | set().union(*graph.values()) <= set(floors)
    assert not {room: above for room, needed in graph.items()
                if (above := needed & set(floors[floors.index(room):]))}


def test_a_circle_is_seen():
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()


def test_figures_of_a_paper_need_no_other_paper():
    papers = {path.name for path in (ROOT / "reproduce").iterdir() if (path / "__init__.py").exists()}
    papers -= {"explorables", "scoreboard", "prediction"}
    assert len(papers) >= 5
    graph = rooms("reproduce")
    assert not {paper: both for paper in papers if (both := graph[paper] & papers)}


def test_private_names_stay_in_their_module():
    assert not violations(lambda m, n: top(m) in PACKAGES and bool(n) and re.match(r"_[^_]", n), *PACKAGES)


def test_no_function_hides_a_module():
    """`package.name` is the module of this name, or there is none."""
    hidden = []
    for path in sources(*PACKAGES):
        if path.name == "__init__.py":
            beside = {other.stem for other in path.parent.iterdir() if other.suffix == ".py"
                      or (other / "__init__.py").exists()}
            hidden += [f"{shown(path)}:{line} {name}" for line, module, name in imports_of(path)
                       if name in beside and module != name_of(path)]
    assert not hidden
