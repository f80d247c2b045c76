"""No silent number: masked entries, small integers that would wrap, indices and shifts out of range."""

import numpy as np
import pandas as pd
import pytest
from fuzz.known import PROBLEM, SETTINGS, SHARES, examined, stated

import fedsim as fs
import theory
from fedsim.settings.validation import real, whole

MASKED = np.ma.array([1.0, 999.0], mask=[False, True])
WHOLE = np.ma.array([0, 1], mask=[False, True])
COLUMN = np.ma.array([[1.0], [999.0]], mask=[[False], [True]])
FEATURES = [[1.0], [2.0]]
REFUSED = {
    "minimizers": lambda: fs.Quadratic([1.0, 1.0], COLUMN),
    "hessians": lambda: fs.Quadratic(MASKED, [[0.0], [1.0]]),
    "weights": lambda: fs.Quadratic([1.0, 1.0], [[0.0], [1.0]], MASKED),
    "step_size": lambda: fs.FALD(MASKED),
    "step_size in a list": lambda: fs.FALD([0.1, np.ma.masked]),
    "rows of minimizers": lambda: fs.Quadratic([1.0, 1.0], [COLUMN[0], COLUMN[1]]),
    "record": lambda: fs.recorded_rounds(3, WHOLE),
    "staleness": lambda: fs.StaleSGLD(0.1, np.ma.array([0, 1], mask=[False, True])),
    "clients": lambda: fs.LinearRegression(FEATURES, [1.0, 2.0], WHOLE, noise_std=1.0, prior_variance=1.0),
    "labels": lambda: fs.LogisticRegression(FEATURES, np.ma.array([True, False], mask=[False, True]), [0, 1],
                                            prior_variance=1.0),
    "features": lambda: fs.LogisticRegression(COLUMN, [0, 1], [0, 1], prior_variance=1.0),
    "data": lambda: fs.GaussianMean(MASKED),
    "graph": lambda: fs.network.metropolis(np.ma.array(np.ones((2, 2)), mask=np.eye(2))),
    "averages": lambda: fs.estimators.errors(np.ma.array([1.0, 2.0, 3.0, 999.0], mask=[0, 0, 0, 1]), 2.0),
    "mean": lambda: fs.Gaussian(MASKED, np.eye(2)),
    "start": lambda: fs.validate(PROBLEM, fs.FALD(0.1), np.ma.array([999.0], mask=[True])),
    "k": lambda: fs.schedules.Harmonic(2.0, 0.1).at(WHOLE),
    "x": lambda: PROBLEM.gradient(0, np.ma.array([999.0], mask=[True])),
    "rounds": lambda: theory.exact.two_group_law(WHOLE, curvatures=(4.0, 1.0), minimizers=(1.0, 0.0),
                                                 trajectory_length=0.5, local_steps=2),
    "law": lambda: theory.check(bound_at(2), np.ma.array([0.0, 0.0, 999.0], mask=[0, 0, 1])),
}


def bound_at(n_rounds):
    algorithm = fs.FALD(0.01)
    return theory.fa_ld.w2_bound(theory.constants(PROBLEM, algorithm), algorithm, n_rounds=n_rounds)


@pytest.mark.parametrize("name", REFUSED)
def test_masked_entries_are_refused_by_name(name):
    word = "minimizers" if name.startswith("rows") else name.split()[0]
    with pytest.raises(ValueError, match=f"{word} has masked entries"):
        REFUSED[name]()


def test_a_masked_number_is_no_number():
    for check in (real, whole):
        with pytest.raises(ValueError, match="n=masked must be"):
            check("n", np.ma.masked)


def test_masked_arrays_without_a_masked_entry_are_arrays():
    problem = fs.Quadratic([1.0, 1.0], np.ma.array([[1.0], [3.0]]))
    assert problem.minimizer.tolist() == [2.0]


SMALL = {np.uint8: 200, np.int8: 100, np.int32: 100}
"""Twice any of the first two wraps."""


@pytest.mark.parametrize("entry", theory.theorems(), ids=lambda entry: entry.id)
def test_small_integers_are_the_numbers_they_stand_for(entry):
    """Each theorem, and the exact side of each quantity that it is compared with."""
    arguments, setting = stated(entry), examined(entry)
    for kind, number in SMALL.items():
        bounds = [entry.function(**{**arguments, "n_rounds": n}) for n in (number, kind(number))]
        assert bounds[0].rounds.tolist() == bounds[1].rounds.tolist()
        assert bounds[0].value.tobytes() == bounds[1].value.tobytes()
    if setting:
        verdicts = [theory.examine(entry, **setting | {"n_rounds": n})
                    for n in (100, np.int8(100))]
        assert len({(one.holds, one.tightness, one.worst_round, one.n_compared) for one in verdicts}) == 1
        assert verdicts[0].bound.rounds.tolist() == verdicts[1].bound.rounds.tolist()


def test_a_wrapped_number_of_steps_would_be_seen():
    algorithm = next(one for _, one in SETTINGS if isinstance(one, fs.FAHMC))
    verdict = theory.examine("fa_hmc.client_gradient_bound", PROBLEM, algorithm, np.uint8(200))
    assert verdict.bound.rounds[-1] == 200 * algorithm.local_steps == 400  # 144 in eight bits


