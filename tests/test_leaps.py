"""Rounds of several gradients are computed along eigenvectors, and their leapfrog steps in one operation."""

from __future__ import annotations

import ast
import inspect
import warnings

import numpy as np
import pytest
import sampler_zoo as zoo
from hypothesis import given, settings, strategies as st
from problems import quadratic
from random_samplers import sampler_of, sources
from test_machine_mutants import SOURCES, changed

import fedsim as fs
from fedsim.algorithms import bound
from fedsim.engine.job import make_job
from fedsim.samplers import (
    SamplerWarning,
    each,
    grad,
    leaps,
    mean,
    noise,
    operations as ops,
    potential,
    program,
    stages,
)

ROUNDS, REPLICAS = 3, 24
PROBLEM = quadratic(3, 3)
START = np.array([1.5, 0.5, -0.5])

LEAPS = {
    "a kick by half, and others": """
    v = noise() - 0.05 * grad(a)
    a = a + 0.1 * v
    for _ in range(3):
        v = v - 0.1 * grad(a)
        a = a + 0.1 * v
    return mean(a)
""",
    "many, which a trace rolls": """
    v = noise()
    for _ in range(30):
        v = v - 0.1 * grad(a)
        a = a + 0.1 * v
    return mean(a + 0.1 * v)
""",
    "a velocity that is kept": """
    for _ in range(3):
        b = b - 0.2 * grad(a)
        a = a + 0.3 * b
    return a + 0.1 * noise(), 0.5 * b
""",
    "friction, which is no leap": """
    for _ in range(3):
        b = 0.9 * b - 0.2 * grad(a)
        a = a + 0.3 * b
    return a, b + 0.3 * noise()
""",
    "drifts that differ": """
    for k in (1, 2, 2, 3):
        b = b - 0.1 * grad(a)
        a = a + 0.1 * k * b
    return W @ a, 0.9 * b + 0.2 * noise()
""",
    "kicks that differ": """
    for k in (1, 1, 2, 3, 3, 1):
        b = b - 0.1 * k * grad(a)
        a = a + 0.2 * b
    return W @ a, 0.9 * b + 0.2 * noise()
""",
    "a gradient that is read again, which is no leap": """
    g = grad(a)
    b = b - 0.1 * g
    a = a + 0.2 * b
    h = grad(a)
    b = b - 0.1 * h
    a = a + 0.2 * b + 0.1 * h
    return a + 0.1 * noise(), 0.9 * b + 0.2 * g
""",
    "points and velocities that are read again": """
    u = b - 0.1 * grad(a)
    y = a + 0.2 * u
    w = u - 0.1 * grad(y)
    z = y + 0.2 * w
    s = w - 0.1 * grad(z)
    t = z + 0.2 * s - 0.03 * grad(z + 0.2 * s)
    return 0.3 * t + 0.2 * y + 0.1 * noise(), 0.5 * s + 0.2 * u, grad(t) + 0.1 * a
""",
    "a velocity that is read later": """
    u = b - 0.1 * grad(a)
    y = a + 0.2 * u
    z = y + 0.2 * (u - 0.1 * grad(y))
    q = noise() - 0.1 * grad(z)
    return mean(z), q + 0.2 * noise() + 0.5 * u
""",
    "a drift before the kick, which is no leap": """
    for _ in range(3):
        g = grad(a)
        a = a + 0.2 * b
        b = b - 0.1 * g
    return W @ a + 0.1 * noise(), b
""",
    "numbers a client, and a schedule": """
    for _ in range(4):
        b = b - step_size * weights() * grad(a)
        a = a + rate * b
    return mean(a), V @ b + 0.2 * noise()
""",
    "no drift": """
    for _ in range(4):
        b = b - 0.2 * grad(a)
        a = a + (rate - rate) * b
    return a + 0.1 * noise(), 0.9 * b
""",
}


