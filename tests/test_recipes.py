"""Kernels of other packages: their recipes, and states as those packages have them, without the packages."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import fedsim as fs
import theory
from theory.testing import UpdateRule, invariance, probe, report

ROOT = Path(__file__).resolve().parent.parent
RECIPES = sorted((ROOT / "docs" / "recipes").glob("*.py"))
PINS = [line for line in (ROOT / "docs" / "recipes" / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")]
VERDICTS = re.compile(r"\b(wrong|bugs?|broken|fail(s|ed)?|faults?|errors?|mistakes?|differs?|biased)\b", re.I)
PROBLEM = fs.Quadratic([[[2.0, 0.5], [0.5, 1.0]]], [[0.3, -0.2]])
ROOT_OF_NOISE = np.sqrt(0.2)


def name_of(path):
    return path.stem.removeprefix("of_")


@pytest.mark.parametrize("path", RECIPES, ids=name_of)
def test_a_recipe_is_short_plain_and_says_nothing_of_its_package(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert len(text.splitlines()) < 60 and not VERDICTS.search(text)
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    name = name_of(path)
    known = {line.split("==")[0] for line in PINS} | sys.stdlib_module_names | {"fedsim", "theory"}
    assert {name, "numpy", "fedsim", "theory"} <= found <= known
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)
             and ast.unparse(node.func).startswith("theory.testing.")]
    assert {node.func.attr for node in calls} == {"report", "assert_samples"}
    for node in calls:
        signature = inspect.signature(getattr(theory.testing, node.func.attr))
        signature.bind(*node.args, **{one.arg: one.value for one in node.keywords})


def test_the_makefile_names_recipes_and_versions_are_exact():
    chosen, = re.findall(r"^RECIPES \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert chosen and set(chosen.split()) <= {name_of(path) for path in RECIPES}
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-zA-Z.]*", line) for line in PINS)
    assert VERDICTS.search("its noise differs") and not VERDICTS.search("as its documentation says")


class Tensor:
    """An array that is recorded for gradients, on a device, as those of torch."""

    def __init__(self, values, ready=()):
        self.values, self.ready = np.asarray(values), ready
        self.shape, self.dtype = self.values.shape, f"torch.{self.values.dtype}"

    def detach(self):
        return Tensor(self.values, (*self.ready, "detached"))

    def cpu(self):
        return Tensor(self.values, (*self.ready, "here"))

    def __array__(self, dtype=None, copy=None):
        if set(self.ready) != {"detached", "here"}:
            raise RuntimeError("can't call numpy() on a tensor that requires grad, or is elsewhere")
        return np.array(self.values, dtype=dtype)


class Key:
    """Of a generator, which is no number."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a key cannot be converted")


class Pair(NamedTuple):
    x: object
    count: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    count: object
    calls: int = dataclasses.field(default=0, init=False)


def langevin(seed, x):
    noise = np.random.default_rng(seed).normal(size=2)
    return x - 0.1 * PROBLEM.gradient(0, x) + ROOT_OF_NOISE * noise


@pytest.mark.parametrize("make", [
    lambda x, count: {"x": x, "count": count}, Pair, Frozen, lambda x, count: [x, count],
    lambda x, count: (count, {"deeper": Frozen(x, ())})],
    ids=["dict", "tuple", "dataclass", "list", "nested"])
def test_states_of_tensors_are_read_in_any_nesting(make):
    """And the kernel gets arrays in the nesting of the start."""
    def parts(state):
        if isinstance(state, dict):
            return state["x"], state["count"]
        if isinstance(state, tuple) and not isinstance(state, Pair):
            return state[1]["deeper"].x, state[0]
        return tuple(state) if isinstance(state, (list, Pair)) else (state.x, state.count)

    def kernel(seed, state):
        assert type(state) is type(start)
        x, count = parts(state)
        return make(Tensor(langevin(seed, x)), Tensor(count + 1))

    start = make(Tensor(np.zeros(2)), Tensor(0))
    found = probe(kernel, PROBLEM, start=start, read=lambda state: Tensor(parts(state)[0]), n_draws=1000)
    plain = probe(langevin, PROBLEM, n_draws=1000)
    assert found.states.size == 3
    assert np.array_equal(found.stationary_law().cov, plain.stationary_law().cov)


def test_a_list_of_parameters_is_a_nesting():
    found = probe(lambda seed, state: [Tensor(one) for one in langevin(seed, np.stack(state))], PROBLEM,
                  start=[Tensor(0.0), Tensor(0.0)], read=np.stack, n_draws=1000)
    assert found.states.places == ["state[0]", "state[1]"] and found.radius < 1.0


def test_other_doors_take_tensors():
    def together(seeds, x):
        return Tensor(np.stack([langevin(seed, x) for seed in seeds.tolist()]))

    batched = probe(together, PROBLEM, batched=True, n_draws=1000)
    assert np.array_equal(batched.draws, probe(langevin, PROBLEM, n_draws=1000).draws)

    def explicit(h):
        return lambda x, z: Tensor(x - h * PROBLEM.gradient(0, x) + np.sqrt(2 * h) * z)

    rule = UpdateRule(explicit, PROBLEM, 0.1, noise=Tensor(np.zeros(2)), start=Tensor)
    assert rule.stability(PROBLEM).max_step_size > 0.1
    assert not invariance(lambda seed, x: Tensor(x), PROBLEM).differs
    assert probe(lambda seed, x: Tensor(langevin(seed, x).astype(np.float32)), PROBLEM, n_draws=1000).single


def refused(words, kernel, start=None):
    with pytest.raises(ValueError, match=words):
        probe(kernel, PROBLEM, start=start, n_draws=1000)


def test_a_part_that_no_state_depends_on_is_to_be_left_out():
    def kernel(seed, state):
        return Pair(langevin(seed, state.x), PROBLEM.potential(0, state.x))  # as a log-density is told

    refused(r"state\.count.*no new state depends on state\.count.*leave it out", kernel,
            Pair(np.zeros(2), 0.0))
    refused("float32 or less: let the kernel compute in float64",
            lambda seed, x: langevin(seed, x).astype(np.float16))
    refused("accepts or rejects", lambda seed, x: np.maximum(langevin(seed, x), 0.0))


def test_numbers_that_are_none_are_named():
    refused(r"finite numbers up to .*state\.count is nan", lambda seed, state: state,
            Pair(np.zeros(2), np.nan))
    refused("must be made of numbers: complex", lambda seed, x: langevin(seed, x) + 0.0j)
    refused(r"state\.count.*must be made of numbers", lambda seed, state: state, Pair(np.zeros(2), Key()))


def test_a_state_that_refuses_numbers_is_named():
    @dataclasses.dataclass
    class Small:
        x: object

        def __post_init__(self):
            if np.abs(self.x).max() > 1.0:
                raise ValueError("x is large")

    refused("Small of other numbers fails: ValueError: x is large",
            lambda seed, state: Small(0.01 * langevin(seed, state.x)), Small(np.zeros(2)))


def test_kernels_without_noise_have_a_report():
    still = report(lambda step_size: lambda seed, x: x, PROBLEM, step_size=0.1, n_draws=1000)
    assert still["target"].differs and "The matrix is the identity" in still["target"].sentence
    with pytest.raises(theory.NoExactLaw, match="radius of its matrix is 1"):
        probe(lambda seed, x: x, PROBLEM, n_draws=1000).variance_ratio()
    point = report(lambda step_size: lambda seed, x: 0.0 * x, PROBLEM, step_size=0.1, n_draws=1000)
    assert point["limit"].causes == ("no noise is added",)
