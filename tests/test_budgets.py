"""Every file of tests has a budget, and a run in which one costs far more than that fails."""

from __future__ import annotations

import json
import time
from pathlib import Path

import budgets
import numba
import pytest
from budgets import COMPILING, FACTOR, LEEWAY, beyond, budgeted, told
from test_tests import ONLY_SLOW

HERE = Path(__file__).parent


def test_every_file_has_a_budget_and_no_other():
    files = {f"tests/{path.name}" for path in HERE.glob("test_*.py")} - ONLY_SLOW
    assert not list(HERE.glob("*/**/test_*.py"))
    assert budgets.load().keys() == files | {COMPILING}, "tests/budgets.py tells how it is measured"
    assert all(budget > 0.0 for budget in budgets.load().values())


def test_a_file_fails_beyond_five_times_its_budget_and_never_by_noise():
    table = {"tiny": 1.0, "dear": 100.0}
    just = {"tiny": 1.0 + LEEWAY, "dear": FACTOR * 100.0, "new": 1e6}
    assert beyond(just, table) == {}
    assert beyond({name: used + 0.1 for name, used in just.items()}, table) == {"tiny": 21.1, "dear": 500.1}


def test_the_table_names_the_dearest_what_is_above_its_budget_and_what_has_none():
    seconds = {f"dear {i}": 100.0 - i for i in range(budgets.SHOWN)} | {"above": 2.0, "new": 0.5}
    lines = told(seconds, dict.fromkeys(seconds.keys() - {"new"}, 99.0) | {"above": 1.5, "gone": 1e3})
    assert lines[0] == "seconds of the processor: 958 of 992 in the budgets"
    assert lines[1:] == [
        *(f"{100 - i:9.1f} {'of 99':>10}  dear {i}{', above' * (i < 1)}" for i in range(budgets.SHOWN)),
        "      2.0     of 1.5  above, above", "without a budget in tests/budgets.json: new"]


def test_a_new_table_keeps_what_was_not_measured(tmp_path):
    lines = [json.dumps([f"tests/test_{name}.py::test_it", *took]) for name, *took in (
        ("alarm", 1.5, 2.0, 0.5), ("alarm", 0.5, 0.0, 0.0), ("layout", 0.1, 0.0, 0.0))]
    old = {COMPILING: 40, "tests/test_gone.py": 3, "tests/test_tests.py": 7, "tests/test_layout.py": 9}
    assert budgeted(lines, old) == {COMPILING: 40, "tests/test_alarm.py": 4, "tests/test_layout.py": 1,
                                    "tests/test_tests.py": 7}
    assert budgeted(lines, {})[COMPILING] == 1


def test_this_run_is_measured(request):
    assert [one for one in request.config.pluginmanager.get_plugins() if isinstance(one, budgets.Meter)]


def test_compiling_is_told_apart():
    heard, began = budgets.Compiling(), time.process_time()
    heard.listen()
    assert heard.seconds == 0.0
    inner = numba.njit(lambda x: x + 1.0)
    numba.njit(lambda x: inner(x) * 2.0)(1.0)
    assert 0.0 < heard.seconds <= time.process_time() - began
    before = heard.seconds
    sum(range(10**6))
    assert heard.seconds == before


BURN = """
import subprocess, sys, time
import pytest

def burn(seconds):
    began = time.process_time()
    while time.process_time() - began < seconds:
        pass

"""
FILES = {
    "test_dear": "def test_it():\n    burn(0.4)\n",
    "test_child": "def test_it():\n    code = 'sum(range(25_000_000))'\n"
                  "    subprocess.run([sys.executable, '-c', code], check=True)\n",
    "test_fixture": "@pytest.fixture(scope='module')\ndef made():\n    yield\n    burn(0.4)\n\n"
                    "def test_it(made):\n    pass\n",
    "test_fine": "def test_it():\n    burn(0.1)\n",
    "test_slow": "@pytest.mark.slow\ndef test_it():\n    burn(0.4)\n",
    "test_new": "def test_it():\n    burn(0.4)\n",
}
CONFTEST = """
import budgets
from pathlib import Path

budgets.TABLE, budgets.LEEWAY = Path(__file__).with_name("own.json"), 0.1

def pytest_addoption(parser):
    parser.addoption("--seconds")

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: not counted")
    config.pluginmanager.register(budgets.Meter(config))
"""


@pytest.fixture(name="run")
def _run(pytester, monkeypatch):
    """Runs some of the files under budgets of 0.05 s, where one fails beyond 0.25 s."""
    pytester.makeconftest(CONFTEST)
    table = {f"{name}.py": 0.05 for name in FILES if name != "test_new"}
    (pytester.path / "own.json").write_text(json.dumps(table))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(names, *words):
        pytester.makepyfile(**{name: BURN + FILES[name] for name in names})
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *words)

    return run


def test_a_file_that_costs_too_much_fails_the_run_also_among_workers(run):
    result = run(FILES, "-p", "xdist.plugin", "-n", "2", "--dist", "loadfile", "--seconds", "took")
    result.assert_outcomes(passed=len(FILES))
    assert result.ret == 1
    failing = [line.split()[1] for line in result.outlines if line.startswith("ERROR: ")]
    assert sorted(failing) == ["test_child.py", "test_dear.py", "test_fixture.py"]
    result.stdout.fnmatch_lines(["without a budget in tests/budgets.json: test_new.py"])
    rows = [json.loads(line) for line in Path("took").read_text().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(f"{name}.py::test_it" for name in FILES
                                                    if name != "test_slow")


def test_files_within_their_budgets_pass_and_slow_tests_are_not_counted(run):
    result = run(["test_fine", "test_slow"])
    result.assert_outcomes(passed=2)
    told = result.stdout.str().partition("seconds of the processor")[2]
    assert result.ret == 0 and "test_fine.py" in told and "test_slow.py" not in told
