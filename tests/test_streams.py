"""Random streams are searched, not sampled: no word of any kernel stands for two random numbers."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from algorithms import ROWS
from examples_of import posterior
from layout import ROOT, sources
from recorder import FAULTS, KERNEL_FAULTS

import fedsim as fs
from fedsim.engine.job import make_job
from fedsim.problems.gradients import exact_gradient, kick, langevin, leapfrog
from fedsim.random import streams
from fedsim.random.streams import MAX_EVALUATIONS, TAGS

DRAWN_FOR = {"normals": 1, "draw": 2, "philox": 3, "draw_tile": 10}
"""The place of the tag among the arguments of what draws."""


def recorded(*words):
    """What the program `tests/recorder.py` says."""
    run = subprocess.run([sys.executable, str(Path(__file__).with_name("recorder.py")), *words],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("kind", ROWS)
def test_no_word_is_drawn_for_two_random_numbers(kind):
    result = recorded(kind.__name__)
    assert result["faults"] == {} and result["settings"] >= len(ROWS[kind].laws)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROWS)
def test_nor_with_any_option(kind):
    result = recorded(kind.__name__, "all")
    assert result["faults"] == {}
    assert result["settings"] >= len(ROWS[kind].laws) + len(ROWS[kind].groups)


def test_every_fault_of_tags_and_counters_is_seen():
    result = recorded("teeth")
    assert result.pop("none") == []
    assert set(result) == {*FAULTS, *KERNEL_FAULTS}
    assert not [name for name, faults in result.items() if not faults]


def test_tags_do_not_overlap_and_fit_their_word():
    ranges = sorted((first, first + count) for first, count in TAGS.values())
    assert all(first < end <= 2**32 for first, end in ranges) and ranges[0][0] >= 0
    assert all(end <= first for (_, end), (first, _) in itertools.pairwise(ranges))
    assert MAX_EVALUATIONS <= min(TAGS[name].width for name in ("MINIBATCH", "GRADIENT_NOISE"))
    assert all(getattr(streams, name) == first for name, (first, _) in TAGS.items())


def tag_of(node):
    """The name of a tag and whether a number is added, of the source of an argument; None elsewhere."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.uint64":
        node = node.args[0]
    added = isinstance(node, ast.BinOp)
    node = node.left if added else node
    return (node.id, added) if isinstance(node, ast.Name) else None


def test_whatever_draws_names_a_tag_of_the_table():
    """One tag, or one of several where it has several; functions that pass a tag on are the door."""
    used, passed_on = set(), set()
    for path in sources("fedsim"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in DRAWN_FOR:
                tag = tag_of(node.args[DRAWN_FOR[node.func.id]])
                assert tag is not None, f"{path}:{node.lineno}: no tag by name"
                name, added = tag
                if name == "tag":
                    passed_on.add(path.relative_to(ROOT).as_posix())
                    continue
                assert added == (TAGS[name].width > 1), f"{path}:{node.lineno}: {ast.unparse(node)}"
                used.add(name)
    assert used == set(TAGS)
    assert passed_on == {"fedsim/random/normals.py"}


def test_exact_gradients_draw_nothing():
    """So that it does not matter which Hessians `tests/recorder.py` has."""
    bodies = {body for stub in (exact_gradient, kick, langevin, leapfrog) for body in stub.bodies.values()}
    for body in bodies - {langevin.bodies[None]}:  # this one asks for the gradient with its noise
        called = {node.func.id for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(body))))
                  if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not called & {*DRAWN_FOR, "stochastic_gradient"}, body


LONG = fs.FAHMC(1e-9, MAX_EVALUATIONS // 2 + 1)
"""A step of more evaluations than there are tags."""
SMOOTH = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])
NOISY = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]], gradient_noise=1.0)


@pytest.mark.parametrize("unstable", [False, True])
def test_more_evaluations_in_a_step_than_tags_are_refused(unstable):
    message = (f"FAHMC.*draws for {MAX_EVALUATIONS + 1} gradients in a step; "
               f"the random streams number {MAX_EVALUATIONS}")
    for problem in (NOISY, posterior("linear", 1, batch_size=2)):
        with pytest.raises(ValueError, match=message):
            fs.simulate(problem, LONG, 0, 2, seed=1, allow_unstable=unstable)


def test_exact_gradients_draw_nothing_and_may_be_more():
    assert make_job(SMOOTH, LONG, 0, 2, seed=1, allow_unstable=True).n_replicas == 2


@pytest.mark.parametrize(("draws", "refused"), [(MAX_EVALUATIONS, False), (MAX_EVALUATIONS + 1, True)])
def test_as_many_evaluations_as_tags_are_allowed(draws, refused, monkeypatch):
    monkeypatch.setattr(fs.FALD, "_gradients_per_step", lambda self, problem: draws)
    if refused:
        with pytest.raises(ValueError, match=f"draws for {draws} gradients"):
            make_job(NOISY, fs.FALD(0.1), 1, 2, seed=1)
    else:
        assert make_job(NOISY, fs.FALD(0.1), 1, 2, seed=1).n_rounds == 1


def test_as_many_steps_as_positions_are_allowed():
    half = fs.FALD(0.1, 2)
    assert make_job(SMOOTH, half, 2**31, 2, seed=1, record=()).n_rounds == 2**31
    with pytest.raises(ValueError, match=f"n_rounds={2**31 + 1} makes {2**32 + 2} steps; .* number {2**32}"):
        make_job(SMOOTH, half, 2**31 + 1, 2, seed=1, record=())
