"""What CI runs: its stages and their times, the newest Python, and environments that are made in parts."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STAGES = ("environment", "lint", "the guide", "figures", "tests", "lowest versions", "waiting for")
NEWEST = runpy.run_path(str(ROOT / ".ci" / "newest.py"))


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("fails", "at"), [
    ("", 7), ("lint", 2), ("figures", 4), ("test", 5), ("lowest", 7), ("newest", 7),
    ("try-recipes", 7)])
def test_stages_are_timed_and_any_that_fails_fails_all(tmp_path, fails, at):
    """In a project whose targets do nothing."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    (tmp_path / "Makefile").write_text(
        "env lint docs test lowest newest try-recipes:\n\t@echo made $@; test $@ != \"$(FAILS)\"\n")
    program(tmp_path / ".venv" / "bin" / "python", 'echo "$@"; test "$FAILS" != figures')
    program(tmp_path / "bin" / "chromium", "")
    given = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "FAILS": fails, "MAKEFLAGS": ""}
    done = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, env=given, capture_output=True, text=True)
    assert (done.returncode == 0) == (fails == "")
    table = done.stdout.partition("== seconds of each stage\n")[2].splitlines()
    assert len(table) == at + 1 and table[-1].endswith(" s  in all")
    assert all(re.match(rf" *\d+ s  {name}", line) for name, line in zip(STAGES, table[:-1], strict=False))
    assert [line for line in table if line.endswith(", FAILED")] == ([table[at - 1]] if fails else [])
    if at == 7:  # all are tried, and what they said is shown
        assert {"made lowest", "made newest", "made try-recipes"} <= set(done.stdout.splitlines())


def test_the_newest_python_that_runs_is_found(tmp_path):
    saying = {"a/python3.13": "3 13 1", "b/python3.9": "3 9 2", "c/python3.15": "", "d/python3.13": "3 13 0",
              "e/python3.14-config": "3 14 0", "f/python3.16t": "3 16 0"}
    paths = [program(tmp_path / name, f"echo {said}" if said else "exit 127")
             for name, said in saying.items()]
    assert NEWEST["newest"](paths) == ((3, 13, 1), tmp_path / "a/python3.13")
    assert NEWEST["newest"]([tmp_path / "none" / "python3.20"]) is None


def recipe(folder, *goals):
    return subprocess.run(["make", "-n", *goals], cwd=folder, capture_output=True, text=True, check=True,
                          env=os.environ | {"MAKEFLAGS": ""}).stdout


def test_figures_need_a_part_of_the_environment_and_the_rest_is_added(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    def extras(*goals):
        return re.findall(r"-e '\.\[(.*)\]'", recipe(tmp_path, *goals))

    whole = "test,figures,cluster,demos,docs"
    assert extras("figures") == ["figures"] and extras("env") == extras("test") == ["figures", whole]
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".installed-figures").touch()
    assert extras("figures") == [] and extras("docs") == [whole]
    assert "venv --clear" not in recipe(tmp_path, "env")
    (tmp_path / ".venv" / ".installed").touch()
    assert extras("figures", "test", "lint", "docs") == []


@pytest.mark.parametrize(("has", "breaks", "code", "said"), [
    ("", "", 0, "one other cannot be installed on this machine: recipes are not run"),
    ("pip", "", 0, "== other"),
    ("pip", "one", 2, "== one")])
def test_recipes_fail_where_one_breaks_and_not_where_none_can_be_installed(tmp_path, has, breaks, code, said):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "docs" / "recipes").mkdir(parents=True)
    (tmp_path / "docs" / "recipes" / "constraints.txt").touch()
    cases = f'*install*) test "{has}";; *of_{breaks or "none"}.py) exit 1'
    inner = program(tmp_path / "inner", f'case "$*" in {cases};; esac')
    outer = program(tmp_path / "outer", f'mkdir -p .venv-recipes/bin; cp "{inner}" .venv-recipes/bin/python')
    given = ["--no-print-directory", "try-recipes", f"PYTHON={outer}", "RECIPES=one other"]
    done = subprocess.run(["make", *given], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | {"MAKEFLAGS": ""})
    assert done.returncode == code and done.stdout.splitlines()[-1] == said
