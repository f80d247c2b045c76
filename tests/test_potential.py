"""Potentials in a sampler: what the machine, the twin and NumPy make of them, and who may read them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from scipy import stats

import fedsim as fs
import theory
from fedsim.interfaces import ProblemParts
from fedsim.problems.custom.forms import evaluate_potential
from fedsim.problems.gradients import exact_potential
from fedsim.problems.pooled import Pooled
from fedsim.samplers import NotationError, exp, grad, mean, noise, past, potential, sqrt, weights
from fedsim.vector.compile import body_of

W = fs.network.ring(3)


def difference(f, g, out):
    for i in range(len(out)):
        out[i] = f[0] - g[0]


def half_squares(n, m, out):
    total = 0.0
    for i in range(len(n)):
        total += 0.5 * (n[i] * n[i] - m[i] * m[i])
    for i in range(len(n)):
        out[i] = total


def accept(x, y, gain, u, out):
    for i in range(len(x)):
        out[i] = y[i] if np.log(1.0 - u[0]) < gain[0] else x[i]


def of_rule(follows="clients"):
    """Langevin steps with a Metropolis test; other `signs` than one are faults."""
    @fs.sampler(follows=follows)
    def mala(x, *, step_size, signs=(1.0, 1.0), steps=1):
        for _ in range(steps):
            n = noise()
            y = x - step_size * grad(x) + sqrt(2 * step_size) * n
            back = (x - y + step_size * grad(y)) / sqrt(2 * step_size)
            gain = signs[0] * fs.each(difference, potential(x), potential(y))
            gain = signs[1] * (gain + fs.each(half_squares, n, back))
            x = fs.each(accept, x, y, gain, uniforms=1)
        return x

    return mala


def cubic(client, x, out, pulls):
    for i in range(len(x)):
        out[i] = x[i] ** 3 - pulls[client] * x[i]


def quartic(client, x, pulls):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 4 / 4 - pulls[client] * x[i] ** 2 / 2
    return total


def slope(client, x, pulls):
    return x**3 - pulls[client]


def well(client, x, pulls):
    return x**4 / 4 - pulls[client] * x


def _problems():
    rng = np.random.default_rng(7)
    hessians = rng.normal(size=(3, 3, 3))
    hessians = hessians @ hessians.transpose(0, 2, 1) + np.eye(3)
    rows, owner = rng.normal(size=(150, 3)), np.arange(150) % 3
    labels, classes = rng.random(150) < 0.5, rng.permutation(np.arange(150) % 4)
    numbers, shares = rng.integers(0, 256, (150, 3)).astype(np.uint8), [0.5, 0.3, 0.2]
    custom = fs.Custom(cubic, 3, 2, data=[0.5, 1.5, 0.0], potential=quartic)
    return {
        "dense": fs.Quadratic(hessians, rng.normal(size=(3, 3)), shares),
        "plane": fs.Quadratic(hessians[:, :2, :2], rng.normal(size=(3, 2)),
                              gradient_noise=hessians[:, :2, :2]),
        "diagonal": fs.Quadratic(rng.uniform(0.5, 2.0, (3, 4)), rng.normal(size=(3, 4)), gradient_noise=0.3),
        "isotropic": fs.Quadratic([1.0, 2.0, 0.5], rng.normal(size=(3, 1))),
        "mean": fs.GaussianMean([1.0, 2.0, 4.0], prior_variance=0.3),
        "mean of batches": fs.GaussianMean([1.0, 2.0, 4.0], batch_size=2),
        "linear": fs.LinearRegression(rows, rows[:, 0], owner, noise_std=0.7, prior_variance=2.0,
                                      weights=shares),
        "linear in batches": fs.LinearRegression(rows, rows[:, 0], owner, noise_std=0.7, prior_variance=2.0,
                                                 batch_size=5),
        "logistic": fs.LogisticRegression(rows, labels, owner, prior_variance=0.2, weights=shares,
                                          gradient_noise=0.1),
        "logistic in batches": fs.LogisticRegression(rows, labels, owner, prior_variance=0.2, batch_size=5),
        "softmax": fs.SoftmaxRegression(rows, classes, owner, prior_variance=0.2, weights=shares),
        "softmax of bytes": fs.SoftmaxRegression(numbers, classes, owner, prior_variance=0.2, batch_size=5,
                                                 feature_scale=1 / 255),
        "custom": custom,
        "custom on the line": fs.Custom(slope, 3, data=[0.5, 1.5, 0.0], potential=well, gradient_noise=0.1),
        "pooled": custom.pooled(),
        "pooled quadratic": Pooled(fs.Quadratic(hessians, rng.normal(size=(3, 3))))}


PROBLEMS = _problems()


def quadratic_potential(problem, client, x):
    gap = x - problem.minimizers[client]
    return 0.5 * np.einsum("ri,ij,rj->r", gap, problem.dense_hessians[client], gap)


def by_numpy(problem, client, x):
    """f_(client) as nothing in compiled code has it, up to a constant."""
    if isinstance(problem, Pooled):
        inner = problem.problem
        return sum(w * by_numpy(inner, c, x) for c, w in enumerate(inner.weights))
    return quadratic_potential(problem, client, x) if isinstance(problem, fs.Quadratic) else (
        problem.potential(client, x))


@pytest.mark.parametrize("name", PROBLEMS)
def test_compiled_potentials_are_those_of_numpy(name):
    """Up to a constant of the client; those of the twin without one."""
    problem, n_lanes = PROBLEMS[name], 7
    assert problem._without_potential() == ""
    points = np.random.default_rng(3).normal(0.0, 2.0, (n_lanes, problem.dim))
    scratch = problem._scratch(problem.dim, n_lanes, np.float64)
    for client in range(problem.n_clients):
        found, expected = np.empty(n_lanes), by_numpy(problem, client, points)
        evaluate_potential(problem._arrays(), client, np.ascontiguousarray(points.T), scratch, found)
        size = np.abs(expected).max()
        assert np.abs(np.diff(found) - np.diff(expected)).max() < 1e-12 * size
        assert np.abs(found - problem._potentials(client, points)).max() < 1e-12 * size
        assert np.ptp(expected) > 0.1


def test_every_class_of_problems_has_compiled_potentials_or_says_why():
    """Its form, or a form within, has a body; so a new class is not forgotten."""
    classes = {one for one in vars(fs).values()
               if isinstance(one, type) and hasattr(one, "curvature_problem")}
    assert classes == {type(problem) for problem in PROBLEMS.values()} - {Pooled}
    for problem in PROBLEMS.values():
        form = problem._arrays()
        while body_of(exact_potential, type(form)) is exact_potential.bodies[None]:
            form = form.inner
        assert type(form) in exact_potential.bodies


def test_a_potential_of_a_quadratic_is_its_formula():
    problem, x = PROBLEMS["dense"], np.random.default_rng(1).normal(size=(5, 3))
    of_clients = [quadratic_potential(problem, client, x) for client in range(3)]
    for client in range(3):
        np.testing.assert_allclose(problem.potential(client, x), of_clients[client], rtol=1e-13)
    np.testing.assert_allclose(problem.potential(None, x), problem.weights @ of_clients, rtol=1e-13)
    assert problem.potential(1, problem.minimizers[1]) == 0.0
    with pytest.raises(ValueError, match="client=3"):
        problem.potential(3, x)


CLIENTS = fs.Quadratic([[0.6, 2.0], [1.0, 0.3], [1.5, 0.8]], [[0.0, 1.0], [2.0, 0.0], [-1.0, 1.0]],
                       [0.5, 0.3, 0.2])


@pytest.mark.filterwarnings("ignore:mala has clients that never meet")
@pytest.mark.parametrize("follows", ["clients", "components", "global"])
def test_the_machine_and_the_twin_accept_the_same(follows):
    for replicas, steps in ((3, 1), (70, 5)):
        algorithm = of_rule(follows)(step_size=0.4, steps=steps)
        run, slow = (fs.simulate(CLIENTS, algorithm, 4, replicas, seed=2, keep_final=True, compiled=compiled)
                     for compiled in (True, False))
        assert np.abs(run.final - slow.final).max() < 1e-12 * np.abs(slow.final).max()
        for one, other in zip(run.clients, slow.clients, strict=True):
            assert np.abs(one.mean - other.mean).max() < 1e-12 * np.abs(other.mean).max()


@pytest.mark.filterwarnings("ignore:read has clients that never meet")
@pytest.mark.parametrize("follows", ["clients", "components", "global"])
def test_a_potential_has_the_factor_of_its_gradient(follows):
    """A slope of what is read, along a line, is the slope of the gradient that is followed."""
    @fs.sampler(follows=follows)
    def read(x, *, step_size):
        y = x + step_size * grad(x)
        return fs.each(difference, potential(y), potential(x)) - 0.5 * fs.each(along, grad(x), y, x) - (
            0.5 * fs.each(along, grad(y), y, x))

    start = np.array([0.7, -0.4])
    for compiled in (True, False):  # trapezoids are exact for a quadratic
        run = fs.simulate(CLIENTS, read(step_size=0.3), 1, 3, seed=1, start=start, covariance="none",
                          compiled=compiled)
        for one in (run, *run.clients):
            assert np.abs(one.mean[-1]).max() < 1e-14


def test_clients_at_one_point_have_potentials_of_their_own():
    @fs.sampler
    def made(x, *, step_size):
        return fs.each(difference, mean(x), potential(mean(x)))

    @fs.sampler
    def shared(x, *, step_size):
        return fs.each(difference, mean(x), mean(x))

    assert made(step_size=0.1)._clients_differ(CLIENTS) and not shared(step_size=0.1)._clients_differ(CLIENTS)


def along(g, y, x, out):
    total = 0.0
    for i in range(len(x)):
        total += g[i] * (y[i] - x[i])
    for i in range(len(x)):
        out[i] = total


def z_scores(run, R):
    """Of means, and of variances by the law of chi squares, of every client's law at the end."""
    z = []
    for client, seen in enumerate(run.clients):
        variances = 1.0 / CLIENTS.diagonal_hessians[client]
        z += [(seen.mean[-1] - CLIENTS.minimizers[client]) / np.sqrt(variances / R)]
        z += [stats.norm.isf(stats.chi2.sf((R - 1) * np.diagonal(seen.cov[-1]) / variances, R - 1))]
    return np.clip(np.concatenate(z), -1e3, 1e3)


