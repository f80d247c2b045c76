"""Functions of a client's vectors in a sampler: the machine, the twin, and what follows of them."""

from __future__ import annotations

import functools
import re
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from numba.core.errors import TypingError

import fedsim as fs
import theory
from fedsim.engine.job import make_job
from fedsim.problems.custom.forms import evaluate
from fedsim.problems.failing import traced, unknown_place
from fedsim.samplers import NotationError, each, grad, mean, noise, sqrt, weights
from fedsim.vector.memory import Scratch

LEVELS = 4.0


def clip(x, out):
    for i in range(len(x)):
        out[i] = min(max(x[i], -1.0), 1.0)


def rounded(x, u, out):
    """To a multiple of 1/LEVELS, up or down so that the mean is x."""
    for i in range(len(x)):
        low = np.floor(LEVELS * x[i])
        out[i] = (low + (1.0 if u[i] < LEVELS * x[i] - low else 0.0)) / LEVELS


def chosen(x, y, u, out):
    for i in range(len(x)):
        out[i] = y[i] if u[0] < 0.7 else x[i]


def turned(x, y, z, out):
    for i in range(len(x)):
        out[i] = 0.3 * x[i] + 0.2 * y[i] - 0.1 * z[len(x) - 1 - i]


@fs.sampler(follows="components")
def odd(x, y, *, step_size, W):
    n = noise()
    z = W @ x - step_size * each(clip, grad(x)) + sqrt(2 * step_size) * n
    a = each(chosen, x, z, uniforms=1)
    b = each(chosen, y, each(turned, x, n, mean(y)), uniforms=1)
    return a, b + 0.1 * each(clip, mean(x))


@fs.sampler
def looped(x, *, step_size):
    for _ in range(6):
        x = x - step_size * each(clip, grad(x)) + sqrt(2 * step_size) * noise() / sqrt(weights())
        x = each(chosen, 0.5 * x, x, uniforms=2)
    return each(clip, mean(x))


@fs.sampler(follows="components")
def quantised(x, *, step_size, W):
    return W @ each(rounded, x, uniforms=3) - step_size * grad(x) + sqrt(2 * step_size) * noise()


@fs.sampler(follows="components")
def unquantised(x, *, step_size, W):
    return W @ x - step_size * grad(x) + sqrt(2 * step_size) * noise()


@fs.sampler
def in_another_order(x, y, *, step_size):
    a = each(clip, mean(x + noise()))  # is computed after the next line
    b = each(chosen, x, y, uniforms=1)
    return x - step_size * grad(x) + 0.5 * a, b + 0.1 * x


W = fs.network.ring(3)


def problem_of(dim):
    rng = np.random.default_rng(dim)
    return fs.Quadratic(rng.uniform(0.5, 2.0, (3, dim)), 3.0 * rng.normal(size=(3, dim)))


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("algorithm", [odd(step_size=0.1, W=W), looped(step_size=0.1),
                                       in_another_order(step_size=0.1)], ids=["odd", "looped", "order"])
def test_the_machine_and_the_twin_apply_the_same(algorithm, dim):
    problem = problem_of(dim)
    for replicas in (3, 70):
        run, slow = (fs.simulate(problem, algorithm, 4, replicas, seed=2, keep_final=True, compiled=compiled)
                     for compiled in (True, False))
        assert np.abs(run.final - slow.final).max() < 1e-12 * np.abs(slow.final).max()
        for one, other in zip(run.clients, slow.clients, strict=True):
            assert np.abs(one.mean - other.mean).max() < 1e-12 * np.abs(other.mean).max()


def test_unbiased_rounding_leaves_the_mean(alarm):
    """And widens the law: what is computed with uniform numbers is neither shared nor the same twice."""
    problem, R = problem_of(3), 20_000
    run = fs.simulate(problem, quantised(step_size=0.1, W=W), 6, R, seed=3)
    law = theory.exact_law(problem, unquantised(step_size=0.1, W=W), 6)
    for seen, known in zip([run, *run.clients], [law, *law.clients], strict=True):
        sd = np.sqrt(np.diagonal(seen.cov[1:], axis1=1, axis2=2) / R)
        alarm.assert_normal((seen.mean[1:] - known.mean[1:]) / sd)
    wider = np.diagonal(run.cov[-1]) / np.diagonal(law.cov[-1])
    assert (wider > 1.01).all() and (wider < 2.0).all()
    pairs = fs.simulate(problem, quantised(step_size=1e-9, W=np.eye(3)), 1, R, seed=3, start=np.full(3, 0.1),
                        keep_final=True).final
    correlation = np.corrcoef(pairs.T)[np.triu_indices(3, 1)]
    alarm.assert_normal(np.sqrt(R) * np.arctanh(correlation))  # of coordinates, each with a number of its own


