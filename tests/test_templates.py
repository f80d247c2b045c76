"""The templates of docs/templates, instantiated in a copy of the project, do what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from distribution import copied

LINES = {
    "fedsim/__init__.py": (("from .algorithms.fa_ld import FALD\n",
                            "from .algorithms.fa_ld import FALD\nfrom .algorithms.fa_made import FAMade\n"),
                           (' "FALD", ', ' "FALD", "FAMade", "MadeProblem", '),
                           ("from .problems.quadratic import",
                            "from .problems.made_problem import MadeProblem\n"
                            "from .problems.quadratic import")),
    "tests/algorithms.py": (("import naive_fa_hmc\n", "import naive_fa_hmc\nimport naive_fa_made\n"),
                            ("from mutants import Mutants\n",
                             "from cases.fa_made import FA_MADE, LAWS\nfrom mutants import Mutants\n"),
                            ("ROWS = {\n",
                             "ROWS = {\n    fs.FAMade: Row(naive_fa_made.fa_made, LAWS, 8, 40_000, 11, "
                             "(1, 2, 4), FA_MADE),\n")),
}
"""What a contributor adds by hand, as docs/templates/new.py says."""


def run(folder, *words):
    """Python in the folder; what it printed."""
    made = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(folder)})
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]
    return made.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project with a new algorithm, a new bound and a new figure."""
    folder = copied(tmp_path_factory.mktemp("project"))
    for words in (("algorithm", "fa_made", "FAMade"), ("bound", "made_paper"),
                  ("problem", "made_problem", "MadeProblem"), ("figure", "fa_ld", "made_figure")):
        assert "written" in run(folder, "docs/templates/new.py", *words)
    for name, pairs in LINES.items():
        text = (folder / name).read_text(encoding="utf-8")
        for old, new in pairs:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_what_is_new_passes_the_inherited_tests(project):
    """In one process, of which each takes seconds to begin."""
    files = [f"tests/test_{name}.py"
             for name in ("naive_parity", "replicas_against_law", "mutants", "examples")]
    said = run(project, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *files, "-k",
               "FAMade or fa_made or MadeProblem or made_problem or made_paper")
    passed = [line for line in said.splitlines() if line.startswith("PASSED")]
    assert sum("FAMade" in line or "fa_made" in line for line in passed) >= 8, said
    assert any("MadeProblem" in line or "made_problem" in line for line in passed), said
    assert any("made_paper" in line for line in passed), said


def test_the_new_problem_gives_the_bits_of_a_gradient_of_ones_own(project):
    said = run(project, "-c", """
import numpy as np
import fedsim as fs

def gradient(client, x, out, centres):
    for i in range(len(x)):
        out[i] = fs.math.tanh(x[i] - centres[client, i])

centres = np.array([[-1.0, 0.5], [1.0, 2.0]])
both = fs.MadeProblem(centres), fs.Custom(gradient, 2, 2, data=centres, curvature=1.0)
drawn = fs.FALD(0.1, 2, participation=fs.Participation(1, True))
for algorithm in drawn, fs.StaleSGLD(0.1, 2):  # a client in every lane, and clients one by one
    one, other = (fs.simulate(problem, algorithm, 5, 100, seed=1) for problem in both)
    print(one.mean.tobytes() == other.mean.tobytes() and one.cov.tobytes() == other.cov.tobytes())
""")
    assert said.split() == ["True"] * 2


def test_the_new_bound_is_in_the_catalogue_and_holds(project):
    said = run(project, "-c", """
import fedsim as fs, theory
from reproduce.scoreboard import rows
entry, = [entry for entry in theory.theorems() if entry.id == "made_paper.w2_bound"]
print(rows.first_of(rows.verdicts(entry, "printed", rows.draws(entry, 5))))
print(theory.examine(entry.id, fs.Quadratic([[1.0, 2.0]], [[3.0, 0.0]]), fs.FALD(0.1), n_rounds=50))
""")
    assert "New Theorem 1 holds at 51 rounds" in said


def test_the_new_figure_is_made_and_listed(project):
    said = run(project, "-m", "reproduce", "fa_ld_made_figure", "--scale", "tiny", "--out", "made")
    assert "1 HOLDS" in said and (project / "made" / "fa_ld_made_figure.png").exists()
    assert "fa_ld_made_figure" in run(project, "-m", "reproduce", "--list")


def test_tests_are_collected_while_no_figure_is_made(project):
    """What reads stored figures says within a test that one is missing, also the new one."""
    readers = re.compile(r"figures\(\)|made\(\)|store\.FOLDER|opposites")
    files = [f"tests/{path.name}" for path in sorted((project / "tests").glob("test_*.py"))
             if readers.search(path.read_text(encoding="utf-8"))]
    stored, away = project / "figures", project / "figures_elsewhere"
    stored.rename(away)
    stored.mkdir()
    try:
        said = run(project, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "--collect-only", *files)
    finally:
        stored.rmdir()
        away.rename(stored)
    assert len(files) >= 15 and "test_figures.py::test_every_figure_is_made" in said


def test_new_refuses_what_exists_and_what_is_no_name(project):
    for words in (), ("bound",), ("bound", "no-name"), ("bound", "made_paper"), ("figure", "nowhere", "fig1"):
        said = subprocess.run([sys.executable, "docs/templates/new.py", *words], cwd=project,
                              capture_output=True, text=True, check=False)
        assert said.returncode == 2
        assert "python docs/templates/new.py" in said.stdout or "exists" in said.stdout