FAULTS = {"no test": (1.0, 1e-300), "the wrong way round": (1.0, -1.0),
          "the potential downside up": (-1.0, 1.0), "no potential": (1e-300, 1.0)}


@pytest.mark.filterwarnings("ignore:mala has clients that never meet")
def test_a_metropolis_test_makes_the_law_exact(alarm):
    """Of each client, at a step size where unadjusted Langevin dynamics has up to 1.7 times the variance."""
    R, rule = 20_000, of_rule()
    run = fs.simulate(CLIENTS, rule(step_size=0.4, steps=2), 40, R, seed=5, record=[])
    alarm.assert_normal(z_scores(run, R), "means and variances of clients")
    for fault, signs in FAULTS.items():
        wrong = fs.simulate(CLIENTS, rule(step_size=0.4, steps=2, signs=signs), 40, R, seed=5, record=[],
                            allow_unstable=True)
        alarm.must_fail(z_scores(wrong, R), fault)


REFUSED = {
    "x + f": lambda x, f: x + f, "f + x": lambda x, f: f + x, "f - f": lambda x, f: f - f,
    "-f": lambda x, f: -f, "2 f": lambda x, f: 2.0 * f, "f / 2": lambda x, f: f / 2.0,
    "weights": lambda x, f: weights() * f, "W @ f": lambda x, f: W @ f, "f @ W": lambda x, f: f @ W,
    "mean": lambda x, f: mean(f), "f": lambda x, f: f, "grad": lambda x, f: grad(f),
    "potential": lambda x, f: potential(f), "past": lambda x, f: past(f, 1),
    "sqrt": lambda x, f: sqrt(f), "exp": lambda x, f: exp(f), "np.exp": lambda x, f: np.exp(f),
    "f > 0": lambda x, f: f > 0.0, "if f": lambda x, f: x if f else -x, "abs": lambda x, f: abs(f),
    "float": lambda x, f: float(f), "f[0]": lambda x, f: f[0], "sum": lambda x, f: sum([f, f])}


