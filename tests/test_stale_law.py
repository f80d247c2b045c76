"""The fast exact laws of the stale-gradient figures are those of `average_law`."""

import numpy as np
import pytest

import fedsim as fs
from reproduce.stale import shared as sim
from reproduce.stale.law import Sums, followed
from theory.exact.delay import average_law

SKEWED = np.random.default_rng(1).standard_normal(40) ** 2 + 1.0
PROBLEMS = {
    "unbiased": fs.GaussianMean(SKEWED, batch_size=3),
    "batch sums": fs.GaussianMean(SKEWED, batch_size=3, grad_scale="batch_sum"),
    "all data": fs.GaussianMean(SKEWED),
    "quadratic": fs.Quadratic([1.0], [[0.7]])}


@pytest.mark.parametrize("ages", [0, 1, 4, fs.Workers(4, "exponential", update_cost=0.2, seed=1)], ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_same_law_as_row_by_row(name, ages):
    problem, length = PROBLEMS[name], 200
    start = followed(problem)
    h = 0.1 * float(start.variances[0])
    algorithm = fs.StaleSGLD(h, ages)
    wanted = average_law(problem, algorithm, length, start=start,
                         truth=float(start.mean[0] ** 2 + start.variances[0]))
    found = Sums.of(0.1, algorithm.ages(length)).law(problem, h)
    for part in ("lengths", "mean", "variance", "bias", "mse", "truth"):
        np.testing.assert_allclose(getattr(found, part), getattr(wanted, part), rtol=1e-11, atol=1e-15)


def test_the_typical_data_set_is_the_median():
    problems = [fs.GaussianMean(np.full(9, mean)) for mean in (3.0, -1.0, 0.1, -2.0, 5.0)]
    assert sim.typical(problems) == 3
    table = sim.sets_table(problems)
    assert table["typical"].tolist() == [False, False, False, True, False]
    assert table["distance"].iloc[1] == pytest.approx(0.9 * np.sqrt(10.0))