@st.composite
def trajectories(draw):
    """The text of a function that kicks and drifts a lot."""
    names, lines = ["a", "b"], []
    for number in range(draw(st.integers(2, 7))):
        x, v, new = draw(st.sampled_from(names)), draw(st.sampled_from(names)), f"u{number}"
        k, l = (draw(st.sampled_from(("0.1", "0.2", "step_size", "weights()"))) for _ in range(2))  # noqa: E741
        kind = draw(st.integers(0, 4))
        if kind == 0:
            lines += [f"{v} = {v} - {k} * grad({x})", f"{x} = {x} + {l} * {v}"]
        elif kind == 1:
            lines += [f"{new} = {x} + {l} * {v} - {k} * grad({x})"]
        elif kind == 2:
            lines += [f"for _ in range({draw(st.integers(2, 12))}):", f"    {v} = {v} - {k} * grad({x})",
                      f"    {x} = {x} + 0.1 * {v}"]
        elif kind == 3:
            lines += [f"{new} = {v} - 0.1 * grad({x}) + 0.2 * noise()"]
        else:
            lines += [f"{new} = {x} + 0.1 * {v}"]
        names += [new] if kind in (1, 3, 4) else []
    results = [draw(st.sampled_from(names)) for _ in range(2)]
    body = "\n".join(f"    {line}" for line in lines)
    return (f"def made(a, b, *, step_size, rate, W, V, U, T):\n{body}\n"
            f"    return mean({results[0]}), 0.5 * {results[1]}\n")


def written(bodies):
    for body in bodies:
        result = ast.parse(f"def made():{body}").body[0].body[-1].value
        parts = "abc"[:len(result.elts) if isinstance(result, ast.Tuple) else 1]
        for follows in ("clients", "components"):
            yield sampler_of(f"def made({', '.join(parts)}, *, step_size, rate, W, V, U, T):{body}", follows)


def difference(algorithm, problem=PROBLEM):
    """Of all clients, between the machine and NumPy; relative to the largest value."""
    options = {"seed": 7, "start": START[:problem.dim], "keep_final": True, "allow_unstable": True,
               "threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        runs = [fs.simulate(problem, algorithm, ROUNDS, REPLICAS, compiled=fast, **options)
                for fast in (True, False)]
    laws = zip(*((run, *run.clients) for run in runs), strict=True)
    pairs = [(fast.mean, slow.mean) for fast, slow in laws] + [(runs[0].final, runs[1].final)]
    size = max(1.0, *(np.abs(slow).max() for _, slow in pairs))
    return max(np.abs(fast - slow).max() for fast, slow in pairs) / size


def code_of(algorithm, problem=PROBLEM):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplerWarning)
        return make_job(problem, algorithm, 2, 64, seed=1, allow_unstable=True).algorithm.program


@pytest.fixture
def always(monkeypatch):
    """Also where it is more work."""
    monkeypatch.setattr(program, "WORTH_A_TURN", np.inf)


@pytest.mark.parametrize("name", LEAPS)
def test_leaps(always, name):
    for algorithm in written([LEAPS[name]]):
        found = code_of(algorithm).code
        assert (found[:, 0] >= ops.TURN).any() and not (found[:, 0] == ops.GRAD).any()
        assert (found[:, 0] == ops.LEAP).any() == ("no leap" not in name and name != "no drift")
        assert difference(algorithm) < 1e-13


def test_every_sampler_of_the_compiler_along_eigenvectors(always):
    for algorithm in written(SOURCES.values()):
        assert difference(algorithm) < 1e-12


@settings(max_examples=40)
@given(st.one_of(trajectories(), trajectories(), sources()), st.sampled_from(["clients", "components"]))
def test_samplers_that_nobody_wrote(source, follows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "WORTH_A_TURN", np.inf)
        assert difference(sampler_of(source, follows)) < 1e-12, source


@pytest.mark.parametrize("dim", [2, 3])
def test_a_trajectory_is_one_operation(dim):
    """A turn of the momentum, and a leap."""
    problem = quadratic(5, dim)
    for steps in (5, 50):
        found = code_of(zoo.fa_hmc(step_size=0.05, leapfrog_steps=steps), problem)
        leap = found.code[found.code[:, 0] == ops.LEAP]
        assert leap[:, 7].sum() == steps and len(leap) <= 3
        assert not (found.code[:, 0] == ops.MODES_GRAD).any() and not (found.steps[:, 0] == ops.LOOP).any()


def test_a_very_long_trajectory_can_be_stopped(monkeypatch):
    """Between turns of a loop; one operation is not."""
    monkeypatch.setattr(leaps, "MOST_TIMES", 100)
    for steps, looped in ((90, False), (150, True)):
        found = code_of(zoo.fa_hmc(step_size=1e-3, leapfrog_steps=steps))
        leap = found.code[found.code[:, 0] == ops.LEAP]
        assert (found.steps[:, 0] == ops.LOOP).any() == looped and leap[:, 7].max() <= 100