@pytest.mark.parametrize("name", REFUSED)
def test_only_each_reads_a_potential(name):
    @fs.sampler
    def made(x, *, step_size):
        return REFUSED[name](x, potential(x))

    with pytest.raises(NotationError, match=r"potential\(x\) is a number of each client, which only"):
        made(step_size=0.1).trace(CLIENTS)


def test_turns_of_matrices_do_not_mix_a_potential():
    @fs.sampler
    def made(x, *, step_size, W):
        return W @ potential(x)

    with pytest.raises(NotationError, match=r"potential\(x\) is a number of each client, which only"):
        made(step_size=0.1, W=[W, W]).trace(CLIENTS)


def test_what_reads_a_potential_has_replicas_alone():
    algorithm = of_rule("components")(step_size=0.1, steps=5)
    with pytest.raises(theory.exact.NoExactLaw, match=r"mala has each\(difference, \.\.\.\)"):
        theory.exact_law(CLIENTS, algorithm, 3)
    with pytest.raises(ValueError, match=r"potential\(x\) is no matrix"):
        algorithm.stability(CLIENTS)
    assert "f1 = potential(y1)" in algorithm.words(CLIENTS)
    assert "f_{1} &= f(y_{1})" in algorithm.latex(CLIENTS)


def bare(client, x):
    return x


