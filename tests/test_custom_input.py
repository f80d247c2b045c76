"""What is wrong with a gradient of one's own is told when its problem is made, with what was expected."""

import functools
import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import own_gradients as own
import pytest
import scipy.special

import fedsim as fs
from fedsim.engine import block

TABLE: dict[str, float] = {}
DATA = np.array([1.0, 2.0])
LATER: float


def short(client, x, out):
    out[0] = x[0]


def rebinds(client, x, out):
    out = 2 * x  # noqa: F841


def writes_x(client, x, out):
    out[0], out[1] = x[0], x[1]
    x[0] = 0.0


def writes_x_far_away(client, x, out):
    for i in range(len(x)):
        out[i] = x[i]
    if x[0] > 30.0:
        part = x[1:]
        part[0] = 0.0


def adds(client, x, out):
    for i in range(2):
        out[i] += x[i]


def returns(client, x, out):
    return x


def beyond(client, x, out):
    for i in range(3):
        out[i] = x[i]


def beyond_for_one(client, x, out, data):
    for i in range(2):
        out[i] = x[i] + (data[7] if client == 1 else 0.0)


def product(client, x, out, matrix):
    out[:] = matrix @ x


def names_a_dict(client, x):
    return TABLE.get(client, x)


def names_a_module(client, x):
    return scipy.special.expit(x)


def names_nothing(client, x):
    return nothing_of_this_name * x  # noqa: F821


def too_early(client, x):
    return LATER * x  # noqa: F821


def calls_itself(client, x):
    return x if client == 0 else calls_itself(client - 1, x)


def draws(client, x):
    return x + np.random.normal()  # noqa: NPY002


def uses_dot(client, x, out):
    out[0], out[1] = x[0] * np.dot(x, x), x[1]


def fails_for_one(client, x):
    if client == 1:
        raise ValueError("not here")
    return x


def one(client, x):
    return 2.0 * x


class Bound:
    """It has a method."""

    def gradient(self, client, x):
        return x


@pytest.mark.parametrize("gradient, dim, data, message", [
    (3, 1, (), "gradient=3 must be a function written in Python by def or lambda, not of type int"),
    (Bound().gradient, 1, (), "must be a function written in Python by def or lambda, not of type method"),
    (functools.partial(one, 0), 1, (), "not of type partial"),
    (fs.math.tanh, 1, (), "must be a function written in Python"),
    (lambda c, x: math.nan * x, 1, (), r"gradient of client 0 at x=.* has coordinate 0 = nan; it m"),
    (lambda c, x: np.sqrt(x), 1, (), "has coordinate 0 = nan; it must be finite"),
    (lambda c, x: 1e300 * x * 1e300, 1, (), "inf; it must be finite"),
    (lambda c, x: np.array([x, x]), 1, (), "of type ndarray, at client 0; in dimension 1 it must retur"),
    (lambda c, x: None, 1, (), "gradient returns None, of type NoneType, at client 0"),
    (lambda c, x: "a", 1, (), "gradient returns .a., of type str"),
    (lambda c, x: x[0], 1, (), "gradient fails at client 0 and x=.*: TypeError: 'float' object is not"),
    (lambda c, x, a: a[c] * x, 1, DATA, "gradient of client 2 reads or writes out of range: an inde"),
    (lambda c, x, a: a * x, 1, (), r"must take the arguments gradient\(client, x\) in dimension 1: missing"),
    (one, 1, DATA, r"must take the arguments gradient\(client, x, data\[0\]\) in dimension 1: too many"),
    (one, 2, (), r"must take the arguments gradient\(client, x, out\) in dimension 2"),
    (short, 2, (), r"gradient of client 0 leaves out\[1\] as it is at .* must write every coordinate"),
    (rebinds, 2, (), "it makes an array, a list or a set, .* in line .*: out = 2 . x"),
    (product, 2, np.eye(2), "cannot be compiled: it makes an array, a list or a set"),
    (writes_x, 2, (), r"it writes into x or data; it must write into out alone, in line \d+: x\[0\] = 0.0"),
    (writes_x_far_away, 2, (), "it writes into x or data; it must write into out alone, in line"),
    (writes_x_far_away, 9, (), "it writes into x or data; it must write into out alone, in line"),
    (adds, 2, (), "and then .*; it must depend on its arguments alone"),
    (returns, 2, (), "in dimension 2 it must write into out, .* and return nothing"),
    (beyond, 2, (), "gradient fails at client 0 .* IndexError: index 2 is out of bounds"),
    (beyond_for_one, 2, DATA, "gradient of client 1 reads or writes out of range"),
    (names_a_dict, 1, (), r"gradient uses TABLE=\{\}, of type dict, .*; pass it in data="),
    (names_a_module, 1, (), "gradient uses scipy=.* only math, numpy and fedsim can be named"),
    (names_nothing, 1, (), "gradient uses the name 'nothing_of_this_name', which is not defined"),
    (too_early, 1, (), "gradient uses the name 'LATER', which is not defined"),
    (calls_itself, 1, (), "gradient calls itself by 'calls_itself'; write a loop"),
    (draws, 1, (), "it must depend on its arguments alone, not on random numbers"),
    (lambda c, x: 2 ** -(c + 1) * x, 1, (), "client 0 fails: ValueError: a negative power of an integer; w"),
    (lambda c, x, a: a**-2 * x, 1, 10, "client 0 fails: ValueError: a negative power of an integer; write"),
    (uses_dot, 2, (), "gradient cannot be compiled: .*columns of a table"),
    (lambda c, x: fs.RATE * x, 1, (), "gradient uses fs.RATE, which is not defined"),
    (lambda c, x: print(x), 1, (), "gradient prints, which it would do for every replica"),
    (fails_for_one, 1, (), "gradient of client 1 fails: ValueError: not here"),
    (lambda c, x, a: x, 1, (np.array([None, 1]),), r"data\[0\]=.* has dtype object; it must be a rect"),
    (lambda c, x, a: x, 1, "abc", "data='abc' has dtype .*; it must be a rectangular array of real numbers"),
    (lambda c, x, a: x, 1, [[1.0], [1.0, 2.0]], "data=.* must be a rectangular array of real numbers"),
    (lambda c, x, a: x, 1, np.array([2**63], dtype=np.uint64), "integers must be less than 2.63"),
    (lambda c, x, a: x, 1, np.ma.array([1.0, 2.0], mask=[0, 1]), "data has masked entries"),
])
def test_gradients(gradient, dim, data, message):
    with pytest.raises(ValueError, match=message):
        fs.Custom(gradient, 3, dim, data=data)


