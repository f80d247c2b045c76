"""Bodies that stand outside of fedsim: a checkpoint is not taken for that of another one's."""

from typing import NamedTuple

import numpy as np
import pytest

import fedsim as fs
from fedsim.engine import rounds
from fedsim.engine.job import make_job
from fedsim.problems.gradients import exact_gradient, noise_free
from fedsim.vector.compile import inner

FACTOR = 2.0
TABLE: dict[str, float] = {}


@noise_free
class Form(NamedTuple):
    """A compiled form of one's own."""

    centres: np.ndarray


class Mine(fs.Custom):
    """What its own form computes is not what its gradient says: nothing is run here."""

    def _arrays(self):
        return Form(np.zeros((2, 1)))


class Pair(NamedTuple):
    """Two numbers."""

    one: float
    other: float = 1.0


@inner
def row(x, out):
    for b in range(x.shape[0]):
        out[b] = Pair(FACTOR * x[b]).one


def by_helper(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        row(x[i], out[i])


def other_body(problem, client, x, scratch, out):
    for i in range(x.shape[0]):
        row(x[i], out[i])
        out[i, 0] += problem.centres[client, i]


def by_table(problem, client, x, scratch, out):
    out[0, 0] = TABLE["a"]


class Cube(NamedTuple):
    """A test function of one's own."""

    unused: int = 0


@rounds.accumulate.register(Cube)
def cubes(function, work, observed, unfolded, sums):
    for b in range(sums.shape[0]):
        sums[b] += unfolded[0, b] ** 3


def squares(function, work, observed, unfolded, sums):
    for b in range(sums.shape[0]):
        sums[b] += unfolded[0, b] ** 2


def key(problem, body, **options):
    exact_gradient.register(Form)(body)
    return make_job(problem, fs.FALD(0.1), 4, 64, seed=1, **options).key()


def test_another_body_is_another_simulation(monkeypatch, tmp_path):
    problem = Mine(lambda client, x: x, 2)
    monkeypatch.setitem(exact_gradient.bodies, Form, None)  # forgotten after the test
    first = key(problem, by_helper)
    assert key(problem, by_helper) == first
    assert key(problem, other_body) != first
    with monkeypatch.context() as changed:
        changed.setitem(by_helper.__globals__, "FACTOR", 3.0)
        assert key(problem, by_helper) != first
    assert key(problem, by_helper) == first
    exact_gradient.register(Form)(by_table)
    with pytest.raises(ValueError, match=r"the body of exact_gradient of Form uses TABLE=.*, of type dict"):
        fs.simulate(problem, fs.FALD(0.1), 4, 64, seed=1, checkpoint=tmp_path)


def test_another_test_function_is_another_simulation(monkeypatch):
    monkeypatch.setitem(rounds.TEST_FUNCTIONS, "third", Cube())
    problem = fs.Quadratic([1.0, 2.0], [[0.0], [1.0]])

    def own_key():
        return make_job(problem, fs.FALD(0.1), 4, 64, seed=1, average="third").key()

    first = own_key()
    monkeypatch.setitem(rounds.accumulate.bodies, Cube, squares)
    assert own_key() != first