def test_where_turning_is_more_work_nothing_is_turned():
    W = fs.network.ring(3)
    for algorithm in (zoo.fa_ld(step_size=0.05, local_steps=5), zoo.extra_sgld(step_size=0.05, W=W),
                      zoo.de_sghmc(step_size=0.05, friction=1.0, W=W)):
        assert (code_of(algorithm).code[:, 0] < ops.TURN).all()
    many = zoo.fa_hmc(step_size=0.05, leapfrog_steps=8)
    for problem in (quadratic(3, 3, noise=0.5), quadratic(3, 4, "diagonal")):
        assert (code_of(many, problem).code[:, 0] < ops.TURN).all()
    assert (code_of(many).code[:, 0] >= ops.TURN).any()


def test_noise_waits_for_nobody():
    """Many local steps keep no momenta."""
    for updates in (2, 3, 9):
        found = code_of(zoo.fa_hmc(step_size=0.05, leapfrog_steps=5, local_steps=updates, shared_noise=0.3))
        assert found.widths.sum() <= 3


def test_few_replicas_and_single_noise():
    mine = zoo.fa_hmc(step_size=0.05, leapfrog_steps=5, shared_noise=0.3)
    for kind in ("double", "single"):
        options = {"n_rounds": ROUNDS, "seed": 3, "keep_final": True, "threads": 1, "noise": kind}
        many, shipped = (fs.simulate(PROBLEM, algorithm, n_replicas=70, **options).final
                         for algorithm in (mine, fs.FAHMC(0.05, 5, shared_noise=0.3)))
        assert fs.simulate(PROBLEM, mine, n_replicas=3, **options).final.tobytes() == many[:3].tobytes()
        np.testing.assert_allclose(many, shipped, rtol=0.0, atol=1e-14)


def take(x, y, f, out):
    for i in range(len(x)):
        out[i] = y[i] if f[0] < 1.0 else x[i]


def test_functions_and_potentials_are_of_the_given_coordinates(always):
    @fs.sampler
    def chosen(x, *, step_size):
        v, y = noise(), x
        for _ in range(4):
            v = v - step_size * grad(y)
            y = y + step_size * v
        return mean(each(take, x, y, potential(y)))

    algorithm = chosen(step_size=0.2)
    found = code_of(algorithm).code[:, 0]
    assert {ops.TURN, ops.TURN_BACK, ops.LEAP, ops.POTENTIAL, ops.EACH} <= set(found)
    assert difference(algorithm) < 1e-13


MUTANTS = {
    "a gradient that is read again is lost": (
        leaps, "all(_is_free(gradient, rest, widths) for gradient in lost)", "True"),
    "a point or a velocity that is read again is lost": (
        leaps, "all(_is_free(register, rest, widths) for register in lost)", "True"),
    "what is kept counts as free": (leaps, "return not widths[register]", "return True"),
    "the last kick is not divided": (leaps, "tables.ratio(last[g], last[v])", "last[g]"),
    "kicks need not agree": (leaps, "one, rtol=1e-15", "one, rtol=1e15"),
    "drifts need not agree": (leaps, "before[C], before[L]]", "before[C], line[L]]"),
    "leaps are counted once": (leaps, "before[TIMES] + line[TIMES]", "before[TIMES]"),
    "a gradient passes what moves its point": (leaps, "or other[OUT] == line[A]", ""),
    "a loop leaps once": (program, "self.code[-1][TIMES] *= loop.turns", "pass"),
    "noise is not turned": (stages, "self._in(True, self._computed(Node(\"lin\", None, noises), entries))",
                            "self._computed(Node(\"lin\", None, noises), entries)"),
    "others are told of turned vectors": (stages, "terms = [(self._in(inside, m), c)", "terms = [(m, c)"),
    "turned gradients are not scaled": (program, "if self.values.nodes[m].kind == \"grad\" and",
                                        "if self.values.nodes[m].kind == \"\" and"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_found_out(name, monkeypatch):
    module, old, new = MUTANTS[name]
    text = inspect.getsource(module)
    assert text.count(old) == 1
    faulty = changed(module, text.replace(old, new))
    if module is not program:
        again = changed(program, inspect.getsource(program))
        if module is leaps:
            again.with_leaps, again.repeats = faulty.with_leaps, faulty.repeats
        else:
            again.Values, again.Layout, again.Part = faulty.Values, faulty.Layout, faulty.Part
        faulty = again
    faulty.WORTH_A_TURN = np.inf
    monkeypatch.setattr(bound, "program_of", faulty.program_of)
    assert any(is_wrong(algorithm) for algorithm in written(LEAPS.values()))


def is_wrong(algorithm):
    """It gives other numbers; or, a fault that is worse, none."""
    try:
        return difference(algorithm) > 1e-9
    except (KeyError, IndexError, fs.DivergedError):
        return True