def test_small_numbers_of_other_functions():
    mixing = fs.network.ring(2)
    for module in (theory.de_sgld, theory.de_sghmc):
        step = module.remark_step_size(np.int8(1), np.uint8(2), mixing, np.int32(1000))
        assert step == module.remark_step_size(1, 2, mixing, 1000)
    cov = np.eye(2)
    assert fs.distance.w2_floor(cov, np.int8(100)) == fs.distance.w2_floor(cov, 100)
    drawn = fs.Participation(np.uint8(100), False)
    assert drawn.variance_factor(np.uint8(200)) == fs.Participation(100, False).variance_factor(200)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_floats_of_any_precision_become_float64_of_the_same_value(kind):
    algorithm = fs.FALD(kind(0.1), temperature=kind(2.0))
    assert type(algorithm.step_size) is float and algorithm.step_size == float(kind(0.1))
    assert algorithm == fs.FALD(float(kind(0.1)), temperature=2.0)


def test_truth_values_are_no_numbers():
    for value in (True, np.bool_(True)):
        with pytest.raises(ValueError, match=r"step_size=.* must be a real number"):
            fs.FALD(value)
        with pytest.raises(ValueError, match=r"n_rounds=.* must be an integer"):
            theory.examine("fa_ld.w2_bound", PROBLEM, fs.FALD(0.01), value)


NO_MIXING = {"asymmetric": ([[0.5, 0.9], [0.1, 0.5]], "must be symmetric"),
             "complex": ([[0.5, 0.5j], [-0.5j, 0.5]], "array of real numbers"),
             "infinite": ([[0.5, np.inf], [np.inf, 0.5]], "must be finite"),
             "NaN": ([[0.5, np.nan], [np.nan, 0.5]], "must be finite"),
             "rows": ([[0.5, 0.4], [0.4, 0.5]], "rows must sum to 1"),
             "vector": ([0.5, 0.5], "must have 2 axes")}


@pytest.mark.parametrize("function", ["is_connected", "smallest_eigenvalue", "second_eigenvalue",
                                      "spectral_gap"])
@pytest.mark.parametrize("name", NO_MIXING)
def test_no_eigenvalue_of_what_is_no_mixing_matrix(function, name):
    matrix, message = NO_MIXING[name]
    with pytest.raises(ValueError, match=f"mixing.*{message}"):
        getattr(fs.network, function)(matrix)


SCHEDULES = [fs.schedules.Constant(0.1), fs.schedules.Harmonic(2.0, 0.1), fs.schedules.Listed([0.1, 0.2])]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_schedules_have_no_step_that_does_not_exist(schedule):
    for bad in (-1, [0, -30], np.int8(-3)):
        with pytest.raises(ValueError, match=r"k contains -\d+; local steps count from 0"):
            schedule.at(bad)
    for bad in (None, [True, False], 0.5, "1", [[0], [0, 1]], 1j):
        with pytest.raises(ValueError, match=r"k=.* must be an integer, or an array of integers"):
            schedule.at(bad)
    assert np.shape(schedule.at([])) == (0,)
    assert np.asarray(schedule.at([0, 1])).tolist() == [float(schedule.at(k)) for k in (np.uint8(0), 1)]


def test_a_listed_schedule_ends():
    for bad in (2, [0, 5]):
        with pytest.raises(ValueError, match=r"k contains \d; step_size has 2 entries, 0 to 1"):
            SCHEDULES[2].at(bad)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), 1.0 + 1.0j, "1", None, True, [1.0]])
def test_the_gaussian_profile_takes_sizes_alone(bad):
    for name, arguments in (("epsilon", (bad, 1.0)), ("shift", (1.0, bad))):
        with pytest.raises(ValueError, match=rf"{name}=.* must be"):
            theory.privacy.gaussian_delta(*arguments)
    assert theory.privacy.gaussian_delta(float("inf"), 1.0) == 0.0


def test_time_averages_whose_powers_leave_float64_are_refused():
    with pytest.raises(ValueError, match=r"averages\[3\]=1e\+155 must be at most 1e\+75"):
        fs.estimators.errors([1, 2, 3, 1e155, 5], 2)
    with pytest.raises(ValueError, match=r"truth=1e\+155 must be at most"):
        fs.estimators.errors([1, 2, 3, 4, 5], 1e155)
    large = fs.estimators.errors([1e74, 2e74, 3e74, 7e74], 2e74)
    assert np.isfinite([*large.bias, *large.variance, *large.mse]).all()


def test_a_table_is_no_gaussian():
    problem = fs.Quadratic([[1.0, 2.0], [3.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    algorithm, point = fs.FALD(0.1), [0.5, 1.5]
    row, table = pd.Series(point), pd.DataFrame([point])
    calls = (lambda start: theory.exact_law(problem, algorithm, 2, start=start).mean,
             lambda start: theory.constants(problem, algorithm, start).initial_distance,
             lambda start: theory.examine("fa_ld.w2_bound", problem, algorithm, 2, start=start).bound.value)
    for call in calls:
        assert np.array_equal(call(row), call(point))
        with pytest.raises(ValueError, match=r"start has shape \(1, 2\); it must have 1 axis"):
            call(table)
    fs.validate(problem, algorithm, row)
    each = pd.DataFrame([[0.5], [1.5]])
    moments = theory.exact_law(SHARES, fs.DESGLD(0.01, fs.network.ring(2)), 1, start=each)
    assert moments.clients[1].mean[0].tolist() == [1.5]  # one row for each client
