"""A compiler of samplers with a fault is found out by what is computed by hand."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys

import pytest
from random_samplers import sampler_of
from test_machine import PROBLEM, differences

import fedsim as fs
from fedsim.algorithms import bound
from fedsim.samplers import program, stages

SOURCES = {
    "a gradient that is stored, scaled and mixed": """
    g = grad(a)
    return a - 0.1 * V @ g + 0.2 * noise(), g - 0.5 * b
""",
    "a mix that is used twice": """
    m = V @ a
    return m - 0.1 * grad(a) + 0.3 * noise(), b + 0.5 * a - 0.5 * m
""",
    "parts that change places, twice, or stay": """
    return b + 0.1 * noise(), c, c
""",
    "a part that is returned as it is": """
    return 0.5 * a - 0.2 * grad(b) + noise(), b + a, a
""",
    "one node that is returned twice": """
    n = a + noise() - 0.1 * grad(a)
    return n, n
""",
    "the past of two parts": """
    return past(a, 1) - 0.2 * grad(past(b, 2)) + 0.3 * noise(), a + 0.5 * past(b, 1)
""",
    "noises that are read later": """
    n = noise()
    m = mean(a + n)
    return a + 0.3 * n + noise() - 0.5 * m, n
""",
    "a part that all share": """
    y = a
    for _ in range(5):
        y = y - 0.1 * grad(y) + 0.3 * noise() + 0.1 * noise(common=True) + 0.05 * b
    return mean(y), b + 0.1 * a
""",
    "a loop around others": """
    y = 0.5 * a + 0.5 * b
    for _ in range(8):
        u = V @ y + 0.1 * b
        y = W @ (V @ u) - 0.1 * u
    return mean(y) + 0.2 * noise(), 0.5 * a
""",
    "loops in loops": """
    y = a + b
    for _ in range(4):
        z = y
        for _ in range(5):
            z, y = V @ z - 0.1 * grad(y), 0.9 * y + 0.1 * z
        y = y + 0.2 * noise() + 0.1 * b
    return y, z
""",
    "what changes from round to round": """
    return mean(T @ a, of=((0, 1), (2,))) + step_size * noise() - rate * b, b - step_size * rate * grad(a)
""",
    "a step at once, and one whose point is read again": """
    y = a - 0.2 * grad(a) + 0.3 * noise()
    z = y - 0.2 * grad(y) + 0.3 * noise()
    return z + 0.1 * y, W @ z - y
"""}
MUTANTS = {
    "a stored gradient is not scaled": (program, "if n in self.stored:", "if False:"),
    "W is transposed": (program, "for row in matrices.reshape(",
                        "for row in np.swapaxes(matrices, 1, -1).copy().reshape("),
    "matrices do not take turns": (program, "len(self.rows), matrices.shape[1], len(matrices)",
                                   "len(self.rows), matrices.shape[1], 1"),
    "schedules stand still": (program, "self.number(table), rounds, clients,",
                              "self.number(table), 1, clients,"),
    "exchanges forget what was moved": (program, "holds = [place if one == home else one for one in holds]",
                                        "pass"),
    "two registers want one value": (program, "if place in holds or self.widths", "if self.widths"),
    "what is read again is written over": (program, "self.layout.last[m] == place and", ""),
    "a fused gradient is not scaled": (
        program, "pull = self._factor(gradient, next(c for m, c in terms if m == gradient))",
        "pull = next(c for m, c in terms if m == gradient)"),
    "mixing does not wait": (stages, "stage[m] + (kind in MEETING and not self.shared[m])", "stage[m]"),
    "others are not waited for": (stages, "stays = not part.once and", "stays = False and"),
    "a loop forgets its surroundings": (stages, "at = self._loop_ends[outside[0]] if outside else at",
                                        "pass"),
    "what waits is computed too late": (stages, "- (self.nodes[user].kind in MEETING)", ""),
    "two noises are one": (stages, "drawn[bool(payload)] + 1", "max(drawn[bool(payload)], 0)"),
    "a gradient moves another point": (stages, "points[0][0] == x and", ""),
    "the past begins at zero": (program, "if first == (part if isinstance(part, str) else part[0])",
                                "if first == part"),
}


def samplers():
    for name, body in SOURCES.items():
        result = ast.parse(f"def made():{body}").body[0].body[-1].value
        parts = "abc"[:len(result.elts) if isinstance(result, ast.Tuple) else 1]
        source = f"def made({', '.join(parts)}, *, step_size, rate, W, V, U, T):{body}"
        for follows in ("clients", "components"):
            yield f"{name} ({follows})", sampler_of(source, follows)


@pytest.mark.parametrize("name", SOURCES)
def test_the_compiler_is_right(name):
    for called, algorithm in samplers():
        if called.startswith(name):
            assert differences(algorithm, PROBLEM)[1] < 1e-12, called


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found_out(name, monkeypatch):
    """Some sampler gives other numbers; or, a fault that is worse, none."""
    module, old, new = MUTANTS[name]
    text = inspect.getsource(module)
    assert text.count(old) == 1
    faulty = changed(module, text.replace(old, new))
    if module is stages:
        again = changed(program, inspect.getsource(program))
        again.Values, again.Layout, again.Part = faulty.Values, faulty.Layout, faulty.Part
        faulty = again
    monkeypatch.setattr(bound, "program_of", faulty.program_of)
    assert any(is_wrong(algorithm) for _, algorithm in samplers())


def changed(module, text):
    """A module of the same name with another text; it stands nowhere else."""
    spec = importlib.util.spec_from_loader(module.__name__, None)
    made = importlib.util.module_from_spec(spec)
    made.__package__ = module.__package__
    real = sys.modules[module.__name__]
    sys.modules[module.__name__] = made  # dataclasses look for it
    try:
        exec(compile(text, module.__file__, "exec"), made.__dict__)
    finally:
        sys.modules[module.__name__] = real
    return made


def is_wrong(algorithm):
    try:
        return differences(algorithm, PROBLEM)[1] > 1e-9
    except (KeyError, IndexError, fs.DivergedError):
        return True
