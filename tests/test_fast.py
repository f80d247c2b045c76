"""`make test-fast` runs something of every room."""

import ast
import subprocess
import sys

import conftest
import fast
import pytest
from layout import ROOT, sources


@pytest.mark.parametrize("package", ["fedsim", "theory"])
def test_every_room_has_a_fast_test(package):
    folder = ROOT / package
    rooms = {path.relative_to(folder).parts[0].removesuffix(".py") for path in sources(package)}
    assert set(fast.FAST[package]) == rooms - {"__init__"}


def test_names_are_those_of_tests():
    for start in fast.starts():
        file, _, test = start.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not test or test in names, start
    assert all((ROOT / "tests" / f"test_{name}.py").exists() for name in conftest.LONGEST)


def test_only_these_are_run():
    words = [sys.executable, "-m", "pytest", "--fast", "-n", "0", "--collect-only", "-q"]
    shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ids = [line for line in shown.splitlines() if "::" in line]
    assert len(ids) > 500 and all(fast.selected(name) for name in ids)
    assert all(any(name.startswith(start) for name in ids) for start in fast.starts())
