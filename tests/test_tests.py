"""The tests themselves: short files, and none that CI leaves out."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400
ONLY_SLOW = {"tests/test_interrupts.py", "tests/test_other_processor.py"}  # not in CI, in `make test-all`


def sources(root):
    return sorted(path for folder in ("tests", "tools") for path in (root / folder).rglob("*.py"))


def test_files_are_short():
    long = {path.name: count for path in sources(ROOT)
            if (count := len(path.read_text(encoding="utf-8").splitlines())) >= MAX_LINES}
    assert not long, f"at least {MAX_LINES} lines; split the file, and name its parts after what they test"


def defined(body, *, slow=False):
    """{name: whether it is marked slow} of the tests in these statements, in classes of any name too."""
    found = {}
    slow = slow or any("mark.slow" in ast.unparse(node) for node in body if isinstance(node, ast.Assign)
                       and ast.unparse(node.targets[0]) == "pytestmark")
    for node in body:
        marked = slow or any("mark.slow" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("test_"):
                found[node.name] = marked
            continue
        for part in ("body", "orelse", "finalbody"):
            found |= defined(getattr(node, part, []), slow=marked)
    return found


def arguments(root, target):
    """What a target of the Makefile gives to pytest, when nobody adds to it."""
    makefile = (root / "Makefile").read_text()
    assert re.search(r"^PYTEST_ARGS \?=$", makefile, re.MULTILINE)
    recipe, = re.findall(rf"^{target}:.*\n\t\$\(BIN\)/python -m pytest (.*) \$\(PYTEST_ARGS\)$", makefile,
                         re.MULTILINE)
    return shlex.split(recipe)


def collected(root, options):
    """{file: names of its tests} that pytest collects with these options; files as pytest shows them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    shown = subprocess.run([sys.executable, "-m", "pytest", *options, "-n", "0", "--collect-only", "-q"],
                           cwd=root, env=environment, capture_output=True, text=True).stdout
    found = {}
    for line in shown.splitlines():
        if seen := re.match(r"(tests/[^:]*\.py)::(\w+::)?(\w+)(\[|$)", line):  # not a doctest: it has dots
            found.setdefault(seen[1], set()).add(seen[3])
    return found


def left_out(root):
    """What CI does not run of the tests that are written down, in words."""
    script = (root / ".ci" / "run").read_text()
    if not re.search(r"^make test$", script, re.MULTILINE) or "PYTEST_" in script:
        return [".ci/run does not run `make test` as it is"]
    written = {path.relative_to(root).as_posix(): tests for path in sources(root)
               if (tests := defined(ast.parse(path.read_text(encoding="utf-8")).body))}
    slow = [file for file, tests in written.items() if any(tests.values())]
    run, run_by_all = collected(root, arguments(root, "test")), {}
    if slow:
        run_by_all = collected(root, [*arguments(root, "test-all"), *slow])
    nothing = [file for file in written if file not in run.keys() | ONLY_SLOW]
    words = []
    for file in sorted((written.keys() | run.keys()) - set(nothing)):
        tests, seen = written.get(file, {}), run.get(file, set())
        words += [f"{file}: {name} is not run by CI" for name, late in tests.items()
                  if not late and name not in seen]
        words += [f"{file}: {name} is defined elsewhere" for name in sorted(seen - tests.keys())]
        words += [f"{file}: {name} is slow and not run by `make test-all`" for name, late in tests.items()
                  if late and name not in run_by_all.get(file, set())]
    return words + [f"{file}: CI runs nothing of it" for file in nothing]


def test_every_test_is_run():
    assert all((ROOT / file).exists() for file in ONLY_SLOW)
    assert not left_out(ROOT)


TEST = "def test_one():\n    pass\n"
SLOW = "@pytest.mark.slow\ndef test_two():\n    pass\n"
PLANTED = {
    "test_fine.py": f"import pytest\n{TEST}{SLOW}",
    "checks.py": TEST,
    "build/test_hidden.py": TEST,
    "test_broken.py": f"import nothing_of_this_name\n{TEST}",
    "test_ignored.py": TEST,
    "test_late.py": f"import pytest\n{SLOW}",
    "test_late_too.py": f"import pytest\npytestmark = pytest.mark.slow\n{TEST}",
    "test_unnamed.py": f"{TEST}class Tests:\n    def test_three(self):\n        pass\n"
                       "class Checks:\n    def test_four(self):\n        pass\n",
    "test_twice.py": "from test_unnamed import test_one\ndef test_five():\n    pass\n",
}


def test_what_is_left_out_is_seen(tmp_path):
    for name in ("Makefile", "pyproject.toml", ".ci"):
        (shutil.copytree if name == ".ci" else shutil.copy)(ROOT / name, tmp_path / name)
    for name, text in PLANTED.items():
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "test_tool.py").write_text(TEST)
    for name, old, new in (("pyproject.toml", "addopts = [", 'addopts = ["--ignore=tests/test_ignored.py", '),
                           ("Makefile", '-m "slow or not slow"', '-m "not slow"')):
        text = (tmp_path / name).read_text()
        assert text.count(old) == 1
        (tmp_path / name).write_text(text.replace(old, new))
    nothing = ["build/test_hidden.py", "checks.py", "test_broken.py", "test_ignored.py", "test_late.py",
               "test_late_too.py"]
    assert left_out(tmp_path) == [
        "tests/test_fine.py: test_two is slow and not run by `make test-all`",
        "tests/test_twice.py: test_one is defined elsewhere",
        "tests/test_unnamed.py: test_four is not run by CI",
        *(f"tests/{name}: CI runs nothing of it" for name in nothing),
        "tools/test_tool.py: CI runs nothing of it"]
    script = tmp_path / ".ci" / "run"
    script.write_text(script.read_text().replace("\nmake test\n", '\nmake test PYTEST_ARGS="-k law"\n'))
    assert left_out(tmp_path) == [".ci/run does not run `make test` as it is"]
