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
from user_calls import CALLS, SETUP, most_used

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


UNSEEN = {
    ("fs.warm_up", "unknown"): "its options are `simulate`'s",
    ("theory.check", 1): "whatever a quantity is read from: laws, runs, arrays, problems",
    ("theory.sweep", "local_steps="): "any parameter of any algorithm",
    ("theory.sweep", "unknown"): "any parameter of any algorithm",
    ("fs.sampler", "result"): "a class that is made of the function",
    ("theory.sweep", "result"): "pandas tells checkers nothing",
    ("theory.catalogue", "result"): "pandas tells checkers nothing",
    ("theory.fa_ld.w2_bound", "unknown"): "theorems take further numbers, each its own",
    ("theory.fa_ld.w2_recursion", "unknown"): "theorems take further numbers, each its own",
    ("theory.tuning.informative_steps", "unknown"): "theorems take further numbers, each its own",
}
"""What a checker cannot tell; the program does, when it runs."""


def variants(call):
    """The call with a wrong value for one argument each, with an unknown argument, and for a wrong result."""
    def made(arguments):
        return call.partition("(")[0] + f"({', '.join(arguments)})"

    tree = ast.parse(call, mode="eval").body
    given = [*("" for _ in tree.args), *(f"{one.arg}=" for one in tree.keywords)]
    right = [name + ast.unparse(one) for name, one in
             zip(given, [*tree.args, *(one.value for one in tree.keywords)], strict=True)]
    for place, name in enumerate(given):
        yield name or place, made([*right[:place], f"{name}wrong", *right[place + 1:]])
    yield "unknown", made([*right, "step_sise=1"])
    yield "result", f"(lambda: {call})().no_such_part"


def test_every_wrong_argument_of_the_names_used_most_is_found(check):
    used, called = most_used(40), [call.partition("(")[0] for call in CALLS]
    assert set(used) <= set(called)
    lines = [(call, place, text) for call in CALLS for place, text in variants(call)]
    good = SETUP + "".join(f"{call}\n" for call in CALLS)
    assert check(good) == []
    found = check(good + "".join(f"{text}\n" for _, _, text in lines))
    numbers = {int(re.search(r"\.py:(\d+):", line)[1]) for line in found}
    first = good.count("\n") + 1
    missed = {(call.partition("(")[0], place) for number, (call, place, _) in enumerate(lines, first)
              if number not in numbers}
    assert missed == set(UNSEEN)


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
