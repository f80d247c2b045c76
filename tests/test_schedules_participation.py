"""Schedules of step sizes, and who takes part in a round."""

import itertools
import math

import naive
import numpy as np
import pytest
from scipy import stats

import fedsim as fs
from fedsim.algorithms.bodies import step_size_at
from fedsim.random.participants import draw_clients
from fedsim.random.streams import lane_set
from fedsim.settings.schedules import Constant, Harmonic, Listed, as_schedule
from fedsim.vector.compile import compiled


@compiled
def _steps(schedule, out):
    for k in range(out.shape[0]):
        out[k] = step_size_at(schedule, k)


@compiled
def _draw(lanes, round, replace, cumulative, drawn, pool):
    draw_clients(lanes, round, replace, cumulative, drawn, pool)


@pytest.mark.parametrize("schedule", [Constant(0.3), Harmonic(5.0, 0.7), Harmonic(5.0, 0.0),
                                      Listed([0.3, 0.1, 0.5, 0.2])], ids=repr)
def test_compiled_and_numpy_forms_agree(schedule):
    out = np.empty(4)
    _steps(schedule.arrays(), out)
    np.testing.assert_allclose(schedule.at(np.arange(4)), out, rtol=1e-15)
    assert [float(schedule.at(k)) for k in range(4)] == schedule.at(np.arange(4)).tolist()
    assert schedule.largest == out.max()


def test_the_rule_of_theorem_4_8():
    """eta_k = 1 / (2 L + (m / 12) k)."""
    schedule = Harmonic.from_theorem(strong_convexity=3.0, smoothness=10.0)
    for k in (0, 1, 100):
        assert float(schedule.at(k)) == pytest.approx(1 / (20 + 3 / 12 * k), rel=1e-15)


def test_what_becomes_which_schedule():
    assert isinstance(as_schedule(0.1), Constant) and as_schedule(0.1).is_constant
    assert isinstance(as_schedule([0.1, 0.2]), Listed) and as_schedule(np.array([0.1])).n_steps == 1
    assert as_schedule(Harmonic(1.0, 1.0)).n_steps is None and not as_schedule([0.1]).is_constant
    assert fs.FALD(np.float32(0.5)).step_size == 0.5 and isinstance(fs.FALD(1).step_size, float)
    assert isinstance(fs.FALD([0.1]).step_size, Listed)


def test_a_constant_list_is_a_constant_step():
    problem = fs.Quadratic([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]])
    runs = [fs.simulate(problem, fs.FALD(step, 3), 5, 64, seed=1, keep_final=True).final
            for step in (0.1, [0.1] * 15, [0.1] * 99, Harmonic(10.0, 0.0), Constant(0.1))]
    for final in runs[1:]:
        np.testing.assert_allclose(final, runs[0], rtol=0, atol=1e-14)


def test_only_the_largest_step_decides_stability():
    problem = fs.Quadratic([1.0], [[0.0]])
    assert fs.FALD([0.1, 1.9]).stability(problem).stable
    with pytest.raises(fs.UnstableStepSize, match=r"step_size=2\.1 must be less than"):
        fs.validate(problem, fs.FALD([0.1, 2.1]))


def drawn_clients(scheme, weights, rounds, lanes, seed=5):
    """(rounds, S, lanes) client numbers."""
    out = np.empty((rounds, scheme.n_active, lanes), np.int64)
    pool = np.empty((len(weights), lanes), np.int64)
    for round in range(rounds):
        _draw(lane_set(seed, 0, lanes), round, scheme.replace, np.cumsum(weights), out[round], pool)
    return out


@pytest.mark.parametrize(("scheme", "weights"), [
    (fs.Participation(4, True), [0.1, 0.2, 0.7]), (fs.Participation(1, True), [1.0]),
    (fs.Participation(3, False), [0.2] * 5), (fs.Participation(5, False), [0.2] * 5)])
def test_draws_are_their_slow_twins(scheme, weights):
    drawn = drawn_clients(scheme, np.array(weights), 3, 40)
    for round, lane in itertools.product(range(3), range(40)):
        streams = naive.Streams(5, lane)
        assert drawn[round, :, lane].tolist() == naive.draw_clients(streams, round, scheme, weights)


