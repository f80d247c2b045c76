"""Types as a user's checker sees them: of the installed wheel, in strict mode."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
import sysconfig
import textwrap
import venv

import pytest
from distribution import ROOT, copied, outside, wheel

import fedsim as fs
import theory

BEHIND_DOORS = {"declare", "decentralized", "facts", "judge", "recursions"}
"""What users meet as `theory.de_sgld` and `theory.de_sghmc`, and what several papers share."""

EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]


@pytest.fixture(name="check", scope="module")
def _check(tmp_path_factory):
    """Run mypy on a script that is beside no source of ours; gives its messages."""
    folder = tmp_path_factory.mktemp("user")
    builder = venv.EnvBuilder(symlinks=True)
    builder.create(folder / "venv")
    python = builder.ensure_directories(folder / "venv").env_exe
    own = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    wheel(copied(folder / "copy"), folder).rename(f"{own}/wheel")
    # mypy takes for installed what this interpreter finds: the wheel, and the dependencies of the tests
    # (whose own .pth files, with an editable install of fedsim, are not read from there)
    with open(f"{own}/paths.pth", "w", encoding="utf-8") as paths:
        paths.write(f"{own}/wheel\n{sysconfig.get_path('purelib')}\n")

    def check(code: str) -> list[str]:
        (folder / "script.py").write_text(code, encoding="utf-8")
        found = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--python-executable={python}",
             f"--cache-dir={ROOT / '.mypy_cache' / 'installed'}", "--no-error-summary", "script.py"],
            cwd=folder, env=outside(), capture_output=True, text=True)
        assert not found.stderr and found.returncode in (0, 1), found.stderr
        return [line for line in found.stdout.splitlines() if ": error: " in line]

    return check


def test_the_example_passes(check):
    assert check(EXAMPLE) == []


MISTAKES = {
    "bad: str = run.w2()": "[assignment]",
    "fs.FALD(step_sise=0.02)": '"step_sise"',
    "fs.simulate(problem, algorithm, n_round=10, n_replicas=64, seed=1)": '"n_round"',
    "theory.exact_law(problem, algorithm, n_rounds='ten')": "[arg-type]",
    "theory.fa_ld.w2_bond(theory.constants(problem, algorithm), algorithm)": '"w2_bond"',
    "theory.fa_ld.w2_bound(theory.constants(problem, algorithm), algorithm, n_rounds='ten')": "[arg-type]",
    "theory.fa_dl": '"fa_dl"',
}


def test_mistakes_are_found(check):
    found = check(EXAMPLE + "\n".join(MISTAKES) + "\n")
    first = EXAMPLE.count("\n") + 1
    by_line = {number: "".join(line for line in found if f".py:{number}:" in line)
               for number in range(first, first + len(MISTAKES))}
    assert not [code for code, message in zip(MISTAKES, by_line.values(), strict=True)
                if MISTAKES[code] not in message], found


def test_editors_see_the_papers_that_are_found_at_run_time():
    """`theory` imports what lies beside it in a loop; for type checkers it names the papers."""
    tree = ast.parse((ROOT / "theory" / "__init__.py").read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.module
             for alias in node.names}
    folders = {module.name for module in pkgutil.iter_modules(theory.__path__) if module.ispkg} - BEHIND_DOORS
    with_theorems = {entry.id.split(".")[0] for entry in theory.theorems()}
    assert folders | with_theorems <= named == {name for name in named if hasattr(theory, name)}
    assert {"fa_ld", "stale"} <= folders


def test_no_tools_among_the_names():
    assert not {"Any", "TYPE_CHECKING", "importlib", "pkgutil", "typing"} & set(dir(theory))


@pytest.mark.parametrize("kind", [fs.Quadratic, fs.LinearRegression, fs.LogisticRegression,
                                  fs.SoftmaxRegression, fs.GaussianMean],
                         ids=lambda kind: kind.__name__)
def test_checkers_see_the_fields_as_arguments(kind):
    """Classes that keep arrays tell checkers that they take lists: the same names, order and defaults."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    declared = next(node for node in ast.walk(tree)
                    if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    names: dict[str, object] = {}
    exec(f"from __future__ import annotations\ndef told({ast.unparse(declared.args)}): ...", names)

    def shape(function):
        parts = inspect.signature(function).parameters.values()
        return [(part.name, part.kind, part.default) for part in parts]

    assert shape(names["told"]) == shape(kind.__init__)
