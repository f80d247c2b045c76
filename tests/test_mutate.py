"""The list of faults is not stale, and its runner tells what is caught from what is not."""

import ast
import sys
from typing import NamedTuple

import pytest

from tools.mutate import ROOT, Fault, __main__ as runner, faults, sampled
from tools.mutate.__main__ import UNKNOWN

FAULTS = faults()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_the_list_is_not_stale(fault, tmp_path):
    path = tmp_path / fault.file
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / fault.file).read_text(encoding="utf-8"), encoding="utf-8")
    fault.apply(tmp_path)
    changed = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.dump(changed) != ast.dump(ast.parse((ROOT / fault.file).read_text(encoding="utf-8")))
    with pytest.raises(ValueError, match="must stand exactly once"):
        Fault(fault.name, fault.file, "no line says this", "", fault.tests).apply(tmp_path)
    files = [part for part in fault.tests if part.endswith(".py")]
    assert files and all((ROOT / part).exists() for part in files)


def test_names_are_unique():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


PLANTED = """
import time
from counted import ONE
def test_seen():
    assert ONE == 1
def test_unseen():
    assert ONE
def test_endless():
    time.sleep(0 if ONE == 1 else 600)
"""


@pytest.mark.parametrize(("tests", "new", "verdict"), [
    ("-k seen", "ONE = 2", "caught"), ("-k unseen", "ONE = 2", "SURVIVED"), ("-k seen", "ONE = =", UNKNOWN),
    ("-k nothing_of_this_name", "ONE = 2", UNKNOWN), ("-k endless", "ONE = 3", UNKNOWN)])
def test_verdicts(tests, new, verdict, tmp_path, monkeypatch):
    (tmp_path / "counted.py").write_text("ONE = 1\n")
    (tmp_path / "test_counted.py").write_text(PLANTED)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    fault = Fault("one", "counted.py", "ONE = 1", new, ("test_counted.py", *tests.split()))
    assert runner.judged(fault, 3.0 if "endless" in tests else 60.0)[0] == verdict
    assert runner.sound([fault], 60.0) == ("nothing" not in tests)
    assert (tmp_path / "counted.py").read_text() == "ONE = 1\n"


@pytest.mark.parametrize(("verdicts", "code"), [
    (["caught", "caught"], 0), (["caught", UNKNOWN], 2), (["SURVIVED", UNKNOWN], 1), (["SURVIVED"] * 2, 1)])
def test_the_exit_code_says_what_came_out(verdicts, code, monkeypatch, capsys):
    monkeypatch.setattr(runner, "faults", lambda: FAULTS[:2])
    monkeypatch.setattr(runner, "bounded", lambda: None)  # else it would bound the tests that follow
    monkeypatch.setattr(runner, "sound", lambda chosen, timeout: True)
    monkeypatch.setattr(runner, "judged", lambda fault, timeout: (verdicts[FAULTS.index(fault)], "words"))
    monkeypatch.setattr(sys, "argv", ["mutate"])
    assert runner.main() == code
    shown = capsys.readouterr().out
    assert all(verdict in shown for verdict in verdicts)


def test_the_rooms_of_random_changes_are_there():
    for room in sampled.ROOMS["room"].values():
        assert all(list((ROOT / module).rglob("*.py")) for module in room["modules"])
        assert all((ROOT / "tests" / test).exists() for test in room["tests"])
    papers = {path.name for path in (ROOT / "theory").iterdir() if (path / "__init__.py").exists()}
    assert papers == set(sampled.ROOMS["room"])
    for one in sampled.ROOMS.get("equivalent", []):
        lines = [line.strip() for line in (ROOT / one["file"]).read_text(encoding="utf-8").splitlines()]
        assert one["was"] in lines and one["became"] != one["was"] and one["why"]


def test_annotations_are_not_changed(tmp_path):
    (tmp_path / "one.py").write_text("def f(x: int | None, y=1 | 2) -> float | None:\n    z: int = 1 | 2\n")
    begin, end = 9, 19
    assert sorted(sampled.unread(tmp_path / "one.py")) == [
        ((1, begin), (1, end)), ((1, 33), (1, 45)), ((2, 7), (2, 10))]


class _Change(NamedTuple):
    start_pos: tuple[int, int]
    operator_name: str


@pytest.mark.parametrize(("start", "operator", "wanted"), [
    ((1, 10), "core/ReplaceComparisonOperator_Eq_LtE", False), ((1, 10), "core/NumberReplacer", True),
    ((1, 10), "core/ReplaceComparisonOperator_Eq_NotEq", True),
    ((2, 10), "core/ReplaceComparisonOperator_Is_Eq", False),
    ((2, 10), "core/ReplaceComparisonOperator_Is_IsNot", True),
    ((3, 10), "core/ReplaceComparisonOperator_Eq_LtE", True)])
def test_names_are_not_ordered(start, operator, wanted, tmp_path):
    lines = ("if variant == 'one': pass", "if variant is None: pass", "if variant == 1: pass")
    (tmp_path / "one.py").write_text("\n".join(lines))
    spans = list(sampled.names(tmp_path / "one.py"))
    assert sampled.sensible(_Change(start, operator), ([], spans)) == wanted
    assert not sampled.sensible(_Change(start, operator), ([(start, (9, 0))], spans))


def test_a_change_is_shown_by_its_lines(monkeypatch):
    shown = "--- a/one.py\n+++ b/one.py\n@@ -1,2 +1,2 @@\n a\n-    b = 1\n+    b = 2\n"
    assert sampled.lines_of(shown) == ("b = 1", "b = 2")
    monkeypatch.setitem(sampled.ROOMS, "equivalent", [{"file": "one.py", "was": "b = 1", "became": "b = 2"}])
    assert sampled.known("one.py", "b = 1", "b = 2")
    assert not sampled.known("two.py", "b = 1", "b = 2") and not sampled.known("one.py", "b = 1", "b = 3")