def test_scheme_one_draws_by_weight_and_independently(alarm):
    weights = np.array([0.05, 0.15, 0.3, 0.5])
    drawn = drawn_clients(fs.Participation(2, True), weights, 4, 100_000)
    for slot in range(2):
        counts = np.bincount(drawn[:, slot].ravel(), minlength=4)
        alarm.assert_pvalue(stats.chisquare(counts, weights * counts.sum()).pvalue, f"slot {slot}")
    for first, second in ((drawn[:, 0], drawn[:, 1]), (drawn[:-1, 0], drawn[1:, 0]),
                          (drawn[:, 0, :-1], drawn[:, 0, 1:])):  # slots, rounds, replicas
        counts = np.bincount((4 * first + second).ravel(), minlength=16)
        expected = np.outer(weights, weights).ravel() * counts.sum()
        alarm.assert_pvalue(stats.chisquare(counts, expected).pvalue, "pairs")


@pytest.mark.parametrize(("n_clients", "n_active"), [(5, 2), (4, 3), (3, 1), (4, 4)])
def test_scheme_two_draws_subsets_uniformly(n_clients, n_active, alarm):
    drawn = drawn_clients(fs.Participation(n_active, False), np.full(n_clients, 1 / n_clients), 2, 100_000)
    ordered = np.sort(drawn, axis=1)
    assert (np.diff(ordered, axis=1) > 0).all() and ordered.min() >= 0 and ordered.max() < n_clients
    # all orders are equally likely, not only all subsets
    code = (drawn * n_clients ** np.arange(n_active)[:, None]).sum(axis=1)
    counts = np.unique(code, return_counts=True)[1]
    assert len(counts) == math.perm(n_clients, n_active)
    if len(counts) > 1:
        alarm.assert_pvalue(stats.chisquare(counts).pvalue, "orders")


@pytest.mark.parametrize("replace", [True, False])
def test_variance_factor(replace, alarm):
    """Var of the average of fixed numbers x_c over the drawn clients, relative to one drawn by weight."""
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(5)) if replace else np.full(5, 0.2)
    x = rng.standard_normal(5)
    for n_active in (1, 2, 4):
        scheme = fs.Participation(n_active, replace)
        average = x[drawn_clients(scheme, weights, 4, 50_000)].mean(axis=1).ravel()
        mean = weights @ x
        expected = scheme.variance_factor(5) * (weights @ (x - mean) ** 2)
        squares = (average - mean) ** 2
        error = squares.std(ddof=1) / math.sqrt(squares.size)
        alarm.assert_normal((squares.mean() - expected) / error, "variance")
        alarm.assert_normal((average.mean() - mean) / math.sqrt(expected / average.size), "mean")
    assert fs.Participation(5, False).variance_factor(5) == 0.0
    assert fs.Participation(3, replace).variance_factor(1) == 0.0


def test_all_clients_drawn_is_full_participation():
    """Scheme II with S = N: the same numbers, up to the order of the sum."""
    problem = fs.Quadratic([1.0, 2.0, 0.5], np.arange(6.0).reshape(3, 2))
    full = fs.simulate(problem, fs.FALD(0.1, 3, 1.0, 0.3), 10, 200, seed=2, keep_final=True)
    drawn = fs.simulate(problem, fs.FALD(0.1, 3, 1.0, 0.3, fs.Participation(3, False)), 10, 200, seed=2,
                        keep_final=True)
    np.testing.assert_allclose(drawn.final, full.final, rtol=0, atol=1e-12)
    assert drawn.is_gaussian


def test_from_paper():
    assert fs.Participation.from_paper(3, "I") == fs.Participation(3, True)
    assert fs.Participation.from_paper(3, "II") == fs.Participation(3, False)
    assert [fs.Participation(1, replace).scheme for replace in (True, False)] == ["I", "II"]
    algorithm = fs.FALD.from_paper(eta=0.1, K=5, tau=0.5, rho=0.6, S=2, scheme="II")
    assert algorithm == fs.FALD(0.1, 5, 0.5, 0.36, fs.Participation(2, False))