TABLE = {"a": 0.5}
UNCOMPILED = {
    "none": (None, "pass potential= when making the problem"),
    "an array": (lambda client, x: float(np.sum(np.array([x, x]) * 0.25 * x)), r"it makes an array"),
    "scipy": (lambda client, x: scipy.special.xlogy(x * x, np.e) / 2, r"compiled, potential uses .*scipy"),
    "a table": (lambda client, x: TABLE["a"] * x * x, r"compiled, potential .*TABLE"),
    "integers": (lambda client, x: 0.5 * x * x + 0.0 * float((client + 3) ** 50), r"fails: OverflowError")}


@pytest.mark.parametrize("name", UNCOMPILED)
def test_a_problem_without_a_compiled_potential_is_refused_by_name(name):
    function, why = UNCOMPILED[name]
    for problem in (fs.Custom(bare, 1, potential=function), fs.Custom(bare, 1, potential=function).pooled()):
        with pytest.raises(ValueError, match=rf"(?s)must have a potential that can be compiled: mala.*{why}"):
            fs.simulate(problem, of_rule()(step_size=0.1), 1, 64, seed=1)


def test_a_class_of_ones_own_says_that_it_has_no_potential():
    class Own(fs.Quadratic):
        def _without_potential(self):
            return ProblemParts._without_potential(self)

    with pytest.raises(ValueError, match=r"mala reads potential\(x\); Own has none"):
        fs.validate(Own([1.0], [[0.0]]), of_rule()(step_size=0.1))


def test_two_potentials_of_one_gradient_are_two_problems():
    other = fs.Custom(slope, 3, data=[0.5, 1.5, 0.0],
                      potential=lambda client, x, m: x**4 / 4 - m[client] * x + 1)
    one, points, scratch = PROBLEMS["custom on the line"], np.array([[0.5, 2.0]]), other._scratch(1, 2, float)
    values = np.empty((2, 2))
    for problem, found in zip((one, other), values, strict=True):
        evaluate_potential(problem._arrays(), 1, points, scratch, found)
    np.testing.assert_allclose(values[1] - values[0], 1.0, rtol=1e-14)
