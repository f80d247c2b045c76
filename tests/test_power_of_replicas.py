"""How small an error of the noise the comparison of replicas with the exact law sees.

Of a Gaussian law (R - 1) S / C is a chi-square with R - 1 degrees of freedom in each direction, exactly.
Noise whose variance is 1 + e times the law's multiplies it by 1 + e where the start is a point. It is flagged
in 95% of runs where (1 + e) q_0.05 = q_(1 - p/2), with quantiles q of that chi-square and the level
p = `P_LIMIT` of one comparison. The relative standard error of S is sqrt(2 / (R - 1)), so that e is about
(Z_LIMIT + 1.645) sqrt(2 / (R - 1)): 3.4% of 100 000 replicas, 5.4% of 40 000. One direction is counted; more
of them only help. Laws that are no Gaussian ones have errors of their own, which are measured and larger.
"""

import numpy as np
import pytest
from alarm import P_LIMIT, Z_LIMIT
from algorithms import ROWS
from scipy import stats
from scores import scores

import fedsim as fs
import theory

POWER, PROMISED = 0.95, 0.06
REPLICAS, REPETITIONS = 6400, 100


def smallest_error(n_replicas):
    """The least relative error of a variance that one direction shows in 95% of runs."""
    freedom = stats.chi2(n_replicas - 1)
    return float(freedom.isf(P_LIMIT / 2.0) / freedom.ppf(1.0 - POWER) - 1.0)


@pytest.mark.parametrize("kind", ROWS)
def test_six_percent_of_the_noise_are_seen_of_every_algorithm(kind):
    error, n_replicas = smallest_error(ROWS[kind].n_replicas), ROWS[kind].n_replicas
    assert error <= PROMISED, f"{kind.__name__}: {n_replicas} replicas show {error:.1%} of a variance"
    about = (Z_LIMIT + stats.norm.ppf(POWER)) * np.sqrt(2.0 / (n_replicas - 1))
    assert error == pytest.approx(about, rel=0.05)


def test_noise_that_is_so_much_off_is_flagged_as_often_as_is_said(alarm):
    """Runs of a temperature that is so much too high: how many of them are flagged is binomial."""
    problem, error = fs.Quadratic([[1.0]], [[0.0]]), smallest_error(REPLICAS)
    law = theory.exact_law(problem, fs.FALD(0.1), 2, record=())
    flagged = 0
    for seed in range(REPETITIONS):
        run = fs.simulate(problem, fs.FALD(0.1, temperature=1.0 + error), 2, REPLICAS, seed=seed, record=())
        flagged += bool(np.abs(scores(run, law)).max() > Z_LIMIT)
    alarm.assert_pvalue(stats.binomtest(flagged, REPETITIONS, POWER).pvalue, f"{flagged} were flagged")