def test_what_has_a_function_has_no_exact_law():
    problem, algorithm = problem_of(1), odd(step_size=0.1, W=W)
    for ask in (lambda: theory.exact_law(problem, algorithm, 3),
                lambda: theory.exact.joint_law(problem, algorithm, 3),
                lambda: theory.exact.sample_rounds(problem, algorithm, 3, n_replicas=2, seed=1)):
        with pytest.raises(theory.exact.NoExactLaw, match=r"odd has each\(clip, \.\.\.\), which"):
            ask()
    with pytest.raises(theory.exact.NoExactLaw, match=r"each\(clip"):
        theory.stationary_law(problem, algorithm)
    assert "e1 = clip(g1)" in algorithm.words(problem)
    assert "not judged: each(clip, ...) is no matrix" in fs.explain(problem, algorithm)["stability"]
    assert not fs.simulate(problem, algorithm, 1, 64, seed=1).is_gaussian


def of(function):
    @fs.sampler
    def made(x, *, step_size):
        return each(function, x) - step_size * grad(x)

    return made(step_size=0.1)


def test_another_function_is_another_run():
    def halved(x, out):
        for i in range(len(x)):
            out[i] = 0.5 * x[i]

    keys = {make_job(problem_of(1), of(one), 2, 64, seed=1).key() for one in (clip, halved, clip)}
    assert len(keys) == 2


def plain(x, out):
    out[0] = x[5]


WRONG = {
    "each(clip)": (lambda x: each(clip), "takes one to 3 vectors"),
    "each(clip, 2)": (lambda x: each(clip, 2.0), "takes one to 3 vectors"),
    "each(clip, x, x)": (lambda x: each(clip, x, x), "has 2 arguments; it must have 3: 2 vectors and out"),
    "uniforms": (lambda x: each(clip, x, uniforms=-1), "uniforms=-1 must be"),
    "too few": (lambda x: each(rounded, x), "has 3 arguments; it must have 2"),
    "no function": (lambda x: each(np.sin, x), "must be a function written in Python"),
    "partial": (lambda x: each(functools.partial(clip, 1), x), "must be a function written in Python"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_function_of_vectors_is_refused(name):
    line, message = WRONG[name]

    @fs.sampler
    def made(x, *, step_size):
        return line(x)

    with pytest.raises(NotationError, match=message):
        made(step_size=0.1).trace(problem_of(1))


def test_an_index_out_of_range_is_an_error():
    with pytest.raises(IndexError):
        fs.simulate(problem_of(1), of(plain), 1, 64, seed=1)


def test_what_fails_after_a_gradient_is_not_the_gradient():
    """The trace that blames a gradient of one's own is of one that is being computed."""
    trace, table = unknown_place(1), np.array([1.0, 2.0])
    problem = fs.Custom(lambda client, x, table: table[int(x)], 1, data=table, support=(0, 1))
    form = traced(problem._form, trace)
    rows, room = np.array([[0.5, 1.5]]), Scratch(np.empty((0, 0)), np.empty((0, 0)))
    evaluate(form, 0, rows, room, rows.copy())
    assert np.isnan(trace[0])
    rows[0, 1] = 2.5
    with pytest.raises(IndexError):
        evaluate(form, 0, rows, room, rows.copy())
    assert trace.tolist() == [0.0, 1.0, 2.5]


def added(x, out):
    out[0] = x[0] + "a"


def changed(x, out):
    x[0] = 1.0


def of_rows(x, u, out):
    out[0] = u


def made(x, out):
    out[:] = np.zeros(len(x))


TYPES = {added: r"there is no add\(float64, .* in line \d+: out\[0\] = x\[0\] \+",
         changed: "it writes into x",
         of_rows: r"there is no setitem\(.* in line \d+: out\[0\] = u", made: "it makes an array"}


@pytest.mark.parametrize("function", TYPES)
def test_a_mistake_of_types_is_told_of_the_function(function):
    """By its name, and with no more of the compiler's words than a line."""
    @fs.sampler
    def wrong(x, *, step_size):
        return each(clip, x) + each(function, x, uniforms=int(function is of_rows))

    bound = wrong(step_size=0.1)._bind(problem_of(1), None)[1]
    error = bound._blamed(TypingError("of the machine"))
    assert re.fullmatch(rf"each\({function.__name__}, \.\.\.\): the function cannot be compiled: .*"
                        rf"{TYPES[function]}.*", str(error))
    assert bound._blamed(IndexError("of a run")) is None
    assert of(clip)._bind(problem_of(1), None)[1]._blamed(TypingError("of the machine")) is None


def test_simulate_tells_a_mistake_of_types():
    with pytest.raises(ValueError, match=r"each\(added, \.\.\.\): the function cannot be compiled") as caught:
        fs.simulate(fs.Quadratic([1.0], [[0.0]]), of(added), 1, 64, seed=1)
    assert caught.value.__suppress_context__


def test_each_is_a_public_name():
    assert fs.each is each is fs.samplers.each


def test_a_function_that_cannot_travel_is_refused():
    def local(x, out):
        out[0] = x[0]

    with ProcessPoolExecutor(1) as pool, pytest.raises(ValueError, match=r"algorithm=.* cannot be handed"):
        fs.simulate(problem_of(1), of(local), 1, 64, seed=1, executor=pool)
