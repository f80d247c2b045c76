"""The lecture notebooks: each runs, moves with its sliders, and says nothing that it has not computed."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import re
import subprocess
import sys
import time
from pathlib import Path

import charts
import marimo as mo
import numpy as np
import pytest
from scipy.linalg import hadamard

import fedsim as fs
import theory
from reproduce.discovery import figures

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(path for path in (ROOT / "docs" / "notebooks").glob("*.py") if path.stem != "charts")
NAMES = [path.stem for path in NOTEBOOKS]
IMPORTS = {"marimo", "numpy", "charts", "fedsim", "theory"}
MAX_LINES = 300
SECONDS = 20.0
FOLDED = r"answer_\d|board"
CONTROLS = (mo.ui.slider, mo.ui.dropdown)

notebooks = pytest.mark.parametrize("name", NAMES)


def text_of(name):
    return (ROOT / "docs" / "notebooks" / f"{name}.py").read_text(encoding="utf-8")


@functools.cache
def tree_of(name):
    return ast.parse(text_of(name))


@functools.cache
def first_run(name):
    """What a notebook defines, and how long its first run took."""
    began = time.perf_counter()
    return importlib.import_module(f"notebooks.{name}").app.run()[1], time.perf_counter() - began


def controls(name):
    return {key: one for key, one in first_run(name)[0].items() if isinstance(one, CONTROLS)}


def ends(control):
    """The first and the last position of a slider; all of a dropdown."""
    if isinstance(control, mo.ui.dropdown):
        return list(control.options)
    return [control.steps[0], control.steps[-1]] if control.steps else [control.start, control.stop]


def placed(control, value):
    """The same control in another position."""
    if isinstance(control, mo.ui.dropdown):
        return mo.ui.dropdown(control.options, value=value)
    if control.steps:
        return mo.ui.slider(steps=control.steps, value=value)
    return mo.ui.slider(control.start, control.stop, control.step, value=value)


@functools.cache
def moved(name, **values):
    """What a notebook defines with some controls in other positions."""
    at = {key: placed(one, values[key]) if key in values else one for key, one in controls(name).items()}
    return importlib.import_module(f"notebooks.{name}").app.run(defs=at)[1]


def drawn(defined):
    """Every number in its picture."""
    numbers = [row[key] for row in defined["picture"].rows for key in sorted(row)
               if isinstance(row[key], float)]
    assert len(numbers) > 100
    return np.array(numbers)


def same(these, those):
    return these.shape == those.shape and np.allclose(these, those, rtol=1e-9, atol=0.0)


def words_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.text)).strip()


@notebooks
def test_it_runs(name):
    defined, seconds = first_run(name)
    assert seconds < SECONDS
    assert isinstance(defined["picture"], charts.Chart)


@notebooks
def test_it_has_a_text_to_read_aloud_sliders_and_an_exercise(name):
    text = text_of(name)
    aloud, = re.findall(r"## To read aloud\n(.*?)\"\"\"", text, re.DOTALL)
    assert 200 <= len(aloud.split()) <= 340, "about two minutes"
    assert "$" not in aloud and "`" not in aloud, "not to be read aloud"
    assert any(isinstance(one, mo.ui.slider) for one in controls(name).values())
    assert "## Exercises" in text and answers(name)
    folded = [node for node in ast.walk(tree_of(name)) if isinstance(node, ast.Call)
              and ast.unparse(node.func) == "mo.accordion"]
    for answer in answers(name):
        assert any(answer in ast.unparse(node) for node in folded), f"{answer} is not folded"


def answers(name):
    return [key for key in first_run(name)[0] if re.fullmatch(r"answer_\d", key)]


@notebooks
def test_every_control_moves_the_picture(name):
    for key, control in controls(name).items():
        pictures = [drawn(moved(name, **{key: value})) for value in ends(control)]
        assert not any(same(a, b) for a, b in itertools.combinations(pictures, 2)), key
    assert same(drawn(moved(name)), drawn(first_run(name)[0])), "another run draws the same"


@notebooks
def test_it_runs_in_the_corners(name):
    """Eight of them, in which any two sliders meet at all of their ends: a lecturer may go there."""
    for row in hadamard(8):
        values = {key: ends(one)[int(sign > 0) * (len(ends(one)) - 1)]
                  for (key, one), sign in zip(controls(name).items(), row[1:], strict=False)}
        defined = moved(name, **values)
        said = words_of(defined["measured"])
        for key, one in defined.items():
            if re.fullmatch(FOLDED, key) and callable(one):  # computed when a reader opens it
                assert one().text, (values, key)
        assert not re.search(r"\b(nan|inf|None)\b", said), (values, said)


@notebooks
def test_what_is_measured_could_come_out_otherwise(name):
    """Not only the numbers of the sentence change with the settings, but its words."""
    said = {re.sub(r"[-\d.e+]+", "#", words_of(moved(name, **{key: value})["measured"]))
            for key, control in controls(name).items() for value in ends(control)}
    assert len(said) >= 2


def quoted(tree):
    """Every computed text of a notebook without what is computed in it, and every choice of words."""
    specs = {id(node.format_spec) for node in ast.walk(tree) if isinstance(node, ast.FormattedValue)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in specs:
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.IfExp):
            yield from (part.value for part in (node.body, node.orelse)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str))


def sentences(tree):
    """The calls that make what is measured and the answers, by name: assigned, or in a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and re.fullmatch(r"measured|answer_\d", ast.unparse(node.targets[0])):
            yield ast.unparse(node.targets[0]), node.value
        elif isinstance(node, ast.FunctionDef) and re.fullmatch(r"answer_\d", node.name):
            yield from ((node.name, call) for call in ast.walk(node)
                        if isinstance(call, ast.Call) and ast.unparse(call.func) == "mo.md")


