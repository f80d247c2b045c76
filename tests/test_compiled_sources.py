"""What can change compiled code changes the key of its cache, and nothing else does."""

from __future__ import annotations

import ast
import dis
import importlib
import inspect
import pkgutil
import shutil
import sys
import types
from pathlib import Path

import pytest
from layout import imports

import fedsim as fs
from fedsim.fingerprints import hash_of, source_hash
from fedsim.settings.lazy_import import Lazy
from fedsim.vector import cache
from fedsim.vector.compile import STUBS

ROOT = Path(fs.__file__).parent
for _module in pkgutil.walk_packages([str(ROOT)], "fedsim."):
    importlib.import_module(_module.name)
MODULES = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "fedsim"}
SOURCES = {Path(module.__file__): name for name, module in MODULES.items()}


def hashed(module):
    """Is the file of this module part of the key?"""
    path = Path(MODULES[module].__file__)
    return any(path == ROOT / part or ROOT / part in path.parents for part in cache.COMPILED)


def compiled_functions():
    """Every function that numba may see first: kernels, and bodies that are chosen by a class."""
    kernels = [value.__wrapped__ for module in MODULES.values() for value in vars(module).values()
               if isinstance(value, Lazy) and "__wrapped__" in vars(value)]
    bodies = [body for stub in STUBS for body in stub.bodies.values()]
    return [one for one in (*kernels, *bodies) if one.__module__ in MODULES]  # other tests may add bodies


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def named():
    """Modules of fedsim in which something is defined that compiled functions name, and what that is."""
    where, todo, done = {}, compiled_functions(), set()
    while todo:
        function = todo.pop()
        if function in done:
            continue
        done.add(function)
        where.setdefault(function.__module__, set()).add(function.__name__)
        tree = ast.parse(inspect.getsource(sys.modules[function.__module__]))
        package = hasattr(sys.modules[function.__module__], "__path__")
        imported = {name: module for _, module, name in imports(tree, function.__module__, package) if name}
        for name in {step.argval for code in codes(function.__code__) for step in dis.get_instructions(code)
                     if step.opname == "LOAD_GLOBAL"}:
            value = function.__globals__.get(name)
            home = imported.get(name, "")
            if isinstance(value, types.ModuleType):
                home = value.__name__
            elif isinstance(value, Lazy) and "__wrapped__" in vars(value):
                todo.append(value.__wrapped__)
            elif isinstance(value, types.FunctionType) and value.__module__ in MODULES:
                todo.append(value)
            if value is not None and home in MODULES:
                where.setdefault(home, set()).add(name)
    return where


def test_what_compiled_code_names_is_in_the_key():
    where = named()
    assert {name for one in where.values() for name in one} >= {
        "run_rounds", "langevin", "box_muller", "TILE", "MINIBATCH", "_two_rows"}  # or the search is blind
    outside = {module for module in where if not hashed(module)}
    assert outside <= {"fedsim.settings.lazy_import"}  # which says when a function is made, not what it is


def test_the_classes_that_choose_bodies_are_in_the_key():
    classes = [cls for stub in STUBS for cls in stub.bodies if cls is not None]
    classes += [value for module in MODULES.values() for value in vars(module).values()
                if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")]
    assert len(classes) > 30
    outside = {f"{cls.__module__}.{cls.__name__}" for cls in classes
               if cls.__module__ in MODULES and not hashed(cls.__module__)}
    assert outside == {f"fedsim.{name}" for name in (  # results and records: compiled code never has them
        "data.idx.ImageSet", "data.idx.Images", "data.libsvm.Labelled",
        "engine.divergence.Fault", "engine.divergence.Scales",
        "laws.estimators.Estimated", "laws.scores.ZScores", "laws.scores._Scores",
        "provenance.Identity", "samplers.blocks.Table", "samplers.clients.Clients", "samplers.clients.Round",
        "samplers.identity.Packed", "samplers.identity.PackedModule",
        "samplers.loops.Body", "samplers.pieces.Piece", "samplers.stages.Loop", "samplers.stages.Part",
        "samplers.stages.Stage", "samplers.nodes.Chance", "samplers.nodes.Each", "samplers.nodes.Node",
        "samplers.words.Aim",
        "settings.alignment._Part", "settings.participation.Shares",
        "settings.server.History")}


@pytest.mark.parametrize(("file", "changes"), [
    ("laws/law.py", False), ("laws/estimators.py", False), ("settings/network.py", False),
    ("engine/running.py", False), ("random/philox.py", True), ("vector/lanes.py", True),
    ("engine/rounds.py", True), ("settings/schedules.py", True)])
def test_a_comment_changes_the_key_where_code_is_compiled(file, changes, tmp_path):
    copy = Path(shutil.copytree(ROOT, tmp_path / "fedsim", ignore=shutil.ignore_patterns("__pycache__")))
    compiled = [copy / part for part in cache.COMPILED]
    keys = [(hash_of(*compiled), hash_of(copy))]
    with open(copy / file, "a", encoding="utf-8") as edited:
        edited.write("# a comment\n")
    keys.append((hash_of(*compiled), hash_of(copy)))
    assert keys[0] == (cache.code_hash(), source_hash())
    assert (keys[0][0] != keys[1][0]) == changes
    assert keys[0][1] != keys[1][1]  # of checkpoints: always