@pytest.mark.parametrize("options, message", [
    ({"potential": lambda c, x: 1.1 * x**2}, r"has coordinate 0 = 0.25146044, and the potential's slope"),
    ({"potential": lambda c, x: x**2 + x * (c == 2)}, "gradient of client 2 .* must be that of potential"),
    ({"potential": lambda c: 1.0}, r"must take the arguments potential\(client, x\): too many"),
    ({"potential": lambda c, x: np.nan}, "potential of client 0 at x=.* is nan; it must be finite"),
    ({"potential": lambda c, x: [x]}, r"potential returns \[.*\], of type list, .* it must return a number"),
    ({"potential": lambda c, x: 1 / 0}, "potential of client 0 fails at x=.*: ZeroDivisionError"),
    ({"potential": lambda c, x: complex(x * x)}, "potential returns .*, of type complex"),
    ({"potential": lambda c, x: 1e7 + x**2 + x}, "gradient must be that of potential"),
    ({"n_clients": 2**40}, "n_clients=1099511627776 and dim=1"),
    ({"potential": 3}, "potential=3 must be a function or None"),
    ({"curvature": -1.0}, "curvature=-1.0 must be greater than 0"),
    ({"curvature": [1.0, 2.0]}, r"curvature has shape \(2,\); it must be \(3,\)"),
    ({"curvature": [1.0, 0.0, 2.0]}, r"curvature\[1\]=0.0 must be greater than 0"),
    ({"gradient_noise": -1.0}, "gradient_noise=-1.0 must be at least 0"),
    ({"weights": [0.5, 0.6, 0.1]}, "weights sum to 1.2; they must sum to 1"),
    ({"n_clients": 0}, "n_clients=0 must be at least 1"),
    ({"n_clients": 2.5}, "n_clients=2.5 must be an integer"),
    ({"dim": 0}, "dim=0 must be at least 1"),
])
def test_other_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        fs.Custom(one, **{"n_clients": 3} | options)


def test_a_potential_without_slopes_is_refused_where_the_gradient_is_one_off():
    with pytest.raises(ValueError, match=r"has coordinate 0 = .*, and the potential's slope there is"):
        fs.Custom(lambda c, x, centres: fs.math.tanh(x - centres[c]) + 1.0, 2, data=[0.0, 1.0],
                  potential=own.log_cosh_potential)


def test_what_only_a_module_has_is_not_handed_to_processes(monkeypatch):
    problem = fs.Custom(lambda client, x: x, 2)
    monkeypatch.setattr(block, "run_rounds", None)  # nothing is run
    with ProcessPoolExecutor(1) as pool, pytest.raises(
            ValueError, match=r"cannot be handed to a process of executor=.*use threads, or define its func"):
        fs.simulate(problem, fs.FALD(0.1), 5, 64, seed=1, executor=pool)


def test_density_and_points():
    plane = fs.Custom(own.diagonal, 1, 2, data=([[1.0, 2.0]], [[0.0, 0.0]]))
    with pytest.raises(ValueError, match="dim=2 must be 1 for quadrature; compare with a reference sample"):
        plane.density()
    problem = fs.Custom(one, 2, potential=lambda c, x: x * x)
    for call, message in ((lambda: problem.gradient(2, [1.0]), "client=2 must be at most 1"),
                          (lambda: problem.gradient(0, [[1.0, 2.0]]), "its last axis must have the dim"),
                          (lambda: problem.potential(3, [1.0]), "client=3 must be at most 1"),
                          (lambda: problem.density(-1.0), "temperature=-1.0 must be greater than 0"),
                          (lambda: problem.target(), r"compare with problem\.density\(\) by quadrature")):
        with pytest.raises(ValueError, match=message):
            call()
    assert abs(problem.density(2.0).variance - 1.0) < 1e-9