def written_numbers(text):
    """Digits in a text: not those of names in code type, formulas, theorems, references and K = 1."""
    for known in (r"`[^`]*`", r"\$[^$]*\$", r"W2", r"K = 1\b", r"arXiv\S*", r"[A-Z]\.\d+",
                  r"([Ff]igures?|[Tt]heorems?|Propositions?|[Ss]ections?|Algorithms?|Remarks?|and) "
                  r"[A-Z]?\.?\d[\d.]*(\([a-z]\))?,?"):
        text = re.sub(known, "", text)
    return re.findall(r"\d[\d.]*", text)


@notebooks
def test_numbers_in_sentences_are_computed(name):
    assert not [(number, text) for text in quoted(tree_of(name)) for number in written_numbers(text)]
    told = list(sentences(tree_of(name)))
    assert {key for key, _ in told} == {"measured", *answers(name)}
    for _, call in told:
        assert isinstance(call, ast.Call) and isinstance(call.args[0], ast.JoinedStr)


def test_written_numbers_are_seen():
    assert written_numbers("W2 = {} by Theorem 4.7 (`--set 3`), section 6.1, K = 1") == []
    assert written_numbers("it is 3 times as far") == ["3"]
    assert written_numbers("to 0.1 of it") == ["0.1"]
    texts = quoted(ast.parse("f'{x:.3g} is 2, ' + ('3' if y else z)"))
    assert sorted(texts) == ["3", "{} is 2, "]


@notebooks
def test_it_uses_what_is_public(name):
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= IMPORTS
        elif isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in IMPORTS
            assert node.module.split(".")[0] != "fedsim" or node.module in ("fedsim.plot", "fedsim.samplers")
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), ast.unparse(node)
            home = {"fs": fs, "theory": theory}.get(ast.unparse(node.value))
            modules = {"fa_ld", "fa_hmc", "de_sgld", "de_sghmc", "stale"}
            assert home is None or node.attr in home.__all__ or node.attr in modules, ast.unparse(node)
    text = text_of(name)
    assert len(text.splitlines()) < MAX_LINES


@notebooks
def test_what_it_refers_to_exists(name):
    text = text_of(name)
    ids = re.findall(r"python -m reproduce (\w+)", text)
    assert ids and not set(ids) - set(figures())
    paths = re.findall(r"`((?:docs|figures|tests)/[\w./]+)`", text)
    assert not [path for path in paths if not (ROOT / path).exists()]
    known = set(theory.catalogue()["id"]) | {entry.id for entry in theory.errata()}
    named = re.findall(r"[`\"]((?:fa_ld|fa_hmc|de_sgld|de_sghmc|stale)\.\w+)[`\"]", text)
    assert named and not set(named) - known


def test_marimo_finds_nothing_to_object_to():
    done = subprocess.run([sys.executable, "-m", "marimo", "check", "--strict", *map(str, NOTEBOOKS)],
                          capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_notebooks():
    assert {"heterogeneity", "leapfrog", "gossip", "staleness", "bound"} <= set(NAMES)
    assert all(len(controls(name)) <= 7 for name in NAMES), "the corners that are tried are enough for seven"
